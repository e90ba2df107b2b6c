//! A set of a block's symbols.

/// Set of up to 256 symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits([u64; 4]);

impl Bits {
    #[cfg(test)]
    pub(super) const fn from_words(words: [u64; 4]) -> Self {
        Self(words)
    }

    /// The set whose words are these; what goes beyond is left out.
    pub(super) fn of(words: &[u64]) -> Self {
        let mut bits = Self::default();
        bits.0.iter_mut().zip(words).for_each(|(own, word)| *own = *word);
        bits
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut all = [0; 32];
        let len = bytes.len().min(32);
        all[..len].copy_from_slice(&bytes[..len]);
        let word = |i: usize| u64::from_le_bytes(core::array::from_fn(|j| all[8 * i + j]));
        Self(core::array::from_fn(word))
    }

    pub(super) fn bytes(self) -> [u8; 32] {
        core::array::from_fn(|i| self.0[i / 8].to_le_bytes()[i % 8])
    }

    pub(super) fn set(&mut self, symbol: u8) {
        self.0[usize::from(symbol) / 64] |= 1 << (symbol % 64);
    }

    pub(super) fn has(self, symbol: u8) -> bool {
        self.0[usize::from(symbol) / 64] >> (symbol % 64) & 1 == 1
    }

    pub(super) fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    pub(super) fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |&symbol| self.has(symbol))
    }

    /// Whether there are any from number `len` on.
    pub(super) fn beyond(self, len: u8) -> bool {
        self.iter().any(|symbol| symbol >= len)
    }
}

impl FromIterator<u8> for Bits {
    fn from_iter<I: IntoIterator<Item = u8>>(symbols: I) -> Self {
        let mut bits = Self::default();
        symbols.into_iter().for_each(|symbol| bits.set(symbol));
        bits
    }
}
