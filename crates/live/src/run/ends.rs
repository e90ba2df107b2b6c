//! The addresses at which the programs of a flow find each other.

use hopcast_stack::network::NetworkPlan;
use hopcast_twin::scenario::model::{App, Flow, FlowId, NodeId, Program, Scenario};
use hopcast_twin::world::NodeInstance;

use super::error::Error;
use crate::programs::{self, Ends, GroupMember, SenderLink};

/// The ends of a flow, for each receiver of its program. A member of a group joins on the interface by which the
/// group's tree leads to it at the start of the run.
///
/// # Errors
/// A flow that cannot be built, and a member to which no tree leads from the sender.
pub(super) fn ends(scenario: &Scenario, flow: FlowId) -> Result<Vec<Ends>, Error> {
    let (from, to) = NodeInstance::ends_of_flow(scenario, flow).map_err(Error::Flow)?;
    let spec = &scenario.flows[flow];
    // The scenario language gives each program one receiver, or a group.
    let Some(first) = to.first() else { return Ok(Vec::new()) };
    let one = Ends { from: from.ip(), to: first.ip(), connect: first.ip(), port: first.port(), member: None };
    let Some(group) = spec.group.filter(|_| spec.is_program()).map(|group| &scenario.groups[group]) else {
        return Ok(vec![one]);
    };
    let address = group.address(spec.ipv6);
    let source = group.delivery.settings().is_of_one_source().then_some(one.from);
    let plan = NetworkPlan::of(scenario.network());
    let mut routes = scenario.global_routes(&plan);
    // The tree at the sender is that to the receivers of the flow.
    for &node in &spec.to {
        routes.change_member(node, address, source, true);
    }
    let leaves_by = routes.group_route(spec.from, one.from, address).map(|route| route.egress.to_vec());
    let sender = sender_link(scenario, &plan, spec, &leaves_by.unwrap_or_default())?;
    let of_member = |&node: &NodeId| {
        let route = routes.group_route(node, one.from, address);
        let Some(interface) = route.and_then(|route| route.ingress) else {
            let [from, member] = [spec.from, node].map(|node| scenario.nodes[node].name.clone());
            return Err(Error::NoTree { flow: spec.name.clone(), from, member });
        };
        let own = plan.addresses().first(node, spec.ipv6);
        let member = Some(GroupMember { interface, source, address: own, sender });
        Ok(Ends { to: address, connect: address, member, ..one })
    };
    spec.to.iter().map(of_member).collect()
}

/// The link by which a flow's packets to its group leave, by these interfaces of the sender. A program that sends
/// a file by one interface must have one, and a rate.
fn sender_link(
    scenario: &Scenario,
    plan: &NetworkPlan,
    flow: &Flow,
    leaves_by: &[u32],
) -> Result<SenderLink, programs::Error> {
    let interface = leaves_by.first().copied().unwrap_or_default();
    let direction = plan.interfaces(flow.from).get(interface as usize).map(|hop| {
        let direction = scenario.links[hop.link].direction(hop.attachment);
        (direction.rate, direction.mtu)
    });
    let (rate, mtu) = direction.unwrap_or_default();
    if let App::Program { program: Program::GroupFile(file), .. } = &flow.app {
        let (flow, program) = (flow.name.clone(), file.with.name());
        if leaves_by.len() != 1 {
            return Err(programs::Error::NotOneInterface { flow, program, found: leaves_by.len() });
        }
        if file.rate.or(rate).is_none() {
            return Err(programs::Error::NeedsRate { flow, program });
        }
    }
    Ok(SenderLink { interface, rate, mtu })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hopcast_runner::load_text;
    use hopcast_twin::scenario::Overrides;

    use super::*;

    /// A sender `s`, and a member `a` with an interface to another node before the one towards the sender.
    fn scenario(ip: &str) -> Scenario {
        let text = format!(
            "title: t\nduration: 3s\ntopology: {{ nodes: [s, a, b], links: [{{ between: [a, b], rate: 1 Mbit/s }}, \
             {{ between: [a, s], rate: 1 Mbit/s }}] }}\n\
             groups: [{{ name: film, members: [a, b], delivery: ip-multicast }}]\n\
             flows: [{{ name: f, from: s, to: film, over: udp, ip: {ip}, app: {{ iperf2: {{ rate: 100 kbit/s, size: 500 B }} }} }}]\n"
        );
        let plan = load_text(Path::new("t.yaml"), &text, &Overrides::default()).unwrap();
        Scenario::clone(&plan.cases[0].scenario)
    }

    #[test]
    fn a_member_joins_on_the_interface_that_the_tree_comes_by() {
        for ip in ["4", "6"] {
            let scenario = scenario(ip);
            let ends = ends(&scenario, 0).unwrap();
            let interfaces = ends.iter().map(|ends| ends.member.map(|member| member.interface));
            assert_eq!(interfaces.collect::<Vec<_>>(), [Some(1), Some(0)]);
            assert!(ends.iter().all(|ends| ends.to.is_multicast() && ends.to == ends.connect));
        }
    }

    #[test]
    fn a_member_that_no_tree_leads_to_is_an_error_and_joins_nowhere() {
        // Such a scenario is refused where it is read: only one that was put together otherwise is.
        let mut apart = scenario("4");
        apart.links.remove(0);
        let error = ends(&apart, 0).unwrap_err().to_string();
        assert_eq!(error, "flow `f`: no route leads from `s` to the member `b` of its group");
        // No tree leads to the sender itself.
        let mut to_itself = scenario("4");
        to_itself.flows[0].to.push(0);
        let error = ends(&to_itself, 0).unwrap_err().to_string();
        assert_eq!(error, "flow `f`: no route leads from `s` to the member `s` of its group");
    }
}
