//! One stream: the `kcp` crate's machine, driven in virtual time.

use hopcast_core::bytes::Malformed;
use hopcast_core::{Buffer, Duration, Instant, Item, Outbox, StreamId, StreamItem};

use super::config::Config;
use super::counters::Counters;
use super::fec::DATA_HEADER;
use super::lower::Lower;
use super::output::{Output, Sent};
use super::records::{BEGIN, END, Ledger, MAX_RECORD, Piece, RecordReader};
use super::remembered::End;
use super::wire::{ACK, ASK, HEADER, PUSH, Packet, Segment};

/// Limit of numbers and times. Chosen: below it, KCP's signed differences of them cannot overflow. So a
/// conversation ends after 2^30 segments, more than a terabyte, or 2^30 ms, twelve days.
const LIMIT: u32 = 1 << 30;
/// An acknowledgement that took longer is let go: a round trip is at most what a timeout can be (`ikcp.c`,
/// `IKCP_RTO_MAX`).
const MAX_TRIP_MS: u32 = 60_000;
/// Maximum number of acknowledgements that KCP may owe while it waits for its next tick. Chosen: it bounds memory; what
/// is beyond it is acknowledged when it is repeated.
const MAX_OWED: u32 = 4096;

/// The surroundings that a conversation acts on.
pub(super) struct Context<'a> {
    pub now: Instant,
    pub config: &'a Config,
    pub up: &'a mut Outbox,
    pub lower: &'a mut Lower,
    pub counters: &'a mut Counters,
}

impl Context<'_> {
    pub(super) fn up(&mut self, id: StreamId, item: StreamItem) {
        self.up.up(Item::Stream(id, item));
    }

    pub(super) fn reset(&mut self, conv: u32) {
        self.counters.resets_sent += 1;
        self.down(&Segment::reset(conv).emit());
    }

    pub(super) fn down(&mut self, datagram: &[u8]) {
        self.lower.send(self.now, datagram, self.up, self.counters);
    }
}

pub(super) struct Conversation {
    id: StreamId,
    conv: u32,
    kcp: ::kcp::Kcp<Output>,
    output: Output,
    /// KCP's zero of time, and when it next flushes, in milliseconds from there.
    began: Instant,
    tick: u32,
    /// Segments that have arrived since the last flush and call for an answer.
    owed: u32,
    sent: Sent,
    ledger: Ledger,
    /// The application's bytes that it may write in all, and whether it has finished.
    granted: u64,
    finished: bool,
    /// The offset up to which the application knows that its bytes are on the wire.
    told: u64,
    reader: RecordReader,
    /// Bytes that have been read from KCP and not passed on yet: less than a segment.
    pending: Vec<u8>,
    /// The bytes that the application takes.
    credit: u64,
    /// Segments read from KCP.
    read: u32,
    /// Whether the application knows that the stream is open.
    stands: bool,
    /// Time at which anything was last heard while something was unacknowledged.
    quiet_since: Instant,
    end: Option<End>,
}

impl Conversation {
    pub(super) fn new(now: Instant, config: &Config, conv: u32, id: StreamId, accepting: bool) -> Self {
        let output = Output::default();
        let mut kcp = ::kcp::Kcp::new_stream(conv, output.clone());
        let room = config.fec.map_or(0, |_| DATA_HEADER);
        sure(kcp.set_mtu(usize::from(config.mtu) - room));
        let interval = i32::try_from(config.interval.as_millis()).unwrap_or(i32::MAX);
        let resend = i32::try_from(config.resend).unwrap_or(i32::MAX);
        kcp.set_nodelay(config.nodelay, interval, resend, !config.congestion_control);
        kcp.set_wndsize(config.send_window.max(1), config.receive_window.max(1));
        sure(kcp.update(0));
        Self {
            id,
            conv,
            kcp,
            output,
            began: now,
            tick: interval.clamp(10, 5000) as u32,
            owed: 0,
            sent: Sent::default(),
            ledger: Ledger::default(),
            granted: 0,
            finished: false,
            told: 0,
            reader: RecordReader::new(accepting),
            pending: Vec::new(),
            credit: 0,
            read: 0,
            stands: false,
            quiet_since: now,
            end: None,
        }
    }

    /// Begins the conversation from this end.
    pub(super) fn begin(&mut self, ctx: &mut Context<'_>) {
        self.mark(BEGIN);
        self.written(ctx);
    }

    pub(super) fn end(&self) -> Option<End> {
        self.end
    }

    pub(super) fn id(&self) -> StreamId {
        self.id
    }

    pub(super) fn deadline(&self, config: &Config) -> Option<Instant> {
        if self.owed > 0 || self.kcp.wait_snd() > 0 {
            Some(self.began + Duration::from_millis(self.tick.into()))
        } else if self.reader.has_begun() {
            None
        } else {
            Some(self.began + config.silence)
        }
    }

    pub(super) fn wake(&mut self, ctx: &mut Context<'_>) {
        self.catch_up(ctx);
        let silent = self.sent.is_under_way() && ctx.now.since(self.quiet_since) >= ctx.config.silence;
        let unbegun = !self.reader.has_begun() && ctx.now.since(self.began) >= ctx.config.silence;
        let worn_out = self.millis(ctx.now) >= LIMIT || self.sent.next() >= LIMIT;
        if silent || unbegun || worn_out {
            ctx.counters.streams_timed_out += 1;
            self.break_off(ctx);
        } else {
            self.settle(ctx);
        }
    }

    /// A datagram of this conversation has arrived.
    pub(super) fn on_packet(&mut self, ctx: &mut Context<'_>, packet: &Packet<'_>) {
        if packet.is_reset() {
            ctx.counters.resets_received += 1;
            self.tell_reset(ctx);
            self.end = Some(End::Reset);
            return;
        }
        self.catch_up(ctx);
        let now = self.millis(ctx.now);
        if !packet.segments().all(|segment| self.admits(&segment, now)) {
            ctx.counters.out_of_window += 1;
            return;
        }
        let waited = self.kcp.wait_snd();
        if self.kcp.input(packet.bytes()).is_err() {
            ctx.counters.malformed += 1;
        }
        self.quiet_since = ctx.now;
        for segment in packet.segments() {
            self.sent.acknowledge(segment.una);
            if matches!(segment.command, PUSH | ASK) {
                ctx.counters.segments_received += u64::from(segment.command == PUSH);
                self.owed += 1;
            }
        }
        if self.kcp.wait_snd() == 0 {
            self.sent.acknowledge(self.sent.next());
        }
        self.stand(ctx);
        if self.deliver(ctx).is_err() {
            ctx.counters.streams_broken += 1;
            self.break_off(ctx);
            return;
        }
        // kcp-go flushes acknowledgements once they fill a datagram.
        let eager = ctx.config.eager;
        let limit = if eager { u32::from(ctx.config.mtu) / HEADER as u32 } else { MAX_OWED };
        if (eager && self.kcp.wait_snd() < waited) || self.owed >= limit {
            self.flush();
        }
        self.settle(ctx);
    }

    /// The application hands over an item.
    pub(super) fn on_stream(&mut self, ctx: &mut Context<'_>, item: StreamItem) {
        self.catch_up(ctx);
        match item {
            StreamItem::Data(data) => {
                if self.finished || self.ledger.written() + data.len() as u64 > self.granted {
                    ctx.counters.streams_broken += 1;
                    self.break_off(ctx);
                    return;
                }
                for part in data.chunks(MAX_RECORD) {
                    self.put(&(part.len() as u16).to_le_bytes());
                    self.put(part);
                    self.ledger.record(part.len());
                }
                self.written(ctx);
            }
            StreamItem::Finish if !self.finished => {
                self.finished = true;
                self.mark(END);
                self.written(ctx);
            }
            StreamItem::Credit(bytes) => {
                self.credit = self.credit.saturating_add(bytes);
                if self.deliver(ctx).is_err() {
                    ctx.counters.streams_broken += 1;
                    self.break_off(ctx);
                    return;
                }
                self.settle(ctx);
            }
            StreamItem::Reset => {
                ctx.reset(self.conv);
                self.end = Some(End::Reset);
            }
            StreamItem::Finish
            | StreamItem::Opened
            | StreamItem::Open { .. }
            | StreamItem::Transmitted(_) => {}
        }
    }

    /// Whether a segment can be given to KCP, which would overflow or wait for ever on others.
    fn admits(&self, segment: &Segment, now: u32) -> bool {
        let known = match segment.command {
            PUSH => segment.sn < LIMIT && segment.len <= self.kcp.mss(),
            ACK => {
                let trip = now.checked_sub(segment.ts);
                segment.sn < self.sent.next() && trip.is_some_and(|trip| trip <= MAX_TRIP_MS)
            }
            _ => true,
        };
        known && segment.una <= self.sent.next()
    }

    /// The first segment from the other end: the application that opened the stream hears that it is open.
    fn stand(&mut self, ctx: &mut Context<'_>) {
        if self.reader.has_begun() && !self.stands {
            self.stands = true;
            ctx.up(self.id, StreamItem::Opened);
        }
    }

    /// Passes on bytes that have arrived in order, as far as the application takes them.
    fn deliver(&mut self, ctx: &mut Context<'_>) -> Result<(), Malformed> {
        let mut gathered: Option<Buffer> = None;
        let result = loop {
            let mut used = 0;
            let stop = loop {
                match self.reader.next(&self.pending[used..], self.credit) {
                    Err(malformed) => break Err(malformed),
                    Ok((None, 0)) => break Ok(()),
                    Ok((piece, read)) => {
                        let bytes = &self.pending[used..used + read];
                        used += read;
                        match piece {
                            None => {}
                            Some(Piece::Data(len)) => {
                                self.credit -= len as u64;
                                match &mut gathered {
                                    Some(gathered) => gathered.append(bytes),
                                    None => gathered = Some(Buffer::copy_from(bytes)),
                                }
                            }
                            Some(Piece::Begin) => {
                                self.stands = true;
                                ctx.counters.streams_accepted += 1;
                                let Lower { local, remote, .. } = *ctx.lower;
                                ctx.up(self.id, StreamItem::Open { local, remote });
                            }
                            Some(Piece::End) => {
                                if let Some(data) = gathered.take() {
                                    ctx.up(self.id, StreamItem::Data(data));
                                }
                                ctx.up(self.id, StreamItem::Finish);
                            }
                        }
                    }
                }
            };
            self.pending.drain(..used);
            if stop.is_err() || !self.pending.is_empty() {
                break stop;
            }
            self.pending.resize(self.kcp.peeksize().unwrap_or(0), 0);
            if self.kcp.recv(&mut self.pending).is_err() {
                self.pending.clear();
                break Ok(());
            }
            self.read += 1;
            // A window that opens again is announced with the next flush.
            self.owed = self.owed.max(1);
        };
        if let Some(data) = gathered {
            ctx.up(self.id, StreamItem::Data(data));
        }
        result
    }

    fn mark(&mut self, mark: [u8; 2]) {
        self.put(&mark);
        self.ledger.mark();
    }

    fn put(&mut self, bytes: &[u8]) {
        let limit = self.kcp.mss();
        for part in bytes.chunks(limit) {
            sure(self.kcp.send(part));
        }
    }

    fn written(&mut self, ctx: &mut Context<'_>) {
        if ctx.config.eager {
            self.flush();
        }
        self.settle(ctx);
    }

    /// Gives KCP the time; it flushes if its tick has come.
    fn catch_up(&mut self, ctx: &Context<'_>) {
        let now = self.millis(ctx.now);
        sure(self.kcp.update(now));
        if now >= self.tick {
            // As `ikcp_update` moves its own.
            let interval = ctx.config.interval.as_millis().clamp(10, 5000) as u32;
            self.tick += interval;
            if now >= self.tick {
                self.tick = now + interval;
            }
            self.owed = 0;
        }
    }

    fn flush(&mut self) {
        sure(self.kcp.flush());
        self.owed = 0;
    }

    /// Sends the datagrams that KCP has written, and grants the bytes that it has room for.
    fn settle(&mut self, ctx: &mut Context<'_>) {
        self.send(ctx);
        let transmitted = self.ledger.before(self.sent.transmitted);
        if transmitted > self.told {
            self.told = transmitted;
            ctx.up(self.id, StreamItem::Transmitted(transmitted));
        }
        self.grant(ctx);
        self.ledger.forget(self.sent.acknowledged);
        if self.finished && self.reader.has_ended() && self.kcp.wait_snd() == 0 {
            self.flush();
            self.send(ctx);
            self.end = Some(End::Closed(self.read));
        }
    }

    fn send(&mut self, ctx: &mut Context<'_>) {
        while let Some(datagram) = self.output.pop() {
            if !self.sent.is_under_way() {
                self.quiet_since = ctx.now;
            }
            self.sent.note(&datagram, ctx.counters);
            ctx.down(&datagram);
        }
    }

    /// Grants what brings the application two windows ahead of what is acknowledged: one under way, one queued. Less
    /// than a segment is not worth an item.
    fn grant(&mut self, ctx: &mut Context<'_>) {
        if !self.stands || self.finished {
            return;
        }
        let segment = self.kcp.mss() as u64;
        let room = 2 * u64::from(self.kcp.snd_wnd()) * segment;
        let limit = self.ledger.before(self.sent.acknowledged) + room;
        let more = limit.saturating_sub(self.granted);
        if more >= segment {
            self.granted = limit;
            ctx.up(self.id, StreamItem::Credit(more));
        }
    }

    /// Ends the conversation from here, and says so both ways.
    fn break_off(&mut self, ctx: &mut Context<'_>) {
        self.tell_reset(ctx);
        ctx.reset(self.conv);
        self.end = Some(End::Reset);
    }

    /// Reports the reset to the application, if it knows of the stream.
    fn tell_reset(&self, ctx: &mut Context<'_>) {
        if self.reader.has_begun() {
            ctx.up(self.id, StreamItem::Reset);
        }
    }

    fn millis(&self, now: Instant) -> u32 {
        u32::try_from(now.since(self.began).as_millis()).map_or(LIMIT, |millis| millis.min(LIMIT))
    }
}

impl core::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Conversation").field("id", &self.id).field("kcp", &self.kcp).finish_non_exhaustive()
    }
}

/// KCP fails on what cannot be here: an output that does, a write of more than 127 segments, a tiny MTU.
fn sure<T>(result: ::kcp::KcpResult<T>) {
    debug_assert!(result.is_ok(), "KCP failed");
}
