//! Measurements of programs, in the run's time and window.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};
use hopcast_twin::results::{Figures, LatencyCurve, Quantiles, Video};

use super::command::Task;

/// Number of points of a latency curve, the same as in virtual time.
const CURVE_POINTS: usize = 200;

/// The measurement of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// Payload that arrived.
    pub received: Vec<Interval>,
    /// Payload that was sent, if the sender reports it.
    pub sent: Vec<Interval>,
    /// Units sent in the window, and those of them that arrived; `None` for a stream, which has no units.
    pub units: Option<(u64, u64)>,
    /// Duration of a transfer of bounded size, in seconds.
    pub completed_s: Option<f64>,
    /// Whether the received file equals the sent one.
    pub hash_ok: Option<bool>,
    /// One-way latencies.
    pub latency: Samples,
    /// Round-trip times.
    pub round_trip: Samples,
    /// Interarrival jitter (RFC 3550, section 6.4.1).
    pub jitter_ms: Option<f64>,
    /// Fates of the frames of a video.
    pub video: Option<Video>,
    /// Counters by name, for results that are no figures.
    pub counters: BTreeMap<String, u64>,
    /// Span over which goodput is taken, in seconds of the run; `None` for the measurement window.
    pub lasted: Option<(f64, f64)>,
}

/// Payload between two times, in seconds of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Its start.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Payload in it.
    pub bytes: f64,
}

impl Interval {
    /// Its bytes between two times, spread evenly over it.
    fn bytes_within(&self, from: f64, to: f64) -> f64 {
        let length = self.to - self.from;
        if length <= 0.0 {
            return if (from..to).contains(&self.from) { self.bytes } else { 0.0 };
        }
        self.bytes * (self.to.min(to) - self.from.max(from)).max(0.0) / length
    }
}

/// The bytes between two times.
pub(super) fn bytes_within(intervals: &[Interval], from: f64, to: f64) -> f64 {
    // The sum of nothing is -0, which a document shows.
    intervals.iter().fold(0.0, |sum, interval| sum + interval.bytes_within(from, to))
}

pub(super) fn seconds(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_secs_f64()
}

impl Task<'_> {
    /// The window, in seconds.
    pub(super) fn window_seconds(&self) -> (f64, f64) {
        (seconds(self.window.0), seconds(self.window.1))
    }
}

impl Measurement {
    /// The measurements of all receivers of a flow as one: the mean of their goodput, the units and latencies of all.
    pub fn together(receivers: &[Self]) -> Self {
        if let [only] = receivers {
            return only.clone();
        }
        let all = receivers.len().max(1) as f64;
        let share = |interval: &Interval| Interval { bytes: interval.bytes / all, ..*interval };
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let values: Vec<f64> = values.collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let units = receivers.iter().filter_map(|measured| measured.units);
        let samples = |of: fn(&Self) -> &Samples| {
            Samples::new(receivers.iter().flat_map(|measured| of(measured).0.iter().copied()))
        };
        let completed: Option<Vec<f64>> = receivers.iter().map(|measured| measured.completed_s).collect();
        let intact: Option<Vec<bool>> = receivers.iter().map(|measured| measured.hash_ok).collect();
        let lasted: Option<Vec<(f64, f64)>> = receivers.iter().map(|measured| measured.lasted).collect();
        let mut counters: BTreeMap<String, u64> = BTreeMap::new();
        for (name, value) in receivers.iter().flat_map(|measured| &measured.counters) {
            *counters.entry(name.clone()).or_default() += value;
        }
        Self {
            received: receivers.iter().flat_map(|measured| measured.received.iter().map(share)).collect(),
            sent: receivers.first().map_or_else(Vec::new, |measured| measured.sent.clone()),
            units: units.reduce(|one, other| (one.0 + other.0, one.1 + other.1)),
            latency: samples(|measured| &measured.latency),
            round_trip: samples(|measured| &measured.round_trip),
            jitter_ms: mean(&mut receivers.iter().filter_map(|measured| measured.jitter_ms)),
            counters,
            // All have it when the last one does.
            completed_s: completed.and_then(|times| times.into_iter().max_by(f64::total_cmp)),
            hash_ok: intact.filter(|all| !all.is_empty()).map(|all| all.into_iter().all(|intact| intact)),
            lasted: lasted.and_then(|spans| {
                let from = spans.iter().map(|span| span.0).min_by(f64::total_cmp)?;
                Some((from, spans.iter().map(|span| span.1).max_by(f64::total_cmp)?))
            }),
            // Videos have one receiver.
            ..Self::default()
        }
    }

    /// The figures of the document, without those that depend on the network (the share of the min-cut).
    pub fn figures(&self, window: (Instant, Instant)) -> Figures {
        let (from, to) = self.lasted.unwrap_or((seconds(window.0), seconds(window.1)));
        let (from, to) = (from.max(seconds(window.0)), to.min(seconds(window.1)));
        let bits = bytes_within(&self.received, from, to) * 8.0;
        let (sent_units, delivered_units) = self.units.unwrap_or_default();
        Figures {
            goodput_mbps: (to > from).then(|| bits / (to - from) / 1e6),
            sent_units,
            delivered_units,
            reliability: (sent_units > 0).then(|| delivered_units as f64 / sent_units as f64),
            completed_s: self.completed_s,
            hash_ok: self.hash_ok,
            latency_ms: self.latency.quantiles(),
            round_trip_ms: self.round_trip.quantiles(),
            jitter_ms: self.jitter_ms,
            video: self.video,
            ..Figures::default()
        }
    }

    /// Goodput in Mbit/s in each step from time 0.
    pub fn series(&self, step: Duration, steps: usize) -> Vec<f64> {
        let step = step.as_secs_f64();
        let mut bytes = vec![0.0; steps];
        for interval in &self.received {
            // `as` saturates for times outside of the series.
            let first = (interval.from / step) as usize;
            let last = ((interval.to / step) as usize).min(steps.saturating_sub(1));
            for (number, bytes) in bytes.iter_mut().enumerate().take(last + 1).skip(first) {
                *bytes += interval.bytes_within(number as f64 * step, (number + 1) as f64 * step);
            }
        }
        bytes.into_iter().map(|bytes| bytes * 8.0 / step / 1e6).collect()
    }

    /// The latency distributions of the flow.
    pub fn curves(&self, flow: &str) -> Vec<LatencyCurve> {
        let latency = self.latency.curve(flow, "latency");
        latency.into_iter().chain(self.round_trip.curve(flow, "round_trip")).collect()
    }
}

/// Times in milliseconds, each with its count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples(Vec<(f64, u64)>);

impl Samples {
    /// The distribution of those `samples` that are valid times.
    pub fn new(samples: impl IntoIterator<Item = (f64, u64)>) -> Self {
        let mut samples: Vec<(f64, u64)> =
            samples.into_iter().filter(|(value, count)| value.is_finite() && *count > 0).collect();
        samples.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self(samples)
    }

    fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The smallest value that at least this share of the samples does not exceed.
    fn at(&self, share: f64) -> f64 {
        let wanted = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen: u64 = 0;
        let found = self.0.iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= wanted
        });
        found.or(self.0.last()).map_or(0.0, |&(value, _)| value)
    }

    /// The quantiles of the document.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let (_, max) = (self.0.first()?, self.0.last()?.0);
        let sum: f64 = self.0.iter().map(|&(value, count)| value * count as f64).sum();
        Some(Quantiles {
            mean: sum / self.count() as f64,
            p50: self.at(0.50),
            p95: self.at(0.95),
            p99: self.at(0.99),
            p99_9: self.at(0.999),
            max,
        })
    }

    fn curve(&self, flow: &str, kind: &str) -> Option<LatencyCurve> {
        self.0.first()?;
        let shares = (0..=CURVE_POINTS).map(|point| point as f64 / CURVE_POINTS as f64);
        let tail = [0.998, 0.999, 0.9995, 0.9999];
        let mut points: Vec<(f64, f64)> = shares.chain(tail).map(|share| (self.at(share), share)).collect();
        points.sort_by(|one, other| one.1.total_cmp(&other.1));
        Some(LatencyCurve { flow: flow.to_owned(), kind: kind.to_owned(), points })
    }
}
