//! The checksum of the Internet over a packet of PGM (RFC 3208, section 8).

use super::CHECKSUM;

/// The checksum of a packet, whatever its field for it holds. Never 0, which says that there is none.
///
/// # Panics
/// If the packet is shorter than a header.
pub fn checksum(packet: &[u8]) -> u16 {
    let (before, rest) = packet.split_at(CHECKSUM.start);
    let after = &rest[CHECKSUM.len()..];
    // The field has an even place, so that words before and after it are those of the packet.
    let mut sum = words(before) + words(after);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    match !(sum as u16) {
        0 => 0xFFFF,
        sum => sum,
    }
}

/// Sum of the 16-bit words, as if a zero followed the last byte of an odd number.
fn words(bytes: &[u8]) -> u64 {
    let (pairs, last) = bytes.as_chunks::<2>();
    let sum: u64 = pairs.iter().map(|&pair| u64::from(u16::from_be_bytes(pair))).sum();
    sum + last.first().map_or(0, |&byte| u64::from(byte) << 8)
}
