//! The options of both services.

use hopcast_config::Diagnostic;
use hopcast_config::decode::{duration, flag, name, one_or_list, rate, text, whole};
use hopcast_config::yaml::Node;
use hopcast_core::Duration;
use hopcast_mesh::{MulticastMode, SizeLimit};

use super::{Algorithm, GatewayRole, LoopAvoidance, Settings};
use crate::network::read_prefixes;
use crate::table::{Form, Opt, Options, on_off, one_of, shown, word_of};

/// Shortest interval of messages: the kernel's (`2 * BATADV_JITTER`).
const MIN_INTERVAL: Duration = Duration::from_millis(40);
/// Maximum number of originators, clients or copies that can be allowed. Chosen: of originators and clients they take
/// some hundred megabytes at a node.
const MAX_KNOWN: u64 = 1_000_000;

/// The options of `batman-v`. The last is not one of `batman-iv`, which has all others.
const ALL: &[Opt<Settings>] = &[
    DEVICE,
    PREFIX,
    ORIGINATOR_INTERVAL,
    HOP_PENALTY,
    AGGREGATED_OGMS,
    FRAGMENTATION,
    WIRELESS,
    ARP_TABLE,
    GATEWAY,
    GATEWAY_DOWN,
    GATEWAY_UP,
    GATEWAY_CLASS,
    BRIDGE_LOOP_AVOIDANCE,
    MULTICAST_MODE,
    MULTICAST_FANOUT,
    MULTICAST_FORCEFLOOD,
    MULTICAST_SIZE_LIMIT,
    MAX_ORIGINATORS,
    MAX_CLIENTS,
    MAX_CLIENTS_OF_NODE,
    ELP_INTERVAL,
];

/// The options of `batman-iv`: all but the last.
pub(super) static OPTIONS_IV: Options<Settings> = Options(match ALL {
    [common @ .., _] => common,
    [] => ALL,
});

/// The options of `batman-v`.
pub(super) static OPTIONS_V: Options<Settings> = Options(ALL);

const DEVICE: Opt<Settings> = Opt {
    key: "device",
    about: "The name of the interface that it makes at each node. A node in two meshes names one of the two otherwise.",
    form: Form::Word,
    set: |settings, node, key| name(node, key).map(|found| settings.device = found.to_owned()),
    show: |settings| settings.device.clone(),
};

const PREFIX: Opt<Settings> = Opt {
    key: "prefix",
    about: "The prefix of the network that the mesh is, or a list of one of each version of IP, as that of a link.",
    form: Form::Prefixes,
    set: |settings, node, key| read_prefixes(node, key).map(|found| settings.prefixes = found),
    show: |settings| settings.prefixes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
};

const ORIGINATOR_INTERVAL: Opt<Settings> = Opt {
    key: "originator-interval",
    about: "Mean time from one originator message of a node to its next, at least 40 ms, each up to 20 ms more or less. Shorter, routes change sooner; the airtime of messages grows with the number of nodes.",
    form: Form::Duration,
    set: |settings, node, key| interval(node, key).map(|found| settings.interval = found),
    show: |settings| shown(&settings.interval),
};

const ELP_INTERVAL: Opt<Settings> = Opt {
    key: "elp-interval",
    about: "Mean time from one probe on an interface to the next, by which neighbours find each other, at least 40 ms, each up to 20 ms more or less. Shorter, neighbours are found sooner; longer, probes take less airtime.",
    form: Form::Duration,
    set: |settings, node, key| interval(node, key).map(|found| settings.elp_interval = found),
    show: |settings| shown(&settings.elp_interval),
};

const HOP_PENALTY: Opt<Settings> = Opt {
    key: "hop-penalty",
    about: "The part of a path's quality that each hop takes, of 255; of its throughput with `batman-v`. Less: longer paths where links are a little better; more: fewer hops over worse links.",
    form: Form::Count,
    set: |settings, node, key| whole(node, key, 0..=255).map(|found| settings.hop_penalty = found as u8),
    show: |settings| shown(&settings.hop_penalty),
};

const AGGREGATED_OGMS: Opt<Settings> = Opt {
    key: "aggregated-ogms",
    about: "Whether originator messages wait up to 100 ms for others, and leave several in a frame. Off: they arrive sooner, each in a frame of its own.",
    form: Form::Flag,
    set: |settings, node, key| flag(node, key).map(|found| settings.aggregation = found),
    show: |settings| on_off(settings.aggregation),
};

const FRAGMENTATION: Opt<Settings> = Opt {
    key: "fragmentation",
    about: "Whether packets that are too long for an interface are sent in parts. Off, they are dropped, and the MTU of `bat0` is 32 B less than the smallest below it.",
    form: Form::Flag,
    set: |settings, node, key| flag(node, key).map(|found| settings.fragmentation = found),
    show: |settings| on_off(settings.fragmentation),
};

const WIRELESS: Opt<Settings> = Opt {
    key: "wireless",
    about: "Its interfaces that are radios, the name of an interface or link, a list of such names, or `all`; those of a [radio link](#radio) with `csma` are in any case. Broadcasts are sent three times there, and a path that enters and leaves a node by the same one is worth less. With `batman-v` the throughput of others is the link's rate, and there a third of the rate at which a neighbour is heard.",
    form: Form::Names,
    set: |settings, node, key| {
        let names = one_or_list(node).iter().map(|name| text(name, key).map(str::to_owned));
        names.collect::<Result<_, _>>().map(|found| settings.wireless = found)
    },
    show: |settings| settings.wireless.join(" "),
};

const ARP_TABLE: Opt<Settings> = Opt {
    key: "arp-table",
    about: "Whether it takes part in the distributed ARP table, from which requests of ARP are answered. Off, each is flooded; on, one that no node can answer waits 250 ms before it is.",
    form: Form::Flag,
    set: |settings, node, key| flag(node, key).map(|found| settings.arp_table = found),
    show: |settings| on_off(settings.arp_table),
};

const GATEWAY: Opt<Settings> = Opt {
    key: "gateway",
    about: "Whether it is a gateway to another network, a `server`, or a `client` of one, to which what its hosts ask DHCP servers goes alone. `off`, that is flooded.",
    form: Form::OneOf(&["off", "client", "server"]),
    set: |settings, node, key| one_of(node, key, &GATEWAYS).map(|found| settings.gateway = found),
    show: |settings| word_of(settings.gateway, &GATEWAYS).to_owned(),
};

const GATEWAY_DOWN: Opt<Settings> = Opt {
    key: "gateway-down",
    about: "Bandwidth that a `server` announces from the other network to the mesh. It is what clients compare, and bounds nothing.",
    form: Form::Rate,
    set: |settings, node, key| rate(node, key).map(|found| settings.gateway_down = found),
    show: |settings| shown(&settings.gateway_down),
};

const GATEWAY_UP: Opt<Settings> = Opt {
    key: "gateway-up",
    about: "The same from the mesh to the other network, which is shown and not compared.",
    form: Form::Rate,
    set: |settings, node, key| rate(node, key).map(|found| settings.gateway_up = found),
    show: |settings| shown(&settings.gateway_up),
};

const GATEWAY_CLASS: Opt<Settings> = Opt {
    key: "gateway-class",
    about: "How a `client` chooses. With `batman-iv`, 1 to 255: 1 by quality and bandwidth, 2 by quality, and both keep a gateway while it is there; 3 changes to any of a better quality, and more to one that is better by so much. With `batman-v` by how much the throughput of another is greater, in 100 kbit/s. Less: gateways change often, each time of which connections end; more: a poor one is kept.",
    form: Form::Count,
    set: |settings, node, key| {
        let highest = match settings.algorithm {
            Algorithm::Iv => u8::MAX.into(),
            Algorithm::V => u32::MAX.into(),
        };
        whole(node, key, 1..=highest).map(|found| settings.gateway_class = found as u32)
    },
    show: |settings| shown(&settings.gateway_class),
};

const BRIDGE_LOOP_AVOIDANCE: Opt<Settings> = Opt {
    key: "bridge-loop-avoidance",
    about: "Whether nodes that are bridged to one LAN agree on who carries which client's frames: `bridged`, where `bat0` is not the host's own interface; `on`, everywhere, as in Linux; or `off`, and such a LAN has frames twice, and sends them back into the mesh. Where it is on, a node carries no broadcasts for 30 s after its start.",
    form: Form::OneOf(&["bridged", "on", "off"]),
    set: |settings, node, key| one_of(node, key, &AVOIDANCES).map(|found| settings.loop_avoidance = found),
    show: |settings| word_of(settings.loop_avoidance, &AVOIDANCES).to_owned(),
};

const MULTICAST_MODE: Opt<Settings> = Opt {
    key: "multicast-mode",
    about: "How a frame to a group that some nodes want is sent: in a `packet` that lists them, or as copies where one cannot be sent; as `unicast` copies; as a `broadcast`; or, with `auto`, as a broadcast where the paths to the receivers promise more by it, and in a packet elsewhere. Copies beyond `multicast-fanout` are a broadcast in any case.",
    form: Form::OneOf(&["packet", "unicast", "broadcast", "auto"]),
    set: |settings, node, key| one_of(node, key, &MODES).map(|found| settings.multicast.mode = found),
    show: |settings| word_of(settings.multicast.mode, &MODES).to_owned(),
};

const MULTICAST_FANOUT: Opt<Settings> = Opt {
    key: "multicast-fanout",
    about: "Maximum number of unicast copies of a frame to a group. Lower: frames to few nodes are flooded; higher: the links near the sender carry more copies.",
    form: Form::Count,
    set: |settings, node, key| maximum(node, key).map(|found| settings.multicast.fanout = found),
    show: |settings| shown(&settings.multicast.fanout),
};

const MULTICAST_FORCEFLOOD: Opt<Settings> = Opt {
    key: "multicast-forceflood",
    about: "Whether all frames to groups are flooded, whoever wants them. On, every node transmits every frame; off, a host that is a member without saying so is not reached.",
    form: Form::Flag,
    set: |settings, node, key| flag(node, key).map(|found| settings.multicast.force_flood = found),
    show: |settings| on_off(settings.multicast.force_flood),
};

const MULTICAST_SIZE_LIMIT: Opt<Settings> = Opt {
    key: "multicast-size-limit",
    about: "Limit of the size of multicast packets: that of the `kernel`, 1280 B with their lists, or the stricter one of its `documentation`, 1222 B of a frame to 2 nodes and 1030 B to 32. Longer frames are sent as copies.",
    form: Form::OneOf(&["kernel", "documentation"]),
    set: |settings, node, key| one_of(node, key, &LIMITS).map(|found| settings.multicast.size_limit = found),
    show: |settings| word_of(settings.multicast.size_limit, &LIMITS).to_owned(),
};

const MAX_ORIGINATORS: Opt<Settings> = Opt {
    key: "max-originators",
    about: "Maximum number of originators that a node knows. With fewer, those beyond are not reached; with more, forged ones take more memory.",
    form: Form::Count,
    set: |settings, node, key| maximum(node, key).map(|found| settings.max_originators = found),
    show: |settings| shown(&settings.max_originators),
};

const MAX_CLIENTS: Opt<Settings> = Opt {
    key: "max-clients",
    about: "Maximum number of clients behind other nodes that a node knows. With fewer, those beyond are not reached; with more, forged ones take more memory.",
    form: Form::Count,
    set: |settings, node, key| maximum(node, key).map(|found| settings.max_clients = found),
    show: |settings| shown(&settings.max_clients),
};

const MAX_CLIENTS_OF_NODE: Opt<Settings> = Opt {
    key: "max-clients-of-node",
    about: "The same of clients behind one node, so that one that announces too many leaves room for others'.",
    form: Form::Count,
    set: |settings, node, key| maximum(node, key).map(|found| settings.max_clients_of_node = found),
    show: |settings| shown(&settings.max_clients_of_node),
};

const GATEWAYS: [(&str, GatewayRole); 3] =
    [("off", GatewayRole::Off), ("client", GatewayRole::Client), ("server", GatewayRole::Server)];

const AVOIDANCES: [(&str, LoopAvoidance); 3] =
    [("bridged", LoopAvoidance::Bridged), ("on", LoopAvoidance::On), ("off", LoopAvoidance::Off)];

const MODES: [(&str, MulticastMode); 4] = [
    ("packet", MulticastMode::Packet),
    ("unicast", MulticastMode::Unicast),
    ("broadcast", MulticastMode::Broadcast),
    ("auto", MulticastMode::Auto),
];

const LIMITS: [(&str, SizeLimit); 2] =
    [("kernel", SizeLimit::Kernel), ("documentation", SizeLimit::Documented)];

fn interval(node: &Node, key: &str) -> Result<Duration, Diagnostic> {
    let interval = duration(node, key)?;
    if interval < MIN_INTERVAL {
        return Err(node.error(format!("`{key}`: expected at least 40 ms, found `{interval}`")));
    }
    Ok(interval)
}

/// How many of something are allowed.
fn maximum(node: &Node, key: &str) -> Result<usize, Diagnostic> {
    whole(node, key, 1..=MAX_KNOWN).map(|found| found as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batman_iv_has_all_options_of_batman_v_but_the_interval_of_elp() {
        let keys =
            |options: &Options<Settings>| options.0.iter().map(|option| option.key).collect::<Vec<_>>();
        let expected: Vec<&str> = keys(&OPTIONS_V).into_iter().filter(|&key| key != "elp-interval").collect();
        assert_eq!(keys(&OPTIONS_IV), expected);
        assert_eq!(OPTIONS_V.0.len(), expected.len() + 1);
    }
}
