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
pub(crate) fn has_pair(list: &[[u8; 16]]) -> bool {
    // Up to about there looking at all pairs is quicker than sorting.
    if list.len() <= SHORT {
        return may_have_pair(list) && (1..list.len()).any(|place| list[..place].contains(&list[place]));
    }
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// Length of a list all of whose pairs are looked at.
const SHORT: usize = 32;

/// Whether the last four bytes of two addresses of a short list are the same, which is looked for without a branch.
#[inline]
fn may_have_pair(list: &[[u8; 16]]) -> bool {
    let mut ends = [0; SHORT];
    for (end, address) in ends.iter_mut().zip(list) {
        let [.., a, b, c, d] = *address;
        *end = u32::from_ne_bytes([a, b, c, d]);
    }
    let mut found = false;
    for (place, end) in ends.iter().enumerate().take(list.len()) {
        found |= ends[..place].iter().fold(false, |found, other| found | (other == end));
    }
    found
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
        let of = |bytes: &[u8]| {
            // The first byte or the last one is the one that differs.
            let ends = [0, 15].map(|place| {
                let address = |byte: &u8| {
                    let mut address = [7; 16];
                    address[place] = *byte;
                    address
                };
                has_pair(&bytes.iter().map(address).collect::<Vec<_>>())
            });
            assert_eq!(ends[0], ends[1], "{bytes:?}");
            ends[0]
        };
        assert!(!of(&[]));
        assert!(!of(&[1, 2, 3]));
        for len in [32, 60] {
            let mut long: Vec<u8> = (0..len).rev().collect();
            assert!(!of(&long));
            long[7] = 3;
            assert!(of(&long));
        }
        assert!(of(&[1, 2, 1]) && of(&[1, 2, 2]) && of(&[1, 1, 2]));
    }
}
