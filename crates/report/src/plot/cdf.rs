//! The cumulative distribution of latency, one line for each protocol of a case.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_twin::results::LatencyCurve;

use super::canvas::{Ink, Point};
use super::chart::{Axis, Entry, Key, chart, mark_places, thinned};
use super::{MAX_SECTION_PLOTS, Plot, Section, Size, describe, drawn, keys, lines};
use crate::study::Study;

/// Maximum number of points of a line. Chosen: about the width of a picture in pixels; more make it larger only.
const MAX_POINTS: usize = 400;

const KINDS: [(&str, &str); 2] = [("latency", "one-way latency"), ("round_trip", "round-trip time")];

/// One picture for each case, group of flows and kind of latency; and the number of those left out.
pub(crate) fn plots(study: &Study<'_>) -> (Vec<Plot>, usize) {
    let there = there(study);
    let kinds = there.values().map(BTreeSet::len).max().unwrap_or(1);
    let mut plots = Vec::new();
    for (group, case) in drawn(&there.keys().copied().collect(), MAX_SECTION_PLOTS / kinds, 4) {
        plots.extend(KINDS.iter().filter_map(|kind| picture(study, group, case, *kind)));
    }
    let left_out = there.values().map(BTreeSet::len).sum::<usize>() - plots.len();
    (plots, left_out)
}

/// The kinds of latency of each group of flows in each case.
fn there<'d>(study: &Study<'d>) -> BTreeMap<(usize, usize), BTreeSet<&'d str>> {
    let mut there: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    for run in &study.document.runs {
        let Some(case) = study.case_of(&run.parameters) else { continue };
        for curve in run.latency.iter().filter(|curve| drawable(curve)) {
            if let Some(group) = study.group_of(&curve.flow) {
                there.entry((group, case)).or_default().insert(&curve.kind);
            }
        }
    }
    there
}

fn drawable(curve: &LatencyCurve) -> bool {
    KINDS.iter().any(|(kind, _)| *kind == curve.kind) && curve.points.iter().any(|(ms, _)| *ms > 0.0)
}

fn picture(study: &Study<'_>, group: usize, case: usize, (kind, title): (&str, &str)) -> Option<Plot> {
    let mut curves: Vec<(usize, Vec<Point>)> = Vec::new();
    for (line, runs) in lines(study, case, group) {
        let of_flow = |curve: &&LatencyCurve, flow: &str| {
            curve.flow == flow && curve.kind == kind && !curve.points.is_empty()
        };
        let repeats: Vec<&LatencyCurve> = runs
            .iter()
            .flat_map(|(run, flow)| run.latency.iter().filter(move |curve| of_flow(curve, flow)))
            .collect();
        if !repeats.is_empty() {
            curves.push((line, pooled(&repeats)));
        }
    }
    let all = || curves.iter().flat_map(|(_, points)| points.iter().map(|(ms, _)| *ms));
    let min = all().filter(|ms| *ms > 0.0).fold(f64::MAX, f64::min);
    let max = all().fold(0.0, f64::max);
    if curves.is_empty() || max <= 0.0 {
        return None;
    }
    let x_title = format!("{title} [ms]");
    let x = if max / min > 20.0 {
        Axis::log(x_title, min * 0.9, max * 1.1)
    } else {
        Axis::from_zero(x_title, all())
    };
    let y = Axis::between("share of units at or below [%]".into(), 0.0, 100.0);

    let keys = keys(study, case, group);
    let scale = if max / min > 20.0 { ", logarithmic axis" } else { "" };
    let of = if keys.is_empty() { study.groups[group].clone() } else { describe(&keys) };
    let caption = format!("Distribution of {title}: {of}. All repeats with equal weight{scale}.");
    let legend = || {
        let entry = |(line, _): &(usize, Vec<Point>)| Entry {
            text: study.lines[*line].clone(),
            key: Key::Marked(*line),
        };
        curves.iter().map(entry).collect::<Vec<_>>()
    };
    let paint = |size: Size| {
        chart(size, &caption, (&x, &y), &legend(), |canvas, frame| {
            for (turn, (line, points)) in curves.iter().enumerate() {
                let mut places: Vec<Point> = Vec::with_capacity(points.len() + 1);
                places.extend(points.first().map(|(ms, _)| frame.place(*ms, 0.0)));
                places.extend(points.iter().map(|(ms, share)| frame.place(*ms, share * 100.0)));
                let places = thinned(&places, MAX_POINTS);
                canvas.path(&places, Ink::Dashed(*line), 2.2);
                for place in mark_places(&places, turn, curves.len()) {
                    canvas.mark(place, *line, 4.0, false);
                }
            }
        })
    };
    Some(Plot::new(
        Section::Latency,
        &format!("{kind} {} {of}", study.groups[group]),
        caption.clone(),
        keys,
        paint,
    ))
}

/// The mean of the repeats' distributions: at each latency, the mean of the shares at or below it.
fn pooled(curves: &[&LatencyCurve]) -> Vec<Point> {
    if let [only] = curves {
        return only.points.clone();
    }
    let mut steps: Vec<Point> = Vec::new();
    for curve in curves {
        let mut before = 0.0;
        for (ms, share) in &curve.points {
            steps.push((*ms, (share - before) / curves.len() as f64));
            before = *share;
        }
    }
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sum = 0.0;
    for (_, share) in &mut steps {
        sum += *share;
        *share = sum.min(1.0);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_pooled_with_equal_weight() {
        let curve = |points: &[Point]| LatencyCurve {
            flow: "f".into(),
            kind: "latency".into(),
            points: points.to_vec(),
        };
        let (one, two) = (curve(&[(1.0, 0.5), (3.0, 1.0)]), curve(&[(2.0, 1.0)]));
        assert_eq!(pooled(&[&one, &two]), [(1.0, 0.25), (2.0, 0.75), (3.0, 1.0)]);
    }
}
