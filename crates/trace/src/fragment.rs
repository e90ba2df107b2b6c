//! Fragments of IP packets.

use hopcast_wire::ip::{self, Header, Version};

use crate::log::mix;

/// The part of a packet that a fragment carries (RFC 791 section 3.2, RFC 8200 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fragment {
    /// Offset of its payload in that of the packet, in bytes.
    pub offset: u32,
    /// Length of its payload, in bytes.
    pub length: u32,
    /// Whether it is the last one.
    pub is_last: bool,
}

impl Fragment {
    /// The fragment of a packet with this header; `None` of a whole packet.
    pub(crate) fn of(packet: &[u8], header: &Header) -> Option<Self> {
        let (_, offset, more) = numbers(packet, header).filter(|_| header.fragment)?;
        let length = header.total_len.saturating_sub(header.header_len) as u32;
        Some(Self { offset, length, is_last: !more })
    }

    /// Offset of the first byte behind it.
    pub const fn end(&self) -> u32 {
        self.offset.saturating_add(self.length)
    }

    /// Whether two fragments have bytes in common.
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }

    /// Whether all bytes of `other` are in it.
    pub const fn covers(&self, other: &Self) -> bool {
        self.offset <= other.offset && other.end() <= self.end()
    }
}

/// Whether these fragments are all of a packet.
pub(crate) fn are_all(mut fragments: Vec<Fragment>) -> bool {
    fragments.sort_unstable();
    let mut end = 0;
    for fragment in fragments {
        if fragment.offset > end {
            return false;
        }
        end = end.max(fragment.end());
        if fragment.is_last && end == fragment.end() {
            return true;
        }
    }
    false
}

/// The key of the packet that a fragment belongs to, or that may be fragmented; 0 of one that may not.
pub(crate) fn datagram_key(packet: &[u8], header: &Header) -> u64 {
    let Some((identification, ..)) = numbers(packet, header) else { return 0 };
    if !header.fragment && (header.dont_fragment || identification == 0) {
        return 0;
    }
    let addresses = match header.version {
        Version::V4 => packet.get(12..20),
        Version::V6 => packet.get(8..40),
    };
    let (words, _) = addresses.unwrap_or_default().as_chunks::<8>();
    let kind = mix(4, u64::from(identification) << 8 | u64::from(header.protocol));
    let hash = words.iter().fold(kind, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    (hash ^ hash >> 31).max(1)
}

/// The identification, the offset in bytes, and whether more fragments follow; `None` of a whole packet of IPv6.
fn numbers(packet: &[u8], header: &Header) -> Option<(u32, u32, bool)> {
    match header.version {
        Version::V4 => {
            let &[.., i0, i1, o0, o1] = packet.first_chunk::<8>()?;
            let word = u16::from_be_bytes([o0, o1]);
            let identification = u16::from_be_bytes([i0, i1]);
            Some((identification.into(), u32::from(word & 0x1fff) * 8, word & 0x2000 != 0))
        }
        Version::V6 => {
            let extension = ip::extension(packet, ip::FRAGMENT)?;
            let &[_, _, o0, o1, id @ ..] = extension.first_chunk::<8>()?;
            let word = u16::from_be_bytes([o0, o1]);
            Some((u32::from_be_bytes(id), u32::from(word & !7), word & 1 != 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(offset: u32, length: u32, is_last: bool) -> Fragment {
        Fragment { offset, length, is_last }
    }

    #[test]
    fn fragments_are_all_of_a_packet_if_no_byte_is_missing() {
        let [first, second, last] = [fragment(0, 16, false), fragment(16, 8, false), fragment(24, 5, true)];
        assert!(are_all(vec![last, first, second]));
        assert!(are_all(vec![fragment(8, 16, false), first, last]));
        for missing in [vec![first, second], vec![first, last], vec![second, last], vec![]] {
            assert!(!are_all(missing));
        }
        assert!(first.covers(&fragment(8, 8, false)) && !first.covers(&second) && !first.overlaps(&second));
    }

    #[test]
    fn both_versions_say_where_a_fragment_belongs() {
        let mut v4 = vec![0x45, 0, 0, 44, 0x12, 0x34, 0x20, 0x03, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        v4.resize(44, 0);
        let mut v6 = vec![0x60, 0, 0, 0, 0, 32, 44, 64];
        v6.extend([7; 32]);
        v6.extend([17, 0, 0, 0x19, 0, 0, 0x12, 0x34]);
        v6.resize(72, 0);
        for (packet, other) in [(v4, 5), (v6, 47)] {
            let header = ip::parse_quoted(&packet).unwrap();
            assert_eq!(Fragment::of(&packet, &header), Some(fragment(24, 24, false)), "{:?}", header.version);
            let key = datagram_key(&packet, &header);
            let mut changed = packet.clone();
            changed[other] ^= 1;
            assert_ne!(key, datagram_key(&changed, &header));
            assert_ne!(key, 0);
            let whole = Header { fragment: false, dont_fragment: true, ..header };
            assert_eq!(datagram_key(&packet, &whole), 0);
        }
    }
}
