//! A router with PIM: whatever arrives, it sends whole messages of its own that fit their link, no more than what
//! arrives and its timers cause, keeps no more neighbours and channels than it has room for, and in the end forgets
//! all.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arbitrary::Arbitrary;
use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Membership, Port, Seed, Transit};
use hopcast_fuzz::internet::mend;
use hopcast_host::pim::wire::{self, Assert, GroupEntry, Hello, JoinPrune, LanDelay, Message};
use hopcast_host::pim::{Config, GroupTable, Pim};
use hopcast_host::{GroupRoutes, Interface, NextHop, RouteEntry, Routes};
use hopcast_wire::ethernet::link_local;
use hopcast_wire::ip;
use libfuzzer_sys::fuzz_target;

const MTU: u32 = 300;
const INTERFACES: u32 = 3;
const CHANNELS: usize = 6;
const NEIGHBOURS: usize = 3;

#[derive(Arbitrary, Debug)]
struct Step {
    /// Tenths of a second before it.
    wait: u16,
    interface: u8,
    v6: bool,
    from: u8,
    what: What,
}

#[derive(Arbitrary, Debug)]
enum What {
    Hello {
        holdtime: u16,
        delay: Option<(u16, u16)>,
        priority: Option<u32>,
        generation: Option<u8>,
        others: u8,
    },
    Lists {
        to: u8,
        holdtime: u16,
        entries: Vec<(u8, Vec<u8>, Vec<u8>)>,
    },
    Assert {
        channel: u8,
        shared_tree: bool,
        metric: (u32, u32),
    },
    Members {
        channel: u8,
        joined: bool,
        any_source: bool,
    },
    Data {
        channel: u8,
    },
    Bytes {
        /// Whether they are behind the headers of IP and PIM, and not a whole packet.
        is_message: bool,
        kind: u8,
        bytes: Vec<u8>,
    },
}

/// Each source is behind the interface of its number, at the neighbour of its number.
struct Ways;

impl Routes for Ways {
    fn next_hop(&mut self, _: IpAddr) -> Option<NextHop> {
        None
    }

    fn version(&self) -> u64 {
        0
    }

    fn route(&mut self, to: IpAddr) -> Option<RouteEntry> {
        let number = match to {
            IpAddr::V4(to) => to.octets()[3],
            IpAddr::V6(to) => to.octets()[15],
        };
        let interface = u32::from(number) % (INTERFACES + 1);
        (interface < INTERFACES).then(|| RouteEntry {
            interface,
            neighbour: router(to.is_ipv6(), number),
            metric: 3,
        })
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let interface = |number: u32| Interface {
        mac: [2, 0, 0, 0, 0, number as u8],
        mtu: MTU,
        v4: Some(Ipv4Addr::new(10, 0, number as u8, 250)),
        v6: Some(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, number as u16, 250)),
    };
    let host =
        hopcast_host::Config { interfaces: (0..INTERFACES).map(interface).collect(), ..Default::default() };
    // Long intervals, so that the last eighteen hours are soon over.
    let config = Config {
        hello_interval: Duration::from_secs(3000),
        join_interval: Duration::from_secs(600),
        route_check: Duration::from_secs(3000),
        max_routes: CHANNELS,
        max_neighbours: NEIGHBOURS,
        ..Config::default()
    };
    let table = GroupTable::new(Vec::new());
    let random = Seed::new(1, 0).stream(&["pim"], 0);
    let pim = Pim::new(config, &host, Box::new(Ways), table.clone(), random);
    let mut router = Router { now: Instant::ZERO, pim, table, members: Default::default() };
    router.settle(0);
    for step in &steps {
        router.run(Duration::from_millis(100 * u64::from(step.wait)));
        router.take(step);
    }
    for (source, group, interface) in std::mem::take(&mut router.members) {
        let membership =
            Membership { group, source: Some(source), interface: Some(interface), joined: false };
        router.pim.handle(router.now, Port::Above(0), Item::Membership(membership));
        router.settle(2);
    }
    // A join holds for 18 hours at most; the routers that said so are forgotten as well, or were there for ever.
    router.run(Duration::from_secs(66_000));
    for number in 0..=u8::MAX {
        for v6 in [false, true] {
            let (source, group) = channel(v6, number);
            assert_eq!(router.table.route(source, group), None);
        }
    }
});

struct Router {
    now: Instant,
    pim: Pim,
    table: GroupTable,
    members: std::collections::BTreeSet<(IpAddr, IpAddr, u32)>,
}

impl Router {
    fn take(&mut self, step: &Step) {
        let Step { interface, v6, from, ref what, .. } = *step;
        let interface = u32::from(interface) % INTERFACES;
        let from = router(v6, from);
        let message = match what {
            What::Hello { holdtime, delay, priority, generation, others } => Message::Hello(Hello {
                holdtime: *holdtime,
                lan_delay: delay.map(|(propagation, override_interval)| LanDelay {
                    tracking: override_interval & 1 == 1,
                    propagation: propagation & 0x7fff,
                    override_interval,
                }),
                priority: *priority,
                generation: generation.map(u32::from),
                addresses: (0..others % 4).map(|number| global(v6, number)).collect(),
            }),
            What::Lists { to, holdtime, entries } => {
                let sources = |list: &[u8]| list.iter().map(|&number| channel(v6, number).0).collect();
                let entry = |(group, joined, pruned): &(u8, Vec<u8>, Vec<u8>)| GroupEntry {
                    group: channel(v6, *group).1,
                    joined: sources(joined),
                    pruned: sources(pruned),
                    shared: 0,
                };
                let groups = entries.iter().take(wire::MAX_RECORDS).map(entry).collect();
                let upstream = match to % 4 {
                    0 if v6 => link_local([2, 0, 0, 0, 0, interface as u8]).into(),
                    0 => Ipv4Addr::new(10, 0, interface as u8, 250).into(),
                    number => router(v6, number),
                };
                Message::JoinPrune(JoinPrune { upstream, holdtime: *holdtime, groups })
            }
            What::Assert { channel: number, shared_tree, metric } => {
                let (source, group) = channel(v6, *number);
                let (preference, metric) = (metric.0 & 0x7fff_ffff, metric.1);
                Message::Assert(Assert { group, source, shared_tree: *shared_tree, preference, metric })
            }
            What::Members { channel: number, joined, any_source } => {
                let (source, group) = channel(v6, *number);
                if *joined && !any_source {
                    self.members.insert((source, group, interface));
                }
                let source = (!any_source).then_some(source);
                let membership = Membership { group, source, interface: Some(interface), joined: *joined };
                self.pim.handle(self.now, Port::Above(0), Item::Membership(membership));
                return self.settle(2);
            }
            What::Data { channel: number } => {
                let (source, group) = channel(v6, *number);
                let mut packet = Buffer::zeroed(8);
                ip::prepend(&mut packet, source, group, ip::UDP, 9, 0);
                return self.hear(packet, interface);
            }
            What::Bytes { is_message, kind, bytes } => {
                let mut packet = Buffer::copy_from(bytes);
                if *is_message {
                    packet.prepend(4).copy_from_slice(&[0x20 | kind & 0xf, 0, 0, 0]);
                    let to = wire::all_routers(ip::Version::of(from));
                    ip::prepend(&mut packet, from, to, wire::PROTOCOL, 1, 0);
                }
                mend(&mut packet);
                return self.hear(packet, interface);
            }
        };
        let mut packet = Buffer::default();
        wire::prepend(&mut packet, from, &message);
        let header = ip::parse(&packet).expect("a packet");
        assert_eq!(wire::parse(&packet, &header), Ok(message), "what is written is read");
        self.hear(packet, interface);
    }

    fn hear(&mut self, packet: Buffer, interface: u32) {
        // An entry of a list makes one upstream at most, and those are in few messages, with a Hello on each link.
        let allowed = packet.len() + 4 * CHANNELS * INTERFACES as usize;
        self.pim.handle(self.now, Port::Below(0), Item::Transit(Transit::arrived(packet, interface)));
        self.settle(allowed);
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(next) = self.pim.deadline().filter(|&next| next <= end) {
            assert!(next > self.now || self.now == Instant::ZERO, "a deadline lies ahead");
            self.now = next;
            self.pim.wake(next);
            self.settle(8 * CHANNELS * INTERFACES as usize);
        }
        self.now = end;
    }

    /// Looks at what is sent, which is no more than `allowed` messages.
    fn settle(&mut self, allowed: usize) {
        let mut sent = 0;
        while let Some((port, item)) = self.pim.poll(self.now) {
            let (Port::Below(0), Item::Transit(Transit { packet, ingress: None, .. })) = (port, item) else {
                panic!("messages of its own");
            };
            assert!(packet.len() <= MTU as usize);
            let header = ip::parse(&packet).expect("a packet");
            wire::parse(&packet, &header).expect("a message");
            sent += 1;
        }
        assert!(sent <= allowed + 2 * INTERFACES as usize, "{sent} of {allowed}");
        let mut counted = 0;
        self.pim.counters(&mut |name, value| counted += u64::from(name == "pim_wrong_items") * value);
        assert_eq!(counted, 0);
    }
}

fn router(v6: bool, number: u8) -> IpAddr {
    let last = number % 8 + 1;
    if v6 { Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last.into()).into() } else { [10, 0, 0, last].into() }
}

fn global(v6: bool, number: u8) -> IpAddr {
    if v6 { Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, number.into()).into() } else { [10, 0, 1, number].into() }
}

fn channel(v6: bool, number: u8) -> (IpAddr, IpAddr) {
    let (source, group) = (number % 16 + 1, number / 16);
    match v6 {
        false => ([10, 9, 0, source].into(), [232, 0, 1, group].into()),
        true => (
            Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, source.into()).into(),
            Ipv6Addr::new(0xff3e, 0, 0, 0, 0, 0, 0x8000, group.into()).into(),
        ),
    }
}
