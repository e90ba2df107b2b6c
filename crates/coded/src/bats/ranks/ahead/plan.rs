//! The plan for packets that left together: when repairs of them are due, and what is done then.

use hopcast_core::{Duration, Instant};

use super::super::super::bursts::BURSTY;
use super::super::super::receiver::DEADLINE_INTERVAL;
use super::Limits;

/// Time between the last packet and the repairs. Chosen: shorter, and the same event takes both; longer, and a loss
/// costs as much delay.
const SPACING: Duration = Duration::from_millis(1);
/// The same before a deadline, as a share of the time that is left, as one over it. Chosen: a tenth of a millisecond
/// where hops have a few left to share.
const SPACING_SHARE: u64 = 8;
/// Share of the time that is left until repairs are too late for which they wait for the batch to become full, as one
/// over it. Chosen: a batch shares its repairs, so that a full one needs fewer for each packet; a larger share leaves
/// hops that follow no time for theirs.
const WAIT_SHARE: u64 = 4;
/// Minimum time that it takes until a loss is reported, besides the round trip: that of four packets behind it at a
/// video's rate. Chosen: longer, and repairs are sent that a report would have asked for in time; shorter, and it is
/// too late when none has.
const NOTICE: Duration = Duration::from_millis(3);
/// The same as a share of the round trip, as one over it, and its maximum. Chosen likewise: reports wait for a quarter
/// of a round trip where nothing is seen to be missing, and something is when the next frame comes.
const NOTICE_SHARE: u64 = 8;
const MAX_NOTICE: Duration = Duration::from_millis(20);
/// Time that hops which follow need to repair ahead of need what a report has repaired here: for the last one, and as
/// a share of the time to the end, as one over it. Chosen: more, and repairs are sent ahead that a report would have
/// asked for in time; less, and what has been repaired is late.
const QUEUES: Duration = Duration::from_millis(4);
const QUEUES_SHARE: u64 = 6;
/// Share of the time that there is for which repairs that are due let go first what is new, as one over it. Chosen: a
/// longer wait makes them late where what is new never ends, as in a transfer; a shorter one delays the end of a long
/// frame.
const PATIENCE_SHARE: u64 = 4;

/// A hop, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// The round trip.
    pub(super) trip: Option<Duration>,
    /// The mean number of packets lost in a row.
    pub(super) burst: f64,
}

/// Packets of one batch that left together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// How many they are, and how many of them no report has covered.
    pub(super) sent: u8,
    pub(super) open: u8,
    /// When the oldest of their content was made.
    pub(super) made: Instant,
    /// Greatest time from when any of it was made to when it left.
    lag: Duration,
    /// When the first and the last of them left.
    first: Instant,
    pub(super) last: Instant,
    /// When the next step is due.
    pub(super) due: Option<Instant>,
}

/// Ages of what is sent over a hop before a deadline that somebody has set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    /// Up to it, it can arrive in time.
    reaches: Duration,
    /// Up to it, the hops that follow have time to repair it.
    plans: Duration,
    /// What is late is of use, too, the sooner the better.
    late_too: bool,
    /// What reports ask for is repaired.
    asks: bool,
}

/// What to do about packets that are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is too late.
    Nothing,
    /// As many repairs are sent as they may lose.
    Protect,
    /// They are lost: so many are sent that they arrive.
    Replace,
    /// One packet asks for a report.
    Ask,
}

impl Group {
    pub(super) const fn new(made: Instant, leaves: Instant) -> Self {
        Self { sent: 0, open: 0, made, lag: Duration::ZERO, first: leaves, last: leaves, due: None }
    }

    /// A packet joins them.
    pub(super) fn add(&mut self, made: Instant, leaves: Instant) {
        self.sent = self.sent.saturating_add(1);
        self.open = self.open.saturating_add(1);
        self.made = self.made.min(made);
        self.lag = self.lag.max(leaves.since(made));
        self.last = leaves;
    }
}

/// Time at which repairs are due where nobody has set a deadline.
pub(super) fn soon(group: &Group, hop: Hop) -> Instant {
    group.last + if hop.burst > BURSTY { SPACING.mul_f64(hop.burst) } else { SPACING }
}

impl Aim {
    /// For a deadline, where it takes these times to the child, and from there to the end.
    pub(super) fn new(deadline: Duration, (child, rest): (Duration, Duration), limits: Limits) -> Self {
        let reaches = deadline.saturating_sub(child + rest);
        let plans = reaches.saturating_sub(QUEUES + rest / QUEUES_SHARE);
        Self { reaches, plans, late_too: limits.inside, asks: limits.asks }
    }

    /// Time for which repairs that are due let go first what is new.
    pub(super) fn patience(&self) -> Duration {
        self.plans / PATIENCE_SHARE
    }

    /// Whether what was made then is still of use.
    pub(super) fn can_reach(&self, now: Instant, made: Instant) -> bool {
        self.late_too || now <= made + self.reaches
    }

    /// Time by which a report is to tell what has arrived, or after which there is no time to wait for it; `None` if
    /// none can come in time.
    fn reported_at(&self, group: &Group, hop: Hop) -> Option<Instant> {
        let trip = hop.trip.filter(|_| self.asks)?;
        // Repairs of what comes in bursts are many, and are left to reports as far as each packet can wait for its own;
        // else what is oldest decides for all.
        let in_time = if hop.burst > BURSTY {
            group.lag + trip + notice(trip) <= self.plans
        } else {
            group.last + trip + notice(trip) <= group.made + self.plans
        };
        // Only before a deadline reports come more often than four times in a round trip.
        let interval = if self.late_too { trip / 4 } else { (trip / 4).min(DEADLINE_INTERVAL) };
        let reported = group.last + trip + interval + NOTICE;
        in_time.then(|| reported.min(group.made + self.plans))
    }

    /// When repairs are due, of a batch that is `full` or not; `None` if they would be too late.
    pub(super) fn due(&self, now: Instant, group: &Group, full: bool, hop: Hop) -> Option<Instant> {
        if !self.can_reach(now, group.made) {
            return None;
        }
        if let Some(reported) = self.reported_at(group, hop) {
            return Some(reported);
        }
        let latest = group.made + self.plans;
        let spacing = if full && hop.burst <= BURSTY {
            Duration::ZERO
        } else {
            SPACING.min(latest.since(group.last) / SPACING_SHARE)
        };
        let soon = group.last + spacing;
        let wait = latest.since(group.first) / WAIT_SHARE;
        Some(if full { soon } else { soon.max((group.first + wait).min(latest)) })
    }

    /// What to do now that they are due.
    pub(super) fn step(&self, now: Instant, group: &Group, hop: Hop) -> Step {
        if !self.can_reach(now, group.made) {
            return Step::Nothing;
        }
        let overdue = |&trip: &Duration| self.asks && group.last + trip + notice(trip) <= now;
        let Some(trip) = hop.trip.filter(overdue) else {
            return Step::Protect;
        };
        // A report is overdue.
        if now + trip + notice(trip) <= group.made + self.plans {
            Step::Ask
        } else if group.open == group.sent {
            Step::Protect
        } else {
            Step::Replace
        }
    }
}

/// Time that it takes until a loss is reported, besides the round trip.
fn notice(trip: Duration) -> Duration {
    NOTICE + (trip / NOTICE_SHARE).min(MAX_NOTICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKS: Limits = Limits { asks: true, overhead: 2.0, inside: false };

    fn at(millis: u64) -> Instant {
        Instant::ZERO + millis_of(millis)
    }

    const fn millis_of(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The first of three hops of 20 ms each.
    fn first_of_three(deadline: u64, limits: Limits) -> Aim {
        Aim::new(millis_of(deadline), (millis_of(20), millis_of(40)), limits)
    }

    fn hop(burst: f64) -> Hop {
        Hop { trip: Some(millis_of(40)), burst }
    }

    /// Packets made and sent at these times.
    fn group(packets: &[(u64, u64)]) -> Group {
        let mut group = Group::new(at(packets[0].0), at(packets[0].1));
        packets.iter().for_each(|&(made, leaves)| group.add(at(made), at(leaves)));
        group
    }

    #[test]
    fn where_a_report_can_come_in_time_it_is_waited_for_and_else_repairs_are_sent_ahead() {
        // Of 150 ms, 60 are for the way and 4 and a sixth of 40 for the hops behind: a report of what left at 10 ms
        // comes after 40 ms and what it takes to notice, and is waited for until 40, a quarter of that, and 3.
        let sent = group(&[(0, 0), (0, 10)]);
        assert_eq!(first_of_three(150, ASKS).due(at(10), &sent, false, hop(1.0)), Some(at(63)));
        // Without reports, and where they come too late: a quarter of what is left, from the first packet on.
        let never = Limits { asks: false, ..ASKS };
        let wait = |deadline: u64| millis_of(deadline - 60 - 4).saturating_sub(millis_of(40) / 6) / 4;
        assert_eq!(first_of_three(150, never).due(at(10), &sent, false, hop(1.0)), Some(at(0) + wait(150)));
        assert_eq!(first_of_three(125, ASKS).due(at(10), &sent, false, hop(1.0)), Some(at(0) + wait(125)));
        // Nobody knows the round trip.
        let unknown = Hop { trip: None, burst: 1.0 };
        assert_eq!(first_of_three(150, ASKS).due(at(10), &sent, false, unknown), Some(at(0) + wait(150)));
        // Too late for a wait: after a spacing; and at once if the batch is full, unless losses come in bursts.
        let late = group(&[(0, 28)]);
        for (full, burst, due) in [(false, 1.0, 1000), (true, 1.0, 0), (true, 2.0, 1000)] {
            let expected = at(28) + Duration::from_micros(due).min(wait(100) / 2);
            let found = first_of_three(100, ASKS).due(at(28), &late, full, hop(burst)).unwrap();
            assert!(
                found.since(at(28)) <= expected.since(at(28)) && (due == 0) == (found == at(28)),
                "{full} {burst}"
            );
        }
    }

    #[test]
    fn what_cannot_arrive_in_time_is_not_repaired_ahead_unless_late_is_better_than_never() {
        let sent = group(&[(0, 5)]);
        let aim = first_of_three(100, ASKS);
        assert!(aim.due(at(40), &sent, true, hop(1.0)).is_some());
        assert_eq!(aim.due(at(41), &sent, true, hop(1.0)), None);
        assert_eq!(
            (aim.step(at(40), &sent, hop(1.0)), aim.step(at(41), &sent, hop(1.0))),
            (Step::Protect, Step::Nothing)
        );
        let inside = first_of_three(100, Limits { inside: true, ..ASKS });
        assert!(inside.due(at(400), &sent, true, hop(1.0)).is_some());
        assert_ne!(inside.step(at(400), &sent, hop(1.0)), Step::Nothing);
    }

    #[test]
    fn a_report_that_is_overdue_is_asked_for_if_there_is_time_and_else_what_it_would_have_told_of_is_sent_again()
     {
        // It is overdue 40 + 3 + 5 ms after the last packet.
        let aim = first_of_three(200, ASKS);
        let mut sent = group(&[(0, 0), (0, 1)]);
        let step = |now, sent: &Group| aim.step(at(now), sent, hop(1.0));
        assert_eq!((step(48, &sent), step(49, &sent)), (Step::Protect, Step::Ask));
        // Of 200 ms, 129.3 are for this hop: an answer takes 48.
        assert_eq!((step(81, &sent), step(82, &sent)), (Step::Ask, Step::Protect));
        sent.open = 1;
        assert_eq!(step(82, &sent), Step::Replace, "it told of the other one");
    }

    #[test]
    fn what_is_oldest_decides_unless_losses_come_in_bursts() {
        // The first frame could just not wait for the report of the second.
        let both = group(&[(0, 0), (40, 41)]);
        let aim = first_of_three(150, ASKS);
        assert!(aim.reported_at(&both, hop(1.5)).is_none());
        assert_eq!(aim.reported_at(&both, hop(1.6)), Some(at(0) + aim.plans), "each waits for its own");
    }

    #[test]
    fn without_a_deadline_repairs_follow_after_a_millisecond_or_behind_a_burst() {
        let sent = group(&[(0, 5)]);
        assert_eq!((soon(&sent, hop(1.5)), soon(&sent, hop(8.0))), (at(6), at(13)));
    }
}
