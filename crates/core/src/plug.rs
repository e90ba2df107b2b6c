//! The sockets and devices into which ports of machines are plugged on a real host.
//!
//! In virtual time a stack is attached to a simulated host. Live it is attached to the kernel: each port towards the
//! network has a [`Plug`] that says which socket or device carries it. A plug is only a description, so that whoever
//! builds a stack knows no socket; `hopcast-node` opens it and moves the items.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::{Duration, Hook};

/// The socket or device into which one port towards the network is plugged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plug {
    /// A datagram port: the host's UDP, bound to this address. What arrives has it as `local` (with the address that
    /// was written to, if this one is unspecified). Of its [attributes](crate::Attributes) the interface and ECN are
    /// always there; hop limit and DSCP are once the machine has joined a group or chosen attributes itself.
    Udp(SocketAddr),
    /// A datagram port: packets of this protocol of IP, by raw sockets of the host bound to this address; their
    /// payload is all that follows IP's header, and ports of their ends are 0. They have no
    /// [attributes](crate::Attributes).
    Raw(u8, IpAddr),
    /// A stream port: the host's TCP.
    Tcp(TcpPlug),
    /// A packet port: a TUN device. What the host routes into it goes up, what comes down the host has received.
    Tun(DevicePlug),
    /// A frame port: a TAP device, whose end at the host has this Ethernet address. What the host sends into it goes
    /// up, what comes down the host has received.
    Tap([u8; 6], DevicePlug),
    /// A frame port: the frames of one interface.
    Frames(FramesPlug),
    /// A frame port: a whole interface, which the host gives up while the machine runs. Every frame that arrives on it
    /// goes up with all of its tags, whoever it is for, and the host's kernel takes none. No frame that leaves by it
    /// comes up. An interface with an address of the host is refused.
    ///
    /// Frames that a virtual device or an adapter's driver has merged are one, and those whose checksum a program of
    /// this machine left to hardware have none, as of [`HookPlug`].
    Interface(String),
    /// A packet port with the forward hook: packets that the host would forward, and those for it that bear what is
    /// selected, are taken out of its kernel; see [`Transit`](crate::Transit) for the answers.
    Hook(HookPlug),
    /// A message port: a Unix socket of packets (`SOCK_SEQPACKET`) at this path, to which programs of the host connect.
    /// A packet of any of them goes up as a message, and a message that comes down is a packet to each.
    Local(PathBuf),
}

/// The host's TCP, as a stream port uses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpPlug {
    /// The connections that are accepted, and handed up as `Open`.
    pub accept: Option<Accept>,
    /// The congestion control of each socket, by the kernel's name (`cubic`, `bbr`); `None` leaves the host's.
    pub congestion: Option<String>,
    /// Whether a connection opened from an address that is not the host's really comes from there (`IP_TRANSPARENT`,
    /// and the answers are diverted to the socket). Otherwise such a connection is opened from an address of the host.
    pub spoof: bool,
    /// Whether a proxy's [`Accept::LocalOutput`] may redirect the connections that it opens, as those of any program of
    /// the host; a proxy's own connections must not be redirected.
    pub redirectable: bool,
    /// Time that a connection that it opens may take to be established before it is reset; `None` leaves it to the
    /// host.
    pub connect_timeout: Option<Duration>,
}

/// Connections that a stream port accepts. The machine sees each as one from `remote` to `local`, where `local` is the
/// address that the client connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Connections to this address.
    At(SocketAddr),
    /// Connections that programs of this host open to any of `to`: redirected to a port of the host's choice
    /// (netfilter's REDIRECT on OUTPUT).
    LocalOutput {
        /// Destinations of these connections.
        to: Vec<Destination>,
    },
    /// Connections that the host would forward to any of `to`: taken out of transit (netfilter's TPROXY).
    Forwarded {
        /// Destinations of these connections.
        to: Vec<Destination>,
    },
}

/// The destination of a connection: a network, and one port or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// An address of the network.
    pub network: IpAddr,
    /// The length of the prefix, in bits.
    pub prefix: u8,
    /// The port; `None` for all.
    pub port: Option<u16>,
}

/// `10.0.0.0/8`, `10.0.0.0/8 port 80`.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)?;
        self.port.map_or(Ok(()), |port| write!(f, " port {port}"))
    }
}

/// A TUN or TAP device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePlug {
    /// Its name, at most 15 bytes.
    pub name: String,
    /// The host's addresses on it, each with its prefix.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The networks that are routed into it.
    pub routes: Vec<(IpAddr, u8)>,
    /// Maximum length of a packet, in bytes, without Ethernet's header.
    pub mtu: u32,
    /// Whether the machine is told, by [memberships](crate::Membership), which groups the host wants on a TAP: those
    /// that it has joined there; all, told as the unspecified address of an IP version, where it routes that version's
    /// groups by the device, or has it in a bridge of its own. A change is told within half a second.
    pub reports_memberships: bool,
}

/// The frames of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramesPlug {
    /// The interface's name.
    pub interface: String,
    /// The frames' EtherType.
    pub ether_type: u16,
    /// Whether those for other stations come up too, marked as overheard.
    pub promiscuous: bool,
}

/// Packets that are taken out of the host's kernel.
///
/// The machine is given them as they arrived, hop limit not yet decremented, and answers as it would on a simulated
/// host. These differences are the kernel's:
///
/// - A packet that several plugs select goes to the one that was opened first, and no plug sees a packet that another
///   hands back.
/// - A packet to a group cannot be handed back to the routes: its copies name their interfaces.
/// - A packet to a group is given to the machine whichever interface it arrives on: the kernel's reverse-path check
///   comes later.
/// - A packet to a neighbour that does not answer is lost, and the kernel tells its sender. An IPv6 address cannot be
///   a neighbour on an interface if a route of its own leads to it by another.
/// - Packets that a virtual device or an adapter's driver has merged are taken as one (`ethtool -K DEVICE gro off`
///   prevents it), and a checksum that a program on this machine left to hardware is missing (`tx off`).
/// - A packet of more than 65,531 bytes does not fit into the kernel's report of it: it is dropped, and counted among
///   `socket_receive_errors`.
/// - A packet that is too long for the interface that it names is counted among `socket_send_refused`, not as
///   `too_big`; its sender is not told either. By the routes the kernel tells it, and fragments what may be fragmented.
/// - Whether the host forwards is read once, when the plug is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookPlug {
    /// The packets.
    pub hooks: Vec<Hook>,
    /// The names of the host's interfaces on which they arrive, and by whose places transits name them.
    pub interfaces: Vec<String>,
}
