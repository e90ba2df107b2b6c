//! The host's ICMP: answers to echo requests, errors about others' packets, and errors about its own.
//!
//! An answer to a ping is made by [`answer_echo`], for a host and for an [`EchoResponder`](crate::EchoResponder).

use std::collections::VecDeque;
use std::net::IpAddr;

use hopcast_core::{Buffer, Instant, Pace};
use hopcast_wire::icmp::{self, Message, Unreachable};
use hopcast_wire::ip::{self, Header, Version};

use crate::groups::is_group;
use crate::host::Host;

impl Host {
    /// Takes an ICMP message to this host, whose checksum must be right.
    pub(crate) fn receive_icmp(&mut self, now: Instant, packet: Buffer, header: &Header) {
        if header.protocol != icmp::protocol(header.version) {
            // The ICMP of the other IP version is an unknown protocol.
            return self.refuse(now, packet, header);
        }
        let message = match icmp::parse(header.source, header.destination, &packet[header.payload()]) {
            Ok(message) => message,
            Err(malformed) => return self.count_malformed(malformed),
        };
        if let Message::EchoRequest { identifier, sequence } = message {
            return self.answer_echo(now, packet, header, Message::EchoReply { identifier, sequence });
        }
        let owner = match message {
            Message::EchoReply { identifier, .. } => {
                self.bindings.protocol(header.protocol, Some(identifier))
            }
            error if error.is_error(header.version) => {
                self.owner_of_quoted(&packet[header.payload()], message)
            }
            _ => self.bindings.protocol(header.protocol, None),
        };
        match owner {
            Some(above) => self.hand_up(above, packet),
            None => self.counters.icmp_ignored += 1,
        }
    }

    /// Sends an echo request's payload back, in its buffer.
    fn answer_echo(&mut self, now: Instant, mut packet: Buffer, header: &Header, reply: Message) {
        // To a group, the host answers as itself (RFC 1122 section 3.2.2.6, RFC 4443 section 4.2).
        let own = if is_group(header.destination) {
            self.config.address(header.version)
        } else {
            Some(header.destination)
        };
        let Some(own) = own.filter(|_| is_one_host(header.source)) else {
            self.counters.icmp_ignored += 1;
            return;
        };
        answer_echo(&mut packet, header, own, reply);
        self.prepend_ip(&mut packet, own, header.source, header.protocol);
        self.counters.echoes_answered += 1;
        self.send(now, packet, (own, header.source), None);
    }

    /// The port above that sent the packet that an error is about, if it was sent from here and its port can be found.
    fn owner_of_quoted(&mut self, error: &[u8], message: Message) -> Option<u32> {
        let (header, port) = quoted(error)?;
        if !self.config.owns(header.source) {
            return None;
        }
        self.counters.errors_received += 1;
        if let Message::PacketTooBig { mtu } = message {
            self.path_mtus.learn(header.version, header.destination, mtu);
        }
        if header.protocol == ip::UDP && port.is_some_and(|port| self.bindings.udp(port).is_some()) {
            self.counters.udp_errors_received += 1;
            return None;
        }
        self.bindings.protocol(header.protocol, port)
    }

    /// Sends an ICMP error to the sender of a packet to this host that has no binding.
    pub(crate) fn refuse(&mut self, now: Instant, packet: Buffer, header: &Header) {
        if header.protocol == ip::NO_NEXT_HEADER && header.version == Version::V6 {
            // It is for nobody, and complete (RFC 8200 section 4.7).
            self.counters.delivered += 1;
            return packet.recycle();
        }
        self.counters.closed_port += 1;
        let reason = if header.protocol == ip::UDP || self.bindings.speaks(header.protocol) {
            Unreachable::Port
        } else {
            Unreachable::Protocol
        };
        self.send_error(now, &packet, header, Message::Unreachable(reason));
    }

    /// Sends an error about `packet` to its source, if errors about such packets are permitted and the limit on their
    /// rate allows it.
    #[cold]
    pub(crate) fn send_error(&mut self, now: Instant, packet: &[u8], header: &Header, error: Message) {
        if !deserves_error(packet, header) {
            return;
        }
        let Some(own) = self.config.address(header.version) else { return };
        // An error of the host to itself costs the network nothing.
        if !self.config.owns(header.source) {
            if !self.error_limit.is_ready(now) {
                self.counters.errors_suppressed += 1;
                return;
            }
            self.error_limit.sent(now, 1);
        }
        let mut body = Buffer::copy_from(icmp::quote(header.version, packet));
        if let Some((_, mtu)) = self.next_hop(header.source) {
            // IPv4 has links whose MTU is below the 576 bytes of an error.
            body.truncate((mtu as usize).saturating_sub(header.version.header_len() + icmp::HEADER));
        }
        icmp::prepend(&mut body, own, header.source, error);
        self.prepend_ip(&mut body, own, header.source, icmp::protocol(header.version));
        self.counters.errors_sent += 1;
        self.send(now, body, (own, header.source), None);
    }
}

/// Turns an echo request into the `reply` from `own`, in its buffer: the ICMP message, without an IP header.
pub(crate) fn answer_echo(packet: &mut Buffer, header: &Header, own: IpAddr, reply: Message) {
    packet.advance(header.header_len + icmp::HEADER);
    icmp::prepend(packet, own, header.source, reply);
}

/// The packet that an ICMP error quotes: its header, and the port that it was sent from. An echo request's port is its
/// identifier; other packets of ICMP have none.
pub(crate) fn quoted(error: &[u8]) -> Option<(Header, Option<u16>)> {
    let quoted = error.get(icmp::HEADER..)?;
    let header = ip::parse_quoted(quoted).ok()?;
    let segment = quoted.get(header.header_len..).unwrap_or_default();
    if header.protocol != icmp::protocol(header.version) {
        return Some((header, ip::ports(segment).map(|(source, _)| source)));
    }
    let identifier = match icmp::parse_quoted(header.version, segment) {
        Ok(Message::EchoRequest { identifier, .. }) => Some(identifier),
        _ => None,
    };
    Some((header, identifier))
}

/// Whether an error may be sent about a packet (RFC 1122 section 3.2.2, RFC 4443 section 2.4 (e)): not about errors,
/// multicast and broadcast, packets without a single sender, nor fragments after the first.
fn deserves_error(packet: &[u8], header: &Header) -> bool {
    // The first fragment of IPv6 looks like the others here, and none is answered.
    if !is_one_host(header.source) || is_group(header.destination) || header.fragment {
        return false;
    }
    if header.protocol != icmp::protocol(header.version) {
        return true;
    }
    // In transit its checksum is not verified: a message that does not parse counts as an error.
    let message = icmp::parse(header.source, header.destination, &packet[header.payload()]);
    message.is_ok_and(|message| !message.is_error(header.version))
}

/// Whether an address can be that of a single host, to which an answer can be sent.
pub(crate) fn is_one_host(address: IpAddr) -> bool {
    !address.is_unspecified() && !address.is_loopback() && !is_group(address)
}

/// The limit on the errors that a host sends (RFC 4443 section 2.4 (f)).
///
/// As Linux's `icmp_msgs_per_sec` and `icmp_msgs_burst`: 1,000 a second, 50 at once.
pub(crate) fn error_limit() -> Pace {
    Pace::new(1000, 50)
}

/// The latest path MTUs that routers have announced, at most [`PathMtus::MAX`].
#[derive(Default)]
pub(crate) struct PathMtus {
    known: VecDeque<(IpAddr, u32)>,
}

impl PathMtus {
    /// Maximum number of path MTUs. Chosen: it bounds memory; with fewer, a host with many destinations learns them
    /// again.
    const MAX: usize = 64;

    pub(crate) fn get(&self, destination: IpAddr) -> Option<u32> {
        self.known.iter().find(|(known, _)| *known == destination).map(|&(_, mtu)| mtu)
    }

    fn learn(&mut self, version: Version, destination: IpAddr, mtu: u32) {
        if mtu == 0 {
            // A router that predates RFC 1191 sends 0 here.
            return;
        }
        // Less than the minimum MTU is a router's slip or an attack (RFC 8201 section 4, RFC 1191 section 3).
        let mtu = mtu.max(version.min_mtu());
        self.known.retain(|(known, _)| *known != destination);
        if self.known.len() == Self::MAX {
            self.known.pop_front();
        }
        self.known.push_back((destination, mtu));
    }
}
