//! A map at one moment.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_twin::results::{ShipMap, ShipMoment};

use super::fleet::{Fix, Fleet};
use super::flows::{Flows, Route, routes, words};
use super::legend::{Group, Key, Legend};
use super::marks::{self, Arrow};
use super::names::{self, Named};
use super::rates::Rates;
use super::seconds;
use super::view::View;
use crate::number::plain;
use crate::plot::Size;
use crate::plot::canvas::{Anchor, Canvas, Ink, Point, clipped, draw};
use crate::plot::label::Area;
use crate::study::distinct;

/// Maximum number of links that are drawn of one moment. Chosen: about 300 kB.
const MAX_LINKS: usize = 3000;
/// Maximum number of pairs of ships between which ways are drawn.
const MAX_HOPS: usize = 1000;
/// Maximum number of flows that are drawn beside each other between two ships. Chosen: more cover what is beside.
const MAX_LANES: usize = 6;
/// Half the width of a cross, in pixels.
const CROSS: f64 = 4.5;
/// Maximum number of flows in the legend.
const MAX_FLOWS: usize = 10;

/// Width of a track to come, in widths of one that was sailed.
pub(super) const FAINT: f64 = 1.8;

/// The parts of a map that all its moments share.
pub(super) struct Sheet<'m> {
    map: &'m ShipMap,
    fleet: Fleet<'m>,
    rates: Rates,
    flows: Flows<'m>,
    /// Maximum number of links of a moment: those of all are as wide, and as in the legend.
    most_links: usize,
    /// Whether a way of any moment does not arrive.
    stops: bool,
    /// Whether a ship is outside of its track at any moment.
    strays: bool,
}

/// A map at one moment, before it is drawn in a size.
pub(super) struct Frame<'s, 'm> {
    sheet: &'s Sheet<'m>,
    title: String,
    at: f64,
    /// By the indices of the ships.
    fixes: Vec<Option<Fix>>,
    /// Pairs of ships with the step of their rate, the lowest first.
    links: Vec<([usize; 2], usize)>,
    routes: Vec<Route<'s>>,
    pub(super) caption: String,
}

impl<'m> Sheet<'m> {
    /// The parts that these moments of a map share.
    pub(super) fn of(map: &'m ShipMap, fleet: Fleet<'m>, moments: &[&ShipMoment]) -> Self {
        let count = fleet.ships.len();
        let is_stopped = |moment: &&ShipMoment| routes(moment, count).iter().any(|route| !route.arrives);
        let mut sheet = Self {
            map,
            fleet,
            rates: Rates::of(map),
            flows: Flows::of(map),
            most_links: moments.iter().map(|moment| moment.links.len()).max().unwrap_or(0),
            stops: moments.iter().any(is_stopped),
            strays: false,
        };
        let is_stray = |fix: &Option<Fix>| fix.is_some_and(|fix| !fix.on_track);
        sheet.strays = moments.iter().any(|moment| sheet.fixes(moment).iter().any(is_stray));
        sheet
    }

    pub(super) const fn flows(&self) -> &Flows<'m> {
        &self.flows
    }

    /// The ships at a moment: one with a link is there, even where its track has no such time.
    fn fixes(&self, moment: &ShipMoment) -> Vec<Option<Fix>> {
        let linked: BTreeSet<usize> = moment.links.iter().flat_map(|link| link.ships).collect();
        let on_way: BTreeSet<usize> = moment.routes.iter().flat_map(|way| &way.ships).copied().collect();
        let fix = |(index, ship): (usize, &super::fleet::Vessel<'_>)| {
            let fix = ship.fix(moment.at_s, self.fleet.projection)?;
            let is_there = fix.on_track || linked.contains(&index) || on_way.contains(&index);
            Some(Fix { on_track: is_there, ..fix })
        };
        self.fleet.ships.iter().enumerate().map(fix).collect()
    }

    /// The map at a moment.
    pub(super) fn frame<'s>(&'s self, moment: &'s ShipMoment) -> Frame<'s, 'm> {
        let fixes = self.fixes(moment);
        let is_there = |ship: usize| fixes.get(ship).is_some_and(Option::is_some);
        let mut links: Vec<([usize; 2], usize)> = moment
            .links
            .iter()
            .filter(|link| link.ships[0] != link.ships[1] && link.ships.iter().all(|ship| is_there(*ship)))
            .map(|link| (link.ships, self.rates.step(link.rate_mbps)))
            .collect();
        links.sort_by_key(|(ships, step)| (*step, *ships));
        let count = links.len().saturating_add(moment.left_out);
        links.drain(..links.len().saturating_sub(MAX_LINKS));
        let routes = routes(moment, self.fleet.ships.len());
        let link = clipped(&self.map.link, 400.0, 13.0);
        let title = format!("{link} at {}", seconds(moment.at_s));
        let number = |count: usize, one: &str| {
            format!("{} {one}{}", plain(count as f64), if count == 1 { "" } else { "s" })
        };
        let there = fixes.iter().flatten().filter(|fix| fix.on_track).count();
        let mut caption =
            format!("The ships of {title}: {}, {}.", number(there, "ship"), number(count, "link"));
        if count > links.len() {
            caption.push_str(&format!(" The {} links of the highest rates are drawn.", links.len()));
        }
        if self.fleet.left_out > 0 {
            caption.push_str(&format!(" Not drawn: {}.", number(self.fleet.left_out, "further ship")));
        }
        caption.push_str(&words(&routes, &self.fleet));
        Frame { sheet: self, title, at: moment.at_s, fixes, links, routes, caption }
    }

    /// Factor of the width of links, which hide each other where they are many.
    fn thin(&self, size: Size) -> f64 {
        let page = if size == Size::Wide { 1.0 } else { 0.7 };
        page * match self.most_links {
            0..=100 => 1.0,
            101..=400 => 0.75,
            401..=1000 => 0.6,
            _ => 0.45,
        }
    }

    /// The legend, for a page of this size.
    fn legend(&self, size: Size, font: f64) -> Legend {
        let count = self.fleet.ships.len();
        let thin = self.thin(size);
        let link = |step: usize| Key::Link { step, width: Rates::width(step) * thin };
        let rates = self.rates.legend().into_iter().map(|(step, text)| (link(step), text));
        let mut flows: Vec<(Key, String)> = self
            .flows
            .names
            .iter()
            .take(MAX_FLOWS)
            .enumerate()
            .map(|(flow, name)| (Key::Flow(flow), clipped(name, 220.0, font)))
            .collect();
        if self.flows.names.len() > MAX_FLOWS {
            flows.push((Key::Words, format!("and {} more", self.flows.names.len() - MAX_FLOWS)));
        }
        if self.stops {
            flows.push((Key::NoRoute, "no route further".into()));
        }
        let tracks = [(Key::Track(Ink::Muted), "sailed"), (Key::Track(Ink::Grid), "to come")];
        let tracks = tracks.map(|(key, text)| (key, text.to_owned())).to_vec();
        let mut sizes = distinct(self.fleet.ships.iter().map(|ship| ship.antennas));
        sizes.sort_unstable();
        // Of many sizes the smallest and the largest say how to read the others.
        if sizes.len() > 4 {
            sizes = vec![sizes[0], sizes[sizes.len() - 1]];
        }
        let mark = |antennas: u8| Key::Ship { radius: marks::radius(antennas, count, size), on_track: true };
        let mut ships: Vec<(Key, String)> =
            sizes.into_iter().map(|antennas| (mark(antennas), antennas.to_string())).collect();
        if self.strays {
            let radius = marks::radius(12, count, size);
            ships.push((Key::Ship { radius, on_track: false }, "before or after its track".into()));
        }
        let groups = vec![
            Group { title: "links [Mbit/s]", entries: rates.collect() },
            Group { title: "flows", entries: flows },
            Group { title: "ships, by antennas", entries: ships },
            Group { title: "tracks", entries: tracks },
        ];
        Legend::of(groups, size.chart().0, font)
    }
}

impl Frame<'_, '_> {
    pub(super) fn paint(&self, size: Size) -> String {
        let (width, _, font) = size.chart();
        let font = font - 1.0;
        let view = View::of(&self.sheet.fleet, size, font);
        let legend = self.sheet.legend(size, font);
        let below = view.top + view.height + View::below(font);
        draw(width, below + legend.height, font, &self.caption, |canvas| {
            let title = clipped(&self.title, width, font + 1.5);
            canvas.text(&title, (0.0, font * 0.9), Anchor::Start, Ink::Text, font + 1.5);
            view.draw_axes(canvas);
            let pens = Pens::of(self, &view, size);
            self.draw_tracks(canvas, &view, &pens);
            self.draw_links(canvas, &pens);
            let arrows = self.draw_ways(canvas, &pens);
            self.draw_ships(canvas, &pens);
            let crosses = self.draw_ends(canvas, &pens);
            self.draw_names(canvas, &view, &pens, (&arrows, &crosses));
            view.draw_scale(canvas);
            legend.draw(canvas, below);
        })
    }

    fn draw_tracks(&self, canvas: &mut Canvas<'_>, view: &View, pens: &Pens) {
        let draw = |canvas: &mut Canvas<'_>, lines: &[Vec<Point>], ink: Ink| {
            // A faint track is wider, so that nobody takes it for a line of the grid.
            let width = pens.track * if ink == Ink::Grid { FAINT } else { 1.0 };
            for line in lines {
                let places: Vec<Point> = line.iter().map(|place| view.place(*place)).collect();
                canvas.path(&places, ink, width);
            }
        };
        let fleet = &self.sheet.fleet;
        let tracks: Vec<_> = fleet.ships.iter().map(|ship| ship.track(self.at, fleet.projection)).collect();
        for (_, to_come) in &tracks {
            draw(canvas, to_come, Ink::Grid);
        }
        for (sailed, _) in &tracks {
            draw(canvas, sailed, Ink::Muted);
        }
    }

    fn draw_links(&self, canvas: &mut Canvas<'_>, pens: &Pens) {
        for ([a, b], step) in &self.links {
            if let (Some(a), Some(b)) = (pens.at(*a), pens.at(*b)) {
                canvas.path(&[a, b], Ink::Load(*step), Rates::width(*step) * pens.thin);
            }
        }
    }

    /// Each hop of the flows beside its link, on the right of the direction: the link's rate stays visible, and two
    /// directions do not cover each other. Returns the arrows.
    fn draw_ways(&self, canvas: &mut Canvas<'_>, pens: &Pens) -> Vec<Arrow> {
        // The lanes of each direction; the ways of a flow to several receivers share one.
        let mut lanes: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for route in &self.routes {
            let flow = self.sheet.flows.place(route.flow);
            for hop in route.ships.windows(2) {
                let lane = lanes.entry((hop[0], hop[1])).or_default();
                if !lane.contains(&flow) {
                    lane.push(flow);
                }
            }
        }
        let steps: BTreeMap<[usize; 2], usize> =
            self.links.iter().map(|([a, b], step)| ([*a.min(b), *a.max(b)], *step)).collect();
        let mut arrows = Vec::new();
        for ((from, to), flows) in lanes.iter().take(MAX_HOPS) {
            let (Some(a), Some(b)) = (pens.at(*from), pens.at(*to)) else { continue };
            let (dx, dy) = (b.0 - a.0, b.1 - a.1);
            let length = dx.hypot(dy);
            if length < 1.0 {
                continue;
            }
            let (ux, uy) = (dx / length, dy / length);
            let step = steps.get(&[*from.min(to), *from.max(to)]);
            let half = step.map_or(0.0, |step| Rates::width(*step) * pens.thin / 2.0);
            for (lane, flow) in flows.iter().take(MAX_LANES).enumerate() {
                let side = half + 1.4 + pens.way / 2.0 + lane as f64 * (pens.way + 1.6);
                let along = |at: f64| (a.0 + ux * at - uy * side, a.1 + uy * at + ux * side);
                // Short hops begin and end within their ships.
                let (start, end) = (pens.radius(*from) + 1.0, length - pens.radius(*to) - 2.0);
                let (start, end) = if end - start > 6.0 { (start, end) } else { (0.0, length) };
                let (from, to) = (along(start), along(end));
                arrows.push(Arrow { from, to, look: Flows::look(*flow), width: pens.way });
            }
        }
        Arrow::draw_all(&arrows, canvas);
        arrows
    }

    fn draw_ships(&self, canvas: &mut Canvas<'_>, pens: &Pens) {
        for (fix, ship) in self.fixes.iter().zip(&pens.ships) {
            if let (Some(fix), Some((at, radius))) = (fix, ship) {
                marks::ship(canvas, *at, fix.heading, *radius, fix.on_track);
            }
        }
    }

    /// A cross at the last ship of each way that does not arrive. Returns their places.
    fn draw_ends(&self, canvas: &mut Canvas<'_>, pens: &Pens) -> Vec<Point> {
        let mut ends: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for route in self.routes.iter().filter(|route| !route.arrives) {
            if let Some(last) = route.ships.last() {
                ends.entry(*last).or_default().insert(self.sheet.flows.place(route.flow));
            }
        }
        let mut crosses = Vec::new();
        for (ship, flows) in ends {
            let Some((x, y)) = pens.at(ship) else { continue };
            for (turn, flow) in flows.into_iter().take(6).enumerate() {
                let (sine, cosine) = (turn as f64 * 60.0 - 50.0).to_radians().sin_cos();
                let away = pens.radius(ship) + 10.0;
                let ink = Ink::Line(Flows::look(flow));
                let place = (x + away * cosine, y + away * sine);
                marks::cross(canvas, place, ink, CROSS);
                crosses.push(place);
            }
        }
        crosses
    }

    /// The names of all ships, or of many those at which ways begin and end.
    fn draw_names(
        &self,
        canvas: &mut Canvas<'_>,
        view: &View,
        pens: &Pens,
        (arrows, crosses): (&[Arrow], &[Point]),
    ) {
        let ends: BTreeSet<usize> = self
            .routes
            .iter()
            .flat_map(|route| route.ships.first().into_iter().chain(route.ships.last()))
            .copied()
            .collect();
        let all = self.fixes.iter().flatten().count() <= pens.most_names;
        let mut chosen: Vec<usize> =
            (0..self.fixes.len()).filter(|ship| all || ends.contains(ship)).collect();
        // The ends of ways come first, whose names matter most.
        chosen.sort_by_key(|ship| !ends.contains(ship));
        let named = |ship: &usize| {
            let (at, radius) = (*pens.ships.get(*ship)?)?;
            let vessel = self.sheet.fleet.ships.get(*ship)?;
            let name = clipped(vessel.name, 120.0, pens.font);
            Some(Named { text: format!("{name} · {}", vessel.antennas), at, radius })
        };
        let named: Vec<Named> = chosen.iter().filter_map(named).collect();
        let frame = Area {
            left: view.left,
            right: view.left + view.width,
            top: view.top,
            bottom: view.top + view.height,
        };
        let lines: Vec<(Point, Point)> = arrows.iter().map(|arrow| (arrow.from, arrow.to)).collect();
        let crosses = crosses.iter().map(|at| (*at, CROSS));
        let marks: Vec<(Point, f64)> = pens.ships.iter().flatten().copied().chain(crosses).collect();
        for (text, at, anchor) in names::place(&named, &marks, &lines, &frame, pens.font) {
            canvas.text(&text, at, anchor, Ink::Text, pens.font);
        }
    }
}

/// Places and widths in a picture of one size.
struct Pens {
    /// Place and radius of each ship.
    ships: Vec<Option<(Point, f64)>>,
    /// Factor of the width of links.
    thin: f64,
    track: f64,
    way: f64,
    font: f64,
    /// Maximum number of ships up to which all are named.
    most_names: usize,
}

impl Pens {
    fn of(frame: &Frame<'_, '_>, view: &View, size: Size) -> Self {
        let fleet = &frame.sheet.fleet;
        let count = fleet.ships.len();
        let place = |(fix, ship): (&Option<Fix>, &super::fleet::Vessel<'_>)| {
            fix.map(|fix| (view.place(fix.place), marks::radius(ship.antennas, count, size)))
        };
        let is_wide = size == Size::Wide;
        let page = if is_wide { 1.0 } else { 0.7 };
        Self {
            ships: frame.fixes.iter().zip(&fleet.ships).map(place).collect(),
            thin: frame.sheet.thin(size),
            track: if count <= 60 { 1.4 } else { 0.8 } * page,
            way: if count <= 60 { 3.0 } else { 2.2 } * if is_wide { 1.0 } else { 0.8 },
            font: size.chart().2 - if count <= 20 { 1.0 } else { 2.0 },
            most_names: if is_wide { 60 } else { 25 },
        }
    }

    fn at(&self, ship: usize) -> Option<Point> {
        self.ships.get(ship)?.map(|(at, _)| at)
    }

    fn radius(&self, ship: usize) -> f64 {
        self.ships.get(ship).copied().flatten().map_or(0.0, |(_, radius)| radius)
    }
}
