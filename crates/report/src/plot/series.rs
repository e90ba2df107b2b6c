//! Goodput over time, one line for each protocol of a case.

use std::collections::BTreeSet;

use super::canvas::{Ink, Point};
use super::chart::{Axis, Entry, Key, chart, draw_events, mark_places};
use super::{MAX_SECTION_PLOTS, Plot, Section, Size, describe, drawn, keys, lines};
use crate::study::Study;

/// Maximum number of points of a line. Chosen: about the width of a picture in pixels; more make it larger only.
const MAX_POINTS: usize = 400;

/// One picture for each case and group of flows; and the number of those left out.
pub(crate) fn plots(study: &Study<'_>) -> (Vec<Plot>, usize) {
    let mut there = BTreeSet::new();
    for run in study.document.runs.iter().filter(|run| run.series.step_s > 0.0) {
        let Some(case) = study.case_of(&run.parameters) else { continue };
        let flows = run.series.flows.iter().filter(|(_, steps)| !steps.is_empty());
        there.extend(flows.filter_map(|(flow, _)| Some((study.group_of(flow)?, case))));
    }
    let drawn = drawn(&there, MAX_SECTION_PLOTS, 4);
    let plots: Vec<Plot> = drawn.iter().filter_map(|(group, case)| picture(study, *group, *case)).collect();
    let left_out = there.len() - plots.len();
    (plots, left_out)
}

/// A line, with the minimum and maximum of its repeats.
struct Line {
    line: usize,
    step_s: f64,
    repeats: usize,
    /// Minimum, mean and maximum in each step.
    steps: Vec<(f64, f64, f64)>,
}

fn picture(study: &Study<'_>, group: usize, case: usize) -> Option<Plot> {
    let mut drawn = Vec::new();
    for (line, runs) in lines(study, case, group) {
        let repeats: Vec<(f64, &[f64])> = runs
            .iter()
            .flat_map(|(run, name)| {
                let own = run.series.flows.iter().filter(move |(flow, _)| flow == name);
                own.map(|(_, steps)| (run.series.step_s, steps.as_slice()))
            })
            .filter(|(step_s, steps)| *step_s > 0.0 && !steps.is_empty())
            .collect();
        if let Some(step_s) = repeats.first().map(|(step_s, _)| *step_s) {
            let steps: Vec<&[f64]> = repeats.iter().map(|(_, steps)| *steps).collect();
            drawn.push(gathered(Line { line, step_s, repeats: steps.len(), steps: over_repeats(&steps) }));
        }
    }
    if drawn.is_empty() {
        return None;
    }
    let end = drawn.iter().map(|line| line.steps.len() as f64 * line.step_s).fold(0.0, f64::max);
    let x = Axis::between("time [s]".into(), 0.0, end);
    let tops = drawn.iter().flat_map(|line| line.steps.iter().map(|(_, _, high)| *high));
    let y = Axis::from_zero("goodput [Mbit/s]".into(), tops);

    let keys = keys(study, case, group);
    let of = if keys.is_empty() { study.groups[group].clone() } else { describe(&keys) };
    let bands = drawn.iter().any(|line| line.repeats > 1);
    let note =
        if bands { "; line: mean over repeats, band: from the lowest to the highest repeat" } else { "" };
    let events = events(study, case);
    let marked = if events.is_empty() { "" } else { "; vertical lines: scheduled events" };
    let caption = format!(
        "Goodput over time: {of}. Steps of {} s{note}{marked}.",
        crate::number::plain(drawn[0].step_s)
    );
    let legend = || {
        let entry = |line: &Line| Entry { text: study.lines[line.line].clone(), key: Key::Marked(line.line) };
        drawn.iter().map(entry).collect::<Vec<_>>()
    };
    let paint = |size: Size| {
        chart(size, &caption, (&x, &y), &legend(), |canvas, frame| {
            let at =
                |line: &Line, step: usize, value: f64| frame.place((step as f64 + 0.5) * line.step_s, value);
            for line in drawn.iter().filter(|line| line.repeats > 1) {
                let steps = || line.steps.iter().enumerate();
                let low = steps().map(|(step, (low, _, _))| at(line, step, *low));
                let high = steps().rev().map(|(step, (_, _, high))| at(line, step, *high));
                canvas.area(&low.chain(high).collect::<Vec<Point>>(), Ink::Line(line.line), 0.18);
            }
            draw_events(canvas, frame, &events);
            for (turn, line) in drawn.iter().enumerate() {
                let steps = line.steps.iter().enumerate();
                let points: Vec<Point> = steps.map(|(step, (_, mean, _))| at(line, step, *mean)).collect();
                canvas.path(&points, Ink::Dashed(line.line), 2.0);
                for place in mark_places(&points, turn, drawn.len()) {
                    canvas.mark(place, line.line, 4.0, false);
                }
            }
        })
    };
    Some(Plot::new(
        Section::Series,
        &format!("series {} {of}", study.groups[group]),
        caption.clone(),
        keys,
        paint,
    ))
}

/// The scheduled events of a case, with their times in seconds; of the first run, since all repeats have the same.
fn events(study: &Study<'_>, case: usize) -> Vec<(f64, String)> {
    let run = study.document.runs.iter().find(|run| study.case_of(&run.parameters) == Some(case));
    let events = run.into_iter().flat_map(|run| &run.events);
    events.map(|event| (event.at_s, event.what.clone())).collect()
}

fn over_repeats(repeats: &[&[f64]]) -> Vec<(f64, f64, f64)> {
    let longest = repeats.iter().map(|steps| steps.len()).max().unwrap_or(0);
    let step = |at: usize| {
        let values: Vec<f64> = repeats.iter().filter_map(|steps| steps.get(at)).copied().collect();
        let low = values.iter().copied().fold(f64::MAX, f64::min);
        let high = values.iter().copied().fold(f64::MIN, f64::max);
        (low, values.iter().sum::<f64>() / values.len() as f64, high)
    };
    (0..longest).map(step).collect()
}

/// Merges neighbouring steps until the maximum number is left; the band keeps its extremes.
fn gathered(line: Line) -> Line {
    let together = line.steps.len().div_ceil(MAX_POINTS).max(1);
    let join = |steps: &[(f64, f64, f64)]| {
        let low = steps.iter().map(|step| step.0).fold(f64::MAX, f64::min);
        let high = steps.iter().map(|step| step.2).fold(f64::MIN, f64::max);
        (low, steps.iter().map(|step| step.1).sum::<f64>() / steps.len() as f64, high)
    };
    Line {
        step_s: line.step_s * together as f64,
        steps: line.steps.chunks(together).map(join).collect(),
        ..line
    }
}
