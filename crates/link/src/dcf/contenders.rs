//! The stations that contend, and when each of them acts next.

use std::ops::Index;

use hopcast_core::{Instant, earliest};

use super::contender::Contender;
use crate::Attachment;
use crate::config::Csma;
use crate::stations::Stations;

/// All stations. The time at which one acts is found anew only if it has been touched since, so that an event costs
/// what the stations cost that it concerns, and not all of them.
#[derive(Debug)]
pub(super) struct Contenders {
    all: Vec<Contender>,
    /// Those whose time may have changed, each once.
    touched: Vec<Attachment>,
    is_touched: Vec<bool>,
    acts: Tournament,
}

impl Contenders {
    pub(super) fn new(all: Vec<Contender>) -> Self {
        let count = all.len();
        let touched = Vec::with_capacity(count);
        Self { all, touched, is_touched: vec![false; count], acts: Tournament::new(count) }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The station, to be changed.
    pub(super) fn touch(&mut self, station: Attachment) -> &mut Contender {
        if !std::mem::replace(&mut self.is_touched[station], true) {
            self.touched.push(station);
        }
        &mut self.all[station]
    }

    /// The time at which the first of them acts, if nothing is heard before.
    pub(super) fn next(&mut self, config: &Csma, stations: &Stations) -> Option<Instant> {
        self.catch_up(config, stations);
        self.acts.first()
    }

    /// Those that act by `at`, in their order, into `due`.
    pub(super) fn due(&mut self, at: Instant, config: &Csma, stations: &Stations, due: &mut Vec<Attachment>) {
        self.catch_up(config, stations);
        due.clear();
        self.acts.due(at, due);
    }

    /// The time at which a station begins to send the frame with which it contends.
    pub(super) fn starts(&self, station: Attachment, config: &Csma, stations: &Stations) -> Option<Instant> {
        let own = &self.all[station];
        if own.sending || stations.senders[station].stopped() { None } else { own.starts(config) }
    }

    fn catch_up(&mut self, config: &Csma, stations: &Stations) {
        while let Some(station) = self.touched.pop() {
            self.is_touched[station] = false;
            let own = &self.all[station];
            let answers = earliest(own.reply.map(|reply| reply.at), own.awaits);
            let acts = earliest(answers, self.starts(station, config, stations));
            self.acts.set(station, acts);
        }
    }
}

impl Index<Attachment> for Contenders {
    type Output = Contender;
    fn index(&self, station: Attachment) -> &Contender {
        &self.all[station]
    }
}

/// A time for each station, and the earliest of them: a tree in which each inner node has the earlier time of its two
/// children, node 1 the root and nodes 2 i and 2 i + 1 the children of node i.
#[derive(Debug)]
struct Tournament {
    leaves: usize,
    times: Vec<Option<Instant>>,
}

impl Tournament {
    fn new(count: usize) -> Self {
        let leaves = count.max(1).next_power_of_two();
        Self { leaves, times: vec![None; 2 * leaves] }
    }

    fn set(&mut self, station: Attachment, at: Option<Instant>) {
        let mut node = self.leaves + station;
        self.times[node] = at;
        while node > 1 {
            node /= 2;
            let before = self.times[node];
            self.times[node] = earliest(self.times[2 * node], self.times[2 * node + 1]);
            if self.times[node] == before {
                break;
            }
        }
    }

    fn first(&self) -> Option<Instant> {
        self.times[1]
    }

    /// The stations whose time is not after `at`, in their order, at the end of `due`.
    fn due(&self, at: Instant, due: &mut Vec<Attachment>) {
        self.below(1, at, due);
    }

    fn below(&self, node: usize, at: Instant, due: &mut Vec<Attachment>) {
        if self.times[node].is_none_or(|time| time > at) {
            return;
        }
        if let Some(station) = node.checked_sub(self.leaves) {
            return due.push(station);
        }
        self.below(2 * node, at, due);
        self.below(2 * node + 1, at, due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tournament_is_won_by_the_earliest(
            count in 1usize..20,
            sets in proptest::collection::vec((0usize..20, proptest::option::of(0u64..50)), 0..60),
            at in 0u64..50,
        ) {
            let mut plain = vec![None; count];
            let mut tournament = Tournament::new(count);
            for (station, time) in sets {
                let (station, time) = (station % count, time.map(Instant::from_nanos));
                plain[station] = time;
                tournament.set(station, time);
                prop_assert_eq!(tournament.first(), plain.iter().flatten().min().copied());
            }
            let at = Instant::from_nanos(at);
            let mut due = Vec::new();
            tournament.due(at, &mut due);
            let expected: Vec<_> = (0..count).filter(|&i| plain[i].is_some_and(|time| time <= at)).collect();
            prop_assert_eq!(due, expected);
        }
    }
}
