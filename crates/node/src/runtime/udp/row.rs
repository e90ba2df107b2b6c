//! Datagrams that one call sends.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use hopcast_core::Attributes;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use quinn_udp::{Transmit, UdpSocketState};
use socket2::Socket as Kernel;

use super::interfaces::Interfaces;
use crate::runtime::counters::Counters;

/// Datagrams of one length to one destination; the last one may be shorter.
pub(super) struct Row {
    pub(super) remote: SocketAddr,
    pub(super) source: Option<IpAddr>,
    pub(super) attributes: Attributes,
    pub(super) contents: Vec<u8>,
    pub(super) segment: usize,
    pub(super) count: usize,
    /// Whether no datagram may be added.
    pub(super) full: bool,
}

impl Row {
    /// Sends a row; `None` if the kernel has no room, or else the number of datagrams that it refused, which are
    /// counted and dropped.
    pub(super) fn send(
        &self,
        socket: &Kernel,
        state: &UdpSocketState,
        interfaces: &Interfaces,
        counters: &mut Counters,
    ) -> Option<u64> {
        let transmit = |contents: &[u8], segment| {
            let Self { remote, source, .. } = *self;
            if self.attributes != Attributes::CHOICE {
                return self.send_with_attributes(socket, interfaces, contents, segment);
            }
            let transmit =
                Transmit { destination: remote, ecn: None, contents, segment_size: segment, src_ip: source };
            state.try_send(socket.into(), &transmit)
        };
        let segment = Some(self.segment).filter(|_| self.count > 1);
        counters.syscalls += 1;
        let refused = match transmit(&self.contents, segment) {
            Ok(()) => 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(_) if self.count == 1 => 1,
            // Refused as a row, or refused at all: each datagram is tried by itself.
            Err(_) => {
                let each = self.contents.chunks(self.segment);
                counters.syscalls += self.count as u64;
                each.filter(|datagram| transmit(datagram, None).is_err()).count() as u64
            }
        };
        counters.send_refused += refused;
        counters.sent += self.count as u64 - refused;
        counters.sent_bytes += self.contents.len() as u64 * u64::from(refused < self.count as u64);
        Some(refused)
    }

    /// Sends datagrams on the interface, with the hop limit and the traffic class that the machine has chosen.
    fn send_with_attributes(
        &self,
        socket: &Kernel,
        interfaces: &Interfaces,
        contents: &[u8],
        segment: Option<usize>,
    ) -> io::Result<()> {
        let Self { remote, source, attributes, .. } = self;
        let index = match attributes.interface {
            Some(number) => interfaces.index(number).ok_or(io::ErrorKind::AddrNotAvailable)?,
            None => 0,
        };
        let (v4, v6) = packet_info(*source, index);
        let mut said = match remote.is_ipv4() {
            true => vec![ControlMessage::Ipv4PacketInfo(&v4)],
            false => vec![ControlMessage::Ipv6PacketInfo(&v6)],
        };
        let hops = attributes.hop_limit.map(i32::from);
        said.extend(hops.as_ref().map(|hops| match remote.is_ipv4() {
            true => ControlMessage::Ipv4Ttl(hops),
            false => ControlMessage::Ipv6HopLimit(hops),
        }));
        let class = i32::from(attributes.traffic_class);
        said.push(match remote.is_ipv4() {
            true => ControlMessage::Ipv4Tos(&attributes.traffic_class),
            false => ControlMessage::Ipv6TClass(&class),
        });
        let segment = segment.and_then(|segment| u16::try_from(segment).ok());
        said.extend(segment.as_ref().map(ControlMessage::UdpGsoSegments));
        let (address, contents) = (SockaddrStorage::from(*remote), [IoSlice::new(contents)]);
        sendmsg(socket.as_raw_fd(), &contents, &said, MsgFlags::MSG_DONTWAIT, Some(&address))?;
        Ok(())
    }
}

/// The source address and the index of the interface, for either version; 0 and unspecified addresses leave the choice
/// to the kernel.
fn packet_info(source: Option<IpAddr>, index: u32) -> (in_pktinfo, in6_pktinfo) {
    let (v4, v6) = match source {
        Some(IpAddr::V4(address)) => (u32::from_ne_bytes(address.octets()), [0; 16]),
        Some(IpAddr::V6(address)) => (0, address.octets()),
        None => (0, [0; 16]),
    };
    let any = in_addr { s_addr: 0 };
    (
        in_pktinfo { ipi_ifindex: index as i32, ipi_spec_dst: in_addr { s_addr: v4 }, ipi_addr: any },
        in6_pktinfo { ipi6_addr: in6_addr { s6_addr: v6 }, ipi6_ifindex: index },
    )
}
