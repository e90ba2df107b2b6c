//! `one-hop`: a datagram to all hosts on each of the sender's links.

use crate::group::{
    Delivery, DeliveryMachines, DeliveryRow, EachInterface, Exchange, GroupEnd, GroupReach, MemberMachine,
};
use crate::network::NodeId;
use crate::table::{Options, Worlds};

pub(super) static ONE_HOP: DeliveryRow = DeliveryRow {
    name: "one-hop",
    about: "each datagram is sent once on each link of its sender, one hop far; farther on by transports that forward",
    worlds: Worlds::Both,
    options: Vec::new,
    read: |row, options| Options(&[]).delivery(row, options, OneHop),
};

/// No settings.
#[derive(Clone, Debug)]
struct OneHop;

impl Delivery for OneHop {
    fn is_of_link_scope(&self) -> bool {
        true
    }

    fn refuses(&self, reach: &GroupReach<'_>) -> Option<String> {
        let GroupReach { flow, network, segments, .. } = *reach;
        let is_neighbour = |node: NodeId| segments.joining(flow.sender, &[node]).is_some();
        let mut members = flow.group.members.iter().map(|member| member.node);
        let far = members.find(|&node| node != flow.sender && !is_neighbour(node))?;
        let [from, far] = [flow.sender, far].map(|node| &network.nodes[node].name);
        (flow.exchange != Exchange::HopByHop).then(|| {
            format!("`one-hop` reaches one hop, `{far}` is farther from `{from}`, and this transport does not forward")
        })
    }

    fn machines(&self, end: &GroupEnd<'_>) -> DeliveryMachines {
        let machines = DeliveryMachines::joining(MemberMachine::at(end, end.address(), None));
        match end.sends() {
            true => machines
                .sending("one-hop", EachInterface::new(end.address(), end.plan.interfaces_of_host(end.node))),
            false => machines,
        }
    }
}
