//! A member of a group of NAKACK hears what others send: no datagram makes it panic, run away, hold more than it may,
//! or send faster than its rate, and a packet that is read is written as the same packet.
//!
//! The first byte says which member it is. Then come the datagrams: the time since the one before in milliseconds (8
//! bits), the member that it is said to be from (8 bits), length (16 bits), bytes.
#![no_main]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hopcast_core::bytes::Reader;
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Rate, Seed, StreamId, StreamItem};
use hopcast_fuzz::member::{Member, Sent};
use hopcast_fuzz::timers::Timers;
use hopcast_reliable::nakack::wire::{MemberId, Packet};
use hopcast_reliable::nakack::{Config, Limits, Member as Session, Ordering, Repairs, Stack, Start};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut reader = Reader::new(data);
    let Ok(which) = reader.u8("") else { return };
    let mut member = member(which);
    member.hear_all(&mut reader, address(1), address, read_and_write);
    member.wait(Duration::from_secs(60));
    judge(&member);
});

fn read_and_write(bytes: &[u8]) {
    let Ok(packet) = Packet::parse(bytes) else { return };
    assert_eq!(Packet::parse(&packet.emit()).as_ref(), Ok(&packet));
}

/// Bytes of data and repairs that it has sent, with UDP, IP and Ethernet.
#[derive(Default)]
struct Bytes(u64);

impl Sent for Bytes {
    fn note(&mut self, datagram: &Datagram) {
        let packet = Packet::parse(&datagram.payload).expect("what it sends can be read");
        if matches!(packet, Packet::Data { .. } | Packet::Repair { .. }) {
            self.0 += datagram.payload.len() as u64 + u64::from(OVERHEAD);
        }
    }
}

/// Rate of the member.
const RATE: Rate = Rate::from_mbit(1);
/// UDP, IPv4 and Ethernet.
const OVERHEAD: u16 = 42;
/// Bytes that may leave at once.
const BURST: u64 = 4_000;

fn address(node: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, node], 6003))
}

fn id(node: u8) -> MemberId {
    MemberId { node: node.into(), run: 1 }
}

/// The coordinator of three, another of them, or one that looks for a group. It has a message and a stream to send.
fn member(which: u8) -> Member<Session, Bytes> {
    let own = 1 + (which & 1);
    let three = (1..=3).map(|node| (id(node), address(node))).collect();
    let config = Config {
        member: id(own),
        local: address(own),
        group: SocketAddr::from(([224, 1, 2, 3], 6003)),
        addresses: BTreeMap::new(),
        multicasts: which & 2 == 0,
        presence: vec![(Instant::ZERO, None)],
        start: if which & 4 == 0 { Start::Told(three) } else { Start::Discovered },
        expects: 1 + usize::from(which & 1),
        hears_itself: which & 8 != 0,
        unit_credit: false,
        slack: Duration::ZERO,
        overhead: OVERHEAD,
        limits: Limits::default(),
        stack: Stack {
            rate: RATE,
            fragment: 100,
            order: if which & 16 == 0 { Ordering::Fifo } else { Ordering::Total },
            repairs: if which & 32 == 0 { Repairs::Origin } else { Repairs::Anyone },
            ..Stack::default()
        },
    };
    let session = Session::new(config, Seed::new(1, 0).stream(&["nakack"], 0));
    let mut member = Member::new(session, Bytes::default());
    let ends = (address(own), address(99));
    member.give(Item::Datagram(Datagram::new(ends.0, ends.1, Buffer::copy_from(&[7; 30_000]))));
    let stream = StreamId(0);
    member.give(Item::Stream(stream, StreamItem::Open { local: ends.0, remote: ends.1 }));
    member.give(Item::Stream(stream, StreamItem::Data(Buffer::copy_from(&[8; 10_000]))));
    member
}

/// It sends messages no faster than its rate, to each of the others if it copies, and holds no more than flow
/// control lets anybody send.
fn judge(member: &Member<Session, Bytes>) {
    let Member { now, machine, sent: Bytes(bytes), .. } = member;
    let copies = 64;
    let allowed = (RATE.bits_per_sec() as f64 / 8.0 * now.as_secs_f64()) as u64 + BURST * copies;
    assert!(*bytes <= allowed, "{bytes} bytes by {now}");
    assert!(machine.held() < 64 << 20, "{} bytes", machine.held());
}
