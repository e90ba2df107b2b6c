//! Datagrams to groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hopcast_core::{Bytes, Duration, Instant};
use hopcast_stack::hosts_datagrams;
use hopcast_stack::network::{NetworkPlan, NodeId};
use hopcast_trace::Log;

use super::why::{followed, recorded};
use super::{Check, Findings, SETTLING, Stage, TRIES, bounded};
use crate::WorldError;
use crate::monitor::Monitor;
use crate::scenario::model::{App, Flow, FlowId, GroupId, Measure, Reporting, Scenario, SendSpan};
use crate::world::World;

/// Payload of a datagram, in bytes: room for a unit's number and time, which each begins with.
const SIZE: u64 = 64;
/// Time from one datagram to the next. Chosen: slow links keep up with a group's copies.
const EVERY: Duration = Duration::from_millis(100);
/// Time from one look at the members to the next, in which the last datagrams may arrive too.
const STEP: Duration = Duration::from_secs(4);
/// Time for which datagrams are followed where some do not arrive.
const FOLLOWED: Duration = Duration::from_secs(2);

/// Maximum number of senders to groups that are checked. Chosen: each takes a world of its own, which is a second in a
/// network of thousands of hosts.
const MAX_SENDERS: usize = 64;

/// Checks each group from each node that a flow to it is from.
pub(super) fn check(scenario: &Scenario, at: Instant, findings: &mut Findings) -> Result<(), WorldError> {
    let mut unasked = BTreeSet::new();
    for flow in flows(scenario, at, findings) {
        check_group(scenario, at, flow, &mut unasked, findings)?;
    }
    Ok(())
}

/// Flows of datagrams to each group from each node that a flow to it is from, which begin once services have found each
/// other.
pub(super) fn flows(scenario: &Scenario, at: Instant, findings: &mut Findings) -> Vec<Flow> {
    let mut senders: Vec<(GroupId, FlowId)> = Vec::new();
    let mut known = BTreeSet::new();
    for (number, flow) in scenario.flows.iter().enumerate() {
        if let Some(group) = flow.group.filter(|&group| known.insert((group, flow.from, flow.ipv6))) {
            senders.push((group, number));
        }
    }
    senders.sort_by_key(|&(group, _)| group);
    let mut sent_to = senders.iter().map(|&(group, _)| group).collect::<BTreeSet<_>>();
    for (number, group) in scenario.groups.iter().enumerate() {
        if sent_to.insert(number) {
            findings.left_out.push(format!("groups: {}: no flow sends to it", group.name));
        }
    }
    let count = senders.len();
    let mut flows = Vec::new();
    for (_, flow) in bounded(senders, (count, MAX_SENDERS), Stage::Groups, findings) {
        let flow = &scenario.flows[flow];
        if flow.to.is_empty() {
            findings.left_out.push(format!("groups: {}: it has no members", name(scenario, flow)));
            continue;
        }
        let span = SendSpan { start: Some(at + SETTLING), stop: None };
        let app = App::Messages { size: Bytes::new(SIZE), every: EVERY, span };
        flows.push(Flow { app, over: vec![hosts_datagrams()], paths: 1, ..flow.clone() });
    }
    flows
}

/// The name of a flow's group; the flow's own where its group has none.
fn name<'s>(scenario: &'s Scenario, flow: &'s Flow) -> &'s str {
    let group = flow.group.map(|group| &*scenario.groups[group].name).filter(|name| !name.is_empty());
    group.unwrap_or(&flow.name)
}

/// The check of whether datagrams of a flow reach this member of its group.
pub(super) fn check_of(scenario: &Scenario, flow: &Flow, member: NodeId) -> Check {
    let address = flow.group.map(|group| scenario.groups[group].address(flow.ipv6));
    let address = address.map(|address| format!(", {address}")).unwrap_or_default();
    Check {
        stage: Stage::Groups,
        from: scenario.nodes[flow.from].name.clone(),
        to: scenario.nodes[member].name.clone(),
        over: format!("{}{address}", name(scenario, flow)),
        passed: false,
        sent: 0,
        answered_ms: None,
        reasons: Vec::new(),
    }
}

fn check_group(
    scenario: &Scenario,
    at: Instant,
    flow: Flow,
    known: &mut BTreeSet<(String, String)>,
    findings: &mut Findings,
) -> Result<(), WorldError> {
    let start = at + SETTLING;
    let end = start + EVERY * TRIES;
    let duration = end.since(Instant::ZERO);
    let measure = Measure { from: Instant::ZERO, to: end, interval: duration };
    let one = Arc::new(Scenario { flows: vec![flow.clone()], duration, measure, ..scenario.clone() });
    let mut world = World::new(one.clone(), 0, None)?;
    world.run_until(start, &Monitor::default());
    // Of each member, in the order of the flow's receivers.
    let mut has_some = vec![false; flow.to.len()];
    while world.now() < end && has_some.contains(&false) {
        world.run_until(end.min(world.now() + STEP), &Monitor::default());
        let receivers = &world.snapshot().flows[0].receivers;
        has_some = receivers.iter().map(|receiver| receiver.delivered_units > 0).collect();
    }
    let reasons = if has_some.contains(&false) { why(&one, start)? } else { Vec::new() };
    let sent = world.now().since(start).as_nanos() / EVERY.as_nanos();
    findings.checks.extend(flow.to.iter().zip(has_some).map(|(&member, passed)| Check {
        passed,
        sent,
        reasons: if passed { Vec::new() } else { reasons.clone() },
        ..check_of(scenario, &flow, member)
    }));
    // Several senders meet the same bridges.
    let is_new = |check: &Check| known.insert((check.from.clone(), check.over.clone()));
    findings.checks.extend(unasked(&one, |node| world.service_counters(node)).into_iter().filter(is_new));
    Ok(())
}

/// What becomes of the datagrams to a group, in a world of their own.
fn why(scenario: &Arc<Scenario>, start: Instant) -> Result<Vec<String>, WorldError> {
    let mut world = World::new(scenario.clone(), 0, None)?;
    let log = recorded(&mut world, |world| _ = world.run_until(start + FOLLOWED, &Monitor::default()));
    Ok(log.map(|log| lines(scenario, &scenario.flows[0], &log)).unwrap_or_default())
}

/// The fate of the datagrams of a flow to a group, in a log.
pub(super) fn lines(scenario: &Scenario, flow: &Flow, log: &Log) -> Vec<String> {
    let Some(group) = flow.group else { return Vec::new() };
    let source = NetworkPlan::of(scenario.network()).address(flow.from, flow.ipv6);
    let query = format!("udp from {source} to {}", scenario.groups[group].address(flow.ipv6));
    let mut lines = followed(log, &query).lines;
    if lines.is_empty() {
        lines.push("no copy was sent towards it".to_owned());
    }
    lines
}

/// A check that fails for each bridge that listens for members where nobody asks for them: it sends what is for groups
/// to all of its ports.
pub(super) fn unasked(scenario: &Scenario, counters: impl Fn(NodeId) -> BTreeMap<String, u64>) -> Vec<Check> {
    if scenario.membership == Reporting::Plan {
        return Vec::new();
    }
    let mut checks = Vec::new();
    for (node, spec) in scenario.nodes.iter().enumerate() {
        let counters = counters(node);
        for name in counters.keys().filter_map(|name| name.strip_suffix(".queries_heard")) {
            let value = |counter: &str| counters.get(&format!("{name}.{counter}")).copied().unwrap_or(0);
            if value("reports") > 0 && value("queries") + value("queries_heard") == 0 {
                checks.push(Check {
                    stage: Stage::Groups,
                    from: spec.name.clone(),
                    to: spec.name.clone(),
                    over: format!("bridge {name}"),
                    passed: false,
                    sent: 0,
                    answered_ms: None,
                    reasons: vec![format!(
                        "no querier: {} hears reports of members and no queries, so that packets to groups go to all of its ports",
                        spec.name
                    )],
                });
            }
        }
    }
    checks
}
