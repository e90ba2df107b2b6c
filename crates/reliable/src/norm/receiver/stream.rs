//! A stream on its way up: symbols in order, and the bytes or messages in them.

use super::super::config::Framing;
use crate::norm::wire::StreamHeader;

/// The place up to which a stream was handed up.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    framing: Framing,
    /// The next symbol to be handed up.
    pub(super) block: u32,
    pub(super) symbol: u16,
    /// Place in the stream of the next byte; none where the stream is joined, or after a gap.
    offset: Option<u32>,
    /// Whether the stream is messages, once that is known.
    messages: Option<bool>,
    /// Bytes of a message that is not whole.
    partial: Vec<u8>,
    pub(super) ended: bool,
}

/// The contents of a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Bytes(Vec<u8>),
    Message(Vec<u8>),
    End,
    /// Something of the stream is left out here.
    Gap,
}

/// Bytes before each message: its length.
const LENGTH: usize = 2;

impl Stream {
    /// A stream from a block on.
    pub(super) fn new(framing: Framing, block: u32) -> Self {
        Self { framing, block, symbol: 0, offset: None, messages: None, partial: Vec::new(), ended: false }
    }

    /// Goes on at a later block. True if that leaves something out.
    pub(super) fn skip_to(&mut self, block: u32) -> bool {
        if block <= self.block {
            return false;
        }
        (self.block, self.symbol, self.offset) = (block, 0, None);
        self.partial.clear();
        true
    }

    /// Whether it is known to be messages, so that it can go on after any symbol.
    pub(super) fn is_messages(&self) -> bool {
        self.messages == Some(true)
    }

    /// Leaves out the next symbol, of blocks of `per_block`.
    pub(super) fn skip_symbol(&mut self, per_block: u16) {
        self.advance(per_block);
        self.offset = None;
        self.partial.clear();
    }

    fn advance(&mut self, per_block: u16) {
        self.symbol += 1;
        if self.symbol >= per_block {
            (self.block, self.symbol) = (self.block.wrapping_add(1), 0);
        }
    }

    /// Takes the next symbol, of blocks of `per_block`; what it brings is handed to `up`. False if it is not what the
    /// stream goes on with.
    pub(super) fn take(&mut self, symbol: &[u8], per_block: u16, up: &mut dyn FnMut(Piece)) -> bool {
        self.advance(per_block);
        if self.ended {
            return true;
        }
        let Ok((header, bytes)) = StreamHeader::read(symbol) else { return false };
        if header.length == 0 {
            if header.message_start == StreamHeader::END {
                self.ended = true;
                up(Piece::End);
            }
            return true;
        }
        let start = usize::from(header.message_start);
        let bytes = match self.offset {
            Some(offset) if offset == header.offset => bytes,
            Some(_) => return false,
            None => {
                let messages = self.framing == Framing::Detect && start > 0;
                let messages = *self.messages.get_or_insert(messages);
                // Of a message whose beginning is missing nothing is handed up.
                let Some(bytes) = bytes.get(if messages { start.wrapping_sub(1) } else { 0 }..) else {
                    return true;
                };
                bytes
            }
        };
        self.offset = Some(header.offset.wrapping_add(header.length.into()));
        if self.messages != Some(true) {
            up(Piece::Bytes(bytes.to_vec()));
            return true;
        }
        self.partial.extend_from_slice(bytes);
        let mut rest = &self.partial[..];
        while let Some((&length, after)) = rest.split_first_chunk::<LENGTH>() {
            let length = usize::from(u16::from_be_bytes(length));
            let Some((message, next)) = after.split_at_checked(length) else { break };
            up(Piece::Message(message.to_vec()));
            rest = next;
        }
        let used = self.partial.len() - rest.len();
        self.partial.drain(..used);
        true
    }
}

/// The prefix of a message of `length` bytes in a stream.
pub(in crate::norm) fn length_prefix(length: u16) -> [u8; LENGTH] {
    length.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(offset: u32, message_start: u16, bytes: &[u8]) -> Vec<u8> {
        let mut symbol = vec![0; StreamHeader::LEN];
        StreamHeader { length: bytes.len() as u16, message_start, offset }.write(&mut symbol);
        symbol.extend_from_slice(bytes);
        symbol
    }

    fn run(stream: &mut Stream, symbols: &[Vec<u8>]) -> Vec<Piece> {
        let mut found = Vec::new();
        for symbol in symbols {
            assert!(stream.take(symbol, 4, &mut |piece| found.push(piece)));
        }
        found
    }

    #[test]
    fn messages_span_symbols() {
        let mut stream = Stream::new(Framing::Detect, 0);
        let found = run(
            &mut stream,
            &[symbol(0, 1, &[0, 1, 7, 0, 3, 1]), symbol(6, 3, &[2, 3, 0, 0]), symbol(10, 0, &[])],
        );
        assert_eq!(
            found,
            [Piece::Message(vec![7]), Piece::Message(vec![1, 2, 3]), Piece::Message(vec![]), Piece::End]
        );
        assert!(stream.ended);
    }

    #[test]
    fn after_a_gap_it_goes_on_with_the_next_whole_message() {
        let mut stream = Stream::new(Framing::Detect, 0);
        run(&mut stream, &[symbol(0, 1, &[0, 9, 1])]);
        assert!(stream.skip_to(5) && !stream.skip_to(5));
        let found = run(&mut stream, &[symbol(900, 0, &[4, 4]), symbol(902, 2, &[4, 0, 1, 8])]);
        assert_eq!(found, [Piece::Message(vec![8])]);
    }

    #[test]
    fn bytes_without_marks_are_bytes_and_a_wrong_place_is_refused() {
        let mut stream = Stream::new(Framing::Detect, 3);
        assert_eq!(run(&mut stream, &[symbol(u32::MAX, 0, &[1, 2])]), [Piece::Bytes(vec![1, 2])]);
        assert!(!stream.take(&symbol(7, 0, &[3]), 4, &mut |_| panic!()));
        assert_eq!(run(&mut stream, &[symbol(1, 0, &[3])]), [Piece::Bytes(vec![3])]);
        assert_eq!((stream.block, stream.symbol), (3, 3));
        assert!(!stream.take(&[0], 4, &mut |_| panic!()), "it is shorter than its header");
        assert_eq!((stream.block, stream.symbol), (4, 0));
    }
}
