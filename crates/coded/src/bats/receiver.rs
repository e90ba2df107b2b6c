//! The receiving end of a hop: what arrived over it, and when to tell.

use hopcast_core::{Duration, Instant, earliest};

use super::bursts::Bursts;
use super::child::Losses as _;
use super::wire::{self, Arrivals};

/// Packets after which a report is due. Chosen: fewer cost a small datagram for every one or two; more, and the window
/// of a fast hop is reported in lumps.
const MAX_UNREPORTED: u32 = 4;
/// Minimum time that a report waits for more packets: those of a burst are reported together. Chosen; shorter costs
/// more reports, longer delays the sender's rate and repairs on a short hop.
const MIN_WAIT: Duration = Duration::from_micros(200);
/// The same before the round trip is known. Chosen; shorter costs reports on long hops, longer delays the first repairs
/// of short ones.
const FIRST_WAIT: Duration = Duration::from_millis(1);
/// Maximum time that a report waits for data to travel with, where little arrives. Chosen: longer, and a sender that
/// has little to send learns late of a loss; shorter, and reports of a dialogue travel alone.
const MAX_WAIT: Duration = Duration::from_millis(20);
/// Maximum time that a report waits for more packets where somebody has set a deadline. Chosen: over a satellite, a
/// report that waits for longer comes too late for a repair; shorter costs reports.
pub(super) const DEADLINE_INTERVAL: Duration = Duration::from_millis(20);
/// Time for which a parent's word on the delay of the path counts: it is said every 250 ms while data is sent, and some
/// of that is lost. Chosen: eight of them.
const PATH_DELAY_LIFETIME: Duration = Duration::from_secs(2);
/// Packets behind the highest of which repeated ones are known: those further behind count as repeated. Chosen; with
/// fewer, a hop that reorders by more loses packets. It is the memory that is kept, 128 bytes a parent.
const REACH: u64 = 1024;

/// Arrivals from one parent.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Drawn when this node started.
    instance: u16,
    number: u16,
    epoch: Option<u32>,
    highest: Option<u64>,
    arrived: Instant,
    packets: u32,
    bytes: u32,
    runs: u16,
    bursts: Bursts,
    seen: [u64; (REACH / 64) as usize],
    round_trip: Duration,
    /// Somebody has set a deadline.
    fixed: bool,
    /// Times at which the latest packets came; `turn` is the oldest of them.
    latest: [Instant; MAX_UNREPORTED as usize],
    turn: usize,
    /// Packets since the last report.
    unreported: u32,
    /// Time at which the first of them came.
    since: Instant,
    told: Instant,
    due: Option<Instant>,
    /// Up to which symbol the parent may send new ones.
    pub(super) granted: u64,
    /// The first symbol that can be had from it.
    pub(super) floor: u64,
    /// Minimum path delay from the source through this parent, if it knows it, and when it told it.
    elapsed: Option<Duration>,
    informed: Instant,
}

/// Why a packet is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The sender was restarted since, or has not introduced itself.
    Epoch,
    /// It came before.
    Repeated,
}

impl Receiver {
    pub(super) fn new(instance: u16) -> Self {
        Self {
            instance,
            number: 0,
            epoch: None,
            highest: None,
            arrived: Instant::ZERO,
            packets: 0,
            bytes: 0,
            runs: 0,
            bursts: Bursts::default(),
            seen: [0; (REACH / 64) as usize],
            round_trip: Duration::ZERO,
            fixed: false,
            latest: [Instant::ZERO; MAX_UNREPORTED as usize],
            turn: 0,
            unreported: 0,
            since: Instant::ZERO,
            told: Instant::ZERO,
            due: None,
            granted: 0,
            floor: 0,
            elapsed: None,
            informed: Instant::ZERO,
        }
    }

    /// Takes what the sender says of itself.
    pub(super) fn on_info(&mut self, now: Instant, info: &wire::Info) {
        if self.epoch != Some(info.epoch) {
            let instance = self.instance;
            *self = Self { number: self.number, granted: self.granted, ..Self::new(instance) };
            self.epoch = Some(info.epoch);
        }
        self.round_trip = Duration::from_micros(u64::from(info.round_trip));
        self.fixed = info.fixed;
        self.floor = self.floor.max(info.floor);
        self.informed = now;
        self.elapsed = (info.elapsed > 0).then(|| Duration::from_micros(u64::from(info.elapsed)));
        if info.ask {
            self.report_at(now);
        }
    }

    /// Another session begins: what the parent said of the one before counts no more.
    pub(super) const fn begin(&mut self) {
        (self.floor, self.elapsed) = (0, None);
    }

    /// Whether it has said what it is about to send.
    pub(super) const fn is_introduced(&self) -> bool {
        self.epoch.is_some()
    }

    /// The highest sequence number that has arrived.
    pub(super) const fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Minimum path delay from the source through this parent, if it knows it and has told it lately.
    pub(super) fn elapsed(&self, now: Instant) -> Option<Duration> {
        self.elapsed.filter(|_| now.since(self.informed) <= PATH_DELAY_LIFETIME)
    }

    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// The mean number of packets lost in a row.
    pub(super) fn mean_burst(&self) -> f64 {
        self.bursts.mean_burst()
    }

    /// Time that it takes the parent to hear of what has changed here, besides the round trip.
    pub(super) fn interval(&self) -> Duration {
        if self.round_trip.is_zero() { FIRST_WAIT } else { self.pace().max(MIN_WAIT) }
    }

    /// Minimum time between two reports of which none is urgent.
    fn pace(&self) -> Duration {
        let quarter = self.round_trip / 4;
        if self.fixed { quarter.min(DEADLINE_INTERVAL) } else { quarter }
    }

    /// Takes a packet of `bytes` bytes, unless it came before.
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        data: &wire::Data<'_>,
        bytes: usize,
    ) -> Result<(), Refused> {
        if self.epoch.is_none_or(|epoch| epoch as u8 != data.epoch) {
            return Err(Refused::Epoch);
        }
        let expected = self.highest.map_or(0, |highest| highest + 1);
        let sequence = match self.highest {
            None => u64::from(data.sequence),
            Some(_) => wire::complete(data.sequence, 24, expected),
        };
        let gap = sequence > expected && self.highest.is_some();
        self.note(sequence)?;
        if self.highest.is_none_or(|highest| sequence > highest) {
            self.highest = Some(sequence);
            self.arrived = now;
            self.runs = self.runs.wrapping_add(u16::from(gap));
            if gap {
                self.bursts.run(sequence - expected);
            }
        }
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes as u32);
        self.unreported += 1;
        self.schedule(now, gap);
        if data.ask {
            self.report_at(now);
        }
        Ok(())
    }

    /// Marks a sequence number as seen.
    fn note(&mut self, sequence: u64) -> Result<(), Refused> {
        let bit = |sequence: u64| ((sequence % REACH / 64) as usize, 1_u64 << (sequence % 64));
        match self.highest {
            Some(highest) if sequence > highest => {
                for passed in highest + 1..=sequence.min(highest + REACH) {
                    let (word, mask) = bit(passed);
                    self.seen[word] &= !mask;
                }
            }
            Some(highest) if highest - sequence >= REACH => return Err(Refused::Repeated),
            Some(_) | None => {}
        }
        let (word, mask) = bit(sequence);
        if self.seen[word] & mask != 0 {
            return Err(Refused::Repeated);
        }
        self.seen[word] |= mask;
        Ok(())
    }

    fn schedule(&mut self, now: Instant, gap: bool) {
        let interval = self.interval();
        let quiet = now.since(self.told);
        if self.unreported == 1 {
            self.since = now;
        }
        let oldest = core::mem::replace(&mut self.latest[self.turn], now);
        self.turn = (self.turn + 1) % self.latest.len();
        // Little arrives: the report may wait for data that goes in the same direction.
        let trickle = now.since(oldest) > interval * 4;
        let at = if gap && (quiet >= interval || self.unreported >= MAX_UNREPORTED) {
            now
        } else if trickle {
            now + MAX_WAIT.min(self.round_trip * 2).max(interval)
        } else if self.unreported >= MAX_UNREPORTED {
            // Not more often than is of use, unless something is missing.
            now.max(self.told + self.pace())
        } else {
            now + interval
        };
        self.due = earliest(self.due, Some(at));
    }

    /// Sees to it that the next report is sent at `at`, or before; not to a parent that has never been heard.
    pub(super) fn report_at(&mut self, at: Instant) {
        if self.epoch.is_some() {
            self.due = earliest(self.due, Some(at));
        }
    }

    /// Time at which the next report is to be sent.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether a report would go well with data that is being sent.
    pub(super) fn is_welcome(&self, now: Instant) -> bool {
        // Half of the time that it may wait is over.
        self.due.is_some_and(|due| now.since(self.since) >= due.since(now))
    }

    /// Makes a report, but for what the node knows: floor, grant and ranks.
    pub(super) fn report(&mut self, now: Instant, session: u32) -> Option<wire::Report<'static>> {
        let epoch = self.epoch?;
        self.number = self.number.wrapping_add(1);
        (self.unreported, self.due, self.told) = (0, None, now);
        let hold = now.since(self.arrived).as_micros().min(u64::from(u16::MAX));
        let arrivals = self.highest.map(|highest| Arrivals {
            highest: highest as u32 & 0xFF_FFFF,
            at: (self.arrived.as_nanos() >> 4) as u32,
            hold: hold as u16,
            packets: self.packets & 0xFF_FFFF,
            bytes: self.bytes,
            runs: self.runs,
        });
        Some(wire::Report {
            session,
            epoch: epoch as u8,
            instance: self.instance,
            number: self.number,
            arrivals,
            floor: 0,
            grant: 0,
            base: 0,
            complete: true,
            rest: None,
            list: &[],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bats::wire::{Data, Info};

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// A receiver whose parent has told a round trip of `round_trip` microseconds.
    fn receiver(round_trip: u32) -> Receiver {
        let mut receiver = Receiver::new(1);
        let info = Info { epoch: 7, round_trip, ..Info::example() };
        receiver.on_info(Instant::ZERO, &info);
        receiver
    }

    fn take(receiver: &mut Receiver, now: Instant, sequence: u32) -> Result<(), Refused> {
        let data = Data { epoch: 7, sequence, ..Data::example() };
        receiver.on_data(now, &data, 1000)
    }

    #[test]
    fn what_a_parent_says_of_the_path_counts_for_2_s_and_for_its_session() {
        let mut receiver = Receiver::new(1);
        let info = Info { deadline: Some(200), elapsed: 7000, floor: 5, ..Info::example() };
        receiver.on_info(at(1_000_000), &info);
        let elapsed = Some(Duration::from_millis(7));
        assert_eq!(receiver.elapsed(at(3_000_000)), elapsed);
        assert_eq!(receiver.elapsed(at(3_000_001)), None);
        receiver.on_info(at(4_000_000), &info);
        assert_eq!((receiver.elapsed(at(4_000_000)), receiver.floor), (elapsed, 5));
        receiver.begin();
        assert_eq!((receiver.elapsed(at(4_000_000)), receiver.floor), (None, 0));
    }

    #[test]
    fn a_report_waits_for_a_quarter_of_a_round_trip() {
        for (round_trip, wait) in [(0, 1000), (100, 200), (800, 200), (804, 201), (80_000, 20_000)] {
            assert_eq!(receiver(round_trip).interval(), Duration::from_micros(wait), "{round_trip}");
        }
    }

    #[test]
    fn four_packets_are_told_of_at_once() {
        let mut receiver = receiver(8000);
        for sequence in 0..3 {
            take(&mut receiver, at(2500), sequence).unwrap();
            assert_eq!(receiver.due(), Some(at(4500)));
        }
        take(&mut receiver, at(2500), 3).unwrap();
        assert_eq!(receiver.due(), Some(at(2500)));
        // But not more often than is of use, ...
        receiver.report(at(2500), 1).unwrap();
        (4..12).for_each(|sequence| take(&mut receiver, at(2600), sequence).unwrap());
        assert_eq!(receiver.due(), Some(at(4500)));
        // ... unless something is missing.
        take(&mut receiver, at(2700), 13).unwrap();
        assert_eq!(receiver.due(), Some(at(2700)));
    }

    #[test]
    fn where_little_arrives_a_report_waits_for_data_20_ms_at_most() {
        for (round_trip, wait) in [(4000, 8000), (40_000, 20_000), (100_000, 25_000)] {
            let mut receiver = receiver(round_trip);
            take(&mut receiver, at(1_000_000), 0).unwrap();
            assert_eq!(receiver.due(), Some(at(1_000_000 + wait)), "{round_trip}");
        }
    }

    #[test]
    fn a_packet_that_is_1024_behind_is_taken_for_a_repeated_one() {
        let mut receiver = receiver(8000);
        assert_eq!(take(&mut receiver, at(0), 5000), Ok(()));
        assert_eq!(take(&mut receiver, at(0), 5000 - 1023), Ok(()));
        assert_eq!(take(&mut receiver, at(0), 5000 - 1023), Err(Refused::Repeated));
        assert_eq!(take(&mut receiver, at(0), 5000 - 1024), Err(Refused::Repeated));
        assert_eq!(take(&mut receiver, at(0), 5001), Ok(()));
        assert_eq!(take(&mut receiver, at(0), 5000), Err(Refused::Repeated));
        // A jump of more than that leaves nothing seen.
        assert_eq!(take(&mut receiver, at(0), 5001 + 1024), Ok(()));
        assert_eq!(take(&mut receiver, at(0), 5000 + 1023), Ok(()));
    }

    #[test]
    fn a_report_counts_packets_bytes_and_runs_of_losses() {
        let mut receiver = receiver(8000);
        for (sequence, now) in [(10, 100), (11, 200), (14, 300), (13, 400), (20, 500)] {
            take(&mut receiver, at(now), sequence).unwrap();
        }
        let report = receiver.report(at(1700), 1).unwrap();
        let expected =
            Arrivals { highest: 20, at: 500_000 >> 4, hold: 1200, packets: 5, bytes: 5000, runs: 2 };
        assert_eq!(
            (report.arrivals, report.instance, report.number, report.epoch),
            (Some(expected), 1, 1, 7)
        );
        // Runs of two and of five.
        assert!((receiver.mean_burst() - 3.5).abs() < 0.05, "{}", receiver.mean_burst());
    }

    #[test]
    fn where_four_packets_come_in_a_round_trip_it_is_no_trickle() {
        // The fourth before this one came a round trip ago, or longer.
        for (ago, due) in [(8000, 2000), (8001, 16_000)] {
            let mut receiver = receiver(8000);
            for sequence in 0..4 {
                take(&mut receiver, at(1_000_000), sequence).unwrap();
            }
            receiver.report(at(1_000_000), 1).unwrap();
            take(&mut receiver, at(1_000_000 + ago), 4).unwrap();
            assert_eq!(receiver.due(), Some(at(1_000_000 + ago + due)), "{ago}");
        }
    }
}
