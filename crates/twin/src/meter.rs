//! What is measured of a flow: one [`Meter`], shared by the application's two ends.

use std::cell::RefCell;
use std::rc::Rc;

use hdrhistogram::Histogram;
use hopcast_core::{Duration, Instant};

use crate::app::FrameLog;
use crate::results::{LatencyCurve, Quantiles};
use crate::scenario::model::{Measure, Picture};

/// A meter as the sending and the receiving application of a flow hold it. A run lives on one thread.
pub(crate) type SharedMeter = Rc<RefCell<Meter>>;

/// The meters of all receivers, as a sender to several holds them.
#[derive(Clone)]
pub(crate) struct Meters(Vec<SharedMeter>);

impl Meters {
    /// `count` meters for a run of `duration`.
    pub(crate) fn new(count: usize, measure: Measure, duration: Duration) -> Self {
        Self((0..count).map(|_| Meter::shared(measure, duration)).collect())
    }

    /// The meter of one receiver, by its place among them.
    pub(crate) fn of(&self, receiver: usize) -> SharedMeter {
        self.0[receiver].clone()
    }

    /// Tells all of them.
    pub(crate) fn each(&self, mut tell: impl FnMut(&mut Meter)) {
        self.0.iter().for_each(|meter| tell(&mut meter.borrow_mut()));
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &SharedMeter> {
        self.0.iter()
    }
}

/// The figures of one flow at one receiver.
///
/// Goodput counts payload by the time of its delivery; units, and the latencies of those units, count by the time
/// they were sent. Both against the same window.
#[derive(Clone)]
pub(crate) struct Meter {
    measure: Measure,
    /// Payload bytes delivered for the first time, in the window.
    pub(crate) payload_bytes: u64,
    /// The same in each step of the time series, from time 0.
    pub(crate) step_bytes: Vec<u64>,
    pub(crate) sent_units: u64,
    pub(crate) delivered_units: u64,
    pub(crate) latency: Distribution,
    pub(crate) round_trip: Distribution,
    pub(crate) jitter: Jitter,
    /// What became of the frames, if it is a video.
    pub(crate) frames: Option<FrameLog>,
    pub(crate) started: Option<Instant>,
    /// When the sender had sent all of a bounded flow that it will send.
    pub(crate) ended: Option<Instant>,
    pub(crate) last_payload: Option<Instant>,
    pub(crate) completed: Option<Instant>,
    pub(crate) hash_ok: Option<bool>,
    /// Units whose bytes arrived other than they were sent. Checksums and protocols must keep this at zero.
    pub(crate) damaged_units: u64,
    /// Units that arrived again.
    pub(crate) duplicate_units: u64,
    /// Units that arrived so late that there was no telling whether they had before.
    pub(crate) too_old_units: u64,
    /// How many steps the time series has.
    steps: usize,
}

impl Meter {
    /// A meter for a run of `duration`.
    pub(crate) fn shared(measure: Measure, duration: Duration) -> SharedMeter {
        let steps = (duration.as_nanos() / measure.interval.as_nanos().max(1)) as usize;
        Rc::new(RefCell::new(Self {
            measure,
            payload_bytes: 0,
            step_bytes: Vec::new(),
            sent_units: 0,
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
            damaged_units: 0,
            duplicate_units: 0,
            too_old_units: 0,
            steps,
        }))
    }

    fn counts(&self, at: Instant) -> bool {
        (self.measure.from..self.measure.to).contains(&at)
    }

    /// Adds what was measured at another receiver of the same flow.
    pub(crate) fn add(&mut self, other: &Self) {
        let latest = |one: Option<Instant>, other: Option<Instant>| Some(one?.max(other?));
        self.payload_bytes += other.payload_bytes;
        self.sent_units += other.sent_units;
        self.delivered_units += other.delivered_units;
        self.latency.add(&other.latency);
        self.round_trip.add(&other.round_trip);
        self.jitter.add(&other.jitter);
        if let (Some(frames), Some(others)) = (&mut self.frames, &other.frames) {
            frames.add(others);
        }
        self.last_payload = self.last_payload.max(other.last_payload);
        // All of them have it when the last one does.
        self.completed = latest(self.completed, other.completed);
        self.hash_ok = self.hash_ok.zip(other.hash_ok).map(|(one, other)| one && other);
        self.damaged_units += other.damaged_units;
        self.duplicate_units += other.duplicate_units;
        self.too_old_units += other.too_old_units;
        let steps = self.step_bytes.len().max(other.step_bytes.len());
        self.step_bytes.resize(steps, 0);
        self.step_bytes.iter_mut().zip(&other.step_bytes).for_each(|(sum, bytes)| *sum += bytes);
    }

    /// The application begins; only the first time counts.
    pub(crate) fn start(&mut self, now: Instant) {
        self.started.get_or_insert(now);
    }

    /// The sender has sent all that it will.
    pub(crate) fn end(&mut self, now: Instant) {
        self.ended.get_or_insert(now);
    }

    /// A unit was sent at `at`.
    pub(crate) fn unit_sent(&mut self, at: Instant) {
        self.sent_units += u64::from(self.counts(at));
    }

    /// A unit that was sent at `sent` is complete.
    pub(crate) fn unit_delivered(&mut self, sent: Instant) {
        self.delivered_units += u64::from(self.counts(sent));
    }

    /// The next frame of a video is sent now.
    pub(crate) fn frame_sent(&mut self, now: Instant, picture: Picture, deadline: Instant) {
        let counts = self.counts(now);
        self.unit_sent(now);
        self.frames.get_or_insert_default().sent(now, picture, deadline, counts);
    }

    /// A frame that was sent at `sent` is complete.
    pub(crate) fn frame_delivered(&mut self, sent: Instant, now: Instant, number: u64) {
        let counts = self.counts(sent);
        self.unit_delivered(sent);
        self.latency(sent, now);
        self.frames.get_or_insert_default().delivered(now, number, counts);
    }

    /// Something that was sent at `sent` arrived now.
    pub(crate) fn latency(&mut self, sent: Instant, now: Instant) {
        if self.counts(sent) {
            self.latency.record(now.since(sent));
        }
    }

    /// The echo of something that was sent at `sent` is back.
    pub(crate) fn round_trip(&mut self, sent: Instant, now: Instant) {
        if self.counts(sent) {
            self.round_trip.record(now.since(sent));
        }
    }

    /// A datagram arrived, for RFC 3550's jitter.
    pub(crate) fn arrival(&mut self, sent: Instant, now: Instant) {
        if self.counts(now) {
            self.jitter.arrival(now.since(sent));
        }
    }

    /// The span over which a bounded flow is measured: as much of the measurement window as it lasted. It lasts until it
    /// is complete, or else until its sender has sent all it will and the last of that has arrived, or else until the
    /// window's end. `None` if nothing of it lies in the window.
    pub(crate) fn lasted(&self) -> Option<(Instant, Instant)> {
        let Measure { from, to, .. } = self.measure;
        let ended = self.ended.map(|ended| self.last_payload.map_or(ended, |last| last.max(ended)));
        let from = self.started?.max(from);
        let to = self.completed.or(ended).unwrap_or(to).min(to);
        (from < to).then_some((from, to))
    }

    /// Payload was delivered for the first time.
    pub(crate) fn payload(&mut self, now: Instant, bytes: usize) {
        let bytes = bytes as u64;
        if self.counts(now) {
            self.payload_bytes += bytes;
        }
        self.last_payload = Some(now);
        let step = (now.as_nanos() / self.measure.interval.as_nanos().max(1)) as usize;
        if step >= self.steps {
            return;
        }
        if step >= self.step_bytes.len() {
            self.step_bytes.resize(step + 1, 0);
        }
        self.step_bytes[step] += bytes;
    }
}

/// A distribution of times, kept whole to three significant digits.
#[derive(Clone, Default)]
pub(crate) struct Distribution {
    /// Made when the first value comes: a flow that measures nothing costs nothing.
    histogram: Option<Histogram<u64>>,
    /// Exact, beside the histogram's rounded values.
    sum_ns: u128,
}

impl Distribution {
    fn record(&mut self, value: Duration) {
        let histogram = self
            .histogram
            .get_or_insert_with(|| Histogram::new(3).expect("three digits are within its bounds"));
        histogram.auto(true);
        // It grows as needed, so that the one error there is, a value out of range, needs 584 years of latency.
        let _ = histogram.record(value.as_nanos());
        self.sum_ns += u128::from(value.as_nanos());
    }

    fn add(&mut self, other: &Self) {
        let Some(added) = &other.histogram else { return };
        match &mut self.histogram {
            // Both have the same digits, and grow as needed.
            Some(histogram) => {
                histogram.auto(true);
                let _ = histogram.add(added);
            }
            None => self.histogram = Some(added.clone()),
        }
        self.sum_ns += other.sum_ns;
    }

    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        let histogram = self.histogram.as_ref()?;
        let at = |quantile| histogram.value_at_quantile(quantile).min(histogram.max()) as f64 / 1e6;
        Some(Quantiles {
            mean: self.sum_ns as f64 / histogram.len() as f64 / 1e6,
            p50: at(0.50),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            max: histogram.max() as f64 / 1e6,
        })
    }

    /// The cumulative distribution in at most `points` points, denser towards the tail.
    pub(crate) fn curve(&self, flow: &str, kind: &str, points: usize) -> Option<LatencyCurve> {
        let histogram = self.histogram.as_ref()?;
        let shares =
            (0..=points).map(|i| i as f64 / points as f64).chain([0.995, 0.998, 0.999, 0.9995, 0.9999]);
        let mut shares: Vec<f64> = shares.collect();
        shares.sort_by(f64::total_cmp);
        let points = shares
            .into_iter()
            .map(|share| (histogram.value_at_quantile(share).min(histogram.max()) as f64 / 1e6, share))
            .collect();
        Some(LatencyCurve { flow: flow.to_owned(), kind: kind.to_owned(), points })
    }
}

/// Interarrival jitter by RFC 3550, section 6.4.1: J += (|D| - J) / 16.
#[derive(Clone, Default)]
pub(crate) struct Jitter {
    transit: Option<Duration>,
    jitter_ns: f64,
    samples: u64,
}

impl Jitter {
    fn arrival(&mut self, transit: Duration) {
        if let Some(before) = self.transit.replace(transit) {
            self.jitter_ns += (transit.abs_diff(before).as_nanos() as f64 - self.jitter_ns) / 16.0;
            self.samples += 1;
        }
    }

    /// Beside that of another receiver: their mean, each by its number of samples.
    fn add(&mut self, other: &Self) {
        let samples = self.samples + other.samples;
        let sum = self.jitter_ns * self.samples as f64 + other.jitter_ns * other.samples as f64;
        self.jitter_ns = sum / samples.max(1) as f64;
        self.samples = samples;
    }

    /// The estimate after the last arrival, in milliseconds.
    pub(crate) fn millis(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.jitter_ns / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_follows_the_formula_of_rfc_3550() {
        let mut jitter = Jitter::default();
        assert_eq!(jitter.millis(), None);
        for millis in [10, 26, 10] {
            jitter.arrival(Duration::from_millis(millis));
        }
        // J = 16/16 = 1, then 1 + (16 - 1)/16.
        assert_eq!(jitter.millis(), Some(1.0 + 15.0 / 16.0));
    }

    #[test]
    fn quantiles_come_from_the_whole_distribution() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.quantiles(), None);
        for micros in 1..=1000 {
            distribution.record(Duration::from_micros(micros));
        }
        let quantiles = distribution.quantiles().unwrap();
        assert!((quantiles.mean - 0.5005).abs() < 1e-9);
        for (found, expected) in
            [(quantiles.p50, 0.5), (quantiles.p95, 0.95), (quantiles.p99_9, 0.999), (quantiles.max, 1.0)]
        {
            assert!((found / expected - 1.0).abs() < 2e-3, "{found} for {expected}");
        }
    }
}
