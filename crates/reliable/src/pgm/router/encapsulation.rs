//! PGM in IP packets: as a protocol of its own, or in UDP.
//!
//! An element takes PGM out of both. It knows packets of UDP as PGM's by their content, whatever their ports are: a
//! type that PGM has, and a checksum, which must be there and fit, as must UDP's.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use hopcast_core::Buffer;
use hopcast_wire::{ip, router_alert, udp};

use crate::pgm::wire::{self, IP_PROTOCOL, Packet, UDP_MULTICAST, UDP_UNICAST};

/// Headers below PGM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encapsulation {
    /// IP protocol 113.
    Raw,
    /// UDP, with these ports.
    Udp {
        /// The sender's.
        source: u16,
        /// The receiver's.
        destination: u16,
    },
}

/// Place of PGM in an IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) header: ip::Header,
    pub(super) encapsulation: Encapsulation,
    pub(super) pgm: Range<usize>,
}

/// Place of PGM's packet in an IP packet, and the packet; `None` if it has none.
pub(super) fn read(bytes: &[u8]) -> Option<(Place, Packet<'_>)> {
    let header = ip::parse(bytes).ok().filter(|header| !header.fragment)?;
    let (encapsulation, pgm) = match header.protocol {
        IP_PROTOCOL => (Encapsulation::Raw, header.payload()),
        ip::UDP => {
            let segment = &bytes[header.payload()];
            let is_candidate = segment.get(udp::HEADER..).is_some_and(may_be_pgm);
            let udp = is_candidate.then(|| udp::parse(header.source, header.destination, segment).ok())??;
            let start = header.header_len + udp::HEADER;
            let udp::Header { source, destination, len } = udp;
            (Encapsulation::Udp { source, destination }, start..header.header_len + len)
        }
        _ => return None,
    };
    let packet = Packet::parse(&bytes[pgm.clone()]).ok()?;
    Some((Place { header, encapsulation, pgm }, packet))
}

/// Whether the beginning of a datagram is that of a packet of PGM with a checksum.
fn may_be_pgm(datagram: &[u8]) -> bool {
    matches!(datagram, [_, _, _, _, 0..=0x0d, _, c0, c1, ..] if [*c0, *c1] != [0, 0])
}

/// Puts headers in front of a packet of PGM; with a Router Alert in IP's if the element asks for one and PGM is a
/// protocol of its own: who sends in UDP has a socket that does not make it, and elements do not need it.
pub(super) fn wrap(
    mut pgm: Buffer,
    encapsulation: Encapsulation,
    (source, destination): (IpAddr, IpAddr),
    (hop_limit, is_alert): (u8, bool),
) -> Buffer {
    match encapsulation {
        Encapsulation::Raw if is_alert => {
            router_alert::prepend(&mut pgm, source, destination, IP_PROTOCOL, hop_limit);
        }
        Encapsulation::Raw => ip::prepend(&mut pgm, source, destination, IP_PROTOCOL, hop_limit, 0),
        Encapsulation::Udp { source: from, destination: to } => {
            udp::prepend(&mut pgm, SocketAddr::new(source, from), SocketAddr::new(destination, to));
            ip::prepend(&mut pgm, source, destination, ip::UDP, hop_limit, 0);
        }
    }
    pgm
}

impl Encapsulation {
    /// That of packets to one address, in a session whose packets to the group have this one.
    ///
    /// In UDP they go to 3055 where the group has 3056, as OpenPGM does; otherwise to the port that SPMs come from.
    pub(super) const fn towards_source(self) -> Self {
        match self {
            Self::Raw => Self::Raw,
            Self::Udp { destination: UDP_MULTICAST, .. } => {
                Self::Udp { source: UDP_UNICAST, destination: UDP_UNICAST }
            }
            Self::Udp { source, destination } => Self::Udp { source: destination, destination: source },
        }
    }
}

/// Replaces the path in an SPM by the address of an element. The headers below stay as they are: the sum of a packet
/// with its checksum is the same as before, and so is UDP's over it.
pub(super) fn set_path(bytes: &mut [u8], place: &Place, path: IpAddr) -> bool {
    wire::set_path(&mut bytes[place.pgm.clone()], path).is_ok()
}
