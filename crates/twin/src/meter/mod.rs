//! The measurements of a flow: one [`Meter`], shared by the application's two ends.
//!
//! In virtual time both ends hold the same meter. Live they are processes of their own: the meter is split, so that
//! each has a `partial` one with notes that only both together can judge; after the run the two are joined.

mod distribution;
mod earliest;
mod jitter;
mod partial;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use hopcast_core::{Duration, Instant};

pub(crate) use self::distribution::Distribution;
use self::earliest::Earliest;
pub(crate) use self::jitter::Jitter;
use self::partial::Notes;
pub(crate) use self::partial::PartialMeter;
use crate::app::FrameLog;
use crate::scenario::Ferry;
use crate::scenario::model::{Flow, FrameType, Measure, Member, NodeId, Scenario};

/// A meter, shared by the sending and the receiving application of a flow. A run uses one thread.
pub(crate) type SharedMeter = Rc<RefCell<Meter>>;

/// The meters of all receivers of a flow, for its sender.
#[derive(Clone)]
pub(crate) struct Meters(Vec<SharedMeter>);

impl Meters {
    /// A meter for each receiver of a flow, of some of them or of all.
    pub(crate) fn new(scenario: &Scenario, flow: &Flow, receivers: &[NodeId]) -> Self {
        let ferry = if receivers.is_empty() { None } else { Ferry::of(scenario, flow) };
        let ferry = ferry.map(|ferry| Rc::new(RefCell::new(ferry)));
        let meter = |&to: &NodeId| {
            let meter = Meter::new(scenario.measure, scenario.duration).of_member(scenario.member(flow, to));
            let earliest = ferry.clone().map(|ferry| Box::new(Earliest::new(ferry, to, scenario.duration)));
            Rc::new(RefCell::new(Meter { earliest, ..meter }))
        };
        Self(receivers.iter().map(meter).collect())
    }

    /// The meter of one receiver, by its index.
    pub(crate) fn of(&self, receiver: usize) -> SharedMeter {
        self.0[receiver].clone()
    }

    /// Calls `tell` with each meter.
    pub(crate) fn each(&self, mut tell: impl FnMut(&mut Meter)) {
        self.0.iter().for_each(|meter| tell(&mut meter.borrow_mut()));
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &SharedMeter> {
        self.0.iter()
    }
}

/// Number of equal slices of the measurement window whose delivered bytes a meter counts, and of equal slices after it.
/// Chosen; fewer make the window's edge coarse, more are memory of each meter.
pub(crate) const SLICES: usize = 256;

/// The figures of one flow at one receiver.
///
/// Goodput counts payload by the time of its delivery; units, and the latencies of those units, count by the time
/// they were sent. Both against the same window.
#[derive(Clone)]
pub(crate) struct Meter {
    measure: Measure,
    /// The times at which the receiver is a member of the flow's group; `None` without a group, or if it always is.
    member: Option<Member>,
    /// Payload bytes delivered for the first time, in the window.
    pub(crate) payload_bytes: u64,
    /// Payload bytes in each of the [`SLICES`] slices of the window and of those after it, up to the last that has any.
    slice_bytes: Vec<u64>,
    /// Payload bytes in each step of the time series, from time 0.
    pub(crate) step_bytes: Vec<u64>,
    /// Units that were sent in the window.
    pub(crate) sent_units: u64,
    /// Units that were sent before the window's end.
    sent_in_time_units: u64,
    /// Number of all units of a bounded flow that has begun.
    to_send_units: u64,
    pub(crate) delivered_units: u64,
    pub(crate) latency: Distribution,
    pub(crate) round_trip: Distribution,
    pub(crate) jitter: Jitter,
    /// The frames of a video.
    pub(crate) frames: Option<FrameLog>,
    pub(crate) started: Option<Instant>,
    /// End of the sending of a bounded flow.
    pub(crate) ended: Option<Instant>,
    pub(crate) last_payload: Option<Instant>,
    pub(crate) completed: Option<Instant>,
    pub(crate) hash_ok: Option<bool>,
    /// The units that could have arrived, and when; `None` where links never fail.
    pub(crate) earliest: Option<Box<Earliest>>,
    /// Units that arrived with other bytes than were sent. Checksums and protocols must keep this at zero.
    pub(crate) damaged_units: u64,
    /// Units that arrived again.
    pub(crate) duplicate_units: u64,
    /// Units that arrived too late to know whether they had arrived before.
    pub(crate) too_old_units: u64,
    /// The end of each block of a stream that is under way, with the time of its first transmission.
    blocks: VecDeque<(u64, Instant)>,
    /// Notes for the other end, if that is another process.
    notes: Option<Notes>,
    /// Number of steps of the time series.
    steps: usize,
}

impl Meter {
    /// A meter for a run of `duration`.
    pub(crate) fn new(measure: Measure, duration: Duration) -> Self {
        let steps = (duration.as_nanos() / measure.interval.as_nanos().max(1)) as usize;
        Self {
            measure,
            member: None,
            payload_bytes: 0,
            slice_bytes: Vec::new(),
            step_bytes: Vec::new(),
            sent_units: 0,
            sent_in_time_units: 0,
            to_send_units: 0,
            delivered_units: 0,
            latency: Distribution::default(),
            round_trip: Distribution::default(),
            jitter: Jitter::default(),
            frames: None,
            started: None,
            ended: None,
            last_payload: None,
            completed: None,
            hash_ok: None,
            earliest: None,
            damaged_units: 0,
            duplicate_units: 0,
            too_old_units: 0,
            blocks: VecDeque::new(),
            notes: None,
            steps,
        }
    }

    /// Splits the meter: the other end has one in another process, and this one takes notes to be joined with it.
    pub(crate) fn split(&mut self) {
        self.notes.get_or_insert_default();
        // Only virtual time has it.
        self.earliest = None;
    }

    /// Restricts it to units that are sent, and payload that arrives, while the receiver is a member.
    pub(crate) fn of_member(self, member: Option<&Member>) -> Self {
        let always = |member: &Member| member.spans == [(Instant::ZERO, None)];
        Self { member: member.filter(|member| !always(member)).cloned(), ..self }
    }

    fn is_member(&self, at: Instant) -> bool {
        self.member.as_ref().is_none_or(|member| member.is_member(at))
    }

    /// The part of a span in which the receiver is a member.
    pub(crate) fn member_time(&self, (from, to): (Instant, Instant)) -> Duration {
        let Some(member) = &self.member else { return to.since(from) };
        let overlap =
            |&(joined, left): &(Instant, Option<Instant>)| left.unwrap_or(to).min(to).since(joined.max(from));
        member.spans.iter().map(overlap).fold(Duration::ZERO, |sum, time| sum + time)
    }

    fn counts(&self, at: Instant) -> bool {
        (self.measure.from..self.measure.to).contains(&at) && self.is_member(at)
    }

    /// Adds the measurements of another receiver of the same flow.
    pub(crate) fn add(&mut self, other: &Self) {
        let latest = |one: Option<Instant>, other: Option<Instant>| Some(one?.max(other?));
        self.payload_bytes += other.payload_bytes;
        self.sent_units += other.sent_units;
        self.sent_in_time_units += other.sent_in_time_units;
        self.to_send_units += other.to_send_units;
        self.delivered_units += other.delivered_units;
        self.latency.add(&other.latency);
        self.round_trip.add(&other.round_trip);
        self.jitter.add(&other.jitter);
        if let (Some(frames), Some(others)) = (&mut self.frames, &other.frames) {
            frames.add(others);
        }
        self.last_payload = self.last_payload.max(other.last_payload);
        // All receivers are complete when the last one is.
        self.completed = latest(self.completed, other.completed);
        self.hash_ok = self.hash_ok.zip(other.hash_ok).map(|(one, other)| one && other);
        if let (Some(earliest), Some(others)) = (&mut self.earliest, &other.earliest) {
            earliest.add(others);
        }
        self.damaged_units += other.damaged_units;
        self.duplicate_units += other.duplicate_units;
        self.too_old_units += other.too_old_units;
        self.add_slices(&other.slice_bytes);
        self.add_steps(&other.step_bytes);
    }

    fn add_slices(&mut self, other: &[u64]) {
        add(&mut self.slice_bytes, other);
    }

    fn add_steps(&mut self, other: &[u64]) {
        add(&mut self.step_bytes, other);
    }

    /// Notes the start of the application; only the first one counts.
    pub(crate) fn start(&mut self, now: Instant) {
        self.started.get_or_insert(now);
    }

    /// Notes that the sender has sent everything.
    pub(crate) fn end(&mut self, now: Instant) {
        self.ended.get_or_insert(now);
    }

    /// Notes the start of a flow of `units` in all; only the first one counts.
    pub(crate) fn start_of(&mut self, now: Instant, units: u64) {
        if self.started.is_none() {
            self.to_send_units = units;
        }
        self.start(now);
    }

    /// Number of units to be delivered: those sent in the window, and of a bounded flow that began before its end those
    /// not sent by then, whatever happens to these later: otherwise a figure of the window would depend on the length
    /// of the run after it.
    pub(crate) fn units(&self) -> u64 {
        let in_time = self.started.is_some_and(|started| started < self.measure.to);
        let not_sent = self.to_send_units.saturating_sub(self.sent_in_time_units);
        self.sent_units + if in_time { not_sent } else { 0 }
    }

    /// Notes that a unit was sent at `at`.
    pub(crate) fn unit_sent(&mut self, at: Instant) {
        self.sent_in_time_units += u64::from(at < self.measure.to);
        self.sent_units += u64::from(self.counts(at));
        if self.counts(at)
            && let Some(earliest) = &mut self.earliest
        {
            earliest.sent(at);
        }
    }

    /// Notes that a unit that was sent at `sent` is complete.
    pub(crate) fn unit_delivered(&mut self, sent: Instant) {
        self.delivered_units += u64::from(self.counts(sent));
    }

    /// Notes that the next frame of a video is sent now.
    pub(crate) fn frame_sent(&mut self, now: Instant, picture: FrameType, deadline: Instant) {
        let counts = self.counts(now);
        self.unit_sent(now);
        match &mut self.notes {
            Some(notes) => notes.frame_sent(now, picture, deadline),
            None => self.frames.get_or_insert_default().sent(now, picture, deadline, counts),
        }
    }

    /// Notes that a frame that was sent at `sent` is complete.
    pub(crate) fn frame_delivered(&mut self, sent: Instant, now: Instant, number: u64) {
        let counts = self.counts(sent);
        self.unit_delivered(sent);
        self.latency(sent, now);
        match &mut self.notes {
            Some(notes) => notes.frame_delivered(sent, now, number),
            None => self.frames.get_or_insert_default().delivered(now, number, counts),
        }
    }

    /// Notes the first transmission of the block of a stream that ends at `end`; `unit` if the block is a unit.
    pub(crate) fn block_sent(&mut self, end: u64, now: Instant, unit: bool) {
        if unit {
            self.unit_sent(now);
        }
        match &mut self.notes {
            Some(notes) => notes.block_sent(end, now),
            None => self.blocks.push_back((end, now)),
        }
    }

    /// Notes that the first `bytes` bytes of a stream have been received; `all` if that is the whole stream, `units` if
    /// its blocks are units.
    pub(crate) fn stream_received(&mut self, now: Instant, bytes: u64, units: bool, all: bool) {
        if let Some(notes) = &mut self.notes {
            return notes.received(now, bytes, units, all);
        }
        while let Some((_, sent)) = self.blocks.pop_front_if(|&mut (end, _)| end <= bytes) {
            self.latency(sent, now);
            if units {
                self.unit_delivered(sent);
            }
        }
    }

    /// Notes that a file is complete, and whether it is intact.
    pub(crate) fn file_complete(&mut self, now: Instant, intact: bool) {
        self.completed = Some(now);
        self.hash_ok = Some(intact);
        if let Some(started) = self.started.filter(|_| intact) {
            self.unit_delivered(started);
        }
    }

    /// Notes the one-way latency of data that was sent at `sent` and arrived now.
    pub(crate) fn latency(&mut self, sent: Instant, now: Instant) {
        if self.counts(sent) {
            self.latency.record(now.since(sent));
        }
    }

    /// Notes the round trip of data that was sent at `sent` and whose echo arrived now.
    pub(crate) fn round_trip(&mut self, sent: Instant, now: Instant) {
        if self.counts(sent) {
            self.round_trip.record(now.since(sent));
        }
    }

    /// Notes the arrival of a datagram, for RFC 3550's jitter.
    pub(crate) fn arrival(&mut self, sent: Instant, now: Instant) {
        if self.counts(now) {
            self.jitter.arrival(now.since(sent));
        }
    }

    /// The span over which a bounded flow is measured: the part of the measurement window in which it lasted. It ends
    /// when it is complete, or else when its sender has ended and the last of its payload has arrived, or else at the
    /// window's end.
    /// `None` if nothing of it lies in the window.
    pub(crate) fn lasted(&self) -> Option<(Instant, Instant)> {
        let Measure { from, to, .. } = self.measure;
        let ended = self.ended.map(|ended| self.last_payload.map_or(ended, |last| last.max(ended)));
        let from = self.started?.max(from);
        let to = self.completed.or(ended).unwrap_or(to).min(to);
        (from < to).then_some((from, to))
    }

    /// Notes payload that was delivered for the first time.
    pub(crate) fn payload(&mut self, now: Instant, bytes: usize) {
        if !self.is_member(now) {
            return;
        }
        let bytes = bytes as u64;
        if self.counts(now) {
            self.payload_bytes += bytes;
        }
        let Measure { from, to, .. } = self.measure;
        if now >= from {
            let since = u128::from(now.since(from).as_nanos());
            let slice = since * SLICES as u128 / u128::from(to.since(from).as_nanos()).max(1);
            if slice < 2 * SLICES as u128 {
                add_at(&mut self.slice_bytes, slice as usize, bytes);
            }
        }
        self.last_payload = Some(now);
        let step = (now.as_nanos() / self.measure.interval.as_nanos().max(1)) as usize;
        if step < self.steps {
            add_at(&mut self.step_bytes, step, bytes);
        }
    }

    /// Payload bytes delivered from the start of the window to the end of the last slice that has ended by `at`.
    pub(crate) fn delivered_by(&self, at: Instant) -> u64 {
        let Measure { from, to, .. } = self.measure;
        // The number of slices that have ended by `at`.
        let window = u128::from(to.since(from).as_nanos());
        let slices = ((u128::from(at.since(from).as_nanos()) + 1) * SLICES as u128 - 1) / window.max(1);
        self.slice_bytes.iter().take(slices as usize).sum()
    }
}

/// Adds the numbers of one list to those of another, which grows as needed.
fn add(sums: &mut Vec<u64>, other: &[u64]) {
    other.iter().enumerate().for_each(|(place, number)| add_at(sums, place, *number));
}

fn add_at(sums: &mut Vec<u64>, place: usize, number: u64) {
    if place >= sums.len() {
        sums.resize(place + 1, 0);
    }
    sums[place] += number;
}
