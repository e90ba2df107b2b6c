//! Packets of Xcast: what is read from any bytes, with a checksum that fits, is written as the same bytes. A router:
//! whatever arrives, it sends no more packets than the list has destinations, each whole, or nothing and counts why.
#![no_main]

use std::net::Ipv6Addr;

use hopcast_core::{Buffer, Egress, Instant, Item, Machine, Port, Transit};
use hopcast_explicit::xcast::router::{Config, Hop, NextHops, Router};
use hopcast_explicit::xcast::wire::Packet;
use hopcast_wire::checksum::checksum;
use hopcast_wire::ip;
use libfuzzer_sys::fuzz_target;

/// The last byte of a destination says its next hop.
struct Hops;

impl NextHops for Hops {
    fn next_hop(&mut self, destination: Ipv6Addr) -> Option<Hop> {
        let last = destination.octets()[15];
        let address = Ipv6Addr::from([0xfd14, 0, 0, 0, 0, 0, 1, (last % 3).into()]);
        match last % 4 {
            0 => None,
            1 => Some(Hop::Plain),
            2 => Some(Hop::Neighbour { interface: 1, address }),
            _ => Some(Hop::Tunnel(address)),
        }
    }

    fn is_router(&self, address: Ipv6Addr) -> bool {
        address.octets()[14] == 1
    }

    fn is_attached(&self, address: Ipv6Addr) -> bool {
        address.octets()[15] == 1
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    seal(&mut bytes);
    let mut most = 1;
    if let Ok(packet) = Packet::parse(&bytes) {
        let emitted = packet.emit();
        assert_eq!(emitted[..], bytes[..emitted.len()]);
        assert_eq!(emitted.len(), packet.header_len() + packet.payload.len());
        most = packet.marks.len();
    }
    let own = [0xfd14, 0, 0, 0, 0, 0, 1, 9];
    let mut router = Router::new(Config::default(), &[own.into()], Box::new(Hops));
    // As it is, and out of a tunnel.
    let mut tunnel = Buffer::copy_from(&bytes);
    if bytes.len() < 60_000 {
        let peer = [0xfd14, 0, 0, 0, 0, 0, 0, 0x0100];
        ip::prepend(&mut tunnel, std::net::IpAddr::from(peer), own.into(), 41, 64, 0);
    }
    for packet in [Buffer::copy_from(&bytes), tunnel] {
        router.handle(Instant::ZERO, Port::Below(0), Item::Transit(Transit::arrived(packet, 1)));
        let mut sent = 0;
        while let Some((port, item)) = router.poll(Instant::ZERO) {
            sent += 1;
            assert_eq!(port, Port::Below(0));
            match item {
                Item::Transit(Transit { egress: Egress::Routes, packet, .. }) | Item::Packet(packet) => {
                    assert!(most == 1 || ip::parse(&packet).is_ok());
                }
                Item::Transit(Transit { packet, .. }) => assert!(Packet::parse(&packet).is_ok()),
                other => panic!("{other:?}"),
            }
        }
        assert!(sent <= most, "{sent} packets of {most}");
    }
});

/// Makes the checksum of the routing header fit, as far as it is there.
fn seal(bytes: &mut [u8]) {
    let Some(&[_, words]) = bytes.get(ip::V6_HEADER..).and_then(<[u8]>::first_chunk) else { return };
    let end = ip::V6_HEADER + 8 + 8 * usize::from(words);
    let Some(header) = bytes.get_mut(ip::V6_HEADER..end) else { return };
    header[6..8].fill(0);
    let sum = checksum(header);
    header[6..8].copy_from_slice(&sum.to_be_bytes());
}
