//! The messages' bytes.

use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Port, Seed, Transit};
use hopcast_wire::ip;
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::IpAddr;

use crate::link_state::wire::{
    self, Advertisement, Content, Header, Hello, Key, Kind, Link, MAX_AGE, MAX_ENTRIES, MAX_FRAGMENTS,
    MAX_METRIC, Message, Packet, Reach,
};
use crate::link_state::{Attached, Attachments, Config, InterfaceConfig, LinkState, RouteTable};
use crate::prefixes::Prefix;

fn key() -> impl Strategy<Value = Key> {
    let kind = prop_oneof![Just(Kind::Links), Just(Kind::Prefixes), Just(Kind::Summary)];
    (any::<u32>(), kind, 0..MAX_FRAGMENTS).prop_map(|(originator, kind, fragment)| Key {
        originator,
        kind,
        fragment,
    })
}

fn header() -> impl Strategy<Value = Header> {
    (key(), any::<u32>(), any::<u16>(), 0..=MAX_AGE).prop_map(|(key, sequence, checksum, age)| Header {
        key,
        sequence,
        checksum,
        age,
    })
}

fn reach() -> impl Strategy<Value = Reach> {
    (any::<IpAddr>(), 0..=128u8, 0..=MAX_METRIC).prop_map(|(address, length, metric)| {
        let length = if address.is_ipv4() { length % 33 } else { length };
        Reach { prefix: Prefix::around(address, length).unwrap(), metric }
    })
}

fn advertisement() -> impl Strategy<Value = Advertisement> {
    let link = (any::<u32>(), 1..=u16::MAX).prop_map(|(to, cost)| Link { to, cost });
    let links = (any::<bool>(), vec(link, 0..=MAX_ENTRIES));
    (key(), any::<u32>(), 0..=MAX_AGE, links, vec(reach(), 0..=MAX_ENTRIES)).prop_map(
        |(key, sequence, age, (is_border, links), prefixes)| {
            let content = match key.kind {
                Kind::Links => Content::Links { is_border, links },
                Kind::Prefixes | Kind::Summary => Content::Prefixes(prefixes),
            };
            Advertisement::new(key, sequence, age, content)
        },
    )
}

fn hello() -> impl Strategy<Value = Hello> {
    let addresses = [(0x0a00_0001..0x0b00_0000u32), (1..1000u32)];
    (any::<[u32; 3]>(), addresses, any::<[bool; 2]>(), vec(any::<u32>(), 0..100)).prop_map(
        |([interval, dead, generation], [v4, v6], known, heard)| {
            let v4 = IpAddr::from(v4.to_be_bytes());
            let v6 = IpAddr::from((0xfd00_u128 << 112 | u128::from(v6)).to_be_bytes());
            let addresses = [known[0].then_some(v4), known[1].then_some(v6)];
            Hello { interval, dead, generation, addresses, heard }
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        hello().prop_map(Message::Hello),
        vec(advertisement(), 0..5).prop_map(Message::Update),
        vec(header(), 0..50).prop_map(Message::Offer),
        vec(header(), 0..50).prop_map(Message::Acknowledgement),
        vec(key(), 0..50).prop_map(Message::Request),
    ]
}

fn own(v6: bool) -> IpAddr {
    if v6 { "fe80::7".parse().unwrap() } else { "10.1.0.7".parse().unwrap() }
}

fn bytes(packet: &Packet, v6: bool) -> Buffer {
    let mut buffer = Buffer::default();
    wire::prepend(&mut buffer, own(v6), packet);
    buffer
}

struct Alone;

impl Attachments for Alone {
    fn version(&self) -> u64 {
        0
    }

    fn is_up(&self, _: u32) -> bool {
        true
    }

    fn attached(&self) -> Vec<Attached> {
        Vec::new()
    }
}

/// A router with two interfaces that knows nobody.
fn router() -> LinkState {
    let host = crate::Config {
        addresses: vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
        interfaces: vec![
            crate::Interface::new([2, 0, 0, 0, 0, 1], 1500),
            crate::Interface::new([2, 0, 0, 0, 0, 2], 1500),
        ],
        ..crate::Config::default()
    };
    let random = Seed::new(1, 0).stream(&["x"], 0);
    let interfaces = [InterfaceConfig::default(), InterfaceConfig { area: 1, cost: 3 }];
    LinkState::new(Config::default(), &host, &interfaces, Box::new(Alone), RouteTable::default(), random)
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(router: u32, area: u32, message in message(), v6: bool) {
        let packet = Packet { router, area, message };
        let bytes = bytes(&packet, v6);
        let mut unsound = 0;
        let read = wire::parse(&bytes, &ip::parse(&bytes).unwrap(), &mut unsound);
        prop_assert_eq!((read, unsound), (Ok(packet), 0));
    }

    #[test]
    fn an_advertisement_with_a_changed_byte_is_left_out(
        one in advertisement(), place in any::<prop::sample::Index>(), change in 1..=255u8,
    ) {
        let message = Message::Update(vec![one]);
        let packet = bytes(&Packet { router: 1, area: 0, message }, false).to_vec();
        // Behind the age, which is not covered, and without the length.
        let begin = 20 + 12;
        let covered: Vec<usize> = (begin + 2..packet.len()).filter(|at| !(begin + 16..begin + 18).contains(at)).collect();
        let at = covered[place.index(covered.len())];
        let mut changed = packet.clone();
        changed[at] ^= change;
        // The message's own checksum is made to fit.
        changed[22..24].fill(0);
        let sum = hopcast_wire::checksum::checksum(&changed[20..]);
        changed[22..24].copy_from_slice(&sum.to_be_bytes());
        let mut unsound = 0;
        let read = wire::parse(&changed, &ip::parse(&changed).unwrap(), &mut unsound);
        if let Ok(Packet { message: Message::Update(all), .. }) = read {
            // Fletcher's checksum takes 0 and 255 for the same.
            prop_assert!(all.is_empty() || packet[at] ^ changed[at] == 255, "{at}");
        }
    }

    #[test]
    fn any_bytes_are_survived(contents in vec((vec(any::<u8>(), 0..200), any::<bool>()), 1..20)) {
        let mut machine = router();
        machine.wake(Instant::ZERO);
        for (millis, (content, sound)) in (0..).zip(contents) {
            let mut content = content;
            if sound && content.len() >= 4 {
                (content[0], content[1]) = (1, 1 + content[1] % 5);
                content[2..4].fill(0);
                let sum = hopcast_wire::checksum::checksum(&content);
                content[2..4].copy_from_slice(&sum.to_be_bytes());
            }
            let mut packet = Buffer::default();
            packet.prepend(content.len()).copy_from_slice(&content);
            ip::prepend(&mut packet, own(false), wire::all_routers(ip::Version::V4), wire::PROTOCOL, 1, 0);
            let now = Instant::ZERO + Duration::from_millis(millis);
            machine.handle(now, Port::Below(0), Item::Transit(Transit::arrived(packet, 0)));
            while machine.poll(now).is_some() {}
        }
    }

    #[test]
    fn any_messages_are_survived_and_memory_is_bounded(
        messages in vec((message(), 0..4u32, 0..3u32, 0..2000u64), 1..60),
    ) {
        let mut machine = router();
        let mut now = Instant::ZERO;
        machine.wake(now);
        for (mut message, from, interface, millis) in messages {
            if let Message::Hello(hello) = &mut message {
                (hello.interval, hello.dead) = (10_000, 40_000);
                hello.heard.push(0x0a00_0001);
            }
            let area = if interface == 1 { 1 } else { 0 };
            let packet = bytes(&Packet { router: from, area, message }, true);
            now += Duration::from_millis(millis);
            machine.handle(now, Port::Below(0), Item::Transit(Transit::arrived(packet, interface)));
            let mut answers = 0;
            while machine.poll(now).is_some() {
                answers += 1;
            }
            prop_assert!(answers < 200, "{answers} answers");
            prop_assert!(machine.deadline().is_none_or(|at| at > now));
        }
    }
}

#[test]
fn newer_is_the_higher_number_then_the_higher_checksum_then_what_is_over_then_the_younger() {
    use core::cmp::Ordering::{Equal, Greater};
    let key = Key { originator: 1, kind: Kind::Links, fragment: 0 };
    let header = |sequence, checksum, age| Header { key, sequence, checksum, age };
    for (one, other) in [
        ((2, 0, 9), (1, 9, 0)),
        ((1, 2, 9), (1, 1, 0)),
        ((1, 1, MAX_AGE), (1, 1, 0)),
        ((1, 1, 0), (1, 1, 901)),
    ] {
        let [one, other] = [one, other].map(|(sequence, checksum, age)| header(sequence, checksum, age));
        assert_eq!(one.compare_instance(&other), Greater);
        assert_eq!(other.compare_instance(&one), Greater.reverse());
    }
    assert_eq!(header(1, 1, 0).compare_instance(&header(1, 1, 900)), Equal);
}
