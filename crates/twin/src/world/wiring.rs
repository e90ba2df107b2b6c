//! The network of a scenario as it is set up on real hosts: the same interfaces, addresses, link models and routes.

use std::net::IpAddr;

use hopcast_core::Seed;
use hopcast_link::{Attachment, Change, Link};

use super::cabling::Cabling;
use super::node::interface_name;
use super::routing::{Mac, Oracle, addresses_of};
use crate::scenario::model::{LinkId, NodeId, Scenario};

/// Which interface of which node is which attachment of which link, and where packets go.
pub struct Wiring {
    cabling: Cabling,
    oracle: Oracle,
    nodes: usize,
}

/// Where a node sends what is for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// For whom.
    pub to: NodeId,
    /// Out of this interface.
    pub interface: u32,
    /// To this neighbour.
    pub via: NodeId,
    /// The neighbour's Ethernet address there.
    pub mac: [u8; 6],
}

impl Wiring {
    /// The network as it is at the start.
    pub fn of(scenario: &Scenario) -> Self {
        let cabling = Cabling::new(scenario);
        let oracle = cabling.oracle(scenario);
        Self { cabling, oracle, nodes: scenario.nodes.len() }
    }

    /// For each attachment of a link, the node and its interface.
    pub fn ends(&self, link: LinkId) -> &[(NodeId, u32)] {
        &self.cabling.ends[link]
    }

    /// For each interface of a node, the link and the attachment.
    pub fn interfaces(&self, node: NodeId) -> &[(LinkId, Attachment)] {
        &self.cabling.interfaces[node]
    }

    /// The Ethernet address of an attachment.
    pub fn mac(link: LinkId, attachment: Attachment) -> Mac {
        Cabling::mac(link, attachment)
    }

    /// What a node's interface is called.
    pub fn interface_name(interface: u32) -> String {
        interface_name(interface)
    }

    /// A node's addresses, of IPv4 and of IPv6.
    pub fn addresses(node: NodeId) -> [IpAddr; 2] {
        addresses_of(node)
    }

    /// A link's model, with the random streams that it has in virtual time.
    pub fn model(&self, scenario: &Scenario, link: LinkId, repeat: u64) -> Box<dyn Link + Send> {
        self.cabling.model(scenario, link, Seed::new(scenario.seed, repeat))
    }

    /// A node's way to each node that it can reach now.
    pub fn ways(&mut self, node: NodeId) -> Vec<Way> {
        let others = (0..self.nodes).filter(|&to| to != node);
        let way = |to| {
            let edge = self.oracle.next_edge(node, to)?;
            Some(Way { to, interface: edge.interface, via: edge.to, mac: edge.mac })
        };
        others.filter_map(way).collect()
    }

    /// A link changes; true if ways may change with it.
    pub fn change(&mut self, link: LinkId, from: Option<Attachment>, change: &Change) -> bool {
        self.oracle.follow(link, from, change)
    }
}
