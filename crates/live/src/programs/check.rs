//! Checks of a scenario's programs, before anything is made.

use std::collections::BTreeMap;
use std::fs;

use hopcast_core::Instant;
use hopcast_twin::scenario::model::{Action, CopyProgram, Flow, FlowId, NodeId, Program, Scenario, Socket};

use super::error::{CongestionConflict, Error};
use super::run::{program_of, span};
use super::{built_program, find, needed_by};

/// Checks a scenario's programs before anything is made.
///
/// # Errors
/// A program that is not installed, one that would have to start twice, or two that need different settings of one
/// node.
pub(crate) fn check(scenario: &Scenario) -> Result<(), Error> {
    for (number, flow) in scenario.flows.iter().enumerate() {
        if let Some(missing) = needed_by(flow).into_iter().find(|program| find(program).is_none()) {
            return Err(Error::FlowNeeds { flow: flow.name.clone(), program: missing });
        }
        if let Some(Program::GroupFile(file)) = program_of(flow)
            && let Some(program) = built_program(file.with)
            && !program.has_library()
        {
            return Err(program.no_library());
        }
        if program_of(flow).is_some() && starts_again(scenario, number) {
            return Err(Error::StartsAgain(flow.name.clone()));
        }
    }
    agree_on_congestion(scenario)
}

/// Checks the programs that use their node's congestion control: a node has one, which the kernel must allow in a
/// namespace.
fn agree_on_congestion(scenario: &Scenario) -> Result<(), Error> {
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap_or_default();
    let mut chosen: BTreeMap<NodeId, (&'static str, &Flow, &'static str)> = BTreeMap::new();
    for flow in &scenario.flows {
        let program = match program_of(flow) {
            Some(Program::Nuttcp(_)) => "nuttcp",
            Some(Program::Copy(copy)) if copy.with == CopyProgram::Nc => "nc",
            _ => continue,
        };
        let Some(Socket::Tcp { congestion: Some(congestion) }) = flow.socket() else { continue };
        let better = |program: &str| if program == "nc" { "socat" } else { "iperf3" };
        if !allowed.is_empty() && !allowed.split_whitespace().any(|name| name == congestion) {
            return Err(Error::CongestionNotAllowed {
                flow: flow.name.clone(),
                program,
                congestion,
                allowed: allowed.trim().to_owned(),
                instead: better(program),
            });
        }
        for node in [flow.from, flow.to[0]] {
            let (other, first, its) = *chosen.entry(node).or_insert((congestion, flow, program));
            if other != congestion {
                return Err(Error::CongestionConflict(Box::new(CongestionConflict {
                    flows: [first.name.clone(), flow.name.clone()],
                    program: its,
                    node: scenario.nodes[node].name.clone(),
                    congestion: [other, congestion],
                    instead: better(its),
                })));
            }
        }
    }
    Ok(())
}

/// Whether a flow's application starts after it has stopped.
fn starts_again(scenario: &Scenario, number: FlowId) -> bool {
    let end = Instant::ZERO + scenario.duration;
    let Some((_, stop)) = span(scenario, number) else { return false };
    let starts = scenario.events.iter().filter(|event| event.action == Action::Start(number));
    let mut starts = starts.map(|event| event.at).chain(scenario.flows[number].app.span().start);
    starts.any(|at| at >= stop && at < end)
}
