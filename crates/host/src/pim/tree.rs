//! The state of one channel: the tree of a source and group, as one router sees it.
//!
//! Three small machines share it: who wants the channel's packets on each interface (`downstream`), who forwards them
//! to a link that several routers forward to (`assert`), and whether the router itself wants them, and from whom
//! ([`Upstream`]). Whatever has changed, [`Tree::review`] then brings the three in line.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hopcast_core::{Duration, Instant};
use hopcast_wire::ip::Version;

use super::Channel;
use super::assert::{self, AssertState};
use super::downstream::Downstream;
use super::links::Links;
use super::neighbours::Distance;
use crate::groups::GroupRoute;

/// The way towards the source of a channel, as unicast routes have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rpf {
    /// The interface by which packets arrive; `None` at the source itself.
    pub(super) interface: Option<u32>,
    /// The next hop's address; `None` at the source itself.
    pub(super) next_hop: Option<IpAddr>,
    /// Preference and metric of the route.
    pub(super) metric: (u32, u32),
}

/// A tree's state.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The interfaces on which routers have joined.
    downstream: BTreeMap<u32, Downstream>,
    /// The interfaces on which hosts are members.
    members: BTreeSet<u32>,
    /// Whether a machine on the router itself is a member.
    is_own: bool,
    asserts: BTreeMap<u32, AssertState>,
    rpf: Option<Rpf>,
    upstream: Upstream,
}

/// Whether the router has joined, and where (section 4.5.5).
#[derive(Debug, Default)]
struct Upstream {
    /// The neighbour that is to forward (*RPF'*).
    towards: Option<Towards>,
    /// Time of the next join; `None` while the router has not joined.
    join_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Towards {
    interface: u32,
    neighbour: IpAddr,
    /// Whether an Assert has named it, and not the routes.
    by_assert: bool,
}

impl Tree {
    /// Takes a join that was sent to this router on an interface.
    pub(super) fn join(&mut self, now: Instant, interface: u32, hold: Duration) {
        let downstream = self.downstream.entry(interface).or_insert(Downstream::until(now));
        downstream.join(now, hold);
        // Section 4.6.1: who loses an Assert and is joined all the same forwards again, until the next.
        if matches!(self.asserts.get(&interface), Some(AssertState::Loser { .. })) {
            self.asserts.remove(&interface);
        }
    }

    /// Takes a prune that was sent to this router on an interface.
    pub(super) fn prune(&mut self, now: Instant, channel: Channel, interface: u32, links: &Links) {
        if let Some(downstream) = self.downstream.get_mut(&interface) {
            downstream.prune(now, links.prune_delay(interface, Version::of(channel.1)));
        }
    }

    /// Notes whether hosts on an interface are members.
    pub(super) fn set_members(&mut self, interface: u32, joined: bool) {
        if joined {
            self.members.insert(interface);
        } else {
            self.members.remove(&interface);
        }
    }

    /// Whether machines on the host itself want the channel.
    pub(super) const fn is_own(&self) -> bool {
        self.is_own
    }

    /// Notes whether a machine on the router itself is a member.
    pub(super) const fn set_own(&mut self, joined: bool) {
        self.is_own = joined;
    }

    /// Takes the route towards the source, which may have changed.
    pub(super) fn set_rpf(&mut self, rpf: Option<Rpf>) {
        let interface = |rpf: Option<Rpf>| rpf.and_then(|rpf| rpf.interface);
        if let Some(before) = interface(self.rpf).filter(|_| interface(self.rpf) != interface(rpf))
            && matches!(self.asserts.get(&before), Some(AssertState::Loser { .. }))
        {
            self.asserts.remove(&before);
        }
        self.rpf = rpf;
    }

    /// Takes a join or prune that another router has sent to a neighbour on an interface: the same that this router
    /// sends to, perhaps (section 4.5.5).
    pub(super) fn overhear(
        &mut self,
        now: Instant,
        channel: Channel,
        (interface, neighbour): (u32, IpAddr),
        joined: Option<Duration>,
        links: &mut Links,
    ) {
        let is_same = |towards: &Towards| (towards.interface, towards.neighbour) == (interface, neighbour);
        let Some(join_at) =
            self.upstream.join_at.filter(|_| self.upstream.towards.as_ref().is_some_and(is_same))
        else {
            return;
        };
        match joined {
            Some(hold) => {
                let at = now + links.suppression().min(hold);
                links.counters.joins_suppressed += u64::from(at > join_at);
                self.upstream.join_at = Some(join_at.max(at));
            }
            None => {
                links.counters.prunes_overridden += 1;
                self.upstream.hasten(now + links.override_delay(interface, Version::of(channel.1)));
            }
        }
    }

    /// Forgets what a neighbour has said in Asserts, since it is gone or has started anew; and joins again soon, if it
    /// is the one that this router has joined at.
    pub(super) fn forget_neighbour(&mut self, interface: u32, neighbour: IpAddr) {
        if self.asserts.get(&interface).is_some_and(|state| state.winner() == Some(neighbour)) {
            self.asserts.remove(&interface);
        }
    }

    /// Joins again soon, if a neighbour is the one that this router has joined at.
    pub(super) fn rejoin(&mut self, now: Instant, channel: Channel, at: (u32, IpAddr), links: &mut Links) {
        let is_same = |towards: Towards| (towards.interface, towards.neighbour) == at;
        if self.upstream.towards.is_some_and(is_same) {
            self.upstream.hasten(now + links.override_delay(at.0, Version::of(channel.1)));
        }
    }

    /// Takes the distance that another router claims on an interface, in an Assert; `None` if it withdraws.
    pub(super) fn hear_assert(
        &mut self,
        now: Instant,
        channel: Channel,
        interface: u32,
        heard: Distance,
        links: &mut Links,
    ) {
        let own = self.own_distance(channel, interface, links);
        let tracks = self.tracks(channel, interface, links);
        let state = self.asserts.remove(&interface);
        let (state, answers) = assert::hear(now, state, own, tracks, heard);
        self.asserts.extend(state.map(|state| (interface, state)));
        if let (true, Some(own)) = (answers, own) {
            links.assert(now, interface, channel, own.metric);
        }
    }

    /// Takes note of a packet of the channel that arrived on an interface to which this router forwards: another router
    /// forwards there, too.
    pub(super) fn hear_data(&mut self, now: Instant, channel: Channel, interface: u32, links: &mut Links) {
        if self.asserts.contains_key(&interface) {
            return;
        }
        if let Some(own) = self.own_distance(channel, interface, links) {
            self.asserts.insert(interface, AssertState::winning(now));
            links.assert(now, interface, channel, own.metric);
        }
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Instant, channel: Channel, links: &mut Links) {
        let version = Version::of(channel.1);
        self.downstream.retain(|&interface, downstream| {
            if downstream.is_pruned(now) {
                // Section 4.5.2: whoever has lost the first prune may still override this one.
                if let Some(link) = links.get(interface, version).filter(|link| link.neighbours.len() > 1) {
                    let own = link.own;
                    links.list(interface, own, channel, false);
                }
            }
            !downstream.is_over(now)
        });
        let due: Vec<u32> = self
            .asserts
            .iter()
            .filter(|(_, state)| state.deadline() <= now)
            .map(|(&interface, _)| interface)
            .collect();
        for interface in due {
            let own = self.own_distance(channel, interface, links);
            match (self.asserts.get_mut(&interface), own) {
                (Some(state @ AssertState::Winner { .. }), Some(own)) => {
                    *state = AssertState::winning(now);
                    links.assert(now, interface, channel, own.metric);
                }
                _ => _ = self.asserts.remove(&interface),
            }
        }
    }

    /// Brings everything in line with what has changed: asserts that have no reason any more end, the router joins or
    /// leaves the tree, or follows a new neighbour. Returns the route of the channel's packets.
    pub(super) fn review(&mut self, now: Instant, channel: Channel, links: &mut Links) -> Option<GroupRoute> {
        // The end of one assert may end another, on the interface towards the source.
        while self.end_asserts(now, channel, links) {}
        let wanted = self.is_wanted(channel, links);
        let towards = self.towards(channel, links);
        self.upstream.follow(now, channel, wanted, towards, links);
        let rpf = self.rpf.filter(|_| wanted)?;
        let egress =
            self.olist(channel, links).filter(|interface| Some(*interface) != rpf.interface).collect();
        Some(GroupRoute { ingress: rpf.interface, upstream: None, egress })
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let downstream = self.downstream.values().map(Downstream::deadline);
        downstream.chain(self.asserts.values().map(AssertState::deadline)).chain(self.upstream.join_at).min()
    }

    /// Whether there is nothing to remember.
    pub(super) fn is_over(&self) -> bool {
        self.downstream.is_empty() && self.members.is_empty() && self.asserts.is_empty() && !self.is_own
    }

    /// Ends asserts that have no reason any more (section 4.6.1); false if there were none.
    fn end_asserts(&mut self, now: Instant, channel: Channel, links: &mut Links) -> bool {
        let ends = |(&interface, state): (&u32, &AssertState)| {
            let own = self.own_distance(channel, interface, links);
            let over = match state {
                AssertState::Winner { .. } => own.is_none(),
                AssertState::Loser { winner, .. } => {
                    !self.tracks(channel, interface, links) || own.is_some_and(|own| own.beats(winner))
                }
            };
            over.then_some((interface, matches!(state, AssertState::Winner { .. })))
        };
        let Some((interface, withdraws)) = self.asserts.iter().find_map(ends) else { return false };
        self.asserts.remove(&interface);
        if withdraws {
            links.assert(now, interface, channel, super::wire::Assert::CANCEL);
        }
        true
    }

    /// The interfaces on which the channel's packets are wanted from this router (*immediate_olist*).
    fn olist<'a>(&'a self, channel: Channel, links: &'a Links) -> impl Iterator<Item = u32> + 'a {
        let all: BTreeSet<u32> = self.downstream.keys().chain(&self.members).copied().collect();
        all.into_iter()
            .filter(move |&one| self.is_asked(channel, one, links) && !self.has_lost(channel, one, links))
    }

    /// Whether routers on an interface have joined, or this router is the one to serve the members there.
    fn is_asked(&self, channel: Channel, interface: u32, links: &Links) -> bool {
        self.downstream.contains_key(&interface) || self.serves(channel, interface, links)
    }

    /// Whether routers on an interface have joined, or this router serves the members there and has not lost them.
    fn is_included(&self, channel: Channel, interface: u32, links: &Links) -> bool {
        self.downstream.contains_key(&interface)
            || (self.serves(channel, interface, links) && !self.has_lost(channel, interface, links))
    }

    /// Whether this router is the one that brings the channel to members on an interface.
    fn serves(&self, channel: Channel, interface: u32, links: &Links) -> bool {
        self.members.contains(&interface)
            && (links.is_designated(interface, Version::of(channel.1))
                || matches!(self.asserts.get(&interface), Some(AssertState::Winner { .. })))
    }

    /// Whether another router forwards to an interface, and is still the better one to do so (*lost_assert*, section
    /// 4.6.5): a router whose own route has become better takes the interface back.
    fn has_lost(&self, channel: Channel, interface: u32, links: &Links) -> bool {
        let Some(AssertState::Loser { winner, .. }) = self.asserts.get(&interface) else { return false };
        let own = self.rpf.and_then(|rpf| links.distance(interface, Version::of(channel.1), rpf.metric));
        self.rpf.and_then(|rpf| rpf.interface) != Some(interface) && own.is_none_or(|own| winner.beats(&own))
    }

    /// Whether the router itself wants the channel's packets (*JoinDesired*).
    fn is_wanted(&self, channel: Channel, links: &Links) -> bool {
        self.is_own || self.olist(channel, links).next().is_some()
    }

    /// The router's distance from the source that it may claim on an interface, where it forwards (*CouldAssert*).
    fn own_distance(&self, channel: Channel, interface: u32, links: &Links) -> Option<Distance> {
        let rpf = self.rpf.filter(|rpf| rpf.interface != Some(interface))?;
        let forwards = self.is_included(channel, interface, links);
        links.distance(interface, Version::of(channel.1), rpf.metric).filter(|_| forwards)
    }

    /// Whether the router has to know who forwards to an interface (*AssertTrackingDesired*).
    fn tracks(&self, channel: Channel, interface: u32, links: &Links) -> bool {
        self.is_asked(channel, interface, links)
            || (self.rpf.and_then(|rpf| rpf.interface) == Some(interface) && self.is_wanted(channel, links))
    }

    /// The neighbour that is to forward to this router (*RPF'*).
    fn towards(&self, channel: Channel, links: &Links) -> Option<Towards> {
        let rpf = self.rpf?;
        let interface = rpf.interface?;
        let (neighbour, by_assert) = match self.asserts.get(&interface).and_then(AssertState::winner) {
            Some(winner) => (winner, true),
            None => {
                let link = links.get(interface, Version::of(channel.1))?;
                (link.neighbours.primary(rpf.next_hop?)?, false)
            }
        };
        Some(Towards { interface, neighbour, by_assert })
    }
}

impl Upstream {
    /// The upstream state machine (section 4.5.5).
    fn follow(
        &mut self,
        now: Instant,
        channel: Channel,
        wanted: bool,
        towards: Option<Towards>,
        links: &mut Links,
    ) {
        let before = std::mem::replace(&mut self.towards, towards.filter(|_| wanted));
        let tell = |at: Option<Towards>, joined: bool, links: &mut Links| {
            if let Some(Towards { interface, neighbour, .. }) = at {
                links.list(interface, neighbour, channel, joined);
            }
        };
        let same = |one: Towards, other: Towards| {
            (one.interface, one.neighbour) == (other.interface, other.neighbour)
        };
        let has_moved = match (before, towards) {
            (Some(before), Some(towards)) => !same(before, towards),
            (before, towards) => before.is_some() != towards.is_some(),
        };
        match (self.join_at.is_some(), wanted) {
            (false, false) => {}
            (true, false) => {
                tell(before, false, links);
                self.join_at = None;
            }
            (true, true) if has_moved => {
                let by_assert = |one: Option<Towards>| one.is_some_and(|one| one.by_assert);
                let on_one_link =
                    before.zip(towards).is_some_and(|(one, other)| one.interface == other.interface);
                if let (true, Some(Towards { interface, .. })) =
                    (on_one_link && (by_assert(before) || by_assert(towards)), towards)
                {
                    self.hasten(now + links.override_delay(interface, Version::of(channel.1)));
                } else {
                    tell(before, false, links);
                    tell(towards, true, links);
                    self.join_at = Some(now + links.config.join_interval);
                }
            }
            (_, true) if self.join_at.is_none_or(|at| at <= now) => {
                tell(towards, true, links);
                self.join_at = Some(now + links.config.join_interval);
            }
            (_, true) => {}
        }
    }

    /// Sets the time of the next join, if it is later.
    fn hasten(&mut self, at: Instant) {
        self.join_at = self.join_at.map(|join_at| join_at.min(at));
    }
}
