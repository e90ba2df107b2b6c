//! Real programs that are a transport in a live run, and how they are called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The two ends of a flow, as programs at them see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramEnds {
    /// Address at which the receiver's program listens.
    pub listen: SocketAddr,
    /// Address that the sender's program connects to: the receiver's, or that of what carries it there.
    pub connect: SocketAddr,
}

impl ProgramEnds {
    /// The ends as a program sees them whose connections another program on its own host carries: the loopback's.
    #[must_use]
    pub fn on_loopback(self) -> Self {
        let at = on_loopback(self.listen);
        Self { listen: at, connect: at }
    }
}

/// The same port of the loopback.
pub(crate) fn on_loopback(address: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match address.ip() {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

/// The programs at the ends of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPair {
    /// At the receiver.
    pub server: ProgramCommand,
    /// At the sender, once the server is ready.
    pub client: ProgramCommand,
}

/// Command line of a program, and the sign that it is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCommand {
    /// The program's name in `PATH`.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The socket that it has opened once it is ready.
    pub ready: ReadyAt,
}

/// A socket that a program opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyAt {
    /// A listening TCP socket at this port.
    Tcp(u16),
    /// A UDP socket at this port.
    Udp(u16),
}
