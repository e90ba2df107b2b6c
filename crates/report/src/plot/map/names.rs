//! Places for the names of ships, where they cover neither each other nor a ship.

use super::fleet::distance;
use crate::plot::canvas::{Anchor, Point, text_width};
use crate::plot::label::Area;

/// A ship in the picture.
pub(super) struct Named {
    pub(super) text: String,
    pub(super) at: Point,
    pub(super) radius: f64,
}

/// Places that a name may have: the side of the ship, to the right and down, from the best on.
const SIDES: [(f64, f64); 8] =
    [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.8, 0.9), (0.8, -0.9), (-0.8, 0.9), (-0.8, -0.9)];

/// The names that have room within the frame, each with its place; where there is a choice, beside the lines of flows.
pub(super) fn place(
    ships: &[Named],
    marks: &[(Point, f64)],
    lines: &[(Point, Point)],
    frame: &Area,
    font: f64,
) -> Vec<(String, Point, Anchor)> {
    let mut taken: Vec<Area> =
        marks.iter().map(|(at, radius)| Area::around(*at, radius * 2.0, radius * 2.0)).collect();
    let mut placed = Vec::new();
    for ship in ships {
        let width = text_width(&ship.text, font);
        let beside = |(right, down): (f64, f64)| {
            let gap = ship.radius * 1.3 + 3.0;
            let (anchor, left) = match right {
                right if right > 0.0 => (Anchor::Start, gap * right),
                right if right < 0.0 => (Anchor::End, gap * right - width),
                _ => (Anchor::Middle, -width / 2.0),
            };
            let y = ship.at.1 + down * (gap + font * 0.45);
            let area = Area {
                left: ship.at.0 + left,
                right: ship.at.0 + left + width,
                top: y - font * 0.55,
                bottom: y + font * 0.55,
            };
            (area, anchor, (ship.at.0 + right * gap, y))
        };
        let is_free = |area: &Area| {
            let within = area.left >= frame.left
                && area.right <= frame.right
                && area.top >= frame.top
                && area.bottom <= frame.bottom;
            within && !taken.iter().any(|other| other.meets(area))
        };
        let is_clear = |area: &Area| {
            let middle = (f64::midpoint(area.left, area.right), f64::midpoint(area.top, area.bottom));
            let near = |(from, to): &(Point, Point)| {
                let thirds = [-0.4, 0.0, 0.4].map(|share| (middle.0 + share * width, middle.1));
                thirds.iter().any(|place| distance(*place, *from, *to) < font * 0.7)
            };
            !lines.iter().any(near)
        };
        let free = || SIDES.iter().map(|side| beside(*side)).filter(|(area, ..)| is_free(area));
        let found = free().find(|(area, ..)| is_clear(area)).or_else(|| free().next());
        if let Some((area, anchor, at)) = found {
            taken.push(area);
            placed.push((ship.text.clone(), at, anchor));
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ships_close_together_do_not_cover_one_another() {
        let frame = Area { left: 0.0, right: 400.0, top: 0.0, bottom: 400.0 };
        let ship = |at| Named { text: "ship".into(), at, radius: 5.0 };
        let ships: Vec<Named> = (0..30).map(|turn| ship((200.0 + f64::from(turn), 200.0))).collect();
        let marks: Vec<(Point, f64)> = ships.iter().map(|ship| (ship.at, ship.radius)).collect();
        let placed = place(&ships, &marks, &[], &frame, 12.0);
        assert!(!placed.is_empty() && placed.len() < 30, "{}", placed.len());
        // At the edge a name is on the inside.
        let edge = place(&[ship((395.0, 200.0))], &[], &[], &frame, 12.0);
        assert!(matches!(edge[..], [(_, (x, _), Anchor::End)] if x < 395.0));
    }
}
