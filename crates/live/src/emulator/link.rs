//! A link in real time: its model, the TAPs at its ends, and its scheduled changes and readings.

use std::collections::VecDeque;
use std::sync::Arc;

use hopcast_core::{Buffer, Duration, Instant, earliest};
use hopcast_link::{Attachment, Change, Counters, Event, Link};
use hopcast_node::Clock;
use hopcast_twin::world::{LinkSamples, directions};

use super::figures::{DirectionReport, Tally};
use super::transfer::{Transfer, TransferMeter};
use crate::capture::{FrameEvent, Record, Recorder};
use crate::lab::Tap;
use crate::layout::{LinkLayout, Scheduled};

/// Times at which the counters of links are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Readings {
    /// Start of the measurement window.
    pub from: Instant,
    /// End of the measurement window.
    pub to: Instant,
    /// The step of the time series; `None` for none.
    pub interval: Option<Duration>,
    /// End of the time series.
    pub end: Instant,
}

/// The number of a link, its directions, and the traffic of the run's transfer on it.
pub(super) type FinishedLink = (usize, Vec<DirectionReport>, Option<TransferMeter>);

/// A link and its measurements.
pub(super) struct EmulatedLink {
    number: usize,
    name: Arc<str>,
    model: Box<dyn Link + Send>,
    taps: Vec<Tap>,
    /// The interface of each attachment in the capture; `None` if it is not captured.
    captured: Vec<Option<usize>>,
    recorder: Option<Recorder>,
    script: Script,
    /// For each attachment, the node and the number of its interface.
    ends: Vec<(usize, u32)>,
    deadline: Option<Instant>,
    directions: Vec<DirectionReport>,
    sampled: LinkSamples,
    without_reports: bool,
    transfer: Option<TransferMeter>,
}

/// Ethernet destinations of the frames in which kernels report memberships: of 224.0.0.22 (IGMPv3, RFC 3376 section
/// 4.2.14) and ff02::16 (MLDv2, RFC 3810 section 5.2.14). Without a querier kernels use no other version.
const REPORTS: [&[u8]; 2] = [&[0x01, 0x00, 0x5e, 0, 0, 22], &[0x33, 0x33, 0, 0, 0, 0x16]];

/// Changes of a link: the direction that leaves this attachment (all of them if `None`), and the change.
pub(super) type Changes = Vec<Scheduled<(Option<Attachment>, Change)>>;

impl EmulatedLink {
    pub(super) fn new(
        (number, link): (usize, LinkLayout),
        taps: Vec<Tap>,
        changes: Changes,
        readings: Readings,
        recorder: Option<Recorder>,
    ) -> Self {
        let LinkLayout { name, mut model, captured, ends: nodes } = link;
        let recorder = recorder.filter(|_| captured.iter().any(Option::is_some));
        model.report_sent(recorder.is_some());
        let ends = model.attachments();
        let direction = |(from, to)| {
            let (opened, closed) = (Counters::default(), Counters::default());
            DirectionReport { from, to, opened, closed, steps: Vec::new() }
        };
        let directions: Vec<_> = directions(ends).map(direction).collect();
        let sampled = LinkSamples::new(ends);
        let script = Script::new(changes, readings);
        let mut link = Self {
            number,
            name: name.into(),
            model,
            taps,
            captured,
            recorder,
            script,
            ends: nodes,
            deadline: None,
            directions,
            sampled,
            without_reports: false,
            transfer: None,
        };
        link.look_ahead();
        link
    }

    /// Sets whether the kernels' reports of memberships are left out.
    pub(super) fn without_reports(self, without_reports: bool) -> Self {
        Self { without_reports, ..self }
    }

    /// Meters the traffic of a transfer, if there is one.
    pub(super) fn metering(self, transfer: Option<Transfer>) -> Self {
        let transfer = transfer.map(|transfer| TransferMeter::new(transfer, &self.ends));
        Self { transfer, ..self }
    }

    pub(super) fn taps(&self) -> &[Tap] {
        &self.taps
    }

    /// Discards the frames that the interfaces have sent so far.
    pub(super) fn discard_pending(&self, buffer: &mut [u8]) {
        for tap in &self.taps {
            while tap.read(buffer).is_ok() {}
        }
    }

    /// Time of the next event of the model or of the script.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Carries out all events that are due by `now`, each at its own time: lateness changes only the delivery of
    /// frames.
    pub(super) fn catch_up(&mut self, now: Instant, clock: Clock, tally: &mut Tally) {
        while let Some(at) = self.deadline.filter(|&at| at <= now) {
            if self.script.next_at() == Some(at) {
                self.perform(at);
            } else {
                self.model.wake(at);
            }
            self.drain(at, clock, tally);
            // A model whose deadline does not change has nothing more to do at this time.
            if self.deadline == Some(at) && self.script.next_at() != Some(at) {
                self.model.wake(now);
                self.drain(now, clock, tally);
                break;
            }
        }
    }

    /// Offers the model up to `limit` frames that the node at `from` has sent, at `now`; call `catch_up` first.
    pub(super) fn fetch(
        &mut self,
        from: Attachment,
        limit: usize,
        (now, clock): (Instant, Clock),
        buffer: &mut [u8],
    ) {
        for _ in 0..limit {
            // No more frames, or an interface that is down.
            let Ok(length) = self.taps[from].read(buffer) else { return };
            if self.without_reports && REPORTS.iter().any(|group| buffer[..length].starts_with(group)) {
                continue;
            }
            if let Some(transfer) = &mut self.transfer {
                transfer.offered(now, from, length);
            }
            let frame = Buffer::copy_from(&buffer[..length]);
            if let Some(recorder) = self.recorder.as_ref().filter(|recorder| recorder.logs())
                && let Some(interface) = self.captured[from]
            {
                let record = Record { at: now, interface, what: FrameEvent::Offered, bytes: frame.clone() };
                recorder.record(clock.now(), vec![record]);
            }
            self.model.offer(now, from, frame);
        }
    }

    /// Delivers the frames that the model delivers at `now`.
    pub(super) fn drain(&mut self, now: Instant, clock: Clock, tally: &mut Tally) {
        let mut records = Vec::new();
        while let Some(event) = self.model.poll(now) {
            if self.recorder.is_some() {
                records.extend(record_of(now, &self.name, &event, &self.captured));
            }
            if let Event::Delivered { to, frame, .. } = event {
                // What the node does with a frame follows from its arrival.
                self.hand_over(&mut records, clock);
                tally.delivered(clock.now().since(now));
                if self.taps[to].write(&frame).is_err() {
                    tally.refused += 1;
                }
            }
        }
        self.hand_over(&mut records, clock);
        if let Some(transfer) = &mut self.transfer {
            transfer.look(now, &mut *self.model);
        }
        self.look_ahead();
    }

    /// Hands over what is to be captured or recorded.
    fn hand_over(&self, records: &mut Vec<Record>, clock: Clock) {
        if let Some(recorder) = &self.recorder
            && !records.is_empty()
        {
            recorder.record(clock.now(), std::mem::take(records));
        }
    }

    /// The counters at the end of the run.
    pub(super) fn finish(mut self, now: Instant) -> FinishedLink {
        // A window that is still open closes now; one that never opened is empty.
        if self.script.awaits(|step| matches!(step, Step::Open)) {
            self.open(now);
        }
        if self.script.awaits(|step| matches!(step, Step::Close)) {
            self.close(now);
        }
        for (direction, steps) in self.directions.iter_mut().zip(self.sampled.steps()) {
            direction.steps.clone_from(steps);
        }
        (self.number, self.directions, self.transfer)
    }

    fn look_ahead(&mut self) {
        self.deadline = earliest(self.model.deadline(), self.script.next_at());
    }

    fn perform(&mut self, at: Instant) {
        match self.script.next() {
            Some(Step::Change(from, change)) => self.model.change(at, from, &change),
            Some(Step::Open) => self.open(at),
            Some(Step::Close) => self.close(at),
            Some(Step::Sample) => {
                let Self { model, directions, sampled, .. } = self;
                sampled.sample(directions.iter().map(|end| model.counters(at, end.from, end.to)));
            }
            None => {}
        }
    }

    fn open(&mut self, at: Instant) {
        for direction in &mut self.directions {
            direction.opened = self.model.counters(at, direction.from, direction.to);
        }
    }

    fn close(&mut self, at: Instant) {
        for direction in &mut self.directions {
            direction.closed = self.model.counters(at, direction.from, direction.to);
        }
    }
}

/// The record of an event at an attachment that is captured.
fn record_of(at: Instant, link: &Arc<str>, event: &Event, captured: &[Option<usize>]) -> Option<Record> {
    let (end, what, frame) = match event {
        Event::Sent { from, frame } => (from, FrameEvent::Sent, frame),
        Event::Delivered { from, to, frame, .. } => {
            (to, FrameEvent::Received { from: captured[*from] }, frame)
        }
        &Event::Dropped { ref from, to, ref frame, reason } => {
            let missed = to.and_then(|to| captured[to]);
            let (link, on_link) = (link.clone(), to.is_some());
            (from, FrameEvent::Dropped { link, on_link, to: missed, reason }, frame)
        }
        // A TAP cannot report the status of frames, so that no machine requests it.
        Event::Status { .. } => return None,
    };
    captured[*end].map(|interface| Record { at, interface, what, bytes: frame.clone() })
}

/// Scheduled changes and readings of a link, in order; at one instant changes come before readings.
struct Script {
    steps: VecDeque<(Instant, Step)>,
    sample: Option<Instant>,
    readings: Readings,
}

enum Step {
    Change(Option<Attachment>, Change),
    Open,
    Close,
    Sample,
}

impl Script {
    fn new(changes: Changes, readings: Readings) -> Self {
        let change = |Scheduled { at, what: (from, change) }| (at, Step::Change(from, change));
        let mut steps: Vec<_> = changes.into_iter().map(change).collect();
        steps.push((readings.from, Step::Open));
        steps.push((readings.to, Step::Close));
        // Stable, so that changes of one instant keep their order and come before the window's edges.
        steps.sort_by_key(|&(at, _)| at);
        let first = readings.interval.filter(|interval| !interval.is_zero()).map(|step| Instant::ZERO + step);
        Self { steps: steps.into(), sample: first.filter(|&at| at <= readings.end), readings }
    }

    fn next_at(&self) -> Option<Instant> {
        earliest(self.steps.front().map(|&(at, _)| at), self.sample)
    }

    fn next(&mut self) -> Option<Step> {
        let at = self.next_at()?;
        if let Some((_, step)) = self.steps.pop_front_if(|(step, _)| *step == at) {
            return Some(step);
        }
        self.sample = self.readings.interval.map(|step| at + step).filter(|&next| next <= self.readings.end);
        Some(Step::Sample)
    }

    /// Whether a step that satisfies `step` is still to come.
    fn awaits(&self, step: impl Fn(&Step) -> bool) -> bool {
        self.steps.iter().any(|(_, other)| step(other))
    }
}
