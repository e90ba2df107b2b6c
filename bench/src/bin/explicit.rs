//! Packets a second that a MEADcast router and an Xcast router take as machines alone, with ten addresses in each: one
//! thread, no host and no link.

use std::net::Ipv6Addr;

use hopcast_core::{Buffer, Instant, Item, Machine, Port, Transit};
use hopcast_explicit::Bitmap;
use hopcast_explicit::meadcast::{router, wire as meadcast};
use hopcast_explicit::xcast::router::{self as xcast_router, Hop, NextHops};
use hopcast_explicit::xcast::wire as xcast;
use rustix::time::{ClockId, clock_gettime};

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
    measure("MEADcast, passed on", through(&mut machine, &packet));
    let (mut machine, packet) = mead(&[2, 5, 8]);
    measure("MEADcast, three copies", through(&mut machine, &packet));
    let (mut machine, packet) = mead(&[1]);
    measure("MEADcast, nine plain packets", through(&mut machine, &packet));
    measure("  the same by etherparse", |_| with_etherparse(&packet));
    measure("  the same bytes, only copied", |_| only_copied(&packet));
    let config = xcast_router::Config { copies_per_second: RATE, ..xcast_router::Config::default() };
    let mut machine = xcast_router::Router::new(config, &[own.into()], Box::new(Hops));
    measure("Xcast, two copies and a plain packet", through(&mut machine, &xcast_packet()));
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

    fn attached(&self, _: Ipv6Addr) -> Option<u32> {
        None
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
        hold: 0,
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

/// Hands copies of a packet to a machine, and takes what it makes of each; the number of packets that these are.
fn through<'a>(machine: &'a mut dyn Machine, packet: &'a Buffer) -> impl FnMut(Instant) -> u64 {
    move |now| {
        machine.handle(now, Port::Below(0), Item::Transit(Transit::arrived(packet.clone(), 0)));
        let mut copies = 0;
        while let Some((_, item)) = machine.poll(now) {
            copies += 1;
            if let Item::Transit(Transit { packet, .. }) = item {
                packet.recycle();
            }
        }
        copies
    }
}

/// Plain packets for all receivers in the list of a packet, by a library that knows the headers and sums all bytes of
/// each. Nothing is checked but that they are headers.
fn with_etherparse(packet: &Buffer) -> u64 {
    let copy = packet.clone();
    let read = etherparse::SlicedPacket::from_ip(packet).expect("it is a packet");
    let (Some(etherparse::NetSlice::Ipv6(ip)), Some(etherparse::TransportSlice::Udp(udp))) =
        (&read.net, &read.transport)
    else {
        panic!("it is UDP in IPv6");
    };
    let list = ip.extensions().slice()[meadcast::FIXED + 16..].as_chunks::<16>().0;
    let made: Vec<Buffer> =
        list.iter().map(|receiver| plain(&ip.header().to_header(), udp, receiver)).collect();
    let copies = made.len() as u64;
    made.into_iter().chain([copy]).for_each(Buffer::recycle);
    copies
}

fn plain(ip: &etherparse::Ipv6Header, udp: &etherparse::UdpSlice<'_>, receiver: &[u8; 16]) -> Buffer {
    let (payload, next_header) = (udp.payload(), etherparse::IpNumber::UDP);
    let payload_length = (udp.slice().len()) as u16;
    let ip = etherparse::Ipv6Header { destination: *receiver, next_header, payload_length, ..ip.clone() };
    let (source, destination) = (udp.source_port(), udp.destination_port());
    let udp = etherparse::UdpHeader::with_ipv6_checksum(source, destination, &ip, payload).expect("it fits");
    let mut made = Buffer::copy_from(payload);
    made.prepend(8).copy_from_slice(&udp.to_bytes());
    made.prepend(40).copy_from_slice(&ip.to_bytes());
    made
}

/// Copies of as many bytes as the plain packets for nine receivers have: the bound of any router in memory.
fn only_copied(packet: &Buffer) -> u64 {
    let packet = packet.clone();
    let made =
        std::array::from_fn::<Buffer, 9, _>(|_| Buffer::copy_from(&packet[packet.len() - PAYLOAD - 48..]));
    made.into_iter().chain([packet]).for_each(Buffer::recycle);
    9
}

/// Processor time of this thread so far, in seconds, which another program's load does not add to.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Packets a second of processor time, of the best of five turns.
fn measure(name: &str, mut step: impl FnMut(Instant) -> u64) {
    let mut best = (0.0, 0.0);
    for turn in 0..5 {
        let (begin, mut packets, mut copies) = (processor_time(), 0_u64, 0_u64);
        while processor_time() - begin < 0.2 {
            for _ in 0..1000 {
                copies += step(Instant::from_nanos((turn * 300_000_000) + packets * 100));
                packets += 1;
            }
        }
        let seconds = processor_time() - begin;
        if packets as f64 / seconds > best.0 {
            best = (packets as f64 / seconds, copies as f64 / seconds);
        }
    }
    println!("{name:44} {:>12.0} {:>12.0}", best.0, best.1);
}
