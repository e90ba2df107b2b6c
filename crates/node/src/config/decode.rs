//! The keys of the file.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{
    Fields, choice, did_you_mean, entries, flag, name, one_or_list, size, some_duration, text, whole,
};
use hopcast_config::yaml::{Kind, Node};
use hopcast_core::plug::Destination;
use hopcast_stack::site::SiteLayer;
use hopcast_stack::transport::PortKind;
use log::LevelFilter;

use super::{Carrier, Config, Connections, Packets, Peer, PeerAddress, Relay, Timing, address, group, host};

const KEYS: [&str; 14] = [
    "name", "listen", "peers", "carry", "relay", "services", "send", "mtu", "hello", "memory", "status",
    "state", "metrics", "log",
];
const LEVELS: [&str; 5] = ["off", "error", "warn", "info", "debug"];
/// Maximum number of peers. Chosen: each costs a hello a second; a node with more neighbours would be a server.
const MAX_PEERS: usize = 64;
/// Maximum channel: channels are six bits of the tag in front of each datagram.
const MAX_CHANNEL: u64 = 63;
/// Default of `memory`, in bytes. Chosen; less makes connections wait sooner, more may not be there.
const DEFAULT_MEMORY: u64 = 256 << 20;
/// Minimum of `memory`, in bytes. Chosen: less has no room for a window of batches and a few connections.
const MIN_MEMORY: u64 = 16 << 20;
/// Default of `streams`. Chosen; more hold more memory, with fewer clients wait.
const DEFAULT_STREAMS: u16 = 1024;
/// Default share of a carrier's streams that one source may have: one over this number. Chosen; a larger share leaves
/// less to others, a smaller one limits a source that is alone.
const SOURCE_SHARE: u16 = 4;
/// Default of `connect-timeout`. Chosen; [`Connections::connect_timeout`] says what goes wrong each way.
const CONNECT_TIMEOUT: hopcast_core::Duration = hopcast_core::Duration::from_secs(10);
/// Maximum length of an interface's name, in bytes (IFNAMSIZ, less its zero).
const MAX_INTERFACE_NAME: usize = 15;

pub(super) fn config(root: &Node) -> Result<Config, Diagnostic> {
    let fields = Fields::of(root, "a node's configuration", &KEYS)?;
    let own = name(fields.need("name", "name: harbour")?, "name")?.to_owned();
    let listen = fields.need("listen", "listen: 192.0.2.1:7400")?;
    let listen = address::local(listen, "listen", "192.0.2.1:7400")?;
    let is_for_host = fields.keys().any(|key| ["services", "send"].contains(&key));
    let is_for_peers = fields.keys().any(|key| ["carry", "relay"].contains(&key));
    let peers = match fields.get("peers") {
        // What a node does for its host alone needs none.
        None if is_for_host && !is_for_peers => Vec::new(),
        _ => peers(fields.need("peers", "peers: { island: 198.51.100.9:7400 }")?, &own, listen)?,
    };
    let carry = fields.get("carry").map_or(&[][..], one_or_list);
    let carriers =
        carry.iter().filter_map(|node| carrier(node, &peers).transpose()).collect::<Result<Vec<_>, _>>()?;
    let groups = group::groups(carry, &own, &peers, listen)?;
    let relays = match fields.get("relay") {
        Some(node) => relays(node, &peers)?,
        None => Vec::new(),
    };
    let mtu = fields.read("mtu", |node, key| whole(node, key, 576..=9000))?.unwrap_or(1500) as u16;
    let services =
        fields.get("services").map_or_else(|| Ok(Vec::new()), |node| host::services(node, &own))?;
    let senders = fields.get("send").map_or_else(|| Ok(Vec::new()), |node| host::senders(node, mtu))?;
    if carriers.is_empty()
        && groups.is_empty()
        && relays.is_empty()
        && services.is_empty()
        && senders.is_empty()
    {
        return Err(root.error(
            "a node needs something to do: `carry` at a site, `relay` between two peers, `services` or `send` for its host",
        ));
    }
    let status = fields.read("status", |node, key| Ok(PathBuf::from(text(node, key)?)))?;
    let state = fields.read("state", group::path)?;
    let config = Config {
        state: state.unwrap_or_else(|| Config::default_state(&own)),
        status: status.unwrap_or_else(|| Config::default_socket(&own)),
        name: own,
        listen,
        peers,
        carriers,
        groups,
        relays,
        services,
        senders,
        mtu,
        memory: fields.read("memory", memory)?.unwrap_or(DEFAULT_MEMORY),
        timing: fields.get("hello").map_or_else(|| Ok(Timing::default()), timing)?,
        metrics: fields.read("metrics", |node, key| address::local(node, key, "127.0.0.1:9400"))?,
        log: fields.read("log", level)?.unwrap_or(LevelFilter::Info),
    };
    lanes(root, &config)?;
    devices(root, &config)?;
    Ok(config)
}

fn peers(node: &Node, own: &str, listen: SocketAddr) -> Result<Vec<Peer>, Diagnostic> {
    let entries = entries(node, "`peers`")?;
    if entries.is_empty() || entries.len() > MAX_PEERS {
        return Err(node.error(format!("`peers`: expected 1 to {MAX_PEERS}, found {}", entries.len())));
    }
    let peer = |entry: &hopcast_config::yaml::Entry| {
        hopcast_config::decode::check_name(&entry.key, "peers", &entry.key_span)?;
        if entry.key == own {
            return Err(entry.key_span.error(format!("`peers`: `{own}` is this node itself")));
        }
        let (value, roams) = match entry.value.kind {
            Kind::Map(_) => {
                let fields = Fields::of(&entry.value, "a peer", &["address", "roams"])?;
                let roams = fields.read("roams", flag)?.unwrap_or(false);
                (fields.need("address", "address: 198.51.100.9:7400")?, roams)
            }
            Kind::Scalar(_) | Kind::List(_) => (&entry.value, false),
        };
        let address = address::peer(value, &entry.key)?;
        let version = |v4: bool| if v4 { "IPv4" } else { "IPv6" };
        match address {
            PeerAddress::Address(at) if at.is_ipv4() != listen.is_ipv4() => Err(value.error(format!(
                "`{}`: expected an {} address, as `listen` is one, found `{at}`",
                entry.key,
                version(listen.is_ipv4())
            ))),
            address => Ok(Peer { name: entry.key.clone(), address, roams }),
        }
    };
    entries.iter().map(peer).collect()
}

/// The index of a peer that the file names.
fn peer(node: &Node, key: &str, peers: &[Peer]) -> Result<usize, Diagnostic> {
    let found = text(node, key)?;
    let place = peers.iter().position(|peer| peer.name == found);
    place.ok_or_else(|| {
        let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
        let hint = did_you_mean(found, names.iter().copied());
        node.error(format!("`{key}`: there is no peer `{found}`{hint} (peers: {})", names.join(", ")))
    })
}

/// The carrier to a far site; `None` if there is a group alone.
fn carrier(node: &Node, peers: &[Peer]) -> Result<Option<Carrier>, Diagnostic> {
    let fields = Fields::of(node, "`carry`", &["to", "via", "channel", "packets", "tcp", "group"])?;
    let is_group_alone = fields.keys().all(|key| ["group", "channel"].contains(&key));
    if is_group_alone && fields.get("group").is_some() {
        return Ok(None);
    }
    let to = fields.read("to", |node, key| Ok(name(node, key)?.to_owned()))?;
    let far = to.as_ref().and_then(|to| peers.iter().position(|peer| &peer.name == to));
    let via = match (fields.get("via"), far, peers) {
        (Some(node), ..) => {
            let via = one_or_list(node).iter().map(|node| peer(node, "via", peers));
            let mut via = via.collect::<Result<Vec<_>, _>>()?;
            via.dedup();
            via
        }
        (None, Some(far), _) => vec![far],
        (None, None, [_]) => vec![0],
        (None, None, _) if to.is_none() => {
            return Err(
                node.error("`carry` needs `to` where there are several peers, for example `to: island`")
            );
        }
        (None, None, _) => {
            return Err(node.error(
                "`carry` needs `via`, the next hop, where the far site is none of several, for example `via: hill`",
            ));
        }
    };
    if via.is_empty() {
        return Err(node.error("`via`: expected a peer, found an empty list"));
    }
    let carrier = Carrier {
        to: to.unwrap_or_else(|| peers[via[0]].name.clone()),
        channel: channel(&fields)?,
        packets: fields.get("packets").map(packets).transpose()?,
        tcp: fields.get("tcp").map(connections).transpose()?,
        via,
    };
    match (carrier.packets.is_none() && carrier.tcp.is_none(), fields.get("group")) {
        (false, _) => Ok(Some(carrier)),
        (true, None) => Err(node.error("`carry` needs `packets`, `tcp`, `group` or several of them")),
        (true, Some(group)) => {
            Err(group.error("`to` and `via` are for `packets` and `tcp`: a group has `members`"))
        }
    }
}

pub(super) fn channel(fields: &Fields<'_>) -> Result<u8, Diagnostic> {
    let channel = fields.read("channel", |node, key| whole(node, key, 0..=MAX_CHANNEL))?;
    Ok(channel.unwrap_or(0) as u8)
}

fn packets(node: &Node) -> Result<Packets, Diagnostic> {
    let fields = Fields::of(node, "`packets`", &["tun", "address", "routes", "from", "over"])?;
    let tun = device(fields.need("tun", "tun: hop0")?, "tun")?;
    let addresses = fields.need("address", "address: 10.77.0.1/30")?;
    let addresses = one_or_list(addresses).iter().map(|node| address::interface(node, "address"));
    let over = fields.get("over").map(|node| SiteLayer::read(node, PortKind::Datagram)).transpose()?;
    let addresses: Vec<_> = addresses.collect::<Result<_, _>>()?;
    let routes = list_of(&fields, "routes", address::network)?;
    let from = match fields.get("from") {
        Some(_) => list_of(&fields, "from", address::network)?,
        None => {
            let on_device = addresses.iter().map(|&(at, prefix)| (address::masked(at, prefix), prefix));
            on_device.chain(routes.iter().copied()).collect()
        }
    };
    Ok(Packets {
        tun: tun.to_owned(),
        addresses,
        routes,
        from,
        over: over.unwrap_or_else(|| SiteLayer::default_for(PortKind::Datagram)),
    })
}

/// The name of an interface.
pub(super) fn device<'a>(node: &'a Node, key: &str) -> Result<&'a str, Diagnostic> {
    let found = text(node, key)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if found.len() > MAX_INTERFACE_NAME || !found.chars().all(fits) || found.starts_with('.') {
        return Err(node.error(format!(
            "`{key}`: expected a name of letters, digits, `-`, `_` and `.`, at most {MAX_INTERFACE_NAME} bytes, found `{found}`"
        )));
    }
    Ok(found)
}

fn list_of<T>(
    fields: &Fields<'_>,
    key: &str,
    read: impl Fn(&Node, &str) -> Result<T, Diagnostic>,
) -> Result<Vec<T>, Diagnostic> {
    let items = fields.get(key).map_or(&[][..], one_or_list);
    items.iter().map(|node| read(node, key)).collect()
}

/// Reads `tcp`: the destinations to take over, or a map of all its keys.
fn connections(node: &Node) -> Result<Connections, Diagnostic> {
    let mut found = Connections {
        take: Vec::new(),
        reach: Vec::new(),
        as_client: false,
        from: None,
        streams: DEFAULT_STREAMS,
        per_source: DEFAULT_STREAMS / SOURCE_SHARE,
        connect_timeout: CONNECT_TIMEOUT,
        congestion: None,
        over: SiteLayer::default_for(PortKind::Stream),
    };
    if !matches!(node.kind, Kind::Map(_)) {
        let take = one_or_list(node).iter().map(|node| address::destination(node, "tcp"));
        found.take = take.collect::<Result<_, _>>()?;
        return Ok(found);
    }
    const KEYS: [&str; 9] =
        ["take", "reach", "source", "from", "streams", "per-source", "connect-timeout", "congestion", "over"];
    let fields = Fields::of(node, "`tcp`", &KEYS)?;
    found.take = list_of(&fields, "take", address::destination)?;
    found.reach = list_of(&fields, "reach", address::destination)?;
    if found.take.is_empty() && found.reach.is_empty() {
        return Err(node.error("`tcp` needs `take`, `reach` or both, for example `take: [10.20.0.0/16]`"));
    }
    check_loops(&fields, &found.take, &found.reach)?;
    let source = fields.read("source", |node, key| Ok(choice(node, key, &["host", "client"])?.0))?;
    found.as_client = source == Some("client");
    if let Some(from) = fields.get("from") {
        if !found.as_client {
            return Err(
                from.error("`from` is for `source: client`: otherwise servers see this host's address")
            );
        }
        found.from = Some(list_of(&fields, "from", address::network)?);
    }
    if let Some(streams) = fields.read("streams", |node, key| whole(node, key, 1..=u64::from(u16::MAX)))? {
        found.streams = streams as u16;
        found.per_source = found.streams.div_ceil(SOURCE_SHARE);
    }
    let max = u64::from(found.streams);
    let per_source = fields.read("per-source", |node, key| whole(node, key, 1..=max))?;
    found.per_source = per_source.map_or(found.per_source, |max| max as u16);
    found.connect_timeout = fields.read("connect-timeout", some_duration)?.unwrap_or(CONNECT_TIMEOUT);
    found.congestion = fields.read("congestion", |node, key| Ok(name(node, key)?.to_owned()))?;
    if let Some(node) = fields.get("over") {
        found.over = SiteLayer::read(node, PortKind::Stream)?;
    }
    Ok(found)
}

/// Checks that no connection that goes on from this node is taken over by it again.
fn check_loops(fields: &Fields<'_>, take: &[Destination], reach: &[Destination]) -> Result<(), Diagnostic> {
    let nodes = fields.get("reach").map_or(&[][..], one_or_list);
    for (to, node) in reach.iter().zip(nodes) {
        if let Some(taken) = take.iter().find(|taken| address::overlap(taken, to)) {
            return Err(node.error(format!(
                "`reach`: connections to {to} would go round in a circle, since `take` has {taken}"
            )));
        }
    }
    Ok(())
}

/// Reads `relay`: `[harbour, island]`, a map, or a list of maps.
fn relays(node: &Node, peers: &[Peer]) -> Result<Vec<Relay>, Diagnostic> {
    let plain = |node: &Node| matches!(&node.kind, Kind::List(items) if items.iter().all(is_scalar));
    if plain(node) {
        return Ok(vec![relay(node, peers)?]);
    }
    one_or_list(node).iter().map(|node| relay(node, peers)).collect()
}

fn is_scalar(node: &Node) -> bool {
    matches!(node.kind, Kind::Scalar(_))
}

fn relay(node: &Node, peers: &[Peer]) -> Result<Relay, Diagnostic> {
    let fields = match node.kind {
        Kind::Map(_) => Fields::of(node, "`relay`", &["between", "channel", "packets", "tcp"])?,
        Kind::Scalar(_) | Kind::List(_) => Fields::empty(node, "`relay`"),
    };
    let between = match node.kind {
        Kind::Map(_) => fields.need("between", "between: [harbour, island]")?,
        Kind::Scalar(_) | Kind::List(_) => node,
    };
    let two = one_or_list(between).iter().map(|node| peer(node, "relay", peers));
    let &[one, other] = two.collect::<Result<Vec<_>, _>>()?.as_slice() else {
        return Err(between.error("`relay`: expected two peers, for example `relay: [harbour, island]`"));
    };
    if one == other {
        return Err(between.error(format!("`relay`: `{}` is listed twice", peers[one].name)));
    }
    // A relay learns from the sites whether what it relays has a deadline.
    let layer = |key, port| match fields.get(key) {
        Some(node) => SiteLayer::read(node, port),
        None => Ok(SiteLayer::default_for(PortKind::Stream)),
    };
    let (packets, tcp) = (layer("packets", PortKind::Datagram)?, layer("tcp", PortKind::Stream)?);
    Ok(Relay { between: [one, other], channel: channel(&fields)?, packets, tcp })
}

fn memory(node: &Node, key: &str) -> Result<u64, Diagnostic> {
    Ok(size(node, key, MIN_MEMORY..=1 << 40)?.get())
}

fn timing(node: &Node) -> Result<Timing, Diagnostic> {
    let fields = Fields::of(node, "`hello`", &["every", "down-after"])?;
    let default = Timing::default();
    let hello = fields.read("every", some_duration)?.unwrap_or(default.hello);
    let down_after = fields.read("down-after", some_duration)?.unwrap_or(hello.mul_f64(5.0));
    let (min, max) = (hopcast_core::Duration::from_millis(20), hopcast_core::Duration::from_secs(60));
    if !(min..=max).contains(&hello) {
        return Err(fields.error(format!("`every`: expected 20 ms to 60 s, found {hello}")));
    }
    if down_after < hello.mul_f64(2.0) {
        return Err(fields.error(format!(
            "`down-after`: expected at least two hellos' time, {}, found {down_after}",
            hello.mul_f64(2.0)
        )));
    }
    Ok(Timing { hello, down_after })
}

fn level(node: &Node, key: &str) -> Result<LevelFilter, Diagnostic> {
    let (word, ..) = choice(node, key, &LEVELS)?;
    Ok(word.parse().unwrap_or(LevelFilter::Info))
}

/// Checks that no two carriers or relays share a peer and a channel.
fn lanes(root: &Node, config: &Config) -> Result<(), Diagnostic> {
    let carried = config.carriers.iter().flat_map(|carrier| {
        let what = format!("what is carried to `{}`", carrier.to);
        carrier.via.iter().map(move |&peer| (peer, carrier.channel, what.clone()))
    });
    let relayed = config.relays.iter().flat_map(|relay| {
        let [one, other] = relay.between.map(|peer| config.peers[peer].name.as_str());
        let what = format!("what is relayed between `{one}` and `{other}`");
        relay.between.into_iter().map(move |peer| (peer, relay.channel, what.clone()))
    });
    let mut known = BTreeMap::new();
    for (peer, channel, what) in carried.chain(relayed) {
        if let Some(before) = known.insert((peer, channel), what.clone()) {
            let peer = &config.peers[peer].name;
            return Err(root.error(format!(
                "{before} and {what} would mix at `{peer}`: give one of them a `channel` of its own, at every node of its route"
            )));
        }
    }
    Ok(())
}

/// Checks that each TUN device belongs to one carrier or group, and that no connection is taken over by two.
fn devices(root: &Node, config: &Config) -> Result<(), Diagnostic> {
    let mut known: Vec<(&String, &Vec<(IpAddr, u8)>)> = Vec::new();
    for (tun, addresses) in config.devices() {
        if known.iter().any(|(before, _)| *before == tun) {
            return Err(
                root.error(format!("`tun`: two carriers, groups or services cannot both have `{tun}`"))
            );
        }
        let twice = |(address, _): &&(IpAddr, u8)| {
            known.iter().any(|(_, before)| before.iter().any(|(other, _)| other == address))
        };
        if let Some((address, _)) = addresses.iter().find(twice) {
            return Err(root.error(format!("`address`: {address} is on two devices")));
        }
        known.push((tun, addresses));
    }
    let tcp: Vec<_> = config.carriers.iter().filter_map(|carrier| carrier.tcp.as_ref()).collect();
    for (i, one) in tcp.iter().enumerate() {
        for other in &tcp[i + 1..] {
            let clash =
                one.take.iter().find(|take| other.take.iter().any(|taken| address::overlap(take, taken)));
            if let Some(clash) = clash {
                return Err(root.error(format!("`take`: two carriers cannot both take {clash} over")));
            }
        }
    }
    Ok(())
}
