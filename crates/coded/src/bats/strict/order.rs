//! In which order the symbols of a block are sent: batch by batch, or several batches interleaved, so that a burst of
//! losses takes a little of each.

/// The order of one block's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// M.
    batch: usize,
    /// K / M.
    batches: usize,
    /// Number of interleaved batches, as a power of two.
    depth: u8,
}

/// Greatest depth, as a power of two: it has three bits in a packet's header.
pub(super) const MAX_HEADER_DEPTH: u8 = 7;

impl Order {
    pub(super) fn new(batch: usize, block: u16, depth: u8) -> Self {
        Self { batch, batches: usize::from(block) / batch, depth: depth.min(MAX_HEADER_DEPTH) }
    }

    pub(super) const fn depth(&self) -> u8 {
        self.depth
    }

    /// The batch of the symbol at a position, and its index there.
    pub(super) fn place(&self, position: usize) -> (usize, usize) {
        let (group, within) = (position / (self.batch << self.depth), position % (self.batch << self.depth));
        let first = group << self.depth;
        let wide = self.wide(first);
        (first + within % wide, within / wide)
    }

    /// The position of a symbol of a batch.
    pub(super) fn position(&self, batch: usize, index: usize) -> usize {
        let first = batch >> self.depth << self.depth;
        first * self.batch + index * self.wide(first) + batch - first
    }

    /// Number of batches that are interleaved with one that is the first of those. The last group may be a smaller one.
    fn wide(&self, first: usize) -> usize {
        (self.batches - first.min(self.batches)).clamp(1, 1 << self.depth)
    }

    /// Number of that symbol of the block, as the outer code numbers them.
    pub(super) fn symbol(&self, position: usize) -> usize {
        let (batch, index) = self.place(position);
        batch * self.batch + index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_has_one_position() {
        for depth in 0..=MAX_HEADER_DEPTH {
            for block in [32, 96, 256, 1024] {
                let order = Order::new(32, block, depth);
                let mut symbols: Vec<usize> =
                    (0..usize::from(block)).map(|position| order.symbol(position)).collect();
                symbols.sort_unstable();
                assert!(symbols.iter().copied().eq(0..usize::from(block)), "depth {depth}, block {block}");
                for position in 0..usize::from(block) {
                    let (batch, index) = order.place(position);
                    assert_eq!(order.position(batch, index), position, "depth {depth}, block {block}");
                }
            }
        }
    }

    #[test]
    fn neighbours_are_in_different_batches() {
        let order = Order::new(32, 1024, 3);
        let batches: Vec<usize> = (0..9).map(|position| order.place(position).0).collect();
        assert_eq!(batches, [0, 1, 2, 3, 4, 5, 6, 7, 0]);
        assert_eq!(order.place(8 * 32), (8, 0));
    }

    #[test]
    fn a_depth_has_three_bits() {
        assert_eq!([0, 6, 7, 8, 200].map(|depth| Order::new(16, 4096, depth).depth()), [0, 6, 7, 7, 7]);
    }
}
