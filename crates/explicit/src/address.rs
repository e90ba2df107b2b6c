//! The addresses that a list may have, and those of a node.

use std::net::{IpAddr, Ipv6Addr};

/// Whether an address is that of a single host beyond its link: not multicast, unspecified, loopback, link-local, nor
/// an IPv4 address in IPv6's form.
#[inline]
pub(crate) const fn is_host(address: &[u8; 16]) -> bool {
    match u128::from_be_bytes(*address) {
        // ::/96 with ::1, and ::ffff:0:0/96 (RFC 4291, section 2.5).
        0..=0xffff_ffff | 0xffff_0000_0000..=0xffff_ffff_ffff => false,
        bits => !(bits >> 120 == 0xff || bits >> 118 == 0xfe80 >> 6),
    }
}

/// Whether a list has an address twice.
pub(crate) fn has_pair<T: Ord + Copy>(list: &[T]) -> bool {
    // Up to about there looking at all pairs is quicker than sorting.
    if list.len() <= 32 {
        return (1..list.len()).any(|place| list[..place].contains(&list[place]));
    }
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// The addresses of IPv6 among a node's own, in their order.
pub(crate) fn of_ipv6(addresses: &[IpAddr]) -> Vec<Ipv6Addr> {
    let v6 = |address: &IpAddr| match address {
        IpAddr::V6(address) => Some(*address),
        IpAddr::V4(_) => None,
    };
    addresses.iter().filter_map(v6).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_single_hosts_beyond_the_link_are_listed() {
        for (address, is) in [
            ("fd14::1", true),
            ("2001:db8::1", true),
            ("fec0::1", true),
            ("fe00::1", true),
            ("fe80::1", false),
            ("febf::1", false),
            ("ff02::1", false),
            ("ff3e::4321:1234", false),
            ("::", false),
            ("::1", false),
            ("::10.0.0.1", false),
            ("::ffff:10.0.0.1", false),
        ] {
            let address: Ipv6Addr = address.parse().unwrap();
            assert_eq!(is_host(&address.octets()), is, "{address}");
        }
    }

    #[test]
    fn a_pair_is_found_wherever_it_is() {
        assert!(!has_pair::<u8>(&[]));
        assert!(!has_pair(&[1, 2, 3]));
        let mut long: Vec<u8> = (0..60).rev().collect();
        assert!(!has_pair(&long));
        long[7] = 3;
        assert!(has_pair(&long));
        assert!(has_pair(&[1, 2, 1]) && has_pair(&[1, 2, 2]) && has_pair(&[1, 1, 2]));
    }
}
