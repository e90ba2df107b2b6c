//! A datagram port on a UDP socket, in batches.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use hopcast_core::{Buffer, Datagram, Item};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::event::epoll::EventFlags;
use rustix::net::sockopt;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use socket2::{Domain, Protocol, Socket as Kernel, Type};

use super::Socket;
use super::counters::Counters;
use super::drops::Drops;
use super::poller::{Poller, Token};

/// Size of the kernel's receive buffer, in bytes. Chosen: 30 ms at 1 Gbit/s, for which another process may well have
/// the processor. The kernel doubles it for its bookkeeping (socket(7)).
const RECEIVE_BUFFER: usize = 4 << 20;
/// Size of the kernel's send buffer, in bytes. Chosen: some bursts; more waits here, where it is counted.
const SEND_BUFFER: usize = 1 << 20;
/// Maximum number of bytes that wait for room in the kernel, where each row counts for [`ROW_OVERHEAD`] more. Chosen:
/// it bounds memory and delay; with less, bursts are dropped here.
const MAX_WAITING: usize = 1 << 20;
const ROW_OVERHEAD: usize = 256;
/// Maximum number of empty rows that are kept for reuse. Chosen; with fewer, bursts allocate, more is memory for
/// nothing.
const MAX_SPARE_ROWS: usize = 32;
/// Number of waiting bytes that are sent at once, even if the turn has more to send. Chosen; more delays the first of
/// them, less costs system calls.
const BURST_BYTES: usize = 128 << 10;
/// Maximum number of waiting rows in which a place for a datagram is searched. Chosen; more costs time, fewer makes
/// shorter rows where datagrams go to many peers.
const MAX_ROWS_SEARCHED: usize = 8;
/// Maximum number of bytes of one send: the limit of the length fields of IP and UDP.
const MAX_SEND: usize = 65_535 - 40 - 8;
/// Maximum number of bytes that the kernel delivers at once: one datagram, or a row of them (GRO).
const MAX_RECEIVE: usize = 65_536;

/// A UDP socket.
pub(super) struct Udp {
    socket: Kernel,
    state: UdpSocketState,
    poller: Rc<Poller>,
    token: Token,
    local: SocketAddr,
    batch: Batch,
    readable: bool,
    /// Datagrams to be sent, in rows that one call sends.
    waiting: VecDeque<Row>,
    waiting_bytes: usize,
    /// Whether the kernel had no room; an event reports when it has.
    blocked: bool,
    /// Empty rows, for their memory.
    spare: Vec<Vec<u8>>,
    drops: Drops,
    counters: Counters,
}

/// Datagrams that were read and not yet delivered.
struct Batch {
    memory: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
    count: usize,
    /// The number of the next row, and the offset in it.
    next: usize,
    offset: usize,
}

/// Datagrams of one length to one destination; the last one may be shorter.
struct Row {
    remote: SocketAddr,
    source: Option<IpAddr>,
    contents: Vec<u8>,
    segment: usize,
    count: usize,
    /// Whether no datagram may be added.
    full: bool,
}

impl Udp {
    pub(super) fn open(poller: &Rc<Poller>, plug: usize, address: SocketAddr) -> io::Result<Self> {
        let socket = Kernel::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            // All addresses are of the version that the plug names.
            socket.set_only_v6(true)?;
        }
        // Beyond the host's limits if allowed.
        if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
            socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        }
        if sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER).is_err() {
            socket.set_send_buffer_size(SEND_BUFFER)?;
        }
        socket.bind(&address.into())?;
        let state = UdpSocketState::new((&socket).into())?;
        let local = socket.local_addr()?.as_socket().unwrap_or(address);
        let inode = rustix::fs::fstat(&socket)?.st_ino;
        let token = Token { plug, key: 0 };
        poller.add(&socket, token, EventFlags::IN)?;
        Ok(Self {
            drops: Drops::of_udp(address.is_ipv6(), inode),
            socket,
            state,
            poller: Rc::clone(poller),
            token,
            local,
            batch: Batch::new(),
            readable: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            blocked: false,
            spare: Vec::new(),
            counters: Counters::default(),
        })
    }

    fn read(&mut self) {
        self.readable = false;
        self.counters.syscalls += 1;
        match self.batch.read(&self.socket, &self.state) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.counters.receive_errors += 1,
        }
    }

    /// Sends rows while the kernel has room.
    fn send(&mut self) {
        while let Some(row) = self.waiting.front() {
            let segments = self.state.max_gso_segments();
            let Some(refused) = row.send(&self.socket, &self.state, &mut self.counters) else {
                self.counters.send_full += 1;
                self.set_blocked(true);
                return;
            };
            if refused > 0 && self.state.max_gso_segments() < segments {
                // The datagrams were refused one by one too, so the kernel may still be able to send rows.
                self.renew();
            }
            self.drop_first();
        }
    }

    fn renew(&mut self) {
        if let Ok(state) = UdpSocketState::new((&self.socket).into()) {
            self.state = state;
        }
    }

    fn drop_first(&mut self) {
        if let Some(mut row) = self.waiting.pop_front() {
            self.waiting_bytes -= ROW_OVERHEAD + row.contents.len();
            row.contents.clear();
            if self.spare.len() < MAX_SPARE_ROWS {
                self.spare.push(row.contents);
            }
        }
    }

    fn set_blocked(&mut self, blocked: bool) {
        self.blocked = blocked;
        let flags = if blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        self.counters.syscalls += 1;
        // If no event can be requested, the next datagram tries again.
        self.blocked &= self.poller.modify(&self.socket, self.token, flags).is_ok();
    }

    /// Adds a datagram to those that wait.
    fn queue(&mut self, datagram: &Datagram) {
        let Datagram { local, remote, payload, .. } = datagram;
        // A socket that is bound to an address sends from that one.
        let source = Some(local.ip()).filter(|ip| !ip.is_unspecified() && self.local.ip().is_unspecified());
        // After the last datagram for the same peer, which keeps their order; the order between peers does not matter.
        let mut last = self.waiting.iter_mut().rev().take(MAX_ROWS_SEARCHED);
        let last = last.find(|row| row.remote == *remote && row.source == source);
        let row = match last.filter(|row| !row.full && (1..=row.segment).contains(&payload.len())) {
            Some(row) => row,
            None => {
                self.waiting_bytes += ROW_OVERHEAD;
                self.waiting.push_back(Row {
                    remote: *remote,
                    source,
                    contents: self.spare.pop().unwrap_or_default(),
                    segment: payload.len(),
                    count: 0,
                    full: payload.is_empty(),
                });
                self.waiting.back_mut().expect("was just added")
            }
        };
        row.contents.extend_from_slice(payload);
        row.count += 1;
        row.full |= payload.len() < row.segment || row.count >= self.state.max_gso_segments();
        row.full |= row.contents.len() + row.segment > MAX_SEND;
        self.waiting_bytes += payload.len();
    }
}

impl Socket for Udp {
    fn ready(&mut self, _key: u64, flags: EventFlags) {
        self.readable |= flags.intersects(EventFlags::IN | EventFlags::ERR);
        if self.blocked && flags.intersects(EventFlags::OUT | EventFlags::ERR) {
            self.set_blocked(false);
        }
    }

    fn next(&mut self) -> Option<Item> {
        if self.readable && self.batch.is_empty() {
            self.read();
        }
        let (from, to, payload) = self.batch.next()?;
        self.counters.received += 1;
        self.counters.received_bytes += payload.len() as u64;
        let mut local = self.local;
        if let Some(to) = to.filter(|_| local.ip().is_unspecified()) {
            local.set_ip(to);
        }
        Some(Item::Datagram(Datagram::new(local, from, payload)))
    }

    fn give(&mut self, item: Item) {
        let Item::Datagram(datagram) = item else {
            self.counters.wrong_items += 1;
            return;
        };
        if datagram.remote.is_ipv4() != self.local.is_ipv4() || datagram.payload.len() > MAX_SEND {
            self.counters.send_refused += 1;
            return;
        }
        self.queue(&datagram);
        datagram.payload.recycle();
        if self.waiting_bytes >= BURST_BYTES {
            self.flush();
        }
        while self.waiting_bytes > MAX_WAITING {
            self.counters.send_dropped += self.waiting.front().map_or(0, |row| row.count as u64);
            self.drop_first();
        }
    }

    fn flush(&mut self) {
        if !self.blocked {
            self.send();
        }
    }

    fn allow_fragments(&mut self) {
        // If it is not possible, datagrams that are too long are lost as before.
        let _ = match self.local.is_ipv4() {
            true => sockopt::set_ip_mtu_discover(&self.socket, Ipv4PathMtuDiscovery::DONT),
            false => sockopt::set_ipv6_mtu_discover(&self.socket, Ipv6PathMtuDiscovery::DONT),
        };
    }

    fn address(&self) -> Option<SocketAddr> {
        Some(self.local)
    }

    fn counters(&self) -> Counters {
        Counters { receive_dropped: self.drops.count(), ..self.counters }
    }
}

impl Batch {
    fn new() -> Self {
        Self {
            memory: vec![0; MAX_RECEIVE * BATCH_SIZE],
            metas: [RecvMeta::default(); BATCH_SIZE],
            count: 0,
            next: 0,
            offset: 0,
        }
    }

    const fn is_empty(&self) -> bool {
        self.next >= self.count
    }

    fn read(&mut self, socket: &Kernel, state: &UdpSocketState) -> io::Result<()> {
        (self.count, self.next, self.offset) = (0, 0, 0);
        let mut chunks = self.memory.chunks_exact_mut(MAX_RECEIVE);
        let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        self.count = state.recv(socket.into(), &mut buffers, &mut self.metas)?;
        Ok(())
    }

    /// The next datagram: its source, its destination address and its payload.
    fn next(&mut self) -> Option<(SocketAddr, Option<IpAddr>, Buffer)> {
        let meta = self.metas[..self.count].get(self.next)?;
        let row = &self.memory[self.next * MAX_RECEIVE..][..meta.len];
        let end = if meta.stride == 0 { meta.len } else { meta.len.min(self.offset + meta.stride) };
        let payload = Buffer::copy_from(&row[self.offset..end]);
        self.offset = end;
        if end >= meta.len {
            (self.next, self.offset) = (self.next + 1, 0);
        }
        Some((meta.addr, meta.dst_ip, payload))
    }
}

impl Row {
    /// Sends a row; `None` if the kernel has no room, or else the number of datagrams that it refused, which are
    /// counted and dropped.
    fn send(&self, socket: &Kernel, state: &UdpSocketState, counters: &mut Counters) -> Option<u64> {
        let transmit = |contents: &[u8], segment| {
            let Self { remote, source, .. } = *self;
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
}
