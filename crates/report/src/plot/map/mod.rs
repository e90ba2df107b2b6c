//! Maps of ships: where they are, which links there are between them and at which rates, and the routes of flows, at
//! each moment; and below them the hops of the flows over time.
//!
//! A [`Fleet`] is the document's tracks on a plane, a [`View`](view::View) the part of the plane that all
//! moments share, and a [`Frame`](frame::Frame) one of the moments. The document may come from a file that anybody
//! wrote: what is no place, time or ship is left out, and each list has a maximum.

mod fleet;
mod flows;
mod frame;
mod hops;
mod legend;
mod marks;
mod names;
mod projection;
mod rates;
mod view;

use std::collections::BTreeMap;

use hopcast_twin::results::{Run, ShipMap, ShipMoment};

use self::fleet::{Fleet, evenly};
use self::frame::Sheet;
use self::hops::Strip;
use super::canvas::clipped;
use super::{Plot, Section, Size, describe, slug};
use crate::number::plain;
use crate::study::{Study, grouped};

/// Maximum number of maps of a document. Chosen: each is a film of its own; nobody looks at more cases.
const MAX_MAPS: usize = 12;
/// Maximum number of moments of all maps that are drawn. Chosen: of 200 ships each is about 200 kB.
const MAX_FRAMES: usize = 60;
/// Time in seconds beyond which a moment is left out. Chosen: 30 years; no run takes as long.
const LATEST: f64 = 1e9;
/// The name of the key that a slider moves.
pub(crate) const TIME: &str = "time";

/// Names with values that select a map among the others.
type Keys = Vec<(&'static str, String)>;

/// A picture for each moment of the maps, in the first repeat of each case that has some, and one for the hops of the
/// flows; and the number of those left out.
pub(super) fn plots(study: &Study<'_>) -> (Vec<Plot>, usize) {
    let settings = grouped(study.document.runs.iter().map(|run| (study.setting(&run.parameters), run)));
    let mut maps: Vec<(Keys, &Run, &ShipMap)> = Vec::new();
    for ((case, choice), runs) in &settings {
        let Some(run) = runs.iter().find(|run| !run.maps.is_empty()) else { continue };
        let mut keys = Vec::new();
        if study.cases.len() > 1 {
            keys.push(("case", study.case_label(case)));
        }
        if !choice.is_empty() {
            keys.push(("protocol", study.choice_label(choice)));
        }
        for map in run.maps.iter().filter(|map| !map.ships.is_empty()) {
            let own = (run.maps.len() > 1).then(|| ("map", clipped(&map.link, 400.0, 13.0)));
            maps.push((keys.iter().cloned().chain(own).collect(), run, map));
        }
    }
    let moments = |map: &ShipMap| map.moments.iter().filter(|moment| is_moment(moment)).count();
    let all: usize = maps.iter().map(|(.., map)| moments(map)).sum();
    maps.truncate(MAX_MAPS);
    let most = MAX_FRAMES / maps.len().max(1);
    let plots: Vec<Plot> = maps.iter().flat_map(|(keys, run, map)| plots_of(keys, run, map, most)).collect();
    let frames = plots.iter().filter(|plot| plot.keys.iter().any(|(name, _)| *name == TIME)).count();
    (plots, all.saturating_sub(frames))
}

/// The pictures of one map.
fn plots_of(keys: &[(&'static str, String)], run: &Run, map: &ShipMap, most: usize) -> Vec<Plot> {
    let fleet = Fleet::of(map);
    let all: Vec<&ShipMoment> = map.moments.iter().filter(|moment| is_moment(moment)).collect();
    let mut moments: Vec<&ShipMoment> =
        evenly(all.len(), most).filter_map(|place| all.get(place)).copied().collect();
    // Without any moment the tracks are there to see.
    let end = ShipMoment { at_s: fleet.last_time().clamp(0.0, LATEST), ..ShipMoment::default() };
    if moments.is_empty() {
        moments.push(&end);
    }
    let sheet = Sheet::of(map, fleet, &moments);
    let is_whole = moments.iter().all(|moment| moment.at_s.fract() == 0.0);
    let name = format!("{} {}", map.link, describe(keys));
    let name: String = slug(&name).chars().take(40).collect();
    let mut plots = Vec::new();
    for moment in &moments {
        let at = moment.at_s;
        let time = if is_whole { format!("{at:04.0}s") } else { format!("{at:06.1}s") };
        let frame = sheet.frame(moment);
        let mut keys = keys.to_vec();
        if moments.len() > 1 {
            keys.push((TIME, seconds(at)));
        }
        let paint = |size: Size| frame.paint(size);
        plots.push(Plot::new(
            Section::Map,
            &format!("map {name} {time}"),
            frame.caption.clone(),
            keys,
            paint,
        ));
    }
    if let Some(strip) = Strip::of(map, run, sheet.flows()) {
        let stem = format!("hops {name}");
        let paint = |size: Size| strip.paint(size);
        plots.push(Plot::new(Section::Map, &stem, strip.caption.clone(), keys.to_vec(), paint));
    }
    plots
}

/// Those of the pictures of maps that have room on a page of `limit` bytes: of each map the same share of its moments,
/// evenly chosen, with the first and the last. At least one is left.
pub(crate) fn fitting<'p>(all: &[&'p Plot], limit: usize) -> Vec<&'p Plot> {
    let bytes = |plot: &&Plot| plot.inline(Size::Wide).len() + plot.inline(Size::Narrow).len();
    let is_frame = |plot: &&Plot| plot.keys.iter().any(|(name, _)| *name == TIME);
    // The moments of each map, by their places among all pictures.
    let mut films: BTreeMap<Vec<&(&str, String)>, Vec<usize>> = BTreeMap::new();
    for (place, plot) in all.iter().enumerate().filter(|(_, plot)| is_frame(plot)) {
        let keys = plot.keys.iter().filter(|(name, _)| *name != TIME).collect();
        films.entry(keys).or_default().push(place);
    }
    let longest = films.values().map(Vec::len).max().unwrap_or(0);
    for most in (1..=longest).rev() {
        let kept: Vec<usize> = films
            .values()
            .flat_map(|film| evenly(film.len(), most).filter_map(|turn| film.get(turn)))
            .copied()
            .collect();
        let chosen: Vec<&Plot> = all
            .iter()
            .enumerate()
            .filter(|(place, plot)| !is_frame(plot) || kept.contains(place))
            .map(|(_, plot)| *plot)
            .collect();
        if chosen.iter().map(bytes).sum::<usize>() <= limit {
            return chosen;
        }
    }
    let mut left = limit;
    let fits = |plot: &&&Plot| {
        let size = bytes(plot);
        let has_room = size <= left;
        left = left.saturating_sub(size);
        has_room
    };
    all.iter().take(1).chain(all.iter().skip(1).take_while(fits)).copied().collect()
}

/// Whether a moment is at a time that a run may have.
fn is_moment(moment: &ShipMoment) -> bool {
    moment.at_s.abs() <= LATEST
}

/// `30 s`, or `1.667 s` of the sixth part of 10 s.
fn seconds(at: f64) -> String {
    format!("{} s", plain((at * 1000.0).round() / 1000.0))
}
