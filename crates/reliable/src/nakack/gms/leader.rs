//! The leader of a change: when it begins one, and what it does with the answers.

use std::net::SocketAddr;

use hopcast_core::{Duration, Instant};

use super::super::epoch::Epoch;
use super::super::wire::{Control, MemberId, ViewId};
use super::proposal::{Participant, Proposal, Step};
use super::{ANSWER, Action, MAX_JUMP, Membership, RETRY, State};

#[cfg(test)]
mod tests;

impl Membership {
    /// Finds members that are silent, or have not answered.
    pub(super) fn look_for_failures(&mut self, now: Instant, actions: &mut Vec<Action>) {
        self.failures.watch(now, self.watched());
        for member in self.failures.silent(now, self.stack.suspect_after) {
            self.ask_whether_alive(member, actions);
        }
        for member in self.failures.unanswered(now, self.stack.verify) {
            self.counted.suspected += 1;
            self.report(member, false, actions);
            self.retry = self.retry.min(now);
        }
        for _ in self.failures.elsewhere(now, self.elsewhere()) {
            self.counted.suspected += 1;
            self.retry = self.retry.min(now);
        }
    }

    /// Time after which a member that is heard, and not in this view, is in another: one that is dead is found before.
    pub(super) fn elsewhere(&self) -> Duration {
        self.stack.suspect_after * 2 + self.stack.verify
    }

    /// Says to the leader that a member is dead, or stalls.
    pub(super) fn report(&self, member: MemberId, is_stalled: bool, actions: &mut Vec<Action>) {
        if let Some(leader) = self.leader().filter(|&(leader, _)| leader != self.own.0) {
            actions.push(Action::Tell(leader, Control::Suspect { member, is_stalled }));
        }
    }

    /// A member of the view suspects another: this one asks it itself, or looks whether it stalls, and believes nobody.
    pub(super) fn told_of_suspicion(
        &mut self,
        now: Instant,
        from: MemberId,
        member: MemberId,
        is_stalled: bool,
        epoch: &Epoch,
        actions: &mut Vec<Action>,
    ) {
        if !self.view.has(from) {
            return;
        }
        if is_stalled {
            if epoch.lags(member, from) && self.failures.confirm(now, member, true) {
                self.counted.suspected += 1;
            }
        } else if self.failures.suspect(now, member) {
            self.ask_whether_alive(member, actions);
        }
    }

    fn ask_whether_alive(&self, member: MemberId, actions: &mut Vec<Action>) {
        if let Some(&to) = self.view.members.iter().find(|&&(other, _)| other == member) {
            actions.push(Action::Tell(to, Control::AreYouAlive));
        }
    }

    /// Whether this member leads, and there is a reason for another view.
    pub(super) fn wants_change(&self) -> bool {
        if !self.is_leader() {
            return false;
        }
        let gone = |member: MemberId| self.failures.is_confirmed(member) || self.leavers.contains(&member);
        self.promised.is_some_and(|promise| promise.proposal.leader == self.own.0)
            || self.reforms
            || self.state == State::Leaves
            || self.view.members.iter().any(|&(member, _)| gone(member))
            || (self.candidates.values().any(super::Candidate::is_alive)
                && self.view.members.len() < self.limit())
    }

    /// When the next proposal can begin: one that is promised to another leader has its time.
    pub(super) fn next_try(&self) -> Instant {
        let foreign = self.promised.filter(|promise| {
            promise.proposal.leader != self.own.0 && !self.failures.is_confirmed(promise.proposal.leader)
        });
        foreign.map_or(self.retry, |promise| self.retry.max(promise.since + ANSWER * 2))
    }

    /// Begins a change if there is a reason, and goes on with one that is not answered.
    pub(super) fn lead(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if let Some(proposal) = &self.proposal {
            let dead = |member: &MemberId| self.failures.is_confirmed(*member);
            let is_late = self.proposal_deadline(proposal) <= now;
            let is_broken = proposal.participants.keys().any(dead);
            if !is_late && !is_broken {
                return;
            }
            // Who has not answered is left out of the next one.
            let silent = if is_late { proposal.unanswered() } else { Vec::new() };
            self.proposal = None;
            for member in silent {
                self.candidates.remove(&member);
                self.failures.confirm(now, member, false);
            }
        }
        if self.wants_change() && self.next_try() <= now {
            self.propose(now, actions);
        }
    }

    /// When a proposal is given up: some have not answered, or not fetched.
    pub(super) fn proposal_deadline(&self, proposal: &Proposal) -> Instant {
        let is_asking = !proposal.unanswered().is_empty();
        proposal.since + if is_asking { ANSWER } else { self.stack.stalled_after + ANSWER }
    }

    fn propose(&mut self, now: Instant, actions: &mut Vec<Action>) {
        self.highest += 1;
        let id = ViewId { number: self.highest, leader: self.own.0 };
        let old = self.view.members.iter().copied();
        let old = old.filter(|&(member, _)| !self.failures.is_confirmed(member));
        let new = self.candidates.iter().filter(|(_, candidate)| candidate.is_alive());
        let new = new.map(|(&member, candidate)| (member, candidate.address));
        let members: Vec<(MemberId, SocketAddr)> = old.chain(new).take(self.limit()).collect();
        let participant = |&(member, address): &(MemberId, SocketAddr)| {
            let leaves = self.leavers.contains(&member);
            (member, Participant { address, stays: !leaves, step: Step::Asked })
        };
        let participants = members.iter().map(participant).collect();
        self.proposal = Some(Proposal { id, since: now, participants });
        for to in members {
            self.tell(to, Control::Prepare(id), actions);
        }
    }

    /// Sends a message of the leader's, which may be to itself.
    fn tell(&mut self, to: (MemberId, SocketAddr), control: Control, actions: &mut Vec<Action>) {
        if to.0 == self.own.0 {
            self.inbox.push_back(control);
        } else {
            actions.push(Action::Tell(to, control));
        }
    }

    /// A member has said what it has of its view.
    pub(super) fn flushed(
        &mut self,
        now: Instant,
        from: MemberId,
        id: ViewId,
        view: ViewId,
        have: Vec<u32>,
        actions: &mut Vec<Action>,
    ) {
        let Some(proposal) = self.proposal.as_mut().filter(|proposal| proposal.id == id) else { return };
        match proposal.participants.get_mut(&from) {
            Some(participant) if participant.step == Step::Asked => {
                participant.step = Step::Flushed { view, have };
            }
            _ => return,
        }
        if !proposal.is_flushed() {
            return;
        }
        proposal.since = now;
        let targets = proposal.targets();
        let addresses = proposal.participants.iter();
        let addresses: Vec<_> = addresses.map(|(&member, found)| (member, found.address)).collect();
        for to in addresses {
            let targets = targets.get(&to.0).cloned().unwrap_or_default();
            self.tell(to, Control::Fetch { proposal: id, targets }, actions);
        }
    }

    /// A member has all that it was to fetch.
    pub(super) fn ready(&mut self, now: Instant, from: MemberId, id: ViewId, actions: &mut Vec<Action>) {
        let Some(proposal) = self.proposal.as_mut().filter(|proposal| proposal.id == id) else { return };
        if !proposal.participants.get_mut(&from).is_some_and(Participant::has_all) {
            return;
        }
        if !proposal.is_ready() {
            return;
        }
        let view = proposal.view(&self.view);
        let addresses = proposal.participants.iter();
        let addresses: Vec<_> = addresses.map(|(&member, found)| (member, found.address)).collect();
        let is_merge = addresses.iter().any(|&(member, _)| !self.view.has(member));
        self.counted.merges += u64::from(is_merge);
        let own = self.own.0;
        let together = proposal.together(&view);
        for &to in addresses.iter().filter(|&&(member, _)| member != own) {
            // A view that nobody stays in is none: who leaves last just goes.
            let view = if view.members.is_empty() { self.view_of_none(view.id) } else { view.clone() };
            let together = together.get(&to.0).copied().unwrap_or_default();
            self.tell(to, Control::Commit { view, together }, actions);
        }
        let together = together.get(&own).copied().unwrap_or_default();
        self.install(now, view, together, actions);
    }

    fn view_of_none(&self, id: ViewId) -> super::View {
        super::View { id, members: vec![self.own] }
    }

    /// A member has promised a higher number to another: the next proposal has one that is higher still.
    pub(super) fn refused(&mut self, now: Instant, from: MemberId, id: ViewId, promised: u32) {
        let takes_part =
            |proposal: &&Proposal| proposal.id == id && proposal.participants.contains_key(&from);
        if self.proposal.as_ref().filter(takes_part).is_none()
            || promised.saturating_sub(self.highest) > MAX_JUMP
        {
            return;
        }
        self.highest = self.highest.max(promised);
        self.proposal = None;
        self.retry_later(now);
    }

    pub(super) fn retry_later(&mut self, now: Instant) {
        self.retry = now + RETRY.mul_f64(0.2 + self.random.uniform());
    }
}
