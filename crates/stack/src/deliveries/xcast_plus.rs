//! `xcast-plus`: members join by MLD at their designated router, and lists have routers instead of receivers.

use std::collections::BTreeSet;

use hopcast_explicit::xcast::router::PlusConfig;
use hopcast_explicit::xcast::sender;

use crate::group::{Delivery, DeliveryMachines, DeliveryRow, GroupEnd, GroupReach, MemberMachine};
use crate::network::{NodeId, Segment};
use crate::service::{MulticastRole, ServiceLayer};
use crate::services::{MLD_QUERIER, xcast_router};
use crate::table::{Options, Worlds};

pub(super) static XCAST_PLUS: DeliveryRow = DeliveryRow {
    name: "xcast-plus",
    about: "Xcast+, IPv6: members join by MLD at a designated `xcast-router`, and packets between these list routers",
    worlds: Worlds::Virtual,
    options: Vec::new,
    read: |row, options| Options(&[]).delivery(row, options, XcastPlus),
};

/// No settings.
#[derive(Clone, Debug)]
struct XcastPlus;

impl Delivery for XcastPlus {
    fn is_of_one_source(&self) -> bool {
        true
    }

    fn is_left_to_services(&self) -> bool {
        true
    }

    fn refuses(&self, reach: &GroupReach<'_>) -> Option<String> {
        let because = if reach.flow.exchange.is_mutual() {
            "its members hear one source alone, and this transport's must hear each other".to_owned()
        } else if !reach.ipv6 {
            "it is a protocol of IPv6: add `ip: 6` to the flow".to_owned()
        } else {
            lacks(reach)?
        };
        Some(format!("`xcast-plus`: {because}"))
    }

    /// Bytes of the longest list, in a tunnel.
    fn overhead(&self) -> u64 {
        of_list(PlusConfig::default().max_list)
    }

    /// Bytes of a list of one router, in a tunnel: beside a long datagram lists are shorter.
    fn min_overhead(&self) -> u64 {
        of_list(1)
    }

    fn machines(&self, end: &GroupEnd<'_>) -> DeliveryMachines {
        DeliveryMachines::joining(MemberMachine::at(end, end.address(), Some(end.source)))
    }
}

/// Bytes that a list of this number of routers adds to a packet, in a tunnel.
fn of_list(max: usize) -> u64 {
    sender::Config { max, ..sender::Config::default() }.overhead() as u64
}

/// The designated router that a sender or a member lacks, as the end of a sentence.
fn lacks(reach: &GroupReach<'_>) -> Option<String> {
    let GroupReach { flow, network, .. } = *reach;
    let running = |is: fn(&ServiceLayer) -> bool| {
        let kinds = network.services.iter().filter(move |service| is(&service.layer));
        kinds.flat_map(|service| service.on.iter().copied()).collect::<BTreeSet<NodeId>>()
    };
    let designated = running(|layer| layer.settings().multicast() == Some(MulticastRole::Designated));
    if designated.is_empty() {
        return Some(
            "no router is a designated one: add `services: [{ run: xcast-router, designated: on, on: … }]`"
                .to_owned(),
        );
    }
    let name = |node: NodeId| &network.nodes[node].name;
    let sender = flow.sender;
    if running(|layer| layer.row().name == xcast_router::NAME).contains(&sender)
        && !designated.contains(&sender)
    {
        return Some(format!(
            "its sender `{}` runs `xcast-router`, and without `designated: on`",
            name(sender)
        ));
    }
    if !designated.contains(&sender) && !beside(reach, &designated).contains(&sender) {
        return Some(format!("its sender `{}` has no designated router on its links", name(sender)));
    }
    let asking = running(|layer| layer.row().name == MLD_QUERIER);
    let serving = beside(reach, &designated.intersection(&asking).copied().collect());
    let mut members = flow.group.members.iter().map(|member| member.node);
    let stray = members.find(|member| *member != sender && !serving.contains(member))?;
    Some(format!(
        "`{}` has no designated router on its links that runs `{MLD_QUERIER}`, by which it would hear of members",
        name(stray)
    ))
}

/// The nodes that share a link with one of these routers, other than themselves.
fn beside(reach: &GroupReach<'_>, routers: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
    let of_segment = |segment: &'_ Segment| {
        let nodes = segment.ends.iter().map(|end| end.node);
        let has_other = |node: &NodeId| nodes.clone().any(|other| other != *node && routers.contains(&other));
        nodes.clone().filter(has_other).collect::<Vec<_>>()
    };
    reach.segments.iter().flat_map(of_segment).collect()
}
