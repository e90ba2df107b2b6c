//! IGMPv3 and MLDv2 between machines and the kernel, both ways: a kernel host behind a router of ours, and a host of
//! ours behind a bridge of the kernel's that snoops and asks.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use common::{Bench, Namespace, Traffic, figure};
use hopcast_core::plug::{DevicePlug, Plug};
use hopcast_core::{
    Attributes, Buffer, Datagram, Duration, Frame, Instant, Item, Machine, Membership, Outbox, Port, Seed,
    earliest,
};
use hopcast_host::querier::{self, Querier};
use hopcast_host::{Config, GroupRoute, GroupRoutes, Hook, Host, Interface, StaticRoutes, membership};
use hopcast_node::runtime::Runtime;
use hopcast_node::testing::{Requirement, require};

const NEEDS: [Requirement<'_>; 3] = [Requirement::Root, Requirement::Tun, Requirement::Program("ip")];
/// The port of the groups' datagrams.
const PORT: u16 = 7000;
/// Hop limit with which they are sent.
const HOPS: u8 = 7;

/// Time after its last report in which a member is believed to be there (RFC 3376 section 8.4), with the times that
/// these tests set: twice the query interval, 3 s, and 300 ms to answer.
const SILENCE: Duration = ms(6300);
/// Time in which a leave must be known, longer than two queries for the group, 200 ms each, take. A member whose leave
/// nobody heard would be believed in for 3 s at least: it has answered the last general query.
const LEAVE_TIME: Duration = ms(2500);

/// Addresses of one IP version.
struct Family {
    version: u8,
    prefix: u8,
    router: [&'static str; 2],
    senders: [&'static str; 2],
    member: &'static str,
    group: &'static str,
    /// One of a single source.
    one_source: &'static str,
}

const FAMILIES: [Family; 2] = [
    Family {
        version: 4,
        prefix: 24,
        router: ["10.8.1.1", "10.8.2.1"],
        senders: ["10.8.1.2", "10.8.1.3"],
        member: "10.8.2.2",
        group: "239.1.2.3",
        one_source: "232.1.2.3",
    },
    Family {
        version: 6,
        prefix: 64,
        router: ["fd08:1::1", "fd08:2::1"],
        senders: ["fd08:1::2", "fd08:1::3"],
        member: "fd08:2::2",
        group: "ff15::1:2:3",
        one_source: "ff35::1:2:3",
    },
];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Numbers of datagrams to groups, by sender and group.
type Carried = Rc<RefCell<BTreeMap<(IpAddr, IpAddr), u64>>>;

/// The addresses of a frame with a UDP datagram to a group.
fn group_datagram(frame: &[u8]) -> Option<(IpAddr, IpAddr)> {
    const UDP: u8 = 17;
    let address = |from: usize, len: usize| -> Option<IpAddr> {
        let bytes = frame.get(from..from + len)?;
        <[u8; 4]>::try_from(bytes)
            .map(IpAddr::from)
            .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
            .ok()
    };
    let packet = 14;
    let (protocol, source, destination) = match frame.get(12..14)? {
        [0x08, 0x00] => (packet + 9, address(packet + 12, 4)?, address(packet + 16, 4)?),
        [0x86, 0xdd] => (packet + 6, address(packet + 8, 16)?, address(packet + 24, 16)?),
        _ => return None,
    };
    (frame.get(protocol) == Some(&UDP) && destination.is_multicast()).then_some((source, destination))
}

/// A tree of one branch: from `Below(0)`, where senders are, to `Below(1)`, for the groups that somebody there wants.
#[derive(Clone, Default)]
struct Branch(Rc<RefCell<(BTreeSet<(IpAddr, Option<IpAddr>)>, u64)>>);

impl Branch {
    fn change(&self, Membership { group, source, interface, joined }: Membership) {
        assert_eq!(interface, Some(1), "senders ask for nothing");
        let (wanted, changes) = &mut *self.0.borrow_mut();
        if joined {
            wanted.insert((group, source))
        } else {
            wanted.remove(&(group, source))
        };
        *changes += 1;
    }
}

impl GroupRoutes for Branch {
    fn route(&mut self, source: IpAddr, group: IpAddr) -> Option<GroupRoute> {
        let (wanted, _) = &*self.0.borrow();
        let is_wanted = wanted.contains(&(group, None)) || wanted.contains(&(group, Some(source)));
        let egress: &[u32] = if is_wanted { &[1] } else { &[] };
        Some(GroupRoute { ingress: Some(0), upstream: None, egress: egress.into() })
    }

    fn version(&self) -> u64 {
        self.0.borrow().1
    }

    fn member(&mut self, _: IpAddr, _: Option<IpAddr>, _: bool) {}
}

/// A router with a querier: senders on `Below(0)`, members on `Below(1)`.
struct Router {
    host: Host,
    querier: Querier,
    branch: Branch,
    /// What it has sent to members.
    carried: Carried,
    out: Outbox,
}

/// The port of the router on which its querier is hooked.
const QUERIER: u32 = 1;

impl Router {
    fn new(family: &Family, settings: querier::Config, carried: &Carried) -> Self {
        let interfaces = [1, 2].map(|number| Interface::new(router_mac(number), 1500));
        let addresses = family.router.map(ip).to_vec();
        let config =
            Config { addresses, interfaces: interfaces.into(), forwarding: true, ..Config::default() };
        let querier = Querier::new(settings, &membership::Interface::of_host(&config));
        let mut host = Host::new(config, Box::new(StaticRoutes::new()));
        let branch = Branch::default();
        host.set_group_routes(Box::new(branch.clone()));
        host.hook(QUERIER, Hook::Protocol(2));
        host.hook(QUERIER, Hook::ExtensionHeader { header: 0, kind: None });
        Self { host, querier, branch, carried: Rc::clone(carried), out: Outbox::new() }
    }

    fn settle(&mut self, now: Instant) {
        loop {
            if let Some((port, item)) = self.host.poll(now) {
                match (port, item) {
                    (Port::Above(QUERIER), item) => self.querier.handle(now, Port::Below(0), item),
                    (Port::Below(interface), Item::Frame(frame)) => {
                        if let Some(sent) = group_datagram(&frame.bytes) {
                            assert_eq!(interface, 1, "nothing goes back to senders");
                            *self.carried.borrow_mut().entry(sent).or_default() += 1;
                        }
                        self.out.push(Port::Below(interface), Item::Frame(frame));
                    }
                    other => panic!("{other:?}"),
                }
            } else if let Some((port, item)) = self.querier.poll(now) {
                match (port, item) {
                    (Port::Below(0), item) => self.host.handle(now, Port::Above(QUERIER), item),
                    // The kernel has memberships of its own everywhere, such as that of all its solicited nodes.
                    (Port::Above(0), Item::Membership(change)) if change.interface == Some(0) => {}
                    (Port::Above(0), Item::Membership(change)) => self.branch.change(change),
                    other => panic!("{other:?}"),
                }
            } else {
                return;
            }
        }
    }
}

fn router_mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 8, 0, number]
}

impl Machine for Router {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.host.handle(now, port, item);
        self.settle(now);
    }

    fn wake(&mut self, now: Instant) {
        self.host.wake(now);
        self.querier.wake(now);
        self.settle(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.host.deadline(), self.querier.deadline())
    }
}

/// A host that reports its memberships, with a UDP port that the test plays.
struct Station {
    host: Host,
    traffic: Rc<RefCell<Traffic>>,
    /// What has come to it.
    carried: Carried,
    out: Outbox,
}

impl Station {
    fn new(family: &Family, carried: &Carried) -> (Box<Self>, Rc<RefCell<Traffic>>) {
        let interface = Interface::new([2, 0, 0, 8, 0, 9], 1500);
        let config =
            Config { addresses: vec![ip(family.member)], interfaces: vec![interface], ..Config::default() };
        let mut host = Host::new(config, Box::new(StaticRoutes::new()));
        host.report_memberships(membership::Config::default(), Seed::new(1, 0).stream(&["station"], 0));
        host.bind_udp(0, PORT).unwrap();
        let traffic = Rc::new(RefCell::new(Traffic::default()));
        let station = Self { host, traffic: traffic.clone(), carried: carried.clone(), out: Outbox::new() };
        (Box::new(station), traffic)
    }

    fn settle(&mut self, now: Instant) {
        while let Some((port, item)) = self.host.poll(now) {
            match port {
                Port::Above(above) => self.traffic.borrow_mut().arrived.push((above, item)),
                Port::Below(_) => self.out.push(port, item),
            }
        }
    }
}

impl Machine for Station {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        if let Item::Frame(Frame { bytes, .. }) = &item
            && let Some(heard) = group_datagram(bytes)
        {
            *self.carried.borrow_mut().entry(heard).or_default() += 1;
        }
        self.host.handle(now, port, item);
        self.settle(now);
    }

    fn wake(&mut self, now: Instant) {
        loop {
            let Some((_, item)) = self.traffic.borrow_mut().out.pop() else { break };
            self.host.handle(now, Port::Above(0), item);
        }
        self.host.wake(now);
        self.settle(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        let pending = !self.traffic.borrow().out.is_empty();
        if pending { Some(Instant::ZERO) } else { self.host.deadline() }
    }
}

/// Two senders, and the one who joins and leaves, with the machine or bridge between them.
struct Scene<'f> {
    family: &'f Family,
    bench: Bench,
    senders: Vec<(Runtime, Rc<RefCell<Traffic>>)>,
    /// The member's and the router's machines.
    others: Vec<Runtime>,
    member: Rc<RefCell<Traffic>>,
    /// Number of the member's interface.
    interface: u32,
    carried: Carried,
}

impl Scene<'_> {
    /// Sends to groups from both senders every 5 ms, for a time or until `done`; whether it was.
    fn run(&mut self, span: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.bench.clock.now() + span;
        let mut next = self.bench.clock.now();
        while self.bench.clock.now() < end {
            if done(self) {
                return true;
            }
            if self.bench.clock.now() >= next {
                next += ms(5);
                self.send();
            }
            let Self { bench, senders, others, .. } = self;
            for runtime in senders.iter_mut().map(|(runtime, _)| runtime).chain(others) {
                let until = bench.clock.now() + Duration::from_micros(300);
                runtime.run(Some(until), &bench.stop).unwrap();
            }
        }
        done(self)
    }

    fn send(&self) {
        let attributes = Attributes { interface: Some(0), hop_limit: Some(HOPS), traffic_class: 0 };
        for ((_, traffic), sender) in self.senders.iter().zip(self.family.senders) {
            for group in [self.family.group, self.family.one_source] {
                let remote = SocketAddr::new(ip(group), PORT);
                let local = SocketAddr::new(ip(sender), 0);
                let datagram = Datagram {
                    attributes,
                    ..Datagram::new(local, remote, Buffer::copy_from(group.as_bytes()))
                };
                traffic.borrow_mut().out.down(Item::Datagram(datagram));
            }
        }
    }

    fn set_member(&self, group: &str, source: Option<&str>, joined: bool) {
        let membership =
            Membership { group: ip(group), source: source.map(ip), interface: Some(self.interface), joined };
        self.member.borrow_mut().out.down(Item::Membership(membership));
    }

    /// The senders and groups whose datagrams come to the member's link, in half a second.
    fn on_link(&mut self) -> BTreeSet<(IpAddr, IpAddr)> {
        // What is under way still comes.
        self.run(ms(200), |_| false);
        self.received();
        self.carried.borrow_mut().clear();
        self.run(ms(500), |_| false);
        self.carried.borrow().keys().copied().collect()
    }

    /// The senders and groups of the datagrams that the member has received, and forgets.
    fn received(&self) -> BTreeSet<(IpAddr, IpAddr)> {
        let datagrams = self.member.borrow_mut().datagrams();
        let ends = |datagram: &Datagram| (datagram.remote.ip(), datagram.local.ip());
        datagrams.iter().map(ends).collect()
    }

    /// The member joins a group of any source, is in it for longer than a silent one would be, and leaves; then it
    /// joins one of a single source. `is_known` says whether whoever brings the groups there knows of a member.
    fn joins_and_leaves(&mut self, is_known: impl Fn(&str) -> bool) {
        let Family { group, one_source, senders: [first, second], .. } = *self.family;
        let of = |sender: &str, group: &str| (ip(sender), ip(group));
        assert_eq!(self.on_link(), BTreeSet::new(), "nobody wants anything");
        assert!(!is_known(group));

        self.set_member(group, None, true);
        let both = BTreeSet::from([of(first, group), of(second, group)]);
        let mut got = BTreeSet::new();
        assert!(self.run(ms(3000), |scene| {
            got.extend(scene.received());
            got == both
        }));
        assert!(is_known(group) && !is_known(one_source));
        // As long as it answers queries.
        self.run(SILENCE + ms(1000), |_| false);
        assert_eq!((self.on_link(), self.received()), (both.clone(), both));

        self.set_member(group, None, false);
        assert!(self.run(LEAVE_TIME, |_| !is_known(group)), "a leave is heard");
        assert_eq!((self.on_link(), self.received()), (BTreeSet::new(), BTreeSet::new()));

        self.set_member(one_source, Some(second), true);
        let one = BTreeSet::from([of(second, one_source)]);
        let mut got = BTreeSet::new();
        assert!(self.run(ms(3000), |scene| {
            got.extend(scene.received());
            got == one
        }));
        assert!(is_known(one_source));
        assert_eq!((self.on_link(), self.received()), (one.clone(), one));
        self.set_member(one_source, Some(second), false);
        assert!(self.run(LEAVE_TIME, |_| !is_known(one_source)), "and that of one source");
        assert_eq!((self.on_link(), self.received()), (BTreeSet::new(), BTreeSet::new()));
    }
}

fn tap(name: &str, mac: [u8; 6]) -> Plug {
    let device = DevicePlug { name: name.to_owned(), addresses: Vec::new(), routes: Vec::new(), mtu: 1500 };
    Plug::Tap(mac, device)
}

/// A namespace whose interfaces are used at once, and where packets may come from anywhere.
fn namespace(name: &str) -> Namespace {
    let namespace = Namespace::new(name);
    namespace.run(|| {
        for key in ["ipv6/conf/default/accept_dad", "ipv4/conf/all/rp_filter", "ipv4/conf/default/rp_filter"]
        {
            std::fs::write(format!("/proc/sys/net/{key}"), "0").unwrap();
        }
    });
    namespace
}

/// The senders' ports, in the calling thread's namespace.
fn senders(bench: &Bench, family: &Family) -> Vec<(Runtime, Rc<RefCell<Traffic>>)> {
    let open = |address: &str| bench.played(&[Plug::Udp(SocketAddr::new(ip(address), 0))]);
    family.senders.into_iter().map(open).collect()
}

fn a_kernel_host_gets_a_group_from_a_router_of_ours(family: &Family) {
    if !require(&NEEDS) {
        return;
    }
    let spaces = ["senders", "router", "member"];
    let [at_senders, at_router, at_member] =
        spaces.map(|place| namespace(&format!("{place}{}", family.version)));
    at_router.run(|| {
        let (bench, carried) = (Bench::new(), Carried::default());
        let settings = querier::Config {
            query_interval: ms(3000),
            query_response_interval: ms(300),
            last_member_query_interval: ms(200),
            ..querier::Config::default()
        };
        let router = Router::new(family, settings, &carried);
        let branch = router.branch.clone();
        // Their addresses are those of the kernel's ends.
        let taps = [tap("eth0", [2, 0, 0, 8, 1, 1]), tap("eth1", [2, 0, 0, 8, 1, 2])];
        let router = bench.open(Box::new(router), &taps);
        let address = |address: &str| format!("{address}/{}", family.prefix);
        at_senders.take_device("eth0", &at_router, &family.senders.map(address));
        at_member.take_device("eth1", &at_router, &[address(family.member)]);
        at_senders.enter();
        let senders = senders(&bench, family);
        at_member.enter();
        let (socket, member) = bench.played(&[Plug::Udp(SocketAddr::new(ip(family.member), PORT))]);
        let others = vec![router, socket];
        let mut scene = Scene { family, bench, senders, others, member, interface: 1, carried };
        scene.joins_and_leaves(|group| branch.0.borrow().0.iter().any(|(known, _)| *known == ip(group)));
        assert!(figure(&scene.others[0], "socket_received") > 0);
    });
}

#[test]
fn a_kernel_host_gets_a_group_from_a_router_of_ours_by_igmp() {
    a_kernel_host_gets_a_group_from_a_router_of_ours(&FAMILIES[0]);
}

#[test]
fn a_kernel_host_gets_a_group_from_a_router_of_ours_by_mld() {
    a_kernel_host_gets_a_group_from_a_router_of_ours(&FAMILIES[1]);
}

fn a_host_of_ours_gets_a_group_from_a_bridge_of_the_kernel(family: &Family) {
    if !require(&[NEEDS[0], NEEDS[1], NEEDS[2], Requirement::Program("bridge")]) {
        return;
    }
    let [at_senders, at_bridge] =
        ["far", "bridge"].map(|place| namespace(&format!("{place}{}", family.version)));
    // Times in hundredths of a second.
    at_bridge.sh("ip link add br0 type bridge forward_delay 0 mcast_snooping 1 mcast_igmp_version 3 \
         mcast_mld_version 2 mcast_query_interval 300 mcast_startup_query_interval 300 \
         mcast_query_response_interval 30 mcast_last_member_interval 20 mcast_last_member_count 2 \
         mcast_membership_interval 630");
    let addresses = family.senders.map(|address| format!("{address}/{}", family.prefix));
    at_senders.join("eth0", &addresses.each_ref().map(|address| &**address), &at_bridge, "port0", &[]);
    at_bridge.run(|| {
        let (bench, carried) = (Bench::new(), Carried::default());
        let (station, member) = Station::new(family, &carried);
        let station = bench.open(station, &[tap("port1", [2, 0, 0, 8, 1, 9])]);
        // The station is alone on its link.
        at_bridge.sh("ip link set port1 addrgenmode none");
        for port in ["port0", "port1"] {
            at_bridge.sh(&format!("ip link set {port} master br0"));
        }
        at_bridge.sh("ip link set br0 up");
        // It asks with these times, and by MLD once it has an address, which a querier needs.
        let has_address = || {
            let addresses = at_bridge.sh("ip -6 address show dev br0 scope link");
            addresses.contains("fe80:") && !addresses.contains("tentative")
        };
        assert!(bench.until(10, &mut [], has_address));
        at_bridge.sh("ip link set br0 type bridge mcast_querier 1");
        at_senders.enter();
        let senders = senders(&bench, family);
        let mut scene =
            Scene { family, bench, senders, others: vec![station], member, interface: 0, carried };
        // A bridge sends everything everywhere until its first query could have been answered.
        let _ = (0..20).any(|_| scene.on_link().is_empty());
        scene.joins_and_leaves(|group| {
            at_bridge.sh("bridge mdb show").contains(&format!("port port1 grp {group} "))
        });
    });
}

#[test]
fn a_host_of_ours_gets_a_group_from_a_bridge_of_the_kernel_by_igmp() {
    a_host_of_ours_gets_a_group_from_a_bridge_of_the_kernel(&FAMILIES[0]);
}

#[test]
fn a_host_of_ours_gets_a_group_from_a_bridge_of_the_kernel_by_mld() {
    a_host_of_ours_gets_a_group_from_a_bridge_of_the_kernel(&FAMILIES[1]);
}
