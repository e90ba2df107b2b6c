//! The world that a scenario needs, where it does not run in both.

use hopcast_link::Change;
use hopcast_stack::service::MulticastRole;
use hopcast_stack::table::Worlds;

use super::fits::MIN_IPV6_MTU;
use super::model::{Action, Event, Flow, Layer, Scenario, ServiceSpec};

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
    of_flow.or_else(|| scenario.events.iter().find_map(of_event)).or_else(of_router)
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
