//! One block at the encoder: its symbols, what was sent of it, and what others are known to have.

use hopcast_code::field::Field;
use hopcast_code::rlnc::{Encoder, Shape};

use crate::franc::bits::Bits;
use crate::franc::config::Losses;
use crate::franc::wire::Known;

/// A block that the decoder has not decoded, as far as is known.
#[derive(Debug)]
pub(super) struct Block<F: Field> {
    pub(super) number: u32,
    pub(super) code: Encoder<F>,
    /// For each symbol, the sequence number with which it was last sent as it is.
    symbols: Vec<u64>,
    /// The sequence numbers of combinations that the helper or the decoder has not reported yet.
    coded: Vec<u64>,
    decoder: Knowledge,
    /// The packets that the helper or the decoder has, by the helper's reports.
    helper: Knowledge,
    /// Sequence number before which the helper knew the packets that the decoder lacks.
    helper_told: u64,
    /// Number of acknowledgements in a row that showed no progress.
    pub(super) stale: u32,
    /// Number of packets that were sent.
    pub(super) sent: u32,
}

/// Packets of a block that a node is known to have.
#[derive(Clone, Copy, Debug, Default)]
struct Knowledge {
    known: Known,
    /// It has reported all packets before this sequence number.
    until: u64,
}

impl Knowledge {
    fn update(&mut self, known: Known, until: u64) {
        let symbols = self.known.symbols.union(known.symbols);
        let rank = self.known.rank.max(known.rank).max(symbols.count().min(255) as u8);
        *self = Self { known: Known { rank, symbols }, until: self.until.max(until) };
    }
}

/// The share of the work that the encoder leaves to a helper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook {
    pub(super) losses: Losses,
    /// Whether a helper hands the decoder what it has.
    pub(super) helped: bool,
}

/// Maximum number of combinations of one block whose fate is not known; older ones are taken for reported. Chosen: it
/// bounds memory; with fewer, combinations that are still on the air are forgotten.
const MAX_UNKNOWN: usize = 2_000;

impl<F: Field> Block<F> {
    pub(super) fn new(number: u32, code: Encoder<F>, shape: Shape) -> Self {
        Self {
            number,
            code,
            symbols: Vec::with_capacity(shape.symbols()),
            coded: Vec::new(),
            decoder: Knowledge::default(),
            helper: Knowledge::default(),
            helper_told: 0,
            stale: 0,
            sent: 0,
        }
    }

    /// Number of its symbols.
    pub(super) fn added(&self) -> u8 {
        self.code.count() as u8
    }

    /// A symbol is sent as it is.
    pub(super) fn sent_symbol(&mut self, index: u8, sequence: u64) {
        match self.symbols.get_mut(usize::from(index)) {
            Some(last) => *last = sequence,
            None => self.symbols.push(sequence),
        }
        self.sent += 1;
    }

    /// A combination is sent.
    pub(super) fn sent_coded(&mut self, sequence: u64) {
        if self.coded.len() == MAX_UNKNOWN {
            self.coded.remove(0);
        }
        self.coded.push(sequence);
        self.sent += 1;
    }

    /// The decoder has told what it knows from packets before `until`; whether it has more than before. Nobody knows
    /// more than there is.
    pub(super) fn decoder_knows(&mut self, known: Known, until: u64) -> bool {
        if known.rank > self.added() || known.symbols.beyond(self.added()) {
            return false;
        }
        let before = self.decoder.known.rank;
        self.decoder.update(known, until);
        let until = self.decoder.until;
        self.coded.retain(|&sequence| sequence >= until);
        let progress = self.decoder.known.rank > before || self.is_acknowledged();
        self.stale = if progress { 0 } else { self.stale + 1 };
        progress
    }

    /// The helper has told what it has from packets before `until`, or the decoder from those before `told`.
    pub(super) fn helper_knows(&mut self, known: Known, until: u64, told: u64) {
        if known.symbols.beyond(self.added()) {
            return;
        }
        self.helper.update(known, until);
        self.helper_told = self.helper_told.max(told.min(until));
    }

    /// Whether the decoder has all of it so far.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.decoder.known.rank >= self.added()
    }

    /// The first symbol that all have told they lack, if what they lack is not already made up for.
    pub(super) fn lacking(&self, outlook: &Outlook) -> Option<u8> {
        let told = |sequence| match outlook.helped {
            true => sequence < self.helper_told || sequence < self.decoder.until.min(self.helper.until),
            false => sequence < self.decoder.until,
        };
        let mut lacking =
            self.unknown(outlook.helped).filter(|&symbol| told(self.symbols[usize::from(symbol)]));
        let made_up_for = self.undecoded() + self.under_way(outlook);
        let count = lacking.clone().count() as f64;
        if count - made_up_for >= 0.5 { lacking.next() } else { None }
    }

    /// Number of packets that are expected to be missing, at the decoder or with a helper at both together, once all
    /// that was sent has arrived or not.
    pub(super) fn missing(&self, outlook: &Outlook) -> f64 {
        let Losses { e1, e3, .. } = outlook.losses;
        let lost = |symbol: u8| {
            let sequence = self.symbols[usize::from(symbol)];
            let at_decoder = if sequence < self.decoder.until { 1.0 } else { e3 };
            let at_helper = match outlook.helped {
                true if sequence >= self.helper.until => e1,
                true | false => 1.0,
            };
            at_decoder * at_helper
        };
        self.unknown(outlook.helped).map(lost).sum::<f64>() - self.undecoded() - self.under_way(outlook)
    }

    /// The symbols that nobody is known to have.
    pub(super) fn unknown(&self, helped: bool) -> impl Iterator<Item = u8> + Clone {
        let known = match helped {
            true => self.decoder.known.symbols.union(self.helper.known.symbols),
            false => self.decoder.known.symbols,
        };
        (0..self.added()).filter(move |&symbol| !known.has(symbol))
    }

    /// Whether the decoder is not known to have it.
    pub(super) fn undelivered(&self) -> Bits {
        let known = self.decoder.known.symbols;
        (0..self.added()).filter(|&symbol| !known.has(symbol)).collect()
    }

    /// Combinations that the decoder has beyond the symbols that it knows.
    fn undecoded(&self) -> f64 {
        f64::from(self.decoder.known.rank) - f64::from(self.decoder.known.symbols.count())
    }

    /// Number of the combinations sent that are still expected to arrive.
    fn under_way(&self, outlook: &Outlook) -> f64 {
        self.coded.len() as f64 * (1.0 - outlook.losses.e3)
    }
}

#[cfg(test)]
mod tests {
    use hopcast_code::field::Gf256;

    use super::*;

    #[test]
    fn of_2000_combinations_the_fate_is_waited_for_and_of_older_ones_it_is_not() {
        let shape = Shape::new(4, 100).unwrap();
        let mut block = Block::<Gf256>::new(0, Encoder::new(shape), shape);
        let losses = Losses { e3: 0.5, ..Losses::default() };
        for sequence in 0..2001 {
            assert_eq!(
                block.under_way(&Outlook { losses, helped: false }),
                f64::from(sequence.min(2000)) * 0.5
            );
            block.sent_coded(u64::from(sequence as u32));
        }
        assert_eq!((block.coded.len(), block.coded[0], block.sent), (2000, 1, 2001));
    }
}
