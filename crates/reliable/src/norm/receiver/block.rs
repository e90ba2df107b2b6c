//! A block that is being received.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

use crate::norm::fec::Codec;

/// What was asked for, by this receiver or by one that it heard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    /// When, if it is not answered yet.
    at: Option<Instant>,
    /// How often in a row this receiver asked, and nothing came.
    rounds: u16,
}

/// Rounds in vain before the time to wait is doubled. Chosen: at 50 % loss one of eight receivers hears nothing of
/// three.
const PATIENT: u16 = 3;
/// Doublings of the time to wait, at most. Chosen: a sender that is gone is asked more and more rarely, one that comes
/// back within seconds.
const MAX_DOUBLINGS: u16 = 5;

impl Asked {
    /// Whether the answer is still to be waited for, for `hold` after it was asked or after `busy`, when the sender was
    /// heard at repairs that come before.
    pub(super) fn is_awaited(&self, now: Instant, hold: Duration, busy: Option<Instant>) -> bool {
        self.until(hold, busy).is_some_and(|until| until > now)
    }

    /// Until when the answer is waited for.
    pub(super) fn until(&self, hold: Duration, busy: Option<Instant>) -> Option<Instant> {
        let at = self.at?;
        Some(
            at.max(busy.unwrap_or(at)) + hold * (1 << self.rounds.saturating_sub(PATIENT).min(MAX_DOUBLINGS)),
        )
    }

    /// This receiver asks. False if it has asked `robust` times in vain.
    pub(super) fn ask(&mut self, now: Instant, robust: u16) -> bool {
        self.at = Some(now);
        self.rounds += 1;
        self.rounds <= robust
    }

    /// Somebody else asks for at least as much.
    pub(super) fn heard(&mut self, now: Instant) {
        self.at = Some(now);
    }

    /// The answer, or what there is of it, has come.
    pub(super) fn answered(&mut self) {
        self.at = None;
    }

    /// Something came.
    pub(super) fn progress(&mut self) {
        self.rounds = 0;
    }
}

/// A block: the symbols that have arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) symbols: BTreeMap<u16, Vec<u8>>,
    pub(super) asked: Asked,
}

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
        let end = source + parity;
        let fresh = self.symbols.last_key_value().map_or(source, |(&last, _)| (last + 1).max(source));
        let missing = |range: std::ops::Range<u16>| range.filter(|symbol| !self.symbols.contains_key(symbol));
        let mut wanted: Vec<u16> = missing(fresh..end)
            .chain(missing(source..fresh.min(end)))
            .chain(missing(0..source))
            .take(lacking)
            .collect();
        wanted.sort_unstable();
        wanted
    }

    /// The source symbols that are missing of the first `upto`.
    pub(super) fn missing(&self, upto: u16) -> Vec<u16> {
        (0..upto).filter(|symbol| !self.symbols.contains_key(symbol)).collect()
    }

    /// Bytes held.
    pub(super) fn held(&self) -> u64 {
        self.symbols.values().map(|symbol| symbol.len() as u64).sum()
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

    #[test]
    fn an_answer_is_waited_for_longer_each_time() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let hold = Duration::from_millis(10);
        let mut asked = Asked::default();
        assert!(!asked.is_awaited(at(0), hold, None));
        assert!(asked.ask(at(0), 4));
        assert!(asked.is_awaited(at(9), hold, None) && !asked.is_awaited(at(10), hold, None));
        assert!(asked.is_awaited(at(10), hold, Some(at(5))));
        assert!((1..4).all(|_| asked.ask(at(20), 4)));
        assert!(asked.is_awaited(at(39), hold, None));
        assert!(!asked.ask(at(40), 4), "four times in vain");
        asked.progress();
        asked.answered();
        assert!(!asked.is_awaited(at(41), hold, None));
    }
}
