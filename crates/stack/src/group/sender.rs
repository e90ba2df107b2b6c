//! Machines at the sender of a flow to a group, between its transport and its host.

use std::net::{IpAddr, SocketAddr};

use hopcast_core::{Datagram, Instant, Item, Outbox, Port, Reactive};

use super::Member;

/// Sends each datagram to the group once to every member, as unicast. It knows at once who is a member.
pub(crate) struct FanOut {
    group: IpAddr,
    /// Each member with its address.
    members: Vec<(IpAddr, Member)>,
    copies: u64,
    without_members: u64,
    out: Outbox,
}

impl FanOut {
    pub(crate) fn new(group: IpAddr, members: Vec<(IpAddr, Member)>) -> Self {
        Self { group, members, copies: 0, without_members: 0, out: Outbox::new() }
    }

    fn send(&mut self, now: Instant, datagram: Datagram) {
        let mut members = self.members.iter().filter(|(_, member)| member.is_member(now)).peekable();
        if members.peek().is_none() {
            self.without_members += 1;
        }
        let mut datagram = Some(datagram);
        while let Some(&(address, _)) = members.next() {
            let copy = match members.peek() {
                Some(_) => datagram.clone(),
                None => datagram.take(),
            };
            let Some(mut copy) = copy else { break };
            copy.remote = SocketAddr::new(address, copy.remote.port());
            self.copies += 1;
            self.out.down(Item::Datagram(copy));
        }
    }
}

impl Reactive for FanOut {
    fn react(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(_), Item::Datagram(datagram)) if datagram.remote.ip() == self.group => {
                self.send(now, datagram);
            }
            (Port::Above(_), item) => self.out.down(item),
            (Port::Below(_), item) => self.out.up(item),
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("unicast_copies", self.copies);
        report("datagrams_without_members", self.without_members);
    }
}

/// Sends each datagram to the group once on each interface of its node, no farther than to the hosts there.
pub(crate) struct EachInterface {
    group: IpAddr,
    /// Number of interfaces.
    interfaces: u32,
    out: Outbox,
}

impl EachInterface {
    pub(crate) fn new(group: IpAddr, interfaces: u32) -> Self {
        Self { group, interfaces, out: Outbox::new() }
    }

    fn send(&mut self, datagram: Datagram) {
        let mut datagram = Some(datagram);
        for interface in 0..self.interfaces {
            let is_last = interface + 1 == self.interfaces;
            let copy = if is_last { datagram.take() } else { datagram.clone() };
            let Some(mut copy) = copy else { break };
            copy.attributes.interface = Some(interface);
            copy.attributes.hop_limit = Some(1);
            self.out.down(Item::Datagram(copy));
        }
    }
}

impl Reactive for EachInterface {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(_), Item::Datagram(datagram)) if datagram.remote.ip() == self.group => {
                self.send(datagram);
            }
            (Port::Above(_), item) => self.out.down(item),
            (Port::Below(_), item) => self.out.up(item),
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }
}

/// Sends each datagram to the group to all hosts of one segment.
pub(crate) struct SegmentBroadcast {
    group: IpAddr,
    everybody: IpAddr,
    interface: u32,
    out: Outbox,
}

impl SegmentBroadcast {
    /// Datagrams to `group` are sent to `everybody` on an interface.
    pub(crate) fn new(group: IpAddr, everybody: IpAddr, interface: u32) -> Self {
        Self { group, everybody, interface, out: Outbox::new() }
    }
}

impl Reactive for SegmentBroadcast {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(_), Item::Datagram(mut datagram)) if datagram.remote.ip() == self.group => {
                datagram.remote = SocketAddr::new(self.everybody, datagram.remote.port());
                datagram.attributes.interface = Some(self.interface);
                self.out.down(Item::Datagram(datagram));
            }
            (Port::Above(_), item) => self.out.down(item),
            (Port::Below(_), item) => self.out.up(item),
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::{Buffer, Duration, Machine};

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn seconds(at: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(at)
    }

    fn datagram(to: &str) -> Item {
        Item::Datagram(Datagram::new(at("10.0.0.1:2"), at(to), Buffer::copy_from(b"film")))
    }

    fn remotes(machine: &mut dyn Machine, now: u64, to: &str) -> Vec<SocketAddr> {
        let now = seconds(now);
        machine.handle(now, Port::Above(0), datagram(to));
        let items = std::iter::from_fn(|| machine.poll(now));
        let remote = |(port, item)| match (port, item) {
            (Port::Below(0), Item::Datagram(datagram)) => {
                assert_eq!(&datagram.payload[..], b"film");
                datagram.remote
            }
            other => panic!("{other:?}"),
        };
        items.map(remote).collect()
    }

    #[test]
    fn each_member_of_the_moment_gets_a_copy_and_other_datagrams_pass() {
        let of = |node, from, to: Option<u64>| Member { node, spans: vec![(seconds(from), to.map(seconds))] };
        let members = vec![
            (at("10.0.0.2:0").ip(), of(1, 0, Some(5))),
            (at("10.0.0.3:0").ip(), of(2, 0, None)),
            (at("10.0.0.4:0").ip(), of(3, 5, None)),
        ];
        let mut machine = FanOut::new(at("239.192.0.1:0").ip(), members);
        let sent = |machine: &mut FanOut, now| remotes(machine, now, "239.192.0.1:7");
        assert_eq!(sent(&mut machine, 1), [at("10.0.0.2:7"), at("10.0.0.3:7")]);
        assert_eq!(sent(&mut machine, 5), [at("10.0.0.3:7"), at("10.0.0.4:7")]);
        assert_eq!(remotes(&mut machine, 5, "10.0.0.9:7"), [at("10.0.0.9:7")]);
    }

    #[test]
    fn each_interface_has_a_copy_that_goes_one_hop() {
        let mut machine = EachInterface::new(at("224.0.0.254:0").ip(), 3);
        let now = Instant::ZERO;
        machine.handle(now, Port::Above(0), datagram("224.0.0.254:7"));
        let mut copies = Vec::new();
        while let Some((Port::Below(0), Item::Datagram(sent))) = machine.poll(now) {
            assert_eq!((sent.remote, &sent.payload[..]), (at("224.0.0.254:7"), &b"film"[..]));
            copies.push((sent.attributes.interface, sent.attributes.hop_limit));
        }
        assert_eq!(copies, [0, 1, 2].map(|interface| (Some(interface), Some(1))));
        assert_eq!(remotes(&mut machine, 0, "10.0.0.9:7"), [at("10.0.0.9:7")], "others pass");
    }

    #[test]
    fn on_a_segment_everybody_is_addressed_at_once() {
        let mut machine = SegmentBroadcast::new(at("239.192.0.1:0").ip(), at("255.255.255.255:0").ip(), 3);
        let now = Instant::ZERO;
        machine.handle(now, Port::Above(0), datagram("239.192.0.1:7"));
        let Some((Port::Below(0), Item::Datagram(sent))) = machine.poll(now) else { panic!() };
        assert_eq!((sent.remote, sent.attributes.interface), (at("255.255.255.255:7"), Some(3)));
        assert_eq!(machine.poll(now), None);
    }
}
