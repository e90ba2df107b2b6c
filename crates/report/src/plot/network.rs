//! The topology with the traffic of its links: one picture for each case and protocol.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_trace::view::Marks;
use hopcast_twin::results::Run;

use super::canvas::{Anchor, Canvas, Ink, Point, clipped, draw, standalone, text_width};
use super::chart::round_step;
use super::label::{Area, Arrow, middle, words, words_by_bytes};
use super::load::{Load, loads, used};
use super::{MAX_SECTION_PLOTS, Plot, Section, Size, describe, drawn, theme};
use crate::Topology;
use crate::figure::figure;
use crate::number::plain;
use crate::study::{Order, Setting, Study, grouped};
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
    let chosen =
        || settings.iter().zip(&pairs).filter(|(_, pair)| drawn.contains(pair)).map(|(setting, _)| setting);
    let all: Vec<Vec<Load>> = chosen().map(|(_, runs)| loads(runs.iter().copied())).collect();
    let scale = Scale::of(study, &all);
    let picture = |(((case, choice), _), loads): (&(Setting, Vec<&Run>), &Vec<Load>)| {
        let mut keys = Vec::new();
        if study.cases.len() > 1 {
            keys.push(("case", study.case_label(case)));
        }
        if !choice.is_empty() {
            keys.push(("protocol", study.choice_label(choice)));
        }
        let of = if keys.is_empty() { String::new() } else { format!(": {}", describe(&keys)) };
        let what = match scale {
            Scale::Utilisation => "Each direction's utilisation and share of frames lost, over all repeats.",
            Scale::Bytes { .. } | Scale::Frames { .. } => {
                "Bytes of each direction, the mean over repeats; of a switch, a frame to a group counts for each station."
            }
        };
        let left_out = left_out.as_deref().unwrap_or_default();
        let caption = format!("What the links carried{of}. {what}{left_out}");
        let paint = |size: Size| Drawing::new(&shown, &layout, size, scale).paint(&shown, loads, &caption);
        Plot::new(Section::Network, &format!("network {}", describe(&keys)), caption.clone(), keys, paint)
    };
    let plots: Vec<Plot> = chosen().zip(&all).map(picture).collect();
    let left_out = settings.len() - plots.len();
    (plots, left_out)
}

/// A picture of which way packets took and where they ended: for each pair of nodes the frames that were sent, those
/// that the link lost, and marks at the nodes that took or dropped copies. A standalone SVG file.
pub fn route_picture(topology: &Topology, marks: &Marks, caption: &str) -> String {
    standalone(&RoutePicture::new(topology, marks, caption).paint(Size::Wide), &theme::style())
}

/// What a picture of the way of packets shows.
pub(super) struct RoutePicture<'m> {
    shown: Topology,
    layout: Layout,
    loads: Vec<Load>,
    marks: &'m Marks,
    caption: &'m str,
}

impl<'m> RoutePicture<'m> {
    pub(super) fn new(topology: &Topology, marks: &'m Marks, caption: &'m str) -> Self {
        let used = marks.hops.keys().cloned().collect();
        let shown = topology.drawn(&used);
        let layout = lay_out(&shown);
        let load = |((from, to), &[arrived, lost]): (&(String, String), &[u64; 2])| {
            let sent = (arrived + lost) as f64;
            let lost = lost as f64 / sent.max(1.0);
            Load { from: from.clone(), to: to.clone(), bytes: sent, lost: Some(lost), ..Load::default() }
        };
        let loads = marks.hops.iter().map(load).collect();
        Self { shown, layout, loads, marks, caption }
    }

    pub(super) fn paint(&self, size: Size) -> String {
        // A multiple of the number of steps, so that each ends at a whole number.
        let top = (self.loads.iter().map(|load| load.bytes).fold(1.0, f64::max) / 5.0).ceil() * 5.0;
        let drawing = Drawing::new(&self.shown, &self.layout, size, Scale::Frames { top });
        drawing.paint_marked(&self.shown, &self.loads, self.caption, |canvas| {
            for (node, &(x, y)) in self.shown.nodes.iter().zip(&drawing.places) {
                let radius = drawing.radius;
                if self.marks.taken.contains_key(&node.name) {
                    canvas.circle((x, y), radius + 2.0, Ink::Line(2), Some(3.0));
                }
                if self.marks.died.contains_key(&node.name) {
                    // Open in the middle, where the name is.
                    let (from, to) = (if radius > 10.0 { radius * 0.6 } else { 0.0 }, radius + 2.0);
                    for (right, down) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
                        let at = |arm: f64| (x + right * arm, y + down * arm);
                        canvas.path(&[at(from), at(to)], Ink::Line(1), 3.0);
                    }
                }
            }
        })
    }
}

/// Upper ends of all steps but the last, as shares of the top. Chosen: a sender's own link carries by unicast many
/// times what one receiver's does, and in even steps all others would be in the lowest.
const BYTE_STEPS: [f64; 4] = [0.1, 0.2, 0.5, 1.0];

/// What the width and colour of an arrow say.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Utilisation,
    /// Bytes, in steps up to this many MB, the same in all pictures of a study.
    Bytes {
        top: f64,
    },
    /// Frames, which stand in place of bytes, up to this many.
    Frames {
        top: f64,
    },
}

impl Scale {
    /// Bytes where deliveries to several receivers are compared, which most links have rate for many times over.
    fn of(study: &Study<'_>, loads: &[Vec<Load>]) -> Self {
        let most = loads.iter().flatten().map(|load| load.bytes).fold(0.0, f64::max);
        let to_group = study.rows.iter().any(|row| figure(row.summary, "sender_bytes").is_some());
        if to_group && most > 0.0 { Self::Bytes { top: round_step(most / 2e6) } } else { Self::Utilisation }
    }

    /// From 0 to 1.
    fn share(self, load: &Load) -> f64 {
        let share = match self {
            Self::Utilisation => load.utilisation.unwrap_or(0.0),
            // The middle of its step: links of one are as wide.
            Self::Bytes { top } => {
                let step = BYTE_STEPS.iter().filter(|step| load.bytes >= **step * top * 1e6).count();
                (step as f64 + 0.5) / (BYTE_STEPS.len() + 1) as f64
            }
            Self::Frames { top } => load.bytes / top,
        };
        share.clamp(0.0, 1.0)
    }

    fn words(self, load: &Load) -> (String, String) {
        match self {
            Self::Utilisation => words(load),
            Self::Bytes { .. } => words_by_bytes(load),
            Self::Frames { .. } => {
                let lost = (load.bytes * load.lost.unwrap_or(0.0)).round();
                let words = if lost > 0.0 { format!("{lost} lost") } else { String::new() };
                (load.bytes.to_string(), words)
            }
        }
    }

    /// Its title and that of each step.
    fn legend(self) -> (&'static str, [String; 5]) {
        match self {
            Self::Utilisation => {
                ("utilisation", ["< 20 %", "< 40 %", "< 60 %", "< 80 %", "more"].map(String::from))
            }
            Self::Bytes { top } => {
                let [a, b, c, d] = BYTE_STEPS.map(|step| format!("< {} MB", plain(step * top)));
                ("bytes", [a, b, c, d, "more".to_owned()])
            }
            Self::Frames { top } => {
                let [a, b, c, d] = [0.2, 0.4, 0.6, 0.8].map(|share| format!("< {}", plain(share * top)));
                ("frames", [a, b, c, d, "more".to_owned()])
            }
        }
    }

    fn on_arrows(self) -> &'static str {
        match self {
            Self::Utilisation => "on the arrows: utilisation · frames lost",
            Self::Bytes { .. } => "on the arrows: bytes of the direction",
            Self::Frames { .. } => {
                "on the arrows: frames that were sent; thick ring: taken; cross: dropped in the node"
            }
        }
    }
}

/// The places of nodes in a picture of this size.
struct Drawing {
    scale: Scale,
    places: Vec<Point>,
    width: f64,
    height: f64,
    font: f64,
    radius: f64,
    /// Whether there is room for text.
    words: bool,
}

impl Drawing {
    fn new(topology: &Topology, layout: &Layout, size: Size, arrows: Scale) -> Self {
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
        Self { scale: arrows, places, width, height: down * scale.1 + 2.0 * margin.1, font, radius, words }
    }

    fn paint(&self, topology: &Topology, loads: &[Load], caption: &str) -> String {
        self.paint_marked(topology, loads, caption, |_| {})
    }

    /// As [`paint`](Self::paint), with marks on the nodes.
    fn paint_marked(
        &self,
        topology: &Topology,
        loads: &[Load],
        caption: &str,
        marks: impl FnOnce(&mut Canvas<'_>),
    ) -> String {
        let legend_rows = 2.0 + f64::from(u8::from(self.width < 500.0));
        let height = self.height + legend_rows * self.font * 1.8 + 4.0;
        draw(self.width, height, self.font, caption, |canvas| {
            self.draw_links(canvas, topology);
            let mut taken: Vec<Area> = Vec::new();
            let arrows = self.draw_loads(canvas, topology, loads);
            self.draw_nodes(canvas, topology, &mut taken);
            marks(canvas);
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
            let share = self.scale.share(load);
            let slim = match self.scale {
                _ if self.radius > 10.0 => 1.0,
                Scale::Utilisation => 0.5,
                Scale::Bytes { .. } | Scale::Frames { .. } => 0.75,
            };
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
        // Of many nodes, those that join links.
        let mut degrees = vec![0; topology.nodes.len()];
        for end in topology.links.iter().flat_map(|link| &link.ends) {
            degrees[*end] += 1;
        }
        let few = topology.nodes.len() <= 120;
        let is_named = |node: usize| self.words && (few || degrees[node] > 1);
        for (index, (node, place)) in topology.nodes.iter().zip(&self.places).enumerate() {
            let inside = text_width(&node.name, self.font) <= self.radius * 2.0 - 4.0;
            canvas.circle(*place, self.radius, Ink::Surface, None);
            canvas.circle(*place, self.radius, Ink::Muted, Some(1.4));
            taken.push(Area::around(*place, self.radius * 2.0, self.radius * 2.0));
            if is_named(index) && inside {
                canvas.text(&node.name, *place, Anchor::Middle, Ink::Text, self.font);
            }
        }
        let nodes = topology.nodes.iter().zip(&self.places).enumerate();
        for (_, (node, place)) in nodes.filter(|(index, _)| is_named(*index)) {
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
        let busy = |arrow: &Arrow<'_>| self.scale.share(arrow.load);
        order.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
        let mut covered: Vec<Area> = Vec::new();
        let mut placed = Vec::new();
        for arrow in order {
            let (busy, lost) = self.scale.words(arrow.load);
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
        let (title, steps) = self.scale.legend();
        canvas.text(title, (0.0, y), Anchor::Start, Ink::Muted, font);
        let mut x = if narrow { 0.0 } else { text_width(title, font) + 14.0 };
        y += if narrow { font * 1.8 } else { 0.0 };
        for (step, text) in steps.iter().enumerate() {
            let key = if narrow { 14.0 } else { 26.0 };
            canvas.path(&[(x, y), (x + key, y)], Ink::Load(step), 1.9 + step as f64);
            canvas.text(text, (x + key + 4.0, y), Anchor::Start, Ink::Muted, font);
            x += key + text_width(text, font) + if narrow { 8.0 } else { 18.0 };
        }
        let mut note = String::from(self.scale.on_arrows());
        if missing > 0 {
            let labels = if missing == 1 { "label has" } else { "labels have" };
            note = format!("{missing} {labels} no room: links.csv has all");
        }
        canvas.text(&note, (0.0, y + font * 1.8), Anchor::Start, Ink::Muted, font);
    }
}
