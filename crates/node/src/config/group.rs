//! The keys of groups.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, did_you_mean, name, one_or_list, rate, size, text};
use hopcast_config::yaml::Node;
use hopcast_stack::site::GroupLayer;

use super::decode::channel;
use super::{Group, Peer, Receive};
use crate::group::wire::number;

/// Default of `quota`, in bytes. Chosen; [`Receive::quota`] says what goes wrong each way.
const DEFAULT_QUOTA: u64 = 1 << 30;
/// Minimum and maximum of `quota`, in bytes.
const MIN_QUOTA: u64 = 1 << 10;
const MAX_QUOTA: u64 = 1 << 50;

/// The groups of all entries of `carry`.
pub(super) fn groups(
    carry: &[Node],
    own: &str,
    peers: &[Peer],
    listen: SocketAddr,
) -> Result<Vec<Group>, Diagnostic> {
    let mut groups: Vec<Group> = Vec::new();
    for node in carry {
        // The keys of an entry were checked with the rest of it.
        let entry = Fields::of(node, "`carry`", &["to", "via", "channel", "packets", "tcp", "group"])?;
        let Some(node) = entry.get("group") else { continue };
        let found = group(node, channel(&entry)?, own, peers, listen)?;
        apart(node, &groups, &found, peers)?;
        groups.push(found);
    }
    Ok(groups)
}

fn group(
    node: &Node,
    channel: u8,
    own: &str,
    peers: &[Peer],
    listen: SocketAddr,
) -> Result<Group, Diagnostic> {
    const KEYS: [&str; 8] = ["name", "members", "send", "receive", "messages", "address", "rate", "over"];
    let fields = Fields::of(node, "`group`", &KEYS)?;
    let over = fields.get("over").map(GroupLayer::read).transpose()?.unwrap_or_default();
    let named = fields.need("members", "members: [ship1, shore]")?;
    let (members, afar) = members(named, own, peers, &over)?;
    let group = Group {
        name: name(fields.need("name", "name: charts")?, "name")?.to_owned(),
        members,
        afar,
        channel,
        send: fields.get("send").map(send).transpose()?,
        receive: fields.get("receive").map(receive).transpose()?,
        messages: fields.get("messages").map(messages).transpose()?,
        address: fields.read("address", |node, key| multicast(node, key, listen))?,
        rate: fields.read("rate", rate)?,
        over,
    };
    // The members know each other by addresses of IPv6, whatever those of their hosts are.
    if let Some(max) = group.over.max_members().filter(|&max| group.members.len() >= max) {
        let (members, over) = (group.members.len() + 1, &group.over);
        return Err(node.error(format!("`members`: {members} with this node, and `{over}` serves {max}")));
    }
    // Where members hold messages for each other, one may do nothing else.
    if !group.takes_part() && !group.over.stores_and_forwards() {
        return Err(node.error("`group` needs `send`, `receive`, `messages` or several of them"));
    }
    Ok(group)
}

/// The others of those that a file names, which may have this node among them: so that all members have one list.
/// Those that are peers, by their places, and the names of those that are not, which only a transport reaches whose
/// members hold messages for each other.
fn members(
    node: &Node,
    own: &str,
    peers: &[Peer],
    over: &GroupLayer,
) -> Result<(Vec<usize>, Vec<String>), Diagnostic> {
    let (mut members, mut afar) = (Vec::new(), Vec::<String>::new());
    let mut numbers = BTreeMap::from([(number(own), own.to_owned())]);
    let listed = one_or_list(node);
    for node in listed {
        let found = name(node, "members")?;
        if found == own {
            continue;
        }
        let place = peers.iter().position(|peer| peer.name == found);
        let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
        let is_listed =
            |name: &str| listed.iter().any(|node| text(node, "members").is_ok_and(|it| it == name));
        let unlisted = names.iter().copied().chain([own]).filter(|name| !is_listed(name));
        let is_slip = || !over.stores_and_forwards() || !did_you_mean(found, unlisted.clone()).is_empty();
        if place.is_none() && is_slip() {
            let hint = did_you_mean(found, unlisted);
            let names = names.join(", ");
            return Err(node.error(format!(
                "`members`: `{found}` is neither this node nor a peer{hint} (peers: {names})"
            )));
        }
        if place.is_some_and(|place| members.contains(&place)) || afar.iter().any(|name| name == found) {
            return Err(node.error(format!("`members`: `{found}` is listed twice")));
        }
        if let Some(other) = numbers.insert(number(found), found.to_owned()) {
            return Err(node.error(format!(
                "`members`: `{found}` and `{other}` have the same number on the wire: give one of them another name"
            )));
        }
        match place {
            Some(place) => members.push(place),
            None => afar.push(found.to_owned()),
        }
    }
    if members.is_empty() {
        let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
        return Err(
            node.error(format!("`members`: expected at least one peer (peers: {})", names.join(", ")))
        );
    }
    Ok((members, afar))
}

fn send(node: &Node) -> Result<PathBuf, Diagnostic> {
    let fields = Fields::of(node, "`send`", &["directory"])?;
    directory(fields.need("directory", "directory: /srv/charts/out")?, "directory")
}

fn receive(node: &Node) -> Result<Receive, Diagnostic> {
    let fields = Fields::of(node, "`receive`", &["directory", "quota"])?;
    let directory = directory(fields.need("directory", "directory: /srv/charts/in")?, "directory")?;
    let quota = fields.read("quota", |node, key| size(node, key, MIN_QUOTA..=MAX_QUOTA))?;
    Ok(Receive { directory, quota: quota.map_or(DEFAULT_QUOTA, |quota| quota.get()) })
}

fn messages(node: &Node) -> Result<PathBuf, Diagnostic> {
    let fields = Fields::of(node, "`messages`", &["socket"])?;
    path(fields.need("socket", "socket: /run/hopcast/charts.sock")?, "socket")
}

/// An absolute path: a service has another working directory than the person who wrote it.
pub(super) fn path(node: &Node, key: &str) -> Result<PathBuf, Diagnostic> {
    let found = text(node, key)?;
    match Path::new(found).is_absolute() {
        true => Ok(PathBuf::from(found)),
        false => Err(node.error(format!("`{key}`: expected a path that begins with `/`, found `{found}`"))),
    }
}

fn directory(node: &Node, key: &str) -> Result<PathBuf, Diagnostic> {
    let found = path(node, key)?;
    match found.is_dir() {
        true => Ok(found),
        false => Err(node.error(format!("`{key}`: there is no directory `{}`", found.display()))),
    }
}

fn multicast(node: &Node, key: &str, listen: SocketAddr) -> Result<IpAddr, Diagnostic> {
    let found = text(node, key)?;
    let (version, example) = if listen.is_ipv4() { ("IPv4", "239.192.0.1") } else { ("IPv6", "ff18::1") };
    let address =
        found.parse::<IpAddr>().ok().filter(|at| at.is_multicast() && at.is_ipv4() == listen.is_ipv4());
    address.ok_or_else(|| {
        node.error(format!(
            "`{key}`: expected a multicast address of {version}, as `listen` is one, for example `{example}`, found `{found}`"
        ))
    })
}

/// Whether a group and those before it have nothing that would mix.
fn apart(node: &Node, before: &[Group], group: &Group, peers: &[Peer]) -> Result<(), Diagnostic> {
    for other in before {
        let (one, two) = (&other.name, &group.name);
        if one == two {
            return Err(node.error(format!("`group`: there are two of the name `{one}`")));
        }
        let shared = group.members.iter().find(|peer| other.members.contains(peer));
        if let Some(&peer) = shared.filter(|_| other.channel == group.channel) {
            return Err(node.error(format!(
                "the groups `{one}` and `{two}` would mix at `{}`: give one of them a `channel` of its own, at every member",
                peers[peer].name
            )));
        }
        let directory = |group: &Group| group.receive.as_ref().map(|receive| receive.directory.clone());
        if let Some(directory) = directory(group).filter(|found| directory(other).as_ref() == Some(found)) {
            return Err(node.error(format!(
                "the groups `{one}` and `{two}` cannot both receive into `{}`",
                directory.display()
            )));
        }
        if let Some(socket) = group.messages.as_ref().filter(|found| other.messages.as_ref() == Some(found)) {
            let socket = socket.display();
            return Err(
                node.error(format!("the groups `{one}` and `{two}` cannot both have the socket `{socket}`"))
            );
        }
    }
    Ok(())
}
