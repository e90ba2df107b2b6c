//! Repairs ahead of need: packets of a batch that are sent before anybody reports what it lacks.
//!
//! What leaves together is protected together: of `n` packets of a batch that no report has covered, as many more are
//! sent as make it all but certain that `n` arrive ([`Margin`]). When that is done depends on the deadline.
//!
//! - *Somebody has set one*, and the time from this hop to the end is known. What a report can still ask for in time is
//!   left to the report; if none comes when it should, one packet asks for it. Where there is no time for that, the
//!   repairs are sent when the batch is full, or when waiting for that would cost too much of the time that is left.
//!   The [`plan`] says when.
//! - *Nobody has*: the repairs are sent right after the last packet, as long as the hop has [capacity to spare](spent).
//!
//! Both send no more than a share of what they protect ([`overhead`](super::super::Config::overhead)), and what is new
//! goes first.

mod plan;
mod spent;

use std::collections::BTreeSet;

use hopcast_core::{Duration, Instant};

use super::super::rate::LinkRate;
use super::margin::Margin;
use plan::{Aim, Group, Hop, Step};
use spent::Spent;

/// Probability that repairs of what leaves together are too few. Chosen: one frame in a thousand then waits for a round
/// trip; a smaller one takes more repairs of every frame.
const SHORTFALL: f64 = 1e-3;
/// The same where losses come in bursts. Chosen: each factor of ten is more than two bursts, and few of what leaves
/// together is hit by any.
const BURST_SHORTFALL: f64 = 1e-2;
/// The same where a protocol inside takes a delay for a loss, and a loss for congestion. Chosen: a CUBIC is then kept
/// from the rate of a satellite by its own growth and not by losses; a smaller one takes more repairs.
const INSIDE_SHORTFALL: f64 = 1e-5;
/// Loss below which no repair is sent ahead of need where nobody has set a deadline. Chosen: a loss is then so rare
/// that repairs would be nearly all in vain.
const MIN_LOSS: f64 = 0.002;
/// Time that a report may wait for data to travel with, where little is sent: as long as the receiver's `MAX_WAIT`, for
/// the same reasons.
const MAX_REPORT_HOLD: Duration = Duration::from_millis(20);

/// Bounds of the repairs ahead of need, and their use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Limits {
    /// Whether what a report asks for is repaired.
    pub(super) asks: bool,
    /// Bytes of repairs for each byte of what is new.
    pub(super) overhead: f64,
    /// A protocol inside takes a delay for a loss.
    pub(super) inside: bool,
}

/// The repairs ahead of need of one hop: which batches they are due of, and whether there is room for them.
#[derive(Debug)]
pub(super) struct Ahead {
    limits: Limits,
    /// Where somebody has set a deadline, and the time to the end is known.
    aim: Option<Aim>,
    margin: Margin,
    queue: BTreeSet<(Instant, u64)>,
    spent: Spent,
    idle: bool,
}

/// The packets of one batch that are to be protected.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guard {
    group: Option<Group>,
    /// Repairs that are left to send now, and when the oldest that they bring was made.
    repairs: u8,
    made: Instant,
    /// When the next step is due.
    due: Option<Instant>,
}

/// A packet that is sent, as far as repairs of it are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// When its content was made, or shortly before.
    pub(super) made: Instant,
    /// When the newest of its batch was.
    pub(super) newest: Instant,
    pub(super) bytes: usize,
    /// Its batch grows no more.
    pub(super) full: bool,
    /// Another could follow.
    pub(super) more: bool,
}

impl Ahead {
    pub(super) fn new() -> Self {
        Self {
            limits: Limits::default(),
            aim: None,
            margin: Margin::new([SHORTFALL, BURST_SHORTFALL]),
            queue: BTreeSet::new(),
            spent: Spent::default(),
            idle: false,
        }
    }

    /// Begins with another session.
    pub(super) fn start(&mut self, limits: Limits) {
        let shortfall = if limits.inside { INSIDE_SHORTFALL } else { SHORTFALL };
        *self = Self { limits, margin: Margin::new([shortfall, BURST_SHORTFALL]), ..Self::new() };
    }

    /// Somebody has set a deadline; the times from this hop to the child, and from there to the end, are known.
    pub(super) fn aim(&mut self, aim: Option<(Duration, (Duration, Duration))>) {
        self.aim = aim.map(|(deadline, way)| Aim::new(deadline, way, self.limits));
    }

    /// A packet of a batch is sent that is new, or repairs what was reported.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        (number, guard): (u64, &mut Guard),
        packet: &Packet,
        rate: &LinkRate,
    ) {
        self.spent.add(now, packet.bytes as u64, true, rate);
        let some = self.limits.overhead > 0.0;
        let spare = some && self.spent.is_spare(rate);
        self.idle = spare && !packet.more;
        if !(some && self.aim.is_some() || spare && rate.loss() >= MIN_LOSS) {
            self.drop(number, guard);
            return;
        }
        let (hop, leaves) = (hop(rate), self.spent.carried().max(now));
        let can_reach = |made: Instant| self.aim.is_none_or(|aim| aim.can_reach(now, made));
        // What it brings may be the first of what is newer.
        let Some(made) = [packet.made, packet.newest].into_iter().find(|&made| can_reach(made)) else {
            return;
        };
        // Those that cannot arrive in time any more are not planned for.
        guard.group = guard.group.filter(|group| can_reach(group.made));
        let group = guard.group.get_or_insert_with(|| Group::new(made, leaves));
        group.add(made, leaves);
        group.due = match &self.aim {
            Some(aim) => aim.due(now, group, packet.full, hop),
            None => Some(plan::soon(group, hop)),
        };
        self.schedule(number, guard);
    }

    /// The next batch of which a repair is due; `new`: there is something new that could go first.
    pub(super) fn due(&self, now: Instant, new: bool) -> Option<u64> {
        let &(at, number) = self.queue.first()?;
        let due = if new { at + self.aim?.patience() } else { at.max(self.spent.carried()) };
        (due <= now).then_some(number)
    }

    /// Whether a repair of a batch that is due is to be sent now.
    pub(super) fn wants(&mut self, now: Instant, number: u64, guard: &mut Guard, rate: &LinkRate) -> bool {
        if guard.repairs == 0
            && let Some(group) = &mut guard.group
        {
            let hop = hop(rate);
            let step = self.aim.map_or(Step::Protect, |aim| aim.step(now, group, hop));
            let open = group.open;
            guard.made = group.made;
            if let (Step::Ask, Some(aim)) = (step, &self.aim) {
                group.last = now;
                group.due = aim.due(now, group, true, hop);
            } else {
                guard.group = None;
            }
            guard.repairs = match step {
                Step::Nothing => 0,
                Step::Protect => self.protection(open, rate),
                Step::Replace => self.margin.packets(open),
                Step::Ask => 1,
            };
        }
        let late = self.aim.is_some_and(|aim| !aim.can_reach(now, guard.made));
        if late || !self.spent.is_within(self.limits.overhead) {
            guard.repairs = 0;
        }
        if guard.repairs == 0 {
            self.schedule(number, guard);
        }
        guard.repairs > 0
    }

    /// Number of repairs of packets that may be on their way.
    fn protection(&self, open: u8, rate: &LinkRate) -> u8 {
        let loss = rate.loss();
        let some = match self.aim {
            Some(_) => 1.0 - (1.0 - loss).powi(i32::from(open)) > SHORTFALL,
            None => self.spent.is_spare(rate),
        };
        if some { self.margin.packets(open) - open } else { 0 }
    }

    /// A repair of a batch is sent.
    pub(super) fn on_repair(
        &mut self,
        now: Instant,
        (number, guard): (u64, &mut Guard),
        bytes: usize,
        rate: &LinkRate,
    ) {
        self.spent.add(now, bytes as u64, false, rate);
        guard.repairs = guard.repairs.saturating_sub(1);
        self.schedule(number, guard);
    }

    /// A report has covered packets of a batch, of which `in_flight` are left; `lacks`: the child may lack something.
    pub(super) fn on_report(&mut self, number: u64, guard: &mut Guard, in_flight: u16, lacks: bool) {
        if !lacks {
            self.drop(number, guard);
            return;
        }
        if let Some(group) = &mut guard.group {
            group.open = group.open.min(in_flight.min(u16::from(u8::MAX)) as u8);
        }
        guard.group = guard.group.filter(|group| group.open > 0);
        self.schedule(number, guard);
    }

    /// The hop is found to lose this share of its packets, in runs of this mean length.
    pub(super) fn update(&mut self, rate: &LinkRate) {
        self.margin.update(rate.loss(), rate.mean_burst());
    }

    /// No repair of a batch is to be sent any more.
    pub(super) fn drop(&mut self, number: u64, guard: &mut Guard) {
        (guard.group, guard.repairs) = (None, 0);
        self.schedule(number, guard);
    }

    /// Finds out when the next step of a batch is due.
    fn schedule(&mut self, number: u64, guard: &mut Guard) {
        // Repairs that are under way go on.
        let due = if guard.repairs > 0 { guard.due } else { guard.group.and_then(|group| group.due) };
        if guard.due == due {
            return;
        }
        if let Some(before) = guard.due {
            self.queue.remove(&(before, number));
        }
        if let Some(due) = due {
            self.queue.insert((due, number));
        }
        guard.due = due;
    }

    /// Time at which a repair is due: what is new must find no queue of repairs.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.queue.first().map(|&(at, _)| at.max(self.spent.carried()))
    }

    /// For how much longer than else a report may be waited for.
    pub(super) fn patience(&self, round_trip: Option<Duration>) -> Duration {
        if self.idle { (round_trip.unwrap_or_default() * 2).min(MAX_REPORT_HOLD) } else { Duration::ZERO }
    }
}

impl Guard {
    /// Whether anything is to be protected.
    pub(super) const fn is_on(&self) -> bool {
        self.due.is_some()
    }
}

fn hop(rate: &LinkRate) -> Hop {
    Hop { trip: rate.srtt(), burst: rate.mean_burst() }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;
    use crate::bats::rate::{Config, HopReport};

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A hop whose round trip is 100 ms, and that has lost this share of a thousand packets.
    fn rate(loss: f64) -> LinkRate {
        let mut rate = LinkRate::new(Config::default(), Seed::new(1, 0).stream(&["ahead"], 0));
        let (packets, lost) = (1000, (1000.0 * loss) as u64);
        (0..packets).for_each(|number| rate.on_sent(at(0), number, 1000, true));
        let report = HopReport {
            highest: packets - 1,
            received_packets: packets - lost,
            received_bytes: (packets - lost) * 1000,
            ..HopReport::example()
        };
        rate.on_sent(at(0), packets, 1000, true);
        assert_eq!(rate.on_report(at(50), &HopReport::example()), Ok(()));
        assert_eq!(rate.on_report(at(100), &report), Ok(()));
        rate
    }

    fn begun(overhead: f64, loss: f64) -> (Ahead, LinkRate) {
        let (mut ahead, rate) = (Ahead::new(), rate(loss));
        ahead.start(Limits { overhead, inside: false, asks: true });
        ahead.update(&rate);
        (ahead, rate)
    }

    fn sent(ahead: &mut Ahead, now: Instant, guard: &mut Guard, packets: u8, rate: &LinkRate) {
        let packet = Packet { made: now, newest: now, bytes: 100, full: false, more: false };
        (0..packets).for_each(|_| ahead.on_sent(now, (7, guard), &packet, rate));
    }

    /// Number of repairs that are sent by `until`.
    fn repairs(ahead: &mut Ahead, until: Instant, guard: &mut Guard, rate: &LinkRate) -> u8 {
        let mut repairs = 0;
        while let Some(number) = ahead.due(until, false) {
            if ahead.wants(until, number, guard, rate) {
                repairs += 1;
                ahead.on_repair(until, (number, guard), 100, rate);
            }
        }
        repairs
    }

    #[test]
    fn what_leaves_together_shares_as_many_repairs_as_leave_it_incomplete_once_in_a_thousand_times() {
        // The fewest k for which more than k of n + k are lost with a probability below 0.001, at 5 %; each combination
        // says nothing new once in 256 times, besides.
        for (packets, expected) in [(1, 2), (4, 3), (17, 6), (32, 8)] {
            let ((mut ahead, rate), mut guard) = (begun(2.0, 0.05), Guard::default());
            assert!((rate.loss() - 0.05).abs() < 0.003, "{}", rate.loss());
            sent(&mut ahead, at(200), &mut guard, packets, &rate);
            assert_eq!(ahead.due(at(200), false), None, "not with the same event");
            let found = repairs(&mut ahead, at(201), &mut guard, &rate);
            assert!(found.abs_diff(expected) <= 1, "{packets}: {found}");
            assert!(!guard.is_on() && ahead.deadline().is_none());
        }
    }

    #[test]
    fn repairs_are_bounded_and_none_follow_what_is_lost_hardly_ever_or_what_has_arrived() {
        let ((mut ahead, rate), mut guard) = (begun(0.1, 0.05), Guard::default());
        sent(&mut ahead, at(200), &mut guard, 20, &rate);
        assert_eq!(repairs(&mut ahead, at(201), &mut guard, &rate), 3, "a tenth, and one");
        for (overhead, loss) in [(0.0, 0.05), (2.0, 0.001)] {
            let ((mut ahead, rate), mut guard) = (begun(overhead, loss), Guard::default());
            sent(&mut ahead, at(200), &mut guard, 20, &rate);
            assert!(!guard.is_on(), "{overhead} {loss}");
        }
        let ((mut ahead, rate), mut guard) = (begun(2.0, 0.05), Guard::default());
        sent(&mut ahead, at(200), &mut guard, 20, &rate);
        ahead.on_report(7, &mut guard, 3, true);
        let few = repairs(&mut ahead, at(201), &mut guard, &rate);
        assert!((1..=3).contains(&few), "of three alone: {few}");
        sent(&mut ahead, at(300), &mut guard, 20, &rate);
        ahead.on_report(7, &mut guard, 3, false);
        assert!(!guard.is_on() && ahead.deadline().is_none(), "it lacks nothing");
    }

    #[test]
    fn before_a_deadline_what_is_new_goes_first_but_not_for_ever() {
        let ((mut ahead, rate), mut guard) = (begun(2.0, 0.05), Guard::default());
        // 200 ms for a hop of 100: nothing can be asked for in time.
        ahead.aim(Some((Duration::from_millis(300), (Duration::from_millis(50), Duration::from_millis(50)))));
        sent(&mut ahead, at(200), &mut guard, 20, &rate);
        let due = ahead.deadline().unwrap();
        assert!(due > at(201), "it waits for the batch to become full");
        assert_eq!((ahead.due(due, false), ahead.due(due, true)), (Some(7), None));
        let patience = ahead.aim.unwrap().patience();
        assert_eq!(ahead.due(due + patience, true), Some(7));
    }

    #[test]
    fn what_is_too_late_takes_nothing_from_what_follows_it_in_its_batch() {
        let ((mut ahead, rate), mut guard) = (begun(2.0, 0.05), Guard::default());
        ahead.aim(Some((Duration::from_millis(300), (Duration::from_millis(50), Duration::from_millis(50)))));
        // 200 ms are for this hop.
        let late = Packet { made: at(100), newest: at(100), bytes: 100, full: false, more: false };
        ahead.on_sent(at(301), (7, &mut guard), &late, &rate);
        assert!(!guard.is_on());
        sent(&mut ahead, at(302), &mut guard, 5, &rate);
        assert!(repairs(&mut ahead, at(480), &mut guard, &rate) >= 2 && !guard.is_on());
        // Repairs that are begun end when they are too late.
        sent(&mut ahead, at(500), &mut guard, 5, &rate);
        assert_eq!(ahead.due(at(680), false), Some(7));
        assert!(ahead.wants(at(680), 7, &mut guard, &rate));
        assert_eq!((repairs(&mut ahead, at(701), &mut guard, &rate), guard.is_on()), (0, false));
    }

    #[test]
    fn over_an_idle_hop_a_report_may_wait_for_two_round_trips_but_20_ms_at_most() {
        let ahead = Ahead { idle: true, ..Ahead::new() };
        for (round_trip, wait) in [(3, 6), (10, 20), (100, 20)] {
            assert_eq!(ahead.patience(Some(Duration::from_millis(round_trip))), Duration::from_millis(wait));
        }
        assert!(ahead.patience(None).is_zero());
        assert!(Ahead::new().patience(Some(Duration::from_millis(100))).is_zero());
    }
}
