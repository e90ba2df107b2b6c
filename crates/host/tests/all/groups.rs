//! The machines on a host that get a group's packets, and the interfaces by which its own leave, held against a model.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use crate::network::{A, B, address, host, mac};
use hopcast_core::{Buffer, Datagram, Frame, Instant, Item, Machine, Membership, Port};
use hopcast_host::{GroupRoute, GroupRoutes, Hook, Host, StaticRoutes};
use hopcast_wire::{ethernet, ip, udp};
use proptest::prelude::*;
use proptest::sample::select;

/// Groups of any source, and one of IPv4 whose Ethernet address is that of the first.
const GROUPS: [&str; 4] = ["239.1.2.3", "239.129.2.3", "ff15::7", "ff15::8"];
/// The machines on the host, by their `Above` ports; each has the UDP port 5000 and this number.
const MACHINES: u32 = 3;
/// Hosts elsewhere, which send.
const SENDERS: [usize; 2] = [B, 5];
/// The interface that the routes have all senders behind; `B` sends by the other one too.
const INGRESS: u32 = 0;

/// Groups, each with the source that it is received from, or any.
type Memberships = BTreeSet<(IpAddr, Option<IpAddr>)>;

/// The group routes of a host that is no router, which note who is a member.
#[derive(Clone, Default)]
struct Noted(Rc<RefCell<Memberships>>);

impl GroupRoutes for Noted {
    fn route(&mut self, source: IpAddr, _: IpAddr) -> Option<GroupRoute> {
        let own = [false, true].map(|v6| address(A, v6)).contains(&source);
        let ingress = (!own).then_some(INGRESS);
        Some(GroupRoute { ingress, upstream: None, egress: if own { [0, 1].into() } else { [].into() } })
    }

    fn version(&self) -> u64 {
        0
    }

    fn member(&mut self, group: IpAddr, source: Option<IpAddr>, joined: bool) {
        let mut noted = self.0.borrow_mut();
        let news = if joined { noted.insert((group, source)) } else { noted.remove(&(group, source)) };
        assert!(news, "told twice: {group} of {source:?}, {joined}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A machine joins or leaves: of any source or one, on any interface or one.
    Change { above: u32, group: IpAddr, source: Option<usize>, interface: Option<u32>, joined: bool },
    /// The same machine leaves and is back at once.
    Back { place: prop::sample::Index },
    /// A datagram of a sender arrives.
    Arrive { from: usize, group: IpAddr, to: u32, interface: u32 },
    /// A machine sends to the group, and another, or itself, is a member.
    Send { above: u32, group: IpAddr, to: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    let group = || select(&GROUPS[..]).prop_map(|group| group.parse::<IpAddr>().unwrap());
    let interface = || prop::option::weighted(0.4, 0..2u32);
    let source = prop::option::weighted(0.4, select(&[A, B, 5][..]));
    prop_oneof![
        3 => (0..MACHINES, group(), source, interface(), any::<bool>()).prop_map(
            |(above, group, source, interface, joined)| Step::Change { above, group, source, interface, joined }
        ),
        1 => any::<prop::sample::Index>().prop_map(|place| Step::Back { place }),
        4 => (select(&SENDERS[..]), group(), 0..MACHINES, 0..2u32)
            .prop_map(|(from, group, to, interface)| Step::Arrive { from, group, to, interface }),
        2 => (0..MACHINES, group(), 0..MACHINES).prop_map(|(above, group, to)| Step::Send { above, group, to }),
    ]
}

/// A membership of a machine: its port, the group, the source and the interface.
type Joined = (u32, IpAddr, Option<IpAddr>, Option<u32>);

/// A host with the model of it.
struct Modelled {
    host: Host,
    noted: Noted,
    joined: BTreeSet<Joined>,
}

impl Modelled {
    fn new() -> Self {
        let mut host = host(A, &[1500, 1500], false, StaticRoutes::new());
        (0..MACHINES).for_each(|above| host.bind_udp(above, port(above)).unwrap());
        let noted = Noted::default();
        host.set_group_routes(Box::new(noted.clone()));
        Self { host, noted, joined: BTreeSet::new() }
    }

    fn change(&mut self, (above, group, source, interface): Joined, joined: bool) {
        let item = Item::Membership(Membership { group, source, interface, joined });
        self.host.handle(Instant::ZERO, Port::Above(above), item);
        if joined {
            self.joined.insert((above, group, source, interface));
        } else {
            self.joined.remove(&(above, group, source, interface));
        }
    }

    /// Whether a machine gets a packet that arrived by an interface, or that the host itself sent.
    fn is_for(&self, above: u32, group: IpAddr, from: IpAddr, by: Option<u32>) -> bool {
        self.joined.iter().any(|&(at, of, source, interface)| {
            let here = by.is_none() || interface.is_none() || interface == by;
            at == above && of == group && here && source.is_none_or(|source| source == from)
        })
    }

    /// The machines that the host hands datagrams to, and the interfaces by which it sends frames.
    fn drain(&mut self) -> (Vec<u32>, Vec<u32>) {
        let (mut up, mut out) = (Vec::new(), Vec::new());
        while let Some((port, item)) = self.host.poll(Instant::ZERO) {
            match (port, item) {
                (Port::Above(above), Item::Datagram(_)) => up.push(above),
                (Port::Below(interface), Item::Frame(_)) => out.push(interface),
                other => panic!("{other:?}"),
            }
        }
        (up, out)
    }
}

fn port(above: u32) -> u16 {
    5000 + above as u16
}

/// A frame with a datagram from another host to a group.
fn frame(from: usize, group: IpAddr, to: u32) -> Frame {
    let source = address(from, group.is_ipv6());
    let mut packet = Buffer::copy_from(b"film");
    udp::prepend(&mut packet, SocketAddr::new(source, 9), SocketAddr::new(group, port(to)));
    ip::prepend(&mut packet, source, group, ip::UDP, 64, 0);
    let ether_type = if group.is_ipv4() { ethernet::IPV4 } else { ethernet::IPV6 };
    let (destination, source) = (ethernet::of_group(group), mac(from, 0));
    ethernet::prepend(&mut packet, ethernet::Header { destination, source, ether_type });
    Frame::new(packet)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whoever_has_joined_gets_the_packets_and_nobody_else(steps in prop::collection::vec(step(), 1..60)) {
        let mut model = Modelled::new();
        for step in steps {
            let (expected, sent) = match step {
                Step::Change { above, group, source, interface, joined } => {
                    let source = source.map(|source| address(source, group.is_ipv6()));
                    model.change((above, group, source, interface), joined);
                    (None, 0)
                }
                Step::Back { place } => {
                    if !model.joined.is_empty() {
                        let one = *model.joined.iter().nth(place.index(model.joined.len())).unwrap();
                        model.change(one, false);
                        model.change(one, true);
                    }
                    (None, 0)
                }
                Step::Arrive { from, group, to, interface } => {
                    let item = Item::Frame(frame(from, group, to));
                    model.host.handle(Instant::ZERO, Port::Below(interface), item);
                    let source = address(from, group.is_ipv6());
                    // A packet that arrives by another interface than that of the route to its sender is dropped.
                    let taken = interface == INGRESS && model.is_for(to, group, source, Some(interface));
                    (taken.then_some(to), 0)
                }
                Step::Send { above, group, to } => {
                    let own = SocketAddr::new(address(A, group.is_ipv6()), port(above));
                    let remote = SocketAddr::new(group, port(to));
                    let datagram = Datagram::new(own, remote, Buffer::copy_from(b"film"));
                    model.host.handle(Instant::ZERO, Port::Above(above), Item::Datagram(datagram));
                    (model.is_for(to, group, own.ip(), None).then_some(to), 2)
                }
            };
            let (up, out) = model.drain();
            prop_assert_eq!(up, Vec::from_iter(expected));
            prop_assert_eq!(out, Vec::from_iter(0..sent));
            let wanted: Memberships = model.joined.iter().map(|&(_, group, source, _)| (group, source)).collect();
            prop_assert_eq!(&*model.noted.0.borrow(), &wanted);
        }
    }
}

/// A member that sends to another port of its group than it listens to is not one to whom packets come in vain.
#[test]
fn the_own_copy_of_what_goes_to_a_group_is_no_loss_where_nobody_listens() {
    let mut model = Modelled::new();
    let closed = |model: &Modelled| {
        let mut found = 0;
        model.host.counters(&mut |name, value| found += u64::from(name == "closed_port") * value);
        found
    };
    for (number, group) in (0..).zip(["239.1.2.3", "ff15::7"]) {
        let group: IpAddr = group.parse().unwrap();
        model.change((0, group, None, None), true);
        let own = SocketAddr::new(address(A, group.is_ipv6()), port(0));
        let datagram = Datagram::new(own, SocketAddr::new(group, port(MACHINES)), Buffer::copy_from(b"film"));
        model.host.handle(Instant::ZERO, Port::Above(0), Item::Datagram(datagram));
        assert_eq!(model.drain(), (vec![], vec![0, 1]));
        assert_eq!(closed(&model), number);
        model.host.handle(Instant::ZERO, Port::Below(INGRESS), Item::Frame(frame(B, group, MACHINES)));
        assert_eq!(model.drain(), (vec![], vec![]));
        assert_eq!(closed(&model), number + 1);
    }
}

#[test]
fn a_hook_may_take_what_arrives_on_another_interface_than_that_of_its_route() {
    let mut model = Modelled::new();
    model.host.hook(9, Hook::WrongInterface);
    for group in ["239.1.2.3", "ff15::7"] {
        let group = group.parse().unwrap();
        model.change((0, group, None, None), true);
        for (interface, expected) in [(INGRESS, 0), (1, 9)] {
            let frame = frame(B, group, 0);
            let packet = frame.bytes[ethernet::HEADER..].to_vec();
            model.host.handle(Instant::ZERO, Port::Below(interface), Item::Frame(frame));
            let Some((Port::Above(above), item)) = model.host.poll(Instant::ZERO) else {
                panic!("it is dropped")
            };
            assert_eq!(above, expected);
            if let Item::Transit(transit) = item {
                assert_eq!((&transit.packet[..], transit.ingress), (&packet[..], Some(1)), "as it arrived");
            }
            assert!(model.host.poll(Instant::ZERO).is_none());
        }
    }
}

#[test]
fn a_hook_may_take_what_the_host_itself_sends_to_a_group() {
    let mut model = Modelled::new();
    for above in [8, 9] {
        model.host.hook(above, Hook::OwnToGroup);
    }
    for group in ["239.1.2.3", "ff15::7"] {
        let group: IpAddr = group.parse().unwrap();
        model.change((0, group, None, None), true);
        let own = SocketAddr::new(address(A, group.is_ipv6()), port(0));
        let mut sent = Datagram::new(own, SocketAddr::new(group, port(0)), Buffer::copy_from(b"film"));
        model.host.handle(Instant::ZERO, Port::Above(0), Item::Datagram(sent.clone()));
        // One after the other, and when both have handed it back, it leaves, and the host itself hears it.
        for hook in [8, 9] {
            let Some((Port::Above(above), item)) = model.host.poll(Instant::ZERO) else { panic!("nothing") };
            let Item::Transit(transit) = &item else { panic!("{item:?}") };
            assert_eq!((above, transit.ingress), (hook, None));
            assert!(model.host.poll(Instant::ZERO).is_none());
            model.host.handle(Instant::ZERO, Port::Above(above), item);
        }
        assert_eq!(model.drain(), (vec![0], vec![0, 1]));
        // What names its interface is not for routers to bring anywhere.
        sent.attributes.interface = Some(1);
        model.host.handle(Instant::ZERO, Port::Above(0), Item::Datagram(sent));
        assert_eq!(model.drain(), (vec![0], vec![1]));
    }
}

/// The memberships that interfaces are told: port, group, and whether the host listens to it from now on.
fn told(host: &mut Host) -> Vec<(u32, String, bool)> {
    let mut told = Vec::new();
    while let Some((port, item)) = host.poll(Instant::ZERO) {
        let (Port::Below(interface), Item::Membership(Membership { group, joined, .. })) = (port, item)
        else {
            panic!("something else than a membership")
        };
        told.push((interface, group.to_string(), joined));
    }
    told
}

#[test]
fn an_interface_that_wants_to_know_is_told_what_the_host_listens_to_there() {
    let mut host = host(A, &[1500, 1500], false, StaticRoutes::new());
    let [film, music]: [IpAddr; 2] = ["239.1.2.3".parse().unwrap(), "ff15::7".parse().unwrap()];
    host.join(0, film);
    host.tell_memberships(1, ["224.0.0.2".parse().unwrap()]);
    host.join(0, music);
    assert_eq!(host.deadline(), Some(Instant::ZERO), "at once");
    host.wake(Instant::ZERO);
    let first =
        ["224.0.0.2", "239.1.2.3", "ff02::1:ff00:1", "ff15::7"].map(|group| (1, group.to_owned(), true));
    assert_eq!(told(&mut host), first);
    assert_eq!(host.deadline(), None);
    let mut change = |above: u32, group: IpAddr, interface: Option<u32>, joined: bool| {
        let item = Item::Membership(Membership { group, source: None, interface, joined });
        host.handle(Instant::ZERO, Port::Above(above), item);
        told(&mut host)
    };
    assert_eq!(change(1, film, Some(1), true), [], "another machine is a member already");
    assert_eq!(change(0, film, None, false), [], "and is left");
    assert_eq!(change(1, film, Some(1), false), [(1, film.to_string(), false)]);
    assert_eq!(change(1, film, Some(0), true), [], "on another interface");
    let all_routers = "224.0.0.2".parse().unwrap();
    assert_eq!(change(1, all_routers, None, true), []);
    assert_eq!(change(1, all_routers, None, false), [], "the host listens to it in any case");
}
