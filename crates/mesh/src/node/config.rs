//! Settings of a node of a mesh.

use hopcast_core::Rate;
use hopcast_wire::ethernet::Mac;

use crate::gateway::GatewayConfig;
use crate::multicast::MulticastConfig;
use crate::routing::RoutingConfig;

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct MeshConfig {
    /// The interfaces below, which have the ports `Below(0)` onwards. The first is the primary one: its address is that
    /// of the node in the mesh.
    pub interfaces: Vec<MeshInterface>,
    /// Address of the interface above, which is announced as that of a client.
    pub mac: Mac,
    /// The routing algorithm, with its settings; default B.A.T.M.A.N. IV.
    pub routing: RoutingConfig,
    /// Settings of multicast.
    pub multicast: MulticastConfig,
    /// Whether the node is a gateway to other networks, or uses one.
    pub gateway: GatewayConfig,
    /// Whether the node takes part in the [distributed ARP table](crate::arp_table); default true. Without, all
    /// requests of its clients are flooded, and it keeps no entries for others.
    pub arp_table: bool,
    /// Whether the node [avoids loops](crate::bridge_loops) of the LAN that its interface above may be bridged to;
    /// default true. Without, a LAN with two nodes on it is given frames twice, and sends them back into the mesh;
    /// with, a node carries no broadcasts for half a minute after its start.
    pub bridge_loop_avoidance: bool,
    /// Whether packets that are too long for an interface are sent in fragments; default true. Without, they are
    /// dropped.
    pub fragmentation: bool,
    /// Maximum number of clients behind other nodes that are known, where one that several nodes announce counts
    /// several times; default 16,384, some 4 MB. Beyond, further ones are not reached.
    pub max_clients: usize,
    /// The same of clients behind one node; default 2048, more than fit one answer to a request.
    pub max_clients_of_node: usize,
}

impl MeshConfig {
    /// The kernel's defaults, for these interfaces.
    pub fn new(interfaces: Vec<MeshInterface>, mac: Mac) -> Self {
        Self {
            interfaces,
            mac,
            routing: RoutingConfig::default(),
            multicast: MulticastConfig::default(),
            gateway: GatewayConfig::default(),
            arp_table: true,
            bridge_loop_avoidance: true,
            fragmentation: true,
            max_clients: 16_384,
            max_clients_of_node: 2048,
        }
    }
}

/// An interface below a mesh.
#[derive(Clone, Copy, Debug)]
pub struct MeshInterface {
    /// Its address.
    pub mac: Mac,
    /// Whether it is a radio: broadcasts are sent three times there instead of once, and a path that enters and leaves
    /// by it is worth less.
    pub wireless: bool,
    /// Throughput to every neighbour there, for B.A.T.M.A.N. V: the speed of the link, or one that is chosen, as
    /// `batctl hardif throughput_override` sets it. Too high, slow links are preferred to fast ones. Default `None`: a
    /// third of the rate at which a radio's neighbour sends, and 1 Mbit/s if that is not known.
    pub throughput: Option<Rate>,
}
