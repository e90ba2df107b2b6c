//! What a report changes: what the child has, what it may be sent, and how fast.

use hopcast_core::{Duration, Instant};

use super::super::child::Child;
use super::super::rate::HopReport;
use super::super::store::Store;
use super::super::wire::{self, Ranks};
use super::{FIRST_GRANT, Grant, Refused, Sender};

impl Sender {
    /// Takes a report. Only who has made all that there is knows how much there can be; a relay of one of several paths, or
    /// one that was restarted, may be behind its child.
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
        let symbols = store.shape().symbols();
        let floor = wire::complete(report.floor, 32, self.floor);
        let restarted = self.child.is_some_and(|child| child.instance != report.instance);
        let known = self.child.filter(|child| child.instance == report.instance);
        if known.is_some_and(|child| report.number.wrapping_sub(child.number) as i16 <= 0) {
            return Err(Refused::Stale);
        }
        let base = floor / symbols + u64::from(report.base);
        if made_all && (floor > store.top() || claimed(base, report.list) * symbols > store.top()) {
            return Err(Refused::Absurd);
        }
        let arrivals = report.arrivals.filter(|_| report.epoch == self.epoch as u8);
        let highest = arrivals.map(|arrivals| wire::complete(arrivals.highest, 24, self.next));
        if highest.is_some_and(|highest| highest >= self.next) {
            return Err(Refused::Absurd);
        }
        if restarted {
            self.forgotten(store);
        }
        let mut child = known.unwrap_or_else(|| Child::new(report, highest.unwrap_or(0)));
        child.number = report.number;
        if let (Some(arrivals), Some(highest)) = (arrivals, highest) {
            self.lost += child.add(&arrivals, highest);
            let hop = HopReport {
                highest,
                arrival_ns: child.at,
                hold: Duration::from_micros(u64::from(arrivals.hold)),
                received_packets: child.packets,
                received_bytes: child.bytes,
                mean_burst: child.mean_burst(),
            };
            // What it cannot believe, or knows, it leaves alone.
            _ = self.rate.on_report(now, &hop);
            if self.rounds.is_some() {
                self.margin.update(self.rate.loss(), self.rate.mean_burst());
            }
        }
        self.child = Some(child);
        self.unheard = 0;
        self.floor = self.floor.max(floor);
        match &mut self.grant {
            Grant::UpTo(limit) => *limit = (*limit).max(floor + u64::from(report.grant)),
            Grant::InFlight(most) => *most = u64::from(report.grant),
        }
        self.take_ranks(report, base, highest, store);
        (self.probe, self.asking, self.probes) = (None, false, 0);
        if let Some(idle) = &mut self.idle {
            idle.on_report(highest.map_or(0, |highest| highest + 1));
        }
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
            let mut passed = self.next - self.flights.len() as u64;
            while passed <= highest {
                let Some(batch) = self.flights.pop_front() else { break };
                passed += 1;
                if (first..end).contains(&batch) {
                    let need = self.need(batch);
                    need.in_flight = need.in_flight.saturating_sub(1);
                    need.unsure = batch >= listed;
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
