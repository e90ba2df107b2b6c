//! Each format against bytes that were worked out by hand from the kernel's header, and on random ones.

use std::fmt::Debug;

use hopcast_wire::ethernet::Mac;
use proptest::prelude::*;

use super::batman_v::{self, Elp, Ogm2};
use super::data::{Broadcast, Fragment, Multicast, Place, Unicast, Unicast4Addr, UnicastTvlv};
use super::icmp::{self, Icmp};
use super::ogm::{self, Ogm};
use super::translation::{self, Change, Checksum, TableData, table_data};
use super::tvlv::{self, Container, Gateway, Roaming, Tracker, containers};
use super::*;

const A: Mac = [0x02, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4];
const B: Mac = [0x02, 0xb0, 0xb1, 0xb2, 0xb3, 0xb4];

/// Holds a header to its bytes in both directions, and to its length.
fn assert_bytes<H: Header + PartialEq + Debug>(header: H, bytes: &[u8]) {
    let mut packet = Buffer::copy_from(b"payload");
    header.prepend(&mut packet);
    assert_eq!(&packet[..H::LEN], bytes);
    assert_eq!(H::parse(&packet), Ok((header, &b"payload"[..])));
    for len in 0..bytes.len() {
        assert!(H::parse(&bytes[..len]).is_err(), "{len} bytes");
    }
    let mut other = bytes.to_vec();
    other[1] = 14;
    assert_eq!(H::parse(&other), Err(Malformed { field: "version" }));
    other[..2].copy_from_slice(&[0x45, VERSION]);
    assert_eq!(H::parse(&other), Err(Malformed { field: "packet type" }));
}

#[test]
fn an_originator_message_is_24_bytes() {
    let ogm = Ogm {
        ttl: 50,
        flags: ogm::DIRECT_LINK,
        seqno: 0x0102_0304,
        originator: A,
        previous_sender: B,
        tq: 225,
        tvlv_len: 20,
    };
    assert_bytes(
        ogm,
        b"\x00\x0f\x32\x04\x01\x02\x03\x04\x02\xa0\xa1\xa2\xa3\xa4\x02\xb0\xb1\xb2\xb3\xb4\x00\xe1\x00\x14",
    );
}

#[test]
fn packets_of_version_five_are_16_and_20_bytes() {
    assert_bytes(
        Elp { originator: A, seqno: 7, interval: 500 },
        b"\x03\x0f\x02\xa0\xa1\xa2\xa3\xa4\x00\x00\x00\x07\x00\x00\x01\xf4",
    );
    assert_bytes(
        Ogm2 { ttl: 50, flags: 0, seqno: 9, originator: B, tvlv_len: 4, throughput: 10_000 },
        b"\x04\x0f\x32\x00\x00\x00\x00\x09\x02\xb0\xb1\xb2\xb3\xb4\x00\x04\x00\x00\x27\x10",
    );
}

#[test]
fn packets_of_data_are_as_long_as_the_kernels() {
    let unicast = b"\x40\x0f\x32\x05\x02\xa0\xa1\xa2\xa3\xa4";
    assert_bytes(Unicast { ttl: 50, ttvn: 5, destination: A }, unicast);
    let four = Unicast4Addr { ttl: 50, ttvn: 5, destination: A, source: B, subtype: 1 };
    assert_bytes(four, b"\x42\x0f\x32\x05\x02\xa0\xa1\xa2\xa3\xa4\x02\xb0\xb1\xb2\xb3\xb4\x01\x00");
    let broadcast = Broadcast { ttl: 49, seqno: 0xffff_fffe, originator: B };
    assert_bytes(broadcast, b"\x01\x0f\x31\x00\xff\xff\xff\xfe\x02\xb0\xb1\xb2\xb3\xb4");
    let fragment = Fragment {
        ttl: 50,
        place: Place { number: 15, priority: 6 },
        destination: A,
        originator: B,
        seqno: 0x1234,
        total_len: 1510,
    };
    assert_bytes(
        fragment,
        b"\x41\x0f\x32\xfc\x02\xa0\xa1\xa2\xa3\xa4\x02\xb0\xb1\xb2\xb3\xb4\x12\x34\x05\xe6",
    );
    let containers = UnicastTvlv { ttl: 50, destination: A, source: B, tvlv_len: 12 };
    assert_bytes(
        containers,
        b"\x44\x0f\x32\x00\x02\xa0\xa1\xa2\xa3\xa4\x02\xb0\xb1\xb2\xb3\xb4\x00\x0c\x00\x00",
    );
    assert_bytes(Multicast { ttl: 50, tvlv_len: 0x0102 }, b"\x05\x0f\x32\x00\x01\x02");
}

#[test]
fn the_meshs_echo_and_errors_are_20_bytes() {
    for (kind, byte) in [
        (icmp::ECHO_REQUEST, 8),
        (icmp::ECHO_REPLY, 0),
        (icmp::TTL_EXCEEDED, 11),
        (icmp::DESTINATION_UNREACHABLE, 3),
    ] {
        let mut bytes = *b"\x43\x0f\x32\x00\x02\xa0\xa1\xa2\xa3\xa4\x02\xb0\xb1\xb2\xb3\xb4\x09\x02\x00\x03";
        bytes[3] = byte;
        assert_bytes(
            Icmp { ttl: 50, kind, destination: A, originator: B, uid: 9, recorded: 2, seqno: 3 },
            &bytes,
        );
    }
}

#[test]
fn a_packet_holds_several_messages_and_ends_before_padding() {
    let message = |seqno, tvlv_len| Ogm {
        ttl: 50,
        flags: 0,
        seqno,
        originator: A,
        previous_sender: A,
        tq: MAX_TQ,
        tvlv_len,
    };
    let mut packet = Vec::new();
    for (seqno, value) in [(1, &b""[..]), (2, b"containers"), (3, b"")] {
        let mut one = Buffer::copy_from(value);
        message(seqno, value.len() as u16).prepend(&mut one);
        packet.extend(&one[..]);
    }
    packet.extend([0; 40]);
    let found: Vec<_> = ogm::messages(&packet).unwrap().map(|(ogm, value)| (ogm.seqno, value)).collect();
    assert_eq!(found, [(1, &b""[..]), (2, b"containers"), (3, b"")]);
    // A message whose containers are cut off ends the packet.
    let cut = ogm::messages(&packet[..24 + 24 + 8]).unwrap().count();
    assert_eq!(cut, 1);
    // So does one whose containers have an odd length.
    packet[24 + 23] = 9;
    assert_eq!(ogm::messages(&packet).unwrap().count(), 1);
    assert_eq!(ogm::messages(&packet[24..]).err(), Some(Malformed { field: "tvlv_len" }));
    let mut v = vec![0; Ogm2::LEN + 4];
    Ogm2 { ttl: 50, flags: 0, seqno: 9, originator: A, tvlv_len: 3, throughput: 1 }.emit(&mut v);
    assert_eq!(batman_v::messages(&v).err(), Some(Malformed { field: "tvlv_len" }));
    assert!(ogm::messages(&packet[..23]).is_err());
}

#[test]
fn containers_are_read_up_to_one_that_is_cut_off() {
    let mut bytes = Vec::new();
    tvlv::put(&mut bytes, tvlv::ARP_TABLE, 1, b"");
    tvlv::put(&mut bytes, tvlv::GATEWAY, 1, &Gateway { down: 100, up: 20 }.bytes());
    tvlv::put(&mut bytes, tvlv::MULTICAST, 2, &tvlv::multicast::bytes(0x38));
    assert_eq!(
        bytes,
        b"\x02\x01\x00\x00\x01\x01\x00\x08\x00\x00\x00\x64\x00\x00\x00\x14\x06\x02\x00\x04\x38\x00\x00\x00"
    );
    let found: Vec<_> = containers(&bytes).collect();
    assert_eq!(found[0], Container { kind: tvlv::ARP_TABLE, version: 1, value: b"" });
    assert_eq!(Gateway::parse(found[1].value), Ok(Gateway { down: 100, up: 20 }));
    let flags = tvlv::multicast::parse(found[2].value);
    use tvlv::multicast::{HAS_MULTICAST_PACKETS, WANT_NO_ROUTER_IPV4, WANT_NO_ROUTER_IPV6};
    assert_eq!(flags, Ok(WANT_NO_ROUTER_IPV4 | WANT_NO_ROUTER_IPV6 | HAS_MULTICAST_PACKETS));
    assert_eq!(containers(&bytes[..bytes.len() - 1]).count(), 2);
    // Or has an odd length.
    bytes[7] = 7;
    assert_eq!(containers(&bytes).count(), 1);
}

#[test]
fn a_tracker_is_padded_where_its_destinations_are_even() {
    let bytes = |destinations: &[Mac]| {
        let mut value = Vec::new();
        Tracker::put(&mut value, destinations);
        value
    };
    assert_eq!(bytes(&[A]), b"\x00\x01\x02\xa0\xa1\xa2\xa3\xa4");
    assert_eq!(bytes(&[A, B]), b"\x00\x02\x02\xa0\xa1\xa2\xa3\xa4\x02\xb0\xb1\xb2\xb3\xb4\x00\x00");
    let value = bytes(&[A, B]);
    assert_eq!(Tracker::parse(&value).unwrap().destinations().collect::<Vec<_>>(), [A, B]);
    assert!(Tracker::parse(&value[..13]).is_err());
    // Packet header, container header and tracker: 12 + 6n bytes, and 2 more if n is even.
    for n in 1..9 {
        let tracker = bytes(&vec![A; n]).len();
        assert_eq!(Multicast::LEN + tvlv::HEADER + tracker, 12 + 6 * n + if n % 2 == 0 { 2 } else { 0 });
    }
}

#[test]
fn a_table_is_its_checksums_and_then_its_changes() {
    let checksums =
        [Checksum { crc: 0xdead_beef, vlan: 0 }, Checksum { crc: 1, vlan: 7 | translation::TAGGED }];
    let changes = [Change { flags: translation::DELETED | translation::ROAMED, address: A, vlan: 0x8007 }];
    let value = table_data(translation::DIFFERENCE, 3, checksums.iter().copied(), changes.iter().copied());
    assert_eq!(
        value,
        b"\x01\x03\x00\x02\xde\xad\xbe\xef\x00\x00\x00\x00\x00\x00\x00\x01\x80\x07\x00\x00\
          \x03\x00\x00\x00\x02\xa0\xa1\xa2\xa3\xa4\x80\x07"
    );
    let data = TableData::parse(&value).unwrap();
    assert_eq!((data.flags, data.ttvn), (translation::DIFFERENCE, 3));
    assert!(data.checksums().eq(checksums) && data.changes().eq(changes));
    assert_eq!(TableData::parse(&value[..value.len() - 1]).unwrap().changes().len(), 0);
    assert_eq!(TableData::parse(&value[..19]), Err(Malformed { field: "checksums" }));
    let roaming = Roaming { client: A, vlan: 0x8007 };
    assert_eq!(roaming.bytes(), *b"\x02\xa0\xa1\xa2\xa3\xa4\x80\x07");
    assert_eq!(Roaming::parse(&roaming.bytes()), Ok(roaming));
}

#[test]
fn packets_that_the_kernel_has_sent_are_read() {
    use crate::captured::{ECHO, ECHO_REQUEST, OGM, TABLE, bytes};

    let packet = bytes(OGM);
    let found: Vec<_> = ogm::messages(&packet).unwrap().collect();
    let [(message, value)] = &found[..] else { panic!("{found:?}") };
    let first = [2, 0, 0, 0, 0, 2];
    assert_eq!((message.ttl, message.flags, message.seqno), (50, 0, 0xd2b4_a7b2));
    assert_eq!((message.originator, message.previous_sender, message.tq), (first, first, MAX_TQ));
    let kinds: Vec<_> =
        containers(value).map(|found| (found.kind, found.version, found.value.len())).collect();
    assert_eq!(kinds, [(tvlv::TRANSLATION, 1, 88), (tvlv::MULTICAST, 2, 4), (tvlv::ARP_TABLE, 1, 0)]);
    assert_eq!(tvlv::multicast::parse(containers(value).nth(1).unwrap().value), Ok(0x38));
    let table = TableData::parse(containers(value).next().unwrap().value).unwrap();
    assert_eq!((table.flags, table.ttvn), (translation::DIFFERENCE, 2));
    let vlans: Vec<_> = table.changes().map(|change| (change.flags, change.vlan)).collect();
    assert_eq!(vlans, [(0, 0x8000), (0, 0x8007), (0, 0), (0, 0), (0, 0)]);

    let packet = bytes(ECHO);
    let (message, _) = ogm::messages(&packet).unwrap().next().unwrap();
    assert_eq!((message.ttl, message.flags), (49, ogm::DIRECT_LINK));
    assert_eq!(message.originator, [2, 0, 0, 0, 0, 0xa1]);

    let packet = bytes(TABLE);
    let (header, value) = UnicastTvlv::parse(&packet).unwrap();
    assert_eq!(
        (header.destination[5], header.source[5], usize::from(header.tvlv_len)),
        (0xa1, 0x37, value.len())
    );
    let table = TableData::parse(containers(value).next().unwrap().value).unwrap();
    assert_eq!(table.flags, translation::RESPONSE | translation::FULL_TABLE);
    assert_eq!((table.checksums().len(), table.changes().len()), (3, 6));

    let (request, _) = Icmp::parse(&bytes(ECHO_REQUEST)).map(|(header, rest)| (header, rest.len())).unwrap();
    assert_eq!((request.kind, request.ttl, request.seqno), (icmp::ECHO_REQUEST, 49, 1));
}

proptest! {
    #[test]
    fn no_bytes_make_a_parser_panic_and_what_parses_is_written_again(
        kind in prop_oneof![0_u8..8, 0x40_u8..0x46],
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        fn again<H: Header>(packet: &[u8]) -> Result<(), TestCaseError> {
            if let Ok((header, payload)) = H::parse(packet) {
                let mut buffer = Buffer::copy_from(payload);
                header.prepend(&mut buffer);
                prop_assert_eq!(buffer.len(), packet.len());
                let (found, _) = H::parse(&buffer).unwrap();
                let mut other = vec![0; H::LEN];
                found.emit(&mut other);
                prop_assert_eq!(&other[..], &buffer[..H::LEN]);
            }
            Ok(())
        }
        let mut packet = vec![kind, VERSION];
        packet.extend(rest);
        again::<Ogm>(&packet)?;
        again::<Elp>(&packet)?;
        again::<Ogm2>(&packet)?;
        again::<Unicast>(&packet)?;
        again::<Unicast4Addr>(&packet)?;
        again::<Broadcast>(&packet)?;
        again::<Fragment>(&packet)?;
        again::<UnicastTvlv>(&packet)?;
        again::<Multicast>(&packet)?;
        again::<Icmp>(&packet)?;
        if let Ok(messages) = ogm::messages(&packet) {
            let bytes: usize = messages.map(|(_, value)| Ogm::LEN + value.len()).sum();
            prop_assert!(bytes <= packet.len());
        }
        if let Ok(messages) = batman_v::messages(&packet) {
            let bytes: usize = messages.map(|(_, value)| Ogm2::LEN + value.len()).sum();
            prop_assert!(bytes <= packet.len());
        }
        let values: usize = containers(&packet).map(|container| tvlv::HEADER + container.value.len()).sum();
        prop_assert!(values <= packet.len());
        for container in containers(&packet[2..]) {
            let _ = (Gateway::parse(container.value), Roaming::parse(container.value));
            let _ = Tracker::parse(container.value).map(|tracker| tracker.destinations().count());
        }
        if let Ok(data) = TableData::parse(&packet[2..]) {
            let value = table_data(data.flags, data.ttvn, data.checksums(), data.changes());
            let written = TableData::parse(&value).unwrap();
            prop_assert!(written.checksums().eq(data.checksums()) && written.changes().eq(data.changes()));
        }
    }
}
