//! Ships, arrows and crosses.

use crate::plot::Size;
use crate::plot::canvas::{Canvas, Ink, Point};

/// A hull, of a ship that heads north: to the right and ahead, in radii.
const HULL: [Point; 5] = [(0.0, 1.6), (0.65, 0.5), (0.65, -1.2), (-0.65, -1.2), (-0.65, 0.5)];
/// Number of antennas of a ship of ordinary size: a medium one of the studies.
const ORDINARY: f64 = 12.0;

/// Radius of a ship with so many antennas among so many ships: its area goes with the antennas.
pub(super) fn radius(antennas: u8, ships: usize, size: Size) -> f64 {
    let ordinary = match ships {
        0..=20 => 6.5,
        21..=60 => 5.0,
        61..=150 => 3.8,
        _ => 3.0,
    };
    let page = if size == Size::Wide { 1.0 } else { 0.75 };
    ordinary * page * (f64::from(antennas) / ORDINARY).sqrt().clamp(0.6, 1.6)
}

/// A ship on its heading; hollow if its track does not have this time.
pub(super) fn ship(canvas: &mut Canvas<'_>, at: Point, heading: f64, radius: f64, on_track: bool) {
    let (sine, cosine) = heading.to_radians().sin_cos();
    let turned = |(right, ahead): Point| {
        (at.0 + (right * cosine + ahead * sine) * radius, at.1 + (right * sine - ahead * cosine) * radius)
    };
    let hull = HULL.map(turned);
    let edge: Vec<Point> = hull.iter().chain(&hull[..2]).copied().collect();
    if on_track {
        canvas.path(&edge, Ink::Surface, 2.0);
        canvas.area(&hull, Ink::Text, 1.0);
    } else {
        canvas.area(&hull, Ink::Surface, 1.0);
        canvas.path(&edge, Ink::Muted, 1.0);
    }
}

/// A line with a head at its end; a short one has no head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    pub(super) from: Point,
    pub(super) to: Point,
    /// The line of [`theme::look`](crate::plot::theme::look).
    pub(super) look: usize,
    pub(super) width: f64,
}

impl Arrow {
    /// All surfaces come first, then the lines, and the heads last: where arrows meet, no head is hidden.
    pub(super) fn draw_all(arrows: &[Self], canvas: &mut Canvas<'_>) {
        for arrow in arrows {
            canvas.path(&[arrow.from, arrow.to], Ink::Surface, arrow.width + 2.0);
        }
        for arrow in arrows {
            match arrow.neck() {
                Some((neck, ..)) => canvas.path(&[arrow.from, neck], Ink::Dashed(arrow.look), arrow.width),
                None => canvas.path(&[arrow.from, arrow.to], Ink::Line(arrow.look), arrow.width),
            }
        }
        for arrow in arrows {
            if let Some((_, left, right)) = arrow.neck() {
                canvas.area(&[arrow.to, left, right], Ink::Line(arrow.look), 1.0);
            }
        }
    }

    /// The end of the line within the head, and the two corners of the head.
    fn neck(&self) -> Option<(Point, Point, Point)> {
        let (dx, dy) = (self.to.0 - self.from.0, self.to.1 - self.from.1);
        let length = dx.hypot(dy);
        let head = 4.0 + 1.9 * self.width;
        if length < head {
            return None;
        }
        let (ux, uy) = (dx / length, dy / length);
        let along =
            |at: f64, side: f64| (self.from.0 + ux * at - uy * side, self.from.1 + uy * at + ux * side);
        let (neck, half) = (length - head, head * 0.5);
        Some((along(neck + 1.0, 0.0), along(neck, half), along(neck, -half)))
    }
}

/// A cross on a surface of its own.
pub(super) fn cross(canvas: &mut Canvas<'_>, (x, y): Point, ink: Ink, arm: f64) {
    let strokes = [[(x - arm, y - arm), (x + arm, y + arm)], [(x - arm, y + arm), (x + arm, y - arm)]];
    for (ink, width) in [(Ink::Surface, 5.0), (ink, 2.6)] {
        for stroke in &strokes {
            canvas.path(stroke, ink, width);
        }
    }
}
