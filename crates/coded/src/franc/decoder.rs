//! The decoder: takes packets of several blocks at a time, and gives out symbols in order.

use std::collections::VecDeque;

use hopcast_code::field::Field;
use hopcast_code::rlnc::{self, Coding, Outcome, Packet};

use super::bits::Bits;
use super::combination::vector_of;
use super::config::Config;
use super::estimate::Listener;
use super::input::Output;
use super::wire::{self, Ack, Enc, Known, MAX_LISTED};

/// The decoder of one direction.
#[derive(Debug)]
pub(super) struct Decoder<F: Field> {
    config: Config,
    /// The blocks from `base` on, as far as any packet of them has come.
    blocks: VecDeque<Block<F>>,
    spare: Vec<rlnc::Decoder<F>>,
    base: u32,
    output: Output,
    vector: Vec<u8>,
    symbol: Vec<u8>,
    /// Arrivals from the encoder, and from the helper.
    pub(super) direct: Listener,
    pub(super) helper: Listener,
    pub(super) counters: Counters,
}

#[derive(Debug)]
struct Block<F: Field> {
    code: rlnc::Decoder<F>,
    /// Number of symbols that it is known to have.
    added: u8,
    /// The next symbol to give out.
    next: usize,
}

/// The decoder's figures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) innovative: u64,
    pub(super) redundant: u64,
    pub(super) outside: u64,
}

/// Effect of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It was news.
    Innovative,
    /// It said nothing new.
    Redundant,
    /// It is of a block that cannot be at work.
    Outside,
}

impl<F: Field> Decoder<F> {
    pub(super) fn new(config: Config) -> Self {
        let shape = config.shape();
        Self {
            blocks: VecDeque::new(),
            spare: Vec::new(),
            base: 0,
            output: Output::default(),
            vector: vec![0; shape.symbols()],
            symbol: vec![0; shape.symbol_len()],
            direct: Listener::default(),
            helper: Listener::default(),
            counters: Counters::default(),
            config,
        }
    }

    /// Begins a new association.
    pub(super) fn restart(&mut self) {
        while let Some(block) = self.blocks.pop_front() {
            self.spare.push(block.code);
        }
        self.base = 0;
        self.output.restart();
        (self.direct, self.helper) = (Listener::default(), Listener::default());
    }

    /// Takes a packet; `deliver` gets each IP packet that is thereby complete.
    pub(super) fn push(&mut self, enc: &Enc<'_>, mut deliver: impl FnMut(&[u8])) -> Arrival {
        let listener = if enc.report.is_some() { &mut self.helper } else { &mut self.direct };
        listener.packet(enc.sequence);
        let ahead = enc.block.wrapping_sub(self.base);
        if ahead >= u32::from(self.config.window) {
            // A block that is done, or one that the encoder cannot have begun.
            let done = ahead > u32::MAX / 2;
            self.counters.redundant += u64::from(done);
            self.counters.outside += u64::from(!done);
            return if done { Arrival::Redundant } else { Arrival::Outside };
        }
        while self.blocks.len() <= ahead as usize {
            // A block begins when the one before it is full.
            self.blocks.iter_mut().for_each(|block| block.added = self.config.block);
            self.open();
        }
        let block = &mut self.blocks[ahead as usize];
        block.added = block.added.max(enc.added);
        self.symbol.fill(0);
        self.symbol[..enc.symbol.len()].copy_from_slice(enc.symbol);
        let coding = match enc.coding {
            wire::Coding::Symbol(index) => Coding::Symbol(usize::from(index)),
            wire::Coding::Sum(_) | wire::Coding::Vector(_) => {
                vector_of::<F>(enc, &mut self.vector);
                Coding::Vector(&self.vector)
            }
        };
        let packet = Packet { generation: enc.block, coding, payload: &self.symbol };
        if !matches!(block.code.push(&packet), Ok(Outcome::Innovative)) {
            self.counters.redundant += 1;
            return Arrival::Redundant;
        }
        self.counters.innovative += 1;
        while block.code.poll().is_some() {}
        self.give_out(&mut deliver);
        Arrival::Innovative
    }

    /// Whether a packet that the encoder is known to have sent is missing.
    pub(super) fn is_missing(&self) -> bool {
        self.blocks.iter().any(|block| block.code.rank() < usize::from(block.added))
    }

    /// The feedback to the encoder.
    pub(super) fn acknowledgement(&mut self, number: u32) -> Ack {
        let known = |block: &mut Block<F>| Known {
            rank: block.code.rank() as u8,
            symbols: Bits::of(block.code.decoded()),
        };
        Ack {
            number,
            heard: self.direct.heard(),
            helper: self.helper.heard(),
            base: self.base,
            blocks: self.blocks.iter_mut().take(MAX_LISTED).map(known).collect(),
        }
    }

    /// Whether anything has arrived yet.
    pub(super) fn has_begun(&self) -> bool {
        self.direct.begun() || self.helper.begun()
    }

    fn open(&mut self) {
        let number = self.base.wrapping_add(self.blocks.len() as u32);
        let shape = self.config.shape();
        let mut code = self.spare.pop().unwrap_or_else(|| rlnc::Decoder::new(shape, number));
        code.start(number);
        self.blocks.push_back(Block { code, added: 0, next: 0 });
    }

    /// Gives out the symbols that are next in order.
    fn give_out(&mut self, deliver: &mut impl FnMut(&[u8])) {
        while let Some(block) = self.blocks.front_mut() {
            while let Some(symbol) = block.code.symbol(block.next) {
                self.output.take(symbol, &mut *deliver);
                block.next += 1;
            }
            if block.next < usize::from(self.config.block) {
                return;
            }
            if let Some(block) = self.blocks.pop_front() {
                self.spare.push(block.code);
            }
            self.base = self.base.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_code::field::Gf256;

    use super::*;

    /// A packet with one symbol.
    fn enc(index: u8, symbol: &[u8]) -> Enc<'_> {
        let coding = wire::Coding::Symbol(index);
        Enc {
            block: 0,
            sequence: 5,
            added: index + 1,
            coding,
            behind: false,
            ack: None,
            report: None,
            symbol,
        }
    }

    #[test]
    fn a_new_association_begins_with_nothing_of_the_old_one() {
        let mut decoder = Decoder::<Gf256>::new(Config::default());
        // A symbol with the length and the first byte of a packet of five, ...
        assert_eq!(decoder.push(&enc(0, b"\0\x03\0\x05v"), |_| panic!("a packet")), Arrival::Innovative);
        assert!(decoder.has_begun() && !decoder.acknowledgement(1).blocks.is_empty());
        decoder.restart();
        assert_eq!((decoder.has_begun(), decoder.is_missing()), (false, false));
        assert_eq!(decoder.acknowledgement(1), Ack { number: 1, ..Ack::default() });
        // ... and, in the next association, one with a whole packet.
        let mut packets = Vec::new();
        let arrival = decoder.push(&enc(0, b"\0\x05\0\x03new"), |packet| packets.push(packet.to_vec()));
        assert_eq!((arrival, packets), (Arrival::Innovative, vec![b"new".to_vec()]));
    }
}
