//! Goodput over the first swept number, with intervals and published figures.

use hopcast_twin::results::{Mean, Summary};

use super::canvas::{Canvas, Ink};
use super::chart::{Axis, Entry, Frame, Key, chart};
use super::{Plot, Section, Size, describe};
use crate::figure::figure;
use crate::study::{FlowGroup, Study, distinct, short_names, value};

/// One picture for each flow group and setting of the parameters that are on no axis.
pub(crate) fn plots(study: &Study<'_>) -> Vec<Plot> {
    let axis = study.axis();
    let path = axis.as_ref().map(|(path, _)| (*path).clone()).or_else(|| study.conditions().next().cloned());
    let slice = |row: &Summary| -> Vec<(String, String)> {
        let others = study.conditions().filter(|other| Some(*other) != path.as_ref());
        others.map(|other| (other.clone(), value(&row.parameters, other))).collect()
    };
    let slices = distinct(study.document.summary.iter().map(slice));
    let mut plots = Vec::new();
    for group in &study.groups {
        for chosen in &slices {
            let mut keys = Vec::new();
            if slices.len() > 1 {
                let names = short_names(&study.varying);
                let name =
                    |path: &String| study.varying.iter().position(|other| other == path).map(|at| &names[at]);
                let parts =
                    chosen.iter().map(|(path, value)| format!("{} {value}", name(path).unwrap_or(path)));
                keys.push(("setting", parts.collect::<Vec<_>>().join(", ")));
            }
            if study.groups.len() > 1 {
                keys.push(("flow", group.name.clone()));
            }
            let rows: Vec<&Summary> = study
                .document
                .summary
                .iter()
                .filter(|row| group.flows.contains(&row.flow) && slice(row) == *chosen)
                .collect();
            let marks = marks(study, &rows, path.as_deref());
            if marks.is_empty() {
                continue;
            }
            let x = x_axis(study, &rows, path.as_deref());
            plots.push(picture(study, group, &keys, &marks, &x));
        }
    }
    plots
}

/// One figure of the picture.
struct Mark {
    line: String,
    x: f64,
    ours: Option<Mean>,
    published: Option<f64>,
}

fn marks(study: &Study<'_>, rows: &[&Summary], path: Option<&str>) -> Vec<Mark> {
    let mark = |row: &&Summary| {
        let ours = figure(row, "goodput_mbps");
        let published = row.published.get("goodput_mbps").copied();
        (ours.is_some() || published.is_some()).then(|| Mark {
            line: study.line_of(row),
            x: place(study, rows, path, row),
            ours,
            published,
        })
    };
    rows.iter().filter_map(mark).collect()
}

/// Where a row stands: at its number, at its turn among values that are no numbers, or at its line's turn.
fn place(study: &Study<'_>, rows: &[&Summary], path: Option<&str>, row: &Summary) -> f64 {
    let Some(path) = path else {
        let lines = distinct(rows.iter().map(|row| study.line_of(row)));
        let line = study.line_of(row);
        return lines.iter().position(|other| *other == line).unwrap_or(0) as f64;
    };
    let text = value(&row.parameters, path);
    if let Some(place) =
        study.axis().filter(|(axis, _)| *axis == path).and_then(|(_, axis)| axis.place(&text))
    {
        return place;
    }
    let values = distinct(study.document.summary.iter().map(|row| value(&row.parameters, path)));
    values.iter().position(|other| *other == text).unwrap_or(0) as f64
}

fn x_axis(study: &Study<'_>, rows: &[&Summary], path: Option<&str>) -> Axis {
    let Some(path) = path else {
        let lines = distinct(rows.iter().map(|row| study.line_of(row)));
        let title = if study.choosing.is_empty() && study.flows.len() > 1 { "flow" } else { "protocol" };
        return Axis::names(title.into(), lines);
    };
    let names = short_names(&study.varying);
    let name = study.varying.iter().position(|other| other == path).map_or(path, |at| names[at].as_str());
    match study.axis().filter(|(axis, _)| *axis == path) {
        Some((_, axis)) => {
            let title =
                if axis.unit.is_empty() { name.to_owned() } else { format!("{name} [{}]", axis.unit) };
            let mut places: Vec<f64> = axis.places.iter().map(|(_, place)| *place).collect();
            places.sort_by(f64::total_cmp);
            Axis::at(title, places.into_iter().map(|place| (place, crate::number::plain(place))).collect())
        }
        None => {
            let values = distinct(study.document.summary.iter().map(|row| value(&row.parameters, path)));
            Axis::names(name.to_owned(), values)
        }
    }
}

fn picture(
    study: &Study<'_>,
    group: &FlowGroup,
    keys: &[(&'static str, String)],
    marks: &[Mark],
    x: &Axis,
) -> Plot {
    let repeated = marks.iter().any(|mark| mark.ours.is_some_and(|ours| ours.ci95.is_some()));
    let published = marks.iter().any(|mark| mark.published.is_some());
    let mut caption = format!("Goodput of {}", group.name);
    if !matches!(x.title.as_str(), "protocol" | "flow") {
        caption.push_str(&format!(" over {}", x.title.split(" [").next().unwrap_or_default()));
    }
    if repeated {
        caption.push_str("; bars: 95 % confidence interval of the mean over repeats");
    }
    if published {
        caption.push_str("; hollow marks: published figures");
    }
    caption.push('.');
    let tops = marks.iter().flat_map(|mark| {
        let ours = mark.ours.map(|ours| ours.mean + ours.ci95.unwrap_or(0.0));
        ours.into_iter().chain(mark.published)
    });
    let y = Axis::from_zero("goodput [Mbit/s]".into(), tops);
    let lines = distinct(marks.iter().map(|mark| mark.line.clone()));
    let legend = || {
        let ours = lines.iter().map(|line| Entry { text: line.clone(), key: Key::Marked(study.style(line)) });
        let published = published.then(|| Entry { text: "published".into(), key: Key::Hollow });
        ours.chain(published).collect::<Vec<_>>()
    };
    let stem = format!("throughput {} {}", group.name, describe(keys));
    let paint = |size: Size| {
        chart(size, &caption, (x, &y), &legend(), |canvas, frame| {
            for line in &lines {
                draw_line(canvas, frame, study.style(line), marks.iter().filter(|mark| mark.line == *line));
            }
        })
    };
    Plot::new(Section::Throughput, &stem, caption.clone(), keys.to_vec(), paint)
}

fn draw_line<'m>(
    canvas: &mut Canvas<'_>,
    frame: &Frame<'_>,
    style: usize,
    marks: impl Iterator<Item = &'m Mark>,
) {
    let mut marks: Vec<&Mark> = marks.collect();
    marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    let ours = || marks.iter().filter_map(|mark| mark.ours.map(|ours| (mark.x, ours)));
    let points: Vec<_> = ours().map(|(x, ours)| frame.place(x, ours.mean)).collect();
    if points.len() > 1 {
        canvas.path(&points, Ink::Dashed(style), 2.0);
    }
    for (x, ours) in ours() {
        if let Some(ci95) = ours.ci95 {
            let (low, high) = (frame.place(x, ours.mean - ci95), frame.place(x, ours.mean + ci95));
            canvas.path(&[low, high], Ink::Line(style), 1.4);
            for (x, y) in [low, high] {
                canvas.path(&[(x - 4.0, y), (x + 4.0, y)], Ink::Line(style), 1.4);
            }
        }
    }
    for mark in &marks {
        if let Some(published) = mark.published {
            canvas.mark(frame.place(mark.x, published), style, 6.5, true);
        }
        if let Some(ours) = mark.ours {
            canvas.mark(frame.place(mark.x, ours.mean), style, 4.0, false);
        }
    }
}
