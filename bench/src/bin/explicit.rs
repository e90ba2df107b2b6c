//! Packets a second that a MEADcast router and an Xcast router take as machines alone, with ten addresses in each: one
//! thread, no host and no link.

use std::net::Ipv6Addr;
use std::time::Duration;

use hopcast_core::{Buffer, Instant, Item, Machine, Port, Transit};
use hopcast_explicit::Bitmap;
use hopcast_explicit::meadcast::{router, wire as meadcast};
use hopcast_explicit::xcast::router::{self as xcast_router, Hop, NextHops};
use hopcast_explicit::xcast::wire as xcast;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes of a datagram, so that a packet with ten addresses is a full frame's.
const PAYLOAD: usize = 1200;
const RATE: u32 = u32::MAX;

fn main() {
    let own = address(1);
    let mead = |routers: &[usize]| {
        let config = router::Config { copies_per_second: RATE, ..router::Config::default() };
        (router::Router::new(config, &[own.into()]), mead_packet(routers))
    };
    println!("{:44} {:>12} {:>12}", "", "packets/s", "copies/s");
    // Address 1 is the router's own.
    let (mut machine, packet) = mead(&[4]);
    measure("MEADcast, passed on", &mut machine, &packet);
    let (mut machine, packet) = mead(&[2, 5, 8]);
    measure("MEADcast, three copies", &mut machine, &packet);
    let (mut machine, packet) = mead(&[1]);
    measure("MEADcast, nine plain packets", &mut machine, &packet);
    let config = xcast_router::Config { copies_per_second: RATE, ..xcast_router::Config::default() };
    let mut machine = xcast_router::Router::new(config, &[own.into()], Box::new(Hops));
    measure("Xcast, two copies and a plain packet", &mut machine, &xcast_packet());
}

/// Next hops by an address's last byte.
struct Hops;

impl NextHops for Hops {
    fn next_hop(&mut self, destination: Ipv6Addr) -> Option<Hop> {
        Some(match destination.octets()[15] {
            2 => Hop::Plain,
            3..6 => Hop::Neighbour { interface: 1, address: address(100) },
            _ => Hop::Neighbour { interface: 2, address: address(101) },
        })
    }

    fn is_router(&self, _: Ipv6Addr) -> bool {
        false
    }

    fn is_attached(&self, _: Ipv6Addr) -> bool {
        false
    }
}

fn address(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd14, 0, 0, 0, 0, 0, 0, number)
}

fn segment(destination: Ipv6Addr) -> Buffer {
    let mut segment = Buffer::zeroed(PAYLOAD);
    hopcast_wire::udp::prepend(&mut segment, (address(99), 1).into(), (destination, 2).into());
    segment
}

/// A list of ten addresses, of which those with these numbers are routers; the first always is one.
fn mead_packet(routers: &[usize]) -> Buffer {
    // The routers first in their sections: numbers are given such that the list begins with one.
    let first = routers[0];
    let list: Vec<[u8; 16]> = (0..10).map(|place| address((first + place) as u16).octets()).collect();
    let places = routers.iter().fold(Bitmap::EMPTY, |map, router| map.with(router - first));
    let destination = Ipv6Addr::from(list[1]);
    let packet = meadcast::Packet {
        traffic: 0,
        hop_limit: 64,
        source: address(99),
        destination,
        kind: meadcast::Kind::Data { delivery: places, routers: places },
        hops: 0,
        reserved: 0,
        list: &list,
        ports: None,
        protocol: hopcast_wire::ip::UDP,
        payload: &segment(destination),
    };
    packet.emit()
}

fn xcast_packet() -> Buffer {
    let list: Vec<[u8; 16]> = (2..12).map(|number| address(number).octets()).collect();
    let packet = xcast::Packet {
        traffic: 0,
        hop_limit: 64,
        source: address(99),
        is_anonymous: false,
        stays: false,
        reserved: 0,
        channel: 0,
        marks: Bitmap::first(list.len()),
        list: &list,
        ports: None,
        protocol: hopcast_wire::ip::UDP,
        payload: &segment(xcast::ALL_ROUTERS),
    };
    packet.emit()
}

#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn measure(name: &str, machine: &mut dyn Machine, packet: &Buffer) {
    let mut best = (0.0, 0.0);
    for turn in 0..5 {
        let (begin, mut packets, mut copies) = (std::time::Instant::now(), 0_u64, 0_u64);
        while begin.elapsed() < Duration::from_millis(300) {
            for _ in 0..1000 {
                let now = Instant::from_nanos((turn * 300_000_000) + packets * 100);
                machine.handle(now, Port::Below(0), Item::Transit(Transit::arrived(packet.clone(), 0)));
                while let Some((_, item)) = machine.poll(now) {
                    copies += 1;
                    if let Item::Transit(Transit { packet, .. }) = item {
                        packet.recycle();
                    }
                }
                packets += 1;
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        if packets as f64 / seconds > best.0 {
            best = (packets as f64 / seconds, copies as f64 / seconds);
        }
    }
    println!("{name:44} {:>12.0} {:>12.0}", best.0, best.1);
}
