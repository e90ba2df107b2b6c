//! Nodes and links of a mesh, of the kernel's nodes and of ours alike.

use std::fmt::Write;

use hopcast_core::Stream;
use hopcast_mesh::MeshInterface;
use hopcast_wire::ethernet::Mac;

/// Interval of originator messages where the kernel's nodes are compared with ours, in milliseconds. Not the default:
/// the guest's timers of more than 640 ms end at multiples of 80 ms, so that an interval of 1 s is 1.04 s there, and
/// all nodes send in step.
pub(crate) const INTERVAL: u64 = 500;
/// Mean time between the starts of two of the kernel's nodes, in microseconds.
const MEAN_GAP: u64 = 500_000;

/// Nodes and the links between them. A node has one interface for each of its links, in their order, and the first is
/// its primary one.
pub(crate) struct Topology {
    /// One letter, by which the devices of this mesh differ from those of others.
    pub(crate) name: char,
    pub(crate) nodes: usize,
    pub(crate) links: Vec<(usize, usize)>,
}

impl Topology {
    pub(crate) fn new(name: char, nodes: usize, links: &[(usize, usize)]) -> Self {
        Self { name, nodes, links: links.to_vec() }
    }

    /// Nodes in a row.
    pub(crate) fn chain(name: char, nodes: usize) -> Self {
        Self { name, nodes, links: (1..nodes).map(|node| (node - 1, node)).collect() }
    }

    /// Nodes in a square, each with those right, left, above and below.
    pub(crate) fn grid(name: char, side: usize) -> Self {
        let right = (0..side * side).filter(|node| node % side + 1 < side).map(|node| (node, node + 1));
        let below = (0..side * (side - 1)).map(|node| (node, node + side));
        Self { name, nodes: side * side, links: right.chain(below).collect() }
    }

    /// The other ends of a node's links, in the order of its interfaces.
    pub(crate) fn peers(&self, node: usize) -> impl Iterator<Item = usize> {
        self.links.iter().filter_map(move |&(a, b)| match node {
            _ if node == a => Some(b),
            _ if node == b => Some(a),
            _ => None,
        })
    }

    /// Number of a node's interface to another.
    pub(crate) fn interface(&self, node: usize, peer: usize) -> Option<usize> {
        self.peers(node).position(|other| other == peer)
    }

    /// Address of a node's interface.
    pub(crate) const fn mac(&self, node: usize, interface: usize) -> Mac {
        [0x02, 0, self.name as u8, 0, node as u8, interface as u8]
    }

    /// Address of what a node's mesh makes, `bat0` in Linux.
    pub(crate) const fn host(&self, node: usize) -> Mac {
        [0x06, 0, self.name as u8, 0, 0, node as u8]
    }

    /// The node whose primary interface this is.
    pub(crate) fn node(&self, address: Mac) -> Option<usize> {
        (0..self.nodes).find(|&node| self.mac(node, 0) == address)
    }

    pub(crate) fn interfaces(&self, node: usize) -> Vec<MeshInterface> {
        let interfaces = 0..self.peers(node).count();
        interfaces
            .map(|number| MeshInterface { mac: self.mac(node, number), wireless: false, throughput: None })
            .collect()
    }

    /// Name of the kernel's device that is a node's interface to another.
    pub(crate) fn device(&self, node: usize, peer: usize) -> String {
        format!("{}{node}-{peer}", self.name)
    }

    /// A script that makes all of it of the kernel's nodes, in one network namespace, one node after another in random
    /// time: the kernel's intervals stay in step with each other for as long as they run, by however much they are
    /// apart at first. Bridge-loop avoidance and the ARP table are off.
    pub(crate) fn script(&self, random: &mut Stream) -> String {
        let name = self.name;
        let mut script = String::from("ip -batch - <<'end'\n");
        for &(a, b) in &self.links {
            let end = |node, peer| {
                let interface = self.interface(node, peer).unwrap();
                format!("{} address {}", self.device(node, peer), text(self.mac(node, interface)))
            };
            let _ = writeln!(script, "link add {} type veth peer name {}", end(a, b), end(b, a));
        }
        for node in 0..self.nodes {
            let host = text(self.host(node));
            let _ = writeln!(script, "link add {name}{node} address {host} type batadv");
        }
        script.push_str("end\n");
        for node in 0..self.nodes {
            let mesh = format!("{name}{node}");
            let _ = writeln!(
                script,
                "batctl meshif {mesh} bl 0; batctl meshif {mesh} dat 0; batctl meshif {mesh} orig_interval {INTERVAL}"
            );
            let _ = writeln!(script, "usleep {}\nip -batch - <<'end'", random.below(MEAN_GAP * 2));
            for device in self.peers(node).map(|peer| self.device(node, peer)) {
                let _ = writeln!(script, "link set {device} up\nlink set {device} master {mesh}");
            }
            let _ = writeln!(script, "link set {mesh} up\nend");
        }
        script
    }
}

/// An address as Linux writes it.
pub(crate) fn text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
