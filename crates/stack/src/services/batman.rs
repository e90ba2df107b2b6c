//! `batman-iv`: a mesh of B.A.T.M.A.N. IV over several interfaces, whose own is `bat0`.

use std::rc::Rc;

use hopcast_config::decode::{did_you_mean, duration, flag, name, whole, words};
use hopcast_core::{Duration, Machine, Shared};
use hopcast_mesh::multicast::flags_text;
use hopcast_mesh::{
    BatmanIvConfig, Key, Mesh, MeshConfig, MeshInterface, MulticastConfig, MulticastStatus, OriginatorStatus,
    RoutingConfig,
};
use hopcast_wire::ethernet;
use hopcast_wire::vlan::MAX_ID;

use crate::network::{Prefix, read_prefixes};
use crate::service::{
    AttachError, HostConfig, LowerInterface, ORIGINATORS, Service, ServiceRoutes, ServiceRow, StatusCell,
    StatusReader, StatusTable, UpperInterface,
};
use crate::table::{Form, Opt, Options, Worlds, on_off, shown};

pub(super) static BATMAN_IV: ServiceRow = ServiceRow {
    name: "batman-iv",
    about: "a mesh over its interfaces, by B.A.T.M.A.N. IV as in Linux' batman-adv; its own interface is `bat0`",
    worlds: Worlds::Virtual,
    on_host: false,
    for_sites: false,
    options: || OPTIONS.docs(&Settings::default()),
    read: |row, node| OPTIONS.service(row, node, Settings::default()),
};

/// The settings.
#[derive(Clone, Debug)]
struct Settings {
    /// The name of the interface that it makes.
    device: String,
    /// The interfaces or links that are radios; `all` is each.
    wireless: Vec<String>,
    routing: BatmanIvConfig,
    fragmentation: bool,
    max_clients: usize,
    max_clients_of_node: usize,
    prefixes: Vec<Prefix>,
}

impl Default for Settings {
    fn default() -> Self {
        let MeshConfig { fragmentation, max_clients, max_clients_of_node, .. } =
            MeshConfig::new(Vec::new(), [0; 6]);
        Self {
            device: "bat0".to_owned(),
            wireless: Vec::new(),
            routing: BatmanIvConfig::default(),
            fragmentation,
            max_clients,
            max_clients_of_node,
            prefixes: Vec::new(),
        }
    }
}

/// Shortest interval of originator messages: the kernel's (`2 * BATADV_JITTER`).
const MIN_INTERVAL: Duration = Duration::from_millis(40);
/// Maximum number of originators or clients that can be allowed. Chosen: they take some hundred megabytes at a node.
const MAX_KNOWN: u64 = 1_000_000;
/// Maximum number of interfaces below. Chosen: state of each originator is kept for each of them.
const MAX_INTERFACES: usize = 32;
/// The name that stands for all interfaces.
const ALL: &str = "all";

static OPTIONS: Options<Settings> = Options(&[
    Opt {
        key: "device",
        about: "The name of the interface that it makes at each node. A node in two meshes names one of the two otherwise.",
        form: Form::Word,
        set: |settings, node, key| name(node, key).map(|found| settings.device = found.to_owned()),
        show: |settings| settings.device.clone(),
    },
    Opt {
        key: "prefix",
        about: "The prefix of the network that the mesh is, or a list of one of each version of IP, as that of a link.",
        form: Form::Prefixes,
        set: |settings, node, key| read_prefixes(node, key).map(|found| settings.prefixes = found),
        show: |settings| settings.prefixes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    },
    Opt {
        key: "originator-interval",
        about: "Mean time from one originator message of a node to its next, at least 40 ms, each up to 20 ms more or less. Shorter, routes change sooner; the airtime of messages grows with the number of nodes.",
        form: Form::Duration,
        set: |settings, node, key| {
            let interval = duration(node, key)?;
            if interval < MIN_INTERVAL {
                return Err(node.error(format!("`{key}`: expected at least 40 ms, found `{interval}`")));
            }
            settings.routing.interval = interval;
            Ok(())
        },
        show: |settings| shown(&settings.routing.interval),
    },
    Opt {
        key: "hop-penalty",
        about: "The part of a path's quality that each hop takes, of 255. Less: longer paths where links are a little better; more: fewer hops over worse links.",
        form: Form::Count,
        set: |settings, node, key| {
            whole(node, key, 0..=255).map(|found| settings.routing.hop_penalty = found as u8)
        },
        show: |settings| shown(&settings.routing.hop_penalty),
    },
    Opt {
        key: "aggregated-ogms",
        about: "Whether originator messages wait up to 100 ms for others, and leave several in a frame. Off: they arrive sooner, each in a frame of its own.",
        form: Form::Flag,
        set: |settings, node, key| flag(node, key).map(|found| settings.routing.aggregation = found),
        show: |settings| on_off(settings.routing.aggregation),
    },
    Opt {
        key: "fragmentation",
        about: "Whether packets that are too long for an interface are sent in parts. Off, they are dropped, and the MTU of `bat0` is 32 B less than the smallest below it.",
        form: Form::Flag,
        set: |settings, node, key| flag(node, key).map(|found| settings.fragmentation = found),
        show: |settings| on_off(settings.fragmentation),
    },
    Opt {
        key: "wireless",
        about: "Its interfaces that are radios, a list of the names of interfaces or links, or `[all]`. Broadcasts are sent three times there, and a path that enters and leaves a node by the same one is worth less.",
        form: Form::Words,
        set: |settings, node, key| words(node, key).map(|found| settings.wireless = found),
        show: |settings| settings.wireless.join(" "),
    },
    Opt {
        key: "max-originators",
        about: "Maximum number of originators that a node knows. With fewer, those beyond are not reached; with more, forged ones take more memory.",
        form: Form::Count,
        set: |settings, node, key| {
            whole(node, key, 1..=MAX_KNOWN).map(|found| settings.routing.max_originators = found as usize)
        },
        show: |settings| shown(&settings.routing.max_originators),
    },
    Opt {
        key: "max-clients",
        about: "Maximum number of clients behind other nodes that a node knows. With fewer, those beyond are not reached; with more, forged ones take more memory.",
        form: Form::Count,
        set: |settings, node, key| {
            whole(node, key, 1..=MAX_KNOWN).map(|found| settings.max_clients = found as usize)
        },
        show: |settings| shown(&settings.max_clients),
    },
    Opt {
        key: "max-clients-of-node",
        about: "The same of clients behind one node, so that one that announces too many leaves room for others'.",
        form: Form::Count,
        set: |settings, node, key| {
            whole(node, key, 1..=MAX_KNOWN).map(|found| settings.max_clients_of_node = found as usize)
        },
        show: |settings| shown(&settings.max_clients_of_node),
    },
]);

impl Settings {
    /// Whether an interface is a radio.
    fn is_wireless(&self, interface: &LowerInterface) -> bool {
        let is_it = |name: &String| *name == interface.name || Some(name) == interface.link.as_ref();
        self.wireless.iter().any(|name| name == ALL || is_it(name))
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
            return Err(AttachError::Number { kind: BATMAN_IV.name, wanted, found });
        }
        self.check_wireless(lower)?;
        let (name, prefixes) = (self.device.clone(), self.prefixes.clone());
        Ok(vec![UpperInterface { name, over: 0, tags: Vec::new(), prefixes }])
    }

    fn mesh_mtu(&self, lower: u32) -> Option<u32> {
        Some(Mesh::mtu_above(lower, self.fragmentation))
    }

    fn machine(
        &self,
        _: &HostConfig,
        lower: &[LowerInterface],
        routes: &Rc<dyn ServiceRoutes>,
    ) -> Box<dyn Machine> {
        Box::new(self.mesh(lower, routes))
    }

    fn readable_machine(
        &self,
        _: &HostConfig,
        lower: &[LowerInterface],
        routes: &Rc<dyn ServiceRoutes>,
    ) -> (Box<dyn Machine>, Option<StatusReader>) {
        let mesh = Shared::new(self.mesh(lower, routes));
        let (of_reader, names) =
            (mesh.clone(), lower.iter().map(|lower| lower.name.clone()).collect::<Vec<_>>());
        (Box::new(mesh), Some(Box::new(move || tables(&of_reader.get(), &names))))
    }
}

impl Settings {
    /// A node of the mesh.
    fn mesh(&self, lower: &[LowerInterface], routes: &Rc<dyn ServiceRoutes>) -> Mesh {
        let below = |interface: &LowerInterface| MeshInterface {
            mac: interface.mac,
            wireless: self.is_wireless(interface),
            throughput: None,
        };
        let mac = lower.first().map_or([0; 6], |first| first.mac);
        let config = MeshConfig {
            routing: RoutingConfig::BatmanIv(self.routing.clone()),
            // The mesh is not told yet which groups a host has joined, so that none may be spared.
            multicast: MulticastConfig { force_flood: true, ..MulticastConfig::default() },
            // A scenario cannot say yet whether it is on.
            arp_table: false,
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

/// The tables that `batctl n`, `o`, `tg`, `tl` and `mcast_flags` would show, of a node whose interfaces have these
/// names.
fn tables(mesh: &Mesh, names: &[String]) -> Vec<StatusTable> {
    let text = |shown: &dyn ToString| StatusCell::Text(shown.to_string());
    let vlan = |key: &Key| match key.vlan & MAX_ID {
        0 => text(&"none"),
        id => text(&id),
    };
    let neighbours = names.iter().enumerate().flat_map(|(number, name)| {
        mesh.neighbours(number).into_iter().map(move |address| vec![StatusCell::Address(address), text(name)])
    });
    let originator = |one: OriginatorStatus| {
        let by = names.get(one.interface).map_or("", String::as_str);
        vec![
            StatusCell::Address(one.originator),
            StatusCell::Time(one.last_seen),
            text(&one.metric),
            StatusCell::Address(one.next_hop),
            text(&by),
        ]
    };
    let (groups, stations): (Vec<_>, Vec<_>) =
        mesh.global_clients().into_iter().partition(|(key, _)| ethernet::is_group(key.address));
    let global =
        |(key, node): (Key, _)| vec![StatusCell::Address(key.address), vlan(&key), StatusCell::Address(node)];
    let group = |(key, node): (Key, _)| vec![StatusCell::Address(key.address), StatusCell::Address(node)];
    let own = mesh.local_clients().into_iter();
    let local = own.filter(|key| !ethernet::is_group(key.address));
    let local = local.map(|key| vec![StatusCell::Address(key.address), vlan(&key)]);
    let MulticastStatus { flags, others, .. } = mesh.multicast();
    let wishes = |(node, flags): (_, Option<u8>)| {
        vec![StatusCell::Address(node), text(&flags.map_or_else(|| "none".to_owned(), flags_text))]
    };
    let wishes = [(mesh.address(), Some(flags))].into_iter().chain(others).map(wishes);
    vec![
        StatusTable { name: "neighbours", columns: &["neighbour", "interface"], rows: neighbours.collect() },
        StatusTable {
            name: ORIGINATORS,
            columns: &["originator", "last seen", "tq", "next hop", "interface"],
            rows: mesh.originators().into_iter().map(originator).collect(),
        },
        StatusTable {
            name: "global clients",
            columns: &["client", "vlan", "originator"],
            rows: stations.into_iter().map(global).collect(),
        },
        StatusTable { name: "local clients", columns: &["client", "vlan"], rows: local.collect() },
        StatusTable {
            name: "groups",
            columns: &["group", "originator"],
            rows: groups.into_iter().map(group).collect(),
        },
        StatusTable { name: "multicast flags", columns: &["originator", "flags"], rows: wishes.collect() },
    ]
}
