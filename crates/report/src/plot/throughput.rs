//! Goodput over the first swept number, with intervals and published figures; and other figures with published values,
//! which come first if goodput has none.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_twin::results::Summary;

use super::canvas::{Canvas, Ink};
use super::chart::{Axis, Entry, Frame, Key, chart, thinned};
use super::{MAX_SECTION_PLOTS, Plot, Section, Size, describe, drawn};
use crate::figure::{Better, MEASURES, Measure, figure, interval};
use crate::number::plain;
use crate::study::{Order, Placed, Study, distinct, grouped, value};

/// Maximum number of points of a line. Chosen: about the width of a picture in pixels; more make it larger only.
const MAX_POINTS: usize = 400;
/// Maximum number of marks of a line, with their intervals. Chosen: more cover the line, with fewer, marks of usual
/// sweeps are left out.
const MAX_MARKS: usize = 100;

/// A picture of goodput, of savings, and of each other figure with published values, for each group of flows and each
/// setting of the parameters that are on no axis; and the number of pictures left out.
pub(crate) fn plots(study: &Study<'_>) -> (Vec<Plot>, usize) {
    let across = Across::new(study);
    let published = |measure: &&Measure| {
        measure.better != Better::Neither
            && study.rows.iter().any(|row| row.summary.published.contains_key(measure.name))
    };
    let has_saving = |measure: &&Measure| {
        is_saving(measure) && study.rows.iter().any(|row| figure(row.summary, measure.name).is_some())
    };
    // What a file wants to have compared comes first, and then what stands beside figures of others.
    let rank = |measure: &&Measure| (!has_saving(measure), !published(measure));
    let is_drawn = |measure: &&Measure| measure.rank == 0 || published(measure) || has_saving(measure);
    let mut measures: Vec<&Measure> = MEASURES.iter().filter(is_drawn).collect();
    measures.sort_by_key(rank);
    let several = measures.len() > 1;
    let all = measures.into_iter().map(|measure| plots_of(study, &across, measure, several));
    all.fold((Vec::new(), 0), |(mut plots, left_out), (more, also_left_out)| {
        plots.extend(more);
        (plots, left_out + also_left_out)
    })
}

fn plots_of(study: &Study<'_>, across: &Across, measure: &Measure, several: bool) -> (Vec<Plot>, usize) {
    let others: Vec<&String> =
        study.conditions().filter(|path| Some(*path) != across.path.as_ref()).collect();
    let setting = |row: &Placed<'_>| -> Vec<String> {
        others.iter().map(|path| value(&row.summary.parameters, path)).collect()
    };
    let measured = |row: &&Placed<'_>| {
        row.summary.published.contains_key(measure.name) || figure(row.summary, measure.name).is_some()
    };
    let mut settings = Order::of([]);
    let mut there: BTreeMap<(usize, usize), Vec<&Placed<'_>>> = BTreeMap::new();
    for row in study.rows.iter().filter(measured) {
        there.entry((row.group, settings.insert(setting(row)))).or_default().push(row);
    }
    let settings = settings.into_vec();
    let pairs: BTreeSet<(usize, usize)> = there.keys().copied().collect();
    let picture = |(group, chosen): &(usize, usize)| {
        let mut keys = Vec::new();
        if several {
            keys.push(("figure", measure.title.to_owned()));
        }
        if settings.len() > 1 {
            let parts = others.iter().zip(&settings[*chosen]);
            let parts = parts.map(|(path, value)| format!("{} {value}", study.short_name(path)));
            keys.push(("setting", parts.collect::<Vec<_>>().join(", ")));
        }
        if study.groups.len() > 1 {
            keys.push(("flow", study.groups[*group].clone()));
        }
        let (marks, x) = across.place(study, measure, &there[&(*group, *chosen)]);
        picture(study, measure, *group, &keys, &marks, &x)
    };
    let plots: Vec<Plot> = drawn(&pairs, MAX_SECTION_PLOTS, 4).iter().map(picture).collect();
    let left_out = pairs.len() - plots.len();
    (plots, left_out)
}

/// The x axis: the values of a path, as numbers or names, or else the lines themselves.
struct Across {
    path: Option<String>,
    /// The values with their places.
    places: BTreeMap<String, f64>,
    title: String,
    numbers: bool,
}

impl Across {
    fn new(study: &Study<'_>) -> Self {
        if let Some((path, axis)) = &study.axis {
            let name = study.short_name(path);
            let title = if axis.unit.is_empty() { name.into() } else { format!("{name} [{}]", axis.unit) };
            let places = axis.places.iter().cloned().collect();
            return Self { path: Some(path.clone()), places, title, numbers: true };
        }
        let Some(path) = study.named_axis().or_else(|| study.conditions().next()) else {
            let flows = study.choosing.is_empty() && study.flows.len() > 1;
            let title = if flows { "flow" } else { "protocol" }.into();
            return Self { path: None, places: BTreeMap::new(), title, numbers: false };
        };
        let values = distinct(study.document.summary.iter().map(|row| value(&row.parameters, path)));
        let places = values.into_iter().enumerate().map(|(place, value)| (value, place as f64)).collect();
        Self { path: Some(path.clone()), places, title: study.short_name(path).into(), numbers: false }
    }

    /// The marks of these rows, and their axis.
    fn place(&self, study: &Study<'_>, measure: &Measure, rows: &[&Placed<'_>]) -> (Vec<Mark>, Axis) {
        let mut lines = Order::of([]);
        let mark = |row: &&Placed<'_>| {
            let turn = lines.insert(row.line) as f64;
            let at = |path: &String| self.places.get(&value(&row.summary.parameters, path)).copied();
            Mark::new(row.summary, measure, row.line, self.path.as_ref().and_then(at).unwrap_or(turn))
        };
        let marks = rows.iter().map(mark).collect();
        let mut places: Vec<(f64, &String)> = self.places.iter().map(|(value, at)| (*at, value)).collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let axis = if self.numbers {
            Axis::at(self.title.clone(), places.into_iter().map(|(at, _)| (at, plain(at))).collect())
        } else if self.path.is_some() {
            Axis::names(self.title.clone(), places.into_iter().map(|(_, value)| value.clone()).collect())
        } else {
            let names = lines.into_vec().into_iter().map(|line| study.lines[line].clone());
            Axis::names(self.title.clone(), names.collect())
        };
        (marks, axis)
    }
}

/// A figure in the picture.
struct Mark {
    line: usize,
    x: f64,
    ours: Option<f64>,
    /// Half the width of its interval.
    ci95: Option<f64>,
    published: Option<f64>,
}

impl Mark {
    fn new(summary: &Summary, measure: &Measure, line: usize, x: f64) -> Self {
        let found = figure(summary, measure.name);
        let ci95 = found.and_then(interval);
        let published = summary.published.get(measure.name);
        Self {
            line,
            x,
            ours: found.map(|found| found.mean * measure.scale),
            ci95: ci95.map(|ci95| ci95 * measure.scale),
            published: published.map(|published| published * measure.scale),
        }
    }
}

fn picture(
    study: &Study<'_>,
    measure: &Measure,
    group: usize,
    keys: &[(&'static str, String)],
    marks: &[Mark],
    x: &Axis,
) -> Plot {
    let repeated = marks.iter().any(|mark| mark.ci95.is_some());
    let published = marks.iter().any(|mark| mark.published.is_some());
    let mut caption = format!("{} of {}", capitalised(measure.title), study.groups[group]);
    if !matches!(x.title.as_str(), "protocol" | "flow") {
        caption.push_str(&format!(" over {}", x.title.split(" [").next().unwrap_or_default()));
    }
    if repeated {
        caption.push_str("; bars: 95 % confidence interval of the mean over repeats");
    }
    if published {
        caption.push_str(&match study.document.beside.as_deref() {
            None => "; hollow marks: published figures".to_owned(),
            Some(beside) => format!("; hollow marks: {beside}"),
        });
    }
    let lines = grouped(marks.iter().map(|mark| (mark.line, mark)));
    let limit = lines.iter().map(|(_, marks)| marks.len()).max().unwrap_or(0);
    if limit > MAX_MARKS {
        caption.push_str(&format!("; of a line, every {} mark is drawn", ordinal(limit.div_ceil(MAX_MARKS))));
    }
    caption.push('.');
    let tops = marks.iter().flat_map(|mark| {
        let ours = mark.ours.map(|ours| ours + mark.ci95.unwrap_or(0.0));
        ours.into_iter().chain(mark.published)
    });
    let least = least(measure);
    let bottoms = marks.iter().filter_map(|mark| Some((mark.ours? - mark.ci95.unwrap_or(0.0)).max(least)));
    let values = tops.chain(bottoms.filter(|bottom| *bottom < 0.0));
    let unit = if measure.unit.is_empty() { String::new() } else { format!(" [{}]", measure.unit) };
    let y = Axis::from_zero(format!("{}{unit}", measure.title), values);
    let legend = || {
        let ours =
            lines.iter().map(|(line, _)| Entry { text: study.lines[*line].clone(), key: Key::Marked(*line) });
        let text = || crate::grid::whose(study.document).0.to_owned();
        let published = published.then(|| Entry { text: text(), key: Key::Hollow });
        ours.chain(published).collect::<Vec<_>>()
    };
    let kind = if measure.rank == 0 { "throughput" } else { "figure" };
    let stem = format!("{kind} {} {}", study.groups[group], describe(keys));
    let paint = |size: Size| {
        chart(size, &caption, (x, &y), &legend(), |canvas, frame| {
            for (line, marks) in &lines {
                draw_line(canvas, frame, (*line, least), marks);
            }
        })
    };
    Plot::new(Section::Throughput, &stem, caption.clone(), keys.to_vec(), paint)
}

fn is_saving(measure: &Measure) -> bool {
    measure.name.ends_with("_saving")
}

/// The least that a figure can be, below which no interval is drawn.
fn least(measure: &Measure) -> f64 {
    if is_saving(measure) { f64::NEG_INFINITY } else { 0.0 }
}

fn draw_line(canvas: &mut Canvas<'_>, frame: &Frame<'_>, (style, least): (usize, f64), marks: &[&Mark]) {
    let mut marks = marks.to_vec();
    marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    let means = marks.iter().filter_map(|mark| Some(frame.place(mark.x, mark.ours?)));
    let points = thinned(&means.collect::<Vec<_>>(), MAX_POINTS);
    if points.len() > 1 {
        canvas.path(&points, Ink::Dashed(style), 2.0);
    }
    let marks: Vec<&Mark> = marks.iter().step_by(marks.len().div_ceil(MAX_MARKS).max(1)).copied().collect();
    let bar = |mark: &&Mark| Some((mark.x, mark.ours?, mark.ci95?));
    for (x, mean, ci95) in marks.iter().filter_map(bar) {
        let (low, high) = (frame.place(x, (mean - ci95).max(least)), frame.place(x, mean + ci95));
        canvas.path(&[low, high], Ink::Line(style), 1.4);
        for (x, y) in [low, high] {
            canvas.path(&[(x - 4.0, y), (x + 4.0, y)], Ink::Line(style), 1.4);
        }
    }
    for mark in &marks {
        if let Some(published) = mark.published {
            canvas.mark(frame.place(mark.x, published), style, 6.5, true);
        }
        if let Some(ours) = mark.ours {
            canvas.mark(frame.place(mark.x, ours), style, 4.0, false);
        }
    }
}

fn capitalised(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}
