//! IGMP and MLD: bytes by hand, round trips, and what is malformed.

#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::{Buffer, Duration};
use hopcast_wire::membership::{self, Message, Query, RecordType, Version};
use hopcast_wire::{igmp, ip, mld, router_alert};
use proptest::prelude::*;

/// A group-and-source-specific query for 239.1.2.3 and 10.0.0.7, from 10.0.0.1; put together by hand, and read by
/// Wireshark as such: maximum response time 1 s, S flag set, QRV 2, QQIC 125.
const V4_QUERY: [u8; 40] = [
    0x46, 0xc0, 0x00, 0x28, 0x00, 0x00, 0x40, 0x00, 0x01, 0x02, 0xe9, 0x0a, 0x0a, 0x00, 0x00, 0x01, 0xef,
    0x01, 0x02, 0x03, 0x94, 0x04, 0x00, 0x00, 0x11, 0x0a, 0xe9, 0x6b, 0xef, 0x01, 0x02, 0x03, 0x0a, 0x7d,
    0x00, 0x01, 0x0a, 0x00, 0x00, 0x07,
];

/// A report from 10.0.0.7 that it has left 239.1.2.3 (TO_IN of nothing) and takes 232.1.2.3 from 10.0.0.1 (ALLOW, with
/// a word of auxiliary data); by hand, and read by Wireshark as such.
const V4_REPORT: [u8; 60] = [
    0x46, 0xc0, 0x00, 0x3c, 0x00, 0x00, 0x40, 0x00, 0x01, 0x02, 0xf9, 0xde, 0x0a, 0x00, 0x00, 0x07, 0xe0,
    0x00, 0x00, 0x16, 0x94, 0x04, 0x00, 0x00, 0x22, 0x00, 0x53, 0x53, 0x00, 0x00, 0x00, 0x02, 0x03, 0x00,
    0x00, 0x00, 0xef, 0x01, 0x02, 0x03, 0x05, 0x01, 0x00, 0x01, 0xe8, 0x01, 0x02, 0x03, 0x0a, 0x00, 0x00,
    0x01, 0xde, 0xad, 0xbe, 0xef, 0x00, 0x00, 0x00, 0x00,
];

/// A general query from fe80::1; by hand, and read by Wireshark as such: maximum response time 10 s, QRV 2, QQIC 125.
const V6_QUERY: [u8; 76] = [
    0x60, 0x00, 0x00, 0x00, 0x00, 0x24, 0x00, 0x01, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01,
    0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x3a, 0x00, 0x05, 0x02, 0x00, 0x00, 0x01, 0x00,
    0x82, 0x00, 0x56, 0x96, 0x27, 0x10, 0x00, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02,
    0x7d, 0x00, 0x00,
];

fn v4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn read(packet: &[u8]) -> Message<'_> {
    membership::parse(packet, &ip::parse(packet).unwrap()).unwrap().unwrap()
}

fn why_not(packet: &[u8]) -> String {
    membership::parse(packet, &ip::parse(packet).unwrap()).unwrap_err().to_string()
}

#[test]
fn a_query_for_a_group_and_sources_reads_field_by_field_and_is_written_the_same() {
    let Message::Query(query, sources) = read(&V4_QUERY) else { panic!("a query") };
    let expected = Query {
        version: Version::V3,
        group: Some(v4("239.1.2.3").into()),
        max_response: Duration::from_secs(1),
        suppress: true,
        robustness: 2,
        interval: Duration::from_secs(125),
    };
    assert_eq!(query, expected);
    assert_eq!(sources.collect::<Vec<_>>(), [IpAddr::V4(v4("10.0.0.7"))]);
    let mut again = Buffer::default();
    igmp::prepend_query(&mut again, &query, &[v4("10.0.0.7")]);
    router_alert::prepend_v4(&mut again, v4("10.0.0.1"), v4("239.1.2.3"));
    assert_eq!(again[..], V4_QUERY);
    assert!(router_alert::is_present(&V4_QUERY));
}

#[test]
fn a_general_query_of_mld_reads_field_by_field_and_is_written_the_same() {
    let Message::Query(query, sources) = read(&V6_QUERY) else { panic!("a query") };
    let expected = Query {
        version: Version::V3,
        group: None,
        max_response: Duration::from_secs(10),
        suppress: false,
        robustness: 2,
        interval: Duration::from_secs(125),
    };
    assert_eq!((query, sources.len()), (expected, 0));
    let mut again = Buffer::default();
    mld::prepend_query(&mut again, v6("fe80::1"), v6("ff02::1"), &query, &[]);
    router_alert::prepend_v6(&mut again, v6("fe80::1"), v6("ff02::1"));
    assert_eq!(again[..], V6_QUERY);
    assert!(router_alert::is_present(&V6_QUERY));
}

#[test]
fn the_records_of_a_report_are_read_past_their_auxiliary_data() {
    let Message::Report(records) = read(&V4_REPORT) else { panic!("a report") };
    let records: Vec<_> = records.map(|record| (record.kind, record.group, record.sources.len())).collect();
    let left = (RecordType::ToInclude, IpAddr::V4(v4("239.1.2.3")), 0);
    let joined = (RecordType::Allow, IpAddr::V4(v4("232.1.2.3")), 1);
    assert_eq!(records, [left, joined]);
}

#[test]
fn the_version_of_a_query_is_told_by_its_length() {
    let query = |bytes: &[u8]| {
        let mut packet = sealed(bytes);
        router_alert::prepend_v4(&mut packet, v4("10.0.0.1"), v4("224.0.0.1"));
        let header = ip::parse(&packet).unwrap();
        membership::parse(&packet, &header).unwrap().map(|message| match message {
            Message::Query(query, _) => (query.version, query.max_response.as_millis()),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(query(&[0x11, 0, 0, 0, 0, 0, 0, 0]), Some((Version::V1, 10_000)));
    // Not a floating-point number before version 3.
    assert_eq!(query(&[0x11, 200, 0, 0, 0, 0, 0, 0]), Some((Version::V2, 20_000)));
    assert_eq!(query(&[0x11, 200, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0]), Some((Version::V3, 307_200)));
    for len in 9..12 {
        assert_eq!(
            query(&[0x11, 200, 0, 0, 0, 0, 0, 0, 2, 125, 0][..len]),
            None,
            "no version has {len} bytes"
        );
    }

    let mld = |len: usize| {
        let mut bytes = vec![0; len];
        bytes[..6].copy_from_slice(&[130, 0, 0, 0, 0x80, 0x01]);
        let packet = sealed_v6(&bytes);
        mld::parse(v6("fe80::1"), v6("ff02::1"), &packet).unwrap().map(|message| match message {
            Message::Query(query, _) => (query.version, query.max_response.as_millis()),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(mld(24), Some((Version::V2, 0x8001)));
    assert_eq!((mld(25), mld(27)), (None, None));
    assert_eq!(mld(28), Some((Version::V3, 0x1001 << 3)));
}

#[test]
fn messages_of_older_versions_are_read_and_written() {
    let group = v4("239.1.2.3");
    let mut report = Buffer::default();
    igmp::prepend_older_report(&mut report, Version::V2, group);
    assert_eq!(report[..], [0x16, 0, 0xf8, 0xfa, 239, 1, 2, 3]);
    let read = igmp::parse(&report).unwrap();
    assert!(matches!(read, Some(Message::OlderReport(Version::V2, found)) if found == group));

    let mut report = Buffer::default();
    igmp::prepend_older_report(&mut report, Version::V1, group);
    let read = igmp::parse(&report).unwrap();
    assert!(matches!(read, Some(Message::OlderReport(Version::V1, found)) if found == group));

    let mut leave = Buffer::default();
    igmp::prepend_leave(&mut leave, group);
    assert_eq!(leave[0], 0x17);
    assert!(matches!(igmp::parse(&leave).unwrap(), Some(Message::Leave(found)) if found == group));

    let (source, group) = (v6("fe80::7"), v6("ff15::7"));
    let mut report = Buffer::default();
    mld::prepend_older_report(&mut report, source, group, group);
    let read = mld::parse(source, group, &report).unwrap();
    assert!(matches!(read, Some(Message::OlderReport(Version::V2, found)) if found == group));
    let mut done = Buffer::default();
    mld::prepend_done(&mut done, source, v6("ff02::2"), group);
    assert_eq!((done.len(), done[0]), (24, 132));
    let read = mld::parse(source, v6("ff02::2"), &done).unwrap();
    assert!(matches!(read, Some(Message::Leave(found)) if found == group));
}

#[test]
fn what_is_cut_off_or_does_not_fit_says_where() {
    let told = |bytes: &[u8]| igmp::parse(&sealed(bytes)).unwrap_err().to_string();
    assert_eq!(told(&[0x11, 0, 0, 0, 0, 0, 0]), "IGMP header: needs 8 bytes, there are 7");
    assert_eq!(
        told(&[0x11, 0, 0, 0, 0, 0, 0, 0, 2, 125, 0, 2, 10, 0, 0, 1]),
        "IGMP sources: needs 8 bytes, there are 4"
    );
    assert_eq!(told(&[0x11, 0, 0, 0, 10, 0, 0, 1]), "IGMP group address: must not be 167772161");
    let record = [0x22, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 2, 239, 1, 2, 3, 10, 0, 0, 1];
    assert_eq!(told(&record), "IGMP group record: needs 16 bytes, there are 12");
    assert_eq!(told(&record[..10]), "IGMP group record: needs 8 bytes, there are 2");
    let mut more = record[..16].to_vec();
    more[11] = 0;
    more[7] = 2;
    assert_eq!(told(&more), "IGMP group record: needs 8 bytes, there are 0");
    let mut auxiliary = record;
    auxiliary[9..12].copy_from_slice(&[200, 0, 1]);
    assert_eq!(told(&auxiliary), "IGMP group record: needs 812 bytes, there are 12");
    let mut flipped = V4_QUERY[24..].to_vec();
    flipped[1] ^= 1;
    assert!(igmp::parse(&flipped).unwrap_err().is_corrupt());
}

#[test]
fn a_packet_from_beyond_the_link_is_malformed() {
    let with = |bytes: &[u8], at: usize, byte: u8| {
        let mut packet = bytes.to_vec();
        packet[at] = byte;
        if packet[0] >> 4 == 4 {
            packet[10..12].fill(0);
            let sum = hopcast_wire::checksum::checksum(&packet[..24]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packet
    };
    assert_eq!(why_not(&with(&V4_QUERY, 8, 2)), "IGMP hop limit: must not be 2");
    assert_eq!(why_not(&with(&V6_QUERY, 7, 255)), "MLD hop limit: must not be 255");
    // Another option of the same length in place of Router Alert.
    assert_eq!(why_not(&with(&V6_QUERY, 42, 1)), "MLD Router Alert: must not be 0");

    let from = |source: &str, report: bool| {
        let mut packet = Buffer::default();
        if report {
            mld::prepend_report(&mut packet, v6(source), v6("ff02::16"), &[]);
        } else {
            let Message::Query(query, _) = read(&V6_QUERY) else { panic!("a query") };
            mld::prepend_query(&mut packet, v6(source), v6("ff02::16"), &query, &[]);
        }
        router_alert::prepend_v6(&mut packet, v6(source), v6("ff02::16"));
        membership::parse(&packet, &ip::parse(&packet).unwrap()).is_ok()
    };
    assert!(from("fe80::1", true) && from("fe80::1", false) && from("::", true));
    assert!(!from("::", false) && !from("fd00::1", true) && !from("fd00::1", false));
}

#[test]
fn a_record_of_an_unknown_type_is_passed_over() {
    let bytes = [
        0x22, 0, 0, 0, 0, 0, 0, 2, // Two records.
        9, 0, 0, 1, 239, 0, 0, 1, 10, 0, 0, 1, // Of a type that there is not.
        4, 0, 0, 0, 239, 0, 0, 2,
    ];
    let bytes = sealed(&bytes);
    let Some(Message::Report(records)) = igmp::parse(&bytes).unwrap() else { panic!("a report") };
    let groups: Vec<_> = records.map(|record| record.group).collect();
    assert_eq!(groups, [IpAddr::V4(v4("239.0.0.2"))]);
}

#[test]
fn a_router_alert_is_found_behind_other_options() {
    let mut header = [0; 28];
    header[0] = 0x47;
    header[20..28].copy_from_slice(&[1, 0x44, 3, 0, 0x94, 4, 0, 0]);
    assert!(router_alert::is_present(&header));
    header[22] = 0;
    assert!(!router_alert::is_present(&header), "an option of no length");
    header[20] = 0;
    assert!(!router_alert::is_present(&header), "the options have ended");
    let mut packet = [0; 56];
    packet[0] = 0x60;
    packet[40..56].copy_from_slice(&[58, 1, 0, 1, 1, 0, 5, 2, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert!(router_alert::is_present(&packet));
    assert!(!router_alert::is_present(&packet[..48]));
}

/// The message with its checksum.
fn sealed(bytes: &[u8]) -> Buffer {
    let mut bytes = Buffer::copy_from(bytes);
    bytes[2..4].fill(0);
    let sum = hopcast_wire::checksum::checksum(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// The message with its checksum between fe80::1 and ff02::1.
fn sealed_v6(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= 4 {
        bytes[2..4].fill(0);
        let (from, to) = (v6("fe80::1").into(), v6("ff02::1").into());
        let sum = hopcast_wire::checksum::transport(from, to, ip::ICMPV6, &bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

fn kinds() -> impl Strategy<Value = RecordType> {
    use RecordType as R;
    prop::sample::select(vec![R::IsInclude, R::IsExclude, R::ToInclude, R::ToExclude, R::Allow, R::Block])
}

proptest! {
    #[test]
    fn a_report_reads_as_it_was_written(
        is_v6: bool,
        wanted in prop::collection::vec((kinds(), any::<u64>(), prop::collection::vec(any::<u64>(), 0..9)), 0..9),
    ) {
        let address = |number: u64| -> IpAddr {
            if is_v6 { Ipv6Addr::from(u128::from(number) << 32).into() } else { Ipv4Addr::from(number as u32).into() }
        };
        let wanted: Vec<(RecordType, IpAddr, Vec<IpAddr>)> = wanted
            .into_iter()
            .map(|(kind, group, sources)| (kind, address(group), sources.into_iter().map(address).collect()))
            .collect();
        let records: Vec<_> = wanted.iter().map(|(kind, group, sources)| (*kind, *group, &sources[..])).collect();
        let mut packet = Buffer::default();
        if is_v6 {
            mld::prepend_report(&mut packet, v6("fe80::7"), v6("ff02::16"), &records);
            router_alert::prepend_v6(&mut packet, v6("fe80::7"), v6("ff02::16"));
        } else {
            igmp::prepend_report(&mut packet, &records);
            router_alert::prepend_v4(&mut packet, v4("10.0.0.7"), v4("224.0.0.22"));
        }
        let Message::Report(read) = read(&packet) else { panic!("a report") };
        let read: Vec<_> = read.map(|record| (record.kind, record.group, record.sources.collect())).collect();
        prop_assert_eq!(read, wanted);
    }

    #[test]
    fn a_query_reads_as_it_was_written(
        is_v6: bool, number in 0..3u8, specific: bool, tenths in 1..128u64, suppress: bool, robustness in 0..8u8,
        seconds in 0..128u64, sources in prop::collection::vec(any::<u64>(), 0..9),
    ) {
        let version = [Version::V1, Version::V2, Version::V3][usize::from(number)];
        prop_assume!(!(is_v6 && version == Version::V1));
        let group = if is_v6 { IpAddr::V6(v6("ff15::7")) } else { v4("239.1.2.3").into() };
        let current = version == Version::V3;
        let query = Query {
            version,
            group: specific.then_some(group),
            max_response: Duration::from_millis(if version == Version::V1 { 10_000 } else { 100 * tenths }),
            suppress: suppress && current,
            robustness: if current { robustness } else { 0 },
            interval: Duration::from_secs(if current { seconds } else { 0 }),
        };
        let mut bytes = Buffer::default();
        let (source, destination) = (v6("fe80::1"), v6("ff02::1"));
        let wanted: Vec<IpAddr> = if is_v6 {
            let sources: Vec<_> = sources.iter().map(|&source| Ipv6Addr::from(u128::from(source))).collect();
            mld::prepend_query(&mut bytes, source, destination, &query, &sources);
            sources.into_iter().map(IpAddr::from).collect()
        } else {
            let sources: Vec<_> = sources.iter().map(|&source| Ipv4Addr::from(source as u32)).collect();
            igmp::prepend_query(&mut bytes, &query, &sources);
            sources.into_iter().map(IpAddr::from).collect()
        };
        let message = if is_v6 { mld::parse(source, destination, &bytes) } else { igmp::parse(&bytes) };
        let Ok(Some(Message::Query(read, sources))) = message else { panic!("a query") };
        prop_assert_eq!(read, query);
        prop_assert_eq!(sources.collect::<Vec<_>>(), if current { wanted } else { Vec::new() });
    }

    #[test]
    fn no_bytes_panic_and_what_reads_ends(
        kind in prop::sample::select(vec![0x11u8, 0x12, 0x16, 0x17, 0x22, 130, 131, 132, 143]),
        mut bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..3u8], 4..90),
    ) {
        bytes[0] = kind;
        let igmp = sealed(&bytes);
        let mld = sealed_v6(&bytes);
        for message in [igmp::parse(&igmp), mld::parse(v6("fe80::1"), v6("ff02::1"), &mld)].into_iter().flatten() {
            match message {
                Some(Message::Query(_, sources)) => prop_assert!(sources.count() <= 90),
                Some(Message::Report(records)) => {
                    prop_assert!(records.map(|record| 8 + 4 * record.sources.count()).sum::<usize>() <= 90);
                }
                _ => {}
            }
        }
        let _ = router_alert::is_present(&bytes);
        bytes[0] = 0x4f;
        let _ = router_alert::is_present(&bytes);
        bytes[0] = 0x60;
        let _ = router_alert::is_present(&bytes);
    }
}
