//! Distributions of times.

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

    /// Number of values.
    fn len(&self) -> u64 {
        self.histogram.as_ref().map_or_else(|| self.few.iter().map(|&(_, times)| times).sum(), Histogram::len)
    }

    /// The values at these shares of all, which are in order, to three significant digits; `None` without any value.
    fn at_shares(&self, shares: &[f64]) -> Option<Vec<u64>> {
        let len = self.len();
        if len == 0 {
            return None;
        }
        // Without a histogram made of a few values: each takes 100 kB, and a scan for each share.
        let mut rest = self.few.iter();
        let (mut value, mut passed) = (0, 0);
        let mut of_few = |share: f64| {
            let wanted = ((share * len as f64).ceil() as u64).max(1);
            while passed < wanted
                && let Some(&(next, times)) = rest.next()
            {
                (value, passed) = (next, passed + times);
            }
            let (lowest, highest) = rounded(value);
            if share == 0.0 { lowest } else { highest }
        };
        let at = |&share: &f64| match &self.histogram {
            Some(histogram) => histogram.value_at_quantile(share),
            None => of_few(share),
        };
        Some(shares.iter().map(at).map(|value| value.min(self.max_ns)).collect())
    }

    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        let millis: Vec<f64> =
            self.at_shares(&[0.50, 0.95, 0.99, 0.999])?.into_iter().map(|value| value as f64 / 1e6).collect();
        let &[p50, p95, p99, p99_9] = &millis[..] else { return None };
        let (mean, max) = (self.sum_ns as f64 / self.len() as f64 / 1e6, self.max_ns as f64 / 1e6);
        Some(Quantiles { mean, p50, p95, p99, p99_9, max })
    }

    /// The cumulative distribution in at most `points` points, denser towards the tail.
    pub(crate) fn curve(&self, flow: &str, kind: &str, points: usize) -> Option<LatencyCurve> {
        let shares =
            (0..=points).map(|i| i as f64 / points as f64).chain([0.995, 0.998, 0.999, 0.9995, 0.9999]);
        let mut shares: Vec<f64> = shares.collect();
        shares.sort_by(f64::total_cmp);
        let values = self.at_shares(&shares)?;
        let points = values.into_iter().map(|value| value as f64 / 1e6).zip(shares).collect();
        Some(LatencyCurve { flow: flow.to_owned(), kind: kind.to_owned(), points })
    }
}

/// The lowest and the highest value that a histogram of three digits does not tell from this one.
const fn rounded(value: u64) -> (u64, u64) {
    // Two thousand steps in each power of two, rounded up to a power of two.
    const STEP_BITS: u32 = 11;
    let dropped = (u64::BITS - value.leading_zeros()).saturating_sub(STEP_BITS);
    let lowest = value >> dropped << dropped;
    (lowest, lowest + ((1 << dropped) - 1))
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

    fn whole(distribution: &Distribution) -> Histogram<u64> {
        distribution.histogram.clone().unwrap_or_else(|| of_few(&distribution.few))
    }

    #[test]
    fn shares_of_a_few_values_are_those_of_a_histogram_of_them() {
        let mut distribution = Distribution::default();
        let shares: Vec<f64> = (0..=1000).map(|share| f64::from(share) / 1000.0).collect();
        assert_eq!(distribution.at_shares(&shares), None);
        for value in (0..60).map(|bits| (1_u64 << bits) * 7 / 3).chain([0, 2047, 2048, 2049, 4096, 9_999_999])
        {
            (0..=value % 3).for_each(|_| distribution.record(Duration::from_nanos(value)));
        }
        let histogram = whole(&distribution);
        assert!(distribution.histogram.is_none());
        let at = |&share: &f64| histogram.value_at_quantile(share).min(distribution.max_ns);
        assert_eq!(distribution.at_shares(&shares), Some(shares.iter().map(at).collect()));
    }

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
            let mut all = of_few(&[]);
            for distribution in [one, other] {
                let _ = all.add(whole(distribution));
            }
            assert_eq!(whole(&sum), all);
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
