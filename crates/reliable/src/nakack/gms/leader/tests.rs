//! When a leader begins a change of views, with whom, and what it does with the answers.

use hopcast_core::{Duration, Instant, Seed};

use super::super::{ANSWER, Action, Candidate, MAX_JUMP, Membership};
use crate::nakack::epoch::Epoch;
use crate::nakack::tests::{config, id, told};
use crate::nakack::wire::{Control, MAX_MEMBERS, MemberId, View, ViewId};
use crate::nakack::{Stack, Start};
use crate::testing::address;

const ONE: Duration = Duration::from_millis(1);

/// A member of a view whose others are what the test says.
struct Member {
    membership: Membership,
    epoch: Epoch,
    now: Instant,
}

impl Member {
    fn new(rank: usize) -> Self {
        Self::of(rank, 3)
    }

    /// A member of a view of some number of them.
    fn of(rank: usize, members: usize) -> Self {
        let (start, stack) = (told(members), Stack::default());
        let Start::Told(members) = start.clone() else { panic!() };
        let view = View { id: ViewId { number: 1, leader: id(0) }, members };
        let random = |name| Seed::new(1, 0).stream(&[name], rank as u64);
        let now = Instant::ZERO;
        let epoch = Epoch::new(now, view, &config(rank, start.clone(), &stack), 1, random("epoch"));
        let own = (id(rank), address(rank));
        Self { membership: Membership::new(own, &start, &stack, now, random("membership")), epoch, now }
    }

    /// Does what is to be done in its view: the control messages that it sends, and to whom.
    fn apply(&mut self, actions: Vec<Action>) -> Vec<(MemberId, Control)> {
        let mut sent = Vec::new();
        for action in actions {
            match action {
                Action::Tell((member, _), control) => sent.push((member, control)),
                Action::Freeze => self.epoch.freeze(),
                Action::Fetch(targets) => assert!(self.epoch.fetch(self.now, &targets)),
                Action::Seek | Action::Announce | Action::Answer(_) | Action::Install(_) => {}
            }
        }
        sent
    }

    fn hear(&mut self, from: usize, control: Control) -> Vec<(MemberId, Control)> {
        let mut actions = Vec::new();
        let from = (id(from), address(from));
        self.membership.heard(self.now, from.0, true);
        self.membership.control(self.now, from, control, &self.epoch, &mut actions);
        self.apply(actions)
    }

    /// Goes on after a time in which the others were heard.
    fn wake_after(&mut self, time: Duration, heard: &[usize]) -> Vec<(MemberId, Control)> {
        self.now += time;
        heard.iter().for_each(|&member| self.membership.heard(self.now, id(member), true));
        let mut actions = Vec::new();
        self.membership.wake(self.now, &self.epoch, &mut actions);
        self.apply(actions)
    }

    fn flushed(&mut self, from: usize, number: u32) -> Vec<(MemberId, Control)> {
        let proposal = ViewId { number, leader: id(0) };
        let view = self.epoch.view().id;
        self.hear(from, Control::Flushed { proposal, view, have: vec![1; 3] })
    }
}

/// To whom a proposal of this number goes.
fn prepared(sent: &[(MemberId, Control)], number: u32) -> Vec<MemberId> {
    let is_it = |control: &Control| *control == Control::Prepare(ViewId { number, leader: id(0) });
    sent.iter().filter(|(_, control)| is_it(control)).map(|&(member, _)| member).collect()
}

fn fetches(sent: &[(MemberId, Control)]) -> usize {
    sent.iter().filter(|(_, control)| matches!(control, Control::Fetch { .. })).count()
}

#[test]
fn who_does_not_answer_a_proposal_is_left_out_of_the_next() {
    let mut leader = Member::new(0);
    let sent = leader.hear(2, Control::Leave);
    assert_eq!(prepared(&sent, 2), [id(1), id(2)], "who leaves takes part");
    assert_eq!(leader.flushed(2, 2), []);
    assert_eq!(leader.wake_after(ANSWER.saturating_sub(ONE), &[1, 2]), []);
    let sent = leader.wake_after(ONE, &[1, 2]);
    assert_eq!(prepared(&sent, 3), [id(2)], "though it is heard");
}

#[test]
fn members_have_longer_to_fetch_than_to_answer_and_from_the_last_answer_on() {
    let mut leader = Member::new(0);
    leader.hear(2, Control::Leave);
    leader.wake_after(ANSWER / 2, &[1, 2]);
    assert_eq!(leader.flushed(2, 2), []);
    // One that says something else afterwards is not believed.
    let (proposal, view) = (ViewId { number: 2, leader: id(0) }, leader.epoch.view().id);
    assert_eq!(leader.hear(2, Control::Flushed { proposal, view, have: vec![99; 3] }), []);
    let sent = leader.flushed(1, 2);
    assert_eq!(fetches(&sent), 2);
    let is_99 = |control: &Control| match control {
        Control::Fetch { targets, .. } => targets.iter().any(|&(number, _)| number == 99),
        _ => false,
    };
    assert!(!sent.iter().any(|(_, control)| is_99(control)));
    let deadline =
        leader.membership.proposal.as_ref().map(|proposal| leader.membership.proposal_deadline(proposal));
    assert_eq!(deadline, Some(leader.now + Stack::default().stalled_after + ANSWER));
}

#[test]
fn a_refusal_of_one_that_takes_part_has_the_next_proposal_later_and_with_a_higher_number() {
    let mut leader = Member::new(0);
    leader.hear(2, Control::Leave);
    let refused = |number, promised| {
        let proposal = ViewId { number, leader: id(0) };
        Control::Refused { proposal, promised }
    };
    for (from, control) in [(7, refused(2, 9)), (1, refused(1, 9)), (1, refused(2, 3 + MAX_JUMP))] {
        leader.hear(from, control);
        assert!(leader.membership.proposal.is_some(), "it is not for it to refuse that so");
    }
    assert_eq!(leader.hear(1, refused(2, 9)), []);
    assert_eq!(leader.wake_after(Duration::from_millis(99), &[1, 2]), []);
    let sent = leader.wake_after(Duration::from_millis(501), &[1, 2]);
    assert_eq!(prepared(&sent, 10), [id(1), id(2)]);
}

#[test]
fn one_that_has_promised_another_leader_waits_for_twice_the_time_of_an_answer() {
    let mut leader = Member::new(0);
    let theirs = ViewId { number: 5, leader: id(7) };
    assert!(
        matches!(leader.hear(7, Control::Prepare(theirs))[..], [(to, Control::Flushed { .. })] if to == id(7))
    );
    let sent = leader.hear(2, Control::Leave);
    assert_eq!(sent, []);
    assert_eq!(leader.wake_after((ANSWER * 2).saturating_sub(ONE), &[1, 2]), []);
    let sent = leader.wake_after(ONE, &[1, 2]);
    assert_eq!(prepared(&sent, 6), [id(1), id(2)]);
}

#[test]
fn suspicions_of_members_are_asked_about_and_those_of_others_are_not() {
    let mut leader = Member::new(0);
    let suspect = |member| Control::Suspect { member: id(member), is_stalled: false };
    assert_eq!(leader.hear(7, suspect(2)), [], "it is not in the view");
    assert_eq!(leader.hear(1, suspect(0)), []);
    assert_eq!(leader.hear(1, suspect(2)), [(id(2), Control::AreYouAlive)]);
    assert_eq!(leader.hear(1, suspect(2)), [], "once");
    // It does not answer.
    let sent = leader.wake_after(Stack::default().verify, &[1]);
    assert_eq!(prepared(&sent, 2), [id(1)]);
    assert_eq!(leader.membership.counted.suspected, 1);
    assert!(sent.iter().all(|(to, _)| *to == id(1)), "a leader reports to nobody: {sent:?}");
}

#[test]
fn a_leader_that_finds_a_participant_dead_begins_anew_at_once() {
    let mut leader = Member::new(0);
    let suspect = Control::Suspect { member: id(1), is_stalled: false };
    leader.hear(2, suspect);
    let sent = leader.hear(2, Control::Leave);
    assert_eq!(prepared(&sent, 2), [id(1), id(2)]);
    let sent = leader.wake_after(Stack::default().verify, &[2]);
    assert_eq!(prepared(&sent, 3), [id(2)]);
}

/// A leader whose proposal was refused, so that it waits before the next one.
fn refused(leader: &mut Member) {
    assert_eq!(prepared(&leader.hear(2, Control::Leave), 2), [id(1), id(2)]);
    let proposal = ViewId { number: 2, leader: id(0) };
    assert_eq!(leader.hear(2, Control::Refused { proposal, promised: 9 }), []);
}

#[test]
fn a_member_that_is_found_dead_or_elsewhere_is_left_out_at_once_whatever_was_refused_before() {
    let (stack, mut leader) = (Stack::default(), Member::new(0));
    leader.hear(2, Control::Suspect { member: id(1), is_stalled: false });
    leader.now += stack.verify.saturating_sub(ONE);
    refused(&mut leader);
    assert_eq!(prepared(&leader.wake_after(ONE, &[2]), 10), [id(2)]);

    let mut leader = Member::new(0);
    let elsewhere = leader.membership.elsewhere();
    leader.wake_after(Duration::ZERO, &[1, 2]);
    leader.now += elsewhere.saturating_sub(ONE);
    refused(&mut leader);
    leader.membership.heard(leader.now, id(1), false);
    assert_eq!(prepared(&leader.wake_after(ONE, &[2]), 10), [id(2)]);
    assert_eq!(leader.membership.counted.suspected, 1);
}

#[test]
fn a_candidate_that_has_not_answered_takes_part_in_nothing() {
    let mut leader = Member::new(0);
    assert_eq!(leader.hear(7, Control::Join), [(id(7), Control::AreYouAlive)]);
    assert_eq!(prepared(&leader.hear(2, Control::Leave), 2), [id(1), id(2)]);
}

#[test]
fn a_full_view_is_not_made_anew_for_one_that_finds_no_room_in_it() {
    // One that has been let in elsewhere may have filled it since it answered.
    let mut leader = Member::of(0, MAX_MEMBERS);
    leader.membership.candidates.insert(id(500), Candidate::alive(leader.now, address(500)));
    assert_eq!(leader.wake_after(ONE, &[]), []);
    assert!(leader.membership.proposal.is_none());
    let sent = prepared(&leader.hear(2, Control::Leave), 2);
    assert!(sent.len() == MAX_MEMBERS - 1 && !sent.contains(&id(500)), "{sent:?}");
}

#[test]
fn where_all_leave_the_others_are_told_of_a_view_that_they_are_not_in() {
    let mut leader = Member::new(0);
    leader.hear(1, Control::Leave);
    leader.hear(2, Control::Leave);
    let mut actions = Vec::new();
    leader.membership.leave(leader.now, &leader.epoch, &mut actions);
    leader.apply(actions);
    let first = ViewId { number: 2, leader: id(0) };
    leader.hear(1, Control::Refused { proposal: first, promised: 2 });
    let sent = leader.wake_after(Duration::from_millis(600), &[1, 2]);
    assert_eq!(prepared(&sent, 3), [id(1), id(2)]);
    leader.flushed(1, 3);
    leader.flushed(2, 3);
    let second = ViewId { number: 3, leader: id(0) };
    let mut sent = leader.hear(1, Control::Ready(second));
    sent.extend(leader.hear(2, Control::Ready(second)));
    let views = sent.iter().filter_map(|(to, control)| match control {
        Control::Commit { view, .. } => Some((*to, view.members.clone())),
        _ => None,
    });
    let none = vec![(id(0), address(0))];
    assert_eq!(views.collect::<Vec<_>>(), [(id(1), none.clone()), (id(2), none)]);
    assert!(leader.membership.has_left());
}
