//! The CSV files of a run directory.
//!
//! Each row begins with `run`, the run's place in `summary.json`, its `repeat`, and a column for each swept path: a
//! number with its unit in the column's name where all values have one (`swept`). The other columns of a file are the
//! same for every scenario.

use std::io;
use std::path::Path;

use csv::{Reader, StringRecord, Writer};
use hopcast_twin::results::{Document, Figures, LatencyCurve, Quantiles, Run, Series, Video};

use crate::error::{ReadError, RowError};
use crate::study::distinct;
use crate::swept::Swept;

type Rows = Writer<Vec<u8>>;
type Field<'r> = dyn Fn(usize) -> &'r str + 'r;

/// `flows.csv`: one row for each run and flow; `video.*` is empty unless it is a video.
pub fn flows(document: &Document) -> io::Result<Vec<u8>> {
    let own = ["flow", "protocol", "from", "to"].into_iter().map(String::from).chain(figure_columns());
    let (mut rows, swept) = begin(document, &own.collect::<Vec<_>>())?;
    for (index, run) in document.runs.iter().enumerate() {
        for flow in &run.flows {
            let mut row = lead(index, run, &swept);
            row.extend([&flow.name, &flow.protocol, &flow.from, &flow.to].map(String::clone));
            row.extend(figures(&flow.figures));
            rows.write_record(&row)?;
        }
    }
    finish(rows)
}

/// `receivers.csv`: one row for each run, flow and receiver, with the figures of `flows.csv` at that receiver.
pub(crate) fn receivers(document: &Document) -> io::Result<Vec<u8>> {
    let own = ["flow", "protocol", "from", "node"].into_iter().map(String::from).chain(figure_columns());
    let (mut rows, swept) = begin(document, &own.collect::<Vec<_>>())?;
    for (index, run) in document.runs.iter().enumerate() {
        for (flow, receiver) in
            run.flows.iter().flat_map(|flow| flow.receivers.iter().map(move |at| (flow, at)))
        {
            let mut row = lead(index, run, &swept);
            row.extend([&flow.name, &flow.protocol, &flow.from, &receiver.node].map(String::clone));
            row.extend(figures(&receiver.figures));
            rows.write_record(&row)?;
        }
    }
    finish(rows)
}

/// `counters.csv`: one row for each run, flow and counter of its protocols, summed over both ends; counters of the
/// hosts, summed over the network, have no flow.
pub(crate) fn counters(document: &Document) -> io::Result<Vec<u8>> {
    let (mut rows, swept) = begin(document, &COUNTER_COLUMNS.map(String::from))?;
    for (index, run) in document.runs.iter().enumerate() {
        let lead = lead(index, run, &swept);
        let of_flows = run.flows.iter().map(|flow| (flow.name.as_str(), &flow.counters));
        for (flow, counters) in of_flows.chain([("", &run.hosts)]) {
            for (counter, count) in counters {
                let own = [flow.to_owned(), counter.clone(), count.to_string()];
                rows.write_record(lead.iter().cloned().chain(own))?;
            }
        }
    }
    finish(rows)
}

/// `links.csv`: one row for each run and direction of a link.
pub(crate) fn links(document: &Document) -> io::Result<Vec<u8>> {
    let (mut rows, paths) = begin(document, &LINK_COLUMNS.map(String::from))?;
    for (index, run) in document.runs.iter().enumerate() {
        for link in &run.links {
            let mut row = lead(index, run, &paths);
            row.extend([&link.name, &link.from, &link.to].map(String::clone));
            let counts = [
                link.sent_bytes,
                link.sent_packets,
                link.delivered_packets,
                link.lost_packets,
                link.queue_dropped_packets,
            ];
            row.extend(counts.map(|count| count.to_string()));
            row.push(optional(link.utilisation.as_ref()));
            rows.write_record(&row)?;
        }
    }
    finish(rows)
}

/// `timeseries.csv`: one row for each run, flow or link direction, and step.
pub(crate) fn timeseries(document: &Document) -> io::Result<Vec<u8>> {
    let (mut rows, paths) = begin(document, &SERIES_COLUMNS.map(String::from))?;
    for (index, run) in document.runs.iter().enumerate() {
        let lead = lead(index, run, &paths);
        let step = run.series.step_s;
        // Rounded to nanoseconds: the multiple of a binary fraction would have digits of rounding errors.
        let step_ns = (step * 1e9).round() as u64;
        let mut write = |kind: &str, name: &str, at: usize, mbps: f64, lost: Option<&f64>| {
            let own = [
                kind.into(),
                name.into(),
                ((at as u64 * step_ns) as f64 / 1e9).to_string(),
                step.to_string(),
                mbps.to_string(),
            ];
            rows.write_record(lead.iter().cloned().chain(own).chain([optional(lost)]))
        };
        for (name, goodput) in &run.series.flows {
            for (at, mbps) in goodput.iter().enumerate() {
                write("flow", name, at, *mbps, None)?;
            }
        }
        for (name, sent, lost) in &run.series.links {
            for (at, mbps) in sent.iter().enumerate() {
                write("link", name, at, *mbps, lost.get(at))?;
            }
        }
    }
    finish(rows)
}

/// `latency.csv`: the points of each flow's cumulative distribution.
pub(crate) fn latency(document: &Document) -> io::Result<Vec<u8>> {
    let (mut rows, paths) = begin(document, &LATENCY_COLUMNS.map(String::from))?;
    for (index, run) in document.runs.iter().enumerate() {
        let lead = lead(index, run, &paths);
        for curve in &run.latency {
            for (ms, share) in &curve.points {
                let own = [curve.flow.clone(), curve.kind.clone(), ms.to_string(), share.to_string()];
                rows.write_record(lead.iter().cloned().chain(own))?;
            }
        }
    }
    finish(rows)
}

/// Reads `timeseries.csv` back into the runs of its document.
pub(crate) fn read_timeseries(path: &Path, document: &mut Document) -> Result<(), ReadError> {
    read(path, &SERIES_COLUMNS, document, |run, field| {
        let series: &mut Series = &mut run.series;
        series.step_s = float(field(3))?;
        // Two links may join the same nodes: each series begins at time 0.
        let begins = float(field(2))? == 0.0;
        let (name, mbps) = (field(1), float(field(4))?);
        match field(0) {
            "flow" => match series.flows.last_mut().filter(|(last, _)| !begins && last == name) {
                Some((_, steps)) => steps.push(mbps),
                None => series.flows.push((name.to_owned(), vec![mbps])),
            },
            "link" => {
                let lost = if field(5).is_empty() { 0.0 } else { float(field(5))? };
                match series.links.last_mut().filter(|(last, ..)| !begins && last == name) {
                    Some((_, sent, losses)) => {
                        sent.push(mbps);
                        losses.push(lost);
                    }
                    None => series.links.push((name.to_owned(), vec![mbps], vec![lost])),
                }
            }
            other => return Err(RowError::Kind(other.to_owned())),
        }
        Ok(())
    })
}

/// Reads `latency.csv` back into the runs of its document.
pub(crate) fn read_latency(path: &Path, document: &mut Document) -> Result<(), ReadError> {
    read(path, &LATENCY_COLUMNS, document, |run, field| {
        let (flow, kind, point) = (field(0), field(1), (float(field(2))?, float(field(3))?));
        match run.latency.last_mut().filter(|curve| curve.flow == flow && curve.kind == kind) {
            Some(curve) => curve.points.push(point),
            None => {
                run.latency.push(LatencyCurve { flow: flow.into(), kind: kind.into(), points: vec![point] });
            }
        }
        Ok(())
    })
}

const QUANTILES: [&str; 6] = ["mean", "p50", "p95", "p99", "p99_9", "max"];
const FIGURE_COLUMNS: [&str; 18] = [
    "goodput_mbps",
    "sent_units",
    "delivered_units",
    "reliability",
    "min_cut_fraction",
    "payload_bound_fraction",
    "completed_s",
    "hash_ok",
    "jitter_ms",
    "network_bytes",
    "sender_bytes",
    "network_bytes_bound",
    "completed_bound_s",
    "nacks_per_round",
    "reliability_bound",
    "network_saving",
    "sender_saving",
    "time_saving",
];
const QUANTILE_FIGURES: [&str; 3] = ["latency_ms", "round_trip_ms", "latency_bound_ms"];
const VIDEO_COLUMNS: [&str; 7] = [
    "frames_sent",
    "frames_delivered",
    "frames_late",
    "frames_lost",
    "frames_undecodable",
    "in_time_ratio",
    "decodable_frame_ratio",
];
const COUNTER_COLUMNS: [&str; 3] = ["flow", "counter", "value"];
const LINK_COLUMNS: [&str; 9] = [
    "link",
    "from",
    "to",
    "sent_bytes",
    "sent_packets",
    "delivered_packets",
    "lost_packets",
    "queue_dropped_packets",
    "utilisation",
];
const SERIES_COLUMNS: [&str; 6] = ["kind", "name", "time_s", "step_s", "mbps", "lost_share"];
const LATENCY_COLUMNS: [&str; 4] = ["flow", "kind", "ms", "share"];

/// The columns of [`figures`].
fn figure_columns() -> impl Iterator<Item = String> {
    let quantiles = |kind: &'static str| QUANTILES.iter().map(move |name| format!("{kind}.{name}"));
    let figures = FIGURE_COLUMNS.into_iter().map(String::from);
    let videos = VIDEO_COLUMNS.iter().map(|name| format!("video.{name}"));
    let latencies = QUANTILE_FIGURES.iter().flat_map(move |kind| quantiles(kind));
    figures.chain(latencies).chain(videos)
}

/// Writes the heading; returns the swept paths.
fn begin(document: &Document, own: &[String]) -> io::Result<(Rows, Vec<Swept>)> {
    let paths = distinct(document.runs.iter().flat_map(|run| run.parameters.keys().cloned()));
    let swept: Vec<Swept> = paths.into_iter().map(|path| Swept::new(document, path)).collect();
    let mut rows = Writer::from_writer(Vec::new());
    // A swept path may have the name of a column.
    let taken = |name: &String| own.contains(name) || name == "run" || name == "repeat";
    let heading = |swept: &Swept| match swept.heading() {
        name if taken(&name) => format!("parameter.{name}"),
        name => name,
    };
    let lead = ["run".to_owned(), "repeat".to_owned()];
    rows.write_record(lead.into_iter().chain(swept.iter().map(heading)).chain(own.iter().cloned()))?;
    Ok((rows, swept))
}

fn lead(index: usize, run: &Run, swept: &[Swept]) -> Vec<String> {
    let parameters = swept.iter().map(|swept| swept.cell(run));
    [index.to_string(), run.repeat.to_string()].into_iter().chain(parameters).collect()
}

fn finish(rows: Rows) -> io::Result<Vec<u8>> {
    rows.into_inner().map_err(csv::IntoInnerError::into_error)
}

fn figures(figures: &Figures) -> Vec<String> {
    let mut row = vec![
        optional(figures.goodput_mbps.as_ref()),
        figures.sent_units.to_string(),
        figures.delivered_units.to_string(),
        optional(figures.reliability.as_ref()),
        optional(figures.min_cut_fraction.as_ref()),
        optional(figures.payload_bound_fraction.as_ref()),
        optional(figures.completed_s.as_ref()),
        optional(figures.hash_ok.as_ref()),
        optional(figures.jitter_ms.as_ref()),
        optional(figures.network_bytes.as_ref()),
        optional(figures.sender_bytes.as_ref()),
        optional(figures.network_bytes_bound.as_ref()),
        optional(figures.completed_bound_s.as_ref()),
        optional(figures.nacks_per_round.as_ref()),
        optional(figures.reliability_bound.as_ref()),
        optional(figures.network_saving.as_ref()),
        optional(figures.sender_saving.as_ref()),
        optional(figures.time_saving.as_ref()),
    ];
    let quantiles =
        |of: &Quantiles| [of.mean, of.p50, of.p95, of.p99, of.p99_9, of.max].map(|ms| ms.to_string());
    for of in [&figures.latency_ms, &figures.round_trip_ms, &figures.latency_bound_ms] {
        row.extend(of.as_ref().map_or(QUANTILES.map(|_| String::new()), quantiles));
    }
    row.extend(frames(figures.video.as_ref()));
    row
}

/// Counts of a video's frames; empty cells if the flow is no video.
fn frames(video: Option<&Video>) -> Vec<String> {
    let Some(video) = video else { return vec![String::new(); VIDEO_COLUMNS.len()] };
    let counts = [
        video.frames_sent,
        video.frames_delivered,
        video.frames_late,
        video.frames_lost,
        video.frames_undecodable,
    ];
    let mut row = counts.map(|count| count.to_string()).to_vec();
    row.extend([&video.in_time_ratio, &video.decodable_frame_ratio].map(|share| optional(share.as_ref())));
    row
}

fn optional<T: ToString>(value: Option<&T>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn float(text: &str) -> Result<f64, RowError> {
    text.parse().map_err(|_| RowError::NotANumber(text.to_owned()))
}

/// Hands each row to its run; `field` counts from the first of `columns`.
fn read(
    path: &Path,
    columns: &[&str],
    document: &mut Document,
    mut row: impl FnMut(&mut Run, &Field<'_>) -> Result<(), RowError>,
) -> Result<(), ReadError> {
    let malformed = |source| ReadError::Csv { path: path.to_owned(), source };
    let mut reader = Reader::from_path(path).map_err(malformed)?;
    let headings = reader.headers().map_err(malformed)?;
    let at = headings
        .len()
        .checked_sub(columns.len())
        .filter(|at| headings.iter().skip(*at).eq(columns.iter().copied()));
    let at = at.ok_or_else(|| ReadError::Columns { path: path.to_owned(), expected: columns.join(", ") })?;
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(malformed)? {
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |source| ReadError::Row { path: path.to_owned(), line, source };
        let run = record.get(0).and_then(|run| run.parse::<usize>().ok());
        let run = run.and_then(|run| document.runs.get_mut(run));
        let no_such_run = || RowError::NoSuchRun(record.get(0).unwrap_or_default().to_owned());
        let run = run.ok_or_else(|| wrong(no_such_run()))?;
        let record = &record;
        row(run, &|column| record.get(at + column).unwrap_or_default()).map_err(wrong)?;
    }
    Ok(())
}
