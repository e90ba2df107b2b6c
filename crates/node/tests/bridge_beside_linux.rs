//! Our bridge and the kernel's, with its defaults, given the same frames: each frame leaves both by the same ports.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // in what the tests share; the kernel keeps its own time

mod common;
#[path = "../../bridge/tests/common/mod.rs"]
mod frames;

use std::fmt::Write;
use std::io::ErrorKind;
use std::thread;
use std::time::{Duration as Span, Instant as Moment};

use common::Namespace;
use frames::{HOST, Tested, frame, leave, query, report, station, tagged, to_group};
use hopcast_bridge::bridge::{BridgePort, Config, Snooping};
use hopcast_core::{Buffer, Duration, Instant, Machine, Seed};
use hopcast_node::testing::{Requirement, require};
use hopcast_wire::ethernet::{BROADCAST, Mac};
use hopcast_wire::ip;
use hopcast_wire::membership::Version;
use hopcast_wire::vlan::{CUSTOMER, PROVIDER};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

const NEEDS: [Requirement<'_>; 3] = [Requirement::Root, Requirement::Tun, Requirement::Program("ip")];
const PORTS: u32 = 4;
/// The address of the kernel's bridge, and so of our host's port.
const BRIDGE: Mac = [2, 0xbb, 0, 0, 0, 1];
/// That address as a sender, and the type of IPv4, which nothing else from there has.
const IGMP_OF_HOST: [u8; 8] = [2, 0xbb, 0, 0, 0, 1, 8, 0];
/// Maximum time until the kernel has sent a frame on. Chosen: it does so at once, on the thread that writes, unless
/// that is interrupted.
const PATIENCE: Span = Span::from_millis(300);
/// Time given to queriers for hosts to answer, and to others' members after a query for their group.
const TENTH: Duration = Duration::from_millis(100);
const ROUTERS: [u8; 2] = [7, 8];
const GROUPS: [&str; 5] = ["239.1.1.1", "239.1.1.2", "224.0.0.251", "ff15::5", "ff02::1:ff00:7"];

/// Both bridges, each with the same ports.
struct Both {
    ours: Tested,
    taps: Vec<SyncDevice>,
    began: Moment,
    differences: String,
    _namespace: Namespace,
}

impl Both {
    /// In a namespace of this name, with these options of the kernel's bridge, which those of ours are to agree with.
    fn new(name: &str, options: &str, config: Config) -> Self {
        let namespace = Namespace::new(name);
        // Nothing is to speak but the bridge itself.
        for scope in ["all", "default"] {
            namespace.sh(&format!("sysctl -qw net.ipv6.conf.{scope}.disable_ipv6=1"));
        }
        let [a, b, c, d, e, f] = BRIDGE;
        let mac = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
        namespace.sh(&format!("ip link add br0 address {mac} type bridge forward_delay 0 {options}"));
        namespace.sh("ip link set br0 up");
        let taps = namespace.run(|| (0..PORTS).map(tap).collect::<Vec<_>>());
        for port in 0..PORTS {
            namespace.sh(&format!("ip link set p{port} master br0 up"));
        }
        thread::sleep(Span::from_millis(50));
        let ours = Tested::new(config);
        let both =
            Self { ours, taps, began: Moment::now(), differences: String::new(), _namespace: namespace };
        both.kernel(Span::ZERO, 0);
        both
    }

    /// Gives both a frame, and notes where they do not send the same on.
    fn offer(&mut self, port: u32, frame: &[u8], about: &str) {
        self.ours.now = Instant::from_nanos(self.began.elapsed().as_nanos() as u64);
        self.ours.bridge.wake(self.ours.now);
        let mut ours = self.ours.offer(port, frame);
        ours.retain(|(port, _)| *port != HOST);
        self.taps[port as usize].send(frame).unwrap();
        let mut kernel = self.kernel(PATIENCE, ours.len());
        kernel.sort();
        ours.sort();
        if ours != kernel {
            let ports = |sent: &[(u32, Vec<u8>)]| sent.iter().map(|(port, _)| *port).collect::<Vec<_>>();
            let (own, other) = (ports(&ours), ports(&kernel));
            let _ = writeln!(self.differences, "{about} from port {port}: ours {own:?}, kernel {other:?}");
        }
    }

    /// What the kernel has sent by its ports: at least `expected` frames, if they come in time, and all that are there.
    fn kernel(&self, patience: Span, expected: usize) -> Vec<(u32, Vec<u8>)> {
        let (mut sent, until) = (Vec::new(), Moment::now() + patience);
        let mut bytes = vec![0; 2048];
        loop {
            for (port, tap) in (0..).zip(&self.taps) {
                loop {
                    match tap.recv(&mut bytes) {
                        // What the kernel's host says for itself is no copy: that it joins groups.
                        Ok(len) if bytes[6..14] == IGMP_OF_HOST => assert!(len > 14),
                        Ok(len) => sent.push((port, bytes[..len].to_vec())),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            if sent.len() >= expected || Moment::now() >= until {
                return sent;
            }
            thread::sleep(Span::from_micros(200));
        }
    }

    fn agree(self) {
        assert!(self.differences.is_empty(), "{}", self.differences);
    }
}

fn tap(number: u32) -> SyncDevice {
    let builder = DeviceBuilder::new().name(format!("p{number}")).layer(Layer::L2).offload(false);
    let device = builder.packet_information(false).inherit_enable_state().build_sync().unwrap();
    device.set_nonblocking(true).unwrap();
    device
}

fn config(snooping: Option<Snooping>) -> Config {
    let ports = vec![BridgePort::default(); PORTS as usize];
    Config { ports, host: Some((BridgePort::default(), BRIDGE)), snooping, ..Config::default() }
}

/// Any of what stations say to each other, and what it is.
fn traffic(draw: &mut impl FnMut(u64) -> u64) -> (Vec<u8>, String) {
    let from = station(draw(6) as u8 + 1);
    let to = match draw(10) {
        0..=5 => station(draw(6) as u8 + 1),
        6..=7 => BROADCAST,
        8 => BRIDGE,
        _ => [1, 0x80, 0xc2, 0, 0, draw(18) as u8],
    };
    let from = match draw(40) {
        0 => BRIDGE,
        1 => BROADCAST,
        2 => [0; 6],
        _ => from,
    };
    let about = format!("a frame to {to:x?} from {from:x?}");
    let bare = frame(to, from);
    match draw(4) {
        0 => (tagged(&bare, CUSTOMER, 7), format!("{about} in a VLAN")),
        1 => (tagged(&tagged(&bare, CUSTOMER, 7), PROVIDER, 9), format!("{about} in two VLANs")),
        _ => (bare, about),
    }
}

/// Any of what stations say to groups, and what it is; no leaves, and no queries.
fn group_traffic(draw: &mut impl FnMut(u64) -> u64) -> (Vec<u8>, String) {
    let (from, group) = (station(draw(6) as u8 + 1), GROUPS[draw(5) as usize]);
    let (frame, about) = match draw(12) {
        0..=5 => (to_group(group, from), "a packet"),
        6 => (report(group, Version::V1, from), "a report of version 1"),
        7 => (report(group, Version::V2, from), "a report of version 2"),
        8 => (report(group, Version::V3, from), "a report of version 3"),
        9 => {
            let mut cut = report(group, Version::V2, from);
            cut.truncate(cut.len() - 3);
            (cut, "a report that is cut off")
        }
        10 => {
            let mut wrong = report(group, Version::V2, from);
            *wrong.last_mut().unwrap() ^= 1;
            (wrong, "a report of a wrong checksum")
        }
        _ => (frame([1, 0, 0x5e, 1, 1, 1], from), "a frame that is no packet"),
    };
    let about = format!("{about} to {group} from {}", from[5]);
    if draw(8) == 0 { (tagged(&frame, CUSTOMER, 7), format!("{about} in a VLAN")) } else { (frame, about) }
}

fn draws(name: &str) -> impl FnMut(u64) -> u64 {
    let mut stream = Seed::new(1, 0).stream(&["bridge", name], 0);
    move |below| stream.below(below)
}

#[test]
fn stations_are_learned_and_frames_forwarded_as_by_the_kernel() {
    if !require(&NEEDS) {
        return;
    }
    let (mut both, mut draw) = (Both::new("learning", "mcast_snooping 0", config(None)), draws("learning"));
    for _ in 0..3000 {
        let (frame, about) = traffic(&mut draw);
        both.offer(draw(u64::from(PORTS)) as u32, &frame, &about);
    }
    assert!(both.ours.counter("addresses_moved") > 100);
    both.agree();
}

#[test]
fn stations_that_are_quiet_are_forgotten_as_by_the_kernel() {
    if !require(&NEEDS) {
        return;
    }
    let ageing = Duration::from_secs(1);
    let mut both = Both::new("ageing", "mcast_snooping 0 ageing_time 100", Config { ageing, ..config(None) });
    both.offer(0, &frame(BROADCAST, station(1)), "the first frame");
    thread::sleep(Span::from_millis(500));
    both.offer(1, &frame(station(1), station(2)), "a frame to a station that was heard");
    thread::sleep(Span::from_millis(2500));
    both.offer(1, &frame(station(1), station(2)), "a frame to a station that was heard long ago");
    assert_eq!(both.ours.counter("not_learned"), 1);
    both.agree();
}

#[test]
fn groups_are_snooped_as_by_the_kernel() {
    if !require(&NEEDS) {
        return;
    }
    let snooping = Some(Snooping::default());
    let (mut both, mut draw) = (Both::new("snooping", "", config(snooping)), draws("snooping"));
    let some = |both: &mut Both, draw: &mut dyn FnMut(u64) -> u64, count| {
        for _ in 0..count {
            let (frame, about) = group_traffic(&mut |below| draw(below));
            both.offer(draw(u64::from(PORTS)) as u32, &frame, &about);
        }
    };
    // Without a querier, with one of IPv4, and with one of either.
    some(&mut both, &mut draw, 300);
    for address in ["10.0.0.9", "fe80::9"] {
        both.offer(3, &query(address, None, TENTH, station(ROUTERS[0])), "a query");
        some(&mut both, &mut draw, 3);
        thread::sleep(Span::from_millis(200));
        some(&mut both, &mut draw, 500);
    }
    // A leave is for the querier, whose query for the group ends memberships that nobody reports again.
    for group in ["239.1.1.1", "ff15::5"] {
        for port in 0..3 {
            both.offer(port, &report(group, Version::V2, station(1)), "a report");
        }
        both.offer(0, &leave(group, station(1)), "a leave");
        both.offer(1, &to_group(group, station(2)), "a packet after a leave");
        let address = if group.contains(':') { "fe80::9" } else { "10.0.0.9" };
        both.offer(3, &query(address, Some(group), TENTH, station(ROUTERS[0])), "a query for a group");
        both.offer(2, &report(group, Version::V2, station(3)), "a report after a query for its group");
        thread::sleep(Span::from_millis(500));
        both.offer(1, &to_group(group, station(2)), "a packet after a query for its group");
    }
    some(&mut both, &mut draw, 200);
    // Queries from a higher address make no router's port, and those from a lower one do; so do Hellos of PIM.
    for (port, address) in
        [(0, "10.0.0.99"), (1, "10.0.0.1"), (0, "fe80::99"), (1, "fe80::1"), (2, "0.0.0.0")]
    {
        both.offer(port, &query(address, None, TENTH, station(ROUTERS[1])), "another's query");
        for group in ["239.1.1.77", "ff15::77"] {
            both.offer(3, &to_group(group, station(2)), "a packet to a group of nobody");
        }
    }
    let mut hello = Buffer::copy_from(&[0x20, 0, 0, 0]);
    ip::prepend(&mut hello, [10, 0, 0, 7].into(), [224, 0, 0, 13].into(), 103, 1, 0);
    both.offer(0, &frames::around(&hello, station(ROUTERS[1])), "a Hello of PIM");
    both.offer(3, &to_group("239.1.1.77", station(2)), "a packet to a group of nobody");
    both.agree();
}
