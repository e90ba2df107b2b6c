//! A node of a mesh among stations that send anything: it does not panic, its deadline moves on, and each frame costs a
//! bounded number of others.
//!
//! The input is a byte of settings, of which one bit says by which algorithm the node routes, and then frames: two
//! bytes of length, whose highest bits say by which interface the frame comes and how much time passes before it, and
//! what is behind the Ethernet header. Of frames from above, those of odd length are whole if the settings say so: from
//! a LAN, where other nodes may be that claim clients.
#![no_main]

use hopcast_core::{Buffer, Duration, Frame, Instant, Item, Machine, Port, Seed};
use hopcast_mesh::wire::ETHER_TYPE;
use hopcast_mesh::{Above, BatmanVConfig, GatewayMode, Mesh, MeshConfig, MeshInterface, RoutingConfig};
use hopcast_wire::ethernet::{self, BROADCAST, Header, Mac};
use libfuzzer_sys::fuzz_target;

/// Addresses of the node's interfaces; the first is that of the captured packets' receiver.
const INTERFACES: [Mac; 2] = [[2, 0, 0, 0, 0, 0xa1], [2, 0, 0, 1, 0, 0xa1]];
const HOST: Mac = [6, 0, 0, 0, 0, 0xa1];
/// Stations that send.
const SENDERS: [Mac; 2] = [[2, 0, 0, 0, 0, 2], [0x32, 0x67, 0xea, 0x97, 0x7b, 0x37]];
/// Maximum number of frames of a node's own in a second, on both interfaces.
const OWN: u64 = 40;
/// Maximum number of frames that one frame causes: a broadcast three times on each interface, an answer in 16
/// fragments, or a message for each 24 bytes of it.
const CAUSED: u64 = 70;

fuzz_target!(|data: &[u8]| {
    let Some((&settings, mut rest)) = data.split_first() else { return };
    let wireless = settings & 1 != 0;
    let interfaces = INTERFACES.map(|mac| MeshInterface { mac, wireless, throughput: None });
    let mut config = MeshConfig::new(interfaces.to_vec(), HOST);
    config.fragmentation = settings & 2 == 0;
    if settings & 4 != 0 {
        config.routing = RoutingConfig::BatmanV(BatmanVConfig::default());
    }
    if settings & 8 != 0 {
        config.multicast.above = Above::Bridge;
    }
    if settings & 16 != 0 {
        config.gateway.mode = GatewayMode::Client;
    }
    (config.max_clients, config.max_clients_of_node) = (64, 32);
    let mut node = Mesh::new(config, Seed::new(1, 0).stream(&["node"], 0));
    let mut now = Instant::ZERO;
    run(&mut node, now);
    let mut frames = 0_u64;
    let mut sent = 0_u64;
    while let Some((&[high, low], after)) = rest.split_first_chunk() {
        let len = usize::from(high & 7) << 8 | usize::from(low);
        let (packet, after) = after.split_at(len.min(after.len()));
        rest = after;
        let pause = [0, 1, 100, 3000][usize::from(high >> 6)];
        sent += advance(&mut node, &mut now, Duration::from_millis(pause));
        frames += 1;
        let (interface, sender) = (usize::from(high >> 5 & 1), SENDERS[usize::from(high >> 4 & 1)]);
        let item = |destination, source, ether_type| {
            let mut frame = Buffer::copy_from(packet);
            ethernet::prepend(&mut frame, Header { destination, source, ether_type });
            Item::Frame(Frame::new(frame))
        };
        let is_whole = settings & 32 != 0 && len % 2 == 1;
        if high >> 3 & 1 != 0 && is_whole {
            let frame = Item::Frame(Frame::new(Buffer::copy_from(packet)));
            node.handle(now, Port::Above(0), frame);
        } else if high >> 3 & 1 != 0 {
            // One of a client of the node's own, to all or to one elsewhere.
            let to = if len % 2 == 0 { BROADCAST } else { [6, 0, 0, 0, 0, 2] };
            node.handle(now, Port::Above(0), item(to, HOST, 0x88b5));
        } else {
            let flooded = packet.first().is_some_and(|kind| *kind < 5);
            let destination = if flooded { BROADCAST } else { INTERFACES[interface] };
            node.handle(now, Port::Below(interface as u32), item(destination, sender, ETHER_TYPE));
        }
        sent += run(&mut node, now);
    }
    sent += advance(&mut node, &mut now, Duration::from_secs(5));
    let seconds = now.as_nanos() / 1_000_000_000 + 1;
    // Each frame makes a claim at most, and shows one other node of the LAN.
    assert!(node.claims().len() as u64 <= frames && node.backbones().len() as u64 <= frames.min(256));
    assert!(sent <= frames * CAUSED + seconds * OWN, "{sent} frames for {frames} in {seconds} seconds");
});

/// Lets time pass. Returns how many frames were sent.
fn advance(node: &mut Mesh, now: &mut Instant, time: Duration) -> u64 {
    let (end, mut sent) = (*now + time, 0);
    while let Some(next) = node.deadline().filter(|next| *next <= end) {
        assert!(next > *now || *now == Instant::ZERO, "a deadline that has passed");
        *now = next;
        node.wake(next);
        sent += run(node, next);
    }
    *now = end;
    sent
}

/// Takes what the node sends. Returns how many frames there are.
fn run(node: &mut Mesh, now: Instant) -> u64 {
    let mut sent = 0;
    while let Some((port, item)) = node.poll(now) {
        if let (Port::Below(_), Item::Frame(frame)) = (port, item) {
            sent += 1;
            assert!(frame.bytes.len() <= 1514, "{} bytes", frame.bytes.len());
        }
    }
    sent
}
