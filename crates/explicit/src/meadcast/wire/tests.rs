use hopcast_wire::{ip, udp};
use proptest::prelude::*;

use super::*;
use crate::testing::{at, hex};

/// A segment of UDP whose checksum fits.
pub(crate) fn segment(source: Ipv6Addr, destination: Ipv6Addr, port: u16, payload: &[u8]) -> Buffer {
    let mut segment = Buffer::copy_from(payload);
    udp::prepend(&mut segment, (source, 4000).into(), (destination, port).into());
    segment
}

/// The list of the thesis' example in figure 2.5: R5, E2, E3, R6, E4, E5.
fn figure() -> [[u8; 16]; 6] {
    ["fd14::5:1", "fd14::2", "fd14::3", "fd14::6:1", "fd14::4", "fd14::5"].map(|text| at(text).octets())
}

fn data<'a>(list: &'a [[u8; 16]], payload: &'a [u8]) -> Packet<'a> {
    let routers = Bitmap::of(0).with(3);
    Packet {
        traffic: 0,
        hop_limit: 64,
        source: at("fd14::1"),
        destination: at("fd14::2"),
        kind: Kind::Data { delivery: routers, routers },
        hops: 0,
        hold: 0,
        reserved: 0,
        list,
        ports: None,
        protocol: ip::UDP,
        payload,
    }
}

fn request(list: &[[u8; 16]]) -> Packet<'_> {
    Packet { kind: Kind::Request { nonce: 0 }, protocol: NO_NEXT_HEADER, ..data(list, &[]) }
}

fn refusal(bytes: &[u8]) -> Refusal {
    Packet::parse(bytes).unwrap_err()
}

#[test]
fn the_bytes_of_data_are_those_of_figure_4_1() {
    let list = figure();
    let payload = segment(at("fd14::1"), at("fd14::2"), 5001, b"hi");
    let emitted = data(&list, &payload).emit();
    let expected =
        hex("60000000 007a 2b 40 fd140000000000000000000000000001 fd140000000000000000000000000002
         11 0d fd 00  06 00 0000  90000000 90000000
         fd140000000000000000000000050001 fd140000000000000000000000000002 fd140000000000000000000000000003
         fd140000000000000000000000060001 fd140000000000000000000000000004 fd140000000000000000000000000005");
    assert_eq!(emitted[..152], expected[..]);
    assert_eq!(emitted[152..], payload[..]);
    assert_eq!(Packet::parse(&emitted), Ok(data(&list, &payload)));
    assert_eq!(data(&list, &payload).header_len(), 152);
    assert_eq!(overhead(6, 0), 112);
}

#[test]
fn the_bytes_of_discovery_are_those_of_figure_4_1() {
    let list = [at("fd14::2").octets()];
    let asks = Packet { hops: 2, ..request(&list) };
    let expected =
        hex("60000000 0020 2b 40 fd140000000000000000000000000001 fd140000000000000000000000000002
         3b 03 fd 00  01 82 0000  00000000 00000000 fd140000000000000000000000000002");
    assert_eq!(asks.emit()[..], expected[..]);
    let (source, destination) = (at("fd14::5:1"), at("fd14::1"));
    let answers = Packet {
        kind: Kind::Response { nonce: 0, code: None },
        source,
        destination,
        hop_limit: 255,
        hops: 3,
        ..request(&list)
    };
    let expected =
        hex("60000000 0020 2b ff fd140000000000000000000000050001 fd140000000000000000000000000001
         3b 03 fd 00  01 c3 0000  00000000 00000000 fd140000000000000000000000000002");
    assert_eq!(answers.emit()[..], expected[..]);
    assert_eq!(Packet::parse(&expected), Ok(answers));
}

#[test]
fn ports_follow_in_a_destination_option() {
    let list = figure();
    let payload = segment(at("fd14::1"), at("fd14::2"), 5001, b"hi");
    let ports = [[0x13, 0x89], [0x13, 0x8a], [0x13, 0x8b], [0x13, 0x8c]];
    let packet = Packet { ports: Some(&ports), ..data(&list, &payload) };
    let emitted = packet.emit();
    let option = hex("11 01 1e 08 1389 138a 138b 138c 01 02 0000");
    assert_eq!((emitted[40], &emitted[152..168]), (60, &[&option[..2], &option[2..]].concat()[..16]));
    assert_eq!(Packet::parse(&emitted), Ok(packet));
    assert_eq!(packet.header_len(), emitted.len() - payload.len());
    let three = Packet { ports: Some(&ports[..3]), ..packet };
    assert_eq!(refusal(&three.emit()), Refusal::Ports);
    let none = Packet { protocol: 113, payload: b"", ..packet };
    assert_eq!(refusal(&none.emit()), Refusal::Ports, "a protocol without ports");
}

#[test]
fn whatever_is_cut_off_or_not_of_this_form_is_refused_by_its_reason() {
    let list = figure();
    let payload = segment(at("fd14::1"), at("fd14::2"), 5001, b"hi");
    let whole = data(&list, &payload).emit();
    for len in 0..whole.len() {
        assert_eq!(refusal(&whole[..len]), Refusal::Packet, "{len}");
        // The same with a payload length that fits.
        if let Some(rest) = len.checked_sub(40) {
            let mut cut = whole[..len].to_vec();
            cut[4..6].copy_from_slice(&(rest as u16).to_be_bytes());
            let reason = if len < 152 { Refusal::Form } else { Refusal::Payload };
            assert!(Packet::parse(&cut).is_ok_and(|_| len >= 160) || refusal(&cut) == reason, "{len}");
        }
    }
    let changed = |place: usize, to: u8| {
        let mut bytes = whole.to_vec();
        bytes[place] = to;
        refusal(&bytes)
    };
    for (place, to, reason) in [
        (0, 0x40, Refusal::Packet),
        (6, 60, Refusal::NoHeader),
        (8, 0xff, Refusal::Source),
        (40, 43, Refusal::NestedRouting),
        (40, 44, Refusal::Extension),
        (40, 0, Refusal::Extension),
        (40, 60, Refusal::Ports),
        (41, 12, Refusal::Form),
        (42, 254, Refusal::NoHeader),
        (43, 1, Refusal::Form),
        (44, 0, Refusal::EmptyList),
        (44, 5, Refusal::Form),
        (44, 33, Refusal::LongList),
        (45, 0x40, Refusal::Flags),
        (45, 0x80, Refusal::Destination),
        (48, 0x00, Refusal::Delivered),
        (48, 0xd0, Refusal::Bitmaps),
        (51, 0x01, Refusal::PastList),
        (52, 0x10, Refusal::Bitmaps),
        (52, 0x98, Refusal::Unassigned),
        (52, 0x94, Refusal::Unassigned),
        (55, 0x01, Refusal::PastList),
        (56, 0xff, Refusal::Listed),
        (151, 4, Refusal::Repeated),
    ] {
        assert_eq!(changed(place, to), reason, "{to:#x} at {place}");
    }
    let mut link_local = whole.to_vec();
    link_local[72..74].copy_from_slice(&[0xfe, 0x80]);
    assert_eq!(refusal(&link_local), Refusal::Listed);
    let headless = Bitmap::of(3);
    let packet =
        Packet { kind: Kind::Data { delivery: headless, routers: headless }, ..data(&list, &payload) };
    assert_eq!(refusal(&packet.emit()), Refusal::Unassigned, "receivers in front of the first router");
}

#[test]
fn discovery_is_about_its_destination_and_carries_nothing() {
    let list = [at("fd14::2").octets(), at("fd14::3").octets()];
    let asks = request(&list[..1]);
    assert_eq!(Packet::parse(&asks.emit()), Ok(asks));
    assert_eq!(refusal(&Packet { destination: at("fd14::3"), ..asks }.emit()), Refusal::Destination);
    assert_eq!(refusal(&Packet { list: &list, ..asks }.emit()), Refusal::Destination);
    assert_eq!(
        refusal(&Packet { kind: Kind::Response { nonce: 0, code: None }, ..asks }.emit()),
        Refusal::Destination
    );
    assert_eq!(
        refusal(&Packet { source: at("fd14::2"), ..asks }.emit()),
        Refusal::Destination,
        "about its sender"
    );
    assert_eq!(refusal(&Packet { payload: b"x", ..asks }.emit()), Refusal::Payload);
    assert_eq!(refusal(&Packet { protocol: ip::UDP, ..asks }.emit()), Refusal::Payload);
    assert_eq!(refusal(&Packet { protocol: ROUTING, ..asks }.emit()), Refusal::NestedRouting);
}

/// A list with its routers, each of which has receivers.
fn lists() -> impl Strategy<Value = (Vec<[u8; 16]>, Bitmap)> {
    proptest::collection::vec(1_usize..5, 1..7).prop_map(|sections| {
        let mut routers = Bitmap::EMPTY;
        let mut list = Vec::new();
        for receivers in sections.into_iter().take_while({
            let mut total = 0;
            move |receivers| {
                total += receivers + 1;
                total <= MAX_LIST
            }
        }) {
            routers = routers.with(list.len());
            for _ in 0..=receivers {
                list.push(at(&format!("fd14::{:x}", list.len() + 2)).octets());
            }
        }
        (list, routers)
    })
}

proptest! {
    #[test]
    fn any_data_comes_back_as_it_was(
        (list, routers) in lists(),
        mask: u32,
        (traffic, hop_limit, hops, reserved) in (0_u32..1 << 28, any::<u8>(), 0_u8..64, any::<[u8; 2]>()),
        with_ports: bool,
        payload in proptest::collection::vec(any::<u8>(), 8..50),
    ) {
        let delivery = routers.places().filter(|&place| mask >> place & 1 == 1).fold(Bitmap::EMPTY, Bitmap::with);
        prop_assume!(!delivery.is_empty());
        let ports: Vec<[u8; 2]> = (routers.len()..list.len()).map(|port| [1, port as u8]).collect();
        let destination = Ipv6Addr::from(list[delivery.next(0).unwrap() + 1]);
        let packet = Packet {
            traffic, hop_limit, destination, hops, hold: reserved[0], reserved: reserved[1],
            kind: Kind::Data { delivery, routers },
            ports: with_ports.then_some(&ports[..]),
            ..data(&list, &payload)
        };
        let bytes = packet.emit();
        prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
        prop_assert_eq!(bytes.len() - payload.len(), packet.header_len());
    }

    #[test]
    fn what_is_read_from_any_bytes_is_written_as_the_same_bytes(
        (list, routers) in lists(),
        changes in proptest::collection::vec((0_usize..200, any::<u8>()), 0..4),
        discovery: bool,
        fits: bool,
        noise in proptest::collection::vec(any::<u8>(), 0..120),
    ) {
        let payload = segment(at("fd14::1"), at("fd14::3"), 7, b"hello");
        let kind = Kind::Data { delivery: routers, routers };
        let mut bytes = match discovery {
            true => Packet { destination: list[0].into(), ..request(&list[..1]) }.emit(),
            false => Packet { kind, ..data(&list, &payload) }.emit(),
        };
        for (place, to) in changes {
            let place = place % bytes.len();
            bytes[place] = to;
        }
        if fits {
            let len = (bytes.len() - 40) as u16;
            bytes[4..6].copy_from_slice(&len.to_be_bytes());
        }
        if let Ok(packet) = Packet::parse(&bytes) {
            let emitted = packet.emit();
            prop_assert_eq!(&emitted[..], &bytes[..emitted.len()]);
        }
        let _ = Packet::parse(&noise);
        bytes.truncate(40);
        bytes.append(&noise);
        let _ = Packet::parse(&bytes);
    }
}
