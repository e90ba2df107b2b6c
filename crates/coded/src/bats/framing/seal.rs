//! The checksum of a symbol.
//!
//! Each symbol begins with 32 bits of SipHash-1-3 over its other bytes, the zeros at its end included. The hash's two
//! keys are the mark of the session and the symbol's number. So a symbol is not taken for another one, or for one of
//! another session, even if it was a header that was damaged and not the symbol. The sink checks it after decoding:
//! relays combine it like any other bytes, and what was damaged in a relay's memory is found too.
//!
//! A hash and not a CRC: what this code makes of damaged packets are sums of symbols, and the CRC of a sum of symbols
//! is the sum of their CRCs. Of damaged symbols, one in 2^32 is not noticed.
//!
//! The mark is sent in clear. This finds damage, but no forger, until there is encryption.

use core::hash::Hasher as _;

use siphasher::sip::SipHasher13;

/// Length of the checksum, in bytes. Chosen: of damaged symbols one in 2^32 is not noticed; each byte more is one of
/// every symbol.
pub(in super::super) const SEAL: usize = 4;

/// Writes the checksum to the front of a symbol, which must be as long as it.
pub(super) fn seal(session: u32, number: u64, symbol: &mut [u8]) {
    let (seal, body) = symbol.split_at_mut(SEAL);
    seal.copy_from_slice(&sum(session, number, body, 0).to_be_bytes());
}

/// The content of a symbol behind its checksum; `None` if that is not the symbol's.
pub(super) fn open(session: u32, number: u64, symbol: &[u8]) -> Option<&[u8]> {
    let (seal, body) = symbol.split_first_chunk::<SEAL>()?;
    (u32::from_be_bytes(*seal) == sum(session, number, body, 0)).then_some(body)
}

/// Whether a symbol of `len` bytes, which may lack zeros at its end, has its checksum.
pub(super) fn is_intact(session: u32, number: u64, symbol: &[u8], len: usize) -> bool {
    let (Some((seal, body)), Some(zeros)) =
        (symbol.split_first_chunk::<SEAL>(), len.checked_sub(symbol.len()))
    else {
        return false;
    };
    u32::from_be_bytes(*seal) == sum(session, number, body, zeros)
}

/// The checksum of a body that is followed by this number of zeros.
fn sum(session: u32, number: u64, body: &[u8], mut zeros: usize) -> u32 {
    const ZEROS: [u8; 256] = [0; 256];
    let mut hasher = SipHasher13::new_with_keys(session.into(), number);
    hasher.write(body);
    while zeros > 0 {
        let some = zeros.min(ZEROS.len());
        hasher.write(&ZEROS[..some]);
        zeros -= some;
    }
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_symbol_that_was_changed_or_is_in_another_place_does_not_open(
            mut symbol in prop::collection::vec(any::<u8>(), 5..200),
            (session, number) in any::<(u32, u64)>(),
            (at, flip) in (any::<prop::sample::Index>(), 1..=u8::MAX),
        ) {
            seal(session, number, &mut symbol);
            prop_assert_eq!(open(session, number, &symbol), Some(&symbol[SEAL..]));
            prop_assert_eq!(open(session, number ^ 1, &symbol), None);
            prop_assert_eq!(open(session ^ 1, number, &symbol), None);
            let len = symbol.len();
            prop_assert!(is_intact(session, number, &symbol, len) && !is_intact(session, number ^ 1, &symbol, len));
            *at.get_mut(&mut symbol) ^= flip;
            prop_assert_eq!(open(session, number, &symbol), None);
            prop_assert!(!is_intact(session, number, &symbol, len));
        }
    }

    #[test]
    fn a_symbol_that_lacks_zeros_at_its_end_is_intact_if_it_is_known_how_long_it_was() {
        for len in [100, 255, 256, 257, 1439] {
            let mut symbol = vec![0; len];
            symbol[SEAL..50].fill(7);
            seal(1, 2, &mut symbol);
            for cut in [50, 51, len] {
                assert!(is_intact(1, 2, &symbol[..cut], len), "{cut} of {len}");
                assert!(!is_intact(1, 2, &symbol[..cut], len + 1), "{cut} of {len}");
            }
            assert!(!is_intact(1, 2, &symbol, len - 1) && !is_intact(1, 2, &symbol[..49], len));
            assert!(!is_intact(1, 2, &symbol[..3], len));
        }
    }
}
