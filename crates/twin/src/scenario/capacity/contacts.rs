//! Contacts: the times at which a direction of a link carries frames.

use hopcast_core::{Duration, Instant, Rate};
use hopcast_link::{Attachment, Change, Direction, Jitter};

use super::mean_loss;
use super::timeline::loss_between;
use crate::scenario::model::Link;

/// A direction of a link over the time of a run, as a list of pieces in which nothing changes.
#[derive(Debug)]
pub(super) struct Contacts {
    pieces: Vec<Piece>,
}

/// A direction of a link from an instant on.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: Instant,
    /// Whether frames are sent.
    is_up: bool,
    /// Whether a frame may arrive: whether its loss is not certain.
    is_heard: bool,
    rate: Option<Rate>,
    delay: Duration,
    jitter: Jitter,
    mtu: u32,
}

impl Contacts {
    /// The contacts of one attachment of a link with another, with the changes of the link in the order of time.
    pub(super) fn of(
        link: &Link,
        (from, to): (Attachment, Attachment),
        changes: &[(Instant, Option<Attachment>, &Change)],
    ) -> Self {
        let Direction { rate, delay, jitter, mtu, .. } = *link.direction(from);
        let is_heard = mean_loss(loss_between(link, from, to)) < 1.0;
        let first = Piece { from: Instant::ZERO, is_up: true, is_heard, rate, delay, jitter, mtu };
        let mut pieces = vec![first];
        let mut piece = first;
        for (at, whose, change) in changes {
            if whose.is_some_and(|whose| whose != from) || !piece.change(change, to) {
                continue;
            }
            piece.from = *at;
            match pieces.last_mut() {
                Some(last) if last.from == *at => *last = piece,
                _ => pieces.push(piece),
            }
        }
        Self { pieces }
    }

    /// The times at which it changes.
    pub(super) fn changes(&self) -> impl Iterator<Item = Instant> {
        self.pieces.iter().skip(1).map(|piece| piece.from)
    }

    /// Whether a unit can be sent at `at` without waiting.
    pub(super) fn is_open(&self, at: Instant) -> bool {
        let place = self.pieces.partition_point(|piece| piece.from <= at);
        self.pieces[..place].last().is_some_and(|piece| piece.sending_time(0).is_some())
    }

    /// Earliest arrival of a unit of `bytes` that is there to be sent from `ready` on; `None` if it never arrives.
    pub(super) fn arrival(&self, ready: Instant, bytes: u64) -> Option<Instant> {
        let first = self.pieces.partition_point(|piece| piece.from <= ready).saturating_sub(1);
        let mut earliest: Option<Instant> = None;
        for (number, piece) in self.pieces.iter().enumerate().skip(first) {
            let start = ready.max(piece.from);
            if earliest.is_some_and(|earliest| earliest <= start) {
                break;
            }
            let Some(time) = piece.sending_time(bytes) else { continue };
            earliest = [earliest, self.arrival_of_begun(number, start + time)].into_iter().flatten().min();
        }
        earliest
    }

    /// Earliest arrival of a unit whose sending begins in a piece and ends at `end` or, if that is later begun, later.
    fn arrival_of_begun(&self, number: usize, end: Instant) -> Option<Instant> {
        let mut earliest: Option<Instant> = None;
        for (place, piece) in self.pieces.iter().enumerate().skip(number) {
            // A frame that is under way when the link goes down is dropped.
            if !piece.is_up || earliest.is_some_and(|earliest| earliest <= piece.from) {
                break;
            }
            let ends_later = self.pieces.get(place + 1).is_some_and(|next| next.from < end);
            if ends_later || !piece.is_heard {
                continue;
            }
            let arrival = end.max(piece.from) + piece.least_delay();
            earliest = Some(earliest.map_or(arrival, |earliest| earliest.min(arrival)));
        }
        earliest
    }
}

impl Piece {
    /// Applies a change; whether it makes a difference.
    fn change(&mut self, change: &Change, to: Attachment) -> bool {
        match change {
            Change::Rate(rate) => self.rate = *rate,
            Change::Delay(delay) => self.delay = *delay,
            Change::Jitter(jitter) => self.jitter = *jitter,
            Change::Mtu(mtu) => self.mtu = *mtu,
            Change::Loss(loss) => self.is_heard = mean_loss(loss) < 1.0,
            Change::LossTo(whom, loss) if *whom == to => self.is_heard = mean_loss(loss) < 1.0,
            Change::Down => self.is_up = false,
            Change::Up => self.is_up = true,
            Change::LossTo(..)
            | Change::Queue(_)
            | Change::Reorder(_)
            | Change::Corrupt(_)
            | Change::Duplicate(_) => return false,
        }
        true
    }

    /// Time to send a unit that begins in this piece; `None` if none is begun.
    fn sending_time(&self, bytes: u64) -> Option<Duration> {
        if !self.is_up || self.rate == Some(Rate::default()) {
            return None;
        }
        // The parts of a unit that no packet carries follow one another over several hops.
        let is_whole = bytes <= u64::from(self.mtu);
        Some(self.rate.filter(|_| is_whole).map_or(Duration::ZERO, |rate| rate.time_for(bytes)))
    }

    /// Minimum delay of a frame.
    fn least_delay(&self) -> Duration {
        match self.jitter {
            Jitter::None => self.delay,
            Jitter::Uniform(by) => self.delay.saturating_sub(by),
            Jitter::Normal(_) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::model::LinkModel;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    /// A link of 8 kbit/s and half a second, over which 1,000 bytes take 1.5 s.
    fn contacts(changes: &[(u64, Change)]) -> Contacts {
        let direction = Direction {
            rate: Some(Rate::from_bits_per_sec(8000)),
            delay: Duration::from_millis(500),
            ..Direction::default()
        };
        let config =
            hopcast_link::Config { forward: direction.clone(), backward: direction, ..Default::default() };
        let (name, model) = ("l".to_owned(), LinkModel::PointToPoint(config));
        let link = Link { name, ends: vec![0, 1], prefixes: Vec::new(), model };
        let changes: Vec<_> = changes
            .iter()
            .map(|(second, change)| (Instant::from_nanos(second * SECOND), None, change))
            .collect();
        Contacts::of(&link, (0, 1), &changes)
    }

    #[test]
    fn a_unit_waits_for_the_link_and_has_to_leave_before_it_goes_down() {
        let contacts = contacts(&[(2, Change::Down), (10, Change::Up)]);
        for (ready, arrival) in [(0.0, 1.5), (1.0, 2.5), (1.1, 11.5), (5.0, 11.5), (12.0, 13.5)] {
            assert_eq!(contacts.arrival(at(ready), 1000), Some(at(arrival)), "ready at {ready}");
        }
        assert_eq!(contacts.changes().collect::<Vec<_>>(), [at(2.0), at(10.0)]);
    }

    #[test]
    fn a_link_that_stays_down_brings_nothing() {
        assert_eq!(contacts(&[(2, Change::Down)]).arrival(at(1.5), 1000), None);
        assert_eq!(contacts(&[(2, Change::Rate(Some(Rate::default())))]).arrival(at(3.0), 1000), None);
    }

    #[test]
    fn waiting_for_a_faster_link_may_be_quicker() {
        let faster = Change::Rate(Some(Rate::from_mbit(8)));
        assert_eq!(contacts(&[(1, faster)]).arrival(at(0.9), 1000), Some(at(1.501)));
        // What is sent when the delay becomes shorter has the shorter one, if it leaves later.
        let shorter = Change::Delay(Duration::ZERO);
        let contacts = contacts(&[(2, shorter)]);
        assert_eq!(contacts.arrival(at(0.9), 1000), Some(at(2.0)));
        assert_eq!(contacts.arrival(at(0.2), 1000), Some(at(1.7)));
        assert_eq!(contacts.arrival(at(1.5), 1000), Some(at(2.5)));
    }

    #[test]
    fn certain_loss_is_waited_for_and_jitter_may_shorten_the_delay() {
        let lost = Change::Loss(hopcast_link::Loss::Independent(hopcast_core::Fraction::new(1.0).unwrap()));
        let heard = contacts(&[(1, lost), (5, Change::Loss(hopcast_link::Loss::None))]);
        assert_eq!(heard.arrival(at(0.5), 1000), Some(at(5.5)));
        let jitter = Change::Jitter(Jitter::Uniform(Duration::from_millis(200)));
        assert_eq!(contacts(&[(0, jitter)]).arrival(at(0.0), 1000), Some(at(1.3)));
    }

    #[test]
    fn parts_of_a_unit_that_no_packet_carries_cost_the_delay_alone() {
        assert_eq!(contacts(&[]).arrival(at(0.0), 1501), Some(at(0.5)));
    }
}
