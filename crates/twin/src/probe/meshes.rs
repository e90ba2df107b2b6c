//! Nodes of meshes, which are to know each other.

use std::sync::Arc;

use hopcast_core::{Duration, Instant};
use hopcast_stack::network::{MacAddress, MeshNode, NetworkPlan};
use hopcast_stack::service::StatusCell;

use super::{Check, Findings, SETTLING, Stage, bounded};
use crate::WorldError;
use crate::monitor::Monitor;
use crate::scenario::model::Scenario;
use crate::world::World;

/// Time for which messages of the nodes are awaited. Chosen: with the usual interval of a second, thirty of each.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of pairs that are checked, and of those that fail that are listed.
const MAX_PAIRS: usize = 1000;

/// Checks that each node of a mesh hears messages of each other.
pub(super) fn check(scenario: &Scenario, at: Instant, findings: &mut Findings) -> Result<(), WorldError> {
    let meshes = NetworkPlan::of(scenario.network()).meshes();
    let of_mesh = |mesh: &Vec<MeshNode>| {
        let pair =
            |&from: &MeshNode| mesh.iter().filter(move |to| to.node != from.node).map(move |&to| (from, to));
        mesh.iter().flat_map(pair).collect::<Vec<_>>()
    };
    let pairs: Vec<(MeshNode, MeshNode)> = meshes.iter().flat_map(of_mesh).collect();
    if pairs.is_empty() {
        return Ok(());
    }
    let count = pairs.len();
    let pairs = bounded(pairs, (count, MAX_PAIRS), Stage::Meshes, findings);
    let mut world = World::new(Arc::new(Scenario { flows: Vec::new(), ..scenario.clone() }), 0, None)?;
    let mut heard = vec![None; pairs.len()];
    let end = at + SETTLING + PATIENCE;
    world.run_until(at, &Monitor::default());
    while world.now() < end && heard.contains(&None) {
        world.run_until(end.min(world.now() + SETTLING), &Monitor::default());
        for ((from, to), heard) in pairs.iter().zip(&mut heard).filter(|(_, heard)| heard.is_none()) {
            *heard = last_message(&world, *from, to.address).filter(|&seen| seen > at);
        }
    }
    let name = |node: &MeshNode| scenario.nodes[node.node].name.clone();
    findings.checks.extend(pairs.iter().zip(heard).map(|((from, to), heard)| Check {
        stage: Stage::Meshes,
        from: name(from),
        to: name(to),
        over: "its mesh".to_owned(),
        passed: heard.is_some(),
        sent: 0,
        answered_ms: None,
        reasons: match heard {
            Some(_) => Vec::new(),
            None => vec![format!(
                "no originator message of {} came in {} s",
                name(to),
                (end.since(at)).as_secs_f64()
            )],
        },
    }));
    Ok(())
}

/// The time of the last message of an originator that a node of a mesh knows a way to.
fn last_message(world: &World, at: MeshNode, originator: MacAddress) -> Option<Instant> {
    world.originators(&at)?.rows.iter().find_map(|row| match row.as_slice() {
        [StatusCell::Address(address), StatusCell::Time(seen), ..] if *address == originator => Some(*seen),
        _ => None,
    })
}
