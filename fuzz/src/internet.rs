//! Bytes that a fuzzer made, mended so that a checksum is not where they all end.

use hopcast_host::pim::wire::PROTOCOL as PIM;
use hopcast_wire::checksum::{checksum, transport};
use hopcast_wire::ip::{self, Version};

/// Makes the lengths and checksums of an IP packet fit, as far as it is one.
pub fn mend(packet: &mut [u8]) {
    let Ok(header) = ip::parse_quoted(packet) else { return };
    let len = packet.len().min(0xFFFF) as u16;
    match header.version {
        Version::V4 => {
            packet[2..4].copy_from_slice(&len.to_be_bytes());
            packet[10..12].fill(0);
            let sum = checksum(&packet[..header.header_len]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Version::V6 => {
            let payload = len.saturating_sub(ip::V6_HEADER as u16);
            packet[4..6].copy_from_slice(&payload.to_be_bytes());
        }
    }
    // The packet may have another end now, and so other extension headers.
    let Ok(header) = ip::parse(packet) else { return };
    let segment = &mut packet[header.payload()];
    let (at, covers_addresses) = match header.protocol {
        ip::ICMP | ip::IGMP => (2, false),
        ip::ICMPV6 => (2, true),
        ip::TCP => (16, true),
        ip::UDP => (6, true),
        // Over IPv6 alone the addresses count (RFC 7761 section 4.9).
        PIM => (2, header.version == Version::V6),
        _ => return,
    };
    if header.protocol == ip::UDP && segment.len() >= 6 {
        let len = segment.len() as u16;
        segment[4..6].copy_from_slice(&len.to_be_bytes());
    }
    if segment.len() < at + 2 {
        return;
    }
    segment[at..at + 2].fill(0);
    let sum = if covers_addresses {
        transport(header.source, header.destination, header.protocol, segment)
    } else {
        checksum(segment)
    };
    let sum = if header.protocol == ip::UDP && sum == 0 { 0xFFFF } else { sum };
    segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}
