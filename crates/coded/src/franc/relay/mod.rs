//! The helper's work for one direction.

mod knowing;
mod recoding;

use std::collections::BTreeMap;

use hopcast_code::field::Field;
use hopcast_code::rlnc::{Coding, Packet};

use super::bits::Bits;
use super::combination::vector_of;
use super::config::{Config, Links, Losses, Plan};
use super::estimate::{Estimate, Listener, extend};
use super::wire::{self, Ack, Enc, Known, MAX_LISTED, Report};
use knowing::Knowing;
use recoding::Recoding;

/// One direction: the packets heard, and those to be sent.
pub(super) struct Relay<F: Field> {
    config: Config,
    blocks: BTreeMap<u32, Block<F>>,
    spare: Vec<Stock<F>>,
    seed: u64,
    /// All blocks before this one are decoded.
    base: u32,
    listener: Listener,
    sequence: u64,
    last_ack: Option<u32>,
    e2: Estimate,
    e3: Estimate,
    e1: Estimate,
    /// Number of the encoder's packets, as far as heard.
    heard: u64,
    vector: Vec<u8>,
    packed: Vec<u8>,
    symbol: Vec<u8>,
}

/// One block at the helper.
struct Block<F: Field> {
    added: u8,
    /// Whether the encoder's input is behind.
    behind: bool,
    decoder: Known,
    /// The decoder has reported all of the encoder's packets, and all of ours, before these.
    told: (u64, u64),
    /// Value of `heard` at the last report to the encoder, as if that had arrived.
    reported: u64,
    stock: Stock<F>,
}

/// The packets heard of a block.
enum Stock<F: Field> {
    Recoding(Recoding<F>),
    Knowing(Knowing<F>),
}

impl<F: Field> Relay<F> {
    pub(super) fn new(config: Config, seed: u64) -> Self {
        let shape = config.shape();
        Self {
            blocks: BTreeMap::new(),
            spare: Vec::new(),
            seed,
            base: 0,
            listener: Listener::default(),
            sequence: 0,
            last_ack: None,
            e1: Estimate::default(),
            e2: Estimate::default(),
            e3: Estimate::default(),
            heard: 0,
            vector: vec![0; shape.symbols()],
            packed: vec![0; config.vector_len()],
            symbol: vec![0; shape.symbol_len()],
            config,
        }
    }

    pub(super) fn restart(&mut self) {
        while let Some((_, block)) = self.blocks.pop_first() {
            self.spare.push(block.stock);
        }
        (self.base, self.sequence, self.heard, self.last_ack) = (0, 0, 0, None);
        self.listener = Listener::default();
        for estimate in [&mut self.e1, &mut self.e2, &mut self.e3] {
            estimate.restart();
        }
    }

    /// Takes an encoder's packet; whether it was news.
    pub(super) fn hear(&mut self, enc: &Enc<'_>) -> bool {
        if !self.listener.begun() {
            self.heard = u64::from(enc.sequence);
        }
        self.listener.packet(enc.sequence);
        self.e1.update(self.listener.heard());
        let sequence = extend(enc.sequence, self.heard);
        self.heard = self.heard.max(sequence + 1);
        let newest = self.blocks.last_key_value().map_or(enc.block, |(&newest, _)| newest.max(enc.block));
        let window = u32::from(self.config.window);
        // Too old, or further ahead than the window could have moved.
        if enc.block < self.base || newest - enc.block >= window {
            return false;
        }
        while let Some(first) = self.blocks.first_entry().filter(|first| newest - *first.key() >= window) {
            self.spare.push(first.remove().stock);
        }
        let (config, spare, seed) = (&self.config, &mut self.spare, &mut self.seed);
        let block = self.blocks.entry(enc.block).or_insert_with(|| {
            *seed = seed.wrapping_add(1);
            let fresh = || match config.plan {
                Plan::Budget { .. } => Stock::Recoding(Recoding::new(config.shape(), *seed)),
                Plan::Deficit => Stock::Knowing(Knowing::new(config.shape())),
            };
            Block::new(enc.block, spare.pop().unwrap_or_else(fresh))
        });
        block.added = block.added.max(enc.added);
        block.behind = enc.behind;
        self.symbol.fill(0);
        self.symbol[..enc.symbol.len()].copy_from_slice(enc.symbol);
        vector_of::<F>(enc, &mut self.vector);
        let coding = match enc.coding {
            wire::Coding::Symbol(index) => Coding::Symbol(usize::from(index)),
            wire::Coding::Sum(_) | wire::Coding::Vector(_) => Coding::Vector(&self.vector),
        };
        let packet = Packet { generation: enc.block, coding, payload: &self.symbol };
        match &mut block.stock {
            Stock::Knowing(knowing) => knowing.hear(&packet, sequence),
            Stock::Recoding(recoding) => {
                let innovative = recoding.hear(&packet);
                if innovative {
                    recoding.grant(&self.config, losses(&self.config, &self.e1, &self.e2, &self.e3));
                }
                innovative
            }
        }
    }

    /// Takes the decoder's acknowledgement.
    pub(super) fn acknowledge(&mut self, ack: &Ack) {
        if self.last_ack.is_some_and(|last| ack.number.wrapping_sub(last).wrapping_sub(1) >= 1 << 31) {
            return;
        }
        self.last_ack = Some(ack.number);
        self.e3.update(ack.heard);
        self.e2.update(ack.helper);
        let told =
            (extend(ack.heard.next, self.heard), extend(ack.helper.next, self.sequence).min(self.sequence));
        self.base = self.base.max(ack.base);
        while let Some(first) = self.blocks.first_entry().filter(|first| *first.key() < self.base) {
            self.spare.push(first.remove().stock);
        }
        // What the window cannot have reached was never the encoder's.
        let end = self.base.saturating_add(2 * u32::from(self.config.window));
        while let Some(last) = self.blocks.last_entry().filter(|last| *last.key() >= end) {
            self.spare.push(last.remove().stock);
        }
        for (&number, block) in &mut self.blocks {
            let known = match ack.blocks.get((number.saturating_sub(ack.base)) as usize) {
                Some(known) => *known,
                None if ack.blocks.len() < MAX_LISTED => Known::default(),
                None => break,
            };
            block.decoder.symbols = block.decoder.symbols.union(known.symbols);
            block.decoder.rank = block.decoder.rank.max(known.rank);
            block.told = (block.told.0.max(told.0), block.told.1.max(told.1));
        }
    }

    /// The next packet for the decoder, if it needs one.
    pub(super) fn next(&mut self) -> Option<Enc<'_>> {
        let losses = losses(&self.config, &self.e1, &self.e2, &self.e3);
        let (block, sequence) = (self.config.block, self.sequence);
        let (number, index) = match self.config.plan {
            // A new block ends the one before.
            Plan::Budget { .. } => {
                let (&number, Block { stock, decoder, .. }) = self.blocks.iter_mut().next_back()?;
                let Stock::Recoding(recoding) = stock else { return None };
                if decoder.rank >= block || !recoding.next(decoder, &mut self.vector, &mut self.symbol) {
                    return None;
                }
                (number, None)
            }
            Plan::Deficit => {
                let sending = |(&number, block): (&u32, &mut Block<F>)| {
                    let Stock::Knowing(knowing) = &mut block.stock else { return None };
                    let index = knowing.next(block.added, &block.decoder, block.told, losses)?;
                    knowing.send(index, sequence, &mut self.symbol).then_some((number, Some(index)))
                };
                self.blocks.iter_mut().find_map(sending)?
            }
        };
        self.sequence += 1;
        let report = self.report(number);
        let Block { added, behind, .. } = *self.blocks.get(&number)?;
        let coding = match index {
            Some(index) => wire::Coding::Symbol(index),
            None => {
                hopcast_code::rlnc::pack::<F>(&self.vector, &mut self.packed);
                wire::Coding::Vector(&self.packed)
            }
        };
        let sequence = sequence as u16;
        let symbol = &self.symbol;
        Some(Enc { block: number, sequence, added, coding, behind, ack: None, report, symbol })
    }

    /// The feedback to the encoder: of the oldest block that has symbols which neither the decoder nor this helper
    /// has, if the encoder may not know yet; or of block `number`.
    fn report(&mut self, number: u32) -> Option<Report> {
        let orphaned = |(&number, block): (&u32, &mut Block<F>)| {
            let known = block.stock.symbols().union(block.decoder.symbols);
            let news = block.reported < block.told.0 && known.count() < u32::from(block.added);
            news.then_some(number)
        };
        let number = self.blocks.iter_mut().find_map(orphaned).unwrap_or(number);
        let block = self.blocks.get_mut(&number)?;
        block.reported = self.heard;
        let symbols = block.stock.symbols().union(block.decoder.symbols);
        let known = Known { rank: symbols.count() as u8, symbols };
        Some(Report { heard: self.listener.heard(), told: block.told.0 as u16, block: number, known })
    }
}

impl<F: Field> Block<F> {
    fn new(number: u32, mut stock: Stock<F>) -> Self {
        match &mut stock {
            Stock::Recoding(recoding) => recoding.start(number),
            Stock::Knowing(knowing) => knowing.start(number),
        }
        Self { added: 0, behind: false, decoder: Known::default(), told: (0, 0), reported: 0, stock }
    }
}

impl<F: Field> Stock<F> {
    /// The symbols that are here, as far as that is known.
    fn symbols(&mut self) -> Bits {
        match self {
            Self::Recoding(_) => Bits::default(),
            Self::Knowing(knowing) => knowing.symbols(),
        }
    }
}

fn losses(config: &Config, e1: &Estimate, e2: &Estimate, e3: &Estimate) -> Losses {
    match config.links {
        Links::Given(losses) => losses,
        Links::Measured => Losses { e1: e1.loss(), e2: e2.loss(), e3: e3.loss() },
    }
}

#[cfg(test)]
mod tests {
    use hopcast_code::field::Gf256;

    use super::super::wire::Heard;
    use super::*;

    fn relay() -> Relay<Gf256> {
        Relay::new(Config::default().with_helper(), 1)
    }

    /// The encoder's packet of this number, with a symbol of a block.
    fn enc(sequence: u16, block: u32, index: u8) -> Enc<'static> {
        let coding = wire::Coding::Symbol(index);
        Enc {
            block,
            sequence,
            added: index + 1,
            coding,
            behind: false,
            ack: None,
            report: None,
            symbol: b"s",
        }
    }

    #[test]
    fn the_encoders_packets_are_counted_on_from_wherever_they_are_first_heard() {
        for (sequences, heard) in [
            (&[0][..], 1),
            (&[0, 1, 3, 2], 4),
            (&[60_000, 60_001], 60_002),
            (&[65_535, 0, 1], 65_538),
            (&[65_534, 65_535, 2, 65_535], 65_539),
        ] {
            let mut relay = relay();
            for (index, &sequence) in (0..).zip(sequences) {
                relay.hear(&enc(sequence, 0, index));
            }
            assert_eq!(relay.heard, heard, "{sequences:?}");
        }
    }

    #[test]
    fn the_encoder_is_told_once_of_a_block_that_lacks_something_here_and_there() {
        let mut relay = relay();
        // The second symbol of block 0 is lost.
        for (sequence, block, index) in [(0, 0, 0), (2, 0, 2), (3, 1, 0)] {
            assert!(relay.hear(&enc(sequence, block, index)));
        }
        let reported = |relay: &mut Relay<_>| relay.report(1).map(|report| (report.block, report.known.rank));
        assert_eq!(reported(&mut relay), Some((1, 1)), "the decoder may have it");
        let heard = Heard { next: 4, received: 1 };
        relay.acknowledge(&Ack { number: 1, heard, blocks: vec![Known::default(); 2], ..Ack::default() });
        assert_eq!(reported(&mut relay), Some((0, 2)), "it has told of all packets, and has not");
        assert_eq!(reported(&mut relay), Some((1, 1)), "the encoder knows");
    }
}
