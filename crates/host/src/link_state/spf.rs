//! Shortest paths in one area (RFC 2328 section 16.1).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::database::Database;
use super::wire::{Advertisement, Content, Kind, MAX_METRIC};

/// The first step of a path: the interface and the identifier of the neighbour there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hop {
    pub(super) interface: u32,
    pub(super) neighbour: u32,
}

/// A router that can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) cost: u32,
    pub(super) hop: Hop,
    /// Whether it joins areas.
    pub(super) is_border: bool,
}

/// The links of a router, by the router that each leads to: the lowest cost.
type Links = BTreeMap<u32, u32>;

/// The routers of an area that `own` reaches over the links to its neighbours, each with the cost and the interface.
///
/// A link counts if both of its ends announce it (section 16.1 (2) (b)), so that no router can claim one that the other
/// does not have; of `own` what it has itself, as soon as it has it or no more. Of equal paths the one over the first
/// interface wins, and there over the neighbour of the lowest identifier.
pub(super) fn paths(
    database: &Database,
    own: u32,
    neighbours: &BTreeMap<u32, (u32, u32)>,
) -> BTreeMap<u32, Reached> {
    let (all, borders) = links(database);
    let leads_back = |from: u32, to: u32| all.get(&from).is_some_and(|links| links.contains_key(&to));
    let (mut found, mut open) = (BTreeMap::new(), BinaryHeap::new());
    for (&neighbour, &(cost, interface)) in neighbours.iter().filter(|(to, _)| leads_back(**to, own)) {
        open.push(Reverse((cost, Hop { interface, neighbour }, neighbour)));
    }
    while let Some(Reverse((cost, hop, router))) = open.pop() {
        if router == own || found.contains_key(&router) {
            continue;
        }
        found.insert(router, Reached { cost, hop, is_border: borders.contains(&router) });
        for (&to, &more) in all.get(&router).into_iter().flatten() {
            let cost = cost.saturating_add(more);
            if cost < MAX_METRIC && !found.contains_key(&to) && leads_back(to, router) {
                open.push(Reverse((cost, hop, to)));
            }
        }
    }
    found
}

/// The links that routers announce, and those that say that they join areas.
fn links(database: &Database) -> (BTreeMap<u32, Links>, BTreeSet<u32>) {
    let (mut all, mut borders): (BTreeMap<u32, Links>, _) = (BTreeMap::new(), BTreeSet::new());
    for Advertisement { header, content } in database.of_kind(Kind::Links) {
        let Content::Links { is_border, links } = content else { continue };
        let known = all.entry(header.key.originator).or_default();
        for link in links {
            let cost = known.entry(link.to).or_insert(u32::MAX);
            *cost = (*cost).min(link.cost.into());
        }
        if *is_border {
            borders.insert(header.key.originator);
        }
    }
    (all, borders)
}

#[cfg(test)]
mod tests {
    use hopcast_core::Instant;

    use super::*;
    use crate::link_state::wire::{Key, Link};

    /// The routers that 1 reaches over its neighbour 2, where each has these links.
    fn reached(routers: &[(u32, &[(u32, u16)])]) -> Vec<(u32, u32)> {
        let mut database = Database::default();
        for &(originator, links) in routers {
            let key = Key { originator, kind: Kind::Links, fragment: 0 };
            let links = links.iter().map(|&(to, cost)| Link { to, cost }).collect();
            let content = Content::Links { is_border: false, links };
            database.install(Instant::ZERO, Advertisement::new(key, 1, 0, content), true);
        }
        let found = paths(&database, 1, &BTreeMap::from([(2, (10, 0))]));
        found.into_iter().map(|(router, reached)| (router, reached.cost)).collect()
    }

    #[test]
    fn a_link_that_only_one_of_its_ends_announces_is_none() {
        let far: &[(u32, u16)] = &[(3, 5)];
        let honest: [(u32, &[(u32, u16)]); 3] = [(2, &[(1, 7), (3, 5)]), (3, &[(2, 9), (4, 5)]), (4, far)];
        assert_eq!(reached(&honest), [(2, 10), (3, 15), (4, 20)]);
        // Router 2 says that it is joined to 4, which does not say so.
        let liar: [(u32, &[(u32, u16)]); 3] = [(2, &[(1, 7), (3, 5), (4, 1)]), honest[1], (4, far)];
        assert_eq!(reached(&liar), reached(&honest));
        assert_eq!(reached(&[(2, &[(3, 5)]), honest[1], honest[2]]), [], "it does not hear router 1");
    }
}
