//! A node of B.A.T.M.A.N. V of ours between nodes of the kernel's: a chain of a kernel's node, another, ours, and a
//! third of the kernel's. They list each other with the same throughput, and ping through each other.

#![allow(clippy::disallowed_methods)] // The guest keeps its own time.

use std::time::Duration as Time;

use hopcast_core::{Buffer, Duration, Frame, Instant, Item, Machine, Port, Rate, Seed};
use hopcast_mesh::{BatmanVConfig, Mesh, MeshConfig, MeshInterface, RoutingConfig};
use hopcast_node::testing::{Requirement, require};
use hopcast_uml::{Guest, kernel};
use hopcast_wire::ethernet::Mac;

/// Interfaces and host of our node.
const OURS: [Mac; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
const HOST: Mac = [6, 0, 0, 0, 0, 1];
/// The kernel's nodes by the addresses of their first interfaces: the far one, the one at our first port, and the one
/// at our second.
const FAR: Mac = [2, 0, 0, 0, 1, 0];
const FIRST: Mac = [2, 0x75, 0x6d, 0x6c, 0, 0];
const SECOND: Mac = [2, 0x75, 0x6d, 0x6c, 0, 1];

/// Maximum number of seconds for which something is waited for.
const PATIENCE: u32 = 40;

/// Makes the kernel's nodes. Links of ours are of 30 and 80 Mbit/s as the kernel has it, and the one between the
/// kernel's own of 60.
const NODES: &str = "
    modprobe batman-adv; modprobe veth
    echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
    echo BATMAN_V >/sys/module/batman_adv/parameters/routing_algo
    ip netns add far; ip netns add second
    ip link add v0 type veth peer name v1 address 02:00:00:00:01:00
    ip link set v1 netns far; ip link set vec1 netns second
    node() {
        ip netns exec $1 true 2>/dev/null && in=\"ip netns exec $1\" || in=
        number=$2; shift 2
        $in ip link add bat0 address 06:00:00:00:01:0$number type batadv
        $in batctl meshif bat0 bl 0; $in batctl meshif bat0 dat 0
        while [ $# -gt 0 ]; do
            $in ip link set $1 up; $in ip link set $1 master bat0
            $in batctl hardif $1 throughput_override $2; shift 2
        done
        $in ip link set bat0 up; $in ip addr add 10.0.0.$number/24 dev bat0
        $in ip neigh add 10.0.0.9 lladdr 06:00:00:00:00:01 dev bat0
    }
    node here 2 vec0 30mbit v0 60mbit
    node far 1 v1 60mbit
    node second 3 vec1 80mbit";

/// Our node, and the time since it began.
struct Ours {
    mesh: Mesh,
    since: std::time::Instant,
    answered: u64,
}

impl Ours {
    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_nanos(self.since.elapsed().as_nanos() as u64)
    }

    /// Carries frames between the node and the guest for a time.
    fn run(&mut self, guest: &Guest, time: Time) {
        let end = std::time::Instant::now() + time;
        while let Some(left) = end.checked_duration_since(std::time::Instant::now()) {
            let now = self.now();
            let due = self.mesh.deadline().map_or(left, |at| Time::from_nanos(at.since(now).as_nanos()));
            match guest.receive_any(due.min(left)) {
                Some((port, frame)) => self.give(Port::Below(port as u32), &frame),
                None => self.mesh.wake(self.now()),
            }
            while let Some((port, item)) = self.mesh.poll(self.now()) {
                match (port, item) {
                    (Port::Below(port), Item::Frame(frame)) => guest.send(port as usize, &frame.bytes),
                    (Port::Above(0), Item::Frame(frame)) => {
                        if let Some(reply) = echo_reply(&frame.bytes) {
                            self.answered += 1;
                            self.give(Port::Above(0), &reply);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn give(&mut self, port: Port, frame: &[u8]) {
        self.mesh.handle(self.now(), port, Item::Frame(Frame::new(Buffer::copy_from(frame))));
    }

    /// Throughput of the path to each originator, in units of 100 kbit/s.
    fn originators(&self) -> Vec<(Mac, u32)> {
        self.mesh.originators().iter().map(|status| (status.originator, status.metric)).collect()
    }
}

/// The answer of our host to an echo request of IPv4.
fn echo_reply(frame: &[u8]) -> Option<Vec<u8>> {
    const TYPE: usize = 14 + 20;
    let is_request = frame.get(..6)? == HOST && frame.get(12..14)? == [8, 0] && *frame.get(23)? == 1;
    if !is_request || *frame.get(TYPE)? != 8 {
        return None;
    }
    let mut reply = frame.to_vec();
    reply[..6].copy_from_slice(&frame[6..12]);
    reply[6..12].copy_from_slice(&HOST);
    reply[26..30].copy_from_slice(&frame[30..34]);
    reply[30..34].copy_from_slice(&frame[26..30]);
    reply[TYPE] = 0;
    // The type has become 0, by as much as the checksum grows.
    let checksum = u16::from_be_bytes([reply[TYPE + 2], reply[TYPE + 3]]);
    let (sum, carry) = checksum.overflowing_add(0x0800);
    reply[TYPE + 2..TYPE + 4].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
    Some(reply)
}

#[test]
fn our_node_and_the_kernels_agree_on_throughput_and_carry_each_others_frames() {
    if !require(&[Requirement::File("uml", &kernel())]) {
        return;
    }
    let mut guest = Guest::boot(2);
    let interface = |number: usize, megabits| MeshInterface {
        mac: OURS[number],
        wireless: false,
        throughput: Some(Rate::from_mbit(megabits)),
    };
    let config = MeshConfig {
        bridge_loop_avoidance: false,
        ..MeshConfig::new(vec![interface(0, 40), interface(1, 20)], HOST)
    };
    let routing = RoutingConfig::BatmanV(BatmanVConfig::default());
    let random = Seed::new(1, 0).stream(&["node"], 0);
    let mut ours = Ours {
        mesh: Mesh::new(MeshConfig { routing, ..config }, random),
        since: std::time::Instant::now(),
        answered: 0,
    };
    guest.sh(NODES);
    // Until the far one is known, and then for as long as it takes that all know all.
    for _ in 0..PATIENCE {
        if ours.originators().len() == 3 {
            break;
        }
        ours.run(&guest, Time::from_secs(1));
    }
    ours.run(&guest, Time::from_secs(5));

    // Links of 40 and 20 Mbit/s from here; the first node takes 30 of 255 of the 60 to the far one: 529.
    assert_eq!(ours.originators(), [(FAR, 400), (FIRST, 400), (SECOND, 200)]);
    assert_eq!([ours.mesh.neighbours(0), ours.mesh.neighbours(1)], [[FIRST], [SECOND]]);
    assert_eq!(ours.mesh.throughput(1, SECOND), Some(200));
    let (us, far, first, second) =
        ("02:00:00:00:00:01", "02:00:00:00:01:00", "02:75:6d:6c:00:00", "02:75:6d:6c:00:01");
    let tables = guest.sh("for node in far here second; do
            in=; [ $node = here ] || in=\"ip netns exec $node\"
            for table in n o; do $in batctl meshif bat0 $table -H | sed \"s/^/$node $table /\"; done
        done");
    // Our node by its address at each port, and as an originator by that of the first.
    for (which, address, throughput) in [
        ("here n", us, "30.0"),
        ("here o", us, "30.0"),
        ("second n", "02:00:00:00:00:02", "80.0"),
        ("second o", us, "80.0"),
        // 300 * 225 / 255 = 264, and 200 * 225 / 255 = 176, which is less than the 529 beyond.
        ("far o", us, "26.4"),
        ("here o", second, "17.6"),
        ("far o", second, "15.5"),
        // 400 * 225 / 255 = 352.
        ("second o", first, "35.2"),
        ("second o", far, "35.2"),
    ] {
        // The best path is marked by a star.
        let starts = [format!("{which} {address} "), format!("{which}  * {address} ")];
        let line = tables.lines().find(|line| starts.iter().any(|start| line.starts_with(start)));
        let agrees = line.is_some_and(|line| line.contains(&format!(" {throughput})")));
        assert!(agrees, "{which} {address}: {throughput}\n{tables}");
    }

    // Through our node, over three hops, and to our host, over two; short, long in fragments, and the mesh's own.
    guest.sh("(ip netns exec far ping -c 10 -i 0.2 -W 1 10.0.0.3
        ip netns exec far ping -c 10 -i 0.2 -s 1472 -W 1 10.0.0.3
        ip netns exec far ping -c 10 -i 0.2 -W 1 10.0.0.9
        ip netns exec far batctl meshif bat0 ping -c 5 -i 1 02:00:00:00:00:01
        ip netns exec far batctl meshif bat0 ping -c 5 -i 1 02:75:6d:6c:00:01) >/tmp/pings 2>&1 &");
    let mut pings = String::new();
    for _ in 0..PATIENCE {
        ours.run(&guest, Time::from_secs(1));
        pings = guest.sh("cat /tmp/pings");
        if pings.matches("packets transmitted").count() == 5 {
            break;
        }
    }
    assert_eq!(pings.matches(" 0% packet loss").count(), 5, "{pings}");
    assert_eq!(ours.answered, 10);
}
