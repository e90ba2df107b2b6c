//! A machine that carries messages in echo requests, and measures their round trips.

use std::collections::VecDeque;
use std::net::IpAddr;

use hopcast_core::{Buffer, Duration, Instant, Item, Message, Outbox, Port, Reactive};
use hopcast_wire::ip::Version;
use hopcast_wire::{icmp, ip};

use crate::icmp::quoted;

/// The configuration of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingConfig {
    /// The host's own address, of the destination's version.
    pub source: IpAddr,
    /// The address that requests are sent to.
    pub destination: IpAddr,
    /// The requests' hop limit. Default: 64.
    pub hop_limit: u8,
    /// The identifier of this machine's requests among others of the host. Default: 1.
    pub identifier: u16,
}

impl PingConfig {
    /// The default configuration from `source` to `destination`.
    pub const fn new(source: IpAddr, destination: IpAddr) -> Self {
        Self { source, destination, hop_limit: 64, identifier: 1 }
    }
}

/// Sends each [`Message`] of its port `Above(0)` as an echo request on its packet port `Below(0)`. When the answer
/// comes, a message with the same number and the answer's payload goes up. The packet port is attached to a host's
/// binding of ICMP, or to a layer that carries packets.
pub struct Ping {
    config: PingConfig,
    /// The latest requests, oldest first and at most [`Ping::MAX_AWAITED`]; `None` for those that have been answered.
    awaited: VecDeque<Option<Request>>,
    /// Number of requests so far; a request's sequence number is the lowest 16 bits.
    sent: u64,
    round_trips: RoundTrips,
    errors: u64,
    ignored: u64,
    out: Outbox,
}

/// A request without an answer.
struct Request {
    /// The message's number.
    id: u64,
    sent: Instant,
}

/// The round trips measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// The number of answers.
    pub count: u64,
    /// The shortest round trip.
    pub min: Duration,
    /// The longest round trip.
    pub max: Duration,
    /// The sum of all round trips.
    pub total: Duration,
}

impl RoundTrips {
    fn add(&mut self, time: Duration) {
        self.min = if self.count == 0 { time } else { self.min.min(time) };
        self.max = self.max.max(time);
        self.total += time;
        self.count += 1;
    }
}

impl Ping {
    /// Maximum number of outstanding requests: half the range of the 16-bit sequence numbers (RFC 792), so that the
    /// request of an answer is never in doubt.
    pub const MAX_AWAITED: usize = 1 << 15;
    /// Maximum payload of a request, in bytes: IPv4's maximum length without the headers.
    pub const MAX_PAYLOAD: usize = 0xffff - ip::V4_HEADER - icmp::HEADER;

    /// A ping that has sent nothing yet.
    pub const fn new(config: PingConfig) -> Self {
        let round_trips =
            RoundTrips { count: 0, min: Duration::ZERO, max: Duration::ZERO, total: Duration::ZERO };
        Self {
            config,
            awaited: VecDeque::new(),
            sent: 0,
            round_trips,
            errors: 0,
            ignored: 0,
            out: Outbox::new(),
        }
    }

    /// The round trips so far.
    pub fn round_trips(&self) -> RoundTrips {
        self.round_trips
    }

    fn send(&mut self, now: Instant, Message { id, payload: mut packet, .. }: Message) -> Option<()> {
        let PingConfig { source, destination, identifier, hop_limit } = self.config;
        if packet.len() > Self::MAX_PAYLOAD || Version::of(source) != Version::of(destination) {
            return None;
        }
        let sequence = self.sent as u16;
        let request = icmp::Message::EchoRequest { identifier, sequence };
        icmp::prepend(&mut packet, source, destination, request);
        let protocol = icmp::protocol(Version::of(destination));
        ip::prepend(&mut packet, source, destination, protocol, hop_limit, sequence);
        self.out.down(Item::Packet(packet));
        if self.awaited.len() == Self::MAX_AWAITED {
            self.awaited.pop_front();
        }
        self.awaited.push_back(Some(Request { id, sent: now }));
        self.sent += 1;
        Some(())
    }

    fn receive(&mut self, now: Instant, mut packet: Buffer) -> Option<()> {
        let header = ip::parse(&packet).ok()?;
        if header.protocol != icmp::protocol(header.version) || header.destination != self.config.source {
            return None;
        }
        let body = &packet[header.payload()];
        let message = icmp::parse(header.source, header.destination, body).ok()?;
        match message {
            icmp::Message::EchoReply { identifier, sequence } if identifier == self.config.identifier => {
                let oldest = self.sent - self.awaited.len() as u64;
                let place = sequence.wrapping_sub(oldest as u16);
                let Request { id, sent } = self.awaited.get_mut(usize::from(place))?.take()?;
                self.round_trips.add(now.since(sent));
                packet.truncate(header.total_len);
                packet.advance(header.header_len + icmp::HEADER);
                self.out.up(Item::Message(Message::new(id, packet)));
                Some(())
            }
            error if error.is_error(header.version) && self.is_about_request(body) => {
                self.errors += 1;
                Some(())
            }
            _ => None,
        }
    }

    /// Whether an error is about a request of this machine.
    fn is_about_request(&self, error: &[u8]) -> bool {
        let PingConfig { source, destination, identifier, .. } = self.config;
        quoted(error).is_some_and(|(header, about)| {
            header.protocol == icmp::protocol(header.version)
                && (header.source, header.destination, about) == (source, destination, Some(identifier))
        })
    }
}

impl Reactive for Ping {
    fn react(&mut self, now: Instant, port: Port, item: Item) {
        let taken = match (port, item) {
            (Port::Above(0), Item::Message(message)) => self.send(now, message),
            (Port::Below(0), Item::Packet(packet)) => self.receive(now, packet),
            _ => None,
        };
        if taken.is_none() {
            self.ignored += 1;
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("pings_sent", self.sent);
        report("pings_answered", self.round_trips.count);
        report("ping_errors", self.errors);
        report("pings_ignored", self.ignored);
    }
}
