//! Routes over all areas of a router, and what it says of each in the others (RFC 2328 sections 12.4.3 and 16.2).

use std::collections::BTreeMap;

use super::config::BACKBONE;
use super::database::Database;
use super::spf::{Hop, Reached};
use super::wire::{Advertisement, Content, Kind, MAX_METRIC};
use crate::prefixes::Prefix;

/// Prefixes that are attached to the router in an area, with their metrics.
pub(super) type Own = BTreeMap<Prefix, u32>;

/// The best route to a prefix. Smaller is better: routes within an area come before those between areas (section 16.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Best {
    /// Whether it leads by a border router to another area.
    pub(super) is_between_areas: bool,
    pub(super) cost: u32,
    /// The first step; `None` of what is attached to the router itself.
    pub(super) hop: Option<Hop>,
    /// The area of that step.
    pub(super) area: u32,
}

/// An area as routes are computed.
pub(super) struct Area<'a> {
    pub(super) database: &'a Database,
    pub(super) reached: BTreeMap<u32, Reached>,
    pub(super) own: &'a Own,
}

/// The best route to each prefix. A border router hears of other areas from the backbone alone, so that no news goes
/// round.
pub(super) fn best(areas: &BTreeMap<u32, Area<'_>>, joins_areas: bool) -> BTreeMap<Prefix, Best> {
    let mut found = BTreeMap::new();
    for (&number, area) in areas {
        for (&prefix, &metric) in area.own {
            let best = Best { is_between_areas: false, cost: metric, hop: None, area: number };
            consider(&mut found, prefix, best);
        }
        area.look_at(Kind::Prefixes, number, &mut found);
        if !joins_areas || number == BACKBONE {
            area.look_at(Kind::Summary, number, &mut found);
        }
    }
    found
}

/// Prefixes that a border router announces to an area: to the backbone those in the areas, to any other all outside of
/// it.
pub(super) fn summary(of: &BTreeMap<Prefix, Best>, to: u32, own: &Own) -> Own {
    let is_elsewhere = |best: &Best| best.area != to && (to != BACKBONE || !best.is_between_areas);
    let said = of.iter().filter(|(prefix, best)| is_elsewhere(best) && !own.contains_key(prefix));
    said.map(|(&prefix, best)| (prefix, best.cost)).collect()
}

impl Area<'_> {
    fn look_at(&self, kind: Kind, number: u32, found: &mut BTreeMap<Prefix, Best>) {
        for Advertisement { header, content } in self.database.of_kind(kind) {
            let Some(reached) = self.reached.get(&header.key.originator) else { continue };
            let Content::Prefixes(prefixes) = content else { continue };
            if kind == Kind::Summary && !reached.is_border {
                continue;
            }
            for reach in prefixes {
                let cost = reached.cost.saturating_add(reach.metric);
                if cost < MAX_METRIC {
                    let (is_between_areas, hop) = (kind == Kind::Summary, Some(reached.hop));
                    consider(found, reach.prefix, Best { is_between_areas, cost, hop, area: number });
                }
            }
        }
    }
}

fn consider(found: &mut BTreeMap<Prefix, Best>, prefix: Prefix, best: Best) {
    let known = found.entry(prefix).or_insert(best);
    *known = best.min(*known);
}
