//! The far end of a session: batches are decoded, and symbols delivered in order.

use hopcast_code::rlnc::{self, Coding, Decoder, Outcome, Packet};
use hopcast_core::{Duration, Instant};

use super::super::edge::Delivered;
use super::super::shape::Shape;
use super::super::span::Vector;
use super::store::Store;

/// The decoders of a session.
pub(super) struct Sink {
    shape: rlnc::Shape,
    decoders: Vec<Option<Decoder>>,
    spare: Vec<Decoder>,
    /// The next symbol to deliver.
    next: u64,
    /// Time at which a symbol, or one after it, was first heard of: how long it has been missing.
    heard: Vec<Instant>,
    /// The symbol up to which that is known.
    heard_to: u64,
    /// Until when what is known after the next symbol can wait for it.
    pub(super) held_until: Option<Instant>,
    /// A symbol with its zeros.
    padded: Vec<u8>,
    /// Symbols that were given up since anything was delivered.
    lost: u64,
}

impl Sink {
    /// A sink for what `store` keeps account of; `None` for a shape that no code has.
    pub(super) fn new(store: &Store) -> Option<Self> {
        let Shape { batch, symbol, .. } = store.shape();
        let mut decoders = Vec::new();
        decoders.resize_with(store.window() as usize, || None);
        Some(Self {
            shape: rlnc::Shape::new(batch.symbols(), usize::from(symbol)).ok()?,
            decoders,
            spare: Vec::new(),
            next: store.floor(),
            heard: vec![Instant::ZERO; (store.window() * store.shape().symbols()) as usize],
            heard_to: store.floor(),
            held_until: None,
            padded: vec![0; usize::from(symbol)],
            lost: 0,
        })
    }

    /// The next symbol to deliver.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    fn decoder(&mut self, number: u64) -> &mut Option<Decoder> {
        let at = number % self.decoders.len() as u64;
        &mut self.decoders[at as usize]
    }

    /// Takes a packet of a batch that is not complete, gives the batch's rank if it has risen.
    pub(super) fn push(
        &mut self,
        number: u64,
        index: Option<u8>,
        vector: &Vector,
        payload: &[u8],
    ) -> Option<u8> {
        let (shape, generation) = (self.shape, number as u32);
        let payload = if payload.len() == shape.symbol_len() {
            payload
        } else {
            self.padded.fill(0);
            self.padded[..payload.len()].copy_from_slice(payload);
            &self.padded
        };
        let at = number % self.decoders.len() as u64;
        let spare = &mut self.spare;
        let decoder = self.decoders[at as usize].get_or_insert_with(|| match spare.pop() {
            Some(mut decoder) => {
                decoder.start(generation);
                decoder
            }
            None => Decoder::new(shape, generation),
        });
        let coding = match index {
            Some(index) => Coding::Symbol(usize::from(index)),
            None => Coding::Vector(&vector[..shape.symbols()]),
        };
        let outcome = decoder.push(&Packet { generation, coding, payload });
        matches!(outcome, Ok(Outcome::Innovative)).then(|| decoder.rank() as u8)
    }

    /// Notes that something is known of the symbols up to `top`.
    pub(super) fn hear(&mut self, now: Instant, top: u64) {
        let len = self.heard.len() as u64;
        self.heard_to = self.heard_to.max(top.saturating_sub(len));
        while self.heard_to < top {
            self.heard[(self.heard_to % len) as usize] = now;
            self.heard_to += 1;
        }
    }

    /// Delivers the next symbols, as long as they are known.
    pub(super) fn deliver(&mut self, mut symbol: impl FnMut(&Delivered<'_>)) {
        let symbols = self.shape.symbols() as u64;
        loop {
            let (number, mut index) = (self.next / symbols, self.next % symbols);
            let at = number % self.decoders.len() as u64;
            let Some(decoder) = &mut self.decoders[at as usize] else { return };
            while decoder.poll().is_some() {}
            while let Some(bytes) = decoder.symbol(index as usize) {
                let missing = core::mem::take(&mut self.lost);
                symbol(&Delivered { number: number * symbols + index, missing, bytes });
                index += 1;
            }
            self.next = number * symbols + index;
            if index < symbols {
                return;
            }
            let decoder = self.decoder(number).take();
            self.spare.extend(decoder);
        }
    }

    /// Time at which the symbol that is missing is given up, if there is any: when it has been for `after`, or what is
    /// held would be late.
    pub(super) fn gives_up(&self, after: Duration) -> Option<Instant> {
        let heard = self.heard[(self.next % self.heard.len() as u64) as usize];
        (self.next < self.heard_to)
            .then(|| self.held_until.map_or(heard + after, |held| held.min(heard + after)))
    }

    /// The result of `of` for the first symbol, by its number, that is known after one that is missing and has any.
    pub(super) fn first_held<T>(&mut self, mut of: impl FnMut(u64, &[u8]) -> Option<T>) -> Option<T> {
        let symbols = self.shape.symbols() as u64;
        for number in self.next / symbols..self.heard_to.div_ceil(symbols) {
            let from = self.next.saturating_sub(number * symbols);
            let Some(decoder) = self.decoder(number) else { continue };
            while decoder.poll().is_some() {}
            let mut known =
                (from..symbols).filter_map(|index| Some((index, decoder.symbol(index as usize)?)));
            if let Some(found) = known.find_map(|(index, symbol)| of(number * symbols + index, symbol)) {
                return Some(found);
            }
        }
        None
    }

    /// Gives the next symbol up.
    pub(super) fn give_up(&mut self) {
        let symbols = self.shape.symbols() as u64;
        self.lost += 1;
        self.next += 1;
        if self.next.is_multiple_of(symbols) {
            let decoder = self.decoder(self.next / symbols - 1).take();
            self.spare.extend(decoder);
        }
    }

    /// Gives up all before a symbol.
    pub(super) fn skip_to(&mut self, symbol: u64) {
        let window = self.heard.len() as u64;
        if symbol > self.next + window {
            // Nothing is held of what is further ahead.
            self.spare.extend(self.decoders.iter_mut().filter_map(Option::take));
            self.lost += symbol - self.next;
            self.next = symbol;
        }
        while self.next < symbol {
            self.give_up();
        }
    }

    /// Number of batches that it holds packets of.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.decoders.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bats::Config;

    #[test]
    fn a_gap_of_any_length_is_skipped_at_once() {
        let store = Store::new(Shape::begun(&Config::default(), u16::MAX), 16, 5);
        let mut sink = Sink::new(&store).unwrap();
        sink.push(0, Some(5), &[0; 32], &[1]);
        sink.skip_to(1 << 60);
        assert_eq!((sink.next(), sink.held(), sink.lost), (1 << 60, 0, (1 << 60) - 5));
    }
}
