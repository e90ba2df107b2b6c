//! A router that hosts machines too: whatever arrives, it gives at most two items for one, its frames are whole packets
//! that fit their link, and it keeps nothing.
#![no_main]

use std::net::{IpAddr, SocketAddr};

use arbitrary::Arbitrary;
use hopcast_core::{Buffer, Datagram, Frame, Instant, Item, Machine, Port, Transit};
use hopcast_fuzz::internet::mend;
use hopcast_host::{Config, Hook, Host, Interface, NextHop, StaticRoutes};
use hopcast_wire::{ethernet, ip};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Step {
    port: u8,
    kind: Kind,
    mend: bool,
    bytes: Vec<u8>,
    /// Zeros behind the bytes, so that long packets are cheap.
    more: u16,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Kind {
    /// The bytes are the packet, in a frame for the router.
    Framed {
        overheard: bool,
    },
    Frame {
        overheard: bool,
    },
    Packet,
    Transit {
        ingress: u8,
    },
    Datagram {
        v6: bool,
        port: u16,
    },
}

const MTUS: [u32; 2] = [1500, 600];
/// Above 0 to 2 are machines of three protocols, above 3 a hook.
const HOOK: u32 = 3;

fuzz_target!(|steps: Vec<Step>| {
    let mut host = router();
    for step in &steps {
        let (port, item) = step.item();
        host.handle(Instant::ZERO, port, item);
        // A packet for a hook and the host, or the host's own packet and what it causes here.
        for given in 0.. {
            let Some((port, item)) = host.poll(Instant::ZERO) else { break };
            assert!(given < 2, "one item gave more than two");
            look(port, &item);
        }
        assert_eq!(host.deadline(), None);
    }
});

fn look(port: Port, item: &Item) {
    match (port, item) {
        (Port::Below(interface), Item::Frame(Frame { bytes, .. })) => {
            let mtu = MTUS[interface as usize] as usize;
            let packet = &bytes[ethernet::HEADER..];
            let header = ip::parse(packet).expect("a router sends packets");
            assert!(header.total_len == packet.len() && packet.len() <= mtu);
            assert!(header.hop_limit > 0);
            assert!(ethernet::parse(bytes).is_ok_and(|frame| frame.source == mac(0, interface as u8)));
        }
        (Port::Above(0), Item::Datagram(datagram)) => assert_eq!(datagram.local.port(), 5000),
        (Port::Above(1 | 2), Item::Packet(packet)) => {
            ip::parse(packet).expect("what is handed up is a packet");
        }
        (Port::Above(HOOK), Item::Transit(transit)) => {
            ip::parse(&transit.packet).expect("what is in transit is a packet");
        }
        other => panic!("{other:?}"),
    }
}

fn router() -> Host {
    let to = |interface: u32, number: u8| NextHop { interface, mac: mac(number, 0) };
    let routes = StaticRoutes::new()
        .with([0; 4].into(), 0, to(0, 2))
        .with([10, 0, 0, 3].into(), 32, to(1, 3))
        .with([0xfd00, 0, 0, 0, 0, 0, 0, 0].into(), 8, to(1, 3))
        // An interface that is not there.
        .with([10, 128, 0, 0].into(), 9, to(9, 4));
    let interfaces =
        MTUS.iter().zip(0..).map(|(&mtu, number)| Interface::new(mac(0, number), mtu)).collect();
    let config =
        Config { addresses: vec![own(false), own(true)], interfaces, forwarding: true, ..Config::default() };
    let mut host = Host::new(config, Box::new(routes));
    host.bind_udp(0, 5000).expect("it is free");
    host.bind_protocol(1, ip::TCP, Some(80)).expect("it is free");
    host.bind_protocol(2, ip::ICMP, None).expect("it is free");
    host.hook(HOOK, Hook::Protocol(99));
    host
}

fn own(v6: bool) -> IpAddr {
    if v6 { [0xfd00, 0, 0, 0, 0, 0, 0, 1].into() } else { [10, 0, 0, 1].into() }
}

fn mac(host: u8, interface: u8) -> ethernet::Mac {
    [2, 0, 0, 0, host, interface]
}

impl Step {
    fn item(&self) -> (Port, Item) {
        let mut bytes = self.bytes.clone();
        bytes.resize(bytes.len() + usize::from(self.more) % 2_048, 0);
        if self.mend {
            let start = if matches!(self.kind, Kind::Frame { .. }) { ethernet::HEADER } else { 0 };
            mend(bytes.get_mut(start..).unwrap_or_default());
        }
        let mut bytes = Buffer::copy_from(&bytes);
        let number = self.port % 5;
        let (above, below) = (Port::Above(number.into()), Port::Below(number.into()));
        match self.kind {
            Kind::Framed { overheard } => {
                let v6 = bytes.first().is_some_and(|first| first >> 4 == 6);
                let ether_type = if v6 { ethernet::IPV6 } else { ethernet::IPV4 };
                let header = ethernet::Header { destination: mac(0, number), source: mac(2, 0), ether_type };
                ethernet::prepend(&mut bytes, header);
                (below, Item::Frame(Frame { overheard, ..Frame::new(bytes) }))
            }
            Kind::Frame { overheard } => (below, Item::Frame(Frame { overheard, ..Frame::new(bytes) })),
            Kind::Packet => (above, Item::Packet(bytes)),
            Kind::Transit { ingress } => {
                (above, Item::Transit(Transit::arrived(bytes, ingress.into())))
            }
            Kind::Datagram { v6, port } => {
                let remote = SocketAddr::new(
                    if v6 { [0xfd00, 0, 0, 0, 0, 0, 0, 3].into() } else { [10, 0, 0, 3].into() },
                    port,
                );
                (
                    above,
                    Item::Datagram(Datagram::new(SocketAddr::new(own(v6), 0), remote, bytes)),
                )
            }
        }
    }
}
