//! A tree of routers, some of which speak MEADcast, with receivers at any of them.

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::testing::{path, receiver_address, router_address};

pub(in crate::meadcast) struct Net {
    /// The router above each; the first has the sender above it.
    parents: Vec<usize>,
    /// Router with each address.
    places: BTreeMap<Ipv6Addr, usize>,
    pub(in crate::meadcast) routers: Vec<Option<Router>>,
    /// Router of each receiver.
    pub(in crate::meadcast) receivers: BTreeMap<Ipv6Addr, usize>,
    /// Packets that came to the sender.
    pub(in crate::meadcast) at_sender: Vec<Buffer>,
    /// Packets that came to each receiver.
    pub(in crate::meadcast) received: BTreeMap<Ipv6Addr, Vec<Buffer>>,
    /// Packets that crossed a link between the sender and a router, or two routers.
    pub(in crate::meadcast) crossings: usize,
    /// Their bytes, and those from the sender's own link among them.
    pub(in crate::meadcast) bytes: usize,
    pub(in crate::meadcast) sender_bytes: usize,
}

pub(in crate::meadcast) const SENDER: &str = "fd14::1";

impl Net {
    /// A network of routers, each with the one above it and whether it speaks MEADcast, and the routers of receivers.
    pub(in crate::meadcast) fn new(routers: &[(usize, bool)], receivers: &[usize]) -> Self {
        let routers: Vec<_> = routers
            .iter()
            .enumerate()
            .map(|(number, &(parent, speaks))| (parent, router_address(number), speaks))
            .collect();
        let receivers = receivers.iter().enumerate().map(|(at, &router)| (receiver_address(at), router));
        Self::with(Config::default(), &routers, receivers)
    }

    /// The same with addresses and settings.
    pub(in crate::meadcast) fn with(
        config: Config,
        routers: &[(usize, Ipv6Addr, bool)],
        receivers: impl IntoIterator<Item = (Ipv6Addr, usize)>,
    ) -> Self {
        let machine =
            |&(_, own, speaks): &(_, Ipv6Addr, bool)| speaks.then(|| Router::new(config, &[own.into()]));
        Self {
            parents: routers.iter().map(|(parent, ..)| *parent).collect(),
            places: routers.iter().enumerate().map(|(place, (_, own, _))| (*own, place)).collect(),
            routers: routers.iter().map(machine).collect(),
            receivers: receivers.into_iter().collect(),
            at_sender: Vec::new(),
            received: BTreeMap::new(),
            crossings: 0,
            bytes: 0,
            sender_bytes: 0,
        }
    }

    /// The routers on the way to one of them, from the first, with itself.
    pub(in crate::meadcast) fn path(&self, to: usize) -> Vec<usize> {
        path(&self.parents, to)
    }

    /// The next router towards an address; `None` where a link leads to it, `Err` of an address that does not exist.
    fn next(&self, from: usize, to: Ipv6Addr) -> Result<Option<usize>, ()> {
        if to == at(SENDER) {
            return Ok((from > 0).then(|| self.parents[from]));
        }
        let &end = self.places.get(&to).or(self.receivers.get(&to)).ok_or(())?;
        if end == from {
            return Ok(None);
        }
        let path = self.path(end);
        let place = path.iter().position(|&router| router == from);
        Ok(Some(place.map_or(self.parents[from], |place| path[place + 1])))
    }

    /// Brings a packet of the sender, and all that it causes, to its ends.
    pub(in crate::meadcast) fn send(&mut self, packet: Buffer) {
        self.sender_bytes += packet.len();
        let mut line = VecDeque::from([(0, packet)]);
        let begun_at = self.crossings;
        while let Some((node, packet)) = line.pop_front() {
            self.crossings += 1;
            self.bytes += packet.len();
            assert!(self.crossings - begun_at < 100_000, "packets that never end");
            let (back, own) = match &mut self.routers[node] {
                Some(router) => answers(router, Instant::ZERO, packet),
                None => (vec![packet], vec![]),
            };
            for mut packet in back {
                if ip::decrement_hop_limit(&mut packet) {
                    self.forward(node, packet, &mut line);
                }
            }
            for packet in own {
                self.forward(node, packet, &mut line);
            }
        }
    }

    fn forward(&mut self, node: usize, packet: Buffer, line: &mut VecDeque<(usize, Buffer)>) {
        let header = ip::parse(&packet).expect("a whole packet");
        let IpAddr::V6(destination) = header.destination else { panic!("IPv6") };
        match self.next(node, destination) {
            Ok(Some(next)) => line.push_back((next, packet)),
            Ok(None) if destination == at(SENDER) => self.at_sender.push(packet),
            Ok(None) => self.received.entry(destination).or_default().push(packet),
            Err(()) => {}
        }
    }

    /// Whether each of these receivers, and nobody else, has one datagram with this payload, whose checksum fits.
    pub(in crate::meadcast) fn each_has_one(&self, receivers: &[Ipv6Addr], payload: &[u8]) -> bool {
        let is_whole = |packet: &Buffer| {
            let header = ip::parse(packet).unwrap();
            let segment = &packet[header.payload()];
            let read = udp::parse(header.source, header.destination, segment);
            read.is_ok_and(|_| &segment[udp::HEADER..] == payload)
        };
        self.received.len() == receivers.len()
            && receivers.iter().all(|receiver| {
                self.received.get(receiver).is_some_and(|got| got.len() == 1 && got.iter().all(is_whole))
            })
    }
}
