//! The node's one UDP port: hellos, and the lanes' datagrams, which it sends to the peers' addresses.

use std::collections::VecDeque;
use std::net::{SocketAddr, SocketAddrV6};

use hopcast_core::{Buffer, Datagram, Duration, Instant};

use super::notice::Notices;
use crate::hello::peer::{Follow, Myself, Peer, identity, identity_of_group, neighbour_of};
use crate::hello::wire::{self, Heard, Tag};

/// Entry of a tag without a lane.
const NONE: u16 = u16::MAX;

/// The peers, and the lanes to them.
pub(crate) struct Switchboard {
    /// The address that the port is bound to.
    listen: SocketAddr,
    myself: Myself,
    pub(crate) peers: Vec<Peer>,
    /// The number of the lane, by peer and by tag.
    lanes: Vec<[u16; 256]>,
    /// The tag of each lane, and its address of a group.
    tags: Vec<(Tag, Option<SocketAddr>)>,
    /// Relays: the tag, and the two peers of each.
    relayed: Vec<(Tag, Vec<usize>)>,
    out: VecDeque<Datagram>,
    pub(crate) dropped: Dropped,
}

/// Datagrams that were dropped, by cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dropped {
    /// From an address that is no peer's.
    pub(crate) foreign: u64,
    /// Neither a hello nor of a lane.
    pub(crate) malformed: u64,
    /// Of a lane that this node does not have, or of a peer that is not up.
    pub(crate) unwanted: u64,
    /// To a peer that is not up.
    pub(crate) nowhere: u64,
}

/// A lane, and the peers with whom it is shared.
pub(crate) struct Lane {
    pub(crate) tag: Tag,
    pub(crate) peers: Vec<usize>,
    /// Whether it is only relayed: then it is no fault if the peers do not use it.
    pub(crate) relay: bool,
    /// The address to which what is for all of its peers together is sent, if there is one.
    pub(crate) multicast: Option<SocketAddr>,
}

impl Switchboard {
    /// A switchboard of `peers`, each with its name, its address if that is known, and the other addresses from which
    /// it is accepted.
    pub(crate) fn new(
        listen: SocketAddr,
        mut myself: Myself,
        peers: Vec<(String, Option<SocketAddr>, Follow)>,
        lanes: &[Lane],
    ) -> Self {
        let mut table = vec![[NONE; 256]; peers.len()];
        for (number, lane) in lanes.iter().enumerate() {
            for &peer in &lane.peers {
                table[peer][usize::from(lane.tag.byte())] = number as u16;
            }
        }
        let peers = peers.into_iter().enumerate().map(|(place, (name, address, follow))| {
            let shared = lanes.iter().filter(|lane| lane.peers.contains(&place));
            let needed = shared.clone().filter(|lane| !lane.relay).map(|lane| lane.tag).collect();
            let offered = shared.map(|lane| lane.tag).collect();
            Peer::new(name, (address.map(of_peer), follow), offered, needed, &mut myself)
        });
        Self {
            peers: peers.collect(),
            listen,
            myself,
            lanes: table,
            tags: lanes.iter().map(|lane| (lane.tag, lane.multicast)).collect(),
            relayed: lanes
                .iter()
                .filter(|lane| lane.relay)
                .map(|lane| (lane.tag, lane.peers.clone()))
                .collect(),
            out: VecDeque::new(),
            dropped: Dropped::default(),
        }
    }

    /// Index of the peer at this address; of two that have had it one after the other, the one that is up.
    fn place_of(&self, from: SocketAddr) -> Option<usize> {
        let mut there = (0..self.peers.len()).filter(|&place| self.peers[place].address() == Some(from));
        there.clone().find(|&place| self.peers[place].is_up()).or_else(|| there.next())
    }

    /// Takes a datagram that has arrived; returns its lane, and the datagram with the lane's addresses.
    pub(crate) fn arrived(&mut self, now: Instant, datagram: Datagram) -> Option<(usize, Datagram)> {
        let from = of_peer(datagram.remote);
        let mut payload = datagram.payload;
        let Some(&first) = payload.first() else {
            self.dropped.malformed += 1;
            return None;
        };
        let Some(tag) = Tag::of(first) else {
            self.heard(now, from, &payload);
            return None;
        };
        let Some(place) = self.place_of(from) else {
            // To a group of the network, a node's own come back.
            self.dropped.foreign += u64::from(!datagram.local.ip().is_multicast());
            return None;
        };
        let (peer, lane) = (&mut self.peers[place], self.lanes[place][usize::from(first)]);
        // It has crossed the hop, even if it is dropped here.
        peer.received.count(payload.len());
        if lane == NONE || !peer.is_up() {
            self.dropped.unwanted += 1;
            return None;
        }
        peer.on_data(now);
        payload.advance(1);
        let datagram = Datagram::new(identity(None, tag), identity(Some(place), tag), payload);
        Some((usize::from(lane), datagram))
    }

    fn heard(&mut self, now: Instant, from: SocketAddr, payload: &[u8]) {
        let heard = match wire::parse(payload) {
            Ok(heard) => heard,
            Err(_) => {
                self.dropped.malformed += 1;
                return;
            }
        };
        let name = match &heard {
            Heard::Hello(hello) => &hello.name,
            Heard::Other { name, .. } => name,
        };
        let Some(place) = self.peers.iter().position(|peer| &peer.name == name) else {
            self.dropped.foreign += 1;
            return;
        };
        let peer = &mut self.peers[place];
        match heard {
            Heard::Hello(hello) => peer.on_hello(now, from, &hello, payload.len(), &mut self.myself),
            Heard::Other { version, .. } => peer.on_other_version(now, from, version, &mut self.myself),
        }
        self.offer();
        self.put_hellos();
    }

    /// Lists to each of the two peers of a relay the lanes that the other one lists, once these are known.
    fn offer(&mut self) {
        for (tag, between) in &self.relayed {
            for &place in between {
                let others = between.iter().filter(|&&other| other != place);
                let carried = others
                    .map(|&other| self.peers[other].theirs.as_ref())
                    .all(|theirs| theirs.is_none_or(|theirs| theirs.contains(tag)));
                let offered = &mut self.peers[place].offered;
                match offered.binary_search(tag) {
                    Ok(at) if !carried => _ = offered.remove(at),
                    Err(at) if carried => offered.insert(at, *tag),
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }

    /// A lane's datagram with the peer's current address; `None` if it is dropped.
    pub(crate) fn departs(&mut self, lane: usize, datagram: Datagram) -> Option<Datagram> {
        let (tag, multicast) = self.tags[lane];
        if let Some(group) = multicast.filter(|_| datagram.remote == identity_of_group(tag)) {
            let mut payload = datagram.payload;
            payload.prepend(1)[0] = tag.byte();
            return Some(self.outwards(group, payload));
        }
        let peer = neighbour_of(&datagram.remote).and_then(|place| self.peers.get_mut(place))?;
        // A peer that is not up would drop it, or is gone: a transport's probes need not load the route.
        let Some(remote) = peer.address().filter(|_| peer.is_up()) else {
            self.dropped.nowhere += 1;
            return None;
        };
        let mut payload = datagram.payload;
        payload.prepend(1)[0] = tag.byte();
        peer.sent.count(payload.len());
        Some(self.outwards(remote, payload))
    }

    /// The next hello that is to be sent.
    pub(crate) fn poll(&mut self) -> Option<Datagram> {
        self.out.pop_front()
    }

    pub(crate) fn wake(&mut self, now: Instant) {
        for peer in &mut self.peers {
            if peer.deadline(&self.myself.timing).is_some_and(|at| at <= now) {
                peer.wake(now, &mut self.myself);
            }
        }
        self.put_hellos();
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        // What was put there from outside of a turn goes at once.
        if !self.out.is_empty() {
            return Some(Instant::ZERO);
        }
        self.peers.iter().filter_map(|peer| peer.deadline(&self.myself.timing)).min()
    }

    /// Notes that the host name of a peer has this address now.
    pub(crate) fn resolved(&mut self, now: Instant, peer: usize, address: SocketAddr) {
        self.peers[peer].resolved(now, of_peer(address), &mut self.myself);
    }

    /// Announces this node's end to all peers.
    pub(crate) fn say_bye(&mut self, now: Instant) {
        for peer in &mut self.peers {
            peer.say_bye(now, &mut self.myself);
        }
        self.put_hellos();
    }

    /// The notices to be logged.
    pub(crate) const fn notices(&mut self) -> &mut Notices {
        &mut self.myself.notices
    }

    /// Allows datagrams that are too long for a link to be fragmented from now on.
    pub(crate) fn allow_fragments(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.myself.fragments, true) {
            self.peers.iter_mut().for_each(|peer| peer.allow_fragments(now));
        }
    }

    /// Silence after which a peer's name is looked up again.
    pub(crate) const fn patience(&self) -> Duration {
        self.myself.timing.down_after
    }

    fn put_hellos(&mut self) {
        for (remote, bytes) in core::mem::take(&mut self.myself.hellos) {
            let datagram = self.outwards(remote, Buffer::copy_from(&bytes));
            self.out.push_back(datagram);
        }
    }

    fn outwards(&self, remote: SocketAddr, payload: Buffer) -> Datagram {
        Datagram::new(self.listen, remote, payload)
    }
}

/// The form of an address by which peers are compared: without a flow label, a link-local one with its interface.
fn of_peer(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into(),
        SocketAddr::V4(_) => address,
    }
}
