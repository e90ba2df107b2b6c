//! The addresses that a scenario's nodes and interfaces have, in virtual time and live alike.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_link::Attachment;

use super::{LinkId, NodeId};

/// An Ethernet address.
pub type MacAddress = [u8; 6];

/// The hop limit that hosts send with: the maximum (RFC 791, RFC 8200), so that paths may be longer than an operating
/// system's default of 64.
pub const HOP_LIMIT: u8 = 255;

/// The addresses of a node, IPv4 and IPv6: 10.0.0.1 and fd00::1 for the first of the file.
pub fn addresses_of(node: NodeId) -> [IpAddr; 2] {
    let number = node as u32 + 1;
    [
        IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 | number)),
        IpAddr::V6(Ipv6Addr::from_bits((0xfd00 << 112) | u128::from(number))),
    ]
}

/// The node that has an address; `None` if it is not one that [`addresses_of`] gives.
pub(super) fn node_of(address: IpAddr) -> Option<NodeId> {
    let number = match address {
        IpAddr::V4(address) if address.octets()[0] == 10 => address.to_bits() & 0x00ff_ffff,
        IpAddr::V6(address) if address.to_bits() >> 32 == 0xfd00 << 80 => address.to_bits() as u32,
        IpAddr::V4(_) | IpAddr::V6(_) => return None,
    };
    (number as usize).checked_sub(1)
}

/// The Ethernet address of a link's attachment: locally administered, then the attachment and the link.
pub(super) fn mac_address(link: LinkId, attachment: Attachment) -> MacAddress {
    let link = (link as u32).to_be_bytes();
    // The scenario language bounds the stations of a medium to 256.
    [0x02, attachment as u8, link[0], link[1], link[2], link[3]]
}

/// The name of a node's interface: `eth0` for the first.
pub fn interface_name(interface: u32) -> String {
    format!("eth{interface}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_node() {
        for node in [0, 1, 255, 9_999, 1_000_000] {
            for address in addresses_of(node) {
                assert_eq!(node_of(address), Some(node), "{address}");
            }
        }
        assert_eq!(node_of("192.0.2.1".parse().unwrap()), None);
        assert_eq!(node_of("10.0.0.0".parse().unwrap()), None);
    }
}
