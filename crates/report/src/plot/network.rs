//! The topology with the traffic of its links: one picture for each case and protocol.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_twin::results::Run;

use super::canvas::{Anchor, Canvas, Ink, Point, clipped, draw, text_width};
use super::label::{Area, Arrow, middle, words};
use super::load::{Load, loads, used};
use super::{MAX_SECTION_PLOTS, Plot, Section, Size, describe, drawn};
use crate::Topology;
use crate::study::{Order, Study, grouped};
use crate::topology::MAX_DRAWN_NODES;
use crate::topology::layout::{Layout, lay_out};

/// One picture for each case and protocol; and the number of those left out.
pub(crate) fn plots(study: &Study<'_>, topology: &Topology) -> (Vec<Plot>, usize) {
    let shown = topology.drawn(&used(study.document));
    if shown.nodes.is_empty() {
        return (Vec::new(), 0);
    }
    let layout = lay_out(&shown);
    let left_out = (shown.nodes.len() < topology.nodes.len()).then(|| {
        format!(
            " Drawn are the {} of {} nodes on links that carried something.",
            shown.nodes.len(),
            topology.nodes.len()
        )
    });
    let settings = grouped(study.document.runs.iter().map(|run| (study.setting(&run.parameters), run)));
    // By setting, the protocol and the case: protocols are what is compared, so all of them come first.
    let (mut cases, mut choices) = (Order::of([]), Order::of([]));
    let pairs: Vec<(usize, usize)> =
        settings.iter().map(|((case, choice), _)| (choices.insert(choice), cases.insert(case))).collect();
    let drawn = drawn(&pairs.iter().copied().collect::<BTreeSet<_>>(), MAX_SECTION_PLOTS, MAX_SECTION_PLOTS);
    let picture = |((case, choice), runs): &((Vec<String>, Vec<String>), Vec<&Run>)| {
        let loads = loads(runs.iter().copied());
        let mut keys = Vec::new();
        if study.cases.len() > 1 {
            keys.push(("case", study.case_label(case)));
        }
        if !choice.is_empty() {
            keys.push(("protocol", choice.join(", ")));
        }
        let of = if keys.is_empty() { String::new() } else { format!(": {}", describe(&keys)) };
        let caption = format!(
            "What the links carried{of}. Each direction's utilisation and share of frames lost, over all repeats.{}",
            left_out.as_deref().unwrap_or_default()
        );
        let paint = |size: Size| Drawing::new(&shown, &layout, size).paint(&shown, &loads, &caption);
        Plot::new(Section::Network, &format!("network {}", describe(&keys)), caption.clone(), keys, paint)
    };
    let chosen = settings.iter().zip(&pairs).filter(|(_, pair)| drawn.contains(pair));
    let plots: Vec<Plot> = chosen.map(|(setting, _)| picture(setting)).collect();
    let left_out = settings.len() - plots.len();
    (plots, left_out)
}

/// The places of nodes in a picture of this size.
struct Drawing {
    places: Vec<Point>,
    width: f64,
    height: f64,
    font: f64,
    radius: f64,
    /// Whether there is room for text.
    words: bool,
}

impl Drawing {
    fn new(topology: &Topology, layout: &Layout, size: Size) -> Self {
        let (width, _, font) = size.chart();
        let font = font - 1.0;
        let tallest: f64 = if size == Size::Wide && layout.places.len() <= 12 { 460.0 } else { 580.0 };
        let span = |axis: fn(&Point) -> f64| {
            let low = layout.places.iter().map(axis).fold(f64::MAX, f64::min);
            let high = layout.places.iter().map(axis).fold(f64::MIN, f64::max);
            (low, high - low)
        };
        let ((left, across), (top, down)) = (span(|place| place.0), span(|place| place.1));
        // A narrow page shows a row as a column; a map is never turned.
        let turned = size == Size::Narrow && across > down && (!layout.given || down <= across * 0.05);
        let (across, down) = if turned { (down, across) } else { (across, down) };
        let margin = (if across > down * 0.2 { 34.0 } else { width / 2.0 }, 40.0);
        let room = (width - 2.0 * margin.0, tallest - 2.0 * margin.1);
        let fit = |room: f64, span: f64| if span > 0.0 { room / span } else { f64::MAX };
        let scales = (fit(room.0, across), fit(room.1, down));
        let min = scales.0.min(scales.1);
        let min = if min < f64::MAX { min } else { 1.0 };
        // A map keeps its proportions; a layout by springs may be stretched.
        let limit = if layout.given { min } else { min * 2.0 };
        let scale = (scales.0.min(limit), scales.1.min(limit));
        let offset = ((width - across * scale.0) / 2.0, margin.1);
        let place = |(x, y): &Point| {
            let (x, y) = (x - left, y - top);
            let (x, y) = if turned { (y, x) } else { (x, y) };
            (offset.0 + x * scale.0, offset.1 + y * scale.1)
        };
        let places: Vec<Point> = layout.places.iter().map(place).collect();
        let words = topology.nodes.len() <= MAX_DRAWN_NODES;
        let radius = match topology.nodes.len() {
            0..=40 => 13.0,
            41..=120 => 6.0,
            _ => 2.5,
        };
        Self { places, width, height: down * scale.1 + 2.0 * margin.1, font, radius, words }
    }

    fn paint(&self, topology: &Topology, loads: &[Load], caption: &str) -> String {
        let legend_rows = 2.0 + f64::from(u8::from(self.width < 500.0));
        let height = self.height + legend_rows * self.font * 1.8 + 4.0;
        draw(self.width, height, self.font, caption, |canvas| {
            self.draw_links(canvas, topology);
            let mut taken: Vec<Area> = Vec::new();
            let arrows = self.draw_loads(canvas, topology, loads);
            self.draw_nodes(canvas, topology, &mut taken);
            let missing = if self.words { self.draw_labels(canvas, &arrows, &taken) } else { arrows.len() };
            self.draw_legend(canvas, missing);
        })
    }

    /// Every link, thin and grey, so that unused ones are visible too; a medium as spokes.
    fn draw_links(&self, canvas: &mut Canvas<'_>, topology: &Topology) {
        for link in &topology.links {
            let ends: Vec<Point> = link.ends.iter().map(|end| self.places[*end]).collect();
            match ends.as_slice() {
                [a, b] => canvas.path(&[*a, *b], Ink::Grid, 2.0),
                _ => {
                    let hub = middle(&ends);
                    for end in ends {
                        canvas.path(&[end, hub], Ink::Grid, 2.0);
                    }
                }
            }
        }
    }

    /// An arrow for each used direction, on its left side.
    fn draw_loads<'l>(
        &self,
        canvas: &mut Canvas<'_>,
        topology: &Topology,
        loads: &'l [Load],
    ) -> Vec<Arrow<'l>> {
        let nodes: BTreeMap<&str, Point> = topology
            .nodes
            .iter()
            .zip(&self.places)
            .map(|(node, place)| (node.name.as_str(), *place))
            .collect();
        let hubs: BTreeMap<&str, Point> = topology
            .links
            .iter()
            .filter(|link| link.ends.len() != 2)
            .map(|link| {
                (
                    link.name.as_str(),
                    middle(&link.ends.iter().map(|end| self.places[*end]).collect::<Vec<_>>()),
                )
            })
            .collect();
        let place = |name: &str| nodes.get(name).or_else(|| hubs.get(name)).copied();
        let mut arrows = Vec::new();
        for load in loads {
            let (Some(from), Some(to)) = (place(&load.from), place(&load.to)) else { continue };
            let (dx, dy) = (to.0 - from.0, to.1 - from.1);
            let length = (dx * dx + dy * dy).sqrt();
            if length < 2.0 * self.radius + 4.0 {
                continue;
            }
            let (ux, uy) = (dx / length, dy / length);
            let share = load.utilisation.unwrap_or(0.0).clamp(0.0, 1.0);
            let slim = if self.radius > 10.0 { 1.0 } else { 0.5 };
            let thick = (1.4 + 5.0 * share) * slim;
            let aside = thick / 2.0 + 1.2;
            let along = |at: f64, side: f64| {
                (from.0 + ux * at + uy * (aside + side), from.1 + uy * at - ux * (aside + side))
            };
            let ink = Ink::Load((share * 4.999) as usize);
            let (start, end) = (self.radius + 1.0, length - self.radius - 2.0);
            let head = (5.0 + thick) * slim;
            canvas.path(&[along(start, 0.0), along(end - head * 0.8, 0.0)], ink, thick);
            let half = head * 0.6;
            canvas.area(&[along(end, 0.0), along(end - head, half), along(end - head, -half)], ink, 1.0);
            arrows.push(Arrow { load, middle: along(length / 2.0, 0.0), side: (uy, -ux), gap: thick / 2.0 });
        }
        arrows
    }

    fn draw_nodes(&self, canvas: &mut Canvas<'_>, topology: &Topology, taken: &mut Vec<Area>) {
        let named = self.words && topology.nodes.len() <= 120;
        for (node, place) in topology.nodes.iter().zip(&self.places) {
            let inside = text_width(&node.name, self.font) <= self.radius * 2.0 - 4.0;
            canvas.circle(*place, self.radius, Ink::Surface, None);
            canvas.circle(*place, self.radius, Ink::Muted, Some(1.4));
            taken.push(Area::around(*place, self.radius * 2.0, self.radius * 2.0));
            if named && inside {
                canvas.text(&node.name, *place, Anchor::Middle, Ink::Text, self.font);
            }
        }
        for (node, place) in topology.nodes.iter().zip(&self.places).filter(|_| named) {
            let name = clipped(&node.name, 130.0, self.font);
            let width = text_width(&name, self.font);
            if width <= self.radius * 2.0 - 4.0 {
                continue;
            }
            let x = place.0.clamp(width / 2.0, self.width - width / 2.0);
            let below = (x, place.1 + self.radius + self.font * 0.9);
            let area = Area::around(below, width, self.font);
            if !taken.iter().any(|other| other.meets(&area)) {
                taken.push(area);
                canvas.text(&name, below, Anchor::Middle, Ink::Text, self.font);
            }
        }
    }

    /// Draws the labels that cover neither each other nor a node, in one line each or in two, whichever leaves room for
    /// more of them; returns the number of those without room.
    fn draw_labels(&self, canvas: &mut Canvas<'_>, arrows: &[Arrow<'_>], taken: &[Area]) -> usize {
        let font = self.font - 0.5;
        let (one_line, two_lines) =
            (self.place_labels(arrows, taken, true), self.place_labels(arrows, taken, false));
        let placed = if one_line.len() >= two_lines.len() { one_line } else { two_lines };
        for (lines, anchor, at) in &placed {
            for (index, line) in lines.iter().enumerate() {
                canvas.text(line, (at.0, at.1 + index as f64 * font * 1.2), *anchor, Ink::Text, font);
            }
        }
        arrows.len() - placed.len()
    }

    fn place_labels(
        &self,
        arrows: &[Arrow<'_>],
        taken: &[Area],
        one_line: bool,
    ) -> Vec<(Vec<String>, Anchor, Point)> {
        let mut order: Vec<&Arrow<'_>> = arrows.iter().collect();
        // The busiest links first, whose labels matter most.
        let busy = |arrow: &Arrow<'_>| arrow.load.utilisation.unwrap_or(0.0);
        order.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
        let mut covered: Vec<Area> = Vec::new();
        let mut placed = Vec::new();
        for arrow in order {
            let (busy, lost) = words(arrow.load);
            let parts: Vec<String> = [busy, lost].into_iter().filter(|part| !part.is_empty()).collect();
            let lines = if one_line { vec![parts.join(" · ")] } else { parts };
            let (area, anchor, at) = arrow.label(&lines, self.font - 0.5);
            let inside = area.left >= 0.0 && area.right <= self.width && area.top >= 0.0;
            if inside && !taken.iter().chain(&covered).any(|other| other.meets(&area)) {
                covered.push(area);
                placed.push((lines, anchor, at));
            }
        }
        placed
    }

    fn draw_legend(&self, canvas: &mut Canvas<'_>, missing: usize) {
        let font = self.font;
        let narrow = self.width < 500.0;
        let mut y = self.height + font;
        canvas.text("utilisation", (0.0, y), Anchor::Start, Ink::Muted, font);
        let mut x = if narrow { 0.0 } else { text_width("utilisation", font) + 14.0 };
        y += if narrow { font * 1.8 } else { 0.0 };
        for (step, text) in ["< 20 %", "< 40 %", "< 60 %", "< 80 %", "more"].into_iter().enumerate() {
            let key = if narrow { 14.0 } else { 26.0 };
            canvas.path(&[(x, y), (x + key, y)], Ink::Load(step), 1.9 + step as f64);
            canvas.text(text, (x + key + 4.0, y), Anchor::Start, Ink::Muted, font);
            x += key + text_width(text, font) + if narrow { 8.0 } else { 18.0 };
        }
        let mut note = String::from("on the arrows: utilisation · frames lost");
        if missing > 0 {
            let labels = if missing == 1 { "label has" } else { "labels have" };
            note = format!("{missing} {labels} no room: links.csv has all");
        }
        canvas.text(&note, (0.0, y + font * 1.8), Anchor::Start, Ink::Muted, font);
    }
}
