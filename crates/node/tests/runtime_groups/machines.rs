//! A router and a host of ours, whose links are devices of the kernel.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use hopcast_core::{Frame, Instant, Item, Machine, Membership, Outbox, Port, Seed, earliest};
use hopcast_host::querier::{self, Querier};
use hopcast_host::{Config, GroupRoute, GroupRoutes, Hook, Host, Interface, StaticRoutes, membership};

use crate::common::Traffic;
use crate::scene::{Family, PORT, ip};

/// Numbers of datagrams to groups, by sender and group.
pub(super) type Carried = Rc<RefCell<BTreeMap<(IpAddr, IpAddr), u64>>>;

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

/// A tree of one branch: from `Below(0)`, where senders are, to `Below(1)`, for the groups with members there.
#[derive(Clone, Default)]
pub(super) struct Branch(Rc<RefCell<Wanted>>);

/// Groups, each with the only sender that is wanted, if there is one.
#[derive(Default)]
struct Wanted {
    groups: BTreeSet<(IpAddr, Option<IpAddr>)>,
    /// Number of changes so far.
    changes: u64,
}

impl Branch {
    /// Whether a group has members.
    pub(super) fn leads_to(&self, group: IpAddr) -> bool {
        self.0.borrow().groups.iter().any(|&(wanted, _)| wanted == group)
    }

    fn change(&self, Membership { group, source, interface, joined }: Membership) {
        assert_eq!(interface, Some(1), "senders ask for nothing");
        let wanted = &mut *self.0.borrow_mut();
        let changed = match joined {
            true => wanted.groups.insert((group, source)),
            false => wanted.groups.remove(&(group, source)),
        };
        wanted.changes += u64::from(changed);
    }
}

impl GroupRoutes for Branch {
    fn route(&mut self, source: IpAddr, group: IpAddr) -> Option<GroupRoute> {
        let wanted = &self.0.borrow().groups;
        let is_wanted = wanted.contains(&(group, None)) || wanted.contains(&(group, Some(source)));
        let egress: &[u32] = if is_wanted { &[1] } else { &[] };
        Some(GroupRoute { ingress: Some(0), upstream: None, egress: egress.into() })
    }

    fn version(&self) -> u64 {
        self.0.borrow().changes
    }

    fn member(&mut self, _: IpAddr, _: Option<IpAddr>, _: bool) {}
}

/// A router with a querier: senders on `Below(0)`, members on `Below(1)`.
pub(super) struct Router {
    host: Host,
    querier: Querier,
    pub(super) branch: Branch,
    /// Datagrams that it has sent to members.
    carried: Carried,
    out: Outbox,
}

/// The port of the router on which its querier is hooked.
const QUERIER: u32 = 1;

impl Router {
    pub(super) fn new(family: &Family, settings: querier::Config, carried: &Carried) -> Self {
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
                    (Port::Above(1), Item::Membership(_)) => {}
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
pub(super) struct Station {
    host: Host,
    traffic: Rc<RefCell<Traffic>>,
    /// Datagrams that it has received.
    carried: Carried,
    out: Outbox,
}

impl Station {
    pub(super) fn new(family: &Family, carried: &Carried) -> (Box<Self>, Rc<RefCell<Traffic>>) {
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
