//! Frames a second that a bridge takes as a machine alone, beside a switch as one writes it in an hour: a `HashMap` of
//! addresses, without ageing, VLANs and snooping. One thread, no host and no link.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // this program measures, and the peer hashes as it likes

use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::time::Duration;

use hopcast_bridge::Bridge;
use hopcast_bridge::bridge::{BridgePort, Config, VlanFiltering};
use hopcast_core::{Buffer, Frame, Instant, Item, Machine, Port};
use hopcast_wire::ethernet::{self, Header, Mac};
use hopcast_wire::membership::{Query, Version, query_packet};
use hopcast_wire::vlan::{self, CUSTOMER, Tag};
use hopcast_wire::{igmp, ip, router_alert};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PORTS: u32 = 8;
/// Bytes of a frame without its header: a short packet, so that copying it costs little.
const PAYLOAD: usize = 50;
const BRIDGES: usize = 10_000;

fn main() {
    println!("{:44} {:>12} {:>12}", "", "frames/s", "copies/s");
    for stations in [1_000, 4_000, 16_000] {
        let frames = unicast(stations, None);
        measure(&format!("a HashMap of {stations} stations"), &mut Plain::default(), &frames);
        let mut bridge = Bridge::new(config());
        measure(&format!("the bridge, {stations} stations"), &mut bridge, &frames);
    }
    let ports = (1..=PORTS as u16).map(|own| BridgePort {
        tagged: (1..=16).filter(|&vlan| vlan != own).collect(),
        ..BridgePort::untagged(own)
    });
    let vlans = Some(VlanFiltering::default());
    let mut bridge = Bridge::new(Config { ports: ports.collect(), vlans, ..config() });
    measure("the bridge, 4000 stations in 16 VLANs", &mut bridge, &unicast(4_000, Some(16)));
    let mut bridge = Bridge::new(config());
    snooped(&mut bridge);
    measure("the bridge, groups to two of eight ports", &mut bridge, &[(0, group())]);
    let begun = std::time::Instant::now();
    let frames = &unicast(10, None)[..20];
    let mut bridges: Vec<Bridge> = (0..BRIDGES).map(|_| Bridge::new(config())).collect();
    for bridge in &mut bridges {
        for (port, frame) in frames {
            bridge.offer(*port, frame);
        }
    }
    let learned: usize = bridges.iter().map(Bridge::addresses).sum();
    let bytes = resident();
    println!("{BRIDGES} bridges have learned {learned} stations in {:.0?}, {bytes}", begun.elapsed());
}

/// Bytes of this process in memory, in words.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or_else(
        || "in an unknown amount of memory".to_owned(),
        |found| format!("{} resident", found.trim()),
    )
}

fn config() -> Config {
    Config { ports: vec![BridgePort::default(); PORTS as usize], ..Config::default() }
}

/// Something that forwards frames.
trait Switch {
    /// Takes a frame; the number of copies that it sends on.
    fn offer(&mut self, port: u32, frame: &[u8]) -> usize;
}

impl Switch for Bridge {
    fn offer(&mut self, port: u32, frame: &[u8]) -> usize {
        let frame = Frame::new(Buffer::copy_from(frame));
        self.handle(Instant::from_nanos(2_000_000_000), Port::Below(port), Item::Frame(frame));
        let mut copies = 0;
        while let Some((_, item)) = self.poll(Instant::from_nanos(2_000_000_000)) {
            if let Item::Frame(frame) = black_box(item) {
                frame.bytes.recycle();
            }
            copies += 1;
        }
        copies
    }
}

/// The switch of an hour.
#[derive(Default)]
struct Plain {
    stations: HashMap<Mac, u32>,
    out: VecDeque<(u32, Buffer)>,
}

impl Switch for Plain {
    fn offer(&mut self, port: u32, frame: &[u8]) -> usize {
        let frame = Buffer::copy_from(frame);
        let Ok(Header { destination, source, .. }) = ethernet::parse(&frame) else { return 0 };
        self.stations.insert(source, port);
        match self.stations.get(&destination) {
            Some(&to) if to == port => frame.recycle(),
            Some(&to) => self.out.push_back((to, frame)),
            None => {
                let others = (0..PORTS).filter(|&to| to != port);
                self.out.extend(others.map(|to| (to, frame.clone())));
            }
        }
        let mut copies = 0;
        while let Some((_, frame)) = black_box(self.out.pop_front()) {
            frame.recycle();
            copies += 1;
        }
        copies
    }
}

/// The address of a station; stations are spread over the ports.
fn station(number: usize) -> Mac {
    let [a, b, c, d] = (number as u32).wrapping_mul(2_654_435_761).to_be_bytes();
    [2, 0, a, b, c, d]
}

fn frame(to: Mac, from: Mac, ether_type: u16, payload: &[u8]) -> Buffer {
    let mut frame = Buffer::copy_from(payload);
    ethernet::prepend(&mut frame, Header { destination: to, source: from, ether_type });
    frame
}

/// From each station several frames to others, in no order; in VLANs with their tag.
fn unicast(stations: usize, vlans: Option<u16>) -> Vec<(u32, Buffer)> {
    let mut draw = 1_u64;
    let mut next = |below: usize| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draw >> 33) as usize % below
    };
    let all = (0..stations).chain((0..(4 * stations).max(40_000)).map(|_| next(stations)));
    let all: Vec<usize> = all.collect();
    let frames = all.into_iter().map(|from| {
        let group = vlans.map_or(1, usize::from);
        // Within its VLAN.
        let to = next(stations / group) * group + from % group;
        let mut bytes = frame(station(to), station(from), 0x88b5, &[0; PAYLOAD]);
        if vlans.is_some() {
            vlan::push(&mut bytes, Tag { kind: CUSTOMER, id: (from % group) as u16 + 1 });
        }
        ((from / group) as u32 % PORTS, bytes)
    });
    frames.collect()
}

const GROUP: [u8; 4] = [239, 1, 2, 3];

fn group() -> Buffer {
    let mut packet = Buffer::zeroed(PAYLOAD);
    ip::prepend(&mut packet, [10, 0, 0, 1].into(), GROUP.into(), ip::UDP, 8, 0);
    frame(ethernet::of_group(GROUP.into()), station(0), ethernet::IPV4, &packet)
}

/// Has the bridge hear a querier behind port 7, and a member of the group behind port 3.
fn snooped(bridge: &mut Bridge) {
    let query = Query {
        version: Version::V2,
        group: None,
        max_response: hopcast_core::Duration::from_secs(1),
        suppress: false,
        robustness: 0,
        interval: hopcast_core::Duration::ZERO,
    };
    let packet = query_packet([10, 0, 0, 9].into(), &query, &[]);
    let mut report = Buffer::default();
    igmp::prepend_older_report(&mut report, Version::V2, GROUP.into());
    router_alert::prepend_v4(&mut report, [10, 0, 0, 3].into(), GROUP.into());
    for (port, to, packet) in [(7, [224, 0, 0, 1], &packet), (3, GROUP, &report)] {
        let frame = frame(ethernet::of_group(to.into()), station(port), ethernet::IPV4, packet);
        bridge.handle(Instant::ZERO, Port::Below(port as u32), Item::Frame(Frame::new(frame)));
        while bridge.poll(Instant::ZERO).is_some() {}
    }
}

/// Offers the frames, again and again for a while, and says how many a second of processor time that was.
fn measure(name: &str, switch: &mut impl Switch, frames: &[(u32, Buffer)]) {
    let mut pass = || frames.iter().map(|(port, frame)| switch.offer(*port, frame)).sum::<usize>();
    // All stations are heard.
    pass();
    let (mut taken, mut copies, begun) = (0, 0, processor_time());
    while processor_time() - begun < Duration::from_secs(1) {
        let passes = (50_000 / frames.len()).max(1);
        copies += (0..passes).map(|_| pass()).sum::<usize>();
        taken += passes * frames.len();
    }
    let seconds = (processor_time() - begun).as_secs_f64();
    println!("{name:44} {:>12.0} {:>12.0}", taken as f64 / seconds, copies as f64 / seconds);
}

fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
