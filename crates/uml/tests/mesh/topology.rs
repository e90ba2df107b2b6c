//! Nodes and links of a mesh, of the kernel's nodes and of ours alike.

use hopcast_mesh::MeshInterface;
use hopcast_wire::ethernet::Mac;

/// Nodes and the links between them. A node has one interface for each of its links, in their order, and the first is
/// its primary one.
pub(crate) struct Topology {
    /// One letter, by which the devices of this mesh differ from those of others.
    pub(crate) name: char,
    pub(crate) nodes: usize,
    pub(crate) links: Vec<(usize, usize)>,
}

impl Topology {
    /// Nodes in a row.
    pub(crate) fn chain(name: char, nodes: usize) -> Self {
        Self { name, nodes, links: (1..nodes).map(|node| (node - 1, node)).collect() }
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
}

/// An address as Linux writes it.
pub(crate) fn text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
