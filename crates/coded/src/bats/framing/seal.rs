//! The checksum of a symbol.
//!
//! Each symbol begins with 32 bits of SipHash-1-3 over its other bytes, the zeros at its end included. The hash's two keys
//! are the mark of the session and the symbol's number. So a symbol is not taken for another one, or for one of another
//! session, even if it was a header that was damaged and not the symbol. The sink checks it after decoding: relays combine
//! it like any other bytes, and what was damaged in a relay's memory is found too.
//!
//! A hash and not a CRC: what this code makes of damaged packets are sums of symbols, and the CRC of a sum of symbols is
//! the sum of their CRCs. Of damaged symbols, one in 2^32 is not noticed.
//!
//! The mark is sent in clear. This finds damage, but no forger, until there is encryption.

use siphasher::sip::SipHasher13;

/// The length of the checksum, in bytes.
pub(in super::super) const SEAL: usize = 4;

/// Writes the checksum to the front of a symbol, which must be as long as it.
pub(super) fn seal(session: u32, number: u64, symbol: &mut [u8]) {
    let (seal, body) = symbol.split_at_mut(SEAL);
    seal.copy_from_slice(&sum(session, number, body).to_be_bytes());
}

/// What a symbol holds behind its checksum; `None` if that is not the symbol's.
pub(super) fn open(session: u32, number: u64, symbol: &[u8]) -> Option<&[u8]> {
    let (seal, body) = symbol.split_first_chunk::<SEAL>()?;
    (u32::from_be_bytes(*seal) == sum(session, number, body)).then_some(body)
}

fn sum(session: u32, number: u64, body: &[u8]) -> u32 {
    SipHasher13::new_with_keys(session.into(), number).hash(body) as u32
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
            *at.get_mut(&mut symbol) ^= flip;
            prop_assert_eq!(open(session, number, &symbol), None);
        }
    }
}
