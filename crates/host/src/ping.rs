//! A machine that measures round trips with echo requests.

use std::collections::VecDeque;
use std::net::IpAddr;

use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Message, Outbox, Port};
use hopcast_wire::ip::Version;
use hopcast_wire::{icmp, ip};

/// The configuration of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingConfig {
    /// The host's own address, of the destination's version.
    pub source: IpAddr,
    /// The address that is to answer.
    pub destination: IpAddr,
    /// Time at which the first request is sent. Default: the start of the run.
    pub start: Instant,
    /// The time between requests. Default: 1 s, as of `ping`. Short intervals load the path that they measure.
    pub interval: Duration,
    /// Number of requests to send. Default: no end.
    pub count: Option<u64>,
    /// Bytes of payload. Default: 56, as of `ping`. Payload that does not fit 16-bit lengths is cut.
    pub size: usize,
    /// The requests' hop limit. Default: 64.
    pub hop_limit: u8,
    /// The identifier of this machine's requests among others of the host. Default: 1.
    pub identifier: u16,
}

impl PingConfig {
    /// As `ping` would, from `source` to `destination`.
    pub const fn new(source: IpAddr, destination: IpAddr) -> Self {
        Self {
            source,
            destination,
            start: Instant::ZERO,
            interval: Duration::from_secs(1),
            count: None,
            size: 56,
            hop_limit: 64,
            identifier: 1,
        }
    }
}

/// Sends echo requests on its packet port `Below(0)`, which belongs on a host's binding of ICMP, and hands a
/// [`Message`] with the request's number up on `Above(0)` when its answer comes. The round trips are in
/// its counters.
pub struct Ping {
    config: PingConfig,
    next_at: Option<Instant>,
    sent: u64,
    /// Requests without an answer yet, oldest first; the latest [`Ping::MAX_AWAITED`].
    awaited: VecDeque<(u64, Instant)>,
    round_trips: RoundTrips,
    errors: u64,
    ignored: u64,
    out: Outbox,
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
    /// The sum of all.
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
    /// Maximum number of requests that wait for an answer: their numbers have 16 bits, of which this many leave no
    /// doubt.
    const MAX_AWAITED: usize = 1024;

    /// A machine that has yet to begin.
    pub fn new(config: PingConfig) -> Self {
        let matching = Version::of(config.source) == Version::of(config.destination);
        let next_at = (matching && config.count != Some(0)).then_some(config.start);
        Self {
            config,
            next_at,
            sent: 0,
            awaited: VecDeque::new(),
            round_trips: RoundTrips::default(),
            errors: 0,
            ignored: 0,
            out: Outbox::new(),
        }
    }

    /// The round trips so far.
    pub fn round_trips(&self) -> RoundTrips {
        self.round_trips
    }

    fn send(&mut self, now: Instant) {
        let PingConfig { source, destination, identifier, hop_limit, size, .. } = self.config;
        let longest = 0xffff - ip::V4_HEADER - icmp::HEADER;
        let mut packet = Buffer::zeroed(size.min(longest));
        let request = icmp::Message::EchoRequest { identifier, sequence: self.sent as u16 };
        icmp::prepend(&mut packet, source, destination, request);
        let protocol = icmp::protocol(Version::of(destination));
        ip::prepend(&mut packet, source, destination, protocol, hop_limit, self.sent as u16);
        self.out.down(Item::Packet(packet));
        if self.awaited.len() == Self::MAX_AWAITED {
            self.awaited.pop_front();
        }
        self.awaited.push_back((self.sent, now));
        self.sent += 1;
    }

    fn receive(&mut self, now: Instant, mut packet: Buffer) -> Option<()> {
        let header = ip::parse(&packet).ok()?;
        let message = icmp::parse(header.source, header.destination, &packet[header.payload()]).ok()?;
        match message {
            icmp::Message::EchoReply { identifier, sequence } if identifier == self.config.identifier => {
                let at = self.awaited.iter().position(|(id, _)| *id as u16 == sequence)?;
                let (id, sent_at) = self.awaited.remove(at)?;
                self.round_trips.add(now.since(sent_at));
                packet.truncate(header.total_len);
                packet.advance(header.header_len + icmp::HEADER);
                self.out.up(Item::Message(Message { id, payload: packet }));
                Some(())
            }
            message if message.is_error(header.version) => {
                self.errors += 1;
                Some(())
            }
            _ => None,
        }
    }
}

impl Machine for Ping {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        let taken = match (port, item) {
            (Port::Below(0), Item::Packet(packet)) => self.receive(now, packet),
            _ => None,
        };
        if taken.is_none() {
            self.ignored += 1;
        }
    }

    fn wake(&mut self, now: Instant) {
        let Some(at) = self.next_at.filter(|&at| at <= now) else { return };
        self.send(now);
        // A late wake-up sends one request, not all those missed.
        let next = (at + self.config.interval).max(now + Duration::from_nanos(1));
        self.next_at = self.config.count.is_none_or(|count| self.sent < count).then_some(next);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        self.next_at
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let RoundTrips { count, min, max, total } = self.round_trips;
        report("pings_sent", self.sent);
        report("pings_answered", count);
        report("ping_errors", self.errors);
        report("pings_ignored", self.ignored);
        report("round_trip_min_ns", min.as_nanos());
        report("round_trip_mean_ns", total.as_nanos() / count.max(1));
        report("round_trip_max_ns", max.as_nanos());
    }
}
