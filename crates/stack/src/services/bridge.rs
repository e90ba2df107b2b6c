//! `bridge`: a learning bridge of several interfaces, with the host on it.

use std::collections::BTreeMap;
use std::rc::Rc;

use hopcast_bridge::Bridge;
use hopcast_bridge::bridge::{BridgePort, Config, MAX_PORTS, Querier, RouterPort, Snooping, VlanFiltering};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, did_you_mean, duration, entries, flag, whole};
use hopcast_config::yaml::Node;
use hopcast_core::{Duration, Machine};
use hopcast_wire::vlan::MAX_ID;

use super::vlan::{PROTOCOL, ids, protocol, protocol_name};
use crate::network::{MacAddress, Prefix, read_prefixes};
use crate::service::{
    AttachError, HostConfig, InterfaceUser, JoinedPorts, LowerInterface, PortVlans, Service, ServiceRoutes,
    ServiceRow, StatusReader, UpperInterface,
};
use crate::table::{Form, Opt, Options, Worlds, on_off, one_of, shown};

pub(super) static BRIDGE: ServiceRow = ServiceRow {
    name: "bridge",
    about: "a learning bridge of interfaces, with VLANs and snooping of IGMP and MLD; its host has one interface, named as it is",
    worlds: Worlds::Both,
    on_host: false,
    for_sites: true,
    options: || OPTIONS.docs(&Settings::default()),
    read: |row, node| OPTIONS.service(row, node, Settings::default()),
};

/// The settings.
#[derive(Clone, Debug)]
struct Settings {
    /// Those of ports that the file has, by the name of an interface or link.
    ports: BTreeMap<String, BridgePort>,
    /// Those of the host's port, if the file has them.
    host: Option<BridgePort>,
    filtering: bool,
    kind: u16,
    snooping: bool,
    querier: bool,
    ageing: Duration,
    prefixes: Vec<Prefix>,
}

impl Default for Settings {
    fn default() -> Self {
        let Config { ageing, .. } = Config::default();
        Self {
            ports: BTreeMap::new(),
            host: None,
            filtering: false,
            kind: VlanFiltering::default().protocol,
            snooping: true,
            querier: false,
            ageing,
            prefixes: Vec::new(),
        }
    }
}

/// The VLAN of a port of which the file says nothing, where VLANs are filtered: Linux' default.
const DEFAULT_VLAN: u16 = 1;

static OPTIONS: Options<Settings> = Options(&[
    Opt {
        key: "ports",
        about: "What is set of its ports, by the name of an interface or link. `tagged` and `untagged` are the VLANs whose frames the port takes and is given, with their tag and without; `native` is that of frames without a tag, by default the first of `untagged`. `router` is `heard`, `always` or `never`: whether multicast routers are behind it. A port that is not named is in VLAN 1 without a tag.",
        form: Form::Ports,
        set: |settings, node, key| {
            for entry in entries(node, key)? {
                settings.ports.insert(entry.key.clone(), port(&entry.value)?);
            }
            Ok(())
        },
        show: |settings| {
            let ports = settings.ports.iter().map(|(name, port)| format!("{name} ({})", shown_port(port)));
            ports.collect::<Vec<_>>().join(", ")
        },
    },
    Opt {
        key: "host",
        about: "The same of the host's own port; an interface of the service `vlan` on it has the frames of one of its tagged VLANs.",
        form: Form::Port,
        set: |settings, node, _| port(node).map(|found| settings.host = Some(found)),
        show: |settings| settings.host.as_ref().map_or_else(String::new, shown_port),
    },
    Opt {
        key: "vlan-filtering",
        about: "Whether a port takes and is given only frames of its VLANs. Off, tags are passed on as they are; on without being written where `ports` or `host` name a VLAN.",
        form: Form::Flag,
        set: |settings, node, key| flag(node, key).map(|found| settings.filtering = found),
        show: |settings| on_off(settings.filtering),
    },
    Opt {
        about: "The kind of the tags that VLANs are filtered by: `802.1q` of customers, or `802.1ad` of a provider. Those of the other kind are what frames carry.",
        ..PROTOCOL_OPTION
    },
    Opt {
        key: "snooping",
        about: "Whether IGMP and MLD are heard, and packets to a group given only to ports that have members or routers behind them. Off, or while nobody queries, all ports are given them.",
        form: Form::Flag,
        set: |settings, node, key| flag(node, key).map(|found| settings.snooping = found),
        show: |settings| on_off(settings.snooping),
    },
    Opt {
        key: "querier",
        about: "Whether it queries, from no IPv4 address, so that any other querier takes its place. Where nobody does, members are not known.",
        form: Form::Flag,
        set: |settings, node, key| flag(node, key).map(|found| settings.querier = found),
        show: |settings| on_off(settings.querier),
    },
    Opt {
        key: "ageing",
        about: "Time after its last frame for which a station's port is known. Shorter: frames to quiet stations go to all ports; longer: one that has moved is not reached until it sends. With 0 nothing is learned.",
        form: Form::Duration,
        set: |settings, node, key| duration(node, key).map(|found| settings.ageing = found),
        show: |settings| shown(&settings.ageing),
    },
    Opt {
        key: "prefix",
        about: "The prefix of the network that it joins, or a list of one of each version of IP, as that of a link. Written at one or at all of its bridges.",
        form: Form::Prefixes,
        set: |settings, node, key| read_prefixes(node, key).map(|found| settings.prefixes = found),
        show: |settings| settings.prefixes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    },
]);

const PROTOCOL_OPTION: Opt<Settings> = Opt {
    key: "protocol",
    about: "",
    form: PROTOCOL,
    set: |settings, node, key| protocol(node, key).map(|kind| settings.kind = kind),
    show: |settings| protocol_name(settings.kind).to_owned(),
};

const ROUTERS: [(&str, RouterPort); 3] =
    [("heard", RouterPort::Heard), ("always", RouterPort::Always), ("never", RouterPort::Never)];

/// Reads the settings of a port.
fn port(node: &Node) -> Result<BridgePort, Diagnostic> {
    let fields = Fields::of(node, "a port", &["tagged", "untagged", "native", "router"])?;
    let list = |key| fields.get(key).map(|node| ids(node, key)).transpose();
    let (tagged, untagged) = (list("tagged")?.unwrap_or_default(), list("untagged")?.unwrap_or_default());
    if let Some(both) = tagged.iter().find(|id| untagged.contains(id)) {
        return Err(node.error(format!("VLAN {both} is both `tagged` and `untagged`: write it once")));
    }
    let native = match fields.get("native") {
        Some(node) => Some(whole(node, "native", 1..=u64::from(MAX_ID))? as u16),
        None => untagged.first().copied(),
    };
    let router = match fields.get("router") {
        None => RouterPort::Heard,
        Some(node) => one_of(node, "router", &ROUTERS)?,
    };
    Ok(BridgePort { native, tagged, untagged, router, tell_memberships: false })
}

fn shown_port(port: &BridgePort) -> String {
    let list = |name, ids: &[u16]| {
        let ids: Vec<String> = ids.iter().map(u16::to_string).collect();
        (!ids.is_empty()).then(|| format!("{name} {}", ids.join(" ")))
    };
    let native = port.native.filter(|native| port.untagged.first() != Some(native));
    let router = ROUTERS.iter().find(|(_, router)| *router == port.router && *router != RouterPort::Heard);
    let parts = [
        list("tagged", &port.tagged),
        list("untagged", &port.untagged),
        native.map(|native| format!("native {native}")),
        router.map(|(name, _)| format!("router {name}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn names_vlan(port: &BridgePort) -> bool {
    port.native.is_some() || !port.tagged.is_empty() || !port.untagged.is_empty()
}

impl Settings {
    /// Its bridge of these interfaces, whose host has the Ethernet address `mac`.
    fn config(&self, lower: &[LowerInterface], mac: MacAddress) -> Config {
        let filtering = self.filtering || self.ports.values().chain(&self.host).any(names_vlan);
        // One of which only `router` is set is in the default VLAN, too.
        let of = |written: Option<&BridgePort>| match written {
            Some(port) if names_vlan(port) || !filtering => port.clone(),
            other => {
                let router = other.map(|port| port.router).unwrap_or_default();
                BridgePort { router, ..BridgePort::untagged(DEFAULT_VLAN) }
            }
        };
        let named = |interface: &LowerInterface| {
            let by_link = || interface.link.as_ref().and_then(|link| self.ports.get(link));
            self.ports.get(&interface.name).or_else(by_link)
        };
        Config {
            ports: lower
                .iter()
                .map(|interface| BridgePort { tell_memberships: interface.is_mesh, ..of(named(interface)) })
                .collect(),
            host: Some((of(self.host.as_ref()), mac)),
            ageing: self.ageing,
            vlans: filtering.then_some(VlanFiltering { protocol: self.kind }),
            snooping: self
                .snooping
                .then(|| Snooping { querier: self.querier.then(|| Querier::of(mac)), ..Snooping::default() }),
            ..Config::default()
        }
    }
}

impl Service for Settings {
    fn makes(&self, name: &str, lower: &[LowerInterface]) -> Result<Vec<UpperInterface>, AttachError> {
        if lower.is_empty() || lower.len() >= MAX_PORTS {
            let (wanted, found) = ("1 to 1023 interfaces", lower.len());
            return Err(AttachError::Number { kind: BRIDGE.name, wanted, found });
        }
        let prefixes = self.prefixes.clone();
        Ok(vec![UpperInterface { name: name.to_owned(), over: 0, tags: Vec::new(), prefixes }])
    }

    fn joins(&self, lower: &[LowerInterface]) -> Result<Option<JoinedPorts>, AttachError> {
        let names = || lower.iter().flat_map(|interface| interface.link.iter().chain([&interface.name]));
        if let Some(port) = self.ports.keys().find(|port| names().all(|name| name != *port)) {
            let known = lower.iter().map(|interface| format!("`{}`", interface.name));
            let hint = did_you_mean(port, names().map(String::as_str));
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(AttachError::NoSuchPort { key: "ports", port: port.clone(), hint, known });
        }
        let Config { ports, host, vlans, .. } = self.config(lower, [0; 6]);
        let vlans_of = |port: BridgePort| {
            let BridgePort { native, tagged, untagged, .. } = port;
            PortVlans { native, tagged, untagged }
        };
        Ok(Some(JoinedPorts {
            tag_kind: vlans.map(|vlans| vlans.protocol),
            ports: ports.into_iter().map(vlans_of).collect(),
            host: host.map(|(port, _)| vlans_of(port)).unwrap_or_default(),
        }))
    }

    fn machine(
        &self,
        host: &HostConfig,
        lower: &[LowerInterface],
        routes: &Rc<dyn ServiceRoutes>,
    ) -> Box<dyn Machine> {
        self.readable_machine(host, (lower, InterfaceUser::Other), routes).0
    }

    fn readable_machine(
        &self,
        host: &HostConfig,
        (lower, user): (&[LowerInterface], InterfaceUser),
        _: &Rc<dyn ServiceRoutes>,
    ) -> (Box<dyn Machine>, Option<StatusReader>) {
        let mac = user.address_above(host, lower);
        (Box::new(Bridge::new(self.config(lower, mac))), None)
    }
}
