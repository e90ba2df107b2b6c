//! A block that is being received.

use std::collections::BTreeMap;

use super::asked::Asked;
use super::held;
use crate::norm::fec::Codec;

/// A block: the symbols that have arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) symbols: BTreeMap<u16, Vec<u8>>,
    pub(super) asked: Asked,
}

/// Missing symbols of a block up to which some to spare are asked for. Chosen: of more than that some arrive where half
/// are lost, and who hears hardly anything must not take more of the sender's time than it does.
const FEW: usize = 4;

impl Block {
    /// Whether any `source` symbols have arrived.
    pub(super) fn is_complete(&self, source: u16) -> bool {
        self.symbols.len() >= usize::from(source)
    }

    /// Number of symbols that are missing.
    pub(super) fn lacking(&self, source: u16) -> u16 {
        source.saturating_sub(self.symbols.len() as u16)
    }

    /// The symbols to ask for, ascending: parity that was not sent yet as far as was seen, then parity that was lost,
    /// then source symbols. Where there is no parity, the source symbols that are missing.
    pub(super) fn wanted(&self, source: u16, parity: u16) -> Vec<u16> {
        let lacking = usize::from(self.lacking(source));
        let spare = if lacking <= FEW { self.asked.spare() } else { 0 };
        let end = source + parity;
        let fresh = self.symbols.last_key_value().map_or(source, |(&last, _)| (last + 1).max(source));
        let missing = |range: std::ops::Range<u16>| range.filter(|symbol| !self.symbols.contains_key(symbol));
        let mut wanted: Vec<u16> = missing(fresh..end)
            .chain(missing(source..fresh.min(end)))
            .chain(missing(0..source))
            .take(lacking + spare)
            .collect();
        wanted.sort_unstable();
        wanted
    }

    /// The source symbols that are missing of the first `upto`.
    pub(super) fn missing(&self, upto: u16) -> Vec<u16> {
        (0..upto).filter(|symbol| !self.symbols.contains_key(symbol)).collect()
    }

    /// Bytes held, with the minimum for each piece.
    pub(super) fn held(&self) -> u64 {
        held::BLOCK + self.symbols.values().map(|symbol| held::SYMBOL + symbol.len() as u64).sum::<u64>()
    }

    /// The source symbols; `None` if they cannot be decoded.
    pub(super) fn decode(mut self, source: u16, codec: &Codec) -> Option<Vec<Vec<u8>>> {
        let symbols = usize::from(source) + codec.parity_symbols();
        let mut all: Vec<Option<Vec<u8>>> =
            (0..symbols as u16).map(|symbol| self.symbols.remove(&symbol)).collect();
        codec.decode(source.into(), &mut all).ok()?;
        all.truncate(source.into());
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(symbols: &[u16]) -> Block {
        let symbols = symbols.iter().map(|&symbol| (symbol, vec![0; 4])).collect();
        Block { symbols, asked: Asked::default() }
    }

    #[test]
    fn fresh_parity_is_asked_for_first() {
        assert_eq!(block(&[0, 1]).wanted(4, 4), [4, 5]);
        assert_eq!(block(&[0, 1, 5]).wanted(4, 4), [6], "4 was lost, 6 is fresh");
        assert_eq!(block(&[0, 7]).wanted(4, 4), [4, 5], "there is no fresh one");
        assert_eq!(block(&[0, 2]).wanted(4, 0), [1, 3]);
        assert_eq!(block(&[0, 2]).missing(2), [1]);
    }
}
