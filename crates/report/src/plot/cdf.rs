//! The cumulative distribution of latency, one line for each protocol of a case.

use hopcast_twin::results::LatencyCurve;

use super::canvas::{Ink, Point};
use super::chart::{Axis, Entry, Key, chart, thinned};
use super::{Plot, Section, Size, describe, keys, lines};
use crate::study::{FlowGroup, Study};

/// Points that a line has at most.
const POINTS: usize = 400;

/// One picture for each case and flow group, and for each kind of latency.
pub(crate) fn plots(study: &Study<'_>) -> Vec<Plot> {
    let kinds = [("latency", "one-way latency"), ("round_trip", "round-trip time")];
    let mut plots = Vec::new();
    for group in &study.groups {
        for case in &study.cases {
            for (kind, title) in kinds {
                plots.extend(picture(study, group, case, (kind, title)));
            }
        }
    }
    plots
}

fn picture(
    study: &Study<'_>,
    group: &FlowGroup,
    case: &[String],
    (kind, title): (&str, &str),
) -> Option<Plot> {
    let mut curves: Vec<(usize, String, Vec<Point>)> = Vec::new();
    for (label, runs) in lines(study, case, group) {
        let of_flow = |curve: &&LatencyCurve, flow: &str| {
            curve.flow == flow && curve.kind == kind && !curve.points.is_empty()
        };
        let repeats: Vec<&LatencyCurve> = runs
            .iter()
            .flat_map(|(run, flow)| run.latency.iter().filter(move |curve| of_flow(curve, flow)))
            .collect();
        if !repeats.is_empty() {
            curves.push((study.style(&label), label, pooled(&repeats)));
        }
    }
    let all = || curves.iter().flat_map(|(_, _, points)| points.iter().map(|(ms, _)| *ms));
    let least = all().filter(|ms| *ms > 0.0).fold(f64::MAX, f64::min);
    let greatest = all().fold(0.0, f64::max);
    if curves.is_empty() || greatest <= 0.0 {
        return None;
    }
    let x_title = format!("{title} [ms]");
    let x = if greatest / least > 20.0 {
        Axis::log(x_title, least * 0.9, greatest * 1.1)
    } else {
        Axis::from_zero(x_title, all())
    };
    let y = Axis::between("share of units at or below [%]".into(), 0.0, 100.0);

    let keys = keys(study, case, group);
    let scale = if greatest / least > 20.0 { ", logarithmic axis" } else { "" };
    let of = if keys.is_empty() { group.name.clone() } else { describe(&keys) };
    let caption = format!("Distribution of {title}: {of}. All repeats with equal weight{scale}.");
    let legend = || {
        let entry = |(style, label, _): &(usize, String, Vec<Point>)| Entry {
            text: label.clone(),
            key: Key::Line(*style),
        };
        curves.iter().map(entry).collect::<Vec<_>>()
    };
    let paint = |size: Size| {
        chart(size, &caption, (&x, &y), &legend(), |canvas, frame| {
            for (style, _, points) in &curves {
                let mut places: Vec<Point> = Vec::with_capacity(points.len() + 1);
                places.extend(points.first().map(|(ms, _)| frame.place(*ms, 0.0)));
                places.extend(points.iter().map(|(ms, share)| frame.place(*ms, share * 100.0)));
                canvas.path(&thinned(&places, POINTS), Ink::Dashed(*style), 2.2);
            }
        })
    };
    Some(Plot::new(Section::Latency, &format!("{kind} {} {of}", group.name), caption.clone(), keys, paint))
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
