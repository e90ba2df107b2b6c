//! A network element of PGM between a source and receivers: whatever arrives, it sends no more than a few packets for
//! one, whole and with checksums that fit, its state stays bounded, and the repairs that it waits for end.
#![no_main]

use std::net::IpAddr;

use arbitrary::Arbitrary;
use hopcast_core::{Buffer, Duration, Egress, Instant, Item, Machine, Port, Transit};
use hopcast_reliable::pgm::router::{Config, Router};
use hopcast_reliable::pgm::wire::{
    Body, Data, IP_PROTOCOL, Nak, Options, Packet, Parity, Spm, Tsi, checksum,
};
use hopcast_wire::{ip, udp};
use libfuzzer_sys::fuzz_target;

const SESSIONS: usize = 3;
const REPAIRS: usize = 20;
/// Packets that one may cause: an NCF, a NAK and a NNAK for each 63 numbers, of packets and of parity, and as many
/// repairs as a NAK has numbers. What falls due comes on top, as much of each session.
const MAX_SENT: usize = 2 * 3 + 63 + SESSIONS * 2;
const GROUP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(239, 0, 0, 9));

#[derive(Arbitrary, Debug)]
struct Step {
    /// Milliseconds before it.
    wait: u16,
    interface: u8,
    in_udp: bool,
    what: What,
    /// Bytes to change, before the checksum of PGM is made anew or after.
    changes: Vec<(u8, u8)>,
    seals: bool,
}

#[derive(Arbitrary, Debug)]
enum What {
    Spm { source: u8, session: u8, sequence: u32, trail: u8, lead: u8, group: u8 },
    Data { source: u8, session: u8, sequence: u8, is_repair: bool, is_parity: bool },
    Request { source: u8, session: u8, kind: u8, numbers: Vec<u8>, is_parity: bool },
    Bytes(Vec<u8>),
}

fuzz_target!(|steps: Vec<Step>| {
    let config = Config { sessions: SESSIONS, repairs: REPAIRS, store: 20_000, ..Config::default() };
    let mut router = Router::new(config, vec![own()]);
    let mut now = Instant::ZERO;
    for step in &steps {
        now = wait(&mut router, now, Duration::from_millis(step.wait.into()));
        let transit = Transit::arrived(packet(step), (step.interface % 4).into());
        router.handle(now, Port::Below(0), Item::Transit(transit));
        settle(&mut router, now);
    }
    wait(&mut router, now, Duration::from_secs(60));
    assert_eq!(router.load().1, 0, "no repair is waited for without end");
    assert_eq!(router.deadline(), None);
});

fn wait(router: &mut Router, mut now: Instant, span: Duration) -> Instant {
    let end = now + span;
    while let Some(next) = router.deadline().filter(|&next| next <= end) {
        assert!(next > now, "a deadline lies ahead");
        now = next;
        router.wake(now);
        settle(router, now);
    }
    end
}

fn settle(router: &mut Router, now: Instant) {
    let mut sent = 0;
    while let Some((port, item)) = router.poll(now) {
        assert_eq!(port, Port::Below(0));
        sent += 1;
        match item {
            // Handed back, as it was or with another path.
            Item::Transit(Transit { ingress: Some(_), egress: Egress::Routes, .. }) => {}
            Item::Transit(Transit { packet, .. }) | Item::Packet(packet) => look(&packet),
            other => panic!("{other:?}"),
        }
    }
    assert!(sent <= MAX_SENT, "{sent} packets");
    let (sessions, waiting) = router.load();
    assert!(sessions <= SESSIONS && waiting <= SESSIONS * REPAIRS);
    assert!(router.deadline().is_none_or(|at| at > now));
}

fn look(packet: &[u8]) {
    let header = ip::parse(packet).expect("a packet");
    assert_eq!(header.total_len, packet.len());
    let payload = &packet[header.payload()];
    let pgm = match header.protocol {
        IP_PROTOCOL => payload,
        ip::UDP => {
            let udp = udp::parse(header.source, header.destination, payload).expect("a datagram");
            &payload[udp::HEADER..udp.len]
        }
        other => panic!("protocol {other}"),
    };
    Packet::parse(pgm).expect("a packet of PGM");
}

fn own() -> IpAddr {
    [10, 1, 0, 1].into()
}

fn source(number: u8) -> IpAddr {
    [10, 0, 0, number % 4].into()
}

fn tsi(number: u8) -> Tsi {
    Tsi { gsi: [7; 6], port: (number % 3).into() }
}

fn packet(step: &Step) -> Buffer {
    let (built, from, to) = match &step.what {
        What::Spm { source: from, session, sequence, trail, lead, group } => {
            let spm = Spm {
                sequence: *sequence,
                trail: (*trail).into(),
                lead: (*lead).into(),
                path: source(*from),
            };
            let mut packet = Packet::new(tsi(*session), 9, Body::Spm(spm));
            let group = 1 << (group % 8);
            packet.options.parity = Some(Parity { proactive: false, on_demand: true, group });
            (packet.emit(), source(*from), GROUP)
        }
        What::Data { source: from, session, sequence, is_repair, is_parity } => {
            let data = Data { sequence: (*sequence).into(), trail: 0 };
            let body = if *is_repair { Body::Repair(data) } else { Body::Original(data) };
            let packet =
                Packet { is_parity: *is_parity, payload: b"data", ..Packet::new(tsi(*session), 9, body) };
            (packet.emit(), source(*from), GROUP)
        }
        What::Request { source: from, session, kind, numbers, is_parity } => {
            let numbers: Vec<u32> = numbers.iter().take(63).map(|&number| number.into()).collect();
            let (sequence, list) = numbers.split_first().map_or((0, &[][..]), |(first, list)| (*first, list));
            let nak = Nak { sequence, source: source(*from), group: GROUP };
            let options = Options { nak_list: list.to_vec(), ..Options::default() };
            let (body, from, to) = match kind % 3 {
                0 => (Body::Nak(nak), [10, 2, 0, 1].into(), own()),
                1 => (Body::NullNak(nak), [10, 2, 0, 1].into(), own()),
                _ => (Body::Confirmation(nak), source(*from), GROUP),
            };
            let packet = Packet { options, is_parity: *is_parity, ..Packet::new(tsi(*session), 9, body) };
            (packet.emit(), from, to)
        }
        What::Bytes(bytes) => (Buffer::copy_from(bytes), source(1), GROUP),
    };
    let mut bytes = built;
    for &(place, with) in &step.changes {
        let place = usize::from(place) % bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(place) {
            *byte = with;
        }
    }
    if step.seals && bytes.len() >= 8 {
        let sum = checksum(&bytes).to_be_bytes();
        bytes[6..8].copy_from_slice(&sum);
    }
    let protocol = if step.in_udp {
        udp::prepend(&mut bytes, (from, 60_001).into(), (to, 60_000).into());
        ip::UDP
    } else {
        IP_PROTOCOL
    };
    ip::prepend(&mut bytes, from, to, protocol, 64, 0);
    bytes
}
