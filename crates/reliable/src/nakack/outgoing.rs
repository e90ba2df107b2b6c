//! FRAG2, down: units of the application that wait to be sent, cut into messages that fit a packet.

use std::collections::VecDeque;
use std::sync::Arc;

use super::wire::Flags;

/// A unit of the application.
#[derive(Clone, Debug)]
struct Unit {
    /// The length of the name and the name, if there is one; and the bytes.
    bytes: Arc<[u8]>,
    kind: u8,
}

/// Units that wait, in their order, the first of which may be sent in part.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    units: VecDeque<Unit>,
    /// Bytes of the first unit that were sent in this view.
    sent: usize,
    /// Bytes that wait, with [`UNIT`] for each unit.
    bytes: u64,
}

/// Bytes that wait to be sent; more are refused. One unit is always taken, whatever its size. Chosen: a few of the
/// longest messages of an application that is not granted them.
const MAX_BYTES: u64 = 64 << 20;
/// Bytes that each unit counts beside its own, so that empty ones are bounded too.
const UNIT: u64 = 64;

impl Outgoing {
    /// Takes a datagram. False if too much waits.
    pub(super) fn datagram(&mut self, payload: &[u8]) -> bool {
        self.take(Unit { bytes: Arc::from(payload), kind: 0 })
    }

    /// Takes a message, with its name if it has one. False if too much waits, or its name is too long.
    pub(super) fn message(&mut self, payload: &[u8], name: Option<&[u8]>) -> bool {
        let Some(name) = name else {
            return self.take(Unit { bytes: Arc::from(payload), kind: Flags::MESSAGE });
        };
        let Ok(len) = u16::try_from(name.len()) else { return false };
        let bytes = [&len.to_be_bytes(), name, payload].concat();
        self.take(Unit { bytes: Arc::from(bytes), kind: Flags::MESSAGE | Flags::NAMED })
    }

    fn take(&mut self, unit: Unit) -> bool {
        let cost = unit.bytes.len() as u64 + UNIT;
        if !self.units.is_empty() && self.bytes + cost > MAX_BYTES {
            return false;
        }
        self.bytes += cost;
        self.units.push_back(unit);
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Bytes that wait.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Length of the next message, of at most `fragment` bytes.
    pub(super) fn next_len(&self, fragment: usize) -> Option<usize> {
        let first = self.units.front()?;
        Some((first.bytes.len() - self.sent).min(fragment))
    }

    /// The next message, of at most `fragment` bytes.
    pub(super) fn next(&mut self, fragment: usize) -> Option<(Flags, Arc<[u8]>)> {
        let first = self.units.front()?;
        let end = (self.sent + fragment).min(first.bytes.len());
        let (is_first, is_last) = (self.sent == 0, end == first.bytes.len());
        let piece =
            if is_first && is_last { first.bytes.clone() } else { Arc::from(&first.bytes[self.sent..end]) };
        let flags = first.kind | (u8::from(is_first) * Flags::FIRST) | (u8::from(is_last) * Flags::LAST);
        self.sent = end;
        if is_last {
            self.bytes -= first.bytes.len() as u64 + UNIT;
            self.units.pop_front();
            self.sent = 0;
        }
        Some((Flags(flags), piece))
    }

    /// Another view has begun: what was sent in part is sent again from its beginning, as new members lack that.
    pub(super) fn restart(&mut self) {
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_cut_and_begins_again_in_another_view() {
        let mut outgoing = Outgoing::default();
        assert!(outgoing.message(b"abcdef", Some(b"n")) && outgoing.datagram(b""));
        let next = |outgoing: &mut Outgoing| outgoing.next(4).map(|(flags, bytes)| (flags.0, bytes.to_vec()));
        let kind = Flags::MESSAGE | Flags::NAMED;
        assert_eq!(next(&mut outgoing), Some((kind | Flags::FIRST, vec![0, 1, b'n', b'a'])));
        outgoing.restart();
        assert_eq!(next(&mut outgoing), Some((kind | Flags::FIRST, vec![0, 1, b'n', b'a'])));
        assert_eq!(next(&mut outgoing), Some((kind, b"bcde".to_vec())));
        assert_eq!(next(&mut outgoing), Some((kind | Flags::LAST, b"f".to_vec())));
        assert_eq!(next(&mut outgoing), Some((Flags::FIRST | Flags::LAST, vec![])));
        assert_eq!((next(&mut outgoing), outgoing.bytes()), (None, 0));
    }

    #[test]
    fn what_waits_is_bounded_and_one_unit_always_fits() {
        let mut outgoing = Outgoing::default();
        assert!(outgoing.datagram(&vec![0; MAX_BYTES as usize + 1]));
        assert!(!outgoing.datagram(b""));
        assert!(!outgoing.message(b"", Some(&vec![0; 1 << 16])), "a name has a length of two bytes");
    }
}
