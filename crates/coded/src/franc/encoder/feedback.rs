//! Feedback of decoder and helper to the encoder.

use hopcast_code::field::Field;
use hopcast_core::Instant;

use super::Encoder;
use super::block::Block;
use crate::franc::estimate::extend;
use crate::franc::wire::{Ack, Known, MAX_LISTED, Report};

impl<F: Field> Encoder<F> {
    /// Takes the decoder's acknowledgement.
    pub(in crate::franc) fn acknowledge(&mut self, now: Instant, ack: &Ack) {
        // Serial numbers (RFC 1982): an older one, or the same again, says nothing.
        if self.last_ack.is_some_and(|last| ack.number.wrapping_sub(last).wrapping_sub(1) >= 1 << 31) {
            return;
        }
        let until = extend(ack.heard.next, self.sequence);
        let oldest = self.blocks.front().map_or(self.next_block, |block| block.number);
        if until > self.sequence || ack.base > self.next_block || ack.base < oldest {
            return;
        }
        self.last_ack = Some(ack.number);
        (self.unanswered, self.probes) = (0, 0.0);
        let mut progress = false;
        while let Some(block) = self.blocks.pop_front_if(|block| block.number < ack.base) {
            progress = true;
            self.counters.blocks += 1;
            self.counters.block_packets += u64::from(block.sent);
            self.recycle(block);
            if let Some(budget) = &mut self.budget {
                budget.restart();
            }
        }
        for block in &mut self.blocks {
            let place = (block.number - ack.base) as usize;
            let known = match ack.blocks.get(place) {
                Some(known) => *known,
                None if ack.blocks.len() < MAX_LISTED => Known::default(),
                None => break,
            };
            progress |= block.decoder_knows(known, until);
        }
        if self.blocks.iter().all(Block::is_acknowledged) {
            self.wait = None;
            self.pause = self.config.timeout;
        } else if progress {
            self.pause = self.config.timeout;
            self.wait = self.wait.map(|at| at.min(now + self.pause));
        }
    }

    /// Takes the helper's report of a block.
    pub(in crate::franc) fn report(&mut self, report: &Report) {
        let until = extend(report.heard.next, self.sequence);
        let told = extend(report.told, self.sequence);
        if until <= self.sequence
            && told <= self.sequence
            && let Some(block) = self.blocks.iter_mut().find(|block| block.number == report.block)
        {
            block.helper_knows(report.known, until, told);
        }
    }
}
