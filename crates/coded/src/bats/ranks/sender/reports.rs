//! The effect of a report: on the needs of the child, on its grant, and on the rate.

use hopcast_core::Instant;

use super::super::super::child::Refused;
use super::super::super::hop::FIRST_GRANT;
use super::super::super::wire::{self, Ranks};
use super::super::store::Store;
use super::{Grant, Sender};

impl Sender {
    /// Takes a report. Only who has made all that there is knows how much there can be; a relay of one of several
    /// paths, or one that was restarted, may be behind its child.
    ///
    /// # Errors
    ///
    /// It is old or makes no sense; nothing has changed.
    pub(in super::super) fn on_report(
        &mut self,
        now: Instant,
        report: &wire::Report<'_>,
        store: &Store,
        made_all: bool,
    ) -> Result<(), Refused> {
        let heard = self.hop.hear(report)?;
        let symbols = store.shape().symbols();
        let floor = wire::complete(report.floor, 32, self.floor);
        let base = floor / symbols + u64::from(report.base);
        if made_all && (floor > store.top() || claimed(base, report.list) * symbols > store.top()) {
            return Err(Refused::NeverSent);
        }
        if heard.restarted {
            self.forgotten(store);
        }
        self.hop.take(now, &heard);
        if heard.hop.is_some() {
            if self.rounds.is_some() {
                self.margin.update(self.hop.rate.loss(), self.hop.rate.mean_burst());
            }
            self.ahead.update(&self.hop.rate);
        }
        self.floor = self.floor.max(floor);
        match &mut self.grant {
            Grant::UpTo(limit) => *limit = (*limit).max(floor + u64::from(report.grant)),
            Grant::InFlight(limit) => *limit = u64::from(report.grant),
        }
        let highest = heard.hop.map(|hop| hop.highest);
        self.take_ranks(report, base, highest, store);
        Ok(())
    }

    /// The child was restarted and has nothing.
    fn forgotten(&mut self, store: &Store) {
        self.base = store.first();
        self.grant = match self.grant {
            Grant::UpTo(_) => Grant::UpTo(store.floor() + FIRST_GRANT),
            Grant::InFlight(_) => Grant::InFlight(FIRST_GRANT),
        };
        self.flights.iter_mut().for_each(|flight| *flight = u64::MAX);
        for number in store.first()..store.end() {
            let before = self.need(number).restart();
            self.backlog -= u64::from(before);
            self.refresh(store, number);
        }
    }

    fn take_ranks(&mut self, report: &wire::Report<'_>, base: u64, highest: Option<u64>, store: &Store) {
        let (first, end) = (store.first(), store.end());
        for number in self.base.max(first)..base.min(end) {
            self.complete(store, number);
        }
        self.base = base.clamp(first, end.max(first));
        let mut number = base;
        for &item in report.list {
            match Ranks::of(item) {
                Ranks::Rank(rank) => {
                    if (first..end).contains(&number) {
                        let own = store.get(number).rank;
                        self.need(number).report(rank, own);
                    }
                    number += 1;
                }
                Ranks::Complete(run) => {
                    for number in number.max(first)..(number + u64::from(run)).min(end) {
                        self.complete(store, number);
                    }
                    number += u64::from(run);
                }
                Ranks::Nothing(run) => {
                    for number in number.max(first)..(number + u64::from(run)).min(end) {
                        self.need(number).report(0, 1);
                    }
                    number += u64::from(run);
                }
            }
        }
        let listed = if report.complete { u64::MAX } else { number };
        if let Some(highest) = highest {
            let mut passed = self.hop.next() - self.flights.len() as u64;
            while passed <= highest {
                passed += 1;
                if let Some(batch) = self.pass_one(store) {
                    self.need(batch).unsure = batch >= listed;
                    self.refresh(store, batch);
                }
            }
        }
        for number in base.max(first)..number.min(end) {
            self.refresh(store, number);
        }
    }

    fn complete(&mut self, store: &Store, number: u64) {
        let symbols = store.shape().symbols() as u8;
        let need = self.need(number);
        if !need.done {
            need.complete(symbols);
            self.refresh(store, number);
        }
    }
}

/// After the last batch of which a report's list says that the child needs nothing more; at least `base`.
fn claimed(base: u64, list: &[u8]) -> u64 {
    let (mut number, mut claimed) = (base, base);
    for &item in list {
        match Ranks::of(item) {
            Ranks::Rank(_) => number += 1,
            Ranks::Nothing(run) => number += u64::from(run),
            Ranks::Complete(run) => {
                number += u64::from(run);
                claimed = number;
            }
        }
    }
    claimed
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::super::super::ahead::Limits;
    use super::super::MAX_FLIGHTS;
    use super::*;
    use crate::bats::Config;
    use crate::bats::packet::{Cause, Content, Packet};
    use crate::bats::shape::Shape;

    #[test]
    fn probes_that_nobody_answers_do_not_pile_up() {
        let store = Store::new(Shape::begun(&Config::default(), u16::MAX), 4, 0);
        let mut sender = Sender::new(hopcast_core::Duration::ZERO, Seed::new(1, 0).stream(&["sender"], 0));
        sender.start(&store, None, Limits::default(), false);
        for _ in 0..MAX_FLIGHTS + 1000 {
            sender.on_sent(&Packet { batch: 0, content: Content::Mix(0), cause: Cause::Probe }, &store);
        }
        assert_eq!(sender.flights.len(), 65_536, "as many as the rate follows");
    }

    #[test]
    fn before_a_child_has_granted_anything_it_is_sent_128_symbols() {
        let store = Store::new(Shape::begun(&Config::default(), u16::MAX), 64, 32);
        let mut sender = Sender::new(hopcast_core::Duration::ZERO, Seed::new(1, 0).stream(&["sender"], 0));
        sender.start(&store, None, Limits::default(), false);
        assert!(sender.is_granted(32 + 127) && !sender.is_granted(32 + 128), "from the floor on");
        sender.grant = Grant::UpTo(1000);
        sender.forgotten(&store);
        assert!(sender.is_granted(32 + 127) && !sender.is_granted(32 + 128), "so when it is started anew");
        // Of several paths each counts what it has in flight.
        sender.start(&store, None, Limits::default(), true);
        assert_eq!(sender.granted(), Grant::InFlight(128));
    }

    #[test]
    fn a_child_is_sent_as_many_symbols_from_its_floor_on_as_it_has_granted() {
        let store = Store::new(Shape::begun(&Config::default(), u16::MAX), 64, 0);
        let mut sender = Sender::new(hopcast_core::Duration::ZERO, Seed::new(1, 0).stream(&["sender"], 0));
        sender.start(&store, None, Limits::default(), false);
        // What is granted is not taken back.
        for (number, (floor, grant, end)) in (1..).zip([(32, 200, 232), (48, 100, 232), (64, 200, 264)]) {
            let report = wire::Report { number, floor, grant, ..wire::Report::example(sender.hop.epoch()) };
            assert_eq!(sender.on_report(Instant::ZERO, &report, &store, false), Ok(()));
            assert!(sender.is_granted(end - 1) && !sender.is_granted(end), "{:?}", sender.granted());
            assert_eq!(sender.floor(), u64::from(floor));
        }
    }
}
