//! The world that a scenario needs, where it does not run in both.

use hopcast_link::Change;
use hopcast_stack::network::NetworkPlan;
use hopcast_stack::service::MulticastRole;
use hopcast_stack::table::Worlds;

use super::fits::MIN_IPV6_MTU;
use super::model::{Action, Event, Flow, Layer, NodeId, Scenario, ServiceSpec};

/// The reason why `scenario` runs only with `--live`, in one line with the place in the file; `None` if it runs in
/// virtual time too.
pub fn needs_live(scenario: &Scenario) -> Option<&str> {
    scenario.live_only.why()
}

/// The first option of a flow's transport that cannot be set in a live run, where the transport is the kernel's, in one
/// line; `None` if there is none.
pub fn needs_virtual_time(scenario: &Scenario) -> Option<String> {
    let in_virtual_time = |service: &&ServiceSpec| service.layer.row().worlds == Worlds::Virtual;
    if let Some(service) = scenario.services.iter().find(in_virtual_time) {
        let (name, run) = (&service.name, service.layer.row().name);
        return Some(format!("service `{name}`: `{run}` is for virtual time"));
    }
    // No selection of the kernel's takes out what its own programs send to groups.
    let is_designated =
        |service: &&ServiceSpec| service.layer.settings().multicast() == Some(MulticastRole::Designated);
    if let Some(service) = scenario.services.iter().find(is_designated) {
        let (name, run) = (&service.name, service.layer.row().name);
        return Some(format!("service `{name}`: `{run}` with `designated: on` is for virtual time"));
    }
    let of_flow = scenario.flows.iter().find_map(|flow| {
        let of = |layer: &Layer| Some((layer.settings().virtual_time_only()?, layer.row().name));
        let (option, transport) = flow.over.iter().find_map(of)?;
        Some(format!(
            "flow `{}`: the option `{option}` of `{transport}` is for virtual time: in a live run the kernel's own settings hold",
            flow.name
        ))
    });
    let of_event = |event: &Event| match event.action {
        Action::Link { link, change: Change::Mtu(mtu), .. } if mtu < MIN_IPV6_MTU => Some(format!(
            "the event at {}: an MTU of {mtu} on `{}` is below IPv6's {MIN_IPV6_MTU} and would take IPv6 with its \
             routes off the kernel's interfaces; it can be set in virtual time only",
            event.at, scenario.links[link].name
        )),
        _ => None,
    };
    let of_router = || scenario.flows.iter().find_map(|flow| end_that_routes(scenario, flow));
    of_flow
        .or_else(|| scenario.events.iter().find_map(of_event))
        .or_else(of_router)
        .or_else(|| beside_services(scenario))
}

/// What a kernel cannot do with the interfaces that services take, or make for it.
fn beside_services(scenario: &Scenario) -> Option<String> {
    /// Maximum length of an interface's name, in bytes: Linux' `IFNAMSIZ` without the zero at its end.
    const MAX_NAME: usize = 15;
    /// Names that a kernel, or a live run, has for something else.
    const RESERVED: [&str; 4] = ["lo", "all", "default", "groups"];
    if scenario.services.iter().all(|service| service.interfaces.is_empty()) {
        return None;
    }
    let plan = NetworkPlan::of(scenario.network());
    for (node, spec) in scenario.nodes.iter().enumerate() {
        let made = plan.host_interfaces(node).filter(|interface| interface.attachment.is_none());
        let unfit = |name: &&str| name.len() > MAX_NAME || RESERVED.contains(name);
        if let Some(name) = made.map(|interface| interface.name).find(unfit) {
            return Some(format!(
                "the interface `{name}` of `{}`: a kernel's has a name of at most {MAX_NAME} bytes, and none of {}; \
                 name the service otherwise",
                spec.name,
                RESERVED.join(", ")
            ));
        }
    }
    let is_plain = |node: NodeId| {
        let mut interfaces = (0..).zip(plan.host_interfaces(node));
        interfaces.all(|(number, interface)| interface.attachment == Some(number))
            && plan.interfaces_of_host(node) as usize == plan.interfaces(node).len()
    };
    let of_event = |event: &Event| match event.action {
        Action::Link { link, change: Change::Mtu(_), .. } => {
            let node = scenario.links[link].ends.iter().find(|&&node| !is_plain(node))?;
            let (link, node) = (&scenario.links[link].name, &scenario.nodes[*node].name);
            Some(format!(
                "the event at {}: the MTU of `{link}` can be changed in virtual time only, as services of `{node}` are \
                 attached to its interfaces",
                event.at
            ))
        }
        _ => None,
    };
    let of_program = |flow: &Flow| {
        let mut ends = std::iter::once(&flow.from).chain(&flow.to);
        let node =
            ends.find(|&&node| !is_plain(node)).filter(|_| flow.is_program() && flow.group.is_some())?;
        let (flow, node) = (&flow.name, &scenario.nodes[*node].name);
        Some(format!(
            "flow `{flow}`: services are attached to interfaces of its end `{node}`, where no program of a group can be"
        ))
    };
    let events = scenario.events.iter().find_map(of_event);
    events.or_else(|| scenario.flows.iter().find_map(of_program))
}

/// An end of a flow to a group whose trees services make, where such a service runs: live it does not see what its own
/// kernel sends and joins.
fn end_that_routes(scenario: &Scenario, flow: &Flow) -> Option<String> {
    let group = flow.group.map(|group| &scenario.groups[group])?;
    if !group.delivery.settings().is_left_to_services() {
        return None;
    }
    let routes = |service: &&ServiceSpec| service.layer.settings().multicast() == Some(MulticastRole::Routes);
    let mut services = scenario.services.iter().filter(routes);
    let (node, service) = services.find_map(|service| {
        let mut ends = std::iter::once(&flow.from).chain(&flow.to);
        Some((ends.find(|&end| service.on.contains(end))?, service))
    })?;
    let (name, node, run) = (&flow.name, &scenario.nodes[*node].name, service.layer.row().name);
    Some(format!(
        "flow `{name}`: its end `{node}` runs `{run}`, which in a live run does not see what its own kernel sends and joins; use another node behind it"
    ))
}
