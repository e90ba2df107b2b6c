//! Our bridge and the kernel's with filtering by VLANs, given the same frames: each leaves both by the same ports with
//! the same bytes.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // in what the tests share; the guest keeps its own time

#[path = "../../../bridge/tests/common/mod.rs"]
mod frames;
mod snooping;
mod vlans;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use frames::{HOST, Tested};
use hopcast_bridge::bridge::{BridgePort, Config, RouterPort, Snooping, VlanFiltering};
use hopcast_core::{Seed, Stream};
use hopcast_node::testing::{Requirement, require};
use hopcast_uml::{Guest, kernel};
use hopcast_wire::ethernet::Mac;
use hopcast_wire::vlan::{CUSTOMER, PROVIDER};

const PORTS: usize = 5;
/// The VLANs that ports may be in.
const VLANS: [u16; 4] = [1, 2, 100, 4094];
/// The address of the kernel's bridge, and so of our host's port.
const BRIDGE: Mac = [2, 0xbb, 0, 0, 0, 1];
/// Maximum time for the last frames to come out, and for those to come that should not.
const PATIENCE: Duration = Duration::from_secs(5);
const QUIET: Duration = Duration::from_millis(50);
/// Time after which the kernel's timers of a new VLAN have run. Until then it takes itself for a querier of IPv6 whose
/// address is lower than any, and does not listen to others.
const BEGUN: Duration = Duration::from_millis(200);
/// The number of the first frame, which is unlike the end of what the kernel sends by itself.
const FIRST: u32 = 0x6f63_0000;

/// Whether the guest can be started; says so if not.
fn possible() -> bool {
    require(&[Requirement::File("uml", &kernel())])
}

/// Random numbers below the given one.
fn draws(name: &str) -> impl FnMut(u64) -> u64 {
    let mut stream: Stream = Seed::new(1, 0).stream(&["bridge", name], 0);
    move |below| stream.below(below)
}

/// A bridge of random ports: our settings, and the commands that make the kernel's the same.
fn network(draw: &mut impl FnMut(u64) -> u64, snooping: Option<Snooping>) -> (Config, String) {
    let protocol = if draw(2) == 0 { CUSTOMER } else { PROVIDER };
    let name = if protocol == CUSTOMER { "802.1Q" } else { "802.1ad" };
    // Without addresses the kernel says nothing by itself.
    let mut script = "for scope in all default; do
            [ ! -d /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/$scope/disable_ipv6
        done\n"
        .to_owned();
    let options = if snooping.is_some() { "mcast_vlan_snooping 1" } else { "mcast_snooping 0" };
    let _ = writeln!(
        script,
        "ip link add br0 address 02:bb:00:00:00:01 type bridge forward_delay 0 vlan_filtering 1 \
         vlan_protocol {name} vlan_default_pvid 0 {options}\nip link set br0 up"
    );
    let mut port = |number: usize| {
        let (device, own) =
            if number < PORTS { (format!("vec{number}"), "") } else { ("br0".to_owned(), "self") };
        if number < PORTS {
            let _ = writeln!(script, "ip link set {device} master br0 up");
        }
        let mut port = BridgePort::default();
        if snooping.is_some() && number < PORTS {
            port.router = match draw(8) {
                0 => RouterPort::Always,
                1 => RouterPort::Never,
                _ => RouterPort::Heard,
            };
        }
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
            let router = match port.router {
                RouterPort::Heard => continue,
                RouterPort::Always => 2,
                RouterPort::Never => 0,
            };
            let _ = writeln!(script, "bridge vlan set dev {device} vid {vlan} mcast_router {router}");
        }
        port
    };
    let ports = (0..PORTS).map(&mut port).collect();
    let host = Some((port(PORTS), BRIDGE));
    (Config { ports, host, vlans: Some(VlanFiltering { protocol }), snooping, ..Config::default() }, script)
}

/// Both bridges, with the same ports.
struct Both {
    guest: Guest,
    ours: Tested,
    began: Instant,
    /// Frames that both were given since they were last compared, by their numbers.
    offered: BTreeMap<u32, Offered>,
    next: u32,
    /// Number of copies that ours has sent.
    copies: usize,
    differences: String,
}

/// A frame that both were given, and the copies that left each, by port.
struct Offered {
    about: String,
    ours: Vec<(u32, Vec<u8>)>,
    kernels: Vec<(u32, Vec<u8>)>,
}

impl Both {
    /// In this guest, which has run the script.
    fn new(mut guest: Guest, config: Config, script: &str) -> Self {
        guest.sh(script);
        thread::sleep(BEGUN);
        Self {
            guest,
            ours: Tested::new(config),
            began: Instant::now(),
            offered: BTreeMap::new(),
            next: FIRST,
            copies: 0,
            differences: String::new(),
        }
    }

    /// Gives both a frame, with a number put behind it: a packet in it has its own length.
    fn offer(&mut self, port: usize, mut frame: Vec<u8>, about: &str) {
        frame.extend(self.next.to_be_bytes());
        self.ours.now = hopcast_core::Instant::from_nanos(self.began.elapsed().as_nanos() as u64);
        let mut ours = self.ours.offer(port as u32, &frame);
        ours.retain(|(port, _)| *port != HOST);
        self.copies += ours.len();
        let about = format!("{about}, at port {port}");
        self.offered.insert(self.next, Offered { about, ours, kernels: Vec::new() });
        self.next += 1;
        self.guest.send(port, &frame);
        self.collect(Duration::ZERO, |_| false);
    }

    /// Waits for the copies that are missing, and for those that should not come, and notes the frames that did not
    /// leave both alike.
    fn compare(&mut self) {
        let missing = |of: &Offered| of.ours.len().saturating_sub(of.kernels.len());
        let missing: usize = self.offered.values().map(missing).sum();
        self.collect(PATIENCE, |taken| taken >= missing);
        self.collect(QUIET, |_| false);
        for mut frame in std::mem::take(&mut self.offered).into_values() {
            frame.ours.sort();
            frame.kernels.sort();
            if frame.ours != frame.kernels {
                let start = |sent: &[(u32, Vec<u8>)]| {
                    let starts = sent.iter().map(|(port, bytes)| format!("{port}: {:02x?}", &bytes[12..24]));
                    starts.collect::<Vec<_>>().join("; ")
                };
                let (own, other) = (start(&frame.ours), start(&frame.kernels));
                let _ = writeln!(self.differences, "{}: ours [{own}], kernel [{other}]", frame.about);
            }
        }
    }

    /// Takes the copies that the kernel has sent until `done`, or until none comes within the time.
    fn collect(&mut self, within: Duration, done: impl Fn(usize) -> bool) {
        let mut taken = 0;
        while !done(taken) {
            let Some((port, frame)) = self.guest.receive_any(within) else { return };
            let number = frame.last_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            // The kernel's own frames have no such number.
            if let Some(offered) = number.and_then(|number| self.offered.get_mut(&number)) {
                offered.kernels.push((port as u32, frame));
                taken += 1;
            }
        }
    }

    /// Removes the kernel's bridge; the guest, for another.
    fn end(mut self) -> Guest {
        self.guest.sh("ip link del br0");
        self.guest
    }
}
