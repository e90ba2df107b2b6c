//! One mesh of our nodes and the kernel's, in real time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time;

use hopcast_core::{Buffer, Duration, Frame, Instant, Item, Machine, Port, Seed};
use hopcast_mesh::{BatmanIvConfig, Key, Mesh, MeshConfig, RoutingConfig};
use hopcast_uml::Guest;
use hopcast_wire::ethernet::{self, Mac};

use crate::host::{Host, address};
use crate::lan::{Lan, Place};
use crate::topology::{Topology, text};

/// Interval of originator messages, in milliseconds: shorter than the default, so that routes and tables are there
/// within seconds.
const INTERVAL: u64 = 200;
/// Maximum time until both have found what they should. Chosen: ten times what it takes; machines may do much else.
const PATIENCE: time::Duration = time::Duration::from_secs(50);
/// Type of a multicast packet.
const MULTICAST: u8 = 5;
/// Time for which a turn waits for a frame.
const TURN: time::Duration = time::Duration::from_millis(2);

/// A mesh in which every node of ours has only nodes of the kernel's next to it.
pub(crate) struct Live {
    pub(crate) topology: Topology,
    pub(crate) guest: Guest,
    pub(crate) ours: Ours,
}

/// Our nodes, by their number, and the guest's port behind each of their interfaces.
pub(crate) struct Ours {
    began: time::Instant,
    configure: fn(usize, &mut MeshConfig),
    pub(crate) nodes: BTreeMap<usize, Node>,
    /// The LAN that the interface above a node of ours is bridged to.
    pub(crate) lan: Option<Lan>,
    /// The multicast packets of the mesh that our nodes sent and received.
    pub(crate) multicast: Vec<Passed>,
}

/// A packet that a node of ours sent or received.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    pub(crate) node: usize,
    pub(crate) sent: bool,
    /// The packet, without the Ethernet header.
    pub(crate) packet: Vec<u8>,
}

pub(crate) struct Node {
    pub(crate) mesh: Mesh,
    pub(crate) host: Host,
    ports: Vec<usize>,
}

/// The clients that one node has, or that another has of it: the version of the table, and for each VLAN the checksum
/// and the clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    version: u8,
    vlans: BTreeMap<u16, (u32, BTreeSet<Mac>)>,
}

impl Live {
    /// The mesh of this shape in which these nodes are ours, with these changes of their settings.
    pub(crate) fn new(topology: Topology, ours: &[usize], configure: fn(usize, &mut MeshConfig)) -> Self {
        Self::with_lan(topology, ours, configure, None)
    }

    /// The same with a LAN that a node of ours and one of the kernel's are on, where it is the device `lan`.
    pub(crate) fn with_lan(
        topology: Topology,
        ours: &[usize],
        configure: fn(usize, &mut MeshConfig),
        lan: Option<(usize, usize)>,
    ) -> Self {
        let links = topology.links.iter().filter(|(a, b)| ours.contains(a) || ours.contains(b));
        let links = links.count();
        let guest = Guest::boot(links + usize::from(lan.is_some()));
        let (began, nodes, multicast) = (time::Instant::now(), BTreeMap::new(), Vec::new());
        let on_lan = lan.map(|(own, _)| Lan::new(own, links));
        let ours_state = Ours { began, configure, nodes, lan: on_lan, multicast };
        let mut live = Self { topology, guest, ours: ours_state };
        let mut script =
            String::from("modprobe batman-adv; modprobe veth; modprobe 8021q; modprobe macvlan\n");
        let kernels: Vec<usize> = (0..live.topology.nodes).filter(|node| !ours.contains(node)).collect();
        for node in &kernels {
            let _ = writeln!(script, "ip netns add k{node}");
            let disable = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6";
            let _ = writeln!(script, "ip netns exec k{node} sh -c '{disable}'");
        }
        let mut ports: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for &(a, b) in &live.topology.links {
            let (device, other) = (live.topology.device(a, b), live.topology.device(b, a));
            match (ours.contains(&a), ours.contains(&b)) {
                (false, false) => {
                    let _ = writeln!(
                        script,
                        "ip link add {device} netns k{a} type veth peer name {other} netns k{b}"
                    );
                }
                (true, true) => {
                    panic!("two nodes of ours, {a} and {b}, with nothing of the kernel's between them")
                }
                (ours_first, _) => {
                    let (own, kernels, device) = if ours_first { (a, b, other) } else { (b, a, device) };
                    let port = ports.len();
                    ports.insert((own, kernels), port);
                    let _ = writeln!(script, "ip link set vec{port} netns k{kernels} name {device}");
                }
            }
        }
        if let Some((_, kernels)) = lan {
            let _ = writeln!(script, "modprobe bridge; ip link set vec{links} netns k{kernels} name lan");
            let _ = writeln!(script, "ip -n k{kernels} link set lan up");
        }
        // All are up before our nodes send: the kernel's driver takes no frames that came before.
        for &node in &kernels {
            for (interface, peer) in live.topology.peers(node).enumerate() {
                let (device, mac) =
                    (live.topology.device(node, peer), text(live.topology.mac(node, interface)));
                let _ = writeln!(script, "ip -n k{node} link set {device} address {mac} mtu 1500");
                let _ = writeln!(script, "ip -n k{node} link set {device} up");
            }
        }
        live.guest.sh(&script);
        for &node in ours {
            let ports = live.topology.peers(node).map(|peer| ports[&(node, peer)]).collect();
            let mesh = live.ours.mesh(&live.topology, node);
            let host = Host::new(live.topology.host(node), node as u8 + 1);
            live.ours.nodes.insert(node, Node { mesh, host, ports });
        }
        kernels.into_iter().for_each(|node| live.start(node));
        live
    }

    /// Starts a node of the kernel's. Its host has an address, and one in each of two VLANs.
    pub(crate) fn start(&mut self, node: usize) {
        let host = self.topology.host(node);
        let mut script = format!(
            "ip link add bat0 address {} type batadv
            batctl meshif bat0 bl 0; batctl meshif bat0 dat 0
            batctl meshif bat0 orig_interval {INTERVAL}\n",
            text(host)
        );
        for peer in self.topology.peers(node) {
            let _ = writeln!(script, "ip link set {} master bat0", self.topology.device(node, peer));
        }
        let _ =
            writeln!(script, "ip link set bat0 up; ip addr add {}/24 dev bat0", address(0, node as u8 + 1));
        for vlan in [7, 100] {
            let address = address(vlan, node as u8 + 1);
            let _ = writeln!(script, "ip link add link bat0 name bat0.{vlan} type vlan id {vlan}");
            let _ = writeln!(script, "ip link set bat0.{vlan} up; ip addr add {address}/24 dev bat0.{vlan}");
        }
        self.at(node, &script);
    }

    /// Puts a new node, which knows nothing, in the place of one of ours.
    pub(crate) fn restart(&mut self, node: usize) {
        let mesh = self.ours.mesh(&self.topology, node);
        self.ours.nodes.get_mut(&node).unwrap().mesh = mesh;
    }

    /// Runs a script of the guest's shell, while our nodes go on.
    pub(crate) fn try_sh(&mut self, script: &str) -> Result<String, String> {
        let Self { guest, ours, .. } = self;
        guest.try_sh_while(script, |guest| ours.turn(guest))
    }

    pub(crate) fn sh(&mut self, script: &str) -> String {
        self.try_sh(script).unwrap_or_else(|errors| panic!("{script}\n{errors}"))
    }

    /// Runs a script at one of the kernel's nodes.
    pub(crate) fn at(&mut self, node: usize, script: &str) -> String {
        self.sh(&format!("ip netns exec k{node} sh -e <<'end'\n{script}\nend"))
    }

    /// Runs a script at one of the kernel's nodes, which may fail.
    pub(crate) fn try_at(&mut self, node: usize, script: &str) -> Result<String, String> {
        self.try_sh(&format!("ip netns exec k{node} sh -e <<'end'\n{script}\nend"))
    }

    /// Lets time pass until there are no complaints.
    pub(crate) fn until<T>(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> Result<T, String>) -> T {
        let end = time::Instant::now() + PATIENCE;
        loop {
            match done(self) {
                Ok(value) => return value,
                Err(complaint) if time::Instant::now() > end => panic!("{what}: {complaint}"),
                Err(_) => (0..20).for_each(|_| self.ours.turn(&self.guest)),
            }
        }
    }

    pub(crate) fn kernels(&self) -> Vec<usize> {
        (0..self.topology.nodes).filter(|node| !self.ours.nodes.contains_key(node)).collect()
    }

    /// Sends echo requests from the host of one of our nodes to another node's, until this many bytes have come back.
    pub(crate) fn ping(&mut self, from: usize, vlan: u8, to: usize, len: usize) {
        let target = (self.topology.host(to), to as u8 + 1);
        let (mut sequence, mut turns) = (0, 0);
        self.until(&format!("{from} pings {to} in VLAN {vlan}"), |live| {
            let node = live.ours.nodes.get_mut(&from).unwrap();
            let replied = |(in_vlan, address, _, body): &(u8, std::net::IpAddr, u16, usize)| {
                (*in_vlan, *address, *body) == (vlan, crate::host::address(vlan, target.1).into(), len)
            };
            if node.host.replies.iter().any(replied) {
                return Ok(());
            }
            if turns % 10 == 0 {
                sequence += 1;
                let request = node.host.echo_request(vlan, target, sequence, len);
                live.ours.send(from, request, &live.guest);
            }
            turns += 1;
            Err(format!("no reply to {sequence} requests"))
        });
        self.ours.nodes.get_mut(&from).unwrap().host.replies.clear();
    }

    /// Has one of the kernel's hosts send echo requests to another node's, until five in a row have come back.
    pub(crate) fn ping_from(&mut self, from: usize, vlan: u8, to: usize, len: usize) {
        let address = address(vlan, to as u8 + 1);
        self.until(&format!("{from} pings {to} in VLAN {vlan}"), |live| {
            let output = live.try_at(from, &format!("ping -q -c 5 -i 0.1 -W 1 -s {len} {address}"))?;
            output.contains("5 packets received").then_some(()).ok_or(output)
        });
    }

    /// The table of each of the kernel's nodes, and what it has of others'.
    pub(crate) fn tables(&mut self) -> BTreeMap<usize, BTreeMap<usize, Table>> {
        let kernels = self.kernels();
        let script: String = kernels
            .iter()
            .map(|node| format!("echo node {node}\nip netns exec k{node} batctl meshif bat0 tl -n\nip netns exec k{node} batctl meshif bat0 tg -n\n"))
            .collect();
        let output = self.sh(&script);
        let mut tables: BTreeMap<usize, BTreeMap<usize, Table>> = BTreeMap::new();
        let mut node = 0;
        for line in output.lines() {
            if let Some(number) = line.strip_prefix("node ") {
                node = number.parse().unwrap();
            } else if let Some((_, version)) = line.split_once("TTVN: ") {
                let version = version.trim_end_matches(']').parse().unwrap();
                tables.entry(node).or_default().entry(node).or_default().version = version;
            } else if let Some((of, client, vlan, version, crc)) = self.row(node, line) {
                let table = tables.entry(node).or_default().entry(of).or_default();
                table.version = version.unwrap_or(table.version);
                let entry = table.vlans.entry(vlan).or_default();
                entry.0 = crc;
                entry.1.insert(client);
            }
        }
        tables
    }

    /// A client in a table: its node, its address, its VLAN, the version of another's table, and the checksum.
    fn row(&self, node: usize, line: &str) -> Option<(usize, Mac, u16, Option<u8>, u32)> {
        let words: String = line.chars().map(|c| if "()[]*".contains(c) { ' ' } else { c }).collect();
        let words: Vec<&str> = words.split_whitespace().collect();
        let vlan = |text: &str| match text.parse::<i16>().ok()? {
            -1 => Some(0),
            id => Some(id as u16 | 0x8000),
        };
        let crc = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        match words[..] {
            [client, id, _, _, of, version, sum] => {
                let of = self.topology.node(mac(of)?)?;
                Some((of, mac(client)?, vlan(id)?, Some(version.parse().ok()?), crc(sum)?))
            }
            [client, id, _, _, sum] => Some((node, mac(client)?, vlan(id)?, None, crc(sum)?)),
            _ => None,
        }
    }

    /// Compares what every node has of every other's clients with what that one announces.
    pub(crate) fn compare_tables(&mut self) -> Result<(), String> {
        let mut tables = self.tables();
        for (&number, node) in &self.ours.nodes {
            let mesh = &node.mesh;
            let table = |version,
                         clients: &mut dyn Iterator<Item = Key>,
                         crc: &dyn Fn(u16) -> Option<u32>| {
                let mut table = Table { version, vlans: BTreeMap::new() };
                for Key { vlan, address } in clients {
                    let entry =
                        table.vlans.entry(vlan).or_insert_with(|| (crc(vlan).unwrap_or(0), BTreeSet::new()));
                    entry.1.insert(address);
                }
                table
            };
            let own =
                table(mesh.table(0).0, &mut mesh.local_clients().into_iter(), &|vlan| mesh.table(vlan).1);
            let mut all = BTreeMap::from([(number, own)]);
            for other in (0..self.topology.nodes).filter(|&other| other != number) {
                let of = self.topology.mac(other, 0);
                let clients = mesh.global_clients().into_iter().filter(|(_, node)| *node == of);
                let crc = |vlan| mesh.table_of(of, vlan).1;
                all.insert(other, table(mesh.table_of(of, 0).0, &mut clients.map(|(key, _)| key), &crc));
            }
            tables.insert(number, all);
        }
        let own = |node: usize| tables.get(&node).and_then(|all| all.get(&node));
        for at in 0..self.topology.nodes {
            for of in 0..self.topology.nodes {
                let (here, there) = (tables.get(&at).and_then(|all| all.get(&of)), own(of));
                if there.is_none_or(|table| table.vlans.is_empty()) || here != there {
                    return Err(format!("{at} has of {of}:\n{here:x?}\nwhich announces\n{there:x?}"));
                }
            }
        }
        Ok(())
    }
}

impl Ours {
    fn mesh(&self, topology: &Topology, node: usize) -> Mesh {
        let mut config = MeshConfig::new(topology.interfaces(node), topology.host(node));
        config.bridge_loop_avoidance = false;
        let interval = Duration::from_millis(INTERVAL);
        config.routing = RoutingConfig::BatmanIv(BatmanIvConfig { interval, ..BatmanIvConfig::default() });
        (self.configure)(node, &mut config);
        // Numbers begin elsewhere at each start, as the kernel's do.
        let seed = Seed::new(self.now().as_nanos(), 0);
        Mesh::new(config, seed.stream(&["node"], node as u64))
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Takes what comes and does what is due, for a short while.
    pub(crate) fn turn(&mut self, guest: &Guest) {
        let received = guest.receive_any(TURN);
        let is_lan = |port: usize| self.lan.as_ref().is_some_and(|lan| lan.port == port);
        if let Some((port, frame)) = received.as_ref().filter(|(port, _)| !is_lan(*port)) {
            let now = self.now();
            let found = self
                .nodes
                .iter()
                .find_map(|(&number, node)| Some((number, node.ports.iter().position(|own| own == port)?)));
            let (number, interface) = found.expect("every port is at an interface of ours");
            self.note(number, false, frame);
            let item = Item::Frame(Frame::new(Buffer::copy_from(frame)));
            self.nodes.get_mut(&number).unwrap().mesh.handle(now, Port::Below(interface as u32), item);
            self.drain(number, guest);
        } else if let Some((_, frame)) = received {
            self.switch(Place::Kernel, &frame, guest);
        }
        let now = self.now();
        let due = self.nodes.iter().filter(|(_, node)| node.mesh.deadline().is_some_and(|at| at <= now));
        let due: Vec<usize> = due.map(|(&number, _)| number).collect();
        for number in due {
            self.nodes.get_mut(&number).unwrap().mesh.wake(now);
            self.drain(number, guest);
        }
    }

    /// Has the host of a node send a frame.
    pub(crate) fn send(&mut self, number: usize, frame: Buffer, guest: &Guest) {
        let now = self.now();
        let node = self.nodes.get_mut(&number).unwrap();
        node.mesh.handle(now, Port::Above(0), Item::Frame(Frame::new(frame)));
        self.drain(number, guest);
    }

    /// Has a host on the LAN send a frame.
    pub(crate) fn send_on_lan(&mut self, frame: &[u8], guest: &Guest) {
        self.switch(Place::Host, frame, guest);
    }

    /// Has the LAN carry a frame.
    fn switch(&mut self, from: Place, frame: &[u8], guest: &Guest) {
        let Some(lan) = &mut self.lan else { return };
        let (node, port) = (lan.node, lan.port);
        for to in lan.switch(from, frame) {
            match to {
                Place::Kernel => guest.send(port, frame),
                Place::Ours => self.send(node, Buffer::copy_from(frame), guest),
                Place::Host => {
                    let answer = self.lan.as_mut().and_then(|lan| lan.host.receive(frame));
                    if let Some(answer) = answer {
                        self.switch(Place::Host, &answer, guest);
                    }
                }
            }
        }
    }

    fn drain(&mut self, number: usize, guest: &Guest) {
        let now = self.now();
        let (mut passed, mut on_lan) = (Vec::new(), Vec::new());
        let is_on_lan = self.lan.as_ref().is_some_and(|lan| lan.node == number);
        let node = self.nodes.get_mut(&number).unwrap();
        while let Some((port, item)) = node.mesh.poll(now) {
            match (port, item) {
                (Port::Below(interface), Item::Frame(frame)) => {
                    guest.send(node.ports[interface as usize], &frame.bytes);
                    passed.push(frame.bytes);
                }
                (Port::Above(_), Item::Frame(frame)) if is_on_lan => on_lan.push(frame.bytes),
                (Port::Above(_), Item::Frame(frame)) => {
                    if let Some(answer) = node.host.receive(&frame.bytes) {
                        node.mesh.handle(now, Port::Above(0), Item::Frame(Frame::new(answer)));
                    }
                }
                _ => {}
            }
        }
        passed.iter().for_each(|frame| self.note(number, true, frame));
        on_lan.iter().for_each(|frame| self.switch(Place::Ours, frame, guest));
    }

    fn note(&mut self, node: usize, sent: bool, frame: &[u8]) {
        if let Some(packet) =
            frame.get(ethernet::HEADER..).filter(|packet| packet.first() == Some(&MULTICAST))
        {
            self.multicast.push(Passed { node, sent, packet: packet.to_vec() });
        }
    }
}

impl Node {
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let mut found = None;
        self.mesh.counters(&mut |counter, value| found = if counter == name { Some(value) } else { found });
        found.unwrap_or_else(|| panic!("no counter `{name}`"))
    }
}

/// An address as Linux writes it.
pub(crate) fn mac(text: &str) -> Option<Mac> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}
