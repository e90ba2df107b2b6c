//! FD_ALL and VERIFY_SUSPECT: who is silent, and whether it is dead.
//!
//! Any packet of a member shows that it is alive. One that was silent for too long is suspected, and asked whether it
//! is alive; if it does not answer, the suspicion is confirmed. One that is alive and sends nothing in this view any
//! more is in another: it is expelled, so that it takes no place in two.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

use super::super::wire::MemberId;

/// When each of the other members was heard last, and which of them are suspected.
#[derive(Debug, Default)]
pub(super) struct Failures {
    heard: BTreeMap<MemberId, Heard>,
    /// Those whose silence counts.
    watched: Vec<MemberId>,
    suspected: BTreeMap<MemberId, Suspicion>,
}

/// When a member was heard last, and when in this view.
#[derive(Clone, Copy, Debug)]
struct Heard {
    at: Instant,
    here: Instant,
}

impl Heard {
    const fn both(now: Instant) -> Self {
        Self { at: now, here: now }
    }
}

#[derive(Clone, Copy, Debug)]
struct Suspicion {
    since: Instant,
    is_confirmed: bool,
    /// Whether it was confirmed because the member is heard, but does not acknowledge.
    is_stalled: bool,
}

impl Failures {
    /// Follows these members from now on, and no others.
    pub(super) fn follow(&mut self, now: Instant, members: impl Iterator<Item = MemberId>) {
        let before = std::mem::take(self);
        for member in members {
            self.heard.insert(member, Heard::both(now));
            // A suspicion that is not confirmed yet stays.
            if let Some(&suspicion) =
                before.suspected.get(&member).filter(|suspicion| !suspicion.is_confirmed)
            {
                self.suspected.insert(member, suspicion);
            }
        }
    }

    /// Watches these members from now on, and no others.
    pub(super) fn watch(&mut self, now: Instant, members: Vec<MemberId>) {
        if self.watched == members {
            return;
        }
        for member in &members {
            if let Some(heard) = self.heard.get_mut(member).filter(|_| !self.watched.contains(member)) {
                *heard = Heard::both(now);
            }
        }
        self.watched = members;
    }

    /// A member was heard, in this view or not: it is not dead. One that stalls is expelled all the same.
    pub(super) fn heard(&mut self, now: Instant, member: MemberId, is_here: bool) {
        if let Some(heard) = self.heard.get_mut(&member) {
            heard.at = now;
            if is_here {
                heard.here = now;
            }
            if self.suspected.get(&member).is_some_and(|suspicion| !suspicion.is_stalled) {
                self.suspected.remove(&member);
            }
        }
    }

    /// Suspects a member, if it is followed and not suspected yet: true if so.
    pub(super) fn suspect(&mut self, now: Instant, member: MemberId) -> bool {
        let is_new = self.heard.contains_key(&member) && !self.suspected.contains_key(&member);
        if is_new {
            let suspicion = Suspicion { since: now, is_confirmed: false, is_stalled: false };
            self.suspected.insert(member, suspicion);
        }
        is_new
    }

    /// Expels a member that this one knows to be of no use: it stalls, or did not answer. True if that is news.
    pub(super) fn confirm(&mut self, now: Instant, member: MemberId, is_stalled: bool) -> bool {
        if !self.heard.contains_key(&member) || self.is_confirmed(member) {
            return false;
        }
        self.suspected.insert(member, Suspicion { since: now, is_confirmed: true, is_stalled });
        true
    }

    /// Whether a member is taken for dead.
    pub(super) fn is_confirmed(&self, member: MemberId) -> bool {
        self.suspected.get(&member).is_some_and(|suspicion| suspicion.is_confirmed)
    }

    /// Members that have been silent for too long, and are suspected from now on.
    pub(super) fn silent(&mut self, now: Instant, after: Duration) -> Vec<MemberId> {
        let is_silent =
            |member: &MemberId| self.heard.get(member).is_some_and(|heard| now.since(heard.at) >= after);
        let found: Vec<_> = self.watched.iter().copied().filter(is_silent).collect();
        found.into_iter().filter(|&member| self.suspect(now, member)).collect()
    }

    /// Members that were not heard in this view for a time in which others would have been found dead: they are
    /// expelled from now on.
    pub(super) fn elsewhere(&mut self, now: Instant, after: Duration) -> Vec<MemberId> {
        let is_elsewhere =
            |member: &MemberId| self.heard.get(member).is_some_and(|heard| now.since(heard.here) >= after);
        let found: Vec<_> = self.watched.iter().copied().filter(is_elsewhere).collect();
        found.into_iter().filter(|&member| self.confirm(now, member, true)).collect()
    }

    /// Members whose time to answer is over: their suspicions are confirmed from now on.
    pub(super) fn unanswered(&mut self, now: Instant, after: Duration) -> Vec<MemberId> {
        let mut found = Vec::new();
        for (&member, suspicion) in &mut self.suspected {
            if !suspicion.is_confirmed && now.since(suspicion.since) >= after {
                suspicion.is_confirmed = true;
                found.push(member);
            }
        }
        found
    }

    /// When a member becomes silent, or has not answered, or is taken to be elsewhere.
    pub(super) fn deadline(
        &self,
        silent: Duration,
        answer: Duration,
        elsewhere: Duration,
    ) -> Option<Instant> {
        let unsuspected = self.watched.iter().filter(|member| !self.suspected.contains_key(member));
        let silent =
            unsuspected.filter_map(|member| self.heard.get(member)).map(|heard| heard.at + silent).min();
        let open = self.suspected.values().filter(|suspicion| !suspicion.is_confirmed);
        let unconfirmed = self.watched.iter().filter(|&&member| !self.is_confirmed(member));
        let elsewhere =
            unconfirmed.filter_map(|member| self.heard.get(member)).map(|heard| heard.here + elsewhere);
        silent.into_iter().chain(open.map(|suspicion| suspicion.since + answer)).chain(elsewhere).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_member_is_asked_and_only_taken_for_dead_if_it_does_not_answer() {
        let (one, two) = (MemberId { node: 1, run: 0 }, MemberId { node: 2, run: 0 });
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let [silent, answer, elsewhere] = [10, 2, 22].map(Duration::from_secs);
        let mut failures = Failures::default();
        failures.follow(at(0), [one, two].into_iter());
        assert_eq!(failures.deadline(silent, answer, elsewhere), None, "nobody is watched");
        failures.watch(at(0), vec![one, two]);
        assert_eq!(failures.deadline(silent, answer, elsewhere), Some(at(10)));
        assert_eq!(failures.silent(at(10), silent), [one, two]);
        failures.heard(at(11), two, true);
        assert_eq!(failures.unanswered(at(12), answer), [one]);
        assert!(failures.is_confirmed(one) && !failures.is_confirmed(two));
        failures.heard(at(13), one, true);
        assert!(!failures.is_confirmed(one), "it was only slow");
        assert!(failures.confirm(at(13), two, true));
        failures.heard(at(14), two, true);
        assert!(failures.is_confirmed(two), "it is heard, and stalls");
        assert!(!failures.suspect(at(14), MemberId { node: 3, run: 0 }), "of another view");
    }

    #[test]
    fn a_member_that_is_heard_in_another_view_alone_is_expelled_from_this_one() {
        let (one, two) = (MemberId { node: 1, run: 0 }, MemberId { node: 2, run: 0 });
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let [silent, answer, elsewhere] = [10, 2, 22].map(Duration::from_secs);
        let mut failures = Failures::default();
        failures.follow(at(0), [one, two].into_iter());
        failures.watch(at(0), vec![one, two]);
        (1..22).for_each(|second| failures.heard(at(second), one, false));
        (1..22).for_each(|second| failures.heard(at(second), two, true));
        assert_eq!(failures.deadline(silent, answer, elsewhere), Some(at(22)));
        assert_eq!(failures.silent(at(22), silent), []);
        assert_eq!(failures.elsewhere(at(22), elsewhere), [one]);
        failures.heard(at(23), one, false);
        assert!(failures.is_confirmed(one) && !failures.is_confirmed(two), "it is alive, and not here");
    }

    #[test]
    fn a_suspicion_outlives_a_change_of_views_until_it_is_confirmed() {
        let [one, two, three] = [1, 2, 3].map(|node| MemberId { node, run: 0 });
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let answer = Duration::from_secs(2);
        let mut failures = Failures::default();
        failures.follow(at(0), [one, two, three].into_iter());
        assert!(failures.suspect(at(1), one) && failures.confirm(at(1), two, false));
        assert!(!failures.suspect(at(1), one) && !failures.suspect(at(1), two), "they are");
        assert!(!failures.confirm(at(1), two, true), "it is");
        failures.follow(at(2), [one, two].into_iter());
        assert!(!failures.is_confirmed(two), "whoever is let in again is alive");
        assert_eq!(failures.unanswered(at(3), answer), [one], "asked in the view before");
        assert_eq!(failures.unanswered(at(4), answer), [], "once");
        assert!(!failures.confirm(at(4), three, false) && !failures.suspect(at(4), three), "it has gone");
    }

    #[test]
    fn the_silence_of_whoever_is_watched_from_now_on_begins_now() {
        let [one, two] = [1, 2].map(|node| MemberId { node, run: 0 });
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let [silent, answer, elsewhere] = [10, 2, 22].map(Duration::from_secs);
        let mut failures = Failures::default();
        failures.follow(at(0), [one, two].into_iter());
        failures.watch(at(1), vec![one]);
        failures.watch(at(7), vec![one, two]);
        failures.watch(at(8), vec![one, two]);
        assert_eq!(
            failures.deadline(silent, answer, elsewhere),
            Some(at(11)),
            "the first is watched since 1"
        );
        assert_eq!(failures.silent(at(16), silent), [one]);
        assert_eq!(failures.deadline(silent, answer, elsewhere), Some(at(17)), "the second, since 7");
        assert_eq!(failures.silent(at(17), silent), [two]);
        assert_eq!(
            failures.deadline(silent, answer, elsewhere),
            Some(at(18)),
            "the first has to answer by then"
        );
        assert_eq!(failures.unanswered(at(18), answer), [one]);
        assert_eq!(failures.unanswered(at(19), answer), [two]);
        assert_eq!(failures.deadline(silent, answer, elsewhere), None, "nothing more is waited for");
    }
}
