//! The Internet checksum (RFC 1071): the ones' complement of the ones' complement sum of 16-bit words.

use std::net::IpAddr;

/// The checksum of `bytes`: what belongs into the field if it holds zero, and zero if it holds what belongs there.
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::default().with(bytes).checksum()
}

/// The checksum of a transport `segment` and its pseudo-header (RFC 768, RFC 8200 section 8.1), for TCP, UDP and
/// ICMPv6. Like [`checksum`], it writes and verifies.
///
/// ```
/// # use hopcast_wire::checksum::transport;
/// let (source, destination) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
/// let mut segment = *b"\x04\xd2\x16\x2e\x00\x0a\x00\x00hi";
/// let sum = transport(source, destination, 17, &segment);
/// segment[6..8].copy_from_slice(&sum.to_be_bytes());
/// assert_eq!(transport(source, destination, 17, &segment), 0);
/// ```
pub fn transport(source: IpAddr, destination: IpAddr, protocol: u8, segment: &[u8]) -> u16 {
    pseudo_header(source, destination, protocol, segment.len()).with(segment).checksum()
}

/// The sum over the pseudo-header of a segment of `len` bytes. Both versions' pseudo-headers hold the same words.
#[inline]
pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, len: usize) -> Sum {
    let sum = match source {
        IpAddr::V4(source) => Sum::default().with(&source.octets()),
        IpAddr::V6(source) => Sum::default().with(&source.octets()),
    };
    let sum = match destination {
        IpAddr::V4(destination) => sum.with(&destination.octets()),
        IpAddr::V6(destination) => sum.with(&destination.octets()),
    };
    sum.with(&(len as u32).to_be_bytes()).with(&u16::from(protocol).to_be_bytes())
}

/// The checksum after one 16-bit word that it covers has changed from `old` to `new` (RFC 1624, equation 3).
#[inline]
pub fn adjust(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// A checksum in the making.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum with `bytes` added to it. An odd number of bytes is filled up with a zero, so that only the last part of
    /// the bytes summed may be odd.
    #[inline]
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        // Words are added as they lie in memory, four at a time: neither the order of bytes nor the length of the
        // additions matters (RFC 1071, section 2 B and C). A block is one chain of additions with carry.
        let (blocks, rest) = bytes.as_chunks::<64>();
        let mut sum = self.0;
        for block in blocks {
            let mut carry = false;
            for word in block.as_chunks::<8>().0 {
                (sum, carry) = sum.carrying_add(u64::from_ne_bytes(*word), carry);
            }
            // No overflow: a sum of all ones has no carry.
            sum += u64::from(carry);
        }
        let mut sum = Self(sum);
        let (words, mut rest) = rest.as_chunks::<8>();
        for word in words {
            sum = sum.plus(u64::from_ne_bytes(*word));
        }
        if let Some((word, behind)) = rest.split_first_chunk() {
            (sum, rest) = (sum.plus(u32::from_ne_bytes(*word).into()), behind);
        }
        if let Some((word, behind)) = rest.split_first_chunk() {
            (sum, rest) = (sum.plus(u16::from_ne_bytes(*word).into()), behind);
        }
        match rest {
            [last] => sum.plus(u16::from_ne_bytes([*last, 0]).into()),
            _ => sum,
        }
    }

    /// The ones' complement sum of 64 bits, in which a carry is added at the lower end.
    #[inline]
    const fn plus(self, words: u64) -> Self {
        let (sum, carry) = self.0.overflowing_add(words);
        Self(sum + carry as u64)
    }

    /// The checksum of what was added.
    #[inline]
    pub fn checksum(self) -> u16 {
        let (sum, carry) = (self.0 as u32).overflowing_add((self.0 >> 32) as u32);
        let sum = sum + u32::from(carry);
        let (sum, carry) = (sum as u16).overflowing_add((sum >> 16) as u16);
        !u16::from_be(sum + u16::from(carry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071_sums_as_printed() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    /// The most that there is to carry.
    #[test]
    fn no_carry_of_bytes_of_all_ones_is_lost() {
        for len in [2, 8, 64, 70, 128, 1500, 65_536] {
            let sum = Sum::default().with(&[0xff; 64]).with(&vec![0xff; len]);
            assert_eq!(sum.checksum(), 0, "{len}");
        }
    }

    fn naive(bytes: &[u8]) -> u16 {
        let sum = bytes.chunks(2).fold(0u64, |sum, word| {
            sum + u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]))
        });
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    proptest! {
        #[test]
        fn the_wide_sum_is_the_naive_sum(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(checksum(&bytes), naive(&bytes));
            let other = etherparse::checksum::Sum16BitWords::new().add_slice(&bytes).ones_complement().to_be();
            prop_assert_eq!(checksum(&bytes), other);
        }

        #[test]
        fn parts_sum_as_the_whole(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..100) {
            let at = (2 * at).min(bytes.len() & !1);
            let parts = Sum::default().with(&bytes[..at]).with(&bytes[at..]).checksum();
            prop_assert_eq!(parts, checksum(&bytes));
        }

        #[test]
        fn an_adjusted_checksum_is_the_one_computed_anew(mut words: [u8; 20], new: [u8; 2]) {
            // A header is never all zero, where the two zeros of ones' complement would differ.
            words[0] = 0x45;
            let (before, old) = (checksum(&words), [words[8], words[9]]);
            words[8..10].copy_from_slice(&new);
            let adjusted = adjust(before, u16::from_be_bytes(old), u16::from_be_bytes(new));
            prop_assert_eq!(adjusted, checksum(&words));
        }
    }
}
