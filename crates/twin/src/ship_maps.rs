//! Maps of ships: their tracks, and at some moments the links between them.

use std::sync::Arc;

use hopcast_core::{Duration, Instant, Rate, Seed};
use hopcast_radio::{Fleet, Position, RadioLinkState};

use crate::results::{FlowRoute, ShipLink, ShipMap, ShipMoment, ShipTrack};
use crate::scenario::model::{LinkId, Scenario};
use crate::scenario::usual_step;

/// Number of spans between the points of a track. Chosen: curves look smooth, and 200 ships take half a megabyte.
const SPANS: u64 = 100;
/// Maximum number of spans between the moments. Chosen: their pictures are looked at one after the other.
const MOMENTS: u64 = 8;
/// Maximum number of links at one moment. Chosen: the page draws no more, and a case has at most two megabytes of them.
const MAX_LINKS: usize = 3000;

/// Whether a repeat has maps: the first alone, since the others differ from it by shadowing at most.
pub(crate) const fn has_maps(repeat: u64) -> bool {
    repeat == 0
}

/// The moments at which maps show links.
pub(crate) fn moments(scenario: &Scenario) -> impl Iterator<Item = Instant> {
    let (duration, step) = (scenario.duration, usual_step(scenario.duration, MOMENTS));
    (0..=MOMENTS)
        .map(move |number| step * number)
        .take_while(move |&at| at <= duration)
        .map(|at| Instant::ZERO + at)
}

/// A map of each radio link of a scenario, in its first repeat and in no other, with the routes of flows at each moment
/// and on each radio link, where they are known.
pub(crate) fn ship_maps(
    scenario: &Scenario,
    repeat: u64,
    flow_routes: &[Vec<Vec<FlowRoute>>],
) -> Vec<ShipMap> {
    if !has_maps(repeat) {
        return Vec::new();
    }
    let seed = &Seed::new(scenario.seed, repeat);
    let map = |(number, (link, fleet)): (usize, &(LinkId, Arc<Fleet>))| {
        let first = fleet.ships.first().map(|ship| ship.motion.track().at(Instant::ZERO).position);
        let moment = |(place, at)| {
            let routes = flow_routes.get(place).and_then(|links: &Vec<_>| links.get(number)).cloned();
            ShipMoment { routes: routes.unwrap_or_default(), ..moment(fleet, at, seed) }
        };
        ShipMap {
            link: scenario.links[*link].name.clone(),
            degrees: matches!(first, Some(Position::Globe { .. })),
            rates_mbps: fleet.channel.rates.rows().iter().map(|row| mbps(row.rate)).collect(),
            ships: (0..fleet.ships.len()).map(|ship| track(fleet, ship, scenario.duration)).collect(),
            moments: moments(scenario).enumerate().map(moment).collect(),
        }
    };
    scenario.fleets.iter().enumerate().map(map).collect()
}

fn track(fleet: &Fleet, ship: usize, duration: Duration) -> ShipTrack {
    let ship = &fleet.ships[ship];
    let point = |number| {
        let at = share_of(duration, number, SPANS);
        let fix = ship.motion.at(at)?;
        let [x, y] = match fix.position {
            Position::Plane { x, y } => [x, y],
            Position::Globe { latitude, longitude } => [longitude, latitude],
        };
        Some([at.as_secs_f64(), x, y, fix.heading])
    };
    let mut points: Vec<[f64; 4]> = (0..=SPANS).filter_map(point).collect();
    let is_still = |point: &[f64; 4]| point[1..] == points[0][1..];
    if points.len() as u64 == SPANS + 1 && points.iter().all(is_still) {
        points.truncate(1);
    }
    ShipTrack { node: ship.name.to_string(), antennas: ship.radio.antennas().beams(), points }
}

fn moment(fleet: &Fleet, at: Instant, seed: &Seed) -> ShipMoment {
    let ships = fleet.ships.len();
    let pairs = (0..ships).flat_map(|a| (a + 1..ships).map(move |b| (a, b)));
    let link = |(a, b)| {
        let budget = fleet.link(a, b, seed).at(at);
        let (
            RadioLinkState::Up { signal: forward, rate: there, .. },
            RadioLinkState::Up { signal: back, rate: and_back, .. },
        ) = (budget.forward, budget.back)
        else {
            return None;
        };
        let signal_dbm = (forward.min(back) * 100.0).round() / 100.0;
        let rate_mbps = mbps(there.min(and_back));
        Some(ShipLink { ships: [a, b], signal_dbm, rate_mbps })
    };
    let mut links: Vec<ShipLink> = pairs.filter_map(link).collect();
    let left_out = links.len().saturating_sub(MAX_LINKS);
    if left_out > 0 {
        // The strongest stay.
        links.sort_by(|one, other| other.signal_dbm.total_cmp(&one.signal_dbm));
        links.truncate(MAX_LINKS);
    }
    ShipMoment { at_s: at.as_secs_f64(), links, left_out, routes: Vec::new() }
}

fn mbps(rate: Rate) -> f64 {
    rate.bits_per_sec() as f64 / 1e6
}

fn share_of(duration: Duration, number: u64, of: u64) -> Instant {
    let nanos = u128::from(duration.as_nanos()) * u128::from(number) / u128::from(of);
    Instant::ZERO + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
