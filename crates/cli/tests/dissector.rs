//! The dissector of explicit multicast: tshark's value of each field is what was sent.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::Ipv6Addr;
use std::path::Path;

use common::{hopcast, repository, text, tshark};
use hopcast_core::{Buffer, Instant, Item, Machine, Membership, Port};
use hopcast_explicit::xcast::router::{self, NextHops, PlusConfig, Router};
use hopcast_explicit::{Bitmap, meadcast, xcast};
use hopcast_twin::capture::{LinkType, PcapngWriter};
use hopcast_wire::udp;
use pcap_file::pcapng::{Block, PcapNgReader};

/// Fields of MEADcast's header and of its list.
const MEADCAST: [&str; 17] = [
    "meadcast.num_dst",
    "meadcast.discovery",
    "meadcast.response",
    "meadcast.kind",
    "meadcast.hops",
    "meadcast.hold",
    "meadcast.reserved",
    "meadcast.nonce",
    "meadcast.code",
    "meadcast.delivery_map",
    "meadcast.router_map",
    "meadcast.address",
    "meadcast.router",
    "meadcast.receiver",
    "meadcast.is_router",
    "meadcast.deliver",
    "meadcast.port",
];
/// Fields of Xcast's header and of its list.
const XCAST: [&str; 13] = [
    "xcast.version",
    "xcast.anonymous",
    "xcast.stays",
    "xcast.dscps",
    "xcast.reserved",
    "xcast.num_dst",
    "xcast.checksum",
    "xcast.checksum_ok",
    "xcast.channel",
    "xcast.bitmap",
    "xcast.destination",
    "xcast.marked",
    "xcast.port",
];
/// Fields of a registration of Xcast+.
const PLUS: [&str; 6] = [
    "xcast_plus.version",
    "xcast_plus.reserved",
    "xcast_plus.hold",
    "xcast_plus.reserved2",
    "xcast_plus.group",
    "xcast_plus.router",
];
/// Fields that tshark reads itself, of the headers around.
const OTHERS: [&str; 6] =
    ["ipv6.dst", "ipv6.hlim", "ipv6.routing.segleft", "udp.dstport", "udp.checksum.status", "udp.payload"];

/// Values of some fields.
type Fields = BTreeMap<&'static str, String>;

/// tshark's values of these fields in each frame of a capture that a filter selects, with the frame's number; `None`
/// without tshark.
fn dissected(file: &Path, filter: &str, fields: &[&'static str]) -> Option<Vec<(usize, Fields)>> {
    let script = format!("lua_script:{}", repository("packaging/wireshark/explicit-multicast.lua").display());
    let mut arguments = vec!["-X", &script, "-o", "udp.check_checksum:TRUE", "-Y", filter, "-T", "fields"];
    arguments.extend(["-e", "frame.number"]);
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let line = |line: &str| {
        let mut values = line.split('\t');
        let number = values.next().unwrap().parse().unwrap();
        // Newer ones write booleans as words.
        let value = |value: &str| value.replace("True", "1").replace("False", "0");
        (
            number,
            fields.iter().copied().zip(values.map(value)).filter(|(_, value)| !value.is_empty()).collect(),
        )
    };
    Some(tshark(file, &arguments)?.lines().map(line).collect())
}

/// Fields with their values, without those that have none.
fn fields<const N: usize>(values: [(&'static str, String); N]) -> Fields {
    values.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn bit(is: bool) -> String {
    u8::from(is).to_string()
}

/// Values of a field that a list has once for each address.
fn each<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(",")
}

fn addresses<'a>(list: impl IntoIterator<Item = &'a [u8; 16]>) -> String {
    each(list.into_iter().map(|octets| Ipv6Addr::from(*octets)))
}

fn ports(ports: Option<&[[u8; 2]]>) -> String {
    each(ports.unwrap_or_default().iter().map(|port| u16::from_be_bytes(*port)))
}

/// A map over a list of at most 32, as a number whose first bit is for the first address.
fn map(map: Bitmap) -> String {
    format!("{:#010x}", map.places().fold(0_u32, |bits, place| bits | 1 << (31 - place)))
}

/// The values that the dissector has to give for a packet of MEADcast.
fn of_meadcast(packet: &meadcast::wire::Packet<'_>) -> Fields {
    use meadcast::wire::Kind;
    let (kind, [delivery, routers]) = match packet.kind {
        Kind::Data { delivery, routers } => (0, [delivery, routers]),
        Kind::Request { .. } => (2, [Bitmap::EMPTY; 2]),
        Kind::Response { .. } => (3, [Bitmap::EMPTY; 2]),
    };
    let (maps, nonce, code) = match packet.kind {
        Kind::Data { .. } => (Some(()), String::new(), String::new()),
        Kind::Request { nonce } => (None, format!("{nonce:#018x}"), String::new()),
        Kind::Response { nonce, code } => {
            (None, format!("{nonce:#018x}"), code.map(|code| hex(&code)).unwrap_or_default())
        }
    };
    let listed = || packet.list.iter().enumerate();
    let of = |is_router: bool| {
        addresses(listed().filter(move |(place, _)| routers.has(*place) == is_router).map(|(_, it)| it))
    };
    fields([
        ("meadcast.num_dst", packet.list.len().to_string()),
        ("meadcast.discovery", bit(kind & 2 != 0)),
        ("meadcast.response", bit(kind & 1 != 0)),
        ("meadcast.kind", kind.to_string()),
        ("meadcast.hops", packet.hops.to_string()),
        ("meadcast.hold", packet.hold.to_string()),
        ("meadcast.reserved", format!("{:#04x}", packet.reserved)),
        ("meadcast.nonce", nonce),
        ("meadcast.code", code),
        ("meadcast.delivery_map", maps.map(|()| map(delivery)).unwrap_or_default()),
        ("meadcast.router_map", maps.map(|()| map(routers)).unwrap_or_default()),
        ("meadcast.address", addresses(packet.list)),
        ("meadcast.router", of(true)),
        ("meadcast.receiver", of(false)),
        ("meadcast.is_router", each(listed().map(|(place, _)| bit(routers.has(place))))),
        ("meadcast.deliver", each(listed().map(|(place, _)| bit(delivery.has(place))))),
        ("meadcast.port", ports(packet.ports)),
    ])
}

/// The same of a packet of Xcast, whose checksum is at its place.
fn of_xcast(packet: &xcast::wire::Packet<'_>, bytes: &[u8]) -> Fields {
    let bitmap_len = packet.list.len().div_ceil(64) * 8;
    let bitmap = packet.marks.places().fold(0_u128, |bits, place| bits | 1 << (127 - place)).to_be_bytes();
    fields([
        ("xcast.version", "1".to_owned()),
        ("xcast.anonymous", bit(packet.is_anonymous)),
        ("xcast.stays", bit(packet.stays)),
        ("xcast.dscps", bit(false)),
        ("xcast.reserved", packet.reserved.to_string()),
        ("xcast.num_dst", packet.list.len().to_string()),
        ("xcast.checksum", format!("{:#06x}", u16::from_be_bytes([bytes[46], bytes[47]]))),
        ("xcast.checksum_ok", bit(true)),
        ("xcast.channel", Ipv6Addr::from(packet.channel).to_string()),
        ("xcast.bitmap", hex(&bitmap[..bitmap_len])),
        ("xcast.destination", addresses(packet.list)),
        ("xcast.marked", each((0..packet.list.len()).map(|place| bit(packet.marks.has(place))))),
        ("xcast.port", ports(packet.ports)),
    ])
}

/// The values of tshark's own fields around a packet to a port with a payload.
fn around(destination: Ipv6Addr, hop_limit: u8, port: u16, payload: &[u8]) -> Fields {
    fields([
        ("ipv6.dst", destination.to_string()),
        ("ipv6.hlim", hop_limit.to_string()),
        ("ipv6.routing.segleft", "0".to_owned()),
        ("udp.dstport", port.to_string()),
        ("udp.checksum.status", "1".to_owned()),
        ("udp.payload", hex(payload)),
    ])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes packets of IP into a capture.
fn write(file: &Path, packets: &[Buffer]) {
    let mut writer = PcapngWriter::new(Box::new(File::create(file).unwrap())).unwrap();
    let interface = writer.add_interface("packets", LinkType::Packets);
    packets.iter().for_each(|packet| writer.received(Instant::ZERO, interface, packet));
    writer.finish().unwrap();
}

/// Frames of a capture, in the order of the file.
fn frames(file: &Path) -> Vec<Vec<u8>> {
    let mut reader = PcapNgReader::new(File::open(file).unwrap()).unwrap();
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            frames.push(packet.data.into_owned());
        }
    }
    frames
}

fn at(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// A segment of UDP whose checksum covers a destination.
fn segment(to: Ipv6Addr, port: u16, payload: &[u8]) -> Buffer {
    let mut segment = Buffer::copy_from(payload);
    udp::prepend(&mut segment, (at("fd14::1"), 4000).into(), (to, port).into());
    segment
}

const TREE: &str = "\
title: Lists of receivers
seed: 3
duration: 4 s
topology:
  nodes: [s, r0, r1, r2, a, b, c, d]
  links:
    - { between: [s, r0], rate: 10 Mbit/s }
    - { between: [r0, r1], rate: 10 Mbit/s }
    - { between: [r0, r2], rate: 10 Mbit/s }
    - { between: [r1, a], rate: 10 Mbit/s }
    - { between: [r1, b], rate: 10 Mbit/s }
    - { between: [r2, c], rate: 10 Mbit/s }
    - { between: [r2, d], rate: 10 Mbit/s }
services: [{ run: meadcast-router, on: [r0, r1, r2] }]
groups: [{ name: g, members: [a, b, c, d], delivery: { meadcast: { delay: 0s, timeout: 500 ms, interval: 1 s } } }]
flows: [{ from: s, to: g, ip: 6, over: udp, app: { cbr: { rate: 80 kbit/s, size: 500 B } } }]
";

#[test]
fn every_field_of_meadcast_in_a_run_is_what_its_nodes_sent() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.yaml"), TREE).unwrap();
    let output =
        hopcast(dir.path(), &["run", "s.yaml", "--out", "out", "--capture", "all", "--format", "json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = dir.path().join("out/captures/case-000-repeat-000.pcapng");
    let wanted = [&MEADCAST[..], &OTHERS].concat();
    let Some(found) = dissected(&file, "meadcast", &wanted) else { return };
    let mut found: BTreeMap<usize, Fields> = found.into_iter().collect();
    let (mut kinds, mut halves) = ([0; 3], 0);
    for (number, frame) in (1..).zip(frames(&file)) {
        // Behind Ethernet's header.
        let Ok(packet) = meadcast::wire::Packet::parse(&frame[14..]) else {
            assert!(!found.contains_key(&number), "frame {number} is none of MEADcast");
            continue;
        };
        let mut expected = of_meadcast(&packet);
        match packet.kind {
            meadcast::wire::Kind::Data { delivery, routers } => {
                let port = u16::from_be_bytes([packet.payload[2], packet.payload[3]]);
                let payload = &packet.payload[udp::HEADER..];
                expected.extend(around(packet.destination, packet.hop_limit, port, payload));
                kinds[0] += 1;
                halves += usize::from(delivery != routers);
            }
            kind => {
                let around = around(packet.destination, packet.hop_limit, 0, &[]);
                expected.extend(around.into_iter().filter(|(name, _)| name.starts_with("ipv6")));
                kinds[1 + usize::from(matches!(kind, meadcast::wire::Kind::Response { .. }))] += 1;
            }
        }
        assert_eq!(found.remove(&number), Some(expected), "frame {number}");
    }
    assert!(found.is_empty(), "{found:?}");
    assert!(kinds.into_iter().all(|count| count > 10) && halves > 10, "{kinds:?} {halves}");
    assert_eq!(dissected(&file, "_ws.malformed or meadcast.malformed", &[]), Some(Vec::new()));
}

#[test]
fn every_field_of_meadcast_is_read_at_its_limits_too() {
    let list: Vec<[u8; 16]> = (1..=32).map(|number| at(&format!("fd14::2:{number:x}")).octets()).collect();
    let (payload, numbers) = (b"lists", [5001_u16, 5002, 65535].map(u16::to_be_bytes));
    let routers = Bitmap::of(0).with(3);
    let data = |count: usize, destination: Ipv6Addr, delivery, routers, ports| {
        let segment = segment(destination, 9000, payload);
        let packet = meadcast::wire::Packet {
            traffic: 0,
            hop_limit: 63,
            source: at("fd14::1"),
            destination,
            kind: meadcast::wire::Kind::Data { delivery, routers },
            hops: 63,
            hold: 0xa5,
            reserved: 0x5a,
            list: &list[..count],
            ports,
            protocol: 17,
            payload: &segment,
        };
        let around = around(destination, 63, 9000, payload);
        (packet.emit(), of_meadcast(&packet).into_iter().chain(around).collect::<Fields>())
    };
    // A list of ports, one that is served in part, and the longest with its last bits.
    let first = at("fd14::2:2");
    let evens = (0..32).step_by(2).fold(Bitmap::EMPTY, Bitmap::with);
    let (packets, expected): (Vec<_>, Vec<_>) = [
        data(5, first, routers, routers, Some(&numbers[..])),
        data(5, at("fd14::2:5"), Bitmap::of(3), routers, None),
        data(32, at("fd14::2:20"), Bitmap::of(30), evens, None),
    ]
    .into_iter()
    .unzip();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("meadcast.pcapng");
    write(&file, &packets);
    let wanted = [&MEADCAST[..], &OTHERS].concat();
    let Some(found) = dissected(&file, "meadcast", &wanted) else { return };
    assert_eq!(found, (1..).zip(expected).collect::<Vec<_>>());

    // A map that marks what is not there, and a list that is cut off.
    let mut past = packets[1].clone();
    past[55] |= 1;
    let mut cut = packets[1].clone();
    cut[44] = 6;
    write(&file, &[past, packets[1].clone(), cut]);
    let bad = dissected(&file, "meadcast.malformed", &[]).unwrap();
    assert_eq!(bad.into_iter().map(|(number, _)| number).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn every_field_of_a_short_list_is_what_was_sent() {
    use meadcast::wire::short;
    let octets = |texts: &[&str]| texts.iter().map(|text| at(text).octets()).collect::<Vec<_>>();
    let routers = octets(&["2001:db8:0:a::1", "2001:db8:0:b::1"]);
    let receivers = [
        octets(&["2001:db8:0:a:1122:3344:5566:7788", "2001:db8:0:a:99aa:bbcc:ddee:ff00"]),
        octets(&["2001:db8:0:b::2", "2001:db8:0:b::3", "2001:db8:0:c::2"]),
    ];
    let (source, destination) = (at("fd14::1"), at("2001:db8:0:a::1"));
    let mut packet = Buffer::copy_from(&segment(destination, 9000, b"lists"));
    let head =
        short::Packet { traffic: 0, hop_limit: 63, source, destination, hops: 5, protocol: 17, payload: &[] };
    let sections = routers.iter().zip(&receivers).zip([0, 3]);
    let sections = sections.map(|((router, receivers), branch)| short::Section { branch, router, receivers });
    head.prepend(&mut packet, sections);
    let all =
        routers.iter().zip(&receivers).flat_map(|(router, receivers)| [router].into_iter().chain(receivers));
    let mut expected = fields([
        ("meadcast.version", "0x81".to_owned()),
        ("meadcast.hops", "5".to_owned()),
        ("meadcast.sections_len", "62".to_owned()),
        ("meadcast.branch", "0,3".to_owned()),
        ("meadcast.router_shared", "0,7".to_owned()),
        ("meadcast.count", "2,2,1".to_owned()),
        ("meadcast.prefix_shared", "8,15,7".to_owned()),
        ("meadcast.prefix_len", "8,15,15".to_owned()),
        ("meadcast.address", addresses(all)),
        ("meadcast.router", addresses(&routers)),
        ("meadcast.receiver", addresses(receivers.iter().flatten())),
        ("meadcast.is_router", "1,0,0,1,0,0,0".to_owned()),
    ]);
    let wanted: Vec<&str> = expected.keys().copied().chain(OTHERS).collect();
    expected.extend(around(destination, 63, 9000, b"lists"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("short.pcapng");
    // One whose sections end in the middle of an address.
    let mut cut = packet.clone();
    cut[47] -= 1;
    write(&file, &[packet, cut]);
    let Some(found) = dissected(&file, "meadcast and not meadcast.malformed", &wanted) else { return };
    assert_eq!(found, [(1, expected)]);
    let bad = dissected(&file, "meadcast.malformed", &[]).unwrap();
    assert_eq!(bad.into_iter().map(|(number, _)| number).collect::<Vec<_>>(), [2]);
}

#[test]
fn every_field_of_xcast_is_what_was_sent() {
    let list: Vec<[u8; 16]> = (1..=70).map(|number| at(&format!("fd14::2:{number:x}")).octets()).collect();
    let segment = segment(xcast::wire::ALL_ROUTERS, 0, b"lists");
    let whole = xcast::wire::Packet {
        traffic: 0,
        hop_limit: 60,
        source: at("fd14::1"),
        is_anonymous: false,
        stays: true,
        reserved: 2,
        channel: at("ff3e::4321:1234").to_bits(),
        marks: Bitmap::of(1).with(64).with(69),
        list: &list,
        ports: None,
        protocol: 17,
        payload: &segment,
    };
    let numbers = [5001_u16, 5002, 5003].map(u16::to_be_bytes);
    // What is not marked is written as zeros.
    let hidden = [[0; 16], list[1], list[2]];
    let anonymous = xcast::wire::Packet {
        is_anonymous: true,
        stays: false,
        reserved: 1,
        channel: 0,
        marks: Bitmap::of(1).with(2),
        list: &hidden,
        ports: Some(&numbers),
        ..whole
    };
    let packets = [whole, anonymous].map(|packet| packet.emit());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("xcast.pcapng");
    write(&file, &packets);
    let wanted = [&XCAST[..], &OTHERS].concat();
    let Some(found) = dissected(&file, "xcast", &wanted) else { return };
    let expected = [whole, anonymous].into_iter().zip(&packets).map(|(packet, bytes)| {
        let around = around(xcast::wire::ALL_ROUTERS, 60, 0, b"lists");
        of_xcast(&packet, bytes).into_iter().chain(around).collect::<Fields>()
    });
    assert_eq!(found, (1..).zip(expected).collect::<Vec<_>>());

    let mut changed = packets[1].clone();
    changed[100] ^= 1;
    write(&file, &[changed, packets[0].clone()]);
    let bad = dissected(&file, "xcast.checksum_bad", &["xcast.checksum_ok"]).unwrap();
    assert_eq!(bad, [(1, fields([("xcast.checksum_ok", bit(false))]))]);
}

/// No routes.
struct Nowhere;

impl NextHops for Nowhere {
    fn next_hop(&mut self, _: Ipv6Addr) -> Option<router::Hop> {
        None
    }

    fn is_router(&self, _: Ipv6Addr) -> bool {
        false
    }

    fn attached(&self, _: Ipv6Addr) -> Option<u32> {
        None
    }
}

#[test]
fn every_field_of_a_registration_is_what_a_designated_router_sends() {
    let own = at("fd14::b");
    let router = Router::new(router::Config::default(), &[own.into()], Box::new(Nowhere));
    let mut router = router.designated(PlusConfig::default());
    let (source, group) = (at("fd14::1"), at("ff3e::4321:1234"));
    let mut packets = Vec::new();
    for joined in [true, false] {
        let change =
            Membership { group: group.into(), source: Some(source.into()), interface: Some(1), joined };
        router.handle(Instant::ZERO, Port::Above(0), Item::Membership(change));
        while let Some((_, item)) = router.poll(Instant::ZERO) {
            let Item::Packet(packet) = item else { panic!("{item:?}") };
            packets.push(packet);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plus.pcapng");
    write(&file, &packets);
    let Some(found) = dissected(&file, "xcast_plus", &PLUS) else { return };
    let expected = |hold: &str| {
        fields([
            ("xcast_plus.version", "1".to_owned()),
            ("xcast_plus.reserved", "0x00".to_owned()),
            ("xcast_plus.hold", hold.to_owned()),
            ("xcast_plus.reserved2", "0x0000".to_owned()),
            ("xcast_plus.group", group.to_string()),
            ("xcast_plus.router", own.to_string()),
        ])
    };
    assert_eq!(found, [(1, expected("210")), (2, expected("0"))], "a join and a leave");
}
