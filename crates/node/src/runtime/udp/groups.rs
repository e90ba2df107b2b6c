//! Memberships of a machine in groups.
//!
//! A socket that is bound to all addresses joins them itself. For one that is bound to its own address each group has
//! a socket beside it, bound to the group's address: the kernel then delivers to it what was sent to the group, and the
//! port of the host's other addresses stays free for the sockets of other members.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::rc::Rc;

use hopcast_core::Membership;
use quinn_udp::UdpSocketState;
use rustix::event::epoll::EventFlags;
use socket2::Socket as Kernel;

use super::batch::{Batch, Received};
use super::interfaces::{Interfaces, of_groups};
use super::{for_groups, in_detail, membership, unbound};
use crate::runtime::counters::Counters;
use crate::runtime::drops::Drops;
use crate::runtime::poller::{Poller, Token};

/// The groups that a machine has joined.
#[derive(Default)]
pub(super) struct Groups {
    /// The sockets of groups, by the key of their descriptors, where the plug's own socket is bound to one address.
    inlets: BTreeMap<u64, Inlet>,
    /// The sockets that can be read, in the order of their events.
    readable: VecDeque<u64>,
    /// Datagrams that were read from one of them.
    batch: Option<Batch>,
    /// Number of sockets that were ever opened.
    opened: u64,
    /// Datagrams that the kernel dropped at sockets that are closed.
    dropped: u64,
}

/// A socket bound to the address of a group.
struct Inlet {
    socket: Kernel,
    group: IpAddr,
    /// Index of the interface of a group whose address is one of each link; 0 for others.
    scope: u32,
    /// Index of the interface, and source, of each membership.
    members: BTreeSet<(u32, Option<IpAddr>)>,
    drops: Drops,
}

impl Groups {
    /// Joins a group or leaves it. `own` is the plug's socket, bound to `local`.
    pub(super) fn change(
        &mut self,
        change: &Membership,
        local: SocketAddr,
        (own, interfaces): (&Kernel, &Interfaces),
        (poller, first): (&Rc<Poller>, Token),
    ) -> io::Result<()> {
        let Membership { group, source, interface, joined } = *change;
        if group.is_ipv4() != local.is_ipv4()
            || source.is_some_and(|source| source.is_ipv4() != local.is_ipv4())
        {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let indices = match interface {
            // A broadcast is received without a membership.
            _ if is_broadcast(group) => vec![0],
            Some(number) => vec![interfaces.index(number).ok_or(io::ErrorKind::AddrNotAvailable)?],
            None => of_groups(local.ip()),
        };
        if local.ip().is_unspecified() {
            return indices.iter().try_for_each(|&index| change_on(own, index, group, source, joined));
        }
        let changed = indices.iter().try_for_each(|&index| {
            let scope = if is_of_link(group) { index } else { 0 };
            let mut open = self.inlets.values_mut();
            let inlet = match open.find(|inlet| (inlet.group, inlet.scope) == (group, scope)) {
                Some(inlet) => inlet,
                None if joined => self.open(poller, first, (group, scope, local.port()))?,
                None => return Ok(()),
            };
            change_on(&inlet.socket, index, group, source, joined)?;
            match joined {
                true => inlet.members.insert((index, source)),
                false => inlet.members.remove(&(index, source)),
            };
            Ok(())
        });
        if !joined && interface.is_none() {
            // Interfaces may have gone since, and memberships with them.
            let of_group = self.inlets.values_mut().filter(|inlet| inlet.group == group);
            of_group.for_each(|inlet| inlet.members.retain(|&(_, of)| of != source));
        }
        self.close_unused();
        changed
    }

    fn open(
        &mut self,
        poller: &Rc<Poller>,
        first: Token,
        place: (IpAddr, u32, u16),
    ) -> io::Result<&mut Inlet> {
        let key = first.key + self.opened;
        let inlet = Inlet::open(poller, Token { key, ..first }, place)?;
        self.opened += 1;
        Ok(self.inlets.entry(key).or_insert(inlet))
    }

    /// Closes the sockets of groups without a membership.
    fn close_unused(&mut self) {
        let Self { inlets, dropped, .. } = self;
        inlets.retain(|_, inlet| {
            let used = !inlet.members.is_empty();
            *dropped += if used { 0 } else { inlet.drops.count() };
            used
        });
    }

    pub(super) fn ready(&mut self, key: u64, readable: bool) {
        if readable && !self.readable.contains(&key) {
            self.readable.push_back(key);
        }
    }

    /// Reads datagrams from a socket of groups, if all earlier ones are delivered.
    pub(super) fn read(&mut self, interfaces: &Interfaces, counters: &mut Counters) -> io::Result<()> {
        while self.batch.as_ref().is_none_or(Batch::is_empty)
            && let Some(key) = self.readable.pop_front()
        {
            // A socket may have been closed since.
            let Some(inlet) = self.inlets.get(&key) else { continue };
            let batch = self.batch.get_or_insert_with(Batch::new);
            batch.read_in_detail(&inlet.socket, interfaces, counters)?;
        }
        Ok(())
    }

    /// The next datagram to a group.
    pub(super) fn next(&mut self) -> Option<Received> {
        self.batch.as_mut()?.next()
    }

    /// Datagrams that the kernel dropped since they were not read in time.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped + self.inlets.values().map(|inlet| inlet.drops.count()).sum::<u64>()
    }
}

impl Inlet {
    fn open(poller: &Rc<Poller>, token: Token, (group, scope, port): (IpAddr, u32, u16)) -> io::Result<Self> {
        let address = match group {
            IpAddr::V4(group) => SocketAddr::from((group, port)),
            IpAddr::V6(group) => SocketAddrV6::new(group, port, 0, scope).into(),
        };
        let socket = unbound(address)?;
        // Beside those of other members of the group.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        for_groups(&socket, address.is_ipv6())?;
        // The socket reports the interface and the traffic class of each datagram.
        UdpSocketState::new((&socket).into())?;
        in_detail(&socket, address.is_ipv6())?;
        let drops = Drops::of_udp(address.is_ipv6(), rustix::fs::fstat(&socket)?.st_ino);
        poller.add(&socket, token, EventFlags::IN)?;
        Ok(Self { socket, group, scope, members: BTreeSet::new(), drops })
    }
}

/// Joins or leaves a group on one interface. It is no error if that was done already.
pub(in crate::runtime) fn change_on(
    socket: &Kernel,
    index: u32,
    group: IpAddr,
    source: Option<IpAddr>,
    joined: bool,
) -> io::Result<()> {
    if is_broadcast(group) {
        return Ok(());
    }
    membership::change(socket, index, group, source, joined)
}

fn is_broadcast(group: IpAddr) -> bool {
    group == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// Whether a group is one of each link, or interface: its address is bound together with an interface (RFC 4291
/// section 2.7 has the scopes).
fn is_of_link(group: IpAddr) -> bool {
    matches!(group, IpAddr::V6(group) if matches!(group.octets(), [0xff, scope, ..] if matches!(scope & 0xf, 1 | 2)))
}
