//! The receiver's selective acknowledgements: the blocks that changed last, most recent first (RFC 2018 section 4), and
//! in front of them what came twice (D-SACK, RFC 2883).

use super::wire::Blocks;

/// Blocks that are remembered, as in Linux (`tcp_sock.selective_acks`); four fit a segment without timestamps, three
/// with.
const REMEMBERED: usize = 4;

/// Blocks for which room is expected: two fit any segment, beside a D-SACK.
const EXPECTED: usize = 2;

/// The blocks to report.
#[derive(Clone, Debug, Default)]
pub(super) struct SackBlocks {
    blocks: Vec<(u64, u64)>,
    duplicate: Option<(u64, u64)>,
}

impl SackBlocks {
    /// Notes that `start..end` arrived out of order.
    pub(super) fn arrived(&mut self, start: u64, end: u64) {
        let mut block = (start, end);
        // It joins what it touches; the result is the most recent.
        self.blocks.retain(|&(from, to)| {
            let apart = to < block.0 || block.1 < from;
            if !apart {
                block = (block.0.min(from), block.1.max(to));
            }
            apart
        });
        self.blocks.insert(0, block);
        self.blocks.truncate(REMEMBERED);
    }

    /// Whether `start..end` would push aside what a shared acknowledgement has still to report (Linux
    /// `TCP_SACK_BLOCKS_EXPECTED`).
    pub(super) fn is_crowded_by(&self, start: u64, end: u64) -> bool {
        let touched = self.blocks.iter().position(|&(from, to)| to >= start && end >= from);
        touched.unwrap_or(self.blocks.len()) >= EXPECTED
    }

    /// Notes that `start..end` arrived although it was there already.
    pub(super) fn duplicated(&mut self, start: u64, end: u64) {
        self.duplicate = Some((start, end));
    }

    /// Notes that everything before `next` has arrived.
    pub(super) fn advance(&mut self, next: u64) {
        self.blocks.retain(|&(start, _)| start > next);
    }

    /// Length of the option that reports them, `room` blocks at most.
    pub(super) fn option_len(&self, room: usize) -> u32 {
        match (self.blocks.len() + usize::from(self.duplicate.is_some())).min(room) {
            0 => 0,
            blocks => 4 + 8 * blocks as u32,
        }
    }

    /// The blocks for a segment; a duplicate is reported once.
    pub(super) fn report(&mut self) -> Blocks {
        let mut report = Blocks::default();
        for (start, end) in self.duplicate.take().into_iter().chain(self.blocks.iter().copied()) {
            report.push((start as u32, end as u32));
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_that_changed_last_comes_first_and_a_duplicate_before_it_once() {
        let mut blocks = SackBlocks::default();
        blocks.arrived(10, 20);
        blocks.arrived(30, 40);
        blocks.arrived(50, 60);
        blocks.arrived(20, 30);
        assert_eq!(blocks.report().as_slice(), [(10, 40), (50, 60)]);
        blocks.duplicated(1, 2);
        assert_eq!(blocks.report().as_slice(), [(1, 2), (10, 40), (50, 60)]);
        blocks.advance(45);
        assert_eq!(blocks.report().as_slice(), [(50, 60)]);
    }

    #[test]
    fn what_touches_none_of_the_two_latest_blocks_crowds_them() {
        // Linux `tcp_sack_new_ofo_skb` and TCP_SACK_BLOCKS_EXPECTED.
        let mut blocks = SackBlocks::default();
        assert!(!blocks.is_crowded_by(100, 110));
        blocks.arrived(10, 20);
        assert!(!blocks.is_crowded_by(100, 110), "one and a new one are two");
        blocks.arrived(30, 40);
        assert!(blocks.is_crowded_by(100, 110), "a third");
        for (start, end) in [(40, 50), (20, 25), (5, 10), (35, 36)] {
            assert!(!blocks.is_crowded_by(start, end), "{start}..{end} touches one of two");
        }
        blocks.arrived(50, 60);
        assert!(blocks.is_crowded_by(20, 25), "the third of three");
        assert!(!blocks.is_crowded_by(40, 45));
    }

    #[test]
    fn four_blocks_are_remembered_and_an_option_is_as_long_as_those_that_fit() {
        // RFC 2018 section 3: two bytes and eight a block, here behind two NOPs.
        let mut blocks = SackBlocks::default();
        assert_eq!(blocks.option_len(3), 0);
        for start in [10, 30, 50, 70, 90] {
            blocks.arrived(start, start + 10);
        }
        assert_eq!(blocks.report().as_slice(), [(90, 100), (70, 80), (50, 60), (30, 40)]);
        assert_eq!((blocks.option_len(3), blocks.option_len(4)), (28, 36));
        blocks.advance(75);
        assert_eq!(blocks.option_len(3), 12);
        blocks.duplicated(1, 2);
        assert_eq!(blocks.option_len(3), 20);
    }

    #[test]
    fn a_fifth_block_is_forgotten_for_good() {
        let mut blocks = SackBlocks::default();
        for start in [90, 70, 50, 30, 10] {
            blocks.arrived(start, start + 10);
        }
        assert_eq!(blocks.report().as_slice(), [(10, 20), (30, 40), (50, 60), (70, 80)]);
        blocks.advance(60);
        assert_eq!(blocks.report().as_slice(), [(70, 80)], "of 90 to 100 nothing is known");
    }
}
