//! Connectivity checked in stages, from single links up to whole groups, of a network as it is at one instant.
//!
//! | stage | what is checked |
//! |---|---|
//! | links | that a small frame, and one of the link's MTU, gets from each end to the next |
//! | meshes | that each node of a mesh hears the messages of each other |
//! | neighbours | that hosts on a link find each other's Ethernet address and answer an echo request |
//! | VLANs | the same of the hosts of each VLAN |
//! | end to end | that the ends of each flow answer small and full echo requests, or those of all pairs of nodes |
//! | groups | that a datagram to each group reaches each member |
//!
//! A check asks again until something comes back, [`TRIES`] times at most: a link that loses much is not a fault. All
//! checks are in a world of their own without the scenario's traffic, one after the other, so that none disturbs
//! another. Hosts resolve their neighbours there, whatever the scenario says.

mod echoes;
mod groups;
mod links;
mod meshes;
mod on_kernel;
mod why;

use std::fmt;
use std::sync::Arc;

use hopcast_core::{Duration, Instant};
use hopcast_link::RadioModel;
use hopcast_radio::{Fleet, Motion, Ship, Track};
use hopcast_stack::group::Members;
use serde::Serialize;

pub use echoes::HostPair;
pub use links::LinkDirection;
pub use on_kernel::{KernelChecks, KernelResults};

use crate::WorldError;
use crate::scenario::model::{Action, LinkModel, Neighbours, NodeId, Scenario};

/// Maximum number of frames, requests or datagrams of a check. Chosen: of a path that loses 98 % of them, one gets
/// through in all but 3 of 10,000 checks; more takes longer where nothing does.
pub const TRIES: u64 = 400;

/// Time before the first request or datagram, in which services find each other. Chosen: queriers and routers have
/// heard each other by then, and learned who is a member.
pub const SETTLING: Duration = Duration::from_secs(10);

/// A stage of the checks, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Frames on each link.
    Links,
    /// Nodes of one mesh.
    Meshes,
    /// Hosts on one link.
    Neighbours,
    /// Hosts of one VLAN.
    Vlans,
    /// The ends of flows.
    EndToEnd,
    /// The members of groups.
    Groups,
}

/// The pairs of nodes that are checked end to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairs {
    /// The ends of flows.
    #[default]
    OfFlows,
    /// All, or as many as a report can hold, evenly chosen.
    All,
}

/// The findings of all stages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// The time in the scenario whose network was checked, in seconds.
    pub at_s: f64,
    /// The checks, by stage.
    pub checks: Vec<Check>,
    /// What was not checked and why, a line each.
    pub left_out: Vec<String>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Its stage.
    pub stage: Stage,
    /// The node that sends.
    pub from: String,
    /// The node that is to receive.
    pub to: String,
    /// The link, VLAN, addresses or group between them, and what is sent.
    pub over: String,
    /// Whether something arrived, an answer came back where one is due, and from one station alone.
    pub passed: bool,
    /// Number of frames, requests or datagrams that were sent; 0 of a check that needs none.
    pub sent: u64,
    /// Time from the first request to the first answer, in milliseconds; `None` without an answer.
    pub answered_ms: Option<f64>,
    /// What became of the frames or packets, of a check that did not pass: where they died and why, as
    /// [`hopcast_trace`] says it. Empty past the first few of a stage.
    pub reasons: Vec<String>,
}

impl Findings {
    /// The first check that did not pass.
    pub fn first_failure(&self) -> Option<&Check> {
        self.checks.iter().find(|check| !check.passed)
    }

    /// The number of checks of a stage that passed, and of all.
    pub fn of_stage(&self, stage: Stage) -> (usize, usize) {
        let all = self.checks.iter().filter(|check| check.stage == stage);
        (all.clone().filter(|check| check.passed).count(), all.count())
    }
}

impl Stage {
    /// All stages, in their order.
    pub const ALL: [Self; 6] =
        [Self::Links, Self::Meshes, Self::Neighbours, Self::Vlans, Self::EndToEnd, Self::Groups];
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Links => "links",
            Self::Meshes => "meshes",
            Self::Neighbours => "neighbours",
            Self::Vlans => "VLANs",
            Self::EndToEnd => "end to end",
            Self::Groups => "groups",
        })
    }
}

/// Checks the network of a scenario as it is at `at`, in virtual time.
///
/// # Errors
/// The scenario cannot be built as a world.
pub fn probe(scenario: &Scenario, at: Instant, pairs: Pairs) -> Result<Findings, WorldError> {
    let frozen = frozen(scenario, at);
    let mut findings = Findings { at_s: at.as_secs_f64(), checks: Vec::new(), left_out: Vec::new() };
    links::check(&frozen, at, &mut findings);
    meshes::check(&frozen, at, &mut findings)?;
    echoes::check(&frozen, at, pairs, &mut findings)?;
    groups::check(&frozen, at, &mut findings)?;
    Ok(findings)
}

/// At most `max` of these, of which there are `all`, evenly chosen; notes that some are left out.
fn bounded<T>(
    each: impl IntoIterator<Item = T>,
    (all, max): (usize, usize),
    stage: Stage,
    findings: &mut Findings,
) -> Vec<T> {
    let step = all.div_ceil(max).max(1);
    if step > 1 {
        let what = match stage {
            Stage::Links => "directions of links",
            Stage::Meshes | Stage::Neighbours | Stage::Vlans | Stage::EndToEnd => "pairs",
            Stage::Groups => "senders to groups",
        };
        findings.left_out.push(format!("{stage}: one of {step} {what} was checked"));
    }
    each.into_iter().step_by(step).collect()
}

/// Ships that stay where they are at `at`; those that are not there never are.
fn still(fleet: &Fleet, at: Instant) -> Fleet {
    let ship = |ship: &Arc<Ship>| {
        let motion = match ship.motion.at(at) {
            Some(fix) => Motion::along(Track::still(fix.position, fix.heading)),
            None => ship.motion.clone().leaving(Instant::ZERO),
        };
        Arc::new(Ship { motion, ..(**ship).clone() })
    };
    Fleet { ships: fleet.ships.iter().map(ship).collect(), ..fleet.clone() }
}

/// The scenario without its traffic, in which nothing happens after `at`.
fn frozen(scenario: &Scenario, at: Instant) -> Scenario {
    let mut frozen = scenario.clone();
    frozen.events.retain(|event| {
        let stays = match event.action {
            Action::Link { .. } | Action::Service { .. } => true,
            Action::Start(_)
            | Action::Stop(_)
            | Action::Restart(_)
            | Action::Join { .. }
            | Action::Leave { .. } => false,
        };
        stays && event.at <= at
    });
    for service in &mut frozen.services {
        service.changes.retain(|change| change.at <= at);
    }
    for group in &mut frozen.groups {
        let is_member = |node: &NodeId| group.member(*node).is_some_and(|member| member.is_member(at));
        let members: Vec<NodeId> = (0..scenario.nodes.len()).filter(is_member).collect();
        group.members = Members::always(&members);
    }
    for flow in &mut frozen.flows {
        if let Some(group) = flow.group {
            flow.to.retain(|&to| frozen.groups[group].member(to).is_some());
        }
    }
    for (link, fleet) in &mut frozen.fleets {
        *fleet = Arc::new(still(fleet, at));
        if let LinkModel::Medium(config) = &mut frozen.links[*link].model {
            config.radios = Some(RadioModel(fleet.clone()));
        }
    }
    frozen.neighbours = Neighbours::Resolve;
    frozen
}
