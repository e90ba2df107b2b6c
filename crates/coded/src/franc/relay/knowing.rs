//! The plan of deficits: hands over those symbols that the decoder has told it lacks.

use hopcast_code::field::Field;
use hopcast_code::rlnc::{Coding, Decoder, Outcome, Packet, Shape};

use crate::franc::bits::Bits;
use crate::franc::config::Losses;
use crate::franc::wire::Known;

/// A block whose symbols are handed over.
pub(super) struct Knowing<F: Field> {
    code: Decoder<F>,
    /// For each symbol, the number of the encoder's packet in which it last came.
    heard: Vec<u64>,
    /// For each symbol, one past the number of our packet in which it was last sent; 0 if never.
    sent: Vec<u64>,
}

impl<F: Field> Knowing<F> {
    pub(super) fn new(shape: Shape) -> Self {
        let k = shape.symbols();
        Self { code: Decoder::new(shape, 0), heard: vec![0; k], sent: vec![0; k] }
    }

    pub(super) fn start(&mut self, number: u32) {
        self.code.start(number);
        self.heard.fill(0);
        self.sent.fill(0);
    }

    /// Takes an encoder's packet; whether it was news.
    pub(super) fn hear(&mut self, packet: &Packet<'_>, sequence: u64) -> bool {
        let innovative = matches!(self.code.push(packet), Ok(Outcome::Innovative));
        // One that is sent again is on its way again.
        if let Coding::Symbol(index) = packet.coding
            && let Some(heard) = self.heard.get_mut(index)
        {
            *heard = sequence;
        }
        while let Some((index, _)) = self.code.poll() {
            self.heard[index] = sequence;
        }
        innovative
    }

    /// The symbols that are here.
    pub(super) fn symbols(&mut self) -> Bits {
        Bits::of(self.code.decoded())
    }

    /// The first symbol that is here and that the decoder has told it lacks, if what it lacks is not made up for by
    /// what is under way; `told` is what the decoder has reported, of the encoder's packets and of ours.
    pub(super) fn next(
        &mut self,
        added: u8,
        decoder: &Known,
        told: (u64, u64),
        losses: Losses,
    ) -> Option<u8> {
        let under_way = self.sent.iter().filter(|&&sent| sent > told.1).count();
        let lacks = f64::from(added) - f64::from(decoder.rank) - under_way as f64 * (1.0 - losses.e2);
        if lacks < 0.5 {
            return None;
        }
        let here = self.symbols();
        (0..added).find(|&symbol| {
            let place = usize::from(symbol);
            let certain = self.heard[place] < told.0 && self.sent[place] <= told.1;
            certain && here.has(symbol) && !decoder.symbols.has(symbol)
        })
    }

    /// Writes a symbol that is sent in our packet `sequence`.
    pub(super) fn send(&mut self, index: u8, sequence: u64, out: &mut [u8]) -> bool {
        let Some(symbol) = self.code.symbol(usize::from(index)) else { return false };
        out.copy_from_slice(symbol);
        self.sent[usize::from(index)] = sequence + 1;
        true
    }
}
