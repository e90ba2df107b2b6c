//! Sockets that accept connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hopcast_core::plug::{Accept, Destination, TcpPlug};
use socket2::Socket as Kernel;

use super::super::divert::Diversions;
use super::super::error::PlugError;
use super::options::{Options, keep_conntrack_entry};

/// A listening socket.
pub(super) struct Listener {
    pub(super) socket: Kernel,
    pub(super) address: SocketAddr,
    arrival: Arrival,
    /// Whether connections may wait to be accepted.
    pub(super) ready: bool,
    /// Whether some wait for a free descriptor.
    pub(super) starved: bool,
}

/// Form in which connections reach a listener.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    /// By its address, which is their destination.
    Address,
    /// Redirected; the kernel knows their destination.
    Redirect,
    /// Taken out of transit; they keep their destination.
    Transit,
}

/// Listens for the connections that a plug accepts; returns the diversions that this needs.
pub(super) fn listen(options: &Options, plug: &TcpPlug) -> Result<(Vec<Listener>, Diversions), PlugError> {
    let mut diversions = Diversions { answers: plug.spoof, ..Diversions::default() };
    let listeners = match &plug.accept {
        None => Vec::new(),
        Some(Accept::At(address)) => vec![Listener::new(options, *address, Arrival::Address)?],
        Some(Accept::LocalOutput { to }) => {
            let listeners = on_loopback(options, to, Arrival::Redirect)?;
            diversions.redirect = listeners.iter().map(Listener::port).collect();
            diversions.to.clone_from(to);
            listeners
        }
        Some(Accept::Forwarded { to }) => {
            let listeners = on_loopback(options, to, Arrival::Transit)?;
            diversions.transit = listeners.iter().map(Listener::port).collect();
            diversions.to.clone_from(to);
            diversions.answers = true;
            listeners
        }
    };
    Ok((listeners, diversions))
}

/// A listener for each IP version of the destinations, on a loopback address, whose port no other host can reach.
fn on_loopback(options: &Options, to: &[Destination], arrival: Arrival) -> Result<Vec<Listener>, PlugError> {
    let loopbacks: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let wanted = |loopback: &IpAddr| to.iter().any(|to| to.network.is_ipv4() == loopback.is_ipv4());
    let loopbacks = loopbacks.into_iter().filter(wanted);
    loopbacks.map(|loopback| Listener::new(options, (loopback, 0).into(), arrival)).collect()
}

impl Listener {
    fn new(options: &Options, address: SocketAddr, arrival: Arrival) -> Result<Self, PlugError> {
        let failed = |source| PlugError::Listen { address, source };
        let socket = options.listen(address, arrival == Arrival::Transit).map_err(failed)?;
        if arrival == Arrival::Redirect {
            keep_conntrack_entry(&socket).map_err(failed)?;
        }
        let address = socket.local_addr().map_err(failed)?.as_socket().unwrap_or(address);
        Ok(Self { socket, address, arrival, ready: true, starved: false })
    }

    /// Its port, and whether it is of IPv4.
    fn port(&self) -> (u16, bool) {
        (self.address.port(), self.address.is_ipv4())
    }

    /// The destination of a connection; `None` if it was opened to the port for diverted ones itself.
    pub(super) fn local_of(&self, connection: &Kernel) -> Option<SocketAddr> {
        let local = match self.arrival {
            Arrival::Redirect if self.address.is_ipv4() => connection.original_dst_v4(),
            Arrival::Redirect => connection.original_dst_v6(),
            Arrival::Address | Arrival::Transit => connection.local_addr(),
        };
        let local = local.ok()?.as_socket()?;
        (self.arrival == Arrival::Address || local != self.address).then_some(local)
    }
}
