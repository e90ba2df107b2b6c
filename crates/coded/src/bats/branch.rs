//! Branches of a tree: one must not hold the others up for ever.
//!
//! Where delivery is reliable, a node keeps what it has sent until everybody behind each of its children has it. If
//! that never happens behind one of them, its window fills up, and the others wait. So a branch is given up that has
//! got no further for [`STALL_TIMEOUT`] while another one, which is heard all the time, is done with what it lacks: it
//! is sent no more than INFO, and nobody waits for it. An outage that all branches share is no reason, however long it
//! lasts; nor is one on a path without branches. Where delivery has a deadline nobody waits for a child that has not
//! answered [`SILENT`](super::hop::SILENT) probes, a second or two: what it lacks is soon too old for it.
//!
//! The floor that INFO tells says what is gone. Relays pass it on, and a sink that hears of it goes on from there,
//! without its streams and the unit that was begun. With that its branch has got further, and is one like any other
//! again.

use hopcast_core::{Duration, Instant};

use super::hop::OverHop;
use super::mode::Mode;
use super::node::{Neighbour, Node};

/// Time without progress after which a branch is given up. Chosen: shorter, and a route that is found anew, or a node
/// that is started again, is cut off; longer, and the other branches wait for longer.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest silence of the foremost branch with which another can still be given up: beyond it, all may be cut off.
/// Chosen: longer than the pauses of probes (`rate`), and short beside the timeout.
const MAX_SILENCE: Duration = Duration::from_secs(5);

/// The children of a direction that are waited for: with a deadline those that are not silent, if there are any.
pub(super) fn waited_for<S: OverHop>(
    neighbours: &[Neighbour<S>],
    direction: usize,
    deadline: bool,
) -> impl Iterator<Item = &Neighbour<S>> {
    let children = move || neighbours.iter().filter(move |child| child.takes(direction));
    let all = !deadline || children().all(|child| child.sender.hop().is_silent());
    children().filter(move |child| all || !child.sender.hop().is_silent())
}

/// The progress of a branch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Branch {
    /// Everything before this is delivered behind it.
    reached: u64,
    heard: Instant,
    /// Since when it has got no further than that, and another has.
    stands: Option<Instant>,
    pub(super) given_up: bool,
}

/// Progress of the foremost branch of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Front {
    reached: u64,
    /// Time at which a branch that had got as far was last heard.
    heard: Instant,
}

impl<M: Mode> Node<M> {
    /// A child was heard: its branch has got so far. Gives those up that hold it up.
    pub(super) fn follow_branches(&mut self, now: Instant, from: usize, reached: u64) {
        let out = self.neighbours[from].out;
        self.neighbours[from].branch.hear(now, reached);
        let silence = self.fronts[out].hear(now, reached);
        let served = self.neighbours.iter().filter(|child| child.takes(out));
        let (front, last) = (self.fronts[out], served.map(|child| child.branch.reached()).min());
        let mut given_up = false;
        for i in 0..self.neighbours.len() {
            let child = &mut self.neighbours[i];
            if !silence && child.takes(out) && child.branch.is_stalled(now, &front, last) {
                self.counters.branches += 1;
                M::begin(self, i);
                given_up = true;
            }
        }
        if silence || given_up {
            let children = self.neighbours.iter_mut().filter(|child| child.out == out);
            children.for_each(|child| child.branch.reset_stall());
        }
        if given_up {
            M::on_given_up(self, now, out);
        }
    }

    /// Nothing before the floor that all parents announce can be had any more.
    pub(super) fn follow_parents(&mut self, now: Instant, into: usize) {
        let parents = self.neighbours.iter().map(|parent| (parent.into, &parent.receiver));
        let parents = parents.filter(|(direction, receiver)| *direction == into && receiver.is_introduced());
        if let Some(floor) = parents.map(|(_, receiver)| receiver.floor).min() {
            M::skip_to(self, now, into, floor);
        }
    }
}

impl Branch {
    pub(super) const fn reached(&self) -> u64 {
        self.reached
    }

    /// It is heard to have got so far.
    pub(super) fn hear(&mut self, now: Instant, reached: u64) {
        self.heard = now;
        if reached > self.reached {
            (self.reached, self.stands) = (reached, None);
        }
    }

    /// A branch was heard, perhaps `front`. Whether this one is to be given up, unless others are more to blame: those
    /// that are silent, or are further behind.
    pub(super) fn is_stalled(&mut self, now: Instant, front: &Front, last: Option<u64>) -> bool {
        if self.reached >= front.reached {
            self.stands = None;
        } else {
            let since = *self.stands.get_or_insert(now);
            let to_blame = self.heard + MAX_SILENCE < now || Some(self.reached) == last;
            self.given_up = to_blame && since + STALL_TIMEOUT <= now && front.heard == now;
        }
        self.given_up
    }

    /// It cannot help it, since no other was heard for a while, or another one held it up too.
    pub(super) const fn reset_stall(&mut self) {
        self.stands = None;
    }
}

impl Front {
    /// A branch was heard to have got so far. Whether before that none was heard for too long.
    pub(super) fn hear(&mut self, now: Instant, reached: u64) -> bool {
        if reached < self.reached {
            return false;
        }
        let before = core::mem::replace(self, Self { reached, heard: now });
        before.heard + MAX_SILENCE < now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_branch_that_gets_nowhere_is_given_up_after_half_a_minute() {
        let (mut branch, mut front) = (Branch::default(), Front::default());
        front.hear(at(0), 10);
        for (now, given_up) in [(1000, false), (10_000, false), (30_999, false), (31_000, true)] {
            // Both are heard.
            branch.hear(at(now), 0);
            front.hear(at(now), 10);
            assert_eq!(branch.is_stalled(at(now), &front, Some(0)), given_up, "at {now}");
        }
        branch.hear(at(31_000), 1);
        assert!(!branch.is_stalled(at(60_999), &front, Some(1)), "it has got further");
    }

    #[test]
    fn one_that_others_hold_up_is_given_up_only_if_it_is_silent_for_five_seconds() {
        let (mut branch, mut front) = (Branch::default(), Front::default());
        front.hear(at(0), 10);
        branch.hear(at(0), 5);
        assert!(!branch.is_stalled(at(0), &front, Some(1)));
        branch.hear(at(40_000), 5);
        for (now, given_up) in [(40_000, false), (45_000, false), (45_001, true)] {
            front.hear(at(now), 10);
            assert_eq!(branch.is_stalled(at(now), &front, Some(1)), given_up, "at {now}");
        }
    }

    #[test]
    fn if_the_foremost_is_silent_for_more_than_five_seconds_nobody_is_to_blame() {
        let mut front = Front::default();
        assert!(!front.hear(at(0), 5));
        assert!(!front.hear(at(5000), 5));
        assert!(!front.hear(at(9000), 4), "another");
        assert!(front.hear(at(10_001), 5));
    }
}
