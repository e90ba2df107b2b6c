//! A stream on its way out: bytes into symbols, and the blocks that are held for repairs.

use std::collections::VecDeque;

use crate::norm::wire::StreamHeader;

/// The symbols of a stream. Those that wait come first in `waiting`, then in the block that is being sent.
#[derive(Clone, Debug)]
pub(in crate::norm) struct Stream {
    /// Bytes of a symbol, its header included.
    symbol: usize,
    /// Source symbols of a block.
    per_block: u16,
    /// Number of the first block held.
    first: u32,
    /// Blocks sent, or being sent: their symbols.
    blocks: VecDeque<Vec<Vec<u8>>>,
    /// Whole symbols that wait.
    waiting: VecDeque<Vec<u8>>,
    /// The symbol being filled.
    open: Vec<u8>,
    /// Place in the stream of the next byte.
    offset: u64,
    /// Bytes that were sent once.
    sent: u64,
    ended: bool,
}

impl Stream {
    /// An empty stream with symbols of `segment` bytes beside their header.
    pub(super) fn new(segment: u16, per_block: u16) -> Self {
        Self {
            symbol: StreamHeader::LEN + usize::from(segment),
            per_block,
            first: 0,
            blocks: VecDeque::new(),
            waiting: VecDeque::new(),
            open: Vec::new(),
            offset: 0,
            sent: 0,
            ended: false,
        }
    }

    /// Appends bytes; `message` if a message begins with them.
    pub(in crate::norm) fn write(&mut self, mut bytes: &[u8], message: bool) {
        let mut message = message;
        while !bytes.is_empty() && !self.ended {
            if self.open.is_empty() {
                let header = StreamHeader { length: 0, message_start: 0, offset: self.offset as u32 };
                self.open.reserve_exact(self.symbol);
                self.open.resize(StreamHeader::LEN, 0);
                header.write(&mut self.open);
            }
            let place = self.open.len() - StreamHeader::LEN;
            let taken = bytes.len().min(self.symbol - self.open.len());
            self.open.extend_from_slice(&bytes[..taken]);
            let marked = self.open[2..4] != [0, 0];
            if std::mem::take(&mut message) && !marked {
                self.open[2..4].copy_from_slice(&(place as u16 + 1).to_be_bytes());
            }
            self.open[..2].copy_from_slice(&((place + taken) as u16).to_be_bytes());
            self.offset += taken as u64;
            bytes = &bytes[taken..];
            if self.open.len() == self.symbol {
                self.waiting.push_back(std::mem::take(&mut self.open));
            }
        }
    }

    /// Ends the stream. The end is a symbol, and is repeated to the end of its block: only a whole block has parity.
    pub(super) fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.flush();
        let sent = self.blocks.back().map_or(0, |block| block.len() % usize::from(self.per_block));
        let used = (sent + self.waiting.len()) % usize::from(self.per_block);
        let mut end = vec![0; StreamHeader::LEN];
        let header = StreamHeader { length: 0, message_start: StreamHeader::END, offset: self.offset as u32 };
        header.write(&mut end);
        (used..self.per_block.into()).for_each(|_| self.waiting.push_back(end.clone()));
    }

    /// Lets the symbol being filled go as it is.
    pub(super) fn flush(&mut self) {
        if !self.open.is_empty() {
            self.waiting.push_back(std::mem::take(&mut self.open));
        }
    }

    /// Whether it has ended, all of it has been sent, and nothing follows.
    pub(super) fn is_finished(&self) -> bool {
        self.ended && self.waiting.is_empty()
    }

    /// Bytes that were sent once.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes that wait to be sent.
    pub(super) fn waiting(&self) -> u64 {
        (self.waiting.len() * self.symbol + self.open.len()) as u64
    }

    /// Whether a symbol is ready, or with `partial` would be if the one being filled were let go.
    pub(super) fn is_ready(&self, partial: bool) -> bool {
        !self.waiting.is_empty() || partial && !self.open.is_empty()
    }

    /// Whether the next symbol begins a block.
    pub(super) fn begins_block(&self) -> bool {
        self.blocks.back().is_none_or(|block| block.len() == usize::from(self.per_block))
    }

    /// Moves the next symbol into its block: its block and place.
    pub(super) fn advance(&mut self) -> Option<(u32, u16)> {
        let symbol = self.waiting.pop_front()?;
        self.sent += StreamHeader::read(&symbol).map_or(0, |(header, _)| header.length.into());
        if self.begins_block() {
            self.blocks.push_back(Vec::with_capacity(self.per_block.into()));
        }
        let block = self.blocks.back_mut()?;
        block.push(symbol);
        let place = block.len() as u16 - 1;
        Some((self.first + self.blocks.len() as u32 - 1, place))
    }

    /// Source symbols of a block so far; none if it is not held.
    pub(super) fn symbols(&self, block: u32) -> &[Vec<u8>] {
        let index = block.checked_sub(self.first).map(|index| index as usize);
        index.and_then(|index| self.blocks.get(index)).map_or(&[], Vec::as_slice)
    }

    /// Number of the first block held.
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// Blocks held.
    pub(super) fn held(&self) -> usize {
        self.blocks.len()
    }

    /// Drops the first block.
    pub(super) fn drop_first(&mut self) {
        if self.blocks.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Source symbols of a whole block.
    pub(super) fn per_block(&self) -> u16 {
        self.per_block
    }

    /// Bytes of the longest symbol.
    pub(super) fn symbol(&self) -> usize {
        self.symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_fill_symbols_that_say_where_they_are_and_where_messages_begin() {
        let mut stream = Stream::new(16, 4);
        stream.write(&[1; 10], true);
        stream.write(&[2; 10], true);
        stream.write(&[3; 3], true);
        assert!(stream.is_ready(false));
        stream.flush();
        let mut found = Vec::new();
        while let Some((block, place)) = stream.advance() {
            let (header, bytes) = StreamHeader::read(&stream.symbols(block)[usize::from(place)]).unwrap();
            found.push((place, header.offset, header.message_start, bytes.len()));
        }
        assert_eq!(found, [(0, 0, 1, 16), (1, 16, 5, 7)]);
        assert_eq!(stream.sent(), 23);
    }

    #[test]
    fn the_end_fills_its_block() {
        let mut stream = Stream::new(16, 4);
        stream.write(&[1; 80], false);
        stream.end();
        assert_eq!(std::iter::from_fn(|| stream.advance()).count(), 8);
        assert!(stream.is_finished());
        assert_eq!(stream.symbols(1).len(), 4);
        assert_eq!(stream.symbols(1)[1].len(), StreamHeader::LEN);
        stream.drop_first();
        assert!(stream.symbols(0).is_empty());
        assert_eq!((stream.first(), stream.held()), (1, 1));
    }
}
