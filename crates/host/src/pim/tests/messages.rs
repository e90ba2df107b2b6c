//! The bytes of messages.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::Buffer;
use hopcast_wire::ip;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::pim::Refusal;
use crate::pim::wire::{self, Assert, GroupEntry, Hello, JoinPrune, LanDelay, Message};

fn own(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1).into() } else { Ipv4Addr::new(10, 0, 0, 1).into() }
}

fn packet(v6: bool, message: &Message) -> Buffer {
    let mut packet = Buffer::default();
    wire::prepend(&mut packet, own(v6), message);
    packet
}

fn read(packet: &[u8]) -> Result<Message, Refusal> {
    wire::parse(packet, &ip::parse(packet).expect("an IP packet"))
}

fn host(v6: bool) -> impl Strategy<Value = IpAddr> {
    (1..=u32::from(u16::MAX)).prop_map(move |n| match v6 {
        true => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n as u16).into(),
        false => Ipv4Addr::from(0x0a00_0000 + n).into(),
    })
}

fn group(v6: bool) -> impl Strategy<Value = IpAddr> {
    any::<u16>().prop_map(move |n| match v6 {
        true => Ipv6Addr::new(0xff3e, 0, 0, 0, 0, 0, 0x8000, n).into(),
        false => Ipv4Addr::from(0xe801_0000 + u32::from(n)).into(),
    })
}

fn message(v6: bool) -> impl Strategy<Value = Message> {
    let delay =
        (any::<bool>(), 0..0x8000u16, any::<u16>()).prop_map(|(tracking, propagation, override_interval)| {
            LanDelay { tracking, propagation, override_interval }
        });
    let hello = (
        any::<u16>(),
        proptest::option::of(delay),
        proptest::option::of(any::<u32>()),
        proptest::option::of(any::<u32>()),
        vec(host(v6), 0..=Hello::MAX_ADDRESSES),
    )
        .prop_map(|(holdtime, lan_delay, priority, generation, addresses)| {
            Message::Hello(Hello { holdtime, lan_delay, priority, generation, addresses })
        });
    let entry = (group(v6), vec(host(v6), 0..4), vec(host(v6), 0..4))
        .prop_map(|(group, joined, pruned)| GroupEntry { group, joined, pruned, shared: 0 });
    let lists = (host(v6), any::<u16>(), vec(entry, 0..5)).prop_map(|(upstream, holdtime, groups)| {
        Message::JoinPrune(JoinPrune { upstream, holdtime, groups })
    });
    let assert = (group(v6), host(v6), any::<bool>(), 0..=0x7fff_ffffu32, any::<u32>()).prop_map(
        |(group, source, shared_tree, preference, metric)| {
            Message::Assert(Assert { group, source, shared_tree, preference, metric })
        },
    );
    prop_oneof![hello, lists, assert]
}

proptest! {
    #[test]
    fn a_message_that_is_written_is_read(v6: bool, (four, six) in (message(false), message(true))) {
        let message = if v6 { six } else { four };
        prop_assert_eq!(read(&packet(v6, &message)), Ok(message));
    }

    #[test]
    fn a_message_that_is_cut_or_changed_is_refused(
        v6: bool, (four, six) in (message(false), message(true)), at: prop::sample::Index, bit in 0..8u8
    ) {
        let packet = packet(v6, &if v6 { six } else { four });
        let header = ip::parse(&packet).unwrap();
        let mut changed = packet.to_vec();
        changed[header.header_len + at.index(header.payload().len())] ^= 1 << bit;
        prop_assert!(wire::parse(&changed, &header).is_err());
        let cut = ip::Header { total_len: header.header_len + at.index(header.payload().len()), ..header };
        prop_assert!(wire::parse(&packet, &cut).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(v6: bool, body in vec(any::<u8>(), 0..200), kind in 0..16u8) {
        // With a checksum that fits, so that more than that is looked at.
        let mut message = vec![0x20 | kind, 0, 0, 0];
        message.extend(body);
        let to = wire::all_routers(ip::Version::of(own(v6)));
        let sum = match v6 {
            true => hopcast_wire::checksum::transport(own(v6), to, wire::PROTOCOL, &message),
            false => hopcast_wire::checksum::checksum(&message),
        };
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut packet = Buffer::copy_from(&message);
        ip::prepend(&mut packet, own(v6), to, wire::PROTOCOL, 1, 0);
        if let Ok(read) = read(&packet) {
            prop_assert!(matches!(kind, 0 | 3 | 5), "{read:?}");
        }
    }
}

/// The message with its byte at `at` set, and a checksum that fits.
fn with(message: &Message, at: usize, byte: u8) -> Buffer {
    let mut packet = packet(false, message);
    let start = ip::V4_HEADER;
    packet[start + at] = byte;
    packet[start + 2..start + 4].fill(0);
    let sum = hopcast_wire::checksum::checksum(&packet[start..]);
    packet[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
    packet
}

#[test]
fn each_fault_is_refused_by_its_reason() {
    let source = own(false);
    let group: IpAddr = "232.1.1.1".parse().unwrap();
    let assert = Message::Assert(Assert { group, source, shared_tree: false, preference: 1, metric: 1 });
    let hello = Message::Hello(Hello {
        holdtime: 1,
        lan_delay: None,
        priority: None,
        generation: None,
        addresses: vec![source],
    });
    let entry = GroupEntry { group, joined: vec![source], pruned: Vec::new(), shared: 0 };
    let lists = Message::JoinPrune(JoinPrune { upstream: source, holdtime: 1, groups: vec![entry] });
    for (message, at, byte, reason) in [
        (&assert, 0, 0x15, Refusal::Version),
        (&assert, 0, 0x21, Refusal::Type),
        (&assert, 4, 2, Refusal::Family),
        (&assert, 5, 1, Refusal::Family),
        (&assert, 7, 24, Refusal::Mask),
        (&assert, 8, 10, Refusal::Group),
        (&assert, 14, 224, Refusal::Listed),
        // The length of the holdtime, and of the list of addresses.
        (&hello, 7, 1, Refusal::Truncated),
        (&hello, 13, 5, Refusal::Truncated),
        (&hello, 16, 230, Refusal::Listed),
        // The number of groups, and of joined sources.
        (&lists, 11, 0, Refusal::Trailing),
        (&lists, 11, 2, Refusal::Truncated),
        (&lists, 23, 2, Refusal::Truncated),
        (&lists, 29, 31, Refusal::Mask),
    ] {
        assert_eq!(read(&with(message, at, byte)), Err(reason), "{message:?} {at} {byte}");
    }
    // Flags of a source: of any source, and of the shared tree.
    for flags in [5, 6, 7] {
        let Ok(Message::JoinPrune(read)) = read(&with(&lists, 28, flags)) else { panic!("lists") };
        assert_eq!((read.groups[0].joined.len(), read.groups[0].shared), (0, 1));
    }
    let mut elsewhere = packet(false, &hello);
    let header = ip::parse(&elsewhere).unwrap();
    assert_eq!(
        wire::parse(&elsewhere, &ip::Header { destination: source, ..header }),
        Err(Refusal::Destination)
    );
    assert_eq!(wire::parse(&elsewhere, &ip::Header { source: group, ..header }), Err(Refusal::Sender));
    elsewhere[ip::V4_HEADER + 3] ^= 1;
    assert_eq!(wire::parse(&elsewhere, &header), Err(Refusal::Checksum));
    let far = ip::Header {
        source: "fd00::1".parse().unwrap(),
        ..ip::parse(&packet(
            true,
            &Message::Hello(Hello {
                holdtime: 1,
                lan_delay: None,
                priority: None,
                generation: None,
                addresses: Vec::new(),
            }),
        ))
        .unwrap()
    };
    assert_eq!(
        wire::parse(&packet(true, &hello_v6()), &far),
        Err(Refusal::Sender),
        "it is not from the link"
    );
}

fn hello_v6() -> Message {
    Message::Hello(Hello {
        holdtime: 1,
        lan_delay: None,
        priority: None,
        generation: None,
        addresses: Vec::new(),
    })
}
