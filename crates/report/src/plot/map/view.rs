//! The frame of a map: the same for all its moments, so that its pictures can be flipped through.

use super::fleet::Fleet;
use super::projection::Projection;
use crate::number::plain;
use crate::plot::Size;
use crate::plot::canvas::{Anchor, Canvas, Ink, Point, text_width};
use crate::plot::chart::round_step;

/// Minimum extent of a map in metres. Chosen: a ship that stands still alone needs some water around it.
const LEAST_SPAN: f64 = 100.0;
/// Maximum number of ticks of an axis. Bounds what rounding at the ends of huge ranges may do.
const MAX_TICKS: usize = 40;

/// The part of the plane that is drawn, and its place in the picture.
pub(super) struct View {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The plane's place in the upper left corner.
    corner: Point,
    /// Pixels of a metre, on both axes.
    scale: f64,
    projection: Projection,
}

impl View {
    /// The frame for all tracks below a title, as high as the fleet needs and the page allows.
    pub(super) fn of(fleet: &Fleet<'_>, size: Size, font: f64) -> Self {
        let width = size.chart().0;
        let has_titles = fleet.projection == Projection::Metres;
        let top = font * if has_titles { 3.6 } else { 2.2 };
        let tight = Self::fit(fleet, size, top, width - 60.0);
        let widest = tight.norths(font).iter().map(|(_, text)| text_width(text, font)).fold(0.0, f64::max);
        let left = (widest + 8.0).min(width / 3.0);
        Self { left, ..Self::fit(fleet, size, top, width - left - 10.0) }
    }

    fn fit(fleet: &Fleet<'_>, size: Size, top: f64, width: f64) -> Self {
        let (margin, lowest, tallest) = match size {
            Size::Wide => (34.0, 240.0, 560.0),
            Size::Narrow => (24.0, 200.0, 420.0),
        };
        let (low, high) = fleet.corners;
        let spans = ((high.0 - low.0).max(LEAST_SPAN), (high.1 - low.1).max(LEAST_SPAN));
        let across = (width - 2.0 * margin) / spans.0;
        let height = (spans.1 * across + 2.0 * margin).clamp(lowest, tallest);
        let scale = across.min((height - 2.0 * margin) / spans.1);
        let middle = (f64::midpoint(low.0, high.0), f64::midpoint(low.1, high.1));
        let corner = (middle.0 - width / 2.0 / scale, middle.1 + height / 2.0 / scale);
        Self { left: 0.0, top, width, height, corner, scale, projection: fleet.projection }
    }

    /// The place in the picture of one on the plane.
    pub(super) fn place(&self, (east, north): Point) -> Point {
        (self.left + (east - self.corner.0) * self.scale, self.top + (self.corner.1 - north) * self.scale)
    }

    fn span(&self) -> f64 {
        self.width.max(self.height) / self.scale
    }

    fn units(&self) -> (f64, f64) {
        self.projection.units(self.span())
    }

    /// The ticks of the axis to the east, each with its place in the picture.
    fn easts(&self, font: f64) -> Vec<(f64, String)> {
        let unit = self.units().0;
        let (low, high) = (self.corner.0 / unit, (self.corner.0 + self.width / self.scale) / unit);
        let ticks = ticks(low, high, self.width / (font * 7.0));
        let place = |tick: f64| (self.place((tick * unit, 0.0)).0, self.projection.east(tick));
        ticks.into_iter().map(place).collect()
    }

    fn norths(&self, font: f64) -> Vec<(f64, String)> {
        let unit = self.units().1;
        let (low, high) = ((self.corner.1 - self.height / self.scale) / unit, self.corner.1 / unit);
        let ticks = ticks(low, high, self.height / (font * 5.0));
        // Degrees behind a pole are none.
        let is_there = |tick: &f64| self.projection == Projection::Metres || tick.abs() <= 90.0;
        let place = |tick: f64| (self.place((0.0, tick * unit)).1, self.projection.north(tick));
        ticks.into_iter().filter(is_there).map(place).collect()
    }

    /// Height of the numbers, the title and the scale below the frame.
    pub(super) const fn below(font: f64) -> f64 {
        font * 3.4
    }

    /// The grid with its numbers, and the titles of the axes.
    pub(super) fn draw_axes(&self, canvas: &mut Canvas<'_>) {
        let font = canvas.font;
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        for (y, text) in self.norths(font) {
            canvas.path(&[(self.left, y), (right, y)], Ink::Grid, 1.0);
            canvas.text(&text, (self.left - 6.0, y), Anchor::End, Ink::Muted, font);
        }
        let mut end = f64::MIN;
        for (x, text) in self.easts(font) {
            canvas.path(&[(x, self.top), (x, bottom)], Ink::Grid, 1.0);
            let half = text_width(&text, font) / 2.0;
            let middle = x.min(canvas.width - half - 1.0);
            if middle - half > end + 8.0 {
                canvas.text(&text, (middle, bottom + font * 1.1), Anchor::Middle, Ink::Muted, font);
                end = middle + half;
            }
        }
        let edge = [(self.left, self.top), (right, self.top), (right, bottom), (self.left, bottom)];
        canvas.path(&[edge[0], edge[1], edge[2], edge[3], edge[0]], Ink::Muted, 1.0);
        if let Some((east, north)) = self.projection.titles(self.span()) {
            let below = (self.left + self.width / 2.0, bottom + font * 2.6);
            canvas.text(&east, below, Anchor::Middle, Ink::Muted, font);
            canvas.text(&north, (0.0, self.top - font * 0.9), Anchor::Start, Ink::Muted, font);
        }
    }

    /// A bar of a round length, below the frame, where it hides no ship: degrees are no measure of distance.
    pub(super) fn draw_scale(&self, canvas: &mut Canvas<'_>) {
        let font = canvas.font - 1.0;
        let metres = round_step(self.width / self.scale / 8.0);
        let length = metres * self.scale;
        let text = match metres {
            metres if metres >= 1000.0 => format!("{} km", plain(metres / 1000.0)),
            metres => format!("{} m", plain(metres)),
        };
        let (right, y) = (self.left + self.width, self.top + self.height + canvas.font * 2.6);
        let left = right - length;
        canvas.path(&[(left, y - 4.0), (left, y + 3.0)], Ink::Text, 1.4);
        canvas.path(&[(left, y), (right, y)], Ink::Text, 1.4);
        canvas.path(&[(right, y - 4.0), (right, y + 3.0)], Ink::Text, 1.4);
        canvas.text(&text, (left - 6.0, y), Anchor::End, Ink::Text, font);
    }
}

/// Round numbers from `low` to `high`, about `count` of them.
fn ticks(low: f64, high: f64, count: f64) -> Vec<f64> {
    let step = round_step((high - low) / count.max(1.0));
    let (first, last) = ((low / step).ceil(), (high / step).floor());
    let count = ((last - first) as usize).saturating_add(1).min(MAX_TICKS);
    (0..count).map(|turn| (first + turn as f64) * step).filter(|tick| *tick <= high).collect()
}
