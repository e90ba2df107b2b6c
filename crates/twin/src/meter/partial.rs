//! The meter of a flow whose ends are two processes: the notes of each, and how the two meters become one.

use hopcast_core::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::{Distribution, Jitter, Meter};
use crate::app::BLOCK;
use crate::scenario::model::{FrameType, Measure, Member};

/// Observations of one end that can only be evaluated with those of the other. Times are in nanoseconds of the clock
/// that both read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Notes {
    /// The end of each block of a stream, in bytes, and the time of its first transmission.
    blocks_sent: Vec<(u64, u64)>,
    /// Numbers of bytes of the stream received in order, each with its time.
    blocks_received: Vec<(u64, u64)>,
    /// Whether these blocks are the flow's units.
    blocks_are_units: bool,
    /// Each frame of a video: the time at which it was sent, its type, and its deadline.
    frames_sent: Vec<(u64, char, u64)>,
    /// Each complete frame: the times at which it was sent and complete, and its number.
    frames_delivered: Vec<(u64, u64, u64)>,
}

impl Notes {
    pub(super) fn block_sent(&mut self, end: u64, now: Instant) {
        self.blocks_sent.push((end, now.as_nanos()));
    }

    /// Notes the number of bytes received if it completes a block or the stream.
    pub(super) fn received(&mut self, now: Instant, bytes: u64, units: bool, all: bool) {
        self.blocks_are_units = units;
        let before = self.blocks_received.last().map_or(0, |&(bytes, _)| bytes);
        if all || bytes / BLOCK as u64 > before / BLOCK as u64 {
            self.blocks_received.push((bytes, now.as_nanos()));
        }
    }

    pub(super) fn frame_sent(&mut self, now: Instant, picture: FrameType, deadline: Instant) {
        let letter = match picture {
            FrameType::I => 'I',
            FrameType::P => 'P',
            FrameType::B => 'B',
        };
        self.frames_sent.push((now.as_nanos(), letter, deadline.as_nanos()));
    }

    pub(super) fn frame_delivered(&mut self, sent: Instant, now: Instant, number: u64) {
        self.frames_delivered.push((sent.as_nanos(), now.as_nanos(), number));
    }
}

/// The meter of one end in the report of its process; [`Meter::joined`] makes one meter of two.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct PartialMeter {
    payload_bytes: u64,
    slice_bytes: Vec<u64>,
    step_bytes: Vec<u64>,
    sent_units: u64,
    sent_in_time_units: u64,
    to_send_units: u64,
    delivered_units: u64,
    latency: Distribution,
    round_trip: Distribution,
    jitter: Jitter,
    started: Option<u64>,
    ended: Option<u64>,
    last_payload: Option<u64>,
    completed: Option<u64>,
    hash_ok: Option<bool>,
    damaged_units: u64,
    duplicate_units: u64,
    too_old_units: u64,
    notes: Notes,
}

impl From<&Meter> for PartialMeter {
    fn from(meter: &Meter) -> Self {
        let nanos = |at: Option<Instant>| at.map(Instant::as_nanos);
        Self {
            payload_bytes: meter.payload_bytes,
            slice_bytes: meter.slice_bytes.clone(),
            step_bytes: meter.step_bytes.clone(),
            sent_units: meter.sent_units,
            sent_in_time_units: meter.sent_in_time_units,
            to_send_units: meter.to_send_units,
            delivered_units: meter.delivered_units,
            latency: meter.latency.clone(),
            round_trip: meter.round_trip.clone(),
            jitter: meter.jitter.clone(),
            started: nanos(meter.started),
            ended: nanos(meter.ended),
            last_payload: nanos(meter.last_payload),
            completed: nanos(meter.completed),
            hash_ok: meter.hash_ok,
            damaged_units: meter.damaged_units,
            duplicate_units: meter.duplicate_units,
            too_old_units: meter.too_old_units,
            notes: meter.notes.clone().unwrap_or_default(),
        }
    }
}

impl PartialMeter {
    /// The figures that one end knows by itself, a line each, for a person.
    pub(crate) fn lines(&self, measure: Measure) -> Vec<String> {
        let mut lines = Vec::new();
        let (from, to) = (measure.from.as_secs_f64(), measure.to.as_secs_f64());
        let window = format!("from {from} s to {to} s");
        if self.sent_units > 0 {
            lines.push(format!("sent {} units {window}", self.sent_units));
        }
        if self.payload_bytes > 0 {
            lines.push(format!("received {} bytes {window}", self.payload_bytes));
        }
        if let (Some(completed), Some(intact)) = (self.completed, self.hash_ok) {
            let state = if intact { "intact" } else { "damaged" };
            lines.push(format!("complete at {:.3} s, {state}", completed as f64 / 1e9));
        }
        for (name, of) in [("latency", &self.latency), ("round trip", &self.round_trip)] {
            if let Some(quantiles) = of.quantiles() {
                lines.push(format!("{name}: p50 {:.3} ms, p99 {:.3} ms", quantiles.p50, quantiles.p99));
            }
        }
        lines
    }
}

impl Meter {
    /// The meter of one receiver, from the partial meters of both ends.
    pub(crate) fn joined(
        measure: Measure,
        duration: Duration,
        member: Option<&Member>,
        sender: &PartialMeter,
        receiver: &PartialMeter,
    ) -> Self {
        let at = |one: Option<u64>, other: Option<u64>| one.or(other).map(Instant::from_nanos);
        let mut whole = Self::new(measure, duration).of_member(member);
        for half in [sender, receiver] {
            whole.payload_bytes += half.payload_bytes;
            whole.sent_units += half.sent_units;
            whole.sent_in_time_units += half.sent_in_time_units;
            whole.to_send_units += half.to_send_units;
            whole.delivered_units += half.delivered_units;
            whole.latency.add(&half.latency);
            whole.round_trip.add(&half.round_trip);
            whole.jitter.add(&half.jitter);
            whole.damaged_units += half.damaged_units;
            whole.duplicate_units += half.duplicate_units;
            whole.too_old_units += half.too_old_units;
            whole.add_slices(&half.slice_bytes);
            whole.add_steps(&half.step_bytes);
        }
        whole.started = at(sender.started, receiver.started);
        whole.ended = at(sender.ended, receiver.ended);
        whole.last_payload = at(receiver.last_payload, sender.last_payload);
        whole.completed = at(receiver.completed, sender.completed);
        whole.hash_ok = receiver.hash_ok;
        if let (Some(true), Some(started)) = (whole.hash_ok, whole.started) {
            whole.unit_delivered(started);
        }
        whole.join_blocks(&sender.notes, &receiver.notes);
        whole.join_frames(&sender.notes, &receiver.notes);
        whole
    }

    fn join_blocks(&mut self, sender: &Notes, receiver: &Notes) {
        let mut sent = sender.blocks_sent.iter().peekable();
        for &(received, now) in &receiver.blocks_received {
            while let Some(&(_, at)) = sent.next_if(|&&(end, _)| end <= received) {
                let at = Instant::from_nanos(at);
                self.latency(at, Instant::from_nanos(now));
                if receiver.blocks_are_units {
                    self.unit_delivered(at);
                }
            }
        }
    }

    /// Replays both ends' notes of frames in the order of time.
    fn join_frames(&mut self, sender: &Notes, receiver: &Notes) {
        let mut delivered = receiver.frames_delivered.clone();
        delivered.sort_by_key(|&(_, now, _)| now);
        let mut delivered = delivered.into_iter().peekable();
        let mut deliver = |whole: &mut Self, until: u64| {
            while let Some((sent, now, number)) = delivered.next_if(|&(_, now, _)| now < until) {
                let counts = whole.counts(Instant::from_nanos(sent));
                let frames = whole.frames.get_or_insert_default();
                frames.delivered(Instant::from_nanos(now), number, counts);
            }
        };
        for &(at, letter, deadline) in &sender.frames_sent {
            deliver(self, at);
            let picture = match letter {
                'I' => FrameType::I,
                'P' => FrameType::P,
                _ => FrameType::B,
            };
            let at = Instant::from_nanos(at);
            let counts = self.counts(at);
            let frames = self.frames.get_or_insert_default();
            frames.sent(at, picture, Instant::from_nanos(deadline), counts);
        }
        deliver(self, u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure() -> Measure {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        Measure { from: at(1), to: at(9), interval: Duration::from_secs(1) }
    }

    const DURATION: Duration = Duration::from_secs(10);

    /// The same calls on one meter, and on two that are written as text, read and joined.
    fn both(sender: impl Fn(&mut Meter), receiver: impl Fn(&mut Meter)) -> [Meter; 2] {
        let mut whole = Meter::new(measure(), DURATION);
        sender(&mut whole);
        receiver(&mut whole);
        let apart = |calls: &dyn Fn(&mut Meter)| -> PartialMeter {
            let mut meter = Meter::new(measure(), DURATION);
            meter.split();
            calls(&mut meter);
            serde_json::from_str(&serde_json::to_string(&PartialMeter::from(&meter)).unwrap()).unwrap()
        };
        [whole, Meter::joined(measure(), DURATION, None, &apart(&sender), &apart(&receiver))]
    }

    fn same([whole, joined]: [Meter; 2]) {
        assert_eq!(whole.sent_units, joined.sent_units);
        assert_eq!(whole.delivered_units, joined.delivered_units);
        assert_eq!(whole.payload_bytes, joined.payload_bytes);
        assert_eq!(whole.step_bytes, joined.step_bytes);
        assert_eq!(whole.latency.quantiles(), joined.latency.quantiles());
        assert_eq!(whole.completed, joined.completed);
        assert_eq!(whole.hash_ok, joined.hash_ok);
        let figures = |meter: &Meter| meter.frames.as_ref().map(crate::app::FrameLog::figures);
        assert_eq!(figures(&whole), figures(&joined));
    }

    fn millis(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn two_ends_find_what_one_meter_would_have_found_of_a_stream() {
        let block = BLOCK as u64;
        same(both(
            |sender| {
                sender.start(millis(500));
                (1..=20).for_each(|n| sender.block_sent(n * block, millis(500 + n * 100), true));
            },
            |receiver| {
                for n in 1..=40 {
                    receiver.payload(millis(600 + n * 60), BLOCK / 2);
                    receiver.stream_received(millis(600 + n * 60), n * block / 2, true, n == 40);
                }
            },
        ));
    }

    #[test]
    fn two_ends_find_what_one_meter_would_have_found_of_a_file() {
        same(both(
            |sender| {
                sender.start(millis(2000));
                sender.unit_sent(millis(2000));
            },
            |receiver| {
                receiver.payload(millis(2500), 1000);
                receiver.file_complete(millis(2500), true);
            },
        ));
    }

    #[test]
    fn two_ends_find_what_one_meter_would_have_found_of_a_video() {
        let pictures = [FrameType::I, FrameType::B, FrameType::P, FrameType::P];
        // Frames a second apart: the third is lost, the sixth late.
        let fate = |number: u64| match number {
            2 => None,
            5 => Some(800),
            _ => Some(100),
        };
        let sent = |number: u64| millis(1500 + number * 1000);
        let mut whole = Meter::new(measure(), DURATION);
        let halves: [PartialMeter; 2] = {
            let mut ends = [Meter::new(measure(), DURATION), Meter::new(measure(), DURATION)];
            ends.iter_mut().for_each(Meter::split);
            for number in 0..8 {
                let (at, picture) = (sent(number), pictures[number as usize % 4]);
                let deadline = at + Duration::from_millis(500);
                whole.frame_sent(at, picture, deadline);
                ends[0].frame_sent(at, picture, deadline);
                if let Some(after) = fate(number) {
                    let now = at + Duration::from_millis(after);
                    whole.frame_delivered(at, now, number);
                    ends[1].frame_delivered(at, now, number);
                }
            }
            ends.map(|meter| PartialMeter::from(&meter))
        };
        let joined = Meter::joined(measure(), DURATION, None, &halves[0], &halves[1]);
        assert_eq!(joined.frames.as_ref().unwrap().figures().frames_lost, 1);
        same([whole, joined]);
    }
}
