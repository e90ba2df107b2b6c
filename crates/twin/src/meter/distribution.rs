//! Distributions of times.

use hdrhistogram::Histogram;
use hopcast_core::Duration;
use serde::{Deserialize, Serialize};

use crate::results::{LatencyCurve, Quantiles};

/// A distribution of times, kept whole to three significant digits.
#[derive(Clone, Default)]
pub(crate) struct Distribution {
    /// Made when the first value comes: a flow that measures nothing costs nothing.
    histogram: Option<Histogram<u64>>,
    /// Exact, beside the histogram's rounded values.
    sum_ns: u128,
    max_ns: u64,
}

impl Distribution {
    pub(super) fn record(&mut self, value: Duration) {
        let histogram = self.histogram();
        // It grows as needed, so that the one error there is, a value out of range, needs 584 years of latency.
        let _ = histogram.record(value.as_nanos());
        self.sum_ns += u128::from(value.as_nanos());
        self.max_ns = self.max_ns.max(value.as_nanos());
    }

    fn histogram(&mut self) -> &mut Histogram<u64> {
        let new = || Histogram::new(3).expect("three digits are within its bounds");
        let histogram = self.histogram.get_or_insert_with(new);
        histogram.auto(true);
        histogram
    }

    pub(super) fn add(&mut self, other: &Self) {
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
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        let histogram = self.histogram.as_ref()?;
        let at = |quantile| histogram.value_at_quantile(quantile).min(self.max_ns) as f64 / 1e6;
        Some(Quantiles {
            mean: self.sum_ns as f64 / histogram.len() as f64 / 1e6,
            p50: at(0.50),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            max: self.max_ns as f64 / 1e6,
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
            .map(|share| (histogram.value_at_quantile(share).min(self.max_ns) as f64 / 1e6, share))
            .collect();
        Some(LatencyCurve { flow: flow.to_owned(), kind: kind.to_owned(), points })
    }
}

/// A distribution as one process writes it for another: each recorded value with its count, and the exact sum and
/// maximum.
#[derive(Serialize, Deserialize)]
struct Recorded {
    counts: Vec<(u64, u64)>,
    sum_ns: u64,
    max_ns: u64,
}

impl Serialize for Distribution {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let recorded = self.histogram.iter().flat_map(|histogram| histogram.iter_recorded());
        let counts = recorded.map(|value| (value.value_iterated_to(), value.count_at_value())).collect();
        let sum_ns = u64::try_from(self.sum_ns).unwrap_or(u64::MAX);
        Recorded { counts, sum_ns, max_ns: self.max_ns }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Recorded { counts, sum_ns, max_ns } = Recorded::deserialize(deserializer)?;
        let mut distribution = Self { histogram: None, sum_ns: u128::from(sum_ns), max_ns };
        for (value, count) in counts {
            // As in `record`.
            let _ = distribution.histogram().record_n(value, count);
        }
        Ok(distribution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_come_from_the_whole_distribution() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.quantiles(), None);
        for micros in 1..=1000 {
            distribution.record(Duration::from_micros(micros));
        }
        let quantiles = distribution.quantiles().unwrap();
        assert_eq!(quantiles.max, 1.0, "the greatest is exact");
        assert!((quantiles.mean - 0.5005).abs() < 1e-9);
        for (found, expected) in
            [(quantiles.p50, 0.5), (quantiles.p95, 0.95), (quantiles.p99_9, 0.999), (quantiles.max, 1.0)]
        {
            assert!((found / expected - 1.0).abs() < 2e-3, "{found} for {expected}");
        }
    }

    #[test]
    fn a_distribution_survives_the_way_to_another_process() {
        let mut distribution = Distribution::default();
        (1..=1000).for_each(|micros| distribution.record(Duration::from_micros(micros * micros)));
        let text = serde_json::to_string(&distribution).unwrap();
        let read: Distribution = serde_json::from_str(&text).unwrap();
        assert_eq!(read.quantiles(), distribution.quantiles());
        let nothing: Distribution =
            serde_json::from_str(&serde_json::to_string(&Distribution::default()).unwrap()).unwrap();
        assert_eq!(nothing.quantiles(), None);
    }
}
