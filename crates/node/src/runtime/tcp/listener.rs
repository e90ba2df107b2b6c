//! Where connections come from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hopcast_core::plug::{Accept, Destination, TcpPlug};
use socket2::Socket as Kernel;

use super::super::divert::Take;
use super::super::error::PlugError;
use super::options::{Options, keep_in_mind};

/// A socket that listens.
pub(super) struct Listener {
    pub(super) socket: Kernel,
    pub(super) address: SocketAddr,
    by: By,
    /// Whether connections may wait.
    pub(super) ready: bool,
    /// Whether some wait for descriptors to become free.
    pub(super) starved: bool,
}

/// How connections come to a listener.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Its address is whom they are for.
    Address,
    /// They were redirected, and the kernel knows whom they were for.
    Redirect,
    /// They were taken out of transit, and have kept the address that they were for.
    Transit,
}

/// Listens for those that a plug accepts, and says what has to be diverted for that.
pub(super) fn listen(options: &Options, plug: &TcpPlug) -> Result<(Vec<Listener>, Take), PlugError> {
    let mut take = Take { answers: plug.spoof, ..Take::default() };
    let listeners = match &plug.accept {
        None => Vec::new(),
        Some(Accept::At(address)) => vec![Listener::new(options, *address, By::Address)?],
        Some(Accept::LocalOutput { to }) => {
            let listeners = on_loopback(options, to, By::Redirect)?;
            take.redirect = listeners.iter().map(Listener::port).collect();
            take.to.clone_from(to);
            listeners
        }
        Some(Accept::Forwarded { to }) => {
            let listeners = on_loopback(options, to, By::Transit)?;
            take.transit = listeners.iter().map(Listener::port).collect();
            take.to.clone_from(to);
            take.answers = true;
            listeners
        }
    };
    Ok((listeners, take))
}

/// One for each version of the destinations, on a loopback address, where nobody else can reach the port.
fn on_loopback(options: &Options, to: &[Destination], by: By) -> Result<Vec<Listener>, PlugError> {
    let loopbacks: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let wanted = |loopback: &IpAddr| to.iter().any(|to| to.network.is_ipv4() == loopback.is_ipv4());
    let loopbacks = loopbacks.into_iter().filter(wanted);
    loopbacks.map(|loopback| Listener::new(options, (loopback, 0).into(), by)).collect()
}

impl Listener {
    fn new(options: &Options, address: SocketAddr, by: By) -> Result<Self, PlugError> {
        let failed = |source| PlugError::Listen { address, source };
        let socket = options.listen(address, by == By::Transit).map_err(failed)?;
        if by == By::Redirect {
            keep_in_mind(&socket).map_err(failed)?;
        }
        let address = socket.local_addr().map_err(failed)?.as_socket().unwrap_or(address);
        Ok(Self { socket, address, by, ready: true, starved: false })
    }

    /// Its port, and whether that is IPv4's.
    fn port(&self) -> (u16, bool) {
        (self.address.port(), self.address.is_ipv4())
    }

    /// Whom a connection is for; `None` for nobody: who writes to the port that others are diverted to.
    pub(super) fn local_of(&self, connection: &Kernel) -> Option<SocketAddr> {
        let local = match self.by {
            By::Redirect if self.address.is_ipv4() => connection.original_dst_v4(),
            By::Redirect => connection.original_dst_v6(),
            By::Address | By::Transit => connection.local_addr(),
        };
        let local = local.ok()?.as_socket()?;
        (self.by == By::Address || local != self.address).then_some(local)
    }
}
