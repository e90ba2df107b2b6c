//! A member of a NORM session hears what others send, libnorm's to begin with: no datagram makes it panic, run away, or
//! send faster than its rate, and a message that is read is written as the same message.
//!
//! The first byte says which member it is. Then come the datagrams: the time since the one before in milliseconds (8
//! bits), length (16 bits), bytes.
#![no_main]

use std::net::SocketAddr;

use hopcast_core::bytes::Reader;
use hopcast_core::{Datagram, Duration, Instant, Rate, Seed};
use hopcast_fuzz::member::{Member, Sent};
use hopcast_fuzz::timers::Timers;
use hopcast_reliable::norm::wire::{Body, Message, NodeId, StreamHeader};
use hopcast_reliable::norm::{Config, RateControl, ReceiverConfig, SenderConfig, Session};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut reader = Reader::new(data);
    let Ok(which) = reader.u8("") else { return };
    let mut member = member(which);
    while let (Ok(wait), Ok(len)) = (reader.u8(""), reader.u16("")) {
        let bytes = reader.take(usize::from(len).min(reader.rest().len()), "").unwrap_or_default();
        read_and_write(bytes);
        member.wait(Duration::from_millis(wait.into()));
        member.hear(address(1), address(3), bytes);
    }
    member.wait(Duration::from_secs(5));
    judge(&member);
});

fn read_and_write(bytes: &[u8]) {
    let _ = StreamHeader::read(bytes);
    let Ok(message) = Message::parse(bytes) else { return };
    let again = message.emit();
    assert_eq!(again.len(), message.len());
    assert_eq!(Message::parse(&again).as_ref(), Ok(&message));
}

/// Counts of what it has sent.
#[derive(Default)]
struct Counts {
    /// Bytes as a sender, with UDP, IP and Ethernet.
    bytes: u64,
    /// Datagrams as a receiver.
    feedback: u64,
}

impl Sent for Counts {
    fn note(&mut self, datagram: &Datagram) {
        let message = Message::parse(&datagram.payload).expect("what it sends can be read");
        if matches!(message.body, Body::Nack(_) | Body::Ack(_)) {
            self.feedback += 1;
        } else {
            self.bytes += datagram.payload.len() as u64 + u64::from(OVERHEAD);
        }
    }
}

/// Rate of the sender.
const RATE: Rate = Rate::from_mbit(1);
/// UDP, IPv4 and Ethernet.
const OVERHEAD: u16 = 42;
/// Bytes that may leave at once: a datagram or two.
const BURST: u64 = 4_000;
/// Maximum number of senders to whom a receiver listens: its default.
const SENDERS: u64 = 16;

fn address(node: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, node], 6003))
}

/// Number 1 sends, as the one in the captures does, and receives; the others only receive.
fn member(which: u8) -> Member<Session, Counts> {
    let sends = which & 1 == 1;
    let sender = SenderConfig {
        segment: 100,
        source: 8,
        parity: 4,
        rate: RateControl::Fixed(RATE),
        overhead: OVERHEAD,
        group_size: Some(10),
        unicast_feedback: which & 2 != 0,
        ..SenderConfig::default()
    };
    let receiver = ReceiverConfig {
        silent: which & 4 != 0,
        unicast_feedback: which & 8 != 0,
        buffer: 64 << 10,
        max_object: 1 << 20,
        ..ReceiverConfig::default()
    };
    let config = Config {
        node: NodeId(if sends { 1 } else { 9 }),
        instance: 1,
        local: address(if sends { 1 } else { 9 }),
        group: SocketAddr::from(([224, 1, 2, 3], 6003)),
        sender: sends.then_some(sender),
        receiver: Some(receiver),
        unit_credit: false,
    };
    let mut session = Session::new(config, Seed::new(1, 0).stream(&["norm"], 0));
    if sends {
        session.send(Instant::ZERO, vec![7; 30_000].into(), Some(b"info".as_slice().into()), true);
    }
    Member::new(session, Counts::default())
}

/// It sends no more than its rate allows, and for each sender, whatever that says of round trips, a request each
/// second, and for each datagram that it heard an answer and the requests that come in twice the time of the last.
fn judge(member: &Member<Session, Counts>) {
    let Member { now, sent: Counts { bytes, feedback }, heard, .. } = member;
    let allowed = (RATE.bits_per_sec() as f64 / 8.0 * now.as_secs_f64()) as u64 + BURST;
    assert!(*bytes <= allowed, "{bytes} bytes by {now}");
    let seconds = now.since(Instant::ZERO).as_millis() / 1000 + 1;
    let requests = seconds * SENDERS.min(*heard) + 13 * heard;
    assert!(*feedback <= requests, "{feedback} requests by {now}");
}
