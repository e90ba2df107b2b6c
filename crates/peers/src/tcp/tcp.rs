//! All connections of one TCP: which segment belongs to which, and which are new.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use hopcast_core::{
    Buffer, Instant, Item, Machine, Outbox, Port, Seed, Stream, StreamId, StreamItem, earliest,
};
use hopcast_wire::icmp::{self, Message};
use hopcast_wire::{Malformed, ip};

use super::config::{Config, MAX_CONNECTIONS, SYN_BACKLOG};
use super::connection::{Connection, Context, State};
use super::counters::Counters;
use super::time_wait::{Pair, Remembered, TimeWait};
use super::wire::{self, ACK, FIN, Header, Options, RST, SYN, Timestamps};

/// The ports that are given to connections that ask for none: Linux `ip_local_port_range`.
const EPHEMERAL: core::ops::RangeInclusive<u16> = 32_768..=60_999;

/// A TCP: [`Port::Below`]`(0)` is a packet port, [`Port::Above`]`(0)` a stream port with any number of streams.
///
/// An [`Open`](StreamItem::Open) from above connects. With a local port it listens as well: a connection that a peer
/// has opened is announced upward by an `Open` with an odd number, and first granted the send buffer as credit.
#[derive(Debug)]
pub struct Tcp {
    config: Config,
    local_port: Option<u16>,
    addresses: Vec<IpAddr>,
    /// Whether it answers for every address and port.
    transparent: bool,
    random: Stream,
    connections: BTreeMap<StreamId, Connection>,
    by_pair: BTreeMap<Pair, StreamId>,
    deadlines: BTreeSet<(Instant, StreamId)>,
    time_wait: TimeWait,
    embryonic: usize,
    next_id: u64,
    out: Outbox,
    counters: Counters,
    /// The first sequence number of every connection, where a test wants a certain one.
    initial: Option<u32>,
}

impl Tcp {
    /// A TCP with the host's `addresses`, which listens on `local_port` if there is one. Of `addresses` the first of
    /// the remote's version is where connections come from that name none.
    pub fn new(config: Config, local_port: Option<u16>, addresses: Vec<IpAddr>, random: Stream) -> Self {
        Self {
            config,
            local_port,
            addresses,
            transparent: false,
            random,
            connections: BTreeMap::new(),
            by_pair: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            time_wait: TimeWait::default(),
            embryonic: 0,
            next_id: 1,
            out: Outbox::new(),
            counters: Counters::default(),
            initial: None,
        }
    }

    /// A TCP that answers for whoever it is given packets for, and connects in anybody's name: a proxy's. An
    /// [`Open`](StreamItem::Open) must name its local end.
    pub fn transparent(config: Config, random: Stream) -> Self {
        Self { transparent: true, ..Self::new(config, None, Vec::new(), random) }
    }

    fn owns(&self, address: IpAddr) -> bool {
        self.transparent || self.addresses.contains(&address)
    }

    fn listens(&self, port: u16) -> bool {
        self.transparent || self.local_port == Some(port)
    }

    #[cfg(test)]
    pub(super) fn set_initial_sequence(&mut self, initial: u32) {
        self.initial = Some(initial);
    }

    #[cfg(test)]
    pub(super) fn connection(&self, id: StreamId) -> Option<&Connection> {
        self.connections.get(&id)
    }

    fn on_packet(&mut self, now: Instant, mut packet: Buffer) {
        let header = match ip::parse(&packet) {
            Ok(header) => header,
            Err(error) => return self.count_malformed(error),
        };
        if !self.owns(header.destination) {
            self.counters.not_for_us += 1;
            return;
        }
        if header.fragment {
            self.counters.malformed += 1;
            return;
        }
        packet.truncate(header.total_len);
        packet.advance(header.header_len);
        let (source, destination) = (header.source, header.destination);
        match header.protocol {
            ip::TCP => self.on_tcp(now, source, destination, packet),
            ip::ICMP | ip::ICMPV6 => self.on_icmp(now, source, destination, &packet),
            _ => self.counters.not_for_us += 1,
        }
    }

    fn on_tcp(&mut self, now: Instant, source: IpAddr, destination: IpAddr, mut segment: Buffer) {
        let (header, offset) = match wire::parse(source, destination, &segment) {
            Ok(parsed) => parsed,
            Err(error) => return self.count_malformed(error),
        };
        self.counters.segments_received += 1;
        segment.advance(offset);
        let local = SocketAddr::new(destination, header.destination);
        let remote = SocketAddr::new(source, header.source);
        if let Some(&id) = self.by_pair.get(&(local, remote)) {
            self.with(now, id, |connection, ctx| connection.on_segment(ctx, &header, segment));
            return;
        }
        if self.time_wait.get(&(local, remote)).is_some() && !self.on_time_wait(now, (local, remote), &header)
        {
            return;
        }
        let opening = header.has(SYN) && !header.has(ACK) && !header.has(RST);
        if opening && self.listens(header.destination) && !source.is_multicast() {
            self.on_syn(now, (local, remote), &header, segment);
        } else if !header.has(RST) {
            self.refuse(now, (local, remote), &header, segment.len());
        }
    }

    /// A peer opens a connection.
    fn on_syn(&mut self, now: Instant, pair: Pair, header: &Header, payload: Buffer) {
        if self.embryonic >= SYN_BACKLOG {
            self.counters.syns_dropped += 1;
            return;
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            self.counters.connections_refused += 1;
            self.refuse(now, pair, header, payload.len());
            return;
        }
        let id = StreamId(self.next_id);
        self.next_id += 2;
        self.embryonic += 1;
        self.add(now, id, pair, State::SynReceived);
        self.with(now, id, |connection, ctx| {
            connection.take_syn(ctx, header);
            connection.send_syn(ctx);
        });
    }

    /// The application opens a connection.
    fn open(&mut self, now: Instant, id: StreamId, local: SocketAddr, remote: SocketAddr) {
        if self.connections.contains_key(&id) {
            self.counters.wrong_items += 1;
            return;
        }
        let local = if self.connections.len() < MAX_CONNECTIONS && remote.port() != 0 {
            self.choose_local(local, remote)
        } else {
            None
        };
        let Some(local) = local else {
            self.counters.connections_refused += 1;
            self.out.up(Item::Stream(id, StreamItem::Reset));
            return;
        };
        self.time_wait.remove(&(local, remote));
        self.add(now, id, (local, remote), State::SynSent);
        self.with(now, id, |connection, ctx| connection.send_syn(ctx));
    }

    fn choose_local(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<SocketAddr> {
        let address = if local.ip().is_unspecified() {
            *self.addresses.iter().find(|address| address.is_ipv4() == remote.is_ipv4())?
        } else {
            Some(local.ip()).filter(|&address| self.owns(address) && address.is_ipv4() == remote.is_ipv4())?
        };
        let free = |port: u16| {
            let pair = (SocketAddr::new(address, port), remote);
            let free = !self.by_pair.contains_key(&pair);
            free.then_some(pair.0)
        };
        if local.port() != 0 {
            return free(local.port());
        }
        // From a random one on the next that is free, so that finding one is bounded.
        let (first, count) = (u32::from(*EPHEMERAL.start()), EPHEMERAL.len() as u32);
        let start = self.random.below(u64::from(count)) as u32;
        (0..count).find_map(|i| {
            let port = (first + (start + i) % count) as u16;
            free(port).filter(|local| self.time_wait.get(&(*local, remote)).is_none())
        })
    }

    fn add(&mut self, now: Instant, id: StreamId, pair: Pair, state: State) {
        let seed = Seed::new(self.random.bits(), self.random.bits());
        let random = seed.stream(&["connection"], id.0);
        let ctx = Context { now, config: &self.config, out: &mut self.out, counters: &mut self.counters };
        let connection = Connection::new(&ctx, id, pair, state, random, self.initial);
        self.by_pair.insert(pair, id);
        self.connections.insert(id, connection);
    }

    /// Lets a connection act, and takes note of its new state.
    fn with(&mut self, now: Instant, id: StreamId, act: impl FnOnce(&mut Connection, &mut Context<'_>)) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let before = connection.deadline();
        let embryonic = connection.is_embryonic();
        let mut ctx = Context { now, config: &self.config, out: &mut self.out, counters: &mut self.counters };
        act(connection, &mut ctx);
        self.embryonic -= usize::from(embryonic && !connection.is_embryonic());
        let over = matches!(connection.state, State::TimeWait | State::Closed);
        let after = if over { None } else { connection.deadline() };
        if before != after {
            if let Some(at) = before {
                self.deadlines.remove(&(at, id));
            }
            if let Some(at) = after {
                self.deadlines.insert((at, id));
            }
        }
        if over {
            self.remove(now, id);
        }
    }

    fn remove(&mut self, now: Instant, id: StreamId) {
        let Some(connection) = self.connections.remove(&id) else { return };
        let pair = (connection.local, connection.remote);
        self.by_pair.remove(&pair);
        if connection.state == State::TimeWait {
            let remembered = Remembered {
                next_out: connection.sender.nxt as u32,
                next_in: connection.receiver.next() as u32,
                timestamps: connection.clock.stamp(now),
                at: now,
            };
            self.time_wait.insert(pair, remembered);
        }
    }

    /// A segment for a connection in TIME-WAIT. True if it opens a new one in its place (RFC 6191).
    fn on_time_wait(&mut self, now: Instant, pair: Pair, header: &Header) -> bool {
        let Some(&known) = self.time_wait.get(&pair) else { return true };
        let ahead = (header.seq.wrapping_sub(known.next_in) as i32) > 0;
        if header.has(SYN) && !header.has(ACK) && !header.has(RST) && ahead {
            self.time_wait.remove(&pair);
            return true;
        }
        if header.has(RST) || !(header.has(FIN) || header.has(SYN)) {
            return false;
        }
        let elapsed = now.since(known.at).as_millis() as u32;
        let timestamps = known.timestamps.map(|t| Timestamps { value: t.value.wrapping_add(elapsed), ..t });
        let answer = Header {
            source: pair.0.port(),
            destination: pair.1.port(),
            seq: known.next_out,
            ack: known.next_in,
            flags: ACK,
            window: 0,
            options: Options { timestamps, ..Options::default() },
        };
        self.send(now, pair, &answer);
        false
    }

    /// Answers a segment for which there is no connection with a reset (RFC 9293 section 3.10.7.1).
    fn refuse(&mut self, now: Instant, pair: Pair, header: &Header, len: usize) {
        self.counters.resets_sent += 1;
        let taken = len as u32 + u32::from(header.has(SYN)) + u32::from(header.has(FIN));
        let reset = if header.has(ACK) {
            Header { seq: header.ack, flags: RST, ..Header::default() }
        } else {
            Header { ack: header.seq.wrapping_add(taken), flags: RST | ACK, ..Header::default() }
        };
        self.send(now, pair, &reset);
    }

    fn send(&mut self, now: Instant, pair: Pair, header: &Header) {
        let mut ctx = Context { now, config: &self.config, out: &mut self.out, counters: &mut self.counters };
        ctx.down(pair.0, pair.1, header, Buffer::copy_from(&[]), 0);
    }

    fn on_icmp(&mut self, now: Instant, source: IpAddr, destination: IpAddr, bytes: &[u8]) {
        let mtu = match icmp::parse(source, destination, bytes) {
            Ok(Message::PacketTooBig { mtu }) => mtu,
            Ok(_) => return,
            Err(error) => return self.count_malformed(error),
        };
        let quoted = &bytes[icmp::HEADER..];
        let Ok(header) = ip::parse_quoted(quoted) else { return };
        let Some(&[s0, s1, d0, d1, q0, q1, q2, q3]) =
            quoted.get(header.header_len..).and_then(|segment| segment.first_chunk::<8>())
        else {
            return;
        };
        if header.protocol != ip::TCP {
            return;
        }
        let local = SocketAddr::new(header.source, u16::from_be_bytes([s0, s1]));
        let remote = SocketAddr::new(header.destination, u16::from_be_bytes([d0, d1]));
        if let Some(&id) = self.by_pair.get(&(local, remote)) {
            let seq = u32::from_be_bytes([q0, q1, q2, q3]);
            self.with(now, id, |connection, ctx| connection.on_packet_too_big(ctx, seq, mtu));
        }
    }

    fn count_malformed(&mut self, error: Malformed) {
        if error.is_corrupt() {
            self.counters.checksum_errors += 1;
        } else {
            self.counters.malformed += 1;
        }
    }
}

impl Machine for Tcp {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        // Timers that are due at the instant of an arrival go off first.
        self.wake(now);
        match (port, item) {
            (Port::Below(0), Item::Packet(packet)) => self.on_packet(now, packet),
            (Port::Above(0), Item::Stream(id, StreamItem::Open { local, remote })) => {
                self.open(now, id, local, remote);
            }
            (Port::Above(0), Item::Stream(id, item)) => {
                // Items for a connection that is over crossed its end on the way.
                self.with(now, id, |connection, ctx| connection.on_stream(ctx, item));
            }
            _ => self.counters.wrong_items += 1,
        }
    }

    fn wake(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.deadlines.first() {
            if at > now {
                break;
            }
            self.with(now, id, |connection, ctx| connection.wake(ctx));
        }
        self.time_wait.expire(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.deadlines.first().map(|&(at, _)| at), self.time_wait.deadline())
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
    }
}
