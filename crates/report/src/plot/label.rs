//! The text beside an arrow, and its area.

use super::canvas::{Anchor, Point, text_width};
use super::load::Load;
use crate::number;

/// One direction of a link as drawn.
pub(crate) struct Arrow<'l> {
    pub(crate) load: &'l Load,
    pub(crate) middle: Point,
    /// Direction away from the other direction.
    pub(crate) side: Point,
    pub(crate) gap: f64,
}

impl Arrow<'_> {
    /// The area of a label, and the place of its first line.
    pub(crate) fn label(&self, lines: &[String], font: f64) -> (Area, Anchor, Point) {
        let width = lines.iter().map(|line| text_width(line, font)).fold(0.0, f64::max);
        let height = lines.len() as f64 * font * 1.2;
        let flat = self.side.0.abs() < 0.5;
        let (anchor, x, left) = if flat {
            (Anchor::Middle, self.middle.0, self.middle.0 - width / 2.0)
        } else if self.side.0 > 0.0 {
            let x = self.middle.0 + self.gap + 5.0;
            (Anchor::Start, x, x)
        } else {
            let x = self.middle.0 - self.gap - 5.0;
            (Anchor::End, x, x - width)
        };
        let centre =
            self.middle.1 + if flat { self.side.1.signum() * (self.gap + 4.0 + height / 2.0) } else { 0.0 };
        let area =
            Area { left, right: left + width, top: centre - height / 2.0, bottom: centre + height / 2.0 };
        (area, anchor, (x, centre - height / 2.0 + font * 0.6))
    }
}

/// `12.1 MB`, and `lost 5.0 %` or the time it was down, if it was or did.
pub(crate) fn words_by_bytes(load: &Load) -> (String, String) {
    let lost = if load.lost == Some(0.0) && load.down_s == 0.0 { String::new() } else { words(load).1 };
    (format!("{} MB", number::number(load.bytes / 1e6)), lost)
}

/// `97 %` and `lost 5.0 %`, or the time it was down; the first is empty if the link has no rate or sent nothing.
pub(crate) fn words(load: &Load) -> (String, String) {
    let busy = load.utilisation.map(|share| share * 100.0).map(|busy| match busy {
        busy if busy >= 9.95 => format!("{busy:.0} %"),
        busy if busy >= 0.05 => format!("{busy:.1} %"),
        0.0 => "0 %".into(),
        _ => "<0.1 %".into(),
    });
    let Some(lost) = load.lost else { return (String::new(), "down".into()) };
    let lost = match lost * 100.0 {
        0.0 => "0".into(),
        lost if (1.0..99.0).contains(&lost) => format!("{lost:.1}"),
        lost => number::percent(lost),
    };
    let down =
        if load.down_s > 0.0 { format!(", down {} s", number::number(load.down_s)) } else { String::new() };
    (busy.unwrap_or_default(), format!("lost {lost} %{down}"))
}

pub(crate) fn middle(points: &[Point]) -> Point {
    let count = points.len().max(1) as f64;
    let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    (sum.0 / count, sum.1 / count)
}

pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Area {
    pub(crate) fn around((x, y): Point, width: f64, height: f64) -> Self {
        Self {
            left: x - width / 2.0,
            right: x + width / 2.0,
            top: y - height / 2.0,
            bottom: y + height / 2.0,
        }
    }

    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_was_down_does_not_say_that_it_lost_nothing() {
        let load = |lost, down_s| Load { utilisation: Some(0.0), lost, down_s, ..Load::default() };
        assert_eq!(words(&load(None, 60.0)), (String::new(), "down".to_owned()));
        assert_eq!(words(&load(Some(0.0), 10.0)).1, "lost 0 %, down 10.0 s");
        assert_eq!(words(&load(Some(0.051), 0.0)).1, "lost 5.1 %");
    }
}
