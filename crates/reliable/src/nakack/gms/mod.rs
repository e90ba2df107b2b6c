//! GMS: which members the group has, and that all agree on it.
//!
//! The first member of a view coordinates it. When one wants to join, to leave, or is dead, or when another view is
//! found, the coordinator **leads a change** in three steps, each of which all who take part answer:
//!
//! 1. *Prepare*: nobody sends anything new, and each says what it has of its view.
//! 2. *Fetch*: each fetches what somebody else has of its view.
//! 3. *Commit*: each delivers what it has, and goes over to the new view; and learns who comes from the same view as it
//!    does, so that nothing is missing between the two of what those send.
//!
//! So all that go from one view to the next together have delivered the same. A member promises to take part in one
//! proposal, and in another only if that has a higher number; one that has promised waits until a view comes of it. If
//! the leader dies, the next member in seniority proposes again. Those that were at the second step and those that have
//! the new view already are then members of different views, as those that a partition has parted: each brings its own
//! view to its end, and none lacks anything that one of the others had.

mod discovery;
mod failure;
mod leader;
mod participant;
mod proposal;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use hopcast_core::{Duration, Instant, Stream};

use self::discovery::{Candidate, Discovery};
use self::failure::Failures;
use self::proposal::Proposal;
use super::config::{Stack, Start};
use super::epoch::Epoch;
use super::wire::{Control, MemberId, Together, View, ViewId, max_members};

/// The membership, as one member sees it.
#[derive(Debug)]
pub(super) struct Membership {
    own: (MemberId, SocketAddr),
    stack: Stack,
    view: View,
    /// When the view was installed.
    installed: Instant,
    /// Highest number of a proposal or view so far.
    highest: u32,
    promised: Option<Promise>,
    proposal: Option<Proposal>,
    /// Earliest time of the next proposal.
    retry: Instant,
    failures: Failures,
    leavers: BTreeSet<MemberId>,
    candidates: BTreeMap<MemberId, Candidate>,
    /// Whether a member of the view has another: the view is to be made anew.
    reforms: bool,
    discovery: Discovery,
    /// When to announce the view to other coordinators.
    announce: Instant,
    /// When to look for members that stall.
    stalls: Instant,
    state: State,
    /// Until when one that is alone holds back its messages, as the others are likely to be found.
    waits: Option<Instant>,
    /// Members of a view that end that.
    expects: usize,
    random: Stream,
    /// Control messages to this member itself.
    inbox: VecDeque<Control>,
    pub(super) counted: Counted,
}

/// A promise to take part in a proposal.
#[derive(Clone, Copy, Debug)]
struct Promise {
    proposal: ViewId,
    since: Instant,
    /// Whether this member is at the second step, and has said that it has everything.
    is_fetching: bool,
    is_ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Looks for others, and sends nothing.
    Seeks,
    /// In a view.
    Member,
    /// Wants to leave.
    Leaves,
    /// Has left.
    Left,
}

/// Counters of a membership.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) views: u64,
    pub(super) suspected: u64,
    pub(super) expelled: u64,
    pub(super) merges: u64,
    /// Times that this member found itself expelled, or gave up waiting for a view.
    pub(super) left_behind: u64,
    /// Times that a view was too full to let a member or another view in: at its coordinator, and at the member.
    pub(super) joins_refused: u64,
}

/// An action of the member.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Send a control message by UNICAST.
    Tell((MemberId, SocketAddr), Control),
    /// Ask the group who is there.
    Seek,
    /// Say to all which view this is.
    Announce,
    /// Say it to one.
    Answer(SocketAddr),
    /// Send nothing new in this view.
    Freeze,
    /// Fetch what is missing up to these targets.
    Fetch(Vec<(u32, MemberId)>),
    /// Go over to another view, with those of its members that come from the same view; `None` if this member has left.
    Install(Option<(View, Together)>),
}

/// Time that a member has to answer the first question of a change (merge_timeout of JGroups 2.12's class GMS).
const ANSWER: Duration = Duration::from_secs(5);
/// A proposal's number is this much higher than the last at most; a forged one is not to use up all numbers.
const MAX_JUMP: u32 = 1 << 20;
/// Time in which two leaders that got into each other's way draw when to try again. Chosen: some round trips.
const RETRY: Duration = Duration::from_millis(500);
/// Looks for members that stall within the time after which one does. Chosen: in the second half of it each asks once
/// more, so one whose answers are lost by chance is expelled once in a million times at a loss of 30 %.
const LOOKS: u64 = 40;

impl Membership {
    pub(super) fn new(
        own: (MemberId, SocketAddr),
        start: &Start,
        stack: &Stack,
        now: Instant,
        mut random: Stream,
    ) -> Self {
        let limit = max_members(own.1);
        let (view, state) = match start {
            Start::Told(members) if members.iter().take(limit).any(|&(member, _)| member == own.0) => {
                let mut members = members.clone();
                members.truncate(limit);
                let leader = members[0].0;
                (View { id: ViewId { number: 1, leader }, members }, State::Member)
            }
            _ => (View { id: ViewId { number: 0, leader: own.0 }, members: vec![own] }, State::Seeks),
        };
        let announce = now + stack.merge_every.mul_f64(0.5 + random.uniform());
        let mut membership = Self {
            own,
            stack: stack.clone(),
            installed: now,
            highest: view.id.number,
            view,
            promised: None,
            proposal: None,
            retry: now,
            failures: Failures::default(),
            leavers: BTreeSet::new(),
            candidates: BTreeMap::new(),
            reforms: false,
            discovery: Discovery::default(),
            announce,
            stalls: now + stack.stalled_after / LOOKS,
            state,
            waits: None,
            expects: 2,
            random,
            inbox: VecDeque::new(),
            counted: Counted::default(),
        };
        membership.follow(now);
        membership
    }

    pub(super) const fn view(&self) -> &View {
        &self.view
    }

    #[cfg(test)]
    pub(super) fn state(&self) -> String {
        let Self {
            state,
            promised,
            proposal,
            candidates,
            discovery,
            failures,
            leavers,
            reforms,
            retry,
            announce,
            ..
        } = self;
        format!(
            "{state:?} {promised:?} {proposal:?} {candidates:?} {discovery:?} {failures:?} {leavers:?} {reforms} {retry} {announce}"
        )
    }

    /// Whether messages can be sent.
    pub(super) fn is_member(&self) -> bool {
        matches!(self.state, State::Member | State::Leaves)
    }

    /// Whether new messages wait, since members are likely to be found that lack them otherwise.
    pub(super) const fn holds_back(&self) -> bool {
        self.waits.is_some()
    }

    /// Waits until the view has this number of members, or for ten times the search.
    pub(super) fn expect(&mut self, now: Instant, members: usize) {
        if self.state == State::Seeks && members > 1 {
            (self.expects, self.waits) = (members, Some(now + self.stack.discovery * 10));
        }
    }

    /// Whether it looks for others, and is in no view.
    pub(super) fn is_seeking(&self) -> bool {
        self.state == State::Seeks
    }

    /// Whether it wants to leave, or has left: it takes nothing more from its application.
    pub(super) const fn is_leaving(&self) -> bool {
        matches!(self.state, State::Leaves | State::Left)
    }

    pub(super) fn has_left(&self) -> bool {
        self.state == State::Left
    }

    /// Whether the connection to a member is needed: it is in the view, or takes part in a change.
    pub(super) fn keeps(&self, member: MemberId) -> bool {
        self.view.has(member)
            || self.candidates.contains_key(&member)
            || self.proposal.as_ref().is_some_and(|proposal| proposal.participants.contains_key(&member))
            || self.promised.is_some_and(|promise| promise.proposal.leader == member)
    }

    /// This member wants to leave.
    pub(super) fn leave(&mut self, now: Instant, epoch: &Epoch, actions: &mut Vec<Action>) {
        match self.state {
            State::Seeks => {
                self.state = State::Left;
                actions.push(Action::Install(None));
            }
            State::Member => {
                self.state = State::Leaves;
                self.retry = now;
                self.ask_to_leave(actions);
                self.wake(now, epoch, actions);
            }
            State::Leaves | State::Left => {}
        }
    }

    /// A member was heard, by the address that it has in the view; whether by a packet of the view.
    pub(super) fn heard(&mut self, now: Instant, member: MemberId, is_here: bool) {
        self.failures.heard(now, member, is_here);
    }

    /// A control message of a member's.
    pub(super) fn control(
        &mut self,
        now: Instant,
        from: (MemberId, SocketAddr),
        control: Control,
        epoch: &Epoch,
        actions: &mut Vec<Action>,
    ) {
        if self.state == State::Left {
            return;
        }
        self.take(now, from, control, epoch, actions);
        self.settle(now, epoch, actions);
    }

    /// Does what is due.
    pub(super) fn wake(&mut self, now: Instant, epoch: &Epoch, actions: &mut Vec<Action>) {
        if self.state == State::Left {
            return;
        }
        self.waits = self.waits.filter(|&until| until > now);
        self.look_for_failures(now, actions);
        self.discover(now, actions);
        self.lead(now, actions);
        self.settle(now, epoch, actions);
        self.give_up_waiting(now, actions);
    }

    /// A member that stalls, as this one's own STABLE says.
    pub(super) fn stalled(
        &mut self,
        now: Instant,
        member: MemberId,
        epoch: &Epoch,
        actions: &mut Vec<Action>,
    ) {
        if self.is_leader() && self.failures.confirm(now, member, true) {
            self.counted.suspected += 1;
        } else if let Some(leader) = self.leader().filter(|&(leader, _)| leader != member) {
            actions.push(Action::Tell(leader, Control::Suspect { member, is_stalled: true }));
        } else if self.failures.confirm(now, member, true) {
            // The leader itself: the next one is to know.
            self.counted.suspected += 1;
            self.report(member, true, actions);
        }
        self.settle(now, epoch, actions);
    }

    /// Whether it is time to look for members that stall.
    pub(super) fn looks_for_stalls(&mut self, now: Instant) -> bool {
        let is_due = self.stalls <= now;
        if is_due {
            self.stalls = now + self.stack.stalled_after / LOOKS;
        }
        is_due
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.state == State::Left {
            return None;
        }
        let failures = self.failures.deadline(self.stack.suspect_after, self.stack.verify, self.elsewhere());
        let discovery = self.discovery_deadline();
        let proposal = self.proposal.as_ref().map(|proposal| self.proposal_deadline(proposal));
        let wanted = (self.proposal.is_none() && self.wants_change()).then(|| self.next_try());
        let promise = self.promised.map(|promise| promise.since + self.patience());
        let stalls = (self.view.members.len() > 1).then_some(self.stalls);
        [failures, discovery, proposal, wanted, promise, stalls, self.waits].into_iter().flatten().min()
    }

    /// Maximum number of members of its view.
    const fn limit(&self) -> usize {
        max_members(self.own.1)
    }

    /// The first member of the view that is not taken for dead.
    fn leader(&self) -> Option<(MemberId, SocketAddr)> {
        self.view.members.iter().copied().find(|&(member, _)| !self.failures.is_confirmed(member))
    }

    fn is_leader(&self) -> bool {
        self.state != State::Seeks && self.leader().is_some_and(|(leader, _)| leader == self.own.0)
    }

    /// Messages to this member itself, until there are no more.
    pub(super) fn settle(&mut self, now: Instant, epoch: &Epoch, actions: &mut Vec<Action>) {
        while let Some(control) = self.inbox.pop_front() {
            self.take(now, self.own, control, epoch, actions);
        }
        // Whether all is fetched; the epoch of this call is only that of the view if nothing was frozen or installed.
        let is_settled = !actions
            .iter()
            .any(|action| matches!(action, Action::Freeze | Action::Fetch(_) | Action::Install(_)));
        if is_settled
            && epoch.view().id == self.view.id
            && epoch.is_ready()
            && let Some(promise) =
                self.promised.as_mut().filter(|promise| promise.is_fetching && !promise.is_ready)
        {
            promise.is_ready = true;
            let proposal = promise.proposal;
            self.tell_leader(proposal, Control::Ready(proposal), actions);
            while let Some(control) = self.inbox.pop_front() {
                self.take(now, self.own, control, epoch, actions);
            }
        }
    }

    fn take(
        &mut self,
        now: Instant,
        from: (MemberId, SocketAddr),
        control: Control,
        epoch: &Epoch,
        actions: &mut Vec<Action>,
    ) {
        match control {
            Control::AreYouAlive | Control::Credit { .. } => {}
            Control::Join => self.candidate(now, from, actions),
            Control::Leave => {
                if self.view.has(from.0) && self.leavers.insert(from.0) {
                    self.retry = self.retry.min(now);
                    self.lead(now, actions);
                }
            }
            Control::Suspect { member, is_stalled } => {
                self.told_of_suspicion(now, from.0, member, is_stalled, epoch, actions);
            }
            Control::Prepare(proposal) => self.prepare(now, from, proposal, epoch, actions),
            Control::Flushed { proposal, view, have } => {
                self.flushed(now, from.0, proposal, view, have, actions);
            }
            Control::Refused { proposal, promised } => self.refused(now, from.0, proposal, promised),
            Control::Fetch { proposal, targets } => {
                if let Some(promise) = self.promised.as_mut().filter(|promise| promise.proposal == proposal)
                    && proposal.leader == from.0
                {
                    promise.is_fetching = true;
                    promise.since = now;
                    actions.push(Action::Fetch(targets));
                }
            }
            Control::Ready(proposal) => self.ready(now, from.0, proposal, actions),
            Control::Commit { view, together } => {
                let is_promised =
                    self.promised.is_some_and(|promise| promise.proposal == view.id && promise.is_ready);
                if is_promised && view.id.leader == from.0 {
                    self.install(now, view, together, actions);
                }
            }
        }
    }
}
