//! The ways of flows on a map, and how each flow looks.

use std::collections::BTreeMap;

use hopcast_twin::results::{ShipMap, ShipMoment};

use super::fleet::Fleet;
use crate::plot::canvas::clipped;

/// Maximum number of ways that are drawn of one moment. Chosen: more cover the map.
const MAX_WAYS: usize = 200;
/// Maximum number of ships of a way. Chosen: no mesh has as many hops; longer ones are a loop.
const MAX_WAY: usize = 256;
/// Maximum number of ways that a caption tells.
const MAX_TOLD: usize = 6;
/// Lines of [`theme::look`](crate::plot::theme::look) for flows: five colours that are not those of links, each with
/// other dashes or far from the others in grey.
const LOOKS: [usize; 5] = [25, 19, 2, 28, 15];

/// The flows that have ways on a map, in the order of their first appearance.
pub(super) struct Flows<'m> {
    places: BTreeMap<&'m str, usize>,
    pub(super) names: Vec<&'m str>,
}

impl<'m> Flows<'m> {
    pub(super) fn of(map: &'m ShipMap) -> Self {
        let mut flows = Self { places: BTreeMap::new(), names: Vec::new() };
        for way in map.moments.iter().flat_map(|moment| &moment.routes) {
            let next = flows.names.len();
            if *flows.places.entry(way.flow.as_str()).or_insert(next) == next {
                flows.names.push(&way.flow);
            }
        }
        flows
    }

    /// The index of a flow.
    pub(super) fn place(&self, name: &str) -> usize {
        self.places.get(name).copied().unwrap_or_default()
    }

    /// The line of the flow with this index.
    pub(super) const fn look(flow: usize) -> usize {
        LOOKS[flow % LOOKS.len()]
    }
}

/// A way as it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route<'m> {
    pub(super) flow: &'m str,
    pub(super) ships: Vec<usize>,
    pub(super) arrives: bool,
}

/// The ways of a moment, each cut where the document names a ship that is none.
pub(super) fn routes<'m>(moment: &'m ShipMoment, ships: usize) -> Vec<Route<'m>> {
    let route = |way: &'m hopcast_twin::results::FlowRoute| {
        let mut known: Vec<usize> =
            way.ships.iter().take(MAX_WAY).copied().take_while(|ship| *ship < ships).collect();
        let arrives = way.arrives && known.len() == way.ships.len() && !known.is_empty();
        known.dedup();
        Route { flow: &way.flow, ships: known, arrives }
    };
    moment.routes.iter().take(MAX_WAYS).map(route).collect()
}

/// The ways of a moment for a caption: `bulk: n1, n3, n7 (2 hops).`
pub(super) fn words(routes: &[Route<'_>], fleet: &Fleet<'_>) -> String {
    let name =
        |ship: &usize| fleet.ships.get(*ship).map_or("?".into(), |ship| clipped(ship.name, 160.0, 13.0));
    let one = |route: &Route<'_>| {
        let flow = clipped(route.flow, 260.0, 13.0);
        let names: Vec<String> = route.ships.iter().map(name).collect();
        match (names.as_slice(), route.arrives) {
            ([], _) => format!(" {flow}: no route."),
            ([.., last], false) => format!(" {flow}: no route beyond {last}."),
            (names, true) => {
                let hops = names.len() - 1;
                let ending = if hops == 1 { "" } else { "s" };
                let names = match names {
                    [first, .., last] if names.len() > 12 => format!("{first} … {last}"),
                    _ => names.join(", "),
                };
                format!(" {flow}: {names} ({hops} hop{ending}).")
            }
        }
    };
    let mut words: String = routes.iter().take(MAX_TOLD).map(one).collect();
    if routes.len() > MAX_TOLD {
        words.push_str(&format!(" And {} further ways.", routes.len() - MAX_TOLD));
    }
    words
}

#[cfg(test)]
mod tests {
    use hopcast_twin::results::FlowRoute;

    use super::*;

    #[test]
    fn a_way_ends_at_a_ship_that_is_none() {
        let way = |ships: &[usize]| FlowRoute { flow: "f".into(), ships: ships.to_vec(), arrives: true };
        let ways = vec![way(&[0, 1, 2]), way(&[0, 9, 2]), way(&[]), way(&[1, 1, 2])];
        let moment = ShipMoment { routes: ways, ..ShipMoment::default() };
        let routes = routes(&moment, 3);
        let found: Vec<(&[usize], bool)> =
            routes.iter().map(|route| (&*route.ships, route.arrives)).collect();
        assert_eq!(found, [(&[0, 1, 2][..], true), (&[0], false), (&[], false), (&[1, 2], true)]);
    }
}
