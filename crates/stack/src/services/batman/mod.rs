//! `batman-iv` and `batman-v`: a mesh over several interfaces, whose own is `bat0`.

mod options;
mod tables;

use std::rc::Rc;

use hopcast_config::decode::did_you_mean;
use hopcast_core::{Duration, Machine, Rate, Shared};
use hopcast_mesh::wire::ETHER_TYPE;
use hopcast_mesh::{
    Above, BatmanIvConfig, BatmanVConfig, GatewayConfig, GatewayMode, Mesh, MeshConfig, MeshInterface,
    MulticastConfig, RoutingConfig,
};

use crate::network::Prefix;
use crate::service::{
    AttachError, HostConfig, InterfaceUser, LowerInterface, Service, ServiceRoutes, ServiceRow, StatusReader,
    UpperInterface,
};
use crate::table::Worlds;
use options::{OPTIONS_IV, OPTIONS_V};
use tables::tables;

pub(super) static BATMAN_IV: ServiceRow = ServiceRow {
    name: "batman-iv",
    about: "a mesh over its interfaces, by B.A.T.M.A.N. IV as in Linux' batman-adv; its own interface is `bat0`",
    worlds: Worlds::Both,
    on_host: false,
    for_sites: true,
    options: || OPTIONS_IV.docs(&Settings::of(Algorithm::Iv)),
    read: |row, node| OPTIONS_IV.service(row, node, Settings::of(Algorithm::Iv)),
};

pub(super) static BATMAN_V: ServiceRow = ServiceRow {
    name: "batman-v",
    about: "the same by B.A.T.M.A.N. V, whose paths are those of the highest throughput",
    worlds: Worlds::Both,
    on_host: false,
    for_sites: true,
    options: || OPTIONS_V.docs(&Settings::of(Algorithm::V)),
    read: |row, node| OPTIONS_V.service(row, node, Settings::of(Algorithm::V)),
};

/// The routing algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    /// B.A.T.M.A.N. IV.
    Iv,
    /// B.A.T.M.A.N. V.
    V,
}

/// Whether a node is a gateway, or uses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GatewayRole {
    Off,
    Client,
    Server,
}

/// Where bridge-loop avoidance is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopAvoidance {
    Off,
    /// At nodes whose interface is not their host's: it may be a bridge's.
    Bridged,
    /// At all nodes, as in the kernel.
    On,
}

/// The settings.
#[derive(Clone, Debug)]
struct Settings {
    algorithm: Algorithm,
    /// The name of the interface that it makes.
    device: String,
    /// The interfaces or links that are radios; `all` is each.
    wireless: Vec<String>,
    interval: Duration,
    /// Of B.A.T.M.A.N. V alone.
    elp_interval: Duration,
    hop_penalty: u8,
    aggregation: bool,
    max_originators: usize,
    arp_table: bool,
    gateway: GatewayRole,
    gateway_down: Rate,
    gateway_up: Rate,
    gateway_class: u32,
    loop_avoidance: LoopAvoidance,
    multicast: MulticastConfig,
    fragmentation: bool,
    max_clients: usize,
    max_clients_of_node: usize,
    prefixes: Vec<Prefix>,
}

impl Settings {
    fn of(algorithm: Algorithm) -> Self {
        let MeshConfig { arp_table, multicast, fragmentation, max_clients, max_clients_of_node, .. } =
            MeshConfig::new(Vec::new(), [0; 6]);
        let v = BatmanVConfig::default();
        let (interval, hop_penalty, aggregation, max_originators) = match algorithm {
            Algorithm::Iv => {
                let iv = BatmanIvConfig::default();
                (iv.interval, iv.hop_penalty, iv.aggregation, iv.max_originators)
            }
            Algorithm::V => (v.interval, v.hop_penalty, v.aggregation, v.max_originators),
        };
        Self {
            algorithm,
            device: "bat0".to_owned(),
            wireless: Vec::new(),
            interval,
            elp_interval: v.elp_interval,
            hop_penalty,
            aggregation,
            max_originators,
            arp_table,
            gateway: GatewayRole::Off,
            gateway_down: GATEWAY_DOWN,
            gateway_up: GATEWAY_UP,
            gateway_class: GatewayConfig::default_class(algorithm == Algorithm::V),
            loop_avoidance: LoopAvoidance::Bridged,
            multicast,
            fragmentation,
            max_clients,
            max_clients_of_node,
            prefixes: Vec::new(),
        }
    }

    fn routing(&self) -> RoutingConfig {
        let Self { interval, elp_interval, hop_penalty, aggregation, max_originators, .. } = *self;
        match self.algorithm {
            Algorithm::Iv => RoutingConfig::BatmanIv(BatmanIvConfig {
                interval,
                hop_penalty,
                aggregation,
                max_originators,
            }),
            Algorithm::V => RoutingConfig::BatmanV(BatmanVConfig {
                interval,
                elp_interval,
                hop_penalty,
                aggregation,
                max_originators,
                ..BatmanVConfig::default()
            }),
        }
    }

    const fn gateway(&self) -> GatewayConfig {
        let mode = match self.gateway {
            GatewayRole::Off => GatewayMode::Off,
            GatewayRole::Client => GatewayMode::Client,
            GatewayRole::Server => GatewayMode::Server { down: self.gateway_down, up: self.gateway_up },
        };
        GatewayConfig { mode, selection_class: Some(self.gateway_class) }
    }

    const fn row(&self) -> &'static ServiceRow {
        match self.algorithm {
            Algorithm::Iv => &BATMAN_IV,
            Algorithm::V => &BATMAN_V,
        }
    }
}

/// Bandwidth of a gateway that does not say another, to the mesh and from it (`batadv_meshif_init_late`).
const GATEWAY_DOWN: Rate = Rate::from_bits_per_sec(10_000_000);
const GATEWAY_UP: Rate = Rate::from_bits_per_sec(2_000_000);
/// Maximum number of interfaces below. Chosen: state of each originator is kept for each of them.
const MAX_INTERFACES: usize = 32;
/// The name that stands for all interfaces.
const ALL: &str = "all";

impl Settings {
    /// Whether an interface is a radio.
    fn is_wireless(&self, interface: &LowerInterface) -> bool {
        let is_it = |name: &String| *name == interface.name || Some(name) == interface.link.as_ref();
        interface.is_radio || self.wireless.iter().any(|name| name == ALL || is_it(name))
    }

    /// Checks that the names of radios are those of interfaces that it is attached to.
    fn check_wireless(&self, lower: &[LowerInterface]) -> Result<(), AttachError> {
        let names = || lower.iter().flat_map(|interface| interface.link.iter().chain([&interface.name]));
        let unknown =
            self.wireless.iter().find(|wanted| *wanted != ALL && names().all(|name| name != *wanted));
        let Some(port) = unknown else { return Ok(()) };
        let known = lower.iter().map(|interface| format!("`{}`", interface.name)).collect::<Vec<_>>();
        let hint = did_you_mean(port, names().map(String::as_str).chain([ALL]));
        Err(AttachError::NoSuchPort { key: "wireless", port: port.clone(), hint, known: known.join(", ") })
    }
}

impl Service for Settings {
    fn makes(&self, _: &str, lower: &[LowerInterface]) -> Result<Vec<UpperInterface>, AttachError> {
        if lower.is_empty() || lower.len() > MAX_INTERFACES {
            let (wanted, found) = ("1 to 32 interfaces", lower.len());
            return Err(AttachError::Number { kind: self.row().name, wanted, found });
        }
        self.check_wireless(lower)?;
        let (name, prefixes) = (self.device.clone(), self.prefixes.clone());
        Ok(vec![UpperInterface { name, over: 0, tags: Vec::new(), prefixes }])
    }

    fn mesh_mtu(&self, lower: u32) -> Option<u32> {
        Some(Mesh::mtu_above(lower, self.fragmentation))
    }

    fn ether_type(&self) -> Option<u16> {
        Some(ETHER_TYPE)
    }

    fn machine(
        &self,
        host: &HostConfig,
        lower: &[LowerInterface],
        routes: &Rc<dyn ServiceRoutes>,
    ) -> Box<dyn Machine> {
        Box::new(self.mesh(host, (lower, InterfaceUser::Other), routes))
    }

    fn readable_machine(
        &self,
        host: &HostConfig,
        (lower, user): (&[LowerInterface], InterfaceUser),
        routes: &Rc<dyn ServiceRoutes>,
    ) -> (Box<dyn Machine>, Option<StatusReader>) {
        let mesh = Shared::new(self.mesh(host, (lower, user), routes));
        let (of_reader, names) =
            (mesh.clone(), lower.iter().map(|lower| lower.name.clone()).collect::<Vec<_>>());
        let algorithm = self.algorithm;
        (Box::new(mesh), Some(Box::new(move || tables(&of_reader.get(), &names, algorithm))))
    }
}

impl Settings {
    /// A node of the mesh.
    fn mesh(
        &self,
        host: &HostConfig,
        (lower, user): (&[LowerInterface], InterfaceUser),
        routes: &Rc<dyn ServiceRoutes>,
    ) -> Mesh {
        let below = |interface: &LowerInterface| {
            let wireless = self.is_wireless(interface);
            MeshInterface { mac: interface.mac, wireless, throughput: interface.rate.filter(|_| !wireless) }
        };
        let mac = user.address_above(host, lower);
        let config = MeshConfig {
            routing: self.routing(),
            multicast: MulticastConfig {
                above: match user {
                    InterfaceUser::Host => Above::Host,
                    InterfaceUser::Bridge => Above::Bridge,
                    InterfaceUser::Other => Above::Unknown,
                },
                // Of several interfaces the host may route packets to groups from one to another.
                router: [host.interfaces.len() > 1; 2],
                ..self.multicast.clone()
            },
            gateway: self.gateway(),
            arp_table: self.arp_table,
            bridge_loop_avoidance: match self.loop_avoidance {
                LoopAvoidance::Off => false,
                LoopAvoidance::Bridged => user != InterfaceUser::Host,
                LoopAvoidance::On => true,
            },
            fragmentation: self.fragmentation,
            max_clients: self.max_clients,
            max_clients_of_node: self.max_clients_of_node,
            ..MeshConfig::new(lower.iter().map(below).collect(), mac)
        };
        let mut mesh = Mesh::new(config, routes.random());
        for (number, interface) in lower.iter().enumerate() {
            mesh.set_mtu(number, interface.mtu);
        }
        mesh
    }
}
