use hopcast_wire::ip;
use proptest::prelude::*;

use super::*;
use crate::meadcast::wire::tests::segment;
use crate::testing::{at, hex};

fn octets(addresses: &[&str]) -> Vec<[u8; 16]> {
    addresses.iter().map(|text| at(text).octets()).collect()
}

/// A list of sections: the branch of each, its router, and its receivers.
fn list(sections: &[(u8, &str, &[&str])]) -> List {
    let mut list = List::default();
    for (branch, router, receivers) in sections {
        list.routers = list.routers.with(list.addresses.len());
        list.branches.push(*branch);
        list.addresses.extend(octets(&[&[*router], *receivers].concat()));
    }
    list
}

fn figure() -> List {
    list(&[
        (0, "2001:db8:0:a::1", &["2001:db8:0:a:1122:3344:5566:7788", "2001:db8:0:a:99aa:bbcc:ddee:ff00"]),
        (3, "2001:db8:0:b::1", &["2001:db8:0:b::2", "2001:db8:0:b::3", "2001:db8:0:c::2"]),
    ])
}

fn packet(list: &List, payload: &[u8]) -> Buffer {
    let destination = Ipv6Addr::from(list.addresses[0]);
    let source = at("2001:db8::1");
    let packet =
        Packet { traffic: 0, hop_limit: 64, source, destination, hops: 5, protocol: ip::UDP, payload };
    let mut buffer = Buffer::copy_from(payload);
    packet.prepend(&mut buffer, list.sections());
    buffer
}

fn film() -> Buffer {
    segment(at("2001:db8::1"), at("2001:db8:0:a::1"), 5001, b"hi")
}

fn refusal(bytes: &[u8]) -> Refusal {
    Packet::parse(bytes, &mut List::default()).unwrap_err()
}

#[test]
fn the_bytes_of_a_list_are_those_of_the_table() {
    let (list, payload) = (figure(), film());
    let bytes = packet(&list, &payload);
    // The first router has 7 bytes in common with the source, its receivers 8 with it, and the second router 7 with it.
    let expected = hex("11 07 fd 00  81 05 0037
         00 70 0a 0000000000000001
         02 88 1122334455667788 99aabbccddeeff00
         03 70 0b 0000000000000001
         82 ff 02 03
         01 7f 0c00000000000000 02 00");
    assert_eq!(bytes[40..104], expected[..]);
    assert_eq!(bytes[104..], payload[..]);
    assert_eq!(overhead(&at("2001:db8::1").octets(), list.sections()), 64);
    let mut read = List::default();
    let parsed = Packet::parse(&bytes, &mut read).unwrap();
    assert_eq!((parsed.hops, parsed.payload, &read), (5, &payload[..], &list));
    assert!(is_short(&bytes));
}

#[test]
fn whatever_is_not_of_this_form_is_refused_by_its_reason() {
    let payload = film();
    let bytes = packet(&figure(), &payload);
    let changed = |place: usize, to: u8| {
        let mut bytes = bytes.to_vec();
        bytes[place] = to;
        refusal(&bytes)
    };
    for (place, to, reason) in [
        (6, 60, Refusal::NoHeader),
        (8, 0xff, Refusal::Source),
        (39, 9, Refusal::Destination),
        (40, 43, Refusal::NestedRouting),
        (40, 60, Refusal::Extension),
        (42, 254, Refusal::NoHeader),
        (43, 1, Refusal::Form),
        (44, 0x82, Refusal::Form),
        (45, 0x80, Refusal::Flags),
        (45, 0x40, Refusal::Flags),
        (47, 0x36, Refusal::Form),
        (47, 0x38, Refusal::Form),
        // The first branch, and one that is no distance.
        (48, 1, Refusal::Form),
        (77, 0x40, Refusal::Form),
        // Fewer bytes in common than there are, and bits that are zero.
        (49, 0x60, Refusal::Form),
        (49, 0x71, Refusal::Form),
        // No receivers, and others than there are.
        (59, 0, Refusal::Unassigned),
        (59, 1, Refusal::Form),
        (59, 3, Refusal::Form),
        // Prefixes that are not the longest.
        (60, 0x78, Refusal::Form),
        (60, 0x87, Refusal::Form),
        // Padding.
        (103, 1, Refusal::Form),
        // The same receiver twice.
        (91, 2, Refusal::Repeated),
    ] {
        assert_eq!(changed(place, to), reason, "{to:#x} at {place}");
    }
    for len in 0..bytes.len() {
        assert_eq!(refusal(&bytes[..len]), Refusal::Packet, "{len}");
    }
    let doubled = list(&[(0, "2001:db8:0:a::1", &["2001:db8:0:a::2", "2001:db8:0:a::2"])]);
    assert_eq!(refusal(&packet(&doubled, &payload)), Refusal::Repeated);
    let local = list(&[(0, "2001:db8:0:a::1", &["fe80::2"])]);
    assert_eq!(refusal(&packet(&local, &payload)), Refusal::Listed);
    let mut none = packet(&list(&[(0, "2001:db8:0:a::1", &["2001:db8:0:a::2"])]), &payload).to_vec();
    none[46..48].fill(0);
    assert_eq!(refusal(&none), Refusal::Form, "padding of more than 7 bytes");
}

#[test]
fn a_list_of_more_addresses_than_any_may_have_is_refused_at_a_router_and_at_a_receiver() {
    let many: Vec<String> = (2..129).map(|number| format!("2001:db8:0:a::{number:x}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let full = list(&[(0, "2001:db8:0:a::1", &many)]);
    let payload = film();
    assert!(Packet::parse(&packet(&full, &payload), &mut List::default()).is_ok());
    // A sender has no list of 129 addresses: one more section is written behind by hand, and one more receiver.
    let sections = packet(&full, &payload)[48..].to_vec();
    let sections = &sections[..sections.len() - payload.len()];
    let padding = usize::from(packet(&full, &payload)[47]);
    let sections = &sections[..sections.len() - padding % 8];
    let read =
        |more: &[u8]| decode(&[sections, more].concat(), &at("2001:db8::1").octets(), &mut List::default());
    assert_eq!(read(&[1, 0x70, 0x0b, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0xff, 2]), Err(Refusal::LongList));
    assert_eq!(read(&[]), Ok(()));
}

/// Lists with addresses that have some bytes in common, in any order.
fn lists() -> impl Strategy<Value = List> {
    let address = (0_u8..3, 0_u8..3, any::<u16>()).prop_map(|(subnet, middle, last)| {
        let mut address = at("2001:db8::").octets();
        (address[7], address[8]) = (subnet, middle);
        address[14..].copy_from_slice(&last.to_be_bytes());
        address
    });
    let receivers = proptest::collection::btree_set(address, 1..7);
    proptest::collection::vec((0..64_u8, receivers), 1..9).prop_map(|sections| {
        let mut list = List::default();
        let mut used = std::collections::BTreeSet::new();
        for (number, (branch, receivers)) in sections.into_iter().enumerate() {
            let receivers: Vec<_> = receivers.into_iter().filter(|receiver| used.insert(*receiver)).collect();
            if receivers.is_empty() {
                continue;
            }
            let is_first = list.addresses.is_empty();
            list.routers = list.routers.with(list.addresses.len());
            list.branches.push(if is_first { 0 } else { branch });
            let mut router = at("2001:db8::").octets();
            (router[7], router[15]) = (number as u8 % 4, number as u8 + 1);
            router[9] = 9;
            list.addresses.push(router);
            list.addresses.extend(receivers);
        }
        list
    })
}

proptest! {
    #[test]
    fn any_list_comes_back_as_it_was(list in lists(), payload in proptest::collection::vec(any::<u8>(), 8..50)) {
        let bytes = packet(&list, &payload);
        let mut read = List::default();
        let parsed = Packet::parse(&bytes, &mut read).unwrap();
        prop_assert_eq!(parsed.payload, &payload[..]);
        prop_assert_eq!(&read, &list);
        let source = at("2001:db8::1").octets();
        prop_assert_eq!(bytes.len(), 40 + overhead(&source, list.sections()) + payload.len());
    }

    #[test]
    fn a_part_of_a_list_is_never_longer_than_the_list(list in lists(), keeps: u32) {
        let source = at("2001:db8::1").octets();
        let part = list.sections().enumerate().filter(|(place, _)| keeps >> place & 1 == 1);
        prop_assert!(overhead(&source, part.map(|(_, section)| section)) <= overhead(&source, list.sections()));
    }

    #[test]
    fn what_is_read_from_any_bytes_is_written_as_the_same_bytes(
        list in lists(),
        changes in proptest::collection::vec((4_usize..250, any::<u8>()), 0..3),
        noise in proptest::collection::vec(any::<u8>(), 0..120),
    ) {
        let mut bytes = packet(&list, &film());
        for (place, to) in changes {
            let place = place % bytes.len();
            bytes[place] = to;
        }
        let mut read = List::default();
        if let Ok(packet) = Packet::parse(&bytes, &mut read) {
            let mut emitted = Buffer::copy_from(packet.payload);
            packet.prepend(&mut emitted, read.sections());
            prop_assert_eq!(&emitted[..], &bytes[..emitted.len()]);
        }
        let head = bytes[..56].to_vec();
        let mut noisy = [&head[..], &noise].concat();
        noisy[4..6].copy_from_slice(&((16 + noise.len()) as u16).to_be_bytes());
        let _ = Packet::parse(&noisy, &mut read);
        noisy[41] = (noise.len() / 8 + 1) as u8;
        noisy[46..48].copy_from_slice(&((8 + noise.len() / 8 * 8) as u16).to_be_bytes());
        let _ = Packet::parse(&noisy, &mut read);
        let _ = Packet::parse(&noise, &mut read);
    }
}
