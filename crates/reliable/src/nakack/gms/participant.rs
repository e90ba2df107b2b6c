//! A member that takes part in a change of views: what it promises, and how it goes over to the next.

use std::net::SocketAddr;

use hopcast_core::{Duration, Instant};

use super::super::epoch::Epoch;
use super::super::wire::{Control, MemberId, Together, View, ViewId};
use super::{ANSWER, Action, MAX_JUMP, Membership, Promise, State};

impl Membership {
    /// The first step of a change, at one that takes part.
    pub(super) fn prepare(
        &mut self,
        now: Instant,
        from: (MemberId, SocketAddr),
        proposal: ViewId,
        epoch: &Epoch,
        actions: &mut Vec<Action>,
    ) {
        if proposal.leader != from.0 || proposal.number.saturating_sub(self.highest) > MAX_JUMP {
            return;
        }
        let is_own = from.0 == self.own.0;
        if proposal.number <= self.highest && !is_own {
            let refusal = Control::Refused { proposal, promised: self.highest };
            actions.push(Action::Tell(from, refusal));
            return;
        }
        if !is_own && self.proposal.take().is_some() {
            self.retry_later(now);
        }
        if !self.view.has(from.0) {
            self.discovery.remember(from);
        }
        self.highest = self.highest.max(proposal.number);
        self.promised = Some(Promise { proposal, since: now, is_fetching: false, is_ready: false });
        actions.push(Action::Freeze);
        // Nothing comes between this and the freezing, so what is there now is what will be.
        let answer = Control::Flushed { proposal, view: self.view.id, have: epoch.digest() };
        if is_own {
            self.inbox.push_back(answer);
        } else {
            actions.push(Action::Tell(from, answer));
        }
    }

    pub(super) fn tell_leader(&mut self, proposal: ViewId, control: Control, actions: &mut Vec<Action>) {
        if proposal.leader == self.own.0 {
            self.inbox.push_back(control);
            return;
        }
        let known = self.view.members.iter().copied().find(|&(member, _)| member == proposal.leader);
        let known = known.or(self.discovery.leader_address(proposal.leader));
        if let Some(leader) = known {
            actions.push(Action::Tell(leader, control));
        }
    }

    /// The last step: the view is this one from now on, or this member has left.
    pub(super) fn install(
        &mut self,
        now: Instant,
        view: View,
        together: Together,
        actions: &mut Vec<Action>,
    ) {
        self.promised = None;
        self.proposal = None;
        if !view.has(self.own.0) {
            if self.state == State::Leaves {
                self.state = State::Left;
                actions.push(Action::Install(None));
                return;
            }
            return self.alone(now, actions);
        }
        self.counted.views += 1;
        let gone = self.view.members.iter().filter(|&&(member, _)| !view.has(member)).count();
        let left = self.view.members.iter().filter(|&&(member, _)| self.leavers.contains(&member)).count();
        if view.id.leader == self.own.0 {
            self.counted.expelled += gone.saturating_sub(left) as u64;
        }
        self.highest = self.highest.max(view.id.number);
        if self.state == State::Seeks {
            self.state = State::Member;
        }
        self.view = view.clone();
        self.installed = now;
        self.reforms = false;
        if view.members.len() >= self.expects {
            self.waits = None;
        }
        self.leavers.retain(|&member| view.has(member));
        self.candidates.retain(|&member, _| !view.has(member));
        self.follow(now);
        self.discovery.settled();
        self.announce = now + self.stack.merge_every.mul_f64(0.5 + self.random.uniform());
        self.retry = now;
        actions.push(Action::Install(Some((view, together))));
        if self.state == State::Leaves {
            self.ask_to_leave(actions);
        }
    }

    /// The others have gone on without this member, or nothing came of its promise: it is a view of its own, until
    /// MERGE2 finds the others.
    pub(super) fn alone(&mut self, now: Instant, actions: &mut Vec<Action>) {
        self.counted.left_behind += 1;
        self.highest += 1;
        let id = ViewId { number: self.highest, leader: self.own.0 };
        self.candidates.clear();
        let view = View { id, members: vec![self.own] };
        self.install(now, view, Together::of(std::iter::once(0)), actions);
        self.announce = now + self.stack.verify;
        (self.waits, self.expects) = (Some(now + self.stack.merge_every * 2 + ANSWER), 2);
    }

    pub(super) fn follow(&mut self, now: Instant) {
        let others = self.view.members.iter().map(|&(member, _)| member);
        self.failures.follow(now, others.filter(|&member| member != self.own.0));
    }

    /// Members that this one watches: the leader watches all, and all watch the leader.
    pub(super) fn watched(&self) -> Vec<MemberId> {
        let leader = self.leader().map(|(leader, _)| leader);
        if leader == Some(self.own.0) {
            return self.view.members.iter().map(|&(member, _)| member).collect();
        }
        leader.into_iter().collect()
    }

    /// Time after which a promise of which nothing came is no longer waited for: longer than its leader takes to find
    /// out that members are dead, and the others that it is.
    pub(super) fn patience(&self) -> Duration {
        self.stack.stalled_after + (self.stack.suspect_after + self.stack.verify) * 2 + ANSWER * 2
    }

    pub(super) fn give_up_waiting(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if self.promised.is_some_and(|promise| now.since(promise.since) >= self.patience()) {
            self.alone(now, actions);
        }
    }

    pub(super) fn ask_to_leave(&mut self, actions: &mut Vec<Action>) {
        self.leavers.insert(self.own.0);
        if let Some(leader) = self.leader().filter(|&(leader, _)| leader != self.own.0) {
            actions.push(Action::Tell(leader, Control::Leave));
        }
    }
}
