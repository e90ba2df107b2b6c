//! A member of a PGM group hears what others send, OpenPGM's to begin with: no packet makes it panic, run away, or send
//! faster than its rate, and a packet that is read is written as the same packet.
//!
//! The first byte says which member it is. Then come the packets: the time since the one before in milliseconds (8
//! bits), length (16 bits), bytes.
#![no_main]

use std::net::SocketAddr;

use hopcast_core::bytes::Reader;
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Message, Rate, Seed};
use hopcast_fuzz::member::{Member, Sent};
use hopcast_fuzz::timers::Timers;
use hopcast_reliable::pgm::wire::{Packet, Tsi, checksum};
use hopcast_reliable::pgm::{Config, Framing, RateControl, ReceiverConfig, Session, SourceConfig};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut reader = Reader::new(data);
    let Ok(which) = reader.u8("") else { return };
    let mut member = member(which);
    while let (Ok(wait), Ok(len)) = (reader.u8(""), reader.u16("")) {
        let mut bytes =
            reader.take(usize::from(len).min(reader.rest().len()), "").unwrap_or_default().to_vec();
        // Nobody finds a checksum by chance.
        if bytes.len() >= 16 {
            let sum = checksum(&bytes).to_be_bytes();
            bytes[6..8].copy_from_slice(&sum);
        }
        read_and_write(&bytes);
        member.wait(Duration::from_millis(wait.into()));
        member.hear(address(1), address(2), &bytes);
    }
    member.wait(Duration::from_secs(5));
    judge(&member);
});

fn read_and_write(bytes: &[u8]) {
    let Ok(packet) = Packet::parse(bytes) else { return };
    let again = packet.emit();
    assert_eq!(again.len(), packet.len());
    assert_eq!(Packet::parse(&again).as_ref(), Ok(&packet));
}

/// Counts of what it has sent.
#[derive(Default)]
struct Counts {
    /// Bytes as a source, with UDP, IP and Ethernet.
    bytes: u64,
    /// Packets as a receiver.
    feedback: u64,
}

impl Sent for Counts {
    fn note(&mut self, datagram: &Datagram) {
        let packet = Packet::parse(&datagram.payload).expect("what it sends can be read");
        if packet.is_upstream() {
            self.feedback += 1;
        } else {
            self.bytes += datagram.payload.len() as u64 + u64::from(OVERHEAD);
        }
    }
}

/// Rate of the source.
const RATE: Rate = Rate::from_mbit(1);
/// UDP, IPv4 and Ethernet.
const OVERHEAD: u16 = 42;
/// Bytes that may leave at once: confirmations may take it this far ahead.
const BURST: u64 = 40_000;
/// Maximum number of sources to whom a receiver listens: its default.
const SOURCES: u64 = 16;

fn address(node: u8) -> SocketAddr {
    SocketAddr::from(([10, 9, 0, node], 3056))
}

/// Number 1 sends, in the session of the one in the captures, and receives; the others only receive.
fn member(which: u8) -> Member<Session, Counts> {
    let sends = which & 1 == 1;
    let source = SourceConfig {
        packet: 150,
        group: 8,
        parity: if which & 2 != 0 { 8 } else { 0 },
        rate: RateControl::Fixed(RATE),
        overhead: OVERHEAD,
        framing: if which & 16 != 0 { Framing::Plain } else { Framing::Ours },
        first: Some(0),
        ..SourceConfig::default()
    };
    let receiver = ReceiverConfig {
        silent: which & 4 != 0,
        multicast_naks: which & 8 != 0,
        window: 64 << 10,
        max_unit: 1 << 20,
        ..ReceiverConfig::default()
    };
    let config = Config {
        session: Tsi { gsi: [0, 0, 0, 0, 0, 1], port: if sends { 0x88FF } else { 9 } },
        port: 7500,
        local: address(if sends { 1 } else { 9 }),
        group: SocketAddr::from(([239, 192, 0, 1], 3056)),
        number: (which & 16 != 0).then_some(9),
        source: sends.then_some(source),
        receiver: Some(receiver),
        unit_credit: false,
    };
    let session = Session::new(config, Seed::new(1, 0).stream(&["pgm"], 0));
    let mut member = Member::new(session, Counts::default());
    if sends {
        member.give(Item::Message(Message::new(0, Buffer::copy_from(&[7; 6_000]))));
    }
    member
}

/// It sends no more than its rate allows, and requests in proportion to what it hears and to time: all that can be
/// missing of a source at a time is 66 requests, repeated no faster than each some milliseconds at first.
fn judge(member: &Member<Session, Counts>) {
    let Member { now, sent: Counts { bytes, feedback }, heard, .. } = member;
    let allowed = (RATE.bits_per_sec() as f64 / 8.0 * now.as_secs_f64()) as u64 + BURST;
    assert!(*bytes <= allowed, "{bytes} bytes by {now}");
    let seconds = now.since(Instant::ZERO).as_millis() / 1000 + 1;
    let requests = 2 * 66 * (SOURCES.min(*heard) * seconds * 20 + 2 * heard);
    assert!(*feedback <= requests, "{feedback} requests by {now}");
}
