//! FD_ALL and VERIFY_SUSPECT: who is silent, and whether it is dead.
//!
//! Any packet of a member shows that it is alive. One that was silent for too long is suspected, and asked whether it
//! is alive; if it does not answer, the suspicion is confirmed.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

use super::super::wire::MemberId;

/// When each of the other members was heard last, and which of them are suspected.
#[derive(Debug, Default)]
pub(super) struct Failures {
    heard: BTreeMap<MemberId, Instant>,
    /// Those whose silence counts.
    watched: Vec<MemberId>,
    suspected: BTreeMap<MemberId, Suspicion>,
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
            self.heard.insert(member, now);
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
                *heard = now;
            }
        }
        self.watched = members;
    }

    /// A member was heard: it is not dead. One that stalls is expelled all the same.
    pub(super) fn heard(&mut self, now: Instant, member: MemberId) {
        if let Some(heard) = self.heard.get_mut(&member) {
            *heard = now;
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
            |member: &MemberId| self.heard.get(member).is_some_and(|&heard| now.since(heard) >= after);
        let found: Vec<_> = self.watched.iter().copied().filter(is_silent).collect();
        found.into_iter().filter(|&member| self.suspect(now, member)).collect()
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

    /// When a member becomes silent, or has not answered.
    pub(super) fn deadline(&self, silent: Duration, answer: Duration) -> Option<Instant> {
        let unsuspected = self.watched.iter().filter(|member| !self.suspected.contains_key(member));
        let silent =
            unsuspected.filter_map(|member| self.heard.get(member)).map(|&heard| heard + silent).min();
        let open = self.suspected.values().filter(|suspicion| !suspicion.is_confirmed);
        silent.into_iter().chain(open.map(|suspicion| suspicion.since + answer)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_member_is_asked_and_only_taken_for_dead_if_it_does_not_answer() {
        let (one, two) = (MemberId { node: 1, run: 0 }, MemberId { node: 2, run: 0 });
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let (silent, answer) = (Duration::from_secs(10), Duration::from_secs(2));
        let mut failures = Failures::default();
        failures.follow(at(0), [one, two].into_iter());
        assert_eq!(failures.deadline(silent, answer), None, "nobody is watched");
        failures.watch(at(0), vec![one, two]);
        assert_eq!(failures.deadline(silent, answer), Some(at(10)));
        assert_eq!(failures.silent(at(10), silent), [one, two]);
        failures.heard(at(11), two);
        assert_eq!(failures.unanswered(at(12), answer), [one]);
        assert!(failures.is_confirmed(one) && !failures.is_confirmed(two));
        failures.heard(at(13), one);
        assert!(!failures.is_confirmed(one), "it was only slow");
        assert!(failures.confirm(at(13), two, true));
        failures.heard(at(14), two);
        assert!(failures.is_confirmed(two), "it is heard, and stalls");
        assert!(!failures.suspect(at(14), MemberId { node: 3, run: 0 }), "of another view");
    }
}
