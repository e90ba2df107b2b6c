//! Gateways to other networks: which nodes are one, and which of them this node uses.
//!
//! A gateway says in its messages how much it carries. A node in the mode [`Client`](GatewayMode::Client) chooses one,
//! and sends it alone what its clients ask DHCP servers: their addresses, and with them their default routes, are then
//! those of that gateway. All other frames go by the translation table. A node in any mode but
//! [`Off`](GatewayMode::Off) sends the answers of servers to the client alone.
//!
//! # The choice
//!
//! It follows the selection class (`batctl gw_mode client CLASS`). It is made anew when the gateway that is chosen has
//! gone, and when another one is better by enough:
//!
//! | algorithm | class | best is | better by enough |
//! |---|---|---|---|
//! | B.A.T.M.A.N. IV | 1 | the greatest square of the path's quality, times the bandwidth down | never |
//! | | 2 | the best quality | never |
//! | | 3 | the best quality | its quality is as good |
//! | | 4 to 255, default 20 | the best quality | its quality is better by the class |
//! | B.A.T.M.A.N. V | default 50 | the greatest throughput | its throughput is greater by the class |
//!
//! Throughput is that of the path or the bandwidth down, whichever is less, in units of 100 kbit/s.
//!
//! # Scope and departures
//!
//! - The answers of DHCPv6 servers are frames to one station already; the kernel looks for a client's address in those
//!   that are not, at the place where DHCP for IPv4 has it.

mod dhcp;

use std::collections::BTreeMap;

use hopcast_core::Rate;
use hopcast_wire::ethernet::Mac;

use crate::wire::tvlv::{self, Gateway};
pub(crate) use dhcp::{Dhcp, message};

/// Version of the container.
pub(crate) const VERSION: u8 = 1;
/// Unit of bandwidth, in bits a second.
const UNIT: u64 = 100_000;
/// Default classes of B.A.T.M.A.N. IV and V (`batadv_iv_init_sel_class`, `batadv_v_init_sel_class`).
const DEFAULT_CLASS: [u32; 2] = [20, 50];

/// Settings of gateways. The defaults are the kernel's.
#[derive(Clone, Debug, Default)]
pub struct GatewayConfig {
    /// Whether the node is a gateway, or uses one; default [`GatewayMode::Off`].
    pub mode: GatewayMode,
    /// Class by which a client chooses; see the [module's documentation](self). Less, and gateways are changed more
    /// often, each time of which the clients' connections end; more, and a gateway is kept whose path has become
    /// poor. Default `None`: 20 with B.A.T.M.A.N. IV, and 50 with V.
    pub selection_class: Option<u32>,
}

impl GatewayConfig {
    /// The class by which a client chooses unless it is set, of paths that have a throughput or a quality.
    pub const fn default_class(by_throughput: bool) -> u32 {
        DEFAULT_CLASS[by_throughput as usize]
    }
}

/// Whether a node is a gateway, or uses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GatewayMode {
    /// Neither: what is sent to DHCP servers is flooded.
    #[default]
    Off,
    /// It uses one.
    Client,
    /// It is one, of this bandwidth. What its own clients send to DHCP servers stays with it.
    Server {
        /// From the other network to the mesh. Below 100 kbit/s it is that.
        down: Rate,
        /// From the mesh to the other network. Below 100 kbit/s it is that.
        up: Rate,
    },
}

/// A gateway, as `batctl gwl` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayStatus {
    /// The node.
    pub node: Mac,
    /// Bandwidth from the other network to the mesh.
    pub down: Rate,
    /// Bandwidth from the mesh to the other network.
    pub up: Rate,
    /// Metric of the path, as in [`OriginatorStatus`](crate::OriginatorStatus); `None` without a route.
    pub metric: Option<u32>,
    /// Whether this node uses it.
    pub selected: bool,
}

/// The state of gateways in a node.
pub(crate) struct Gateways {
    mode: GatewayMode,
    class: u32,
    by_throughput: bool,
    /// The gateways among the originators that are known.
    known: BTreeMap<Mac, Gateway>,
    selected: Option<Mac>,
    /// Whether the choice is to be made anew.
    reselect: bool,
}

impl Gateways {
    /// No gateways yet. The metric of paths is throughput, or quality.
    pub(crate) fn new(config: &GatewayConfig, by_throughput: bool) -> Self {
        let class = config.selection_class.unwrap_or(GatewayConfig::default_class(by_throughput));
        let (known, selected) = (BTreeMap::new(), None);
        Self { mode: config.mode, class, by_throughput, known, selected, reselect: false }
    }

    pub(crate) const fn mode(&self) -> GatewayMode {
        self.mode
    }

    /// The node's own container.
    pub(crate) fn container(&self) -> Option<[u8; 8]> {
        let GatewayMode::Server { down, up } = self.mode else { return None };
        let units = |rate: Rate| u32::try_from(rate.bits_per_sec() / UNIT).unwrap_or(u32::MAX).max(1);
        Some(Gateway { down: units(down), up: units(up) }.bytes())
    }

    /// Takes an originator's containers.
    pub(crate) fn hear(&mut self, node: Mac, containers: &[u8], metric: impl Fn(Mac) -> Option<u32>) {
        let found = tvlv::values(containers, tvlv::GATEWAY, VERSION)
            .find_map(|value| Gateway::parse(value).ok())
            .filter(|gateway| gateway.down > 0 && gateway.up > 0);
        let Some(gateway) = found else { return self.forget(node) };
        self.known.insert(node, gateway);
        self.reselect |= match self.selected {
            None => true,
            Some(selected) => selected != node && self.is_better(selected, node, metric),
        };
    }

    /// Forgets a gateway that is none any more.
    pub(crate) fn forget(&mut self, node: Mac) {
        if self.known.remove(&node).is_some() {
            self.reselect |= self.selected == Some(node);
        }
    }

    /// Chooses a gateway, if a client has none or there is reason to choose anew.
    pub(crate) fn elect(&mut self, metric: impl Fn(Mac) -> Option<u32>) {
        let chooses = self.mode == GatewayMode::Client;
        if chooses && (std::mem::take(&mut self.reselect) || self.selected.is_none()) {
            self.selected = self.best(metric);
        }
    }

    pub(crate) const fn selected(&self) -> Option<Mac> {
        self.selected
    }

    pub(crate) fn status(&self, metric: impl Fn(Mac) -> Option<u32>) -> Vec<GatewayStatus> {
        let rate = |units: u32| Rate::from_bits_per_sec(u64::from(units) * UNIT);
        let each = self.known.iter().map(|(&node, gateway)| GatewayStatus {
            node,
            down: rate(gateway.down),
            up: rate(gateway.up),
            metric: metric(node),
            selected: self.selected == Some(node),
        });
        each.collect()
    }

    /// The best gateway to which there is a route: of equals, the one with the lowest address.
    fn best(&self, metric: impl Fn(Mac) -> Option<u32>) -> Option<Mac> {
        let mut best: Option<((u64, u32), Mac)> = None;
        for (&node, gateway) in &self.known {
            let Some(metric) = metric(node) else { continue };
            let rank = if self.by_throughput {
                (u64::from(metric.min(gateway.down)), 0)
            } else if self.class == 1 {
                // A quality has 8 bits. The kernel drops the product's last 18 bits, of 10,000 times as much.
                ((u64::from(metric).pow(2) * u64::from(gateway.down) * 10_000) >> 18, metric)
            } else {
                (u64::from(metric), 0)
            };
            if rank.0 > 0 && best.is_none_or(|(other, _)| rank > other) {
                best = Some((rank, node));
            }
        }
        best.map(|(_, node)| node)
    }

    /// Whether a gateway is so much better than the one that is chosen that the choice is to be made anew.
    fn is_better(&self, selected: Mac, other: Mac, metric: impl Fn(Mac) -> Option<u32>) -> bool {
        if !self.by_throughput && self.class <= 2 {
            return false;
        }
        let worth = |node: Mac| {
            let gateway = self.known.get(&node)?;
            metric(node).map(|metric| if self.by_throughput { metric.min(gateway.down) } else { metric })
        };
        let Some(of_selected) = worth(selected) else { return true };
        let needed = if !self.by_throughput && self.class == 3 { 0 } else { self.class };
        worth(other).and_then(|of_other| of_other.checked_sub(of_selected)).is_some_and(|more| more >= needed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [Mac; 3] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3]];

    fn client(class: Option<u32>, by_throughput: bool) -> Gateways {
        Gateways::new(&GatewayConfig { mode: GatewayMode::Client, selection_class: class }, by_throughput)
    }

    fn container(down: u32, up: u32) -> Vec<u8> {
        let mut containers = Vec::new();
        tvlv::put(&mut containers, tvlv::GATEWAY, VERSION, &Gateway { down, up }.bytes());
        containers
    }

    /// The choice after the nodes have said that they are gateways of these bandwidths down, by paths of these metrics.
    fn choose(gateways: &mut Gateways, down: [u32; 3], metrics: [u32; 3]) -> Option<usize> {
        let place = |node: Mac| usize::from(node[5]) - 1;
        let metric = |node: Mac| Some(metrics[place(node)]).filter(|metric| *metric > 0);
        for (node, down) in NODES.into_iter().zip(down) {
            gateways.hear(node, &container(down, 10), metric);
        }
        gateways.elect(metric);
        gateways.selected().map(place)
    }

    #[test]
    fn the_class_says_what_is_best_by_quality() {
        let first = |class, down, metrics| choose(&mut client(class, false), down, metrics);
        // 120 x 120 x 100 is more than 230 x 230 x 20, and less than 230 x 230 x 40.
        assert_eq!(first(Some(1), [20, 100, 1], [230, 120, 255]), Some(1));
        assert_eq!(first(Some(1), [40, 100, 1], [230, 120, 255]), Some(0));
        for class in [Some(2), Some(3), None] {
            assert_eq!(first(class, [20, 100, 1], [230, 120, 255]), Some(2));
        }
        assert_eq!(first(None, [1, 1, 1], [200, 0, 200]), Some(0));
        assert_eq!(first(None, [1, 1, 1], [0, 0, 0]), None);
    }

    #[test]
    fn the_class_says_how_much_better_another_one_must_be() {
        let second = |class, by_throughput, [before, after]: [[u32; 3]; 2]| {
            let mut gateways = client(class, by_throughput);
            assert_eq!(choose(&mut gateways, [1000; 3], before), Some(0));
            choose(&mut gateways, [1000; 3], after)
        };
        let [before, little, much] = [[200, 100, 100], [200, 219, 100], [200, 220, 100]];
        for class in [1, 2] {
            assert_eq!(second(Some(class), false, [before, much]), Some(0), "{class}");
        }
        assert_eq!(second(Some(3), false, [before, little]), Some(1));
        assert_eq!(second(None, false, [before, little]), Some(0));
        assert_eq!(second(None, false, [before, much]), Some(1));
        assert_eq!(second(None, true, [before, [200, 249, 100]]), Some(0));
        assert_eq!(second(None, true, [before, [200, 250, 100]]), Some(1));
        // One without a route is left.
        assert_eq!(second(None, false, [before, [0, 5, 3]]), Some(1));
    }

    #[test]
    fn throughput_is_that_of_the_path_or_of_the_gateway_whichever_is_less() {
        assert_eq!(choose(&mut client(None, true), [20, 100, 30], [500, 60, 500]), Some(1));
        assert_eq!(choose(&mut client(None, true), [20, 100, 70], [500, 60, 500]), Some(2));
    }

    #[test]
    fn a_gateway_is_one_as_long_as_it_says_so() {
        let mut gateways = client(None, false);
        let metric = |_| Some(100);
        let selected = |gateways: &mut Gateways| {
            gateways.elect(metric);
            gateways.selected()
        };
        gateways.hear(NODES[0], &container(100, 20), metric);
        gateways.hear(NODES[1], &container(100, 20), metric);
        assert_eq!(selected(&mut gateways), Some(NODES[0]));
        let status = gateways.status(metric);
        let shown = |node, selected| {
            let (down, up) = (Rate::from_mbit(10), Rate::from_mbit(2));
            GatewayStatus { node, down, up, metric: Some(100), selected }
        };
        assert_eq!(status, [shown(NODES[0], true), shown(NODES[1], false)]);
        // No container, one of another version, cut off, or without bandwidth in one direction.
        let mut other_version = container(100, 20);
        other_version[1] = 2;
        let mut cut_off = Vec::new();
        tvlv::put(&mut cut_off, tvlv::GATEWAY, VERSION, &[0; 6]);
        for none in [vec![], other_version, cut_off, container(0, 20), container(100, 0)] {
            gateways.hear(NODES[0], &container(100, 20), metric);
            gateways.hear(NODES[0], &none, metric);
            assert_eq!(selected(&mut gateways), Some(NODES[1]), "{none:?}");
            assert_eq!(gateways.known.len(), 1);
        }
        gateways.forget(NODES[1]);
        assert_eq!(selected(&mut gateways), None);
    }

    #[test]
    fn only_a_server_announces_and_only_a_client_chooses() {
        let of = |mode| Gateways::new(&GatewayConfig { mode, selection_class: None }, false);
        let server = GatewayMode::Server { down: Rate::from_mbit(10), up: Rate::from_bits_per_sec(7) };
        assert_eq!(of(server).container(), Some([0, 0, 0, 100, 0, 0, 0, 1]));
        assert_eq!(of(GatewayMode::Client).container(), None);
        for mode in [GatewayMode::Off, server] {
            assert_eq!(choose(&mut of(mode), [100; 3], [100; 3]), None);
        }
    }
}
