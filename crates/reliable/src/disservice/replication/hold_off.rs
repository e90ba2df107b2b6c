//! Which of several that could bring a neighbour the same does so: one begins after a random time, and the others leave
//! it to whoever is heard to send repairs.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant, Stream};

use super::super::neighbours::FEW;
use super::super::wire::MemberId;
use crate::backoff::truncated_exponential;

/// The state of all interfaces on which neighbours are heard; they hear each other on one, and nobody on another.
#[derive(Debug)]
pub(super) struct HoldOffs {
    /// Time of some packets, within which a member that brings something is heard again.
    gap: Duration,
    /// Longest time for which others are left to bring what this member could bring.
    longest: Duration,
    all: BTreeMap<Option<u32>, HoldOff>,
}

/// The state of an interface.
#[derive(Clone, Copy, Debug)]
struct HoldOff {
    /// Time before which this member brings nothing there.
    until: Instant,
    /// Since when it has had something to bring and has brought nothing, for the sake of others.
    since: Instant,
    /// Its random time, which it keeps for as long: the longest of several would be the same for all.
    back_off: Duration,
    /// The one for whose sake it does not; `None` if there are several, or if it is not known. What a neighbour sends
    /// does not hold back what it lacks itself.
    by: Option<MemberId>,
    /// When this member brought something there last.
    brought: Option<Instant>,
}

/// Maximum number of gaps by which a member of a large group is put off; of [`FEW`] it is by up to one. Chosen: that of
/// requests, which are heard as soon.
const MAX_BACK_OFF: f64 = 4.0;

impl HoldOffs {
    pub(super) const fn new(gap: Duration, longest: Duration) -> Self {
        Self { gap, longest, all: BTreeMap::new() }
    }

    /// A neighbour on an interface that `group` members hear says what it holds: all of them may bring it what it
    /// lacks. One that does so already goes on. `is_held_off` says whether this member had something to bring there
    /// before.
    pub(super) fn told(
        &mut self,
        now: Instant,
        (interface, is_held_off): (Option<u32>, bool),
        group: usize,
        random: &mut Stream,
    ) {
        let is_set = |hold: &HoldOff| {
            let brings = hold.brought.is_some_and(|at| now < at + self.gap);
            brings || now < hold.until
        };
        if !self.all.get(&interface).is_some_and(is_set) {
            self.hold(now, (interface, None, is_held_off), Duration::ZERO, (group, random));
        }
    }

    /// Another member was heard to send a repair on an interface. `is_held_off` says whether this member has something
    /// to bring there.
    pub(super) fn heard(
        &mut self,
        now: Instant,
        (interface, from, is_held_off): (Option<u32>, MemberId, bool),
        group: usize,
        random: &mut Stream,
    ) {
        self.hold(now, (interface, Some(from), is_held_off), self.gap, (group, random));
    }

    /// Time until which this member brings nothing to a neighbour on an interface; `None` if it may now.
    pub(super) fn until(&self, now: Instant, interface: Option<u32>, to: MemberId) -> Option<Instant> {
        let hold = self.all.get(&interface).filter(|hold| hold.by != Some(to))?;
        Some(hold.until.min(hold.since + self.longest)).filter(|&until| now < until)
    }

    /// This member brings something to a neighbour on an interface.
    pub(super) fn brings(&mut self, now: Instant, interface: Option<u32>) {
        let back_off = Duration::ZERO;
        self.all
            .insert(interface, HoldOff { until: now, since: now, back_off, by: None, brought: Some(now) });
    }

    /// This member sends a repair. Where it brings something it goes on with that: others hear it, and leave it to this
    /// one. What it brought longer ago is over.
    pub(super) fn goes_on(&mut self, now: Instant) {
        let brings = |hold: &&mut HoldOff| hold.brought.is_some_and(|at| now < at + self.gap);
        self.all.values_mut().filter(brings).for_each(|hold| hold.brought = Some(now));
    }

    /// Puts off what this member brings on an interface by a time, and by a random one of a member of a group (RFC
    /// 5401, section 3.2.2).
    fn hold(
        &mut self,
        now: Instant,
        (interface, by, is_held_off): (Option<u32>, Option<MemberId>, bool),
        wait: Duration,
        (group, random): (usize, &mut Stream),
    ) {
        let found = self.all.get_mut(&interface);
        // One that ran out before this member could send counts on: the next would begin before it can, too.
        let since = found.as_ref().map_or(now, |hold| if is_held_off { hold.since } else { now });
        let brought = match found {
            Some(hold) if now < hold.until => {
                hold.until = hold.until.max(now + wait + hold.back_off);
                hold.since = since;
                hold.by = hold.by.filter(|_| hold.by == by);
                return;
            }
            found => found.and_then(|hold| hold.brought),
        };
        let share = (group as f64 / FEW as f64).clamp(1.0, MAX_BACK_OFF);
        let back_off = truncated_exponential(random, self.gap.mul_f64(share), group as f64);
        let until = now + wait + back_off;
        self.all.insert(interface, HoldOff { until, since, back_off, by, brought });
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::super::super::tests::{at, member};
    use super::*;

    const GAP: Duration = Duration::from_millis(100);
    const LINK: Option<u32> = Some(1);

    fn hold_offs() -> (HoldOffs, Stream) {
        (HoldOffs::new(GAP, Duration::from_secs(30)), Seed::new(1, 0).stream(&["test"], 0))
    }

    #[test]
    fn of_many_that_hear_a_summary_few_begin_within_the_time_in_which_the_first_is_heard() {
        let mut random = Seed::new(1, 0).stream(&["test"], 0);
        let mut begins: Vec<_> = (0..200)
            .map(|_| {
                let (mut holds, _) = hold_offs();
                holds.told(at(0), (LINK, false), 200, &mut random);
                holds.until(at(0), LINK, member(9)).expect("none at once")
            })
            .collect();
        begins.sort_unstable();
        assert!(begins[199] <= at(400), "{:?}", begins[199]);
        let soon = begins.iter().filter(|&&begin| begin < begins[0] + Duration::from_millis(12)).count();
        assert!(soon < 10, "{soon}");
    }

    #[test]
    fn what_another_brings_holds_back_all_but_what_it_lacks_itself_and_only_where_it_is_heard() {
        let (mut holds, mut random) = hold_offs();
        holds.heard(at(0), (LINK, member(1), true), 3, &mut random);
        let until = holds.until(at(0), LINK, member(2)).unwrap();
        assert!((at(100)..=at(200)).contains(&until), "{until:?}");
        assert_eq!(holds.until(until, LINK, member(2)), None, "it is silent");
        assert_eq!(holds.until(at(0), LINK, member(1)), None, "it lacks something else");
        assert_eq!(holds.until(at(0), Some(2), member(2)), None, "nobody hears it there");
        holds.heard(at(50), (LINK, member(2), true), 3, &mut random);
        assert!((1..3).all(|to| holds.until(at(50), LINK, member(to)) >= Some(at(150))));
    }

    #[test]
    fn who_brings_already_is_not_held_back_by_another_summary() {
        let (mut holds, mut random) = hold_offs();
        holds.brings(at(0), LINK);
        holds.told(at(99), (LINK, true), 200, &mut random);
        assert_eq!(holds.until(at(99), LINK, member(1)), None);
        holds.told(at(100), (LINK, true), 200, &mut random);
        assert!(holds.until(at(100), LINK, member(1)).is_some());
    }

    #[test]
    fn who_brings_a_long_message_is_not_held_back_by_a_summary_in_the_middle_of_it() {
        for goes_on in [true, false] {
            let (mut holds, mut random) = hold_offs();
            holds.brings(at(0), LINK);
            if goes_on {
                (1..=20).for_each(|fragment| holds.goes_on(at(fragment * 12)));
            }
            holds.told(at(245), (LINK, true), 3, &mut random);
            assert_eq!(holds.until(at(245), LINK, member(1)).is_none(), goes_on);
        }
        // Who answers requests only has begun nothing.
        let (mut holds, mut random) = hold_offs();
        holds.heard(at(0), (LINK, member(1), false), 3, &mut random);
        holds.goes_on(at(390));
        holds.told(at(400), (LINK, true), 3, &mut random);
        assert!(holds.until(at(400), LINK, member(2)).is_some());
    }

    #[test]
    fn who_brought_something_once_is_not_one_that_brings_because_it_answers_requests_elsewhere() {
        let (mut holds, mut random) = hold_offs();
        holds.brings(at(0), LINK);
        (0..10).for_each(|fragment| holds.goes_on(at(3_600_000 + fragment * 12)));
        holds.told(at(3_600_110), (LINK, false), 3, &mut random);
        assert!(holds.until(at(3_600_110), LINK, member(1)).is_some());
    }

    #[test]
    fn of_many_that_have_begun_at_one_time_few_go_on_at_one_time() {
        let mut random = Seed::new(1, 0).stream(&["test"], 0);
        let begins: std::collections::BTreeSet<_> = (0..20)
            .map(|own| {
                let (mut holds, _) = hold_offs();
                holds.brings(at(0), LINK);
                let others = (0..20).filter(|&other| other != own);
                others.for_each(|other| holds.heard(at(10), (LINK, member(other), true), 20, &mut random));
                holds.until(at(10), LINK, member(99)).unwrap().as_nanos() / 10_000_000
            })
            .collect();
        assert!(begins.len() > 5, "{begins:?}");
    }

    #[test]
    fn repairs_without_end_hold_nobody_back_for_ever() {
        let (mut holds, mut random) = hold_offs();
        let mut brought = Vec::new();
        for step in 0..1000 {
            holds.heard(at(step * 100), (LINK, member(66), true), 3, &mut random);
            if holds.until(at(step * 100), LINK, member(2)).is_none() {
                holds.brings(at(step * 100), LINK);
                brought.push(step / 10);
            }
        }
        assert_eq!(brought, [30, 60, 90]);
    }

    /// Whoever sends at its full rate may next send when a hold-off has run out and another has begun.
    #[test]
    fn hold_offs_that_run_out_unused_are_together_as_long_as_one_at_most() {
        let (mut holds, mut random) = hold_offs();
        let is_free = |step: &u64| {
            let now = at(step * 250);
            let was_over = holds.until(now, LINK, member(2)).is_none();
            assert!(was_over, "each runs out in 200 ms");
            holds.heard(now, (LINK, member(66), true), 3, &mut random);
            holds.until(now, LINK, member(2)).is_none()
        };
        assert_eq!((0..1000).find(is_free), Some(120), "30 s after the first");
    }

    #[test]
    fn time_in_which_there_was_nothing_to_bring_does_not_count() {
        let (mut holds, mut random) = hold_offs();
        let mut is_free = |millis: u64, is_held_off| {
            holds.heard(at(millis), (LINK, member(66), is_held_off), 3, &mut random);
            holds.until(at(millis), LINK, member(2)).is_none()
        };
        assert_eq!((0..60_000).step_by(50).find(|&millis| is_free(millis, false)), None);
        assert_eq!((60_000..100_000).step_by(50).find(|&millis| is_free(millis, true)), Some(89_950));
    }
}
