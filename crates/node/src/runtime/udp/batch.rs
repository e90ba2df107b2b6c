//! Datagrams that were read and not yet delivered.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use hopcast_core::{Attributes, Buffer};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, RecvMsg, SockaddrStorage, recvmsg};
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSocketState};
use socket2::Socket as Kernel;

use super::interfaces::Interfaces;
use crate::runtime::counters::Counters;

/// Maximum number of bytes that one read delivers: one datagram, or several that the kernel has merged (GRO).
const MAX_RECEIVE: usize = 65_536;
/// Length of the buffer for a datagram's control messages, in bytes: six of them with their headers, and some spare.
const CONTROL_BYTES: usize = 256;

/// Datagrams that were read and not yet delivered.
pub(super) struct Batch {
    memory: Vec<u8>,
    rows: Vec<ReceivedRow>,
    metas: [RecvMeta; BATCH_SIZE],
    control: Vec<u8>,
    /// The number of the next row, and the offset in it.
    next: usize,
    offset: usize,
}

/// Datagrams that one call has read at one place of the memory, all of one length but the last.
#[derive(Clone, Copy)]
struct ReceivedRow {
    from: SocketAddr,
    to: Option<IpAddr>,
    attributes: Attributes,
    len: usize,
    stride: usize,
}

/// A datagram that was read.
pub(super) struct Received {
    pub(super) from: SocketAddr,
    /// The address that it was sent to.
    pub(super) to: Option<IpAddr>,
    pub(super) attributes: Attributes,
    pub(super) payload: Buffer,
}

impl Batch {
    pub(super) fn new() -> Self {
        Self {
            memory: vec![0; MAX_RECEIVE * BATCH_SIZE],
            rows: Vec::with_capacity(BATCH_SIZE),
            metas: [RecvMeta::default(); BATCH_SIZE],
            control: vec![0; CONTROL_BYTES],
            next: 0,
            offset: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next >= self.rows.len()
    }

    fn clear(&mut self) {
        self.rows.clear();
        (self.next, self.offset) = (0, 0);
    }

    /// Reads with as few calls as possible; of the attributes, only the interface and ECN are set.
    pub(super) fn read(
        &mut self,
        socket: &Kernel,
        state: &UdpSocketState,
        interfaces: &Interfaces,
    ) -> io::Result<()> {
        self.clear();
        let mut chunks = self.memory.chunks_exact_mut(MAX_RECEIVE);
        let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let count = state.recv(socket.into(), &mut buffers, &mut self.metas)?;
        let row = |meta: &RecvMeta| ReceivedRow {
            from: meta.addr,
            to: meta.dst_ip,
            attributes: Attributes {
                interface: meta.interface_index.and_then(|index| interfaces.number(index)),
                hop_limit: None,
                traffic_class: meta.ecn.map_or(0, |ecn| ecn as u8),
                router_alert: false,
            },
            len: meta.len,
            stride: meta.stride,
        };
        self.rows.extend(self.metas[..count].iter().map(row));
        Ok(())
    }

    /// Reads with a call for each row, and all attributes.
    pub(super) fn read_in_detail(
        &mut self,
        socket: &Kernel,
        interfaces: &Interfaces,
        counters: &mut Counters,
    ) -> io::Result<()> {
        self.clear();
        for memory in self.memory.chunks_exact_mut(MAX_RECEIVE) {
            counters.syscalls += 1;
            let mut buffer = [IoSliceMut::new(memory)];
            let flags = MsgFlags::MSG_DONTWAIT;
            let message =
                recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut buffer, Some(&mut self.control), flags);
            match message {
                Ok(message) => self.rows.extend(row_of(&message, interfaces)),
                Err(nix::Error::EAGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The next datagram.
    pub(super) fn next(&mut self) -> Option<Received> {
        let &ReceivedRow { from, to, attributes, len, stride } = self.rows.get(self.next)?;
        let row = &self.memory[self.next * MAX_RECEIVE..][..len];
        let end = if stride == 0 { len } else { len.min(self.offset + stride) };
        let payload = Buffer::copy_from(&row[self.offset..end]);
        self.offset = end;
        if end >= len {
            (self.next, self.offset) = (self.next + 1, 0);
        }
        Some(Received { from, to, attributes, payload })
    }
}

/// The row of a message, with the attributes of its control messages; `None` without a sender's address.
fn row_of(message: &RecvMsg<'_, '_, SockaddrStorage>, interfaces: &Interfaces) -> Option<ReceivedRow> {
    let address = message.address.as_ref()?;
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    let from = v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into())))?;
    let (len, mut attributes) = (message.bytes, Attributes::CHOICE);
    let mut row = ReceivedRow { from, to: None, attributes, len, stride: 0 };
    for said in message.cmsgs().into_iter().flatten() {
        match said {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                row.to = Some(IpAddr::from(info.ipi_addr.s_addr.to_ne_bytes()));
                attributes.interface = interfaces.number(info.ipi_ifindex as u32);
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                row.to = Some(IpAddr::from(info.ipi6_addr.s6_addr));
                attributes.interface = interfaces.number(info.ipi6_ifindex);
            }
            ControlMessageOwned::Ipv4Ttl(hops) | ControlMessageOwned::Ipv6HopLimit(hops) => {
                attributes.hop_limit = u8::try_from(hops).ok();
            }
            ControlMessageOwned::Ipv4Tos(class) => attributes.traffic_class = class,
            ControlMessageOwned::Ipv6TClass(class) => attributes.traffic_class = class as u8,
            ControlMessageOwned::UdpGroSegments(stride) => row.stride = usize::try_from(stride).unwrap_or(0),
            _ => {}
        }
    }
    Some(ReceivedRow { attributes, ..row })
}
