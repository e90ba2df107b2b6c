//! A member of DisService hears what others send: no packet makes it panic, run away, hold more than it may, or send
//! faster than its rate, and a packet that is read is written as the same packet.
//!
//! The first byte says which member it is, and whether it is one of many. Then come the packets: the time since the one
//! before in milliseconds (8 bits), the member that it is said to be from (8 bits), length (16 bits), bytes.
#![no_main]

use std::net::SocketAddr;
use std::sync::Arc;

use hopcast_core::bytes::Reader;
use hopcast_core::{Buffer, Datagram, Duration, Item, Message, Rate, Seed};
use hopcast_fuzz::member::{Member, Sent};
use hopcast_fuzz::timers::Timers;
use hopcast_reliable::disservice::wire::{Packet, Sent as Transmission, Summary};
use hopcast_reliable::disservice::{
    Bodies, Config, Forwarding, Peer, Policy, PublisherRepairs, Repairs, Replication, Requests, Servers,
};
use hopcast_reliable::{Join, MemberId, Order, Subscription};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut reader = Reader::new(data);
    let Ok(which) = reader.u8("") else { return };
    let mut member = member(which);
    if which.is_multiple_of(5) {
        // Among many it takes turns, and has what it loses of any.
        for node in 100..120 {
            let from = Transmission { member: MemberId { node, run: 1 }, transmission: 1 };
            let (neighbours, heard, is_all, series) = (20, Vec::new(), true, Vec::new());
            let summary = Packet::Summary(Summary { from, neighbours, heard, is_all, series });
            member.hear(address(1), address(node as u8), &summary.emit());
        }
    }
    member.hear_all(&mut reader, address(1), address, read_and_write);
    member.wait(Duration::from_secs(20));
    judge(&member);
});

fn read_and_write(bytes: &[u8]) {
    let Ok(packet) = Packet::parse(bytes) else { return };
    assert_eq!(Packet::parse(&packet.emit()).as_ref(), Ok(&packet));
}

/// Bytes that it has sent, with UDP, IP and Ethernet.
#[derive(Default)]
struct Bytes(u64);

impl Sent for Bytes {
    fn note(&mut self, datagram: &Datagram) {
        Packet::parse(&datagram.payload).expect("what it sends can be read");
        self.0 += datagram.payload.len() as u64 + u64::from(OVERHEAD);
    }
}

/// Rate of the member.
const RATE: Rate = Rate::from_mbit(1);
/// UDP, IPv4 and Ethernet.
const OVERHEAD: u16 = 42;
/// Bytes that may leave at once: a packet.
const BURST: u64 = 2000;
/// Bytes that it may hold, and those of one message beyond that.
const CACHE: u64 = 64 << 10;
const MESSAGE: u64 = 34 << 10;

fn address(node: u8) -> SocketAddr {
    SocketAddr::from(([10, 9, 0, node], 6003))
}

/// Number 1 publishes; all but each fourth subscribe.
fn member(which: u8) -> Member<Peer, Bytes> {
    let group: Arc<[u8]> = Arc::from(&b"g"[..]);
    let subscription = Subscription {
        order: if which & 1 == 0 { Order::AsComplete } else { Order::BySender },
        join: if which & 2 == 0 { Join::Everything } else { Join::Object },
        is_reliable: which & 4 == 0,
    };
    let anyone = which & 8 != 0;
    let policy = Policy {
        rate: RATE,
        fragment: 50,
        chunk: 4,
        cache: CACHE,
        is_coded: which & 16 != 0,
        requests: Requests {
            servers: if anyone { Servers::Anyone(None) } else { Servers::One },
            share: if anyone { 0.5 } else { 1.0 },
            ..Policy::default().requests
        },
        repairs: Repairs {
            publisher: if anyone { PublisherRepairs::WhenIdle } else { PublisherRepairs::Always },
            ..Policy::default().repairs
        },
        forwarding: match which >> 5 & 3 {
            0 => Forwarding::None,
            1 => Forwarding::WorldState,
            2 => Forwarding::Topology,
            _ => Forwarding::Probabilistic(0.5),
        },
        replication: if which & 128 == 0 { Replication::Pull } else { Replication::Push },
        ..Policy::default()
    };
    let config = Config {
        member: MemberId { node: 1, run: 1 },
        local: address(1),
        group: SocketAddr::from(([239, 192, 0, 1], 6003)),
        publishes_to: group.clone(),
        subscriptions: [(group, subscription)].into_iter().filter(|_| which % 4 != 3).collect(),
        unit_credit: false,
        links: 1,
        has_store: false,
        bodies: Bodies::default(),
        slack: Duration::ZERO,
        overhead: OVERHEAD,
        policy,
    };
    let peer = Peer::new(config, Seed::new(1, 0).stream(&["disservice"], 0));
    let mut member = Member::new(peer, Bytes::default());
    member.give(Item::Message(Message::new(0, Buffer::copy_from(&[7; 500]))));
    member
}

/// It sends no more than its rate allows, and holds no more than its cache.
fn judge(member: &Member<Peer, Bytes>) {
    let Member { now, sent: Bytes(bytes), machine, .. } = member;
    let allowed = (RATE.bits_per_sec() as f64 / 8.0 * now.as_secs_f64()) as u64 + BURST;
    assert!(*bytes <= allowed, "{bytes} bytes by {now}");
    assert!(machine.held() as u64 <= CACHE + MESSAGE, "{} bytes held", machine.held());
}
