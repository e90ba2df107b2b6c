//! How sockets are made.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use hopcast_core::plug::TcpPlug;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket as Kernel, TcpKeepalive, Type};

use super::super::divert::OWN_MARK;
use super::super::error::PlugError;

/// How many bytes beyond those on their way the kernel takes (`TCP_NOTSENT_LOWAT`): one burst of segmentation offload.
/// Less costs processor time at high rates; more is a queue in which everything waits, 5 ms at 100 Mbit/s.
pub(super) const UNSENT: u32 = 64 << 10;
/// How many connections may wait to be accepted; the host's `somaxconn` bounds it as well.
const BACKLOG: i32 = 4096;

/// What the sockets of a plug have in common.
pub(super) struct Options {
    congestion: Option<String>,
    spoof: bool,
    /// Whether they are told from those of other programs.
    marked: bool,
}

impl Options {
    /// Tries them out. Where connections of this host are redirected, our own have to be told from others.
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
        socket.set_tcp_notsent_lowat(UNSENT)?;
        // Should the program be killed, its connections end with a reset: what was cut short must not pass for a stream
        // that has come to its end. Sockets that are accepted have it from the one that listens.
        socket.set_linger(Some(Duration::ZERO))?;
        watch_over(&socket)?;
        if self.marked {
            // Only root may, and has to where connections are redirected.
            let _ = socket.set_mark(OWN_MARK);
        }
        if let Some(name) = &self.congestion {
            socket.set_tcp_congestion(name.as_bytes())?;
        }
        Ok(socket)
    }

    /// A socket that listens; what it accepts has its options.
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

    /// A socket on its way to `remote`, from `local` if that can be.
    ///
    /// An address that is not the host's is used where the plug says `spoof`, but not towards an address of this host:
    /// its answers would go by the route to whose address it is, and never pass us. There, and without `spoof`, the
    /// kernel chooses. Where only the port cannot be had, another is taken.
    pub(super) fn connect(&self, local: SocketAddr, remote: SocketAddr) -> io::Result<Kernel> {
        let socket = self.socket(Domain::for_address(remote))?;
        if !local.ip().is_unspecified() && local.is_ipv4() == remote.is_ipv4() {
            self.bind(&socket, local, remote)?;
        } else if local.port() != 0 {
            let any = SocketAddr::new(unspecified(remote), local.port());
            socket.set_reuse_address(true)?;
            // Another port does as well.
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

/// `EINPROGRESS`: the connection is being made.
const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

/// The error of a congestion control that the kernel refuses, with those that it would not.
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

/// Lets the process have as many descriptors as it may; the usual limit is for programs with a few files.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // With fewer, streams beyond them are refused and counted.
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

/// Only an address of the host can be bound.
fn is_of_this_host(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// A client that vanishes says nothing more, and a connection that is taken over hides that from the far end: so it is
/// asked after two minutes of silence, and given up after two more without an answer. What is sent and not acknowledged
/// is sent again for as long as the host does that for its own programs (`tcp_retries2`), and one that has no room may
/// take its time.
fn watch_over(socket: &Kernel) -> io::Result<()> {
    const SILENCE: Duration = Duration::from_secs(120);
    let keepalive = TcpKeepalive::new().with_time(SILENCE).with_interval(SILENCE / 4).with_retries(4);
    socket.set_tcp_keepalive(&keepalive)
}

/// Whom a connection was for that was redirected, the kernel forgets if it is silent, by default after a minute once
/// one side has ended; what comes then is nobody's, and resets it. So a program of this host is asked more often, which
/// costs no link anything.
pub(super) fn keep_in_mind(socket: &Kernel) -> io::Result<()> {
    const SILENCE: Duration = Duration::from_secs(15);
    let keepalive = TcpKeepalive::new().with_time(SILENCE).with_interval(SILENCE).with_retries(15);
    socket.set_tcp_keepalive(&keepalive)
}
