//! No frame makes a format panic or reach past its end, and what is read is what is written.
//!
//! The first byte says whether lengths and checksums are mended; the rest is a frame.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hopcast_core::Buffer;
use hopcast_fuzz::internet::mend;
use hopcast_wire::{ethernet, icmp, igmp, ip, membership, mld, router_alert, udp};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&how, frame)) = data.split_first() else { return };
    let mut frame = frame.to_vec();
    if how & 1 == 1 && frame.len() > ethernet::HEADER {
        mend(&mut frame[ethernet::HEADER..]);
    }
    read_frame(&frame);
});

fn read_frame(frame: &[u8]) {
    let Ok(header) = ethernet::parse(frame) else {
        assert!(frame.len() < ethernet::HEADER);
        return;
    };
    let mut again = Buffer::copy_from(&frame[ethernet::HEADER..]);
    ethernet::prepend(&mut again, header);
    assert_eq!(&again[..], frame);
    read_packet(&frame[ethernet::HEADER..]);
}

fn read_packet(packet: &[u8]) {
    let quoted = ip::parse_quoted(packet);
    let Ok(header) = ip::parse(packet) else { return };
    assert_eq!(quoted, Ok(header), "a whole packet quoted is the same packet");
    assert!(header.version.header_len() <= header.header_len && header.header_len <= header.total_len);
    assert!(header.total_len <= packet.len());
    // The quotation of an error still says who it was for.
    if let Ok(quoted) = ip::parse_quoted(icmp::quote(header.version, packet)) {
        assert_eq!((quoted.source, quoted.destination), (header.source, header.destination));
    }

    let mut passed = packet.to_vec();
    if ip::decrement_hop_limit(&mut passed) {
        let hop_limit = header.hop_limit - 1;
        assert!(hop_limit > 0);
        assert_eq!(ip::parse(&passed), Ok(ip::Header { hop_limit, ..header }));
    } else {
        assert!(header.hop_limit < 2);
        assert_eq!(passed, packet);
    }

    let segment = &packet[header.payload()];
    let _ = ip::ports(segment);
    read_udp(&header, segment);
    read_icmp(&header, segment);
    read_membership(&header, packet);
}

fn read_udp(header: &ip::Header, segment: &[u8]) {
    let Ok(udp) = udp::parse(header.source, header.destination, segment) else { return };
    assert!(udp::HEADER <= udp.len && udp.len <= segment.len());
    let mut again = Buffer::copy_from(&segment[udp::HEADER..udp.len]);
    let (source, destination) =
        (SocketAddr::new(header.source, udp.source), SocketAddr::new(header.destination, udp.destination));
    udp::prepend(&mut again, source, destination);
    // All but the checksum, which need not have been there.
    assert_eq!((&again[..6], &again[8..]), (&segment[..6], &segment[8..udp.len]));
    assert_eq!(udp::parse(header.source, header.destination, &again), Ok(udp));
}

fn read_icmp(header: &ip::Header, segment: &[u8]) {
    let Ok(message) = icmp::parse(header.source, header.destination, segment) else { return };
    let mut again = Buffer::copy_from(&segment[icmp::HEADER..]);
    icmp::prepend(&mut again, header.source, header.destination, message);
    assert_eq!(icmp::parse(header.source, header.destination, &again), Ok(message));
    assert_eq!(again.len(), segment.len());
    if message.is_error(header.version) {
        let _ = ip::parse_quoted(&segment[icmp::HEADER..]);
    }
}

fn read_membership(header: &ip::Header, packet: &[u8]) {
    use membership::Message;
    let Ok(Some(message)) = membership::parse(packet, header) else { return };
    let mut again = Buffer::default();
    let segment = &packet[header.payload()];
    match (message, header.source, header.destination) {
        (Message::Query(query, sources), IpAddr::V4(_), _) => {
            let sources: Vec<_> = sources.filter_map(v4).collect();
            igmp::prepend_query(&mut again, &query, &sources);
        }
        (Message::Query(query, sources), IpAddr::V6(from), IpAddr::V6(to)) => {
            let sources: Vec<_> = sources.filter_map(v6).collect();
            mld::prepend_query(&mut again, from, to, &query, &sources);
        }
        (Message::Report(records), ..) => {
            let bytes: usize = records.map(|record| 8 + 4 * record.sources.count()).sum();
            assert!(bytes <= segment.len());
            return;
        }
        (Message::OlderReport(version, IpAddr::V4(group)), ..) => {
            igmp::prepend_older_report(&mut again, version, group);
        }
        (Message::Leave(IpAddr::V4(group)), ..) => igmp::prepend_leave(&mut again, group),
        (Message::OlderReport(_, IpAddr::V6(group)), IpAddr::V6(from), IpAddr::V6(to)) => {
            mld::prepend_older_report(&mut again, from, to, group);
        }
        (Message::Leave(IpAddr::V6(group)), IpAddr::V6(from), IpAddr::V6(to)) => {
            mld::prepend_done(&mut again, from, to, group);
        }
        other => panic!("addresses of two versions: {other:?}"),
    }
    // Bytes behind the last field and reserved bits mean nothing, and are not written again.
    assert!(again.len() <= segment.len());
    match (header.source, header.destination) {
        (IpAddr::V6(from), IpAddr::V6(to)) => router_alert::prepend_v6(&mut again, from, to),
        (IpAddr::V4(from), IpAddr::V4(to)) => router_alert::prepend_v4(&mut again, from, to),
        _ => panic!("a packet of two versions"),
    }
    let header = ip::parse(&again).expect("a packet");
    let read = membership::parse(&again, &header).expect("a message").expect("a message");
    assert_eq!(format!("{read:?}"), format!("{message:?}"));
}

fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    if let IpAddr::V4(address) = address { Some(address) } else { None }
}

fn v6(address: IpAddr) -> Option<Ipv6Addr> {
    if let IpAddr::V6(address) = address { Some(address) } else { None }
}
