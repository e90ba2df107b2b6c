//! A datagram port on UDP sockets, in batches.
//!
//! One socket is bound to the address of the plug. A machine that joins groups needs another one for each unless that
//! address is unspecified: a socket bound to one address receives no datagrams to groups ([`groups`]).
//!
//! | module | what |
//! |---|---|
//! | `batch` | datagrams that were read, with their attributes |
//! | `row` | datagrams that one call sends |
//! | `groups` | the groups that a machine has joined, and their sockets |
//! | `membership` | a membership as the kernel takes it |
//! | `interfaces` | the numbers of interfaces, in the network's plan and in the kernel |

mod batch;
mod groups;
mod interfaces;
mod membership;
mod row;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use hopcast_core::{Attributes, Datagram, Item};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{Ipv4RecvTtl, Ipv6RecvHopLimit};
use quinn_udp::UdpSocketState;
use rustix::event::epoll::EventFlags;
use rustix::net::sockopt;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use socket2::{Domain, Protocol, Socket as Kernel, Type};

use self::batch::{Batch, Received};
use self::groups::Groups;
pub(super) use self::groups::change_on as change_membership;
pub(super) use self::interfaces::{Interfaces, of_groups};
use self::row::Row;
use super::counters::Counters;
use super::drops::Drops;
use super::poller::{Poller, Token};
use super::socket::Socket;

/// Size of the kernel's receive buffer, in bytes. Chosen: 30 ms at 1 Gbit/s, for which another process may well have
/// the processor. The kernel doubles it for its bookkeeping (socket(7)).
const RECEIVE_BUFFER: usize = 4 << 20;
/// Size of the kernel's send buffer, in bytes. Chosen: a few bursts; with less, sends block more often, with more,
/// datagrams wait where they are not counted.
const SEND_BUFFER: usize = 1 << 20;
/// Maximum number of bytes that wait for room in the kernel, where each row counts for [`ROW_OVERHEAD`] more. Chosen:
/// it bounds memory and delay; with less, bursts are dropped here.
const MAX_WAITING: usize = 1 << 20;
/// Bytes that a row counts for beside its own. Chosen: about its bookkeeping here and in the kernel.
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
/// Hop limit of datagrams to groups: the maximum, as for hosts in virtual time. A kernel's default is 1.
const GROUP_HOP_LIMIT: u32 = 255;
/// Key of the plug's own socket among its descriptors, and of the first that receives what is sent to a group.
const OWN: u64 = 0;
const OF_GROUPS: u64 = 1;

/// A UDP socket.
pub(super) struct Udp {
    socket: Kernel,
    state: UdpSocketState,
    poller: Rc<Poller>,
    token: Token,
    local: SocketAddr,
    interfaces: Interfaces,
    batch: Batch,
    readable: bool,
    /// Whether the plug's own socket reports all attributes of each datagram.
    detailed: bool,
    groups: Groups,
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

impl Udp {
    pub(super) fn open(poller: &Rc<Poller>, plug: usize, address: SocketAddr) -> io::Result<Self> {
        let socket = unbound(address)?;
        if sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER).is_err() {
            socket.set_send_buffer_size(SEND_BUFFER)?;
        }
        socket.bind(&address.into())?;
        // Set after the bind, which must fail if another program has the address: only sockets of groups share the port
        // of one that is bound to all addresses.
        socket.set_reuse_address(true)?;
        for_groups(&socket, address.is_ipv6())?;
        let state = UdpSocketState::new((&socket).into())?;
        let local = socket.local_addr()?.as_socket().unwrap_or(address);
        let inode = rustix::fs::fstat(&socket)?.st_ino;
        let token = Token { plug, key: OWN };
        poller.add(&socket, token, EventFlags::IN)?;
        Ok(Self {
            drops: Drops::of_udp(address.is_ipv6(), inode),
            socket,
            state,
            poller: Rc::clone(poller),
            token,
            local,
            interfaces: Interfaces::of_namespace(),
            batch: Batch::new(),
            readable: false,
            detailed: false,
            groups: Groups::default(),
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
        let read = match self.detailed {
            true => self.batch.read_in_detail(&self.socket, &self.interfaces, &mut self.counters),
            false => self.batch.read(&self.socket, &self.state, &self.interfaces),
        };
        self.count(read);
    }

    /// Has the socket report all attributes of each datagram from now on, for a machine that joins groups or chooses
    /// attributes itself; for other machines they would cost a system call for each row.
    fn read_in_detail(&mut self) {
        self.detailed = self.detailed || in_detail(&self.socket, self.local.is_ipv6()).is_ok();
    }

    fn count(&mut self, read: io::Result<()>) {
        if read.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            self.counters.receive_errors += 1;
        }
    }

    /// The next datagram to a group from the sockets of groups.
    fn next_of_groups(&mut self) -> Option<Received> {
        let read = self.groups.read(&self.interfaces, &mut self.counters);
        self.count(read);
        self.groups.next()
    }

    /// Sends rows while the kernel has room.
    fn send(&mut self) {
        while let Some(row) = self.waiting.front() {
            let segments = self.state.max_gso_segments();
            let sent = row.send(&self.socket, &self.state, &self.interfaces, &mut self.counters);
            let Some(refused) = sent else {
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
        let Datagram { local, remote, payload, attributes } = datagram;
        // A bound socket sends from its address; but with chosen attributes an IPv4 socket needs that address among
        // them.
        let bound = Some(self.local.ip()).filter(|ip| !ip.is_unspecified());
        let source = match bound {
            Some(_) if *attributes == Attributes::CHOICE => None,
            Some(own) => Some(own),
            None => Some(local.ip()).filter(|ip| !ip.is_unspecified()),
        };
        // After the last datagram for the same peer, which keeps their order; the order between peers does not matter.
        let mut last = self.waiting.iter_mut().rev().take(MAX_ROWS_SEARCHED);
        let last =
            last.find(|row| row.remote == *remote && row.source == source && row.attributes == *attributes);
        let row = match last.filter(|row| !row.full && (1..=row.segment).contains(&payload.len())) {
            Some(row) => row,
            None => {
                self.waiting_bytes += ROW_OVERHEAD;
                self.waiting.push_back(Row {
                    remote: *remote,
                    source,
                    attributes: *attributes,
                    contents: self.spare.pop().unwrap_or_default(),
                    segment: payload.len(),
                    count: 0,
                    // A kernel that routes groups does not forward a row, which is longer than a link's packets.
                    full: payload.is_empty() || remote.ip().is_multicast(),
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
    fn ready(&mut self, key: u64, flags: EventFlags) {
        let readable = flags.intersects(EventFlags::IN | EventFlags::ERR);
        if key >= OF_GROUPS {
            return self.groups.ready(key, readable);
        }
        self.readable |= readable;
        if self.blocked && flags.intersects(EventFlags::OUT | EventFlags::ERR) {
            self.set_blocked(false);
        }
    }

    fn next(&mut self) -> Option<Item> {
        if self.readable && self.batch.is_empty() {
            self.read();
        }
        let own = self.batch.next().map(|received| (received, self.local.ip().is_unspecified()));
        let (received, any) = match own {
            Some(own) => own,
            None => (self.next_of_groups()?, true),
        };
        let Received { from, to, attributes, payload } = received;
        self.counters.received += 1;
        self.counters.received_bytes += payload.len() as u64;
        let mut local = self.local;
        if let Some(to) = to.filter(|_| any) {
            local.set_ip(to);
        }
        Some(Item::Datagram(Datagram { local, remote: from, payload, attributes }))
    }

    fn give(&mut self, item: Item) {
        let mut datagram = match item {
            Item::Datagram(datagram) => datagram,
            Item::Membership(membership) => {
                let place = (&self.poller, Token { key: OF_GROUPS, ..self.token });
                let changed =
                    self.groups.change(&membership, self.local, (&self.socket, &self.interfaces), place);
                self.counters.groups_refused += u64::from(changed.is_err());
                self.read_in_detail();
                return;
            }
            _ => {
                self.counters.wrong_items += 1;
                return;
            }
        };
        if datagram.remote.is_ipv4() != self.local.is_ipv4() || datagram.payload.len() > MAX_SEND {
            self.counters.send_refused += 1;
            return;
        }
        // UDP's sockets leave without it, and with other attributes they are slower.
        datagram.attributes.router_alert = false;
        if datagram.attributes != Attributes::CHOICE {
            self.read_in_detail();
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
        let receive_dropped = self.drops.count() + self.groups.dropped();
        Counters { receive_dropped, ..self.counters }
    }
}

/// A UDP socket of the version of `address`, with a large receive buffer.
fn unbound(address: SocketAddr) -> io::Result<Kernel> {
    let socket = Kernel::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        // All addresses are of the IP version of the plug's.
        socket.set_only_v6(true)?;
    }
    // Beyond the host's limits if allowed.
    if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    }
    Ok(socket)
}

/// Sets up a socket for groups: it sends to them as hosts in virtual time do, and receives only those that it has
/// joined itself.
fn for_groups(socket: &Kernel, ipv6: bool) -> io::Result<()> {
    if ipv6 {
        socket.set_multicast_hops_v6(GROUP_HOP_LIMIT)?;
        return socket.set_multicast_all_v6(false);
    }
    socket.set_broadcast(true)?;
    socket.set_multicast_ttl_v4(GROUP_HOP_LIMIT)?;
    socket.set_multicast_all_v4(false)
}

/// Has a socket report the hop limit of each datagram.
fn in_detail(socket: &Kernel, ipv6: bool) -> io::Result<()> {
    match ipv6 {
        true => setsockopt(socket, Ipv6RecvHopLimit, &true)?,
        false => setsockopt(socket, Ipv4RecvTtl, &true)?,
    }
    Ok(())
}
