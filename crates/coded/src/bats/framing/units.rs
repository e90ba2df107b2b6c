//! Units: datagrams of the application, cut into pieces where they do not fit, and put together again.

use std::collections::VecDeque;

use hopcast_core::{Buffer, Duration, Instant};

use super::super::age::{self, STAMP};
use super::chunk::{Chunk, Filler};
use super::grants::Grants;

/// Maximum length of a unit, in bytes: a UDP datagram's payload can be no longer, and it may have a stamp.
pub(in super::super) const MAX_UNIT: usize = 65_535 + STAMP;
/// Bytes that may always wait, whatever the delay: a handshake's packets while nothing is known of the path. Chosen;
/// with less a handshake loses packets here, more is delay on a slow link.
const MIN_QUEUE: usize = 16 << 10;

/// Units that wait to be sent.
///
/// Where delivery has a deadline each is stamped with when it was handed over; but one that was granted, with when it
/// is begun to be sent. For what a grant says is that it is taken: an application that could wait has not to know how
/// long the queue is that it was let into, nor how long a slow link takes for what is before it.
#[derive(Debug)]
pub(super) struct UnitQueue {
    limit: usize,
    delay: Duration,
    /// Grants, where the application is granted units.
    grants: Option<Grants>,
    /// Whether units are stamped.
    stamps: bool,
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// Number of bytes of the first that have been sent.
    sent: usize,
}

/// A unit that waits.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    granted: bool,
    unit: Buffer,
}

impl UnitQueue {
    /// A queue of at most `limit` bytes, which takes no more while its head has waited for `delay`; `credit`: it takes
    /// what it has granted; `stamps`: delivery has a deadline.
    pub(super) fn new(limit: usize, delay: Duration, credit: bool, stamps: bool) -> Self {
        let grants = credit.then(Grants::new);
        Self { limit, delay, grants, stamps, waiting: VecDeque::new(), bytes: 0, sent: 0 }
    }

    /// Takes a unit; false if it is refused.
    pub(super) fn push(&mut self, now: Instant, mut unit: Buffer) -> bool {
        if self.stamps {
            age::stamp(now, &mut unit);
        }
        let bytes = self.bytes + cost(&unit);
        let late = self.waiting.front().is_some_and(|first| now.since(first.since) > self.delay);
        let granted = self.grants.as_mut().is_some_and(Grants::take);
        let crowded = bytes > self.limit || (late && bytes > MIN_QUEUE);
        if unit.len() > MAX_UNIT || (crowded && !granted) {
            return false;
        }
        self.bytes = bytes;
        self.waiting.push_back(Waiting { since: now, granted, unit });
        true
    }

    /// Drops the units that have waited for longer than this, but for those that were granted and one that has been
    /// begun; how many.
    pub(super) fn expire(&mut self, now: Instant, after: Duration) -> u64 {
        let (mut expired, mut at) = (0, usize::from(self.sent > 0));
        while let Some(waiting) = self.waiting.get(at).filter(|waiting| waiting.since + after < now) {
            if waiting.granted {
                at += 1;
            } else if let Some(Waiting { unit, .. }) = self.waiting.remove(at) {
                self.bytes -= cost(&unit);
                expired += 1;
            }
        }
        expired
    }

    /// Time from which the age of the first unit is counted; `None` if that begins when it is sent.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.waiting.front().filter(|first| !first.granted).map(|first| first.since)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Number of further units to grant.
    pub(super) fn grant_due(&self) -> Option<u64> {
        self.grants.as_ref()?.due(self.waiting.len() as u64)
    }

    /// This many more have been granted.
    pub(super) fn granted(&mut self, units: u64) {
        self.grants.iter_mut().for_each(|grants| grants.granted(units));
    }

    /// Fills in as many pieces as fit.
    pub(super) fn fill(&mut self, now: Instant, filler: &mut Filler<'_>) {
        while let Some(Waiting { since, granted, unit }) = self.waiting.front_mut() {
            let Some(room) = filler.room() else { return };
            if self.stamps && *granted && self.sent == 0 {
                age::stamp_again(now, unit);
            }
            let rest = &unit[self.sent..];
            if room == 0 && !rest.is_empty() {
                return;
            }
            let bytes = &rest[..rest.len().min(room)];
            let last = bytes.len() == rest.len();
            if !filler.put(&Chunk::Unit { first: self.sent == 0, last, bytes }) {
                return;
            }
            self.sent += bytes.len();
            if last {
                self.bytes -= cost(unit);
                self.sent = 0;
                let waited = now.since(*since);
                self.waiting.pop_front().into_iter().for_each(|waiting| waiting.unit.recycle());
                if let Some(grants) = &mut self.grants {
                    grants.sent(waited, self.waiting.is_empty());
                }
            }
        }
    }
}

/// The memory that a unit takes; an empty one takes some too.
fn cost(unit: &Buffer) -> usize {
    unit.len() + Buffer::HEADROOM + size_of::<Waiting>()
}

/// Puts units together.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    partial: Option<Buffer>,
    /// Whether the end of a unit that has been counted may still arrive.
    counted: bool,
    /// Units of which a part arrived but not all; a minimum, for the end of one looks like that of another.
    pub(super) broken: u64,
}

impl Reassembly {
    /// Takes a piece; gives the unit that it completes.
    pub(super) fn take(&mut self, first: bool, last: bool, bytes: &[u8]) -> Option<Buffer> {
        let unit = match (first, self.partial.take()) {
            (true, partial) => {
                self.counted = false;
                self.broken += u64::from(partial.is_some());
                Buffer::copy_from(bytes)
            }
            (false, Some(mut partial)) if partial.len() + bytes.len() <= MAX_UNIT => {
                partial.append(bytes);
                partial
            }
            (false, Some(_)) => {
                self.counted = !last;
                self.broken += 1;
                return None;
            }
            (false, None) => {
                self.broken += u64::from(last && !core::mem::replace(&mut self.counted, false));
                return None;
            }
        };
        if last {
            return Some(unit);
        }
        self.partial = Some(unit);
        None
    }

    /// Symbols are missing here: units that were begun stay incomplete.
    pub(super) fn skip(&mut self) {
        if self.partial.take().is_some() {
            self.counted = true;
            self.broken += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_unit_that_has_waited_for_too_long_16_kib_may_wait_and_no_more() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let unit = || Buffer::zeroed(1000);
        let mut queue = UnitQueue::new(1 << 20, Duration::from_millis(50), false, false);
        assert!(queue.push(at(0), unit()));
        assert!((0..100).all(|_| queue.push(at(50), unit())), "it has not waited for longer");
        let mut queue = UnitQueue::new(1 << 20, Duration::from_millis(50), false, false);
        assert!(queue.push(at(0), unit()));
        while queue.push(at(51), unit()) {}
        assert!(queue.bytes <= 16_384 && queue.bytes + cost(&unit()) > 16_384, "{}", queue.bytes);
    }

    #[test]
    fn units_that_have_waited_for_longer_are_dropped_but_not_one_that_is_begun() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let after = Duration::from_millis(50);
        for (sent, expired) in [(0, 2), (400, 1)] {
            let mut queue = UnitQueue::new(1 << 20, Duration::from_secs(1), false, false);
            for millis in [0, 10, 20, 30] {
                assert!(queue.push(at(millis), Buffer::zeroed(1000)));
            }
            queue.sent = sent;
            assert_eq!(queue.expire(at(50), after), 0, "none has waited for longer than that");
            assert_eq!(queue.expire(at(70), after), expired, "{sent}");
            assert_eq!(queue.waiting.front().unwrap().since, at(if sent > 0 { 0 } else { 20 }));
            assert_eq!(queue.bytes, (4 - expired as usize) * cost(&Buffer::zeroed(1000)));
            assert_eq!(queue.expire(at(71), after), 1, "the third");
        }
    }

    #[test]
    fn a_unit_is_a_udp_payload_with_a_stamp_at_most() {
        for (bytes, taken) in [(65_539, true), (65_540, false)] {
            let mut queue = UnitQueue::new(1 << 20, Duration::from_millis(50), false, false);
            assert_eq!(queue.push(Instant::ZERO, Buffer::zeroed(bytes)), taken, "{bytes}");
            // And none that is longer is put together.
            let mut reassembly = Reassembly::default();
            assert_eq!(reassembly.take(true, false, &[0; 60_000]), None);
            let unit = reassembly.take(false, true, &vec![0; bytes - 60_000]);
            assert_eq!((unit.is_some(), reassembly.broken), (taken, u64::from(!taken)), "{bytes}");
        }
    }

    #[test]
    fn a_unit_that_was_granted_grows_old_only_from_when_it_is_begun_and_one_that_was_not_from_the_first() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut queue = UnitQueue::new(1 << 20, Duration::from_secs(10), true, true);
        queue.granted(2);
        for byte in 0..4 {
            assert!(queue.push(at(0), Buffer::copy_from(&[byte; 100])));
        }
        assert_eq!(queue.expire(at(1000), Duration::from_millis(200)), 2, "those that were not granted");
        assert!(queue.push(at(1500), Buffer::copy_from(&[9; 100])));
        // A symbol holds one and a half.
        let mut begun = Vec::new();
        for now in [2000, 3000, 4000] {
            let mut symbol = [0; 160];
            queue.fill(at(now), &mut Filler::new(&mut symbol));
            let first = |chunk| match chunk {
                Ok(Chunk::Unit { first: true, bytes, .. }) => Some((bytes[STAMP], age::read(bytes)?)),
                _ => None,
            };
            begun.extend(super::super::chunk::chunks(&symbol).filter_map(first));
        }
        let stamp = |millis: u64| ((millis * 1_000_000) >> 14) as u32;
        assert_eq!(begun, [(0, stamp(2000)), (1, stamp(2000)), (9, stamp(1500))]);
        assert!(queue.is_empty() && queue.bytes == 0);
    }
}
