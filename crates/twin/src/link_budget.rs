//! Link budgets of a scenario's ships.

use hopcast_core::{Instant, Seed};
use hopcast_radio::Budget;
use thiserror::Error;

use crate::scenario::did_you_mean;
use crate::scenario::model::{NodeId, Scenario};

/// The reason why there is no budget.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoBudget {
    /// No node has the name.
    #[error("there is no node `{name}`{hint}")]
    NoNode {
        /// The name.
        name: String,
        /// `: did you mean …?`, or nothing.
        hint: String,
    },
    /// One ship has no budget with itself.
    #[error("expected two ships, found `{0}` twice")]
    OneShip(String),
    /// No radio link has the name.
    #[error("there is no radio link `{name}`{hint}")]
    NoLink {
        /// The name.
        name: String,
        /// `: did you mean …?`, or nothing.
        hint: String,
    },
    /// The two are not on one radio link.
    #[error("`{0}` and `{1}` are not on one radio link")]
    NotLinked(String, String),
}

/// The budget between the nodes `a` and `b` at a time, in the first repeat: on the radio link of a name, or on the
/// first that has both.
///
/// # Errors
/// See [`NoBudget`].
pub fn link_budget(
    scenario: &Scenario,
    [a, b]: [&str; 2],
    link: Option<&str>,
    at: Instant,
) -> Result<Budget, NoBudget> {
    let node = |name: &str| -> Result<NodeId, NoBudget> {
        let found = scenario.nodes.iter().position(|node| node.name == name);
        found.ok_or_else(|| {
            let hint = did_you_mean(name, scenario.nodes.iter().map(|node| &*node.name));
            NoBudget::NoNode { name: name.to_owned(), hint }
        })
    };
    let ends = [node(a)?, node(b)?];
    if ends[0] == ends[1] {
        return Err(NoBudget::OneShip(a.to_owned()));
    }
    let links = || scenario.fleets.iter().map(|(link, fleet)| (&scenario.links[*link], fleet));
    if let Some(name) = link
        && links().all(|(link, _)| link.name != name)
    {
        let hint = did_you_mean(name, links().map(|(link, _)| &*link.name));
        return Err(NoBudget::NoLink { name: name.to_owned(), hint });
    }
    let mut named = links().filter(|(found, _)| link.is_none_or(|name| found.name == name));
    let both = named.find_map(|(link, fleet)| {
        let ship = |node: NodeId| link.ends.iter().position(|&end| end == node);
        Some((fleet, ship(ends[0])?, ship(ends[1])?))
    });
    let (fleet, a_ship, b_ship) = both.ok_or_else(|| NoBudget::NotLinked(a.to_owned(), b.to_owned()))?;
    Ok(fleet.link(a_ship, b_ship, &Seed::new(scenario.seed, 0)).at(at))
}
