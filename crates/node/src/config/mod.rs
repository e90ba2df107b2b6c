//! The configuration of a node: one small YAML file, read into a [`Config`] that cannot be wrong.
//!
//! `address` reads addresses, networks and destinations; `decode` the keys, `group` those of groups, `host` those of
//! what it does for its host. A mistake is one line `file:line:column: message`; the reader is that of scenarios.
//! `docs/node.md` is the reference.

mod address;
mod decode;
mod group;
mod host;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopcast_config::Diagnostic;
use hopcast_config::yaml::{self, Source};
use hopcast_core::plug::Destination;
use hopcast_core::{Duration, Rate};
use hopcast_stack::site::{GroupLayer, SiteDeliveryLayer, SiteLayer, SiteService};
use log::LevelFilter;

pub(crate) use address::{contains, special};

/// A node: its name, its peers, and the traffic that it carries.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The name by which peers know it.
    pub name: String,
    /// The one address and port that it sends from and receives at.
    pub listen: SocketAddr,
    /// Its neighbours, in the order of the file.
    pub peers: Vec<Peer>,
    /// The traffic that it carries to other sites.
    pub carriers: Vec<Carrier>,
    /// The groups in which it shares files and messages.
    pub groups: Vec<Group>,
    /// The traffic that it relays between peers.
    pub relays: Vec<Relay>,
    /// The services for what its host forwards, and between its interfaces.
    pub services: Vec<HostService>,
    /// The groups of hosts to which programs of its host send.
    pub senders: Vec<HostSender>,
    /// Maximum length of an IP packet that fits every hop, in bytes. Default: 1500. All nodes of a path must agree:
    /// larger than a hop's, and full datagrams are lost there; smaller, and headers take a larger share of the rate.
    pub mtu: u16,
    /// Intervals of the hellos between peers.
    pub timing: Timing,
    /// Memory for carried data, in bytes: half for batches, a quarter for bytes of TCP connections that wait to be sent
    /// into the coded streams, a quarter for bytes that wait for slow readers. Default: 256 MiB. Too small, and windows
    /// shrink below the bandwidth-delay product of a path; too large, and stalled readers make a small host swap.
    pub memory: u64,
    /// Path of the Unix socket that answers `hopcast node status`.
    pub status: PathBuf,
    /// Directory of what outlasts the node: what it holds for others. Default: `/var/lib/hopcast/node-NAME`, or where
    /// the service manager or the user have such things.
    pub state: PathBuf,
    /// Address at which counters are served in Prometheus' format, if any.
    pub metrics: Option<SocketAddr>,
    /// The lowest level that is logged.
    pub log: LevelFilter,
}

/// A neighbour: the far site, or a node on the route to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name, as in its own file.
    pub name: String,
    /// Its address at the start.
    pub address: PeerAddress,
    /// Whether it is followed to another address. Default: no, so that no other host can take its place by using its
    /// name.
    pub roams: bool,
}

/// Address of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerAddress {
    /// A fixed address.
    Address(SocketAddr),
    /// A host's name, which is resolved again while the peer is silent.
    Name {
        /// The host's name.
        host: String,
        /// The port.
        port: u16,
    },
    /// The source address of its first hello.
    Anywhere,
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
            Self::Anywhere => f.write_str("anywhere"),
        }
    }
}

/// The traffic between this node and a far site.
#[derive(Clone, Debug, PartialEq)]
pub struct Carrier {
    /// The far site's name.
    pub to: String,
    /// Next hops, by their indices in [`Config::peers`]; several are disjoint routes that share the load.
    pub via: Vec<usize>,
    /// Number that distinguishes carriers with the same route.
    pub channel: u8,
    /// IP packets, through a TUN device.
    pub packets: Option<Packets>,
    /// TCP connections, through a transparent proxy.
    pub tcp: Option<Connections>,
}

/// IP packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Packets {
    /// The TUN device's name.
    pub tun: String,
    /// The host's addresses on it.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The networks that are routed into it.
    pub routes: Vec<(IpAddr, u8)>,
    /// The networks that the sources of the far site's packets may be in. Default: those of `addresses` and `routes`,
    /// to which answers are sent.
    pub from: Vec<(IpAddr, u8)>,
    /// The transport that carries them. Default: the first transport with datagrams, since for a TCP inside a lost
    /// packet is better than one that is very late.
    pub over: SiteLayer,
}

/// TCP connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Connections {
    /// Destinations whose connections, of this host and in transit, are taken over here and go on from the far site.
    pub take: Vec<Destination>,
    /// Destinations to which the far site's connections may go on from here. Default: none, so that a stranger who can
    /// reach the port gets no further than the file allows.
    pub reach: Vec<Destination>,
    /// Whether servers see the client's address, and not this host's. Default: no; with it, the servers' answers must
    /// be routed back through this host.
    pub as_client: bool,
    /// The networks that the addresses of the far site's clients may be in, where servers see them. Default: all except
    /// those that stand for this host or its link, which no client elsewhere has.
    pub from: Option<Vec<(IpAddr, u8)>>,
    /// Maximum number of connections, both directions together. Default: 1024.
    pub streams: u16,
    /// Maximum number of connections of one source address. Default: a quarter of `streams`, so that one host leaves
    /// room for others.
    pub per_source: u16,
    /// Maximum time that a server may take to answer. Default: 10 s. Too short, and distant servers are not reached;
    /// too long, and a server that is gone holds more connections.
    pub connect_timeout: Duration,
    /// The congestion control of the host's side of the connections; `None` leaves the host's.
    pub congestion: Option<String>,
    /// The transport that carries them.
    pub over: SiteLayer,
}

/// A group of sites that share files and messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name, the same at all members.
    pub name: String,
    /// The other members that are peers, by their places in [`Config::peers`].
    pub members: Vec<usize>,
    /// The others, whom this site reaches by way of members only.
    pub afar: Vec<String>,
    /// Number that tells it apart from other groups with a member of it.
    pub channel: u8,
    /// The directory whose files are sent.
    pub send: Option<PathBuf>,
    /// Where files of others go.
    pub receive: Option<Receive>,
    /// Socket of the programs that send and receive messages.
    pub messages: Option<PathBuf>,
    /// The group's address in the network, if it has one; otherwise each member is sent a copy.
    pub address: Option<IpAddr>,
    /// Maximum rate at which this site sends, all copies and headers included. Default: the transport's own, which
    /// makes room for others. Higher than the link's, and what is too much is lost and sent again; lower, and the
    /// link idles.
    pub rate: Option<Rate>,
    /// The transport that carries it.
    pub over: GroupLayer,
}

impl Group {
    /// Whether this site sends or receives anything itself, and does not only hold messages for others.
    pub fn takes_part(&self) -> bool {
        self.send.is_some() || self.receive.is_some() || self.messages.is_some()
    }
}

/// Where files of others go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The directory, in which each member has one of its name.
    pub directory: PathBuf,
    /// Maximum number of bytes of all files in it. Default: 1 GiB. Too small, and files are refused; too large, and
    /// whoever can send fills the disk.
    pub quota: u64,
}

/// A relay between two peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Relay {
    /// The two peers, by their indices in [`Config::peers`].
    pub between: [usize; 2],
    /// The channel of the sites that it serves.
    pub channel: u8,
    /// The transport of packets.
    pub packets: SiteLayer,
    /// The transport of TCP connections.
    pub tcp: SiteLayer,
}

/// A service for what the node's host forwards, or between interfaces that it gives up.
#[derive(Clone, Debug, PartialEq)]
pub struct HostService {
    /// Of one for what the host forwards, the host's addresses, of which the first is the one by which others know it.
    pub addresses: Vec<IpAddr>,
    /// The host's interfaces on which packets come that it takes, or that it is between.
    pub interfaces: Vec<String>,
    /// Of one between interfaces, the host's own port.
    pub device: Option<HostDevice>,
    /// The service.
    pub service: SiteService,
}

/// The device by which a host is beside the interfaces that a service is between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDevice {
    /// The TAP device's name.
    pub tap: String,
    /// The host's addresses on it; none are needed.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Its Ethernet address, which stays the same over restarts.
    pub mac: [u8; 6],
}

/// A group of hosts to which programs of the node's host send.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSender {
    /// The address that programs send to.
    pub to: IpAddr,
    /// The TUN device's name, into which that address is routed.
    pub tun: String,
    /// The host's addresses on it; none are needed.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The host's address from which members are sent to.
    pub from: IpAddr,
    /// The members' addresses.
    pub members: Vec<IpAddr>,
    /// The host's interfaces on which answers of the network come.
    pub interfaces: Vec<String>,
    /// The delivery to the members.
    pub over: SiteDeliveryLayer,
}

/// Intervals of the hellos between peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Interval between hellos to a peer. Default: 1 s.
    pub hello: Duration,
    /// Silence after which a peer counts as down; then only hellos are sent to it. Default: 5 s. Shorter, and a burst
    /// of losses interrupts the carriers; longer, and data is sent in vain over a link that is gone.
    pub down_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { hello: Duration::from_secs(1), down_after: Duration::from_secs(5) }
    }
}

impl Config {
    /// The TUN devices of carriers and senders: the name of each, and the host's addresses on it.
    pub(crate) fn devices(&self) -> impl Iterator<Item = (&String, &Vec<(IpAddr, u8)>)> {
        let carried = self.carriers.iter().filter_map(|carrier| carrier.packets.as_ref());
        let carried = carried.map(|packets| (&packets.tun, &packets.addresses));
        let taps = self.services.iter().filter_map(|service| service.device.as_ref());
        let taps = taps.map(|device| (&device.tap, &device.addresses));
        carried.chain(self.senders.iter().map(|sender| (&sender.tun, &sender.addresses))).chain(taps)
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, Diagnostic> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| {
            let error = match error.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                _ => error.to_string(),
            };
            Diagnostic::of_file(&name, error)
        })?;
        Self::parse(&text, &name)
    }

    /// Reads the text of a file that diagnostics call `name`.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnostic> {
        let source = Source { name: name.to_owned(), dir: PathBuf::new(), lines: true };
        let source = Arc::new(source);
        if text.trim().is_empty() {
            return Err(Diagnostic::of_file(name, "expected a node's configuration, found nothing"));
        }
        decode::config(&yaml::parse(text, &source)?)
    }

    /// Directory of a node's state, unless its file names another.
    pub fn default_state(name: &str) -> PathBuf {
        let of = |variable: &str| {
            let value = std::env::var_os(variable).filter(|value| !value.is_empty())?;
            // A service manager may list several.
            std::env::split_paths(&value).next()
        };
        let of_user = || {
            let home = || Some(of("HOME")?.join(".local/state"));
            of("XDG_STATE_HOME").or_else(home).filter(|_| !rustix::process::geteuid().is_root())
        };
        let directory = of("STATE_DIRECTORY").or_else(|| Some(of_user()?.join("hopcast")));
        directory.unwrap_or_else(|| PathBuf::from("/var/lib/hopcast")).join(format!("node-{name}"))
    }

    /// Path of a node's status socket, unless its file names another.
    pub fn default_socket(name: &str) -> PathBuf {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
        let directory = match runtime {
            // While root is logged in it has such a directory too, which disappears afterwards.
            Some(directory) if !rustix::process::geteuid().is_root() => PathBuf::from(directory),
            _ => PathBuf::from("/run"),
        };
        directory.join("hopcast").join(format!("node-{name}.sock"))
    }
}
