//! A change of views at its leader: who takes part, what each has of its view so far, and what each is to fetch.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hopcast_core::Instant;
use hopcast_core::bytes::complete;

use super::super::wire::{MemberId, Together, View, ViewId};

/// A change of views.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) id: ViewId,
    pub(super) since: Instant,
    pub(super) participants: BTreeMap<MemberId, Participant>,
}

/// A member that takes part in a change.
#[derive(Debug)]
pub(super) struct Participant {
    pub(super) address: SocketAddr,
    /// Whether it will be in the view; one that leaves takes part, since others may lack its messages.
    pub(super) stays: bool,
    pub(super) step: Step,
}

/// How far a member has come in a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is asked to send nothing new.
    Asked,
    /// It has said what it has.
    Flushed {
        /// Its view.
        view: ViewId,
        /// Of each member of that view, the number up to which it has all messages.
        have: Vec<u32>,
    },
    /// It has all that it was to fetch of its view.
    Ready(ViewId),
}

impl Participant {
    /// It has all that it was to fetch. False if it was to fetch nothing now.
    pub(super) fn has_all(&mut self) -> bool {
        let Step::Flushed { view, .. } = self.step else { return false };
        self.step = Step::Ready(view);
        true
    }

    /// Its view before this change, once it has all of that.
    const fn came_from(&self) -> Option<ViewId> {
        match self.step {
            Step::Ready(view) => Some(view),
            Step::Asked | Step::Flushed { .. } => None,
        }
    }
}

impl Proposal {
    /// Whether all have said what they have.
    pub(super) fn is_flushed(&self) -> bool {
        self.participants.values().all(|participant| matches!(participant.step, Step::Flushed { .. }))
    }

    /// Whether all have what they were to fetch.
    pub(super) fn is_ready(&self) -> bool {
        self.participants.values().all(|participant| participant.came_from().is_some())
    }

    /// Members that have not answered the first question.
    pub(super) fn unanswered(&self) -> Vec<MemberId> {
        let open = self.participants.iter().filter(|(_, participant)| participant.step == Step::Asked);
        open.map(|(&member, _)| member).collect()
    }

    /// Targets of each member: for each member of the view that it has, the number up to which somebody who takes
    /// part has all messages, and who that is. Those that come from one view get the same.
    pub(super) fn targets(&self) -> BTreeMap<MemberId, Vec<(u32, MemberId)>> {
        let mut views: BTreeMap<ViewId, Vec<(MemberId, &[u32])>> = BTreeMap::new();
        for (&member, participant) in &self.participants {
            if let Step::Flushed { view, have } = &participant.step {
                views.entry(*view).or_default().push((member, have));
            }
        }
        let mut found = BTreeMap::new();
        for members in views.into_values() {
            let len = members.iter().map(|(_, have)| have.len()).min().unwrap_or(0);
            let best = |place: usize| {
                // Numbers may have wrapped: what is compared is how far each is from the first.
                let expected = (1 << 32) | u64::from(members[0].1[place]);
                let full =
                    |&(member, have): &(MemberId, &[u32])| (complete(have[place], 32, expected), member);
                members.iter().map(full).max_by_key(|&(number, _)| number)
            };
            let targets: Vec<_> =
                (0..len).filter_map(best).map(|(number, holder)| (number as u32, holder)).collect();
            found.extend(members.iter().map(|&(member, _)| (member, targets.clone())));
        }
        found
    }

    /// The view that comes of it: those that stay, in the order of the leader's view, and others behind them.
    pub(super) fn view(&self, before: &View) -> View {
        let stays = |member: &MemberId| self.participants.get(member).filter(|participant| participant.stays);
        let old = before.members.iter().map(|&(member, _)| member);
        let new = self.participants.keys().copied().filter(|&member| !before.has(member));
        let members = old.chain(new);
        let members = members.filter_map(|member| stays(&member).map(|found| (member, found.address)));
        View { id: self.id, members: members.collect() }
    }

    /// For each that takes part, those members of the new view that come from the same view as it does.
    pub(super) fn together(&self, view: &View) -> BTreeMap<MemberId, Together> {
        let before = |member: &MemberId| self.participants.get(member).and_then(Participant::came_from);
        let ranks = |from: ViewId| {
            let members = view.members.iter().enumerate();
            members.filter(move |(_, (member, _))| before(member) == Some(from)).map(|(rank, _)| rank as u16)
        };
        let set = |(&member, participant): (&MemberId, &Participant)| {
            participant.came_from().map(|from| (member, Together::of(ranks(from))))
        };
        self.participants.iter().filter_map(set).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(node: u32) -> MemberId {
        MemberId { node, run: 1 }
    }

    fn view(number: u32) -> ViewId {
        ViewId { number, leader: id(1) }
    }

    #[test]
    fn each_fetches_what_somebody_of_its_own_view_has() {
        let mut participants = BTreeMap::new();
        let flushed = |number, have: &[u32]| Step::Flushed { view: view(number), have: have.to_vec() };
        for (node, step) in [
            (1, flushed(4, &[10, u32::MAX, 3])),
            (2, flushed(4, &[9, 2, u32::MAX])),
            (7, flushed(2, &[100, 90])),
        ] {
            let address = SocketAddr::from(([10, 0, 0, node as u8], 1));
            participants.insert(id(node), Participant { address, stays: node != 2, step });
        }
        let proposal = Proposal { id: view(5), since: Instant::ZERO, participants };
        let targets = proposal.targets();
        let after = "2 and 3 come after the end of 32 bits";
        assert_eq!(targets[&id(1)], [(10, id(1)), (2, id(2)), (3, id(1))], "{after}");
        assert_eq!(targets[&id(1)], targets[&id(2)]);
        assert_eq!(targets[&id(7)], [(100, id(7)), (90, id(7))]);
        let before = View {
            id: view(4),
            members: [3, 2, 1].map(|node| (id(node), SocketAddr::from(([10, 0, 0, node as u8], 1)))).into(),
        };
        let members: Vec<_> = proposal.view(&before).members.iter().map(|&(member, _)| member.node).collect();
        assert_eq!(members, [1, 7]);
    }

    fn participant(stays: bool, step: Step) -> Participant {
        Participant { address: SocketAddr::from(([10, 0, 0, 1], 1)), stays, step }
    }

    #[test]
    fn a_change_goes_on_when_all_have_taken_a_step() {
        let flushed = || Step::Flushed { view: view(4), have: vec![1] };
        let steps = [(1, flushed()), (2, Step::Asked)];
        let participants = steps.map(|(node, step)| (id(node), participant(true, step))).into();
        let mut proposal = Proposal { id: view(5), since: Instant::ZERO, participants };
        let has_all =
            |proposal: &mut Proposal, node| proposal.participants.get_mut(&id(node)).unwrap().has_all();
        assert!(!proposal.is_flushed() && proposal.unanswered() == [id(2)]);
        assert!(!has_all(&mut proposal, 2), "it has not said what it has");
        proposal.participants.get_mut(&id(2)).unwrap().step = flushed();
        assert!(proposal.is_flushed() && !proposal.is_ready() && proposal.unanswered().is_empty());
        assert!(has_all(&mut proposal, 1) && !has_all(&mut proposal, 1) && !proposal.is_ready());
        assert!(has_all(&mut proposal, 2) && proposal.is_ready());
        assert_eq!(proposal.participants[&id(2)].step, Step::Ready(view(4)));
    }

    #[test]
    fn those_that_come_from_one_view_are_together_in_the_next() {
        let steps = [(1, 4, true), (2, 4, false), (3, 2, true), (4, 4, true)];
        let participants =
            steps.map(|(node, from, stays)| (id(node), participant(stays, Step::Ready(view(from)))));
        let proposal = Proposal { id: view(5), since: Instant::ZERO, participants: participants.into() };
        let next = proposal.view(&View::default());
        let together = proposal.together(&next);
        let of = |node| (0..4).filter(|&rank| together[&id(node)].has(rank)).collect::<Vec<u16>>();
        assert_eq!([1, 2, 3, 4].map(of), [vec![0, 2], vec![0, 2], vec![1], vec![0, 2]]);
    }
}
