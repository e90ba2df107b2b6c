use hopcast_wire::udp;
use proptest::prelude::*;

use super::*;
use crate::testing::{at, hex};

/// A segment of UDP whose checksum covers the address of all routers.
pub(crate) fn segment(source: Ipv6Addr, port: u16, payload: &[u8]) -> Buffer {
    let mut segment = Buffer::copy_from(payload);
    udp::prepend(&mut segment, (source, 4000).into(), (ALL_ROUTERS, port).into());
    segment
}

pub(crate) fn list(count: usize) -> Vec<[u8; 16]> {
    (0..count).map(|number| at(&format!("fd14::{:x}", number + 2)).octets()).collect()
}

pub(crate) fn packet<'a>(list: &'a [[u8; 16]], payload: &'a [u8]) -> Packet<'a> {
    Packet {
        traffic: 0,
        hop_limit: 64,
        source: at("fd14::1"),
        is_anonymous: false,
        stays: false,
        reserved: 0,
        channel: 0,
        marks: Bitmap::first(list.len()),
        list,
        ports: None,
        protocol: ip::UDP,
        payload,
    }
}

fn refusal(bytes: &[u8]) -> Refusal {
    Packet::parse(bytes).unwrap_err()
}

/// Makes the checksum of the routing header fit, whose length is that of this many destinations.
fn seal(bytes: &mut [u8], count: usize) {
    bytes[46..48].fill(0);
    let sum = checksum::checksum(&bytes[40..40 + overhead(count, false)]);
    bytes[46..48].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn the_bytes_are_those_of_figure_6() {
    let list = list(3);
    let payload = segment(at("fd14::1"), 5001, b"hi");
    let (channel, marks) = (0xff3e_0000_0000_0000_0000_0000_4321_1234, Bitmap::EMPTY.with(0).with(2));
    let sent = Packet { channel, marks, stays: true, ..packet(&list, &payload) };
    let emitted = sent.emit();
    let mut expected =
        hex("60000000 005a 2b 40 fd140000000000000000000000000001 ff020000000000000000000000000114
         11 09 fe 00  14 03 0000  ff3e0000000000000000000043211234  a000000000000000
         fd140000000000000000000000000002 fd140000000000000000000000000003 fd140000000000000000000000000004");
    seal(&mut expected, 3);
    assert_eq!(emitted[..120], expected[..]);
    assert_eq!(emitted[120..], payload[..]);
    assert_eq!(Packet::parse(&emitted), Ok(sent));
}

#[test]
fn the_bitmap_grows_by_64_bits_and_a_list_of_125_is_the_longest() {
    let payload = segment(at("fd14::1"), 5001, b"hi");
    for (count, len) in [(1, 8), (64, 8), (65, 16), (MAX_LIST, 16)] {
        let list = list(count);
        let emitted = packet(&list, &payload).emit();
        assert_eq!(emitted.len() - payload.len(), 40 + 24 + len + 16 * count);
        assert_eq!(Packet::parse(&emitted), Ok(packet(&list, &payload)));
    }
    assert_eq!(overhead(MAX_LIST, false), 2040);
    assert!(overhead(MAX_LIST + 1, false) > 2048, "more than 8 bits can say");
}

#[test]
fn who_is_anonymous_is_overwritten_by_zeros_when_not_marked() {
    let list = list(3);
    let payload = segment(at("fd14::1"), 5001, b"hi");
    let sent = Packet { is_anonymous: true, marks: Bitmap::EMPTY.with(1), ..packet(&list, &payload) };
    let emitted = sent.emit();
    let hidden = [[0; 16], list[1], [0; 16]];
    assert_eq!(Packet::parse(&emitted), Ok(Packet { list: &hidden, ..sent }));
    let mut shown = emitted;
    shown[72..88].copy_from_slice(&list[0]);
    seal(&mut shown, 3);
    assert_eq!(refusal(&shown), Refusal::Listed);
}

#[test]
fn ports_follow_in_a_destination_option() {
    let list = list(3);
    let payload = segment(at("fd14::1"), 0, b"hi");
    let ports = [[0x13, 0x89], [0x13, 0x8a], [0x13, 0x8b]];
    let sent = Packet { ports: Some(&ports), ..packet(&list, &payload) };
    let emitted = sent.emit();
    assert_eq!(emitted[120..136], hex("11 01 5e 06 1389 138a 138b 01 04 00000000")[..]);
    assert_eq!(Packet::parse(&emitted), Ok(sent));
    let two = Packet { ports: Some(&ports[..2]), ..sent };
    assert_eq!(refusal(&two.emit()), Refusal::Ports);
}

#[test]
fn what_is_not_of_this_form_is_refused_by_its_reason() {
    let list = list(3);
    let payload = segment(at("fd14::1"), 5001, b"hi");
    let whole = packet(&list, &payload).emit();
    for len in 0..whole.len() {
        assert_eq!(refusal(&whole[..len]), Refusal::Packet, "{len}");
    }
    let mut corrupt = whole.to_vec();
    corrupt[90] ^= 1;
    assert_eq!(refusal(&corrupt), Refusal::Checksum);
    for (place, to, reason) in [
        (6, 60, Refusal::NoHeader),
        (8, 0xff, Refusal::Source),
        (39, 0x15, Refusal::Destination),
        (40, 43, Refusal::NestedRouting),
        (40, 44, Refusal::Extension),
        (40, 60, Refusal::Ports),
        (42, 253, Refusal::NoHeader),
        (43, 1, Refusal::Form),
        (44, 0x20, Refusal::Flags),
        (44, 0x12, Refusal::Flags),
        (45, 0, Refusal::EmptyList),
        (45, 126, Refusal::LongList),
        (45, 4, Refusal::Form),
        (64, 0xf0, Refusal::PastList),
        (64, 0x00, Refusal::Delivered),
        (72, 0xff, Refusal::Listed),
        (87, 3, Refusal::Repeated),
    ] {
        let mut changed = whole.to_vec();
        changed[place] = to;
        seal(&mut changed, 3);
        assert_eq!(refusal(&changed), reason, "{to:#x} at {place}");
    }
}

proptest! {
    #[test]
    fn any_packet_comes_back_as_it_was(
        (count, marks) in (1..=MAX_LIST).prop_flat_map(|count| (Just(count), 0..count, any::<u128>())).prop_map(
            |(count, one, bits)| (count, (0..count).filter(|place| bits >> place & 1 == 1).fold(
                Bitmap::EMPTY.with(one), Bitmap::with)),
        ),
        (traffic, hop_limit, reserved, channel) in (0_u32..1 << 28, any::<u8>(), 0_u8..4, any::<u128>()),
        (stays, with_ports) in any::<(bool, bool)>(),
        payload in proptest::collection::vec(any::<u8>(), 8..50),
    ) {
        let list = list(count);
        let ports: Vec<[u8; 2]> = (0..count).map(|port| [1, port as u8]).collect();
        let ports = with_ports.then_some(&ports[..]);
        let sent = Packet { traffic, hop_limit, reserved, channel, stays, marks, ports, ..packet(&list, &payload) };
        let bytes = sent.emit();
        prop_assert_eq!(Packet::parse(&bytes), Ok(sent));
        prop_assert_eq!(bytes.len() - payload.len(), sent.header_len());
    }

    #[test]
    fn what_is_read_from_any_bytes_is_written_as_the_same_bytes(
        count in 1_usize..6,
        is_anonymous: bool,
        changes in proptest::collection::vec((0_usize..200, any::<u8>()), 0..4),
        noise in proptest::collection::vec(any::<u8>(), 0..120),
    ) {
        let list = list(count);
        let payload = segment(at("fd14::1"), 7, b"hello");
        let mut bytes = Packet { is_anonymous, ..packet(&list, &payload) }.emit();
        for (place, to) in changes {
            let place = place % bytes.len();
            bytes[place] = to;
        }
        seal(&mut bytes, count);
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
