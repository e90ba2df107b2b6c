//! Messages of DHCP, as far as gateways look at them.
//!
//! ```text
//!  UDP's payload   0: operation | 1: hardware type (1) | 2: hardware length (6) | …   28: client's address …
//! ```

use hopcast_wire::ethernet::{self, Mac};
use hopcast_wire::{ip, udp, vlan};

/// Ports of servers: of DHCP for IPv4 (RFC 2131 section 4.1) and of DHCPv6 (RFC 8415 section 7.2).
const SERVER: u16 = 67;
const SERVER_V6: u16 = 547;
/// Hardware type and length of Ethernet (RFC 2131 section 2).
const ETHERNET: [u8; 2] = [1, 6];
/// Place of the client's address.
const CLIENT: usize = 28;

/// A message of DHCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dhcp {
    /// For a server.
    ToServer,
    /// For the client of this address.
    ToClient(Mac),
}

/// The message of DHCP in a frame, with a VLAN's tag or without; `None` if there is none
/// (`batadv_gw_dhcp_recipient_get`). Checksums are for the receiver.
pub(crate) fn message(frame: &[u8]) -> Option<Dhcp> {
    let tagged = vlan::tag(frame).is_some_and(|tag| tag.kind == vlan::CUSTOMER);
    let at = ethernet::HEADER + if tagged { vlan::TAG } else { 0 };
    let (head, packet) = frame.split_at_checked(at)?;
    let (ether_type, first) = (u16::from_be_bytes(*head.last_chunk()?), *packet.first()?);
    let (protocol, header) = match ether_type {
        ethernet::IPV4 => (*packet.get(9)?, usize::from(first & 0x0f) * 4),
        ethernet::IPV6 => (*packet.get(6)?, ip::V6_HEADER),
        _ => return None,
    };
    let segment = packet.get(header..).filter(|_| protocol == ip::UDP)?;
    let (message, (source, destination)) = (segment.get(udp::HEADER..)?, ip::ports(segment)?);
    if destination == if ether_type == ethernet::IPV4 { SERVER } else { SERVER_V6 } {
        return Some(Dhcp::ToServer);
    }
    let for_client = ether_type == ethernet::IPV4 && source == SERVER && message.get(1..3)? == ETHERNET;
    message.get(CLIENT..)?.first_chunk().filter(|_| for_client).map(|client| Dhcp::ToClient(*client))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::Buffer;
    use std::net::SocketAddr;

    const CLIENT: Mac = [6, 1, 2, 3, 4, 5];

    fn frame(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
        let [from, to]: [SocketAddr; 2] = [from, to].map(|address| address.parse().unwrap());
        let mut frame = Buffer::copy_from(payload);
        udp::prepend(&mut frame, from, to);
        ip::prepend(&mut frame, from.ip(), to.ip(), ip::UDP, 64, 0);
        let ether_type = if from.is_ipv4() { ethernet::IPV4 } else { ethernet::IPV6 };
        ethernet::prepend(
            &mut frame,
            ethernet::Header { destination: [0xff; 6], source: [6; 6], ether_type },
        );
        frame.to_vec()
    }

    fn payload() -> Vec<u8> {
        let mut payload = vec![0; 240];
        payload[..3].copy_from_slice(&[2, 1, 6]);
        payload[28..34].copy_from_slice(&CLIENT);
        payload
    }

    #[test]
    fn requests_and_answers_are_told_by_their_ports() {
        let of = |from, to| message(&frame(from, to, &payload()));
        assert_eq!(of("0.0.0.0:68", "255.255.255.255:67"), Some(Dhcp::ToServer));
        assert_eq!(of("10.0.0.1:67", "255.255.255.255:68"), Some(Dhcp::ToClient(CLIENT)));
        assert_eq!(of("[fe80::1]:546", "[ff02::1:2]:547"), Some(Dhcp::ToServer));
        for (from, to) in [("[fe80::1]:547", "[ff02::1]:546"), ("10.0.0.1:68", "255.255.255.255:547")] {
            assert_eq!(of(from, to), None, "{from} {to}");
        }
        let mut tagged = frame("0.0.0.0:68", "255.255.255.255:67", &payload());
        tagged.splice(12..12, [0x81, 0, 0, 7]);
        assert_eq!(message(&tagged), Some(Dhcp::ToServer));
        tagged[12] = 0x82;
        assert_eq!(message(&tagged), None);
    }

    #[test]
    fn answers_for_other_hardware_cut_off_ones_and_other_protocols_are_none() {
        let whole = frame("10.0.0.1:67", "255.255.255.255:68", &payload());
        let end = ethernet::HEADER + ip::V4_HEADER + udp::HEADER + 34;
        (0..end).for_each(|len| assert_eq!(message(&whole[..len]), None, "{len}"));
        assert_eq!(message(&whole[..end]), Some(Dhcp::ToClient(CLIENT)));
        // Hardware type and length, and the protocol of IPv4.
        for (at, value) in [(43, 6), (44, 8), (23, 6)] {
            let mut other = whole.clone();
            other[at] = value;
            assert_eq!(message(&other), None, "{at}");
        }
    }
}
