//! The figures of a summary, by name, with their types.

use hopcast_twin::results::{Mean, Summary};
use serde_json::Value;

/// A figure of a summary by its name in [`Figures`](hopcast_twin::results::Figures): `goodput_mbps`, `latency_ms.p99`.
/// `None` if no repeat has it; its `n` is the number of repeats that do.
pub fn figure(summary: &Summary, name: &str) -> Option<Mean> {
    let leaf = summary.figures.get(name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        summary.figures.get(first)?.get(rest)
    })?;
    let mean = leaf.get("mean")?.as_f64()?;
    let ci95 = leaf.get("ci95").and_then(Value::as_f64);
    let n = leaf.get("n").and_then(Value::as_u64).unwrap_or(1);
    mean.is_finite().then_some(Mean { mean, ci95, n })
}

/// Half the width of the interval over repeats; `None` if there is one repeat, or if all repeats have the same value:
/// then the case is not random.
pub(crate) fn interval(mean: Mean) -> Option<f64> {
    mean.ci95.filter(|ci95| mean.n > 1 && *ci95 > 0.0)
}

/// Whether there are several repeats, and all have the same value.
pub(crate) fn agrees(mean: Mean) -> bool {
    mean.n > 1 && mean.ci95 == Some(0.0)
}

/// Number of repeats of a row: the maximum `n` of its figures.
pub(crate) fn repeats(summary: &Summary) -> u64 {
    let names = MEASURES.iter().map(|measure| measure.name).chain(["sent_units"]);
    names.filter_map(|name| figure(summary, name)).map(|mean| mean.n).max().unwrap_or(0)
}

/// The better one of two values of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    High,
    Low,
    Neither,
}

/// Presentation of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// Its name in the document.
    pub(crate) name: &'static str,
    /// Heading of its column.
    pub(crate) title: &'static str,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// Factor from the document's value to that unit.
    pub(crate) scale: f64,
    /// The value that is marked as the best.
    pub(crate) better: Better,
    /// Rank: where space is short, columns of the highest rank are dropped first; those of rank 0 stay.
    pub(crate) rank: u8,
}

/// The figures that tables show, in the order of their columns.
pub(crate) const MEASURES: &[Measure] = &[
    measure("goodput_mbps", "goodput", "Mbit/s", 1.0, Better::High, 0),
    measure("min_cut_fraction", "of min-cut", "%", 100.0, Better::High, 5),
    measure("payload_bound_fraction", "of payload bound", "%", 100.0, Better::High, 9),
    measure("reliability", "reliability", "%", 100.0, Better::High, 3),
    measure("reliability_bound", "reliability bound", "%", 100.0, Better::Neither, 6),
    measure("video.in_time_ratio", "frames in time", "%", 100.0, Better::High, 1),
    measure("video.decodable_frame_ratio", "decodable frames", "%", 100.0, Better::High, 5),
    measure("latency_ms.p50", "latency p50", "ms", 1.0, Better::Low, 8),
    measure("latency_ms.p99", "latency p99", "ms", 1.0, Better::Low, 4),
    measure("jitter_ms", "jitter", "ms", 1.0, Better::Low, 8),
    measure("latency_bound_ms.p50", "latency p50 bound", "ms", 1.0, Better::Neither, 9),
    measure("latency_bound_ms.p99", "latency p99 bound", "ms", 1.0, Better::Neither, 6),
    measure("round_trip_ms.mean", "round trip mean", "ms", 1.0, Better::Low, 3),
    measure("round_trip_ms.p50", "round trip p50", "ms", 1.0, Better::Low, 8),
    measure("round_trip_ms.p99", "round trip p99", "ms", 1.0, Better::Low, 4),
    measure("round_trip_ms.p99_9", "round trip p99.9", "ms", 1.0, Better::Low, 5),
    measure("network_bytes", "network load", "MB", 1e-6, Better::Low, 2),
    measure("network_saving", "network saving", "%", 100.0, Better::High, 1),
    measure("sender_bytes", "sender load", "MB", 1e-6, Better::Low, 6),
    measure("sender_saving", "sender saving", "%", 100.0, Better::High, 1),
    measure("network_bytes_bound", "load bound", "MB", 1e-6, Better::Neither, 6),
    measure("completed_s", "completed", "s", 1.0, Better::Low, 6),
    measure("time_saving", "time saving", "%", 100.0, Better::High, 1),
    measure("completed_bound_s", "time bound", "s", 1.0, Better::Neither, 6),
    measure("nacks_per_round", "NACKs per round", "", 1.0, Better::Low, 7),
    measure("hash_ok", "file intact", "", 1.0, Better::Neither, 7),
];

/// The presentation of the figure of this name; `None` for figures without a column of their own.
pub(crate) fn measure_of(name: &str) -> Option<&'static Measure> {
    MEASURES.iter().find(|measure| measure.name == name)
}

const fn measure(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    scale: f64,
    better: Better,
    rank: u8,
) -> Measure {
    Measure { name, title, unit, scale, better, rank }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn summary(figures: &Value) -> Summary {
        Summary { figures: figures.as_object().cloned().unwrap_or_default(), ..Summary::default() }
    }

    #[test]
    fn a_figure_is_found_nested_or_flat() {
        let leaf = json!({ "mean": 3.5, "ci95": 0.25, "n": 5 });
        let expected = Some(Mean { mean: 3.5, ci95: Some(0.25), n: 5 });
        assert_eq!(figure(&summary(&json!({ "latency_ms": { "p99": leaf } })), "latency_ms.p99"), expected);
        assert_eq!(figure(&summary(&json!({ "latency_ms.p99": leaf })), "latency_ms.p99"), expected);
        assert_eq!(figure(&summary(&json!({ "goodput_mbps": leaf })), "goodput_mbps"), expected);
    }

    #[test]
    fn what_is_null_or_absent_is_no_figure() {
        let summary = summary(&json!({ "goodput_mbps": null, "latency_ms": { "p50": { "mean": null } } }));
        assert_eq!(figure(&summary, "goodput_mbps"), None);
        assert_eq!(figure(&summary, "latency_ms.p50"), None);
        assert_eq!(figure(&summary, "reliability"), None);
    }

    #[test]
    fn an_interval_is_told_however_wide_and_not_where_nothing_is_random() {
        let mean = |mean, ci95, n| Mean { mean, ci95: Some(ci95), n };
        assert_eq!(interval(mean(0.917, 1.059, 2)), Some(1.059));
        assert_eq!(interval(mean(2590.0, 14995.0, 2)), Some(14995.0));
        assert_eq!(interval(mean(13.4, 0.0, 10)), None);
        assert!(agrees(mean(13.4, 0.0, 10)) && !agrees(mean(13.4, 0.1, 10)) && !agrees(mean(13.4, 0.0, 1)));
    }

    #[test]
    fn a_single_repeat_has_no_interval() {
        let summary = summary(&json!({ "goodput_mbps": { "mean": 1.0, "ci95": null, "n": 1 } }));
        assert_eq!(figure(&summary, "goodput_mbps"), Some(Mean { mean: 1.0, ci95: None, n: 1 }));
    }
}
