//! Echo requests of one host to another, which its kernel answers.

use std::io;
use std::net::{IpAddr, SocketAddr};

use hopcast_core::{Buffer, Duration};
use hopcast_node::Clock;
use hopcast_twin::probe::{Check, HostPair};
use hopcast_wire::icmp::{self, Message};
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{RecvFlags, recv};
use socket2::{Domain, Protocol, Socket, Type};

use super::TRIES;
use super::frames::wait;
use crate::layout::MAX_FRAME;

/// Time from one request to the next while none is answered. Chosen: the answer to a first request comes before a
/// second one over most paths; with more, checks that fail take longer.
const EVERY: Duration = Duration::from_millis(100);
/// Time for which the answer to the last request is awaited. Chosen: a kernel asks three times for a neighbour, a
/// second apart.
const PATIENCE: Duration = Duration::from_secs(3);

/// A socket of the host that asks.
pub(super) struct Asker {
    socket: Socket,
    from: IpAddr,
    to: IpAddr,
    identifier: u16,
}

impl Asker {
    /// In the network namespace of the calling thread.
    pub(super) fn open(pair: &HostPair, identifier: u16) -> io::Result<Self> {
        let (from, to) = (pair.from.1, pair.to.1);
        let at = |address| SocketAddr::new(address, 0);
        let protocol = if to.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
        let socket = Socket::new(Domain::for_address(at(to)), Type::RAW, Some(protocol))?;
        let hops = u32::from(pair.hop_limit);
        // Packets that do not fit are to be lost, and not to be cut.
        if to.is_ipv4() {
            socket.set_ttl_v4(hops)?;
            sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DO)?;
        } else {
            socket.set_unicast_hops_v6(hops)?;
            sockopt::set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::DO)?;
        }
        socket.bind(&at(from).into())?;
        socket.connect(&at(to).into())?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, from, to, identifier })
    }

    /// Sends requests until one is answered.
    pub(super) fn ask(&self, size: usize, check: &mut Check) -> io::Result<()> {
        let began = Clock::starting_now();
        let mut answered = false;
        while check.sent < TRIES && !answered {
            check.sent += 1;
            self.send(size, check.sent as u16)?;
            answered = self.is_answered(size, EVERY)?;
        }
        if answered || self.is_answered(size, PATIENCE)? {
            check.passed = true;
            check.answered_ms = Some(began.now().as_secs_f64() * 1e3);
        }
        Ok(())
    }

    fn send(&self, size: usize, sequence: u16) -> io::Result<()> {
        let mut packet = Buffer::zeroed(size);
        let message = Message::EchoRequest { identifier: self.identifier, sequence };
        icmp::prepend(&mut packet, self.from, self.to, message);
        match self.socket.send(&packet) {
            // Of an earlier request: nobody has answered for the next hop, or a router said that it has no route.
            Err(error) if is_of_earlier(&error) => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// Whether a request with this payload is answered within this time.
    fn is_answered(&self, size: usize, within: Duration) -> io::Result<bool> {
        let (clock, mut memory) = (Clock::starting_now(), vec![0; MAX_FRAME]);
        while wait(&self.socket, clock, within)? {
            let length = match recv(&self.socket, &mut memory[..], RecvFlags::empty()) {
                Ok((_, length)) => length,
                Err(rustix::io::Errno::AGAIN) => continue,
                Err(error) if is_of_earlier(&error.into()) => continue,
                Err(error) => return Err(error.into()),
            };
            // In IPv4 with its header, whose length is in words.
            let header = if self.to.is_ipv4() { usize::from(memory[0] & 15) * 4 } else { 0 };
            let Some(message) = memory.get(header..length) else { continue };
            let is_own = |message| matches!(message, Message::EchoReply { identifier, .. } if identifier == self.identifier);
            if message.len() == icmp::HEADER + size
                && icmp::parse(self.to, self.from, message).is_ok_and(is_own)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether an error is the network's answer to an earlier request, and no reason not to go on.
fn is_of_earlier(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable)
}
