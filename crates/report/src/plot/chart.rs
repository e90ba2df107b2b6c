//! A chart: axes with titles, units and ticks, a legend outside of the data, and lines.

use super::Size;
use super::canvas::{Anchor, Canvas, Ink, Point, clipped, draw, text_width};
use crate::number::plain;

/// One axis.
pub(crate) struct Axis {
    pub(crate) title: String,
    low: f64,
    high: f64,
    log: bool,
    /// Whether the ticks are names, which may be shortened, unlike numbers.
    names: bool,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis from 0, or from a negative minimum, to a round number above the maximum.
    pub(crate) fn from_zero(title: String, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values);
        let (low, high) = (low.min(0.0), high.max(0.0));
        let high = if high > low { high } else { low + 1.0 };
        let step = round_step((high - low) / 5.0);
        let (first, last) = ((low / step).floor() as i64, (high / step - 1e-9).ceil() as i64);
        let ticks = (first..=last).map(|n| (n as f64 * step, plain(n as f64 * step))).collect();
        Self { title, low: first as f64 * step, high: last as f64 * step, log: false, names: false, ticks }
    }

    /// An axis with a tick at each of these values, and a little room beside them; logarithmic if they span more than
    /// an even axis can tell apart.
    pub(crate) fn at(title: String, ticks: Vec<(f64, String)>) -> Self {
        let (low, high) = range(ticks.iter().map(|(at, _)| *at));
        if low > 0.0 && high >= LOG_SPAN * low {
            let room = (high / low).powf(0.04);
            return Self { title, low: low / room, high: high * room, log: true, names: false, ticks };
        }
        let room = if high > low { (high - low) * 0.04 } else { 0.5 };
        Self { title, low: low - room, high: high + room, log: false, names: false, ticks }
    }

    /// An axis of names at equal distances.
    pub(crate) fn names(title: String, names: Vec<String>) -> Self {
        let high = names.len().max(1) as f64 - 0.5;
        let ticks = names.into_iter().enumerate().map(|(place, name)| (place as f64, name)).collect();
        Self { title, low: -0.5, high, log: false, names: true, ticks }
    }

    /// An axis from one value to another with ticks in even steps.
    pub(crate) fn between(title: String, low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = round_step((high - low) / 6.0);
        let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
        let ticks = (first..=last).map(|n| (n as f64 * step, plain(n as f64 * step))).collect();
        Self { title, low, high, log: false, names: false, ticks }
    }

    /// A logarithmic axis, with ticks at 1, 2 and 5 times each power of ten, and labels where there is room for them.
    pub(crate) fn log(title: String, low: f64, high: f64) -> Self {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let within = |factors: &[f64]| -> Vec<(f64, String)> {
            let all =
                (first..=last).flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
            all.filter(|at| *at >= low * 0.999 && *at <= high * 1.001).map(|at| (at, plain(at))).collect()
        };
        // Powers of ten come first, so that their labels stay where labels would overlap.
        let mut ticks = within(&[1.0]);
        ticks.extend(within(&[2.0, 5.0]));
        Self { title, low, high, log: true, names: false, ticks }
    }

    fn share(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.low).ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }
}

/// Ratio of the largest of an axis's values to the smallest from which on they stand by their logarithms. Chosen: on an
/// even axis the smallest of 1, 10 and 100 are a hair apart; 20 and 300 still are not.
const LOG_SPAN: f64 = 100.0;

/// An entry of the legend.
pub(crate) struct Entry {
    pub(crate) text: String,
    pub(crate) key: Key,
}

/// The sign before a legend's text.
#[derive(Clone, Copy)]
pub(crate) enum Key {
    /// A line and its mark.
    Marked(usize),
    /// A hollow mark.
    Hollow,
}

/// The area of the data in the picture.
pub(crate) struct Frame<'a> {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    x: &'a Axis,
    y: &'a Axis,
}

impl Frame<'_> {
    pub(crate) fn place(&self, x: f64, y: f64) -> Point {
        (self.left + self.x.share(x) * self.width, self.top + (1.0 - self.y.share(y)) * self.height)
    }
}

/// Draws axes and legend, and then the data into their frame.
pub(crate) fn chart(
    size: Size,
    name: &str,
    (x, y): (&Axis, &Axis),
    legend: &[Entry],
    data: impl FnOnce(&mut Canvas<'_>, &Frame<'_>),
) -> String {
    let (width, height, font) = size.chart();
    let legend = place_legend(legend, width, font);
    let legend_height = legend.last().map_or(0.0, |(_, (_, y))| y + font * 1.1);
    draw(width, height + legend_height, font, name, |canvas| {
        for (entry, at) in &legend {
            draw_entry(canvas, entry, *at);
        }
        let widest = y.ticks.iter().map(|(_, text)| text_width(text, font)).fold(0.0, f64::max);
        let left = widest + 12.0;
        let top = legend_height + font * 2.2;
        let frame =
            Frame { left, top, width: width - left - 14.0, height: canvas.height - top - font * 3.6, x, y };
        draw_axes(canvas, &frame, legend_height + font * 0.8);
        data(canvas, &frame);
    })
}

fn draw_axes(canvas: &mut Canvas<'_>, frame: &Frame<'_>, title_y: f64) {
    let font = canvas.font;
    let (right, bottom) = (frame.left + frame.width, frame.top + frame.height);
    canvas.text(&frame.y.title, (0.0, title_y), Anchor::Start, Ink::Muted, font);
    for (at, text) in &frame.y.ticks {
        let y = frame.place(frame.x.low, *at).1;
        canvas.path(&[(frame.left, y), (right, y)], Ink::Grid, 1.0);
        canvas.text(text, (frame.left - 8.0, y), Anchor::End, Ink::Muted, font);
    }
    canvas.path(&[(frame.left, bottom), (right, bottom)], Ink::Muted, 1.0);
    let slot = frame.width / frame.x.ticks.len().max(1) as f64;
    let mut labels: Vec<(f64, f64)> = Vec::new();
    let mut last_tick = None;
    for (at, text) in &frame.x.ticks {
        let x = frame.place(*at, frame.y.low).0;
        // Ticks less than 2 pixels apart are drawn once.
        if last_tick.is_none_or(|last: f64| (x - last).abs() >= 2.0) {
            canvas.path(&[(x, bottom), (x, bottom + 5.0)], Ink::Muted, 1.0);
            last_tick = Some(x);
        }
        let room = if frame.x.names { (slot * 0.95).max(3.0 * font) } else { f64::MAX };
        let text = clipped(text, room, font);
        let half = text_width(&text, font) / 2.0;
        let middle = x.min(canvas.width - half - 1.0);
        if labels.iter().all(|(left, right)| middle + half + 6.0 < *left || *right + 6.0 < middle - half) {
            canvas.text(&text, (middle, bottom + font * 1.3), Anchor::Middle, Ink::Muted, font);
            labels.push((middle - half, middle + half));
        }
    }
    let below = (frame.left + frame.width / 2.0, bottom + font * 2.9);
    canvas.text(&frame.x.title, below, Anchor::Middle, Ink::Muted, font);
}

/// The entries in rows, each with the place of its key's left end.
fn place_legend(entries: &[Entry], width: f64, font: f64) -> Vec<(&Entry, Point)> {
    let (mut x, mut y) = (0.0, font * 0.9);
    let mut placed = Vec::new();
    for entry in entries {
        let needed = KEY + 6.0 + text_width(&entry.text, font) + 22.0;
        if x > 0.0 && x + needed > width {
            (x, y) = (0.0, y + font * 1.7);
        }
        placed.push((entry, (x, y)));
        x += needed;
    }
    placed
}

/// Length of a line in the legend, in pixels. Chosen: each dash pattern fits once; longer takes room from the text.
const KEY: f64 = 30.0;

fn draw_entry(canvas: &mut Canvas<'_>, entry: &Entry, (x, y): Point) {
    let (font, middle) = (canvas.font, (x + KEY / 2.0, y));
    match entry.key {
        Key::Marked(line) => {
            canvas.path(&[(x, y), (x + KEY, y)], Ink::Dashed(line), 2.0);
            canvas.mark(middle, line, 4.0, false);
        }
        Key::Hollow => canvas.circle(middle, 6.0, Ink::Muted, Some(1.6)),
    }
    let room = canvas.width - x - KEY - 6.0;
    canvas.text(&clipped(&entry.text, room, font), (x + KEY + 6.0, y), Anchor::Start, Ink::Text, font);
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// The smallest 1, 2 or 5 times a power of ten that is not below this.
pub(crate) fn round_step(min: f64) -> f64 {
    let power = 10f64.powf(min.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= min * 0.999).unwrap_or(10.0);
    step * power
}

/// Number of marks of a line that has too many points for a mark each. Chosen: more cover the line, with fewer it is
/// hard to identify.
const MARKS_OF_A_LINE: usize = 6;

/// Places of the marks of the line with this `turn` among `lines` lines: evenly along its length in the picture. The
/// marks of the lines are shifted against each other, so that those of coinciding lines do not hide one another.
pub(crate) fn mark_places(points: &[Point], turn: usize, lines: usize) -> Vec<Point> {
    let length = |pair: &[Point]| (pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1);
    let whole: f64 = points.windows(2).map(length).sum();
    if whole <= 0.0 {
        return points.first().copied().into_iter().collect();
    }
    let shift = (turn as f64 + 0.5) / lines.max(1) as f64;
    let mut wanted =
        (0..MARKS_OF_A_LINE).map(|mark| (mark as f64 + shift) * whole / MARKS_OF_A_LINE as f64).peekable();
    let mut places = Vec::with_capacity(MARKS_OF_A_LINE);
    let mut before = 0.0;
    for pair in points.windows(2) {
        let own = length(pair);
        while let Some(at) = wanted.next_if(|at| *at <= before + own) {
            let share = if own > 0.0 { (at - before) / own } else { 0.0 };
            let between = |a: f64, b: f64| a + (b - a) * share;
            places.push((between(pair[0].0, pair[1].0), between(pair[0].1, pair[1].1)));
        }
        before += own;
    }
    places
}

/// Draws events as vertical lines, with their names where there is room between them.
pub(crate) fn draw_events(canvas: &mut Canvas<'_>, frame: &Frame<'_>, events: &[(f64, String)]) {
    let font = canvas.font - 1.5;
    let (top, bottom, right) = (frame.top, frame.top + frame.height, frame.left + frame.width);
    let place = |at: f64| frame.place(at, frame.y.low).0;
    let mut free = f64::MIN;
    for (at, name) in events {
        let x = place(*at);
        canvas.path(&[(x, top), (x, bottom)], Ink::Muted, 0.8);
        let width = text_width(name, font);
        // Beside its line; on the left if there is no room on the right.
        let left = if x + 4.0 + width <= right { x + 4.0 } else { x - 4.0 - width };
        let is_crossed = events.iter().any(|(other, _)| (left..left + width).contains(&place(*other)));
        if left > free && left >= frame.left && !is_crossed {
            canvas.text(name, (left, top + font * 0.5), Anchor::Start, Ink::Muted, font);
            free = left + width + 4.0;
        }
    }
}

/// Leaves out points that cannot be seen, and thins the rest to about `limit`.
pub(crate) fn thinned(points: &[Point], limit: usize) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let straight = kept.len() > 1
            && index + 1 < points.len()
            && kept
                .last()
                .is_some_and(|last| (last.0 - point.0).abs() < 0.4 && (last.1 - point.1).abs() < 0.4);
        if !straight {
            kept.push(*point);
        }
    }
    let stride = kept.len().div_ceil(limit.max(2)).max(1);
    let last = kept.len().saturating_sub(1);
    kept.iter()
        .enumerate()
        .filter(|(at, _)| at % stride == 0 || *at == last)
        .map(|(_, point)| *point)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_at_most_about_as_many_points_as_asked_for_and_keeps_its_ends() {
        let points: Vec<Point> = (0..10_000).map(|n| (f64::from(n), f64::from(n % 7))).collect();
        let thin = thinned(&points, 500);
        assert!(thin.len() <= 501);
        assert_eq!((thin.first(), thin.last()), (points.first(), points.last()));
    }

    #[test]
    fn marks_are_even_along_a_line_and_those_of_coinciding_lines_are_apart() {
        let line: Vec<Point> = (0..=60).map(|x| (f64::from(x), 0.0)).collect();
        let places = |turn| mark_places(&line, turn, 2).into_iter().map(|(x, _)| x).collect::<Vec<_>>();
        assert_eq!(places(0), [2.5, 12.5, 22.5, 32.5, 42.5, 52.5]);
        assert_eq!(places(1), [7.5, 17.5, 27.5, 37.5, 47.5, 57.5]);
        assert_eq!(mark_places(&[(3.0, 4.0)], 0, 1), [(3.0, 4.0)]);
        assert_eq!(mark_places(&[], 0, 1), []);
    }

    #[test]
    fn values_that_span_two_orders_of_magnitude_stand_by_their_logarithms() {
        let at =
            |values: &[f64]| Axis::at("receivers".into(), values.iter().map(|&at| (at, plain(at))).collect());
        let (log, even) = (at(&[1.0, 10.0, 100.0]), at(&[0.0, 10.0, 100.0]));
        assert!(log.log && (log.share(10.0) - 0.5).abs() < 1e-9);
        assert!(!even.log && (even.share(10.0) - 14.0 / 108.0).abs() < 1e-9);
        assert!(!at(&[20.0, 300.0]).log);
    }

    #[test]
    fn an_axis_ends_at_a_round_number_above_its_greatest_value() {
        let axis = Axis::from_zero("goodput".into(), [0.0, 291.96].into_iter());
        assert_eq!((axis.low, axis.high), (0.0, 300.0));
        assert_eq!(axis.ticks.last().map(|(_, text)| text.as_str()), Some("300"));
    }
}
