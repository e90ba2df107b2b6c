//! Originator messages (OGM2) that arrive, and the routes that they change.

use hopcast_core::Instant;

use super::BatmanV;
use super::queue::Message;
use super::table::Path;
use super::throughput::with_penalty;
use crate::routing::{Arrival, Event, Via};
use crate::window;
use crate::wire::batman_v::{Ogm2, messages};

/// A neighbour becomes the next hop if its number is this far ahead of that of the one before, however slow the path
/// is: the other has gone (`BATADV_OGM_MAX_ORIGDIFF`).
const MAX_BEHIND: i32 = 5;

impl BatmanV {
    /// Takes a packet of messages. Returns whether it is well formed.
    pub(super) fn receive_ogms<'a>(
        &mut self,
        now: Instant,
        from: Via,
        packet: &'a [u8],
        events: &mut Vec<Event<'a>>,
    ) -> bool {
        let Ok(messages) = messages(packet) else { return false };
        for (ogm, containers) in messages {
            self.common.counters.ogms_received += 1;
            self.receive_one(Arrival { now, from, ogm, containers }, events);
        }
        true
    }

    fn receive_one<'a>(&mut self, mut arrival: Arrival<'a, Ogm2>, events: &mut Vec<Event<'a>>) {
        let Arrival { now, from, ogm, .. } = arrival;
        let common = &mut self.common;
        if common.is_own(ogm.originator) {
            common.counters.ogms_of_own += 1;
            return;
        }
        if ogm.throughput == 0 {
            common.counters.ogms_without_quality += 1;
            return;
        }
        // Its probes must have come first, by which the link is known.
        let Some(neighbour) = common.originators.neighbour(from) else {
            common.counters.ogms_by_unknown_neighbours += 1;
            return;
        };
        let (forwarder, link) = (neighbour.originator, neighbour.state.throughput.get());
        arrival.ogm.throughput = ogm.throughput.min(link);
        if common.ensure(now, ogm.originator, events).is_none() {
            return;
        }
        if common.originators.path(now, ogm.originator, from).is_none() {
            common.counters.neighbours_refused += 1;
            return;
        }
        // First for the node's own packets, and then for those that leave by each interface.
        let own = self.common.own();
        self.receive_for(arrival, own, events);
        for out in 0..own {
            let throughput = self.receive_for(arrival, out, events);
            if let Some(throughput) = throughput
                && self.common.originators.has_receivers(out, ogm.originator, Some(forwarder))
            {
                let ogm = Ogm2 { throughput, ..ogm };
                self.forward(Arrival { ogm, ..arrival }, out);
            }
        }
    }

    /// Takes a message for packets that leave by one interface. Returns the throughput of the path for them, unless the
    /// message is refused.
    fn receive_for<'a>(
        &mut self,
        arrival: Arrival<'a, Ogm2>,
        out: usize,
        events: &mut Vec<Event<'a>>,
    ) -> Option<u32> {
        let Arrival { now, from, ogm, containers } = arrival;
        let own = self.common.own();
        let count = u64::from(out == own);
        let shares_radio = out == from.interface() && self.common.links[out].wireless;
        let originator = self.common.originators.get_mut(ogm.originator)?;
        let entry = &mut originator.outs[out];
        let ahead = ogm.seqno.wrapping_sub(entry.newest).cast_signed();
        if entry.state.heard && entry.protection.refuses(now, ahead) {
            self.common.counters.ogms_of_restart_refused += count;
            return None;
        }
        let restarted = !entry.state.heard || window::is_restart(ahead);
        if ahead < 0 && !restarted {
            self.common.counters.ogms_outdated += count;
            return None;
        }
        entry.state.heard = true;
        entry.newest = ogm.seqno;
        originator.last_seen = now;
        let throughput = match out == own {
            true => ogm.throughput,
            false => with_penalty(ogm.throughput, self.config.hop_penalty, shares_radio),
        };
        for candidate in &mut originator.candidates {
            if candidate.via == from {
                candidate.seen(now);
                *candidate.out(out) = Path { newest: Some(ogm.seqno), throughput };
            } else if restarted {
                // Numbers from before cannot be compared with those that come now.
                *candidate.out(out) = Path::default();
            }
        }
        if out == own && (ahead > 0 || restarted) && !containers.is_empty() {
            events.push(Event::Containers(ogm.originator, containers));
        }
        let router = originator.outs[out].router;
        let router_path = router.and_then(|router| {
            let candidate = originator.candidates.iter_mut().find(|candidate| candidate.via == router)?;
            let path = *candidate.out(out);
            path.newest.map(|newest| (newest, path.throughput))
        });
        let better = router_path.is_none_or(|(newest, other)| {
            throughput > other || ogm.seqno.wrapping_sub(newest).cast_signed() >= MAX_BEHIND
        });
        if router != Some(from) && better {
            originator.outs[out].router = Some(from);
            self.common.counters.route_changes += count;
        }
        Some(throughput)
    }

    /// Sends a message on by an interface, if it came from the next hop, and only once.
    fn forward(&mut self, arrival: Arrival<'_, Ogm2>, out: usize) {
        let Arrival { now, from, mut ogm, containers } = arrival;
        let Some(originator) = self.common.originators.get_mut(ogm.originator) else { return };
        let entry = &mut originator.outs[out];
        if entry.router != Some(from) || entry.state.forwarded == Some(ogm.seqno) {
            return;
        }
        entry.state.forwarded = Some(ogm.seqno);
        if ogm.ttl <= 1 {
            self.common.counters.ogms_expired += 1;
            return;
        }
        if ogm.throughput == 0 {
            // Nobody would take it.
            self.common.counters.ogms_without_quality += 1;
            return;
        }
        ogm.ttl -= 1;
        self.common.counters.ogms_forwarded += u64::from(self.push(now, &Message { ogm, containers, out }));
    }
}
