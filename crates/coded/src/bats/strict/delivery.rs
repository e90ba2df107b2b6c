//! The node as sink: what it decodes goes up, and its end-to-end report back.

use hopcast_core::Instant;

use super::super::age::Age;
use super::super::edge::Delivered;
use super::direction::{Arrived, Direction, MAX_BLOCKS_AHEAD, Role};
use super::node::{NEWS_WAIT, Node};
use super::sink::{Sink, Taken};

impl Node {
    /// The sink of a direction, if it ends here, acts, with a place for the symbols that it delivers.
    fn at_sink<T>(
        &mut self,
        now: Instant,
        into: usize,
        act: impl FnOnce(&mut Sink, &mut dyn FnMut(&Delivered<'_>)) -> T,
    ) -> Option<T> {
        let Some(Direction { role: Role::Sink(sink), .. }) = &mut self.directions[into] else { return None };
        let (edge, counters) = (self.edge.as_mut()?, &mut self.counters);
        let mut deliver = |symbol: &Delivered<'_>| {
            counters.delivered += 1;
            counters.lost += symbol.missing;
            edge.take(now, symbol);
        };
        Some(act(sink, &mut deliver))
    }

    /// The sink takes a packet.
    pub(super) fn decode(&mut self, now: Instant, into: usize, packet: &Arrived, payload: &[u8]) {
        let may_give_up = self.has_deadline(into);
        let outcome = self.at_sink(now, into, |sink, deliver| {
            if may_give_up {
                // What is too old for a place is too old to wait for.
                for _ in 0..sink.crowded(packet.block).min(MAX_BLOCKS_AHEAD) {
                    sink.give_up(&mut *deliver);
                }
            }
            let taken = sink.push(now, packet, payload);
            // A packet that says nothing else may still tell that a block has no more symbols.
            let may_end = matches!(taken, Taken::Innovative | Taken::Redundant);
            (taken, may_end && sink.deliver(deliver))
        });
        self.hold(now, into);
        let Some((taken, over)) = outcome else { return };
        match taken {
            Taken::Innovative => self.counters.innovative += 1,
            Taken::Redundant => self.counters.redundant += 1,
            Taken::Beyond => self.counters.beyond += 1,
            Taken::Contradiction => self.counters.malformed += 1,
        }
        if over {
            for parent in self.neighbours.iter_mut().filter(|neighbour| neighbour.into == into) {
                parent.receiver.report_at(now + NEWS_WAIT);
            }
        }
    }

    /// The sink goes on with a block.
    pub(super) fn skip_blocks(&mut self, now: Instant, into: usize, block: u64) {
        let skipped = self.at_sink(now, into, |sink, deliver| {
            let skipped = sink.skip_to(block, &mut *deliver);
            if skipped > 0 {
                sink.deliver(deliver);
            }
            skipped
        });
        self.hold(now, into);
        self.counters.given_up += skipped.unwrap_or(0);
    }

    fn hold(&mut self, now: Instant, into: usize) {
        if let Some(direction) = &mut self.directions[into] {
            direction.hold(now);
        }
    }

    /// Does what time has brought to the sink.
    pub(super) fn sink_passes(&mut self, now: Instant, out: usize) {
        let Some(direction @ Direction { role: Role::Sink(_), .. }) = &mut self.directions[out] else {
            return;
        };
        let after = direction.age.as_ref().map(Age::bound);
        if direction.is_quiet(now) {
            for parent in self.neighbours.iter_mut().filter(|neighbour| neighbour.into == out) {
                parent.receiver.report_at(now);
            }
        }
        let Some(after) = after else { return };
        // One gap or block at a time: how long the next may wait follows from what is held behind it.
        while self.at_sink(now, out, |sink, deliver| sink.pass(now, after, deliver)) == Some(true) {
            self.counters.given_up += 1;
            self.hold(now, out);
        }
    }
}
