//! Details of every case: its flows, links and counters, as means over its repeats.

use std::fmt::Write as _;

use hopcast_twin::results::{Figures, Link, Run};

use super::counters::counters;
use super::services::tables;
use super::sheet::{Column, Sheet};
use crate::number::{count, number, percent, plain};
use crate::plot::canvas::escape;
use crate::study::{Study, distinct, value};

/// Maximum size of all cases together on the page, in bytes; further ones are in the CSV files only. Chosen: a larger
/// page is slow to open.
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of rows of a table, so of links and receivers. Chosen: browsers are slow to lay out more.
pub(super) const MAX_ROWS: usize = 200;

/// The section; empty if there are no runs.
pub(super) fn cases(study: &Study<'_>) -> String {
    let settings = distinct(study.rows.iter().map(|row| study.setting(&row.summary.parameters)));
    let mut shown = String::new();
    let mut count = 0;
    for setting in &settings {
        let Some(first) = study.runs_of(setting).first() else { continue };
        let case = one(study, first, study.runs_of(setting), settings.len() == 1);
        if count > 0 && shown.len() + case.len() > MAX_BYTES {
            break;
        }
        shown.push_str(&case);
        count += 1;
    }
    if count == 0 {
        return String::new();
    }
    let mut note = "Means over the repeats of each case. Links that carried nothing and counters that are zero are left out; \
                    <code>flows.csv</code> and <code>links.csv</code> have every run."
        .to_owned();
    if count < settings.len() {
        let _ = write!(note, " Here are the first {count} of {} cases.", plain(settings.len() as f64));
    }
    format!(
        "<section id=\"cases\">\n<div class=\"head\"><h2>Case by case</h2></div>\n{shown}<p class=\"note\">{note}</p>\n</section>\n"
    )
}

fn one(study: &Study<'_>, first: &Run, runs: &[&Run], open: bool) -> String {
    let names = study.varying.iter().zip(&study.names);
    let label: Vec<String> =
        names.map(|(path, name)| format!("{name} {}", value(&first.parameters, path))).collect();
    let label = if label.is_empty() { "All flows and links".to_owned() } else { label.join(" · ") };
    let open = if open { " open" } else { "" };
    format!(
        "<details{open}><summary>{}</summary>\n{}{}{}{}{}</details>\n",
        escape(&label),
        flows(runs).html(),
        links(runs).html(),
        counters(runs),
        tables(first),
        deliveries(first)
    )
}

/// How the flows' deliveries serve their members at the end of a run, of those that say so.
fn deliveries(run: &Run) -> String {
    let mut out = String::new();
    for flow in run.flows.iter().filter(|flow| !flow.delivery.is_empty()) {
        let lines = flow.delivery.iter().take(MAX_ROWS).map(|line| escape(line));
        let _ = writeln!(
            out,
            "<h3>How {} is delivered in the end, in repeat {}</h3>\n<pre>{}</pre>",
            escape(&flow.name),
            run.repeat,
            lines.collect::<Vec<_>>().join("\n")
        );
    }
    out
}

/// The mean over the runs that have a value; `None` if none has.
pub(super) fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for value in values.flatten() {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

/// A row for each flow, and where it has several receivers, one for each of them.
fn flows(runs: &[&Run]) -> Sheet {
    let names = ["flow", "protocol", "from", "to"].map(Column::name);
    let columns = names.into_iter().chain(FIGURES.iter().map(|(title, unit, _)| Column::number(title, unit)));
    let mut rows = Vec::new();
    for (place, flow) in runs[0].flows.iter().enumerate() {
        let here = || runs.iter().filter_map(|run| run.flows.get(place));
        let all: Vec<&Figures> = here().map(|flow| &flow.figures).collect();
        let lead = [&flow.name, &flow.protocol, &flow.from, &flow.to].map(|name| Some(name.clone()));
        rows.push((place > 0, lead.into_iter().chain(figures(&all)).collect()));
        for (receiver, one) in flow.receivers.iter().enumerate().filter(|_| flow.receivers.len() > 1) {
            let own: Vec<&Figures> =
                here().filter_map(|flow| Some(&flow.receivers.get(receiver)?.figures)).collect();
            let lead = [&flow.name, &flow.protocol, &flow.from, &one.node].map(|name| Some(name.clone()));
            rows.push((false, lead.into_iter().chain(figures(&own)).collect()));
        }
    }
    rows.truncate(MAX_ROWS);
    Sheet { caption: "Flows".into(), columns: columns.collect(), rows }
}

type Of<T> = fn(&T) -> Option<f64>;

/// Title, unit, and value in that unit.
const FIGURES: [(&str, &str, Of<Figures>); 15] = [
    ("goodput", "Mbit/s", |of| of.goodput_mbps),
    ("of min-cut", "%", |of| Some(of.min_cut_fraction? * 100.0)),
    ("sent", "units", |of| Some(of.sent_units as f64)),
    ("delivered", "units", |of| Some(of.delivered_units as f64)),
    ("reliability", "%", |of| Some(of.reliability? * 100.0)),
    ("latency mean", "ms", |of| Some(of.latency_ms?.mean)),
    ("p50", "ms", |of| Some(of.latency_ms?.p50)),
    ("p95", "ms", |of| Some(of.latency_ms?.p95)),
    ("p99", "ms", |of| Some(of.latency_ms?.p99)),
    ("max", "ms", |of| Some(of.latency_ms?.max)),
    ("jitter", "ms", |of| of.jitter_ms),
    ("completed", "s", |of| of.completed_s),
    ("network load", "MB", |of| Some(of.network_bytes? as f64 / 1e6)),
    ("frames in time", "%", |of| Some(of.video.as_ref()?.in_time_ratio? * 100.0)),
    ("decodable", "%", |of| Some(of.video.as_ref()?.decodable_frame_ratio? * 100.0)),
];

fn figures(all: &[&Figures]) -> Vec<Option<String>> {
    let one = |(_, unit, of): &(&str, &str, Of<Figures>)| {
        mean(all.iter().map(|figures| of(figures))).map(|value| shown(value, unit))
    };
    FIGURES.iter().map(one).collect()
}

fn shown(value: f64, unit: &str) -> String {
    match unit {
        "%" => percent(value),
        "units" | "packets" => count(value),
        _ => number(value),
    }
}

const LINK_FIGURES: [(&str, &str, Of<Link>); 8] = [
    ("sent", "MB", |of| Some(of.sent_bytes as f64 / 1e6)),
    ("sent", "packets", |of| Some(of.sent_packets as f64)),
    ("delivered", "packets", |of| Some(of.delivered_packets as f64)),
    ("lost", "packets", |of| Some(of.lost_packets as f64)),
    ("lost", "%", |of| {
        (of.sent_packets > 0).then(|| of.lost_packets as f64 * 100.0 / of.sent_packets as f64)
    }),
    ("dropped by the queue", "packets", |of| Some(of.queue_dropped_packets as f64)),
    ("utilisation", "%", |of| Some(of.utilisation? * 100.0)),
    ("down", "s", |of| (of.down_s > 0.0).then_some(of.down_s)),
];

fn links(runs: &[&Run]) -> Sheet {
    let names = ["from", "to"].map(Column::name);
    let columns =
        names.into_iter().chain(LINK_FIGURES.iter().map(|(title, unit, _)| Column::number(title, unit)));
    let mut rows = Vec::new();
    for (place, link) in runs[0].links.iter().enumerate() {
        let here: Vec<&Link> = runs.iter().filter_map(|run| run.links.get(place)).collect();
        if here.iter().all(|link| link.sent_packets + link.queue_dropped_packets == 0 && link.down_s <= 0.0) {
            continue;
        }
        let one = |(_, unit, of): &(&str, &str, Of<Link>)| {
            mean(here.iter().map(|link| of(link))).map(|value| shown(value, unit))
        };
        let lead = [Some(link.from.clone()), Some(link.to.clone())];
        rows.push((false, lead.into_iter().chain(LINK_FIGURES.iter().map(one)).collect()));
    }
    let all = rows.len();
    rows.truncate(MAX_ROWS);
    let caption = match all {
        more if more > MAX_ROWS => format!("Links: the first {MAX_ROWS} of {}", plain(more as f64)),
        _ => "Links".into(),
    };
    Sheet { caption, columns: columns.collect(), rows }
}
