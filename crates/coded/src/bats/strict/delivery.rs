//! The node as sink: what it decodes goes up, and its account back.

use hopcast_core::Instant;

use super::node::{NEWS, Node};
use super::sink::{Arrived, Taken};
use super::way::{Packet, REACH, Role, Way};

impl Node {
    /// The sink takes a packet.
    pub(super) fn decode(&mut self, now: Instant, into: usize, packet: &Packet, payload: &[u8]) {
        let Some(Way { role: Role::Sink(sink), deadline, .. }) = &mut self.ways[into] else { return };
        let Some(edge) = &mut self.edge else { return };
        let counters = &mut self.counters;
        let mut deliver = |missing: u64, symbol: &[u8]| {
            counters.delivered += 1;
            counters.lost += missing;
            edge.take(missing, symbol);
        };
        if deadline.is_some() {
            // What is too old for a place is too old to wait for.
            for _ in 0..sink.crowded(packet.block).min(REACH) {
                sink.give_up(&mut deliver);
            }
        }
        let Packet { block, header, depth, index, vector } = packet;
        let arrived =
            Arrived { block: *block, header: *header, depth: *depth, index: *index, vector, payload };
        let mut over = false;
        let taken = sink.push(now, &arrived);
        if taken == Taken::Innovative {
            over = sink.deliver(&mut deliver);
        }
        match taken {
            Taken::Innovative => self.counters.innovative += 1,
            Taken::Redundant => self.counters.redundant += 1,
            Taken::Beyond => self.counters.beyond += 1,
            Taken::Absurd => self.counters.malformed += 1,
        }
        if over {
            for parent in self.neighbours.iter_mut().filter(|neighbour| neighbour.into == into) {
                parent.receiver.report_at(now + NEWS);
            }
        }
    }

    /// Does what time has brought to the sink.
    pub(super) fn sink_passes(&mut self, now: Instant, out: usize) {
        if !matches!(self.ways[out], Some(Way { role: Role::Sink(_), .. })) {
            return;
        }
        if self.ways[out].as_mut().is_some_and(|way| way.is_quiet(now)) {
            for parent in self.neighbours.iter_mut().filter(|neighbour| neighbour.into == out) {
                parent.receiver.report_at(now);
            }
        }
        let Some(Way { role: Role::Sink(sink), deadline: Some(after), .. }) = &mut self.ways[out] else {
            return;
        };
        let (after, Some(edge)) = (*after, &mut self.edge) else { return };
        while sink.gives_up(after).is_some_and(|at| at <= now) {
            let counters = &mut self.counters;
            let mut deliver = |missing: u64, symbol: &[u8]| {
                counters.delivered += 1;
                counters.lost += missing;
                edge.take(missing, symbol);
            };
            sink.give_up(&mut deliver);
            sink.deliver(&mut deliver);
            counters.given_up += 1;
        }
    }
}
