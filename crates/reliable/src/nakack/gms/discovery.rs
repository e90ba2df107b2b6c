//! PING and MERGE2: finding a coordinator to join, and the coordinators of other views to merge with.
//!
//! Whoever is heard of is asked whether it is alive before a view changes for its sake: one that does not exist costs a
//! few packets, and holds up nobody.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hopcast_core::{Duration, Instant};

use super::super::unicast::Unicast;
use super::super::wire::{Control, MAX_MEMBERS, MemberId, View};
use super::{Action, Membership, State};

/// A member of another view, or of none, that is to be in this one.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Candidate {
    pub(super) address: SocketAddr,
    since: Instant,
    is_alive: bool,
}

impl Candidate {
    /// One that has answered.
    #[cfg(test)]
    pub(super) const fn alive(now: Instant, address: SocketAddr) -> Self {
        Self { address, since: now, is_alive: true }
    }

    pub(super) const fn is_alive(&self) -> bool {
        self.is_alive
    }
}

/// The search for a coordinator.
#[derive(Debug, Default)]
pub(super) struct Discovery {
    /// When it began.
    since: Option<Instant>,
    /// When to ask again.
    due: Option<Instant>,
    /// Coordinators that were asked to let this member in, and those that lead a change with it.
    asked: BTreeMap<MemberId, SocketAddr>,
    /// When to stop waiting for them.
    until: Option<Instant>,
}

impl Discovery {
    /// This member is in a view.
    pub(super) fn settled(&mut self) {
        *self = Self { asked: std::mem::take(&mut self.asked), ..Self::default() };
        while self.asked.len() > MAX_MEMBERS {
            self.asked.pop_first();
        }
    }

    /// The address of a leader of another view.
    pub(super) fn leader_address(&self, member: MemberId) -> Option<(MemberId, SocketAddr)> {
        self.asked.get(&member).map(|&address| (member, address))
    }

    pub(super) fn remember(&mut self, (member, address): (MemberId, SocketAddr)) {
        if self.asked.len() < 2 * MAX_MEMBERS || self.asked.contains_key(&member) {
            self.asked.insert(member, address);
        } else {
            self.asked.pop_first();
            self.asked.insert(member, address);
        }
    }
}

/// Time between two questions who is there. Chosen: four within the time of the search.
const QUESTIONS: u64 = 4;
/// Time that a coordinator has to let one in (join_timeout of JGroups 2.12's class GMS; udp.xml has 3 s, which
/// a change of views at a loss of 30 % can take).
const JOIN: Duration = Duration::from_secs(5);
/// Time that a candidate has to answer. Chosen: UNICAST has tried four times by then.
const ALIVE: Duration = Duration::from_secs(4);
/// Time after a change in which what is said of the view before it is not news.
const SETTLES: Duration = Duration::from_secs(5);

impl Membership {
    /// Somebody asks who is there: coordinators answer.
    pub(in super::super) fn sought(&self, from: SocketAddr, actions: &mut Vec<Action>) {
        if self.is_leader() {
            actions.push(Action::Answer(from));
        }
    }

    /// A coordinator says which view it has.
    pub(in super::super) fn found(
        &mut self,
        now: Instant,
        from: SocketAddr,
        view: &View,
        actions: &mut Vec<Action>,
    ) {
        let Some(&(coordinator, address)) = view.members.first() else { return };
        if coordinator == self.own.0 || view.id == self.view.id || self.state == State::Left {
            return;
        }
        if self.state == State::Seeks {
            if self.discovery.until.is_none() && view.members.len() >= self.limit() {
                // It is full: the search begins again, and goes on until there is room.
                self.counted.joins_refused += 1;
                self.discovery.since = Some(now);
            } else if self.discovery.until.is_none() {
                self.discovery.until = Some(now + JOIN);
                self.discovery.remember((coordinator, address));
                actions.push(Action::Tell((coordinator, address), Control::Join));
            }
            return;
        }
        let is_settled = now.since(self.installed) >= SETTLES;
        let is_ours = self.view.members.iter().any(|&(member, at)| member == coordinator && at == from);
        if !self.is_leader() {
            let leader = self.leader().map(|(leader, _)| leader);
            let has_leader = leader.is_some_and(|leader| view.has(leader));
            // This view's leader, and others, have gone on without this member.
            if has_leader && !view.has(self.own.0) && view.id.number > self.view.id.number && is_settled {
                self.alone(now, actions);
            }
            return;
        }
        if coordinator < self.own.0 && !is_ours {
            // It leads what comes of this, and is to know of this view.
            actions.push(Action::Answer(address));
            return;
        }
        self.reforms |= is_ours && is_settled && self.promised.is_none();
        let is_new = |&&(member, _): &&(MemberId, SocketAddr)| {
            !self.view.has(member) && !self.candidates.contains_key(&member)
        };
        let new = view.members.iter().filter(is_new).count();
        if new > 0 && new + self.view.members.len() + self.candidates.len() > self.limit() {
            self.counted.joins_refused += 1;
            return;
        }
        for &member in &view.members {
            self.candidate(now, member, actions);
        }
    }

    /// A member that may be let in: it is asked whether it is alive.
    pub(super) fn candidate(
        &mut self,
        now: Instant,
        (member, address): (MemberId, SocketAddr),
        actions: &mut Vec<Action>,
    ) {
        let is_known = self.view.has(member) || self.candidates.contains_key(&member);
        if member == self.own.0 || is_known || !self.is_leader() {
            return;
        }
        if self.candidates.len() + self.view.members.len() >= self.limit() {
            self.counted.joins_refused += 1;
            return;
        }
        self.candidates.insert(member, Candidate { address, since: now, is_alive: false });
        actions.push(Action::Tell((member, address), Control::AreYouAlive));
    }

    /// Looks which candidates have answered.
    pub(in super::super) fn answered(&mut self, now: Instant, unicast: &Unicast) {
        let mut is_news = false;
        self.candidates.retain(|&member, candidate| {
            if !candidate.is_alive && unicast.heard(member).is_some_and(|at| at >= candidate.since) {
                candidate.is_alive = true;
                is_news = true;
            }
            candidate.is_alive || now.since(candidate.since) < ALIVE
        });
        // Others of the same view answer within a round trip or two.
        if is_news && self.proposal.is_none() {
            self.retry = self.retry.max(now + TOGETHER);
        }
    }

    /// Searches, or announces the view.
    pub(super) fn discover(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if self.state == State::Seeks {
            let since = *self.discovery.since.get_or_insert(now);
            if self.discovery.until.is_some_and(|until| until <= now) {
                // Not let in: the search begins again.
                (self.discovery.until, self.discovery.since) = (None, Some(now));
            } else if self.discovery.until.is_none() && now.since(since) >= self.stack.discovery {
                self.state = State::Member;
                self.discovery.settled();
                self.announce = now;
            }
            if self.discovery.until.is_none()
                && self.state == State::Seeks
                && self.discovery.due.is_none_or(|due| due <= now)
            {
                self.discovery.due = Some(now + self.stack.discovery / QUESTIONS);
                actions.push(Action::Seek);
            }
        }
        if self.state != State::Seeks && self.announce <= now {
            self.announce = now + self.stack.merge_every.mul_f64(0.5 + self.random.uniform());
            if self.is_leader() {
                actions.push(Action::Announce);
            }
        }
    }

    pub(super) fn discovery_deadline(&self) -> Option<Instant> {
        if self.state != State::Seeks {
            let alive = self.candidates.values().filter(|candidate| !candidate.is_alive);
            let alive = alive.map(|candidate| candidate.since + ALIVE).min();
            return alive.into_iter().chain([self.announce]).min();
        }
        let Some(since) = self.discovery.since else { return Some(Instant::ZERO) };
        match self.discovery.until {
            Some(until) => Some(until),
            None => Some((since + self.stack.discovery).min(self.discovery.due.unwrap_or(since))),
        }
    }
}

/// Time in which candidates are gathered. Chosen: a few round trips, so that those of one view come together.
const TOGETHER: Duration = Duration::from_millis(200);
