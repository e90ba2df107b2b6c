//! A node of ours and one of the kernel's that are bridged to one LAN.

use std::collections::BTreeSet;

use hopcast_core::Buffer;
use hopcast_mesh::MeshConfig;
use hopcast_node::testing::{Requirement, require};
use hopcast_uml::kernel;
use hopcast_wire::arp::{self, Operation, Packet, Station};
use hopcast_wire::ethernet::{self, BROADCAST, Header, Mac};

use crate::host::address;
use crate::lan;
use crate::live::{Live, mac};
use crate::topology::{Topology, text};

/// Our node on the LAN.
const OURS: usize = 0;
/// The kernel's node on the LAN.
const KERNELS: usize = 1;
/// The kernel's node between both.
const FAR: usize = 2;

/// A client, the node that has claimed it, and the checksum of that node's claims.
type Claim = (Mac, Mac, u16);

impl Live {
    /// The claims of clients without VLAN at the kernel's node on the LAN.
    fn kernels_claims(&mut self) -> BTreeSet<Claim> {
        let output = self.at(KERNELS, "batctl meshif bat0 cl -n");
        let claim = |line: &str| {
            let words: String = line.chars().map(|c| if "()[]*".contains(c) { ' ' } else { c }).collect();
            match words.split_whitespace().collect::<Vec<_>>()[..] {
                [client, "on", "-1", "by", node, sum] => {
                    let sum = u16::from_str_radix(sum.strip_prefix("0x")?, 16).ok()?;
                    Some((mac(client)?, mac(node)?, sum))
                }
                _ => None,
            }
        };
        output.lines().filter_map(claim).collect()
    }

    fn our_claims(&self) -> BTreeSet<Claim> {
        let claims = self.ours.nodes[&OURS].mesh.claims().into_iter();
        let untagged = claims.filter(|claim| claim.client.vlan == 0);
        untagged.map(|claim| (claim.client.address, claim.node, claim.checksum)).collect()
    }

    /// Waits until both have the same claims, that of the far host among them.
    fn agrees(&mut self) -> BTreeSet<Claim> {
        let far = self.topology.host(FAR);
        self.until("both have the same claims", |live| {
            let (ours, kernels) = (live.our_claims(), live.kernels_claims());
            let complete = ours == kernels && ours.iter().any(|(client, ..)| *client == far);
            if complete { Ok(ours) } else { Err(format!("{ours:x?}\n{kernels:x?}")) }
        })
    }

    /// Has the host on the LAN ask for the address of the far one.
    fn asks(&mut self) {
        let sender = Station { mac: lan::HOST, address: address(0, lan::NUMBER) };
        let target = Station { mac: [0; 6], address: address(0, FAR as u8 + 1) };
        let mut frame = Buffer::copy_from(&[]);
        arp::prepend(&mut frame, &Packet { operation: Operation::Request, sender, target });
        let header = Header { destination: BROADCAST, source: lan::HOST, ether_type: arp::ETHER_TYPE };
        ethernet::prepend(&mut frame, header);
        self.ours.send_on_lan(&frame, &self.guest);
    }

    /// Packets of ARP of the far host that the host on the LAN has got.
    fn heard(&self, operation: Operation) -> usize {
        let far = Station { mac: self.topology.host(FAR), address: address(0, FAR as u8 + 1) };
        let received = &self.ours.lan.as_ref().unwrap().host.received;
        let packets = received.iter().filter_map(|frame| arp::parse(frame.get(ethernet::HEADER..)?).ok());
        packets.filter(|packet| (packet.operation, packet.sender) == (operation, far)).count()
    }

    fn forget_heard(&mut self) {
        self.ours.lan.as_mut().unwrap().host.received.clear();
    }
}

#[test]
fn a_node_of_ours_and_one_of_the_kernels_keep_claims_with_each_other() {
    if !require(&[Requirement::File("uml", &kernel())]) {
        return;
    }
    // The far node has both next to it.
    let topology = Topology::new('l', 3, &[(FAR, KERNELS), (OURS, FAR)]);
    let configure = |_: usize, config: &mut MeshConfig| {
        (config.bridge_loop_avoidance, config.arp_table) = (true, false);
    };
    let mut live = Live::with_lan(topology, &[OURS], configure, Some((OURS, KERNELS)));
    live.at(
        KERNELS,
        "batctl meshif bat0 bl 1
        ip link add br0 type bridge; ip link set bat0 master br0; ip link set lan master br0; ip link set br0 up",
    );

    // Each is on the LAN to the other once a frame has come.
    let [own, other] = [OURS, KERNELS].map(|node| live.topology.mac(node, 0));
    live.asks();
    live.until("our node is on the kernel's LAN", |live| {
        let output = live.at(KERNELS, "batctl meshif bat0 bbt -n");
        output.contains(&text(own)).then_some(()).ok_or(output)
    });
    live.until("the kernel's node is on ours", |live| {
        let backbones = live.ours.nodes[&OURS].mesh.backbones();
        backbones.iter().any(|found| found.node == other).then_some(()).ok_or(format!("{backbones:x?}"))
    });

    // Broadcasts wait for three periods of both, which end within one period of each other.
    live.sh("sleep 12");
    live.until("an answer of the far host", |live| {
        live.forget_heard();
        live.asks();
        live.sh("sleep 1");
        (live.heard(Operation::Reply) > 0).then_some(()).ok_or("none".to_owned())
    });
    live.sh("sleep 11");
    live.ping_far();
    let claims = live.agrees();
    assert!(claims.iter().all(|(_, node, _)| [own, other].contains(node)), "{claims:x?}");

    // One request of the LAN comes to the far host once, and one of the far host to the LAN.
    live.forget_heard();
    live.asks();
    live.sh("sleep 1");
    assert_eq!(live.heard(Operation::Reply), 1);
    live.forget_heard();
    live.try_at(FAR, "arping -q -c 1 -w 1 -I bat0 10.0.0.77").unwrap_err();
    live.sh("sleep 1");
    assert_eq!(live.heard(Operation::Request), 1);
    assert_eq!(live.ours.nodes[&OURS].counter("bridge_loops_found"), 0);
    let tables = live.ours.nodes[&OURS].mesh.global_clients();
    assert!(tables.iter().all(|(key, node)| key.vlan != 0 || *node != other), "{tables:x?}");

    // One of ours that has restarted asks the kernel's for its claims, and the kernel's asks it.
    live.ping_far();
    live.restart(OURS);
    live.sh("sleep 11");
    live.asks();
    live.ping_far();
    live.agrees();
    let restarted = &live.ours.nodes[&OURS];
    assert!(restarted.counter("claim_frames_received") > 0);
    assert_eq!(
        (restarted.counter("claim_frames_malformed"), restarted.counter("claim_frames_foreign")),
        (0, 0)
    );
}

impl Live {
    /// Has the far host send echo requests to the one on the LAN: the node that brings them has it claimed.
    fn ping_far(&mut self) {
        let to = address(0, lan::NUMBER);
        self.until("the far host pings the LAN", |live| {
            let output = live.try_at(FAR, &format!("ping -q -c 5 -i 0.1 -W 1 {to}"))?;
            output.contains("5 packets received").then_some(()).ok_or(output)
        });
    }
}
