//! `disservice`: DisService, from one publisher to a subscriber or to a group, with peers that hold and bring on what
//! they hear.

mod options;
mod restart;
mod site;

use std::collections::VecDeque;

use hopcast_core::{Instant, Machine};
use hopcast_reliable::disservice::wire::DATA_OVERHEAD;
use hopcast_reliable::disservice::{Bodies, Config, Forwarding, Group, Peer, Policy, Replication};
use hopcast_reliable::{Join, MemberId, Subscription};

use self::options::{OPTIONS, read};
use self::restart::Restarting;
use crate::error::{BuildError, Cause};
use crate::group::Exchange;
use crate::network::NodeId;
use crate::platform::LowerPort;
use crate::transport::{End, Feedback, GroupService, PortKind, Ports, Row, Transport};

pub(super) static DISSERVICE: Row = Row {
    name: "disservice",
    about: "datagrams, whole messages, to one or a group, from any that holds them when the sender is gone (DisService)",
    offers: Ports(&[PortKind::Datagram, PortKind::Message]),
    groups: true,
    feedback: Feedback::EndToEnd,
    options: || OPTIONS.docs(&DisService::default()),
    read,
    ..Row::BASE
};

/// The settings of all members.
#[derive(Clone, Debug)]
struct DisService {
    policy: Policy,
    /// Bytes of a fragment, if fewer than fit the path.
    fragment: Option<u16>,
    /// Whether the settings begin with those that DisService is shipped with.
    is_shipped: bool,
    /// Names of the nodes that messages are brought to.
    targets: Vec<String>,
    subscription: Subscription,
    /// Bodies of messages, which the members of a flow have in common.
    bodies: Bodies,
}

impl Default for DisService {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            fragment: None,
            is_shipped: false,
            targets: Vec::new(),
            // What a subscriber has missed others still hold: that is what they are for.
            subscription: Subscription { join: Join::Everything, ..Subscription::default() },
            bodies: Bodies::default(),
        }
    }
}

/// Bytes of [`DATA_OVERHEAD`] that most packets lack: the publisher, where that is the sender (6), the lifetime (4),
/// and what varints of usual numbers are shorter than the longest (3, 2 and 3).
const RARE: usize = 18;
/// Bytes of the name of a flow's group of subscribers: its number, since every message bears it.
const TOPIC: usize = 2;

impl DisService {
    /// Bytes of a message's metadata: flags, length of the group's name, the name, and the history.
    const fn metadata(&self) -> usize {
        let history = if self.policy.history < 0x40 { 1 } else { 4 };
        1 + 1 + TOPIC + history
    }

    /// Bytes of coefficients in a repair.
    fn coefficients(&self) -> usize {
        if self.policy.is_coded { self.policy.chunk.into() } else { 0 }
    }

    /// Bytes of a message in a datagram of `room` bytes.
    fn fragment(&self, room: u16) -> u16 {
        let room = usize::from(room).saturating_sub(DATA_OVERHEAD + self.coefficients()) as u16;
        self.fragment.map_or(room, |asked| asked.min(room))
    }

    /// The settings of a network's members, with the numbers of the nodes that messages are brought to.
    fn policy(&self, end: &End<'_, '_>) -> Result<Policy, BuildError> {
        let mut policy = Policy { fragment: self.fragment(end.room()), ..self.policy.clone() };
        if let Replication::Targets(targets) = &mut policy.replication {
            let nodes = end.flow().network.nodes;
            for name in &self.targets {
                let Some(node) = nodes.iter().position(|node| node.name == *name) else {
                    let cause = format!("`targets`: there is no node `{name}`");
                    return Err(end.nodes.error(end.node, Cause::Settings(cause.into())));
                };
                targets.push(member(node).node);
            }
        }
        Ok(policy)
    }
}

impl Transport for DisService {
    fn overhead(&self, _: u64) -> u64 {
        (DATA_OVERHEAD + self.coefficients() + self.metadata()) as u64
    }

    fn repair_overhead(&self) -> u64 {
        (RARE + self.coefficients()) as u64
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let (flow, node) = (end.flow(), end.node);
        let (random, policy) = (end.random(), self.policy(end)?);
        // Of two members each sends to the other.
        let is_pair = flow.spec.group.is_none();
        let topic: Group = (flow.spec.number as u16).to_be_bytes()[..].into();
        // What stays on its link is sent on each of the node's, and heard of those on the same one alone.
        let is_of_link = flow.spec.group.is_some_and(|group| group.delivery.settings().is_of_link_scope());
        let links = if is_of_link { flow.plan.interfaces_of_host(node) } else { 1 };
        let subscribes = is_pair || flow.spec.to.contains(&node);
        let config = Config {
            member: member(node),
            local: end.ends.local,
            group: if is_pair { end.ends.remote } else { flow.source().remote },
            publishes_to: topic.clone(),
            subscriptions: subscribes.then_some((topic, self.subscription)).into_iter().collect(),
            unit_credit: end.depth == 0 && flow.is_granted() && !flow.peers.contains(&node),
            links,
            has_store: false,
            bodies: self.bodies.clone(),
            slack: flow.slack,
            overhead: flow.overhead(end.depth + 1) as u16,
            policy,
        };
        let restarts: VecDeque<Instant> = flow.restarts_of(node).collect();
        let machine: Box<dyn Machine> = if restarts.is_empty() {
            Box::new(Peer::new(config, random))
        } else {
            Box::new(Restarting::new(config, restarts, random))
        };
        end.attach("disservice", machine).map(Some)
    }

    fn keeps_over_restart(&self) -> bool {
        true
    }

    fn grants_datagrams(&self) -> bool {
        true
    }

    fn among_members(&self) -> Option<GroupService<'_>> {
        Some(GroupService::StoreAndForward(self))
    }

    fn exchange(&self) -> Exchange {
        let Policy { forwarding, replication, .. } = &self.policy;
        match (forwarding, replication) {
            (Forwarding::None, Replication::None) => Exchange::Mutual,
            _ => Exchange::HopByHop,
        }
    }
}

/// The identity of the member on a node.
fn member(node: NodeId) -> MemberId {
    MemberId { node: node as u32 + 1, run: 1 }
}
