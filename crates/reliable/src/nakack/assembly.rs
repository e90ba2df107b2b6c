//! FRAG2, up: the messages of one member put together to units of the application.

use std::sync::Arc;

use super::wire::Flags;

/// A unit of the application that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A datagram.
    Datagram(Vec<u8>),
    /// A message, with its name if it has one.
    Message(Option<Arc<[u8]>>, Vec<u8>),
    /// A piece of a stream.
    Piece(Piece),
}

/// A piece of a stream, which is a message by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Number of the stream.
    pub(super) number: u16,
    pub(super) bytes: Vec<u8>,
    /// Whether the stream begins with it, and ends with it.
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

/// A member's next unit, as far as its messages have come, and its kind.
#[derive(Debug)]
pub(super) struct Assembly {
    /// Maximum length of a unit; a longer one is given up.
    max: u64,
    part: Option<(u8, Vec<u8>)>,
    /// Whether the rest of a unit is skipped, up to the beginning of the next.
    skips: bool,
}

impl Assembly {
    pub(super) const fn new(max: u64) -> Self {
        Self { max, part: None, skips: false }
    }

    /// Takes the next message of the member: a unit, if that is complete with it, and whether one was given up.
    pub(super) fn take(&mut self, flags: Flags, payload: &[u8]) -> (Option<Unit>, bool) {
        if flags.has(Flags::STREAM) {
            let piece = piece(flags, payload);
            let is_given_up = piece.is_none();
            return (piece.map(Unit::Piece), is_given_up);
        }
        let kind = flags.0 & (Flags::MESSAGE | Flags::NAMED);
        let mut is_given_up = false;
        if flags.has(Flags::FIRST) {
            // One that is cut off by the next is its sender's fault.
            is_given_up = self.part.take().is_some();
            self.part = Some((kind, Vec::new()));
            self.skips = false;
        }
        match &mut self.part {
            Some((first, bytes)) if *first == kind && (bytes.len() + payload.len()) as u64 <= self.max => {
                bytes.extend_from_slice(payload);
            }
            _ => {
                is_given_up |= !self.skips;
                self.part = None;
                self.skips = true;
                return (None, is_given_up);
            }
        }
        if !flags.has(Flags::LAST) {
            return (None, is_given_up);
        }
        let unit = self.part.take().and_then(|(kind, bytes)| whole(kind, bytes));
        is_given_up |= unit.is_none();
        (unit, is_given_up)
    }

    /// Bytes that are held of a unit that is not whole.
    pub(super) fn bytes(&self) -> u64 {
        self.part.as_ref().map_or(0, |(_, bytes)| bytes.len() as u64)
    }
}

/// The piece of a stream in a message; none if the message is too short.
fn piece(flags: Flags, payload: &[u8]) -> Option<Piece> {
    let (number, bytes) = payload.split_first_chunk()?;
    let (is_first, is_last) = (flags.has(Flags::FIRST), flags.has(Flags::LAST));
    Some(Piece { number: u16::from_be_bytes(*number), bytes: bytes.to_vec(), is_first, is_last })
}

/// A unit out of all of its bytes; none if its name is longer than it is.
fn whole(kind: u8, bytes: Vec<u8>) -> Option<Unit> {
    if kind & Flags::MESSAGE == 0 {
        return Some(Unit::Datagram(bytes));
    }
    if kind & Flags::NAMED == 0 {
        return Some(Unit::Message(None, bytes));
    }
    let (len, rest) = bytes.split_first_chunk()?;
    let (name, bytes) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    Some(Unit::Message(Some(Arc::from(name)), bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u8 = Flags::FIRST;
    const LAST: u8 = Flags::LAST;

    #[test]
    fn messages_are_put_together_and_a_broken_unit_is_given_up_once() {
        let mut assembly = Assembly::new(100);
        assert_eq!(assembly.take(Flags(FIRST), b"ab"), (None, false));
        assert_eq!(assembly.bytes(), 2);
        assert_eq!(assembly.take(Flags(LAST), b"c"), (Some(Unit::Datagram(b"abc".to_vec())), false));
        // The rest of a unit that began before this member came, and a kind that changes on the way.
        assert_eq!(assembly.take(Flags(0), b"x"), (None, true));
        assert_eq!(assembly.take(Flags(LAST), b"x"), (None, false));
        assert_eq!(assembly.take(Flags(FIRST), b"a"), (None, false));
        assert_eq!(assembly.take(Flags(Flags::MESSAGE | LAST), b"b"), (None, true));
        let named = Flags(FIRST | LAST | Flags::MESSAGE | Flags::NAMED);
        assert_eq!(
            assembly.take(named, b"\0\x01nab"),
            (Some(Unit::Message(Some(Arc::from(&b"n"[..])), b"ab".to_vec())), false)
        );
        assert_eq!(assembly.take(named, b"\0\x09nab"), (None, true), "a name longer than the unit");
        assert_eq!(assembly.take(Flags(FIRST), &[0; 100]), (None, false));
        assert_eq!(assembly.take(Flags(0), b"x"), (None, true), "longer than a unit may be");
        assert_eq!(assembly.bytes(), 0);
    }

    #[test]
    fn a_piece_of_a_stream_is_whole_by_itself() {
        let mut assembly = Assembly::new(100);
        assert_eq!(assembly.take(Flags(Flags::STREAM), b"\0"), (None, true), "it has no number");
        let piece = Piece { number: 258, bytes: b"ab".to_vec(), is_first: false, is_last: true };
        assert_eq!(
            assembly.take(Flags(Flags::STREAM | LAST), b"\x01\x02ab"),
            (Some(Unit::Piece(piece)), false)
        );
    }
}
