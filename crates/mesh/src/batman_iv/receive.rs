//! What an originator message that arrives changes.

use hopcast_core::{Duration, Instant};

use super::BatmanIv;
use super::queue::Message;
use super::table::Duplicate;
use super::tq::{path_quality, with_penalty};
use crate::address_map::Slot;
use crate::routing::{Arrival, Event, JITTER, Via};
use crate::window::WINDOW;
use crate::wire::ogm::{DIRECT_LINK, NOT_BEST_NEXT_HOP, Ogm, messages};
use crate::wire::{Header, MAX_TQ};

/// A message may have taken this many hops more than the first one of its number, and still counts for the quality of
/// the path by which it came.
const SIMILAR_TTL: u8 = 3;

impl Arrival<'_, Ogm> {
    /// Whether the originator itself sent it.
    fn is_direct(&self) -> bool {
        self.from.address == self.ogm.originator
    }
}

/// Where a message's originator and its sender are in the table.
#[derive(Clone, Copy)]
struct Places {
    originator: Slot,
    /// `None` if it is not known as an originator.
    sender: Option<Slot>,
}

impl BatmanIv {
    /// Takes a packet of messages. Returns whether it is well formed.
    pub(crate) fn receive<'a>(
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

    fn receive_one<'a>(&mut self, arrival: Arrival<'a, Ogm>, events: &mut Vec<Event<'a>>) {
        let Arrival { now, from, ogm, .. } = arrival;
        if self.common.is_own(from.address) {
            self.common.counters.ogms_of_own += 1;
            return;
        }
        if self.common.is_own(ogm.originator) {
            self.common.counters.ogms_of_own += 1;
            self.receive_echo(arrival, events);
            return;
        }
        if self.common.is_own(ogm.previous_sender) {
            self.common.counters.ogms_of_own += 1;
            return;
        }
        if ogm.flags & NOT_BEST_NEXT_HOP != 0 {
            self.common.counters.ogms_not_best += 1;
            return;
        }
        let Some(originator) = self.common.ensure(now, ogm.originator, events) else { return };
        let sender = match arrival.is_direct() {
            true => Some(originator),
            false => self.common.originators.find(from.address),
        };
        let places = Places { originator, sender };
        // First for the node's own packets, and then for those that leave by each interface.
        let own = self.common.own();
        for out in std::iter::once(own).chain(0..own) {
            self.receive_for(arrival, places, out, events);
        }
    }

    /// A message of the node's own that a neighbour has sent back: the link works in both directions.
    fn receive_echo(&mut self, arrival: Arrival<'_, Ogm>, events: &mut Vec<Event<'_>>) {
        let Arrival { now, from, ogm, .. } = arrival;
        let of_this_link = ogm.originator == self.common.links[from.interface()].mac;
        let Some(sender) = self.common.ensure(now, from.address, events) else { return };
        if ogm.flags & DIRECT_LINK == 0 || !of_this_link {
            return;
        }
        let last_sent = self.last_sent(from.interface());
        let behind = last_sent.wrapping_sub(ogm.seqno);
        if behind < WINDOW.cast_unsigned()
            && let Some(neighbour) = self.common.originators.at_mut(sender)
        {
            neighbour.echo(from.interface(), last_sent, behind);
        }
    }

    /// Number of the node's own message of an interface that was sent last: the next one is made already and waits, so
    /// that it is two before the number that comes next.
    fn last_sent(&self, interface: usize) -> u32 {
        self.seqnos[interface].wrapping_sub(2)
    }

    fn receive_for<'a>(
        &mut self,
        mut arrival: Arrival<'a, Ogm>,
        places: Places,
        out: usize,
        events: &mut Vec<Event<'a>>,
    ) {
        let Arrival { now, from, ogm, containers } = arrival;
        let own = self.common.own();
        let count = u64::from(out == own);
        let Some(originator) = self.common.originators.at_mut(places.originator) else { return };
        let duplicate = originator.receive(now, out, ogm.seqno, from);
        if duplicate == Duplicate::Refused {
            self.common.counters.ogms_of_restart_refused += count;
            return;
        }
        if ogm.tq == 0 {
            self.common.counters.ogms_without_quality += count;
            return;
        }
        let router = originator.outs[out].router;
        // Each copy of a message has the same containers.
        let announced = originator.outs[out].state.announced;
        let is_new = out == own && !containers.is_empty() && announced != Some(ogm.seqno);
        let by_best = router
            .is_some_and(|router| router.address == from.address && originator.metric(out, router) != 0);
        if let Some(router) = router
            && router.address == ogm.previous_sender
            && ogm.originator != ogm.previous_sender
            && self
                .common
                .originators
                .router(router.address, out)
                .is_some_and(|next| next.address == router.address)
        {
            // It comes from the next hop by another neighbour, to whom this node is the next hop, or soon is.
            self.common.counters.ogms_looping += count;
            return;
        }
        if is_new && let Some(originator) = self.common.originators.at_mut(places.originator) {
            originator.outs[out].state.announced = Some(ogm.seqno);
            events.push(Event::Containers(ogm.originator, containers));
        }
        let Some(bidirectional) = self.measure(&mut arrival, places.sender, out) else {
            self.common.counters.ogms_by_unknown_neighbours += count;
            return;
        };
        self.rank(arrival, places, out, duplicate, bidirectional);
        if out == own {
            return;
        }
        if arrival.is_direct() {
            // That of an interface which is not its node's first is sent back where it came from, and nowhere else.
            if ogm.ttl > 2 || from.interface() == out {
                self.forward(arrival, out, by_best);
            }
        } else if bidirectional && duplicate != Duplicate::OfNeighbour {
            self.forward(arrival, out, by_best);
        }
    }

    /// Gives a message the quality of the path up to here. Returns whether there is any; `None` if it came by a
    /// neighbour to whom there is no route.
    fn measure(&mut self, arrival: &mut Arrival<'_, Ogm>, sender: Option<Slot>, out: usize) -> Option<bool> {
        let Arrival { now, from, ogm, .. } = *arrival;
        let direct = arrival.is_direct();
        let last_sent = self.last_sent(from.interface());
        let sender = self.common.originators.at_mut(sender?)?;
        if !direct && sender.outs[out].router.is_none() {
            return None;
        }
        let echoed = sender.echoed(from.interface(), last_sent);
        let path = match sender.candidate_mut(from) {
            Some(path) => Some(path),
            None => self.common.originators.path(now, from.address, from),
        };
        let Some(path) = path else {
            self.common.counters.neighbours_refused += 1;
            return Some(false);
        };
        if direct {
            path.seen(now);
        }
        let received = path.out(out).received.count_ones();
        let shares_radio = out == from.interface() && self.common.links[out].wireless;
        let interface = if shares_radio { with_penalty(MAX_TQ, self.config.hop_penalty) } else { MAX_TQ };
        arrival.ogm.tq = path_quality(ogm.tq, echoed, received, interface);
        Some(arrival.ogm.tq > 0)
    }

    /// Notes the quality of the path by which a message came, and makes its sender the next hop if it is the best. A
    /// message whose number came before counts if it has taken about as many hops as the first.
    fn rank(
        &mut self,
        arrival: Arrival<'_, Ogm>,
        places: Places,
        out: usize,
        duplicate: Duplicate,
        bidirectional: bool,
    ) {
        let Arrival { now, from, ogm, .. } = arrival;
        let Some(mut originator) = self.common.originators.at_mut(places.originator) else { return };
        originator.last_seen = now;
        let entry = &originator.outs[out];
        let similar =
            entry.newest == ogm.seqno && entry.state.last_ttl <= ogm.ttl.saturating_add(SIMILAR_TTL);
        if !bidirectional || duplicate != Duplicate::No && !similar {
            return;
        }
        if originator.candidate_mut(from).is_none() {
            if self.common.originators.path(now, ogm.originator, from).is_none() {
                self.common.counters.neighbours_refused += 1;
                return;
            }
            let Some(found) = self.common.originators.at_mut(places.originator) else { return };
            originator = found;
        }
        let Some(path) = originator.candidate_mut(from) else { return };
        path.seen(now);
        path.out(out).quality.push(ogm.tq);
        let quality = u32::from(path.out(out).quality.get());
        if duplicate == Duplicate::No {
            originator.missed_by_others(out, from);
            originator.outs[out].state.last_ttl = ogm.ttl;
        }
        let router = originator.outs[out].router;
        if let Some(router) = router {
            let present = originator.metric(out, router);
            if router == from
                || present > quality
                || present == quality && self.symmetry(router) >= self.symmetry(from)
            {
                return;
            }
        }
        self.common.counters.route_changes += u64::from(out == self.common.own());
        if let Some(originator) = self.common.originators.at_mut(places.originator) {
            originator.outs[out].router = Some(from);
        }
    }

    /// Number of own messages that a neighbour has sent back.
    fn symmetry(&self, via: Via) -> u32 {
        let last_sent = self.last_sent(via.interface());
        self.common
            .originators
            .get(via.address)
            .map_or(0, |neighbour| neighbour.echoed(via.interface(), last_sent))
    }

    /// Sends a message on, by an interface. One that did not come from the next hop is only sent back to its
    /// originator.
    fn forward(&mut self, arrival: Arrival<'_, Ogm>, out: usize, by_best: bool) {
        let Arrival { now, from, mut ogm, containers } = arrival;
        let direct = arrival.is_direct();
        if ogm.ttl <= 1 {
            self.common.counters.ogms_expired += 1;
            return;
        }
        if !by_best {
            if !direct {
                return;
            }
            ogm.flags |= NOT_BEST_NEXT_HOP;
        }
        if Ogm::LEN + containers.len() > self.common.links[out].mtu {
            self.common.counters.ogms_too_long += 1;
            return;
        }
        ogm.ttl -= 1;
        ogm.previous_sender = from.address;
        ogm.tq = with_penalty(ogm.tq, self.config.hop_penalty);
        ogm.flags = if direct { ogm.flags | DIRECT_LINK } else { ogm.flags & !DIRECT_LINK };
        let jitter = Duration::from_nanos(self.common.random.below(JITTER.as_nanos() / 2));
        let message = Message { ogm, containers, out, interface: from.interface() };
        if self.queue.push_forwarded(now + jitter, &message, self.common.links[out].mtu) {
            self.common.counters.ogms_forwarded += 1;
        } else {
            self.common.counters.queue_full += 1;
        }
    }
}
