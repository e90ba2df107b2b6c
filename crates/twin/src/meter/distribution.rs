//! Distributions of times.

use std::borrow::Cow;

use hdrhistogram::Histogram;
use hopcast_core::Duration;
use serde::{Deserialize, Serialize};

use crate::results::{LatencyCurve, Quantiles};

/// Maximum number of different values that are kept one by one. Chosen: more are slow to search; with fewer, flows with
/// few different latencies need a histogram of 100 kB or more each, too much for ten thousand receivers.
const MAX_FEW: usize = 256;

/// A distribution of times, to three significant digits.
#[derive(Clone, Default)]
pub(crate) struct Distribution {
    /// The different values in order, each with its count, while there are few.
    few: Vec<(u64, u64)>,
    /// The histogram; `None` while there are few different values.
    histogram: Option<Histogram<u64>>,
    /// The exact sum, in nanoseconds; the histogram rounds values.
    sum_ns: u128,
    max_ns: u64,
}

impl Distribution {
    pub(super) fn record(&mut self, value: Duration) {
        self.count(value.as_nanos(), 1);
        self.sum_ns += u128::from(value.as_nanos());
        self.max_ns = self.max_ns.max(value.as_nanos());
    }

    /// Counts a value `times` times.
    fn count(&mut self, value: u64, times: u64) {
        if let Some(histogram) = &mut self.histogram {
            return note(histogram, value, times);
        }
        match self.few.binary_search_by_key(&value, |&(value, _)| value) {
            Ok(place) => self.few[place].1 += times,
            Err(place) if self.few.len() < MAX_FEW => self.few.insert(place, (value, times)),
            Err(_) => {
                let mut histogram = of_few(&self.few);
                note(&mut histogram, value, times);
                (self.few, self.histogram) = (Vec::new(), Some(histogram));
            }
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        match (&mut self.histogram, &other.histogram) {
            // Both have the same digits, and grow as needed.
            (Some(histogram), Some(added)) => {
                histogram.auto(true);
                let _ = histogram.add(added);
            }
            (None, Some(added)) => {
                let mut histogram = added.clone();
                self.few.drain(..).for_each(|(value, times)| note(&mut histogram, value, times));
                self.histogram = Some(histogram);
            }
            (_, None) => other.few.iter().for_each(|&(value, times)| self.count(value, times)),
        }
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// All values; `None` if there are none.
    fn whole(&self) -> Option<Cow<'_, Histogram<u64>>> {
        match &self.histogram {
            Some(histogram) => Some(Cow::Borrowed(histogram)),
            None => (!self.few.is_empty()).then(|| Cow::Owned(of_few(&self.few))),
        }
    }

    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        let histogram = self.whole()?;
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
        let histogram = self.whole()?;
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

fn of_few(few: &[(u64, u64)]) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three digits are within its bounds");
    few.iter().for_each(|&(value, times)| note(&mut histogram, value, times));
    histogram
}

fn note(histogram: &mut Histogram<u64>, value: u64, times: u64) {
    histogram.auto(true);
    // It grows as needed, so that its only error, a value out of range, cannot occur below 584 years of latency.
    let _ = histogram.record_n(value, times);
}

/// The form in which one process writes a distribution for another: each value with its count, and the exact sum and
/// maximum.
#[derive(Serialize, Deserialize)]
struct Recorded {
    counts: Vec<(u64, u64)>,
    sum_ns: u64,
    max_ns: u64,
}

impl Serialize for Distribution {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let recorded = |histogram: &Histogram<u64>| {
            let values = histogram.iter_recorded();
            values.map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
        };
        let counts = self.histogram.as_ref().map_or_else(|| self.few.clone(), recorded);
        let sum_ns = u64::try_from(self.sum_ns).unwrap_or(u64::MAX);
        Recorded { counts, sum_ns, max_ns: self.max_ns }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Recorded { counts, sum_ns, max_ns } = Recorded::deserialize(deserializer)?;
        let mut distribution = Self { sum_ns: u128::from(sum_ns), max_ns, ..Self::default() };
        for (value, count) in counts {
            distribution.count(value, count);
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
    fn few_values_and_many_are_the_same_distribution() {
        // Twice as many values as are kept one by one, in two halves that overlap and are added.
        let values = |range: std::ops::Range<u64>| {
            let mut distribution = Distribution::default();
            range.for_each(|number| distribution.record(Duration::from_nanos(number * number * 997)));
            distribution
        };
        let (few, many) = (values(1..MAX_FEW as u64), values(1..2 * MAX_FEW as u64));
        assert!(few.histogram.is_none() && many.histogram.is_some());
        assert_eq!(few.quantiles().map(|of| of.max), Some(((MAX_FEW as u64 - 1).pow(2) * 997) as f64 / 1e6));
        for (one, other) in [(&few, &many), (&many, &few), (&few, &few), (&many, &many)] {
            let mut sum = one.clone();
            sum.add(other);
            let mut whole = of_few(&[]);
            for distribution in [one, other] {
                let _ = whole.add(&*distribution.whole().unwrap());
            }
            assert_eq!(*sum.whole().unwrap(), whole);
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
