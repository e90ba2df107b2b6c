//! The construction of a flow: its applications at both ends, on the machines that its stack puts there.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::ops::Range;

use hopcast_core::{Instant, Pacer, Rate, Seed};
use hopcast_link::Change;
use hopcast_stack::flow::{FlowBuilder, PlacedFlow};
use hopcast_stack::network::{GlobalRoutes, Hop, NetworkPlan};
use hopcast_stack::transport::{Ends, FlowPlan, FlowSpec};
use hopcast_stack::{BuiltNodes, LowerPort};

use super::applications::client_ports;
use super::{RunningFlow, WorldError};
use crate::meter::Meters;
use crate::scenario::model::{Action, App, Event, Flow, FlowId, NodeId, Scenario};

/// A flow's plan with the data that its applications need.
pub(super) struct FlowApps<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) flow: &'a Flow,
    pub(super) number: FlowId,
    pub(super) plan: &'a FlowPlan<'a>,
    pub(super) seed: Seed,
    /// The rates of the first link over time, if it has any.
    pub(super) rates: Option<Vec<(Instant, Rate)>>,
    pub(super) meters: Meters,
    /// The nodes that are built.
    pub(super) built: Range<NodeId>,
}

/// Builds the ends of a flow into their nodes, and the machines between them, as far as the nodes are built here.
pub(super) fn build_flow(
    scenario: &Scenario,
    network_plan: &NetworkPlan,
    routes: &RefCell<GlobalRoutes>,
    seed: Seed,
    nodes: &mut BuiltNodes,
    number: FlowId,
) -> Result<RunningFlow, WorldError> {
    let flow = &scenario.flows[number];
    let mut plan = FlowPlan::of(scenario.network(), network_plan, routes, seed, spec(scenario, number))?;
    let on_kernel = nodes.is_on_kernel();
    if on_kernel {
        plan.slack = Pacer::KERNEL_SLACK;
    }
    let plan = &plan;
    let rates = plan.route.first().and_then(|&first| rates(scenario, first));
    let built = nodes.range();
    // Nodes between the ends have no meters.
    let has_end = std::iter::once(&flow.from).chain(&flow.to).any(|end| built.contains(end));
    let receivers = if has_end { &flow.to[..] } else { &[] };
    let meters = Meters::new(scenario, flow, receivers);
    let apps = FlowApps { scenario, flow, number, plan, seed, rates, meters, built };
    let source = plan.application_source();
    let (sender, applications) = if !has_end || flow.is_program() && on_kernel {
        // A program has sockets of its own.
        (None, receivers.iter().map(|_| None).collect())
    } else {
        let source = if on_kernel { plan.application_ends_on_kernel(source) } else { source };
        apps.applications(source)?
    };
    let mut builder = FlowBuilder::new(plan, nodes);
    let receivers = receivers.iter().zip(applications);
    let receivers = receivers.filter(|&(&to, _)| apps.built.contains(&to));
    let receivers = receivers.map(|(&to, app)| (to, app, plan.sink(to)));
    let sender = apps.built.contains(&flow.from).then_some((flow.from, sender, source));
    for (node, application, ends) in sender.into_iter().chain(receivers) {
        let mut lower = builder.put_stack(node, ends)?;
        if flow.is_ping() && !on_kernel {
            lower = put_echo(&mut builder, node, ends, lower)?;
        }
        if let (Some(application), Some(lower)) = (application, lower) {
            builder.nodes.attach("", node, application, lower);
        }
    }
    builder.put_between()?;
    let PlacedFlow { machines, joins, shown } = builder.finish();
    Ok(RunningFlow { meters: apps.meters, machines, joins, shown, frame: plan.longest_frame() })
}

/// Puts an echo's machine on an end of a flow, above the packets of its stack or host. Returns the port for messages,
/// which only the sender's end has.
fn put_echo(
    builder: &mut FlowBuilder<'_>,
    node: NodeId,
    ends: Ends,
    packets: Option<LowerPort>,
) -> Result<Option<LowerPort>, WorldError> {
    if node == builder.nodes.flow.spec.from {
        return Ok(Some(builder.put_ping(node, ends, packets)?));
    }
    if let Some(packets) = packets {
        builder.put_echo_responder(node, ends, packets);
    }
    Ok(None)
}

/// The addresses that a flow's application uses where hosts are real, at its sender and at each receiver.
pub(super) fn application_ends(
    scenario: &Scenario,
    network_plan: &NetworkPlan,
    routes: &RefCell<GlobalRoutes>,
    number: FlowId,
) -> Result<(SocketAddr, Vec<SocketAddr>), WorldError> {
    let seed = Seed::new(0, 0);
    let plan = FlowPlan::of(scenario.network(), network_plan, routes, seed, spec(scenario, number))?;
    let own = |to| plan.application_address_on_kernel(plan.sink(to));
    let receivers = scenario.flows[number].to.iter().map(|&to| own(to)).collect();
    Ok((plan.application_address_on_kernel(plan.source()), receivers))
}

/// The properties of a flow from which its stack is built.
pub(super) fn spec(scenario: &Scenario, number: FlowId) -> FlowSpec<'_> {
    let flow = &scenario.flows[number];
    FlowSpec {
        number,
        name: &flow.name,
        from: flow.from,
        to: &flow.to,
        group: flow.group.map(|group| &scenario.groups[group]),
        over: &flow.over,
        ipv6: flow.ipv6,
        paths: flow.paths,
        is_program: flow.is_program(),
        client_ports: client_ports(scenario, number),
        app_can_wait: matches!(flow.app, App::File { .. } | App::Bulk { .. })
            && !flow.on_stream()
            && !flow.on_messages(),
        restarts: scenario.events.iter().filter_map(restart).collect(),
    }
}

/// The node that begins anew by an event, and when.
fn restart(event: &Event) -> Option<(Instant, NodeId)> {
    match event.action {
        Action::Restart(node) => Some((event.at, node)),
        _ => None,
    }
}

/// The rates of one direction of a link, each with its start, in the order of time; `None` if it has no rate at some
/// time.
fn rates(scenario: &Scenario, hop: Hop) -> Option<Vec<(Instant, Rate)>> {
    let mut rates = vec![(Instant::ZERO, scenario.links[hop.link].direction(hop.attachment).rate?)];
    for event in &scenario.events {
        if let Action::Link { link, from, change: Change::Rate(rate) } = &event.action
            && *link == hop.link
            && from.is_none_or(|from| from == hop.attachment)
        {
            rates.push((event.at, (*rate)?));
        }
    }
    Some(rates)
}
