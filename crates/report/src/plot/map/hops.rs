//! The ways of flows over time: a row for each flow and receiver, with the number of hops at each moment.

use std::collections::BTreeMap;

use hopcast_twin::results::{Run, ShipMap, ShipMoment};

use super::fleet::evenly;
use super::flows::{Flows, Route, routes};
use super::{is_moment, marks, seconds};
use crate::plot::Size;
use crate::plot::canvas::{Anchor, Canvas, Ink, clipped, draw, text_width};

/// Maximum number of rows.
const MAX_ROWS: usize = 24;
/// Maximum number of flows that are looked at. Bounds the work where most have no row.
const MAX_FLOWS: usize = 256;
/// Maximum number of moments that have a column. Chosen: more are less than two pixels wide.
const MAX_COLUMNS: usize = 300;
/// Maximum width of a column in pixels. Chosen: a bar is higher than wide.
const WIDEST: f64 = 44.0;

/// The way of a flow to a receiver at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    /// The flow has no way to anybody: it is not sent at that time.
    Nothing,
    NoRoute,
    Hops(usize),
}

/// A flow at a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    flow: usize,
    title: String,
    cells: Vec<Cell>,
}

/// The picture of a map's ways over time.
pub(super) struct Strip {
    rows: Vec<Row>,
    /// The times of the columns.
    times: Vec<f64>,
    pub(super) caption: String,
}

impl Strip {
    /// `None` if no flow has a way at any moment.
    pub(super) fn of(map: &ShipMap, run: &Run, flows: &Flows<'_>) -> Option<Self> {
        let moments: Vec<&ShipMoment> = map.moments.iter().filter(|moment| is_moment(moment)).collect();
        let chosen: Vec<&ShipMoment> =
            evenly(moments.len(), MAX_COLUMNS).filter_map(|place| moments.get(place)).copied().collect();
        let routes: Vec<Vec<Route<'_>>> =
            chosen.iter().map(|moment| routes(moment, map.ships.len())).collect();
        let mut rows: Vec<Row> = Vec::new();
        for (flow, name) in flows.names.iter().take(MAX_FLOWS).enumerate() {
            let of_moment = routes.iter().map(|routes| routes.iter().filter(|route| route.flow == *name));
            let columns: Vec<Vec<&Route<'_>>> = of_moment.map(Iterator::collect).collect();
            rows.extend(rows_of(flow, name, &columns, map, run));
            if rows.len() > MAX_ROWS {
                break;
            }
        }
        if rows.is_empty() || rows.iter().all(|row| row.cells.iter().all(|cell| *cell == Cell::Nothing)) {
            return None;
        }
        let link = clipped(&map.link, 400.0, 13.0);
        let mut caption = format!("Hops of the flows’ ways through {link}, over time; a cross: no route.");
        if rows.len() > MAX_ROWS {
            rows.truncate(MAX_ROWS);
            caption.push_str(&format!(" The first {MAX_ROWS} flows and receivers are drawn."));
        }
        if chosen.len() < moments.len() {
            caption.push_str(&format!(" {} of {} moments are drawn.", chosen.len(), moments.len()));
        }
        caption.push_str(&reached(&rows));
        Some(Self { rows, times: chosen.iter().map(|moment| moment.at_s).collect(), caption })
    }

    pub(super) fn paint(&self, size: Size) -> String {
        let (width, _, font) = size.chart();
        let font = font - 1.0;
        let is_wide = size == Size::Wide;
        // A narrow page has the titles above their rows.
        let (left, above, bar) =
            if is_wide { (self.titles(font), 4.0, 26.0) } else { (0.0, font * 1.7, 22.0) };
        let row = above + bar + font * 1.3;
        let top = font * 1.9;
        let height = top + self.rows.len() as f64 * row + font * 3.4;
        let column = ((width - left - 8.0) / self.times.len().max(1) as f64).min(WIDEST);
        let most = self.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.hops()).max().unwrap_or(0);
        draw(width, height, font, &self.caption, |canvas| {
            canvas.text("hops", (0.0, font * 0.8), Anchor::Start, Ink::Text, font);
            for (place, own) in self.rows.iter().enumerate() {
                let floor = top + (place + 1) as f64 * row - 6.0;
                let (at, room) = if is_wide {
                    ((0.0, floor - bar / 2.0), left - 10.0)
                } else {
                    ((0.0, floor - bar - font * 1.9), width)
                };
                canvas.text(&clipped(&own.title, room, font), at, Anchor::Start, Ink::Text, font);
                let end = left + column * own.cells.len() as f64;
                canvas.path(&[(left, floor), (end, floor)], Ink::Grid, 1.0);
                for (turn, cell) in own.cells.iter().enumerate() {
                    let x = left + column * turn as f64;
                    let share = cell.hops() as f64 / most.max(1) as f64;
                    draw_cell(canvas, (x, floor), (column, bar * share), *cell, own.flow);
                }
            }
            self.draw_times(canvas, left, column, height - font * 2.6);
        })
    }

    /// Width of the column of titles.
    fn titles(&self, font: f64) -> f64 {
        let widest = self.rows.iter().map(|row| text_width(&row.title, font)).fold(0.0, f64::max);
        (widest + 12.0).min(220.0)
    }

    /// The times below their columns, as many as have room.
    fn draw_times(&self, canvas: &mut Canvas<'_>, left: f64, column: f64, y: f64) {
        let font = canvas.font;
        let mut end = f64::MIN;
        for (turn, at) in self.times.iter().enumerate() {
            let text = seconds(*at);
            let half = text_width(&text, font) / 2.0;
            let x = left + column * (turn as f64 + 0.5);
            let middle = x.max(half).min(canvas.width - half - 1.0);
            if middle - half > end + 8.0 {
                canvas.text(&text, (middle, y + font * 0.9), Anchor::Middle, Ink::Muted, font);
                end = middle + half;
            }
        }
    }
}

impl Cell {
    const fn hops(self) -> usize {
        match self {
            Self::Hops(hops) => hops,
            Self::Nothing | Self::NoRoute => 0,
        }
    }
}

fn draw_cell(
    canvas: &mut Canvas<'_>,
    (x, floor): (f64, f64),
    (column, height): (f64, f64),
    cell: Cell,
    flow: usize,
) {
    let (gap, font) = ((column * 0.12).min(2.0), canvas.font - 1.0);
    let middle = x + column / 2.0;
    match cell {
        Cell::Nothing => {}
        Cell::NoRoute => {
            marks::cross(canvas, (middle, floor - 7.0), Ink::Text, (column / 2.0 - 1.0).clamp(1.0, 3.5));
        }
        Cell::Hops(hops) => {
            let (left, right, top) = (x + gap, x + column - gap, floor - height.max(1.0));
            let bar = [(left, floor), (left, top), (right, top), (right, floor)];
            canvas.area(&bar, Ink::Line(Flows::look(flow)), 0.75);
            let text = hops.to_string();
            if text_width(&text, font) <= column {
                canvas.text(&text, (middle, top - font * 0.6), Anchor::Middle, Ink::Text, font);
            }
        }
    }
}

/// The rows of a flow: one for each receiver that is reached at any moment, in the order of the first time, and one for
/// each that never is.
fn rows_of(flow: usize, name: &str, columns: &[Vec<&Route<'_>>], map: &ShipMap, run: &Run) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    let node = |ship: usize| map.ships.get(ship).map_or("?", |ship| ship.node.as_str());
    // The state of a receiver without a route, at each moment.
    let without = |routes: &Vec<&Route<'_>>| if routes.is_empty() { Cell::Nothing } else { Cell::NoRoute };
    let empty: Vec<Cell> = columns.iter().map(without).collect();
    let mut receivers = Vec::new();
    for (column, routes) in columns.iter().enumerate() {
        for route in routes.iter().filter(|route| route.arrives) {
            let Some(&last) = route.ships.last() else { continue };
            let place = *places.entry(last).or_insert(rows.len());
            if place == rows.len() {
                receivers.push(node(last));
                let title = format!("{name} → {}", node(last));
                rows.push(Row { flow, title, cells: empty.clone() });
            }
            rows[place].cells[column] = Cell::Hops(route.ships.len().saturating_sub(1));
        }
    }
    // A document names those that are never reached at the flow only, and there they may be hosts behind ships.
    let of_run = run.flows.iter().filter(|own| own.name == name).flat_map(|own| &own.receivers);
    let mut never = of_run
        .map(|receiver| receiver.node.as_str())
        .filter(|node| !receivers.contains(node) && map.ships.iter().any(|ship| ship.node == *node));
    let most = columns.iter().map(Vec::len).max().unwrap_or(0).min(rows.len() + MAX_ROWS);
    for _ in rows.len()..most {
        let title =
            never.next().map_or_else(|| format!("{name} → not reached"), |node| format!("{name} → {node}"));
        rows.push(Row { flow, title, cells: empty.clone() });
    }
    rows
}

/// How often each receiver is reached, for those who do not see the bars.
fn reached(rows: &[Row]) -> String {
    let one = |row: &Row| {
        let sent = row.cells.iter().filter(|cell| **cell != Cell::Nothing).count();
        let there = row.cells.iter().filter(|cell| matches!(cell, Cell::Hops(_))).count();
        format!(" {}: a route at {there} of {sent} moments.", clipped(&row.title, 300.0, 13.0))
    };
    rows.iter().take(8).map(one).collect()
}

#[cfg(test)]
mod tests {
    use hopcast_twin::results::{Flow, FlowRoute, Receiver, ShipTrack};

    use super::*;

    /// Flow, ships, and whether they are all of the way.
    type Way<'w> = (&'w str, &'w [usize], bool);

    fn map(moments: &[&[Way<'_>]]) -> ShipMap {
        let ship = |number: usize| ShipTrack { node: format!("n{number}"), ..ShipTrack::default() };
        let way = |&(flow, ships, arrives): &Way<'_>| FlowRoute {
            flow: flow.into(),
            ships: ships.to_vec(),
            arrives,
        };
        let moment = |(at, ways): (u32, &&[Way<'_>])| ShipMoment {
            at_s: at.into(),
            routes: ways.iter().map(way).collect(),
            ..ShipMoment::default()
        };
        let moments = (0..).zip(moments).map(moment).collect();
        ShipMap { ships: (0..6).map(ship).collect(), moments, ..ShipMap::default() }
    }

    #[test]
    fn a_row_has_the_hops_to_its_receiver_and_a_gap_without_a_route() {
        let map = map(&[
            &[("f", &[0, 1, 2], true), ("f", &[0, 3], true)],
            &[("f", &[0, 1], false), ("f", &[0, 4, 5, 3], true)],
            &[],
        ]);
        let strip = Strip::of(&map, &Run::default(), &Flows::of(&map)).unwrap();
        let rows: Vec<(&str, &[Cell])> = strip.rows.iter().map(|row| (&*row.title, &*row.cells)).collect();
        assert_eq!(
            rows,
            [
                ("f → n2", &[Cell::Hops(2), Cell::NoRoute, Cell::Nothing][..]),
                ("f → n3", &[Cell::Hops(1), Cell::Hops(3), Cell::Nothing][..]),
            ]
        );
        assert!(
            strip.caption.ends_with("f → n2: a route at 1 of 2 moments. f → n3: a route at 2 of 2 moments.")
        );
    }

    #[test]
    fn a_receiver_that_is_never_reached_has_a_row_of_its_own() {
        let map = map(&[&[("f", &[0, 1], true), ("f", &[0], false)]]);
        let receiver = |node: &str| Receiver { node: node.into(), ..Receiver::default() };
        let receivers = vec![receiver("n1"), receiver("host"), receiver("n5")];
        let flow = Flow { name: "f".into(), receivers, ..Flow::default() };
        let run = Run { flows: vec![flow], ..Run::default() };
        let strip = Strip::of(&map, &run, &Flows::of(&map)).unwrap();
        let titles: Vec<&str> = strip.rows.iter().map(|row| &*row.title).collect();
        assert_eq!(titles, ["f → n1", "f → n5"]);
        assert!(Strip::of(&super::tests::map(&[&[]]), &run, &Flows::of(&map)).is_none());
    }
}
