//! Our bridge and the kernel's with filtering by VLANs, given the same frames: each leaves both by the same ports with
//! the same bytes.

#![allow(clippy::disallowed_methods)] // The guest keeps its own time.

#[path = "../../bridge/tests/common/mod.rs"]
mod frames;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use frames::{HOST, Tested, of_type, station, tagged};
use hopcast_bridge::bridge::{BridgePort, Config, VlanFiltering};
use hopcast_core::{Seed, Stream};
use hopcast_node::testing::{Requirement, require};
use hopcast_uml::{Guest, kernel};
use hopcast_wire::ethernet::{BROADCAST, Mac};
use hopcast_wire::vlan::{CUSTOMER, PROVIDER};

const PORTS: usize = 5;
/// The VLANs that ports may be in.
const VLANS: [u16; 4] = [1, 2, 100, 4094];
const NETWORKS: u64 = 12;
const FRAMES: u32 = 400;
/// The address of the kernel's bridge, and so of our host's port.
const BRIDGE: Mac = [2, 0xbb, 0, 0, 0, 1];
/// Maximum time for the last frames to come out, and for those to come that should not.
const PATIENCE: Duration = Duration::from_secs(5);
const QUIET: Duration = Duration::from_millis(50);

/// A frame that both were given, and the copies that left each, by port.
struct Offered {
    about: String,
    ours: Vec<(u32, Vec<u8>)>,
    kernels: Vec<(u32, Vec<u8>)>,
}

/// A bridge of random ports: our settings, and the commands that make the kernel's the same.
fn network(draw: &mut impl FnMut(u64) -> u64) -> (Config, String) {
    let protocol = if draw(2) == 0 { CUSTOMER } else { PROVIDER };
    let name = if protocol == CUSTOMER { "802.1Q" } else { "802.1ad" };
    let mut script = format!(
        "ip link add br0 address 02:bb:00:00:00:01 type bridge forward_delay 0 mcast_snooping 0 vlan_filtering 1 \
         vlan_protocol {name} vlan_default_pvid 0\nip link set br0 up\n"
    );
    let mut port = |number: usize| {
        let (device, own) =
            if number < PORTS { (format!("vec{number}"), "") } else { ("br0".to_owned(), "self") };
        if number < PORTS {
            let _ = writeln!(script, "ip link set {device} master br0 up");
        }
        let mut port = BridgePort::default();
        for vlan in VLANS {
            let form = draw(3);
            if form == 0 {
                continue;
            }
            let (list, untagged) =
                if form == 1 { (&mut port.tagged, "") } else { (&mut port.untagged, "untagged") };
            list.push(vlan);
            let native = port.native.is_none() && draw(2) == 0;
            port.native = if native { Some(vlan) } else { port.native };
            let native = if native { "pvid" } else { "" };
            let _ = writeln!(script, "bridge vlan add dev {device} vid {vlan} {native} {untagged} {own}");
        }
        port
    };
    let ports = (0..PORTS).map(&mut port).collect();
    let host = Some((port(PORTS), BRIDGE));
    let vlans = Some(VlanFiltering { protocol });
    (Config { ports, host, vlans, snooping: None, ..Config::default() }, script)
}

/// Any of what stations say to each other, with any tags and a number as its last bytes, and what it is.
fn traffic(draw: &mut impl FnMut(u64) -> u64, number: u32) -> (Vec<u8>, String) {
    let to = match draw(12) {
        0..=7 => station(draw(5) as u8 + 1),
        8 => BROADCAST,
        9 => BRIDGE,
        10 => [1, 0, 0x5e, 1, 1, 1],
        _ => [1, 0x80, 0xc2, 0, 0, draw(18) as u8],
    };
    let from = match draw(40) {
        0 => BRIDGE,
        1 => BROADCAST,
        2 => [0; 6],
        _ => station(draw(5) as u8 + 1),
    };
    let mut payload = vec![0; 60 + draw(60) as usize];
    payload.extend(number.to_be_bytes());
    let mut frame = of_type(to, from, 0x88b5, &payload);
    let mut about = format!("to {to:02x?} from {from:02x?}");
    for _ in 0..[0, 0, 1, 1, 1, 1, 2, 2, 3, 5][draw(10) as usize] {
        let kind = if draw(2) == 0 { CUSTOMER } else { PROVIDER };
        let vlan = [0, 1, 2, 100, 4094, 7, 4095, VLANS[draw(4) as usize]][draw(8) as usize];
        let priority = if draw(2) == 0 { 0 } else { draw(16) as u16 };
        frame = tagged(&frame, kind, priority << 12 | vlan);
        let _ = write!(about, ", in {kind:x} {vlan} of priority {priority}");
    }
    (frame, about)
}

/// Takes the copies that the kernel has sent until `done`, or until none comes within the time.
fn collect(
    guest: &Guest,
    offered: &mut BTreeMap<u32, Offered>,
    within: Duration,
    done: impl Fn(usize) -> bool,
) {
    let mut taken = 0;
    while !done(taken) {
        let Some((port, frame)) = guest.receive_any(within) else { return };
        let number = frame.last_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        // The kernel's own frames have no such number.
        if let Some(offered) = number.and_then(|number| offered.get_mut(&number)) {
            offered.kernels.push((port as u32, frame));
            taken += 1;
        }
    }
}

#[test]
fn frames_are_filtered_by_vlans_as_by_the_kernel() {
    if !require(&[Requirement::File("uml", &kernel())]) {
        return;
    }
    let mut guest = Guest::boot(PORTS);
    let mut stream: Stream = Seed::new(1, 0).stream(&["bridge", "vlans"], 0);
    let mut draw = move |below| stream.below(below);
    let (mut differences, mut spent, mut copies) = (String::new(), Duration::ZERO, 0);
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    for network_number in 0..NETWORKS {
        let (config, script) = network(&mut draw);
        guest.sh(&script);
        let mut ours = Tested::new(config);
        let mut offered = BTreeMap::new();
        let began = Instant::now();
        // No number is also that of what the kernel sends by itself.
        for number in (0..FRAMES).map(|number| 0x6f63_0000 + number) {
            let (frame, about) = traffic(&mut draw, number);
            let port = draw(PORTS as u64) as usize;
            let mut sent = ours.offer(port as u32, &frame);
            sent.retain(|(port, _)| *port != HOST);
            copies += sent.len();
            offered.insert(
                number,
                Offered { about: format!("{about}, at port {port}"), ours: sent, kernels: Vec::new() },
            );
            guest.send(port, &frame);
            collect(&guest, &mut offered, Duration::ZERO, |_| false);
        }
        let missing: usize = offered.values().map(|of| of.ours.len().saturating_sub(of.kernels.len())).sum();
        collect(&guest, &mut offered, PATIENCE, |taken| taken >= missing);
        spent += began.elapsed();
        collect(&guest, &mut offered, QUIET, |_| false);
        for mut frame in offered.into_values() {
            frame.ours.sort();
            frame.kernels.sort();
            if frame.ours != frame.kernels {
                let start = |sent: &[(u32, Vec<u8>)]| {
                    let starts = sent.iter().map(|(port, bytes)| format!("{port}: {:02x?}", &bytes[12..24]));
                    starts.collect::<Vec<_>>().join("; ")
                };
                let (own, other) = (start(&frame.ours), start(&frame.kernels));
                let _ = writeln!(
                    differences,
                    "network {network_number}, {}: ours [{own}], kernel [{other}]",
                    frame.about
                );
            }
        }
        for name in ["untagged_not_allowed_in", "vlan_not_allowed_in", "not_learned"] {
            *counted.entry(name).or_default() += ours.counter(name);
        }
        guest.sh("ip link del br0");
    }
    assert!(differences.is_empty(), "{differences}");
    assert!(copies > 2000 && counted.values().all(|&count| count > 20), "{copies} copies, {counted:?}");
    eprintln!("{} frames in {spent:?}, {copies} copies, {counted:?}", NETWORKS * u64::from(FRAMES));
}
