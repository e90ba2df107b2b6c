//! Creation of sockets, with their options.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use hopcast_core::plug::TcpPlug;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket as Kernel, TcpKeepalive, Type};

use super::super::divert::OWN_MARK;
use super::super::error::PlugError;

/// Maximum number of bytes that the kernel takes beyond those in flight (`TCP_NOTSENT_LOWAT`): one burst of
/// segmentation offload. Chosen: less costs processor time at high rates; more is a queue, of 5 ms at 100 Mbit/s.
pub(super) const MAX_UNSENT: u32 = 64 << 10;
/// Maximum number of connections that wait to be accepted; the host's `somaxconn` bounds it too. Chosen; with fewer, a
/// burst of connections waits for TCP's timeouts.
const BACKLOG: i32 = 4096;

/// The options of all sockets of a plug.
pub(super) struct Options {
    congestion: Option<String>,
    spoof: bool,
    /// Whether they carry the mark of this process.
    marked: bool,
}

impl Options {
    /// Checks the options on a socket. Where connections of this host are redirected, sockets must carry the mark.
    pub(super) fn new(plug: &TcpPlug, redirects: bool) -> Result<Self, PlugError> {
        allow_descriptors();
        let TcpPlug { congestion, spoof, redirectable, .. } = plug;
        let (spoof, marked) = (*spoof, !redirectable);
        let options = Self { congestion: None, spoof, marked };
        let socket = options.socket(Domain::IPV4)?;
        if let Some(name) = congestion {
            socket.set_tcp_congestion(name.as_bytes()).map_err(|error| no_congestion(name, &error))?;
        }
        if redirects {
            socket.set_mark(OWN_MARK).map_err(PlugError::Mark)?;
        }
        if spoof {
            socket.set_ip_transparent_v4(true).map_err(PlugError::Transparent)?;
        }
        Ok(Self { congestion: congestion.clone(), ..options })
    }

    fn socket(&self, domain: Domain) -> io::Result<Kernel> {
        let socket = Kernel::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_notsent_lowat(MAX_UNSENT)?;
        // If the program is killed, its connections end with a reset: a stream that was cut short must not seem to have
        // ended. Accepted sockets inherit it from the listener.
        socket.set_linger(Some(Duration::ZERO))?;
        set_keepalive(&socket)?;
        if self.marked {
            // Only root may set the mark, and it must be set where connections are redirected.
            let _ = socket.set_mark(OWN_MARK);
        }
        if let Some(name) = &self.congestion {
            socket.set_tcp_congestion(name.as_bytes())?;
        }
        Ok(socket)
    }

    /// A listening socket, whose options accepted sockets inherit.
    pub(super) fn listen(&self, address: SocketAddr, transparent: bool) -> io::Result<Kernel> {
        let socket = self.socket(Domain::for_address(address))?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        if transparent {
            set_transparent(&socket, address.is_ipv4())?;
        }
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    }

    /// A socket that connects to `remote`, from `local` if possible.
    ///
    /// An address of another host is used where the plug says `spoof`, but not towards an address of this host: the
    /// answers would be routed to that other host. There, and without `spoof`, the kernel chooses the address. If only
    /// the port is not available, another one is used.
    pub(super) fn connect(&self, local: SocketAddr, remote: SocketAddr) -> io::Result<Kernel> {
        let socket = self.socket(Domain::for_address(remote))?;
        if !local.ip().is_unspecified() && local.is_ipv4() == remote.is_ipv4() {
            self.bind(&socket, local, remote)?;
        } else if local.port() != 0 {
            let any = SocketAddr::new(unspecified(remote), local.port());
            socket.set_reuse_address(true)?;
            // Another port will do.
            let _ = socket.bind(&any.into());
        }
        match socket.connect(&remote.into()) {
            Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => Err(error),
            _ => Ok(socket),
        }
    }

    fn bind(&self, socket: &Kernel, local: SocketAddr, remote: SocketAddr) -> io::Result<()> {
        socket.set_reuse_address(true)?;
        let any_port = SocketAddr::new(local.ip(), 0);
        let either = |socket: &Kernel| socket.bind(&local.into()).or_else(|_| socket.bind(&any_port.into()));
        if either(socket).is_err() && self.spoof && !is_of_this_host(remote.ip()) {
            set_transparent(socket, local.is_ipv4())?;
            either(socket)?;
        }
        Ok(())
    }
}

/// The error number `EINPROGRESS`: the connection is being established.
const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

/// The error of a congestion control that the kernel refuses, with those that it accepts.
fn no_congestion(name: &str, error: &io::Error) -> PlugError {
    let list = |which: &str| {
        let path = format!("/proc/sys/net/ipv4/tcp_{which}_congestion_control");
        std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
    };
    let name = name.to_owned();
    match error.kind() {
        io::ErrorKind::PermissionDenied => PlugError::CongestionForbidden { name, allowed: list("allowed") },
        _ => PlugError::NoCongestion { name, available: list("available") },
    }
}

/// Raises the limit of descriptors as far as allowed; the default is meant for programs with a few files.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // With a lower limit, streams beyond it are refused and counted.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn set_transparent(socket: &Kernel, v4: bool) -> io::Result<()> {
    if v4 { socket.set_ip_transparent_v4(true) } else { socket.set_ip_transparent_v6(true) }
}

fn unspecified(like: SocketAddr) -> IpAddr {
    if like.is_ipv4() {
        std::net::Ipv4Addr::UNSPECIFIED.into()
    } else {
        std::net::Ipv6Addr::UNSPECIFIED.into()
    }
}

/// Whether an address is this host's: only such a one can be bound.
fn is_of_this_host(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Enables keep-alive. A client that vanishes says nothing, and a proxy hides that from the far end: it is probed after
/// two minutes of silence, and given up after two more without an answer. Unacknowledged bytes are retransmitted as
/// long as the host does for its own programs (`tcp_retries2`), and a peer with a closed window may take its time.
fn set_keepalive(socket: &Kernel) -> io::Result<()> {
    /// Silence before the first probe. Chosen: shorter costs packets on idle links; longer, and a vanished client holds
    /// memory.
    const SILENCE: Duration = Duration::from_secs(120);
    let keepalive = TcpKeepalive::new().with_time(SILENCE).with_interval(SILENCE / 4).with_retries(4);
    socket.set_tcp_keepalive(&keepalive)
}

/// Keeps the kernel's entry of a redirected connection, which has its destination. The entry of a silent connection
/// expires, by default a minute after one side has ended (`nf_conntrack_tcp_timeout_close_wait`), and later packets are
/// answered with a reset. So a program of this host is probed more often, which costs no link anything.
pub(super) fn keep_conntrack_entry(socket: &Kernel) -> io::Result<()> {
    /// Silence before a probe. Chosen: a quarter of that minute, so that three probes may be lost; shorter costs
    /// packets, longer loses the entry.
    const SILENCE: Duration = Duration::from_secs(15);
    let keepalive = TcpKeepalive::new().with_time(SILENCE).with_interval(SILENCE).with_retries(15);
    socket.set_tcp_keepalive(&keepalive)
}
