//! When a member says what it knows and holds: Trickle (RFC 6206).

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant, Stream};

use super::neighbours::FEW;
use crate::backoff::truncated_exponential;

/// The timer of Trickle: it goes off once in each interval, unless enough others have said the same, and intervals
/// double up to a maximum while there is no news.
#[derive(Debug)]
pub(super) struct Trickle {
    min: Duration,
    max: Duration,
    interval: Duration,
    end: Instant,
    /// When to speak in this interval; `None` once it has.
    at: Option<Instant>,
    /// Others that have said the same in this interval, by the interface on which they were heard: those of one link
    /// say nothing to those of another.
    heard: BTreeMap<Option<u32>, u32>,
    /// Links that this member speaks on.
    links: usize,
    /// Whether there is something that only this member can say.
    is_alone: bool,
    /// Members that may speak at the same time.
    group: usize,
    random: Stream,
}

/// Others that say the same after which a member does not (k of RFC 6206, section 4.1). Chosen: one can be lost.
const ENOUGH: u32 = 2;

impl Trickle {
    /// A timer with a minimum and a maximum interval, of a member with this number of links.
    pub(super) fn new(now: Instant, (min, max): (Duration, Duration), links: u32, random: Stream) -> Self {
        let (heard, links) = (BTreeMap::new(), links.max(1) as usize);
        let mut trickle = Self {
            min,
            max,
            interval: min,
            end: now,
            at: None,
            heard,
            links,
            is_alone: false,
            group: 1,
            random,
        };
        trickle.begin(now);
        trickle
    }

    /// When to call [`wake`](Self::wake).
    pub(super) fn deadline(&self) -> Instant {
        self.at.unwrap_or(self.end)
    }

    /// Whether to speak now; intervals do not grow while this member searches: it hears nobody on one of its links.
    pub(super) fn wake(&mut self, now: Instant, searches: bool) -> bool {
        let mut speaks = false;
        if self.at.is_some_and(|at| at <= now) {
            self.at = None;
            let others = self.heard.values().filter(|&&heard| heard >= ENOUGH).count();
            speaks = std::mem::take(&mut self.is_alone) || others < self.links;
        }
        if self.end <= now {
            self.interval = if searches { self.min } else { (self.interval * 2).min(self.max) };
            self.begin(now);
        }
        speaks
    }

    /// Another has said what this member would say, and was heard on this interface.
    pub(super) fn heard_the_same(&mut self, interface: Option<u32>) {
        if self.heard.len() < self.links || self.heard.contains_key(&interface) {
            let heard = self.heard.entry(interface).or_default();
            *heard = heard.saturating_add(1);
        }
    }

    /// There is something that others wait for and that only this member can say.
    pub(super) const fn has_to_speak(&mut self) {
        self.is_alone = true;
    }

    /// There is news: this member's, or another that lacks what it knows.
    pub(super) fn reset(&mut self, now: Instant) {
        if self.interval > self.min {
            self.interval = self.min;
            self.begin(now);
        }
    }

    /// There are so many others.
    pub(super) const fn set_group_size(&mut self, group: usize) {
        self.group = group;
    }

    /// A point in the second half of the interval (RFC 6206, section 4.2). Few of a large group draw an
    /// early one, so that the others hear of it in time.
    fn begin(&mut self, now: Instant) {
        let half = self.interval / 2;
        let wait = match self.group {
            0..=FEW => half.mul_f64(self.random.uniform()),
            group => truncated_exponential(&mut self.random, half, group as f64),
        };
        self.at = Some(now + half + wait);
        self.end = now + self.interval;
        self.heard.clear();
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    fn trickle(links: u32) -> Trickle {
        let times = (Duration::from_secs(1), Duration::from_secs(8));
        Trickle::new(Instant::ZERO, times, links, Seed::new(1, 0).stream(&["test"], 0))
    }

    /// Seconds at which it speaks until a time.
    fn speaks(trickle: &mut Trickle, until: u64) -> Vec<u64> {
        let mut found = Vec::new();
        while trickle.deadline() < Instant::ZERO + Duration::from_secs(until) {
            let now = trickle.deadline();
            if trickle.wake(now, false) {
                found.push(now.as_nanos() / 1_000_000_000);
            }
        }
        found
    }

    #[test]
    fn it_speaks_ever_less_often_until_there_is_news() {
        let mut trickle = trickle(1);
        let found = speaks(&mut trickle, 31);
        // In the second half of 1, 2, 4, 8, 8 and 8 s.
        let intervals = [(0, 1), (2, 3), (5, 7), (11, 15), (19, 23), (27, 31)];
        assert!(found.iter().zip(intervals).all(|(at, (from, to))| (from..=to).contains(at)), "{found:?}");
        trickle.reset(Instant::ZERO + Duration::from_secs(31));
        assert_eq!(speaks(&mut trickle, 32).len(), 1);
        trickle.reset(Instant::ZERO + Duration::from_secs(32));
        let again = trickle.deadline();
        trickle.reset(Instant::ZERO + Duration::from_secs(32));
        assert_eq!(trickle.deadline(), again, "news of news does not put it off");
    }

    #[test]
    fn who_joins_two_links_is_silent_only_if_others_of_both_have_said_the_same() {
        for heard in [[1, 1, 1], [1, 1, 2]] {
            let mut trickle = trickle(2);
            heard.into_iter().for_each(|interface| trickle.heard_the_same(Some(interface)));
            assert_eq!(speaks(&mut trickle, 1).len(), 1, "{heard:?}");
        }
        let mut trickle = trickle(2);
        [1, 1, 2, 2].into_iter().for_each(|interface| trickle.heard_the_same(Some(interface)));
        assert_eq!(speaks(&mut trickle, 1), []);
    }

    #[test]
    fn it_is_silent_while_others_say_the_same() {
        let mut trickle = trickle(1);
        trickle.heard_the_same(None);
        assert_eq!(speaks(&mut trickle, 1).len(), 1);
        assert_eq!(trickle.deadline(), Instant::ZERO + Duration::from_secs(1));
        trickle.wake(trickle.deadline(), false);
        (0..ENOUGH).for_each(|_| trickle.heard_the_same(None));
        assert_eq!(speaks(&mut trickle, 3), []);
    }

    #[test]
    fn who_has_to_speak_does_once_even_if_others_have_said_the_same() {
        let mut trickle = trickle(1);
        (0..2 * ENOUGH).for_each(|_| trickle.heard_the_same(None));
        trickle.has_to_speak();
        assert_eq!(speaks(&mut trickle, 1).len(), 1);
        assert_eq!(trickle.deadline(), Instant::ZERO + Duration::from_secs(1));
        trickle.wake(trickle.deadline(), false);
        (0..ENOUGH).for_each(|_| trickle.heard_the_same(None));
        assert_eq!(speaks(&mut trickle, 3), []);
    }

    #[test]
    fn who_hears_nobody_on_a_link_speaks_as_often_as_if_there_were_news() {
        let mut trickle = trickle(2);
        let mut found = 0;
        while trickle.deadline() < Instant::ZERO + Duration::from_secs(20) {
            found += u32::from(trickle.wake(trickle.deadline(), true));
        }
        assert_eq!(found, 20);
    }
}
