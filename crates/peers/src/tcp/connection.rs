//! One connection: composes its two halves, the handshake and the stream port.

use std::net::SocketAddr;

use hopcast_core::{Buffer, Instant, Item, Outbox, Stream, StreamId, StreamItem};
use hopcast_wire::ip;

use super::ack::{AckPolicy, When};
use super::config::Config;
use super::controls;
use super::counters::Counters;
use super::receive::Receiver;
use super::sender::Sender;
use super::seq;
use super::timeouts::Verdict;
use super::timer::{Deadlines, Timer};
use super::timestamps::Clock;
use super::wheel;
use super::wire::{self, ACK, FIN, Header, Options, PSH, RST};

/// The surroundings that a connection acts on.
pub(super) struct Context<'a> {
    pub now: Instant,
    pub config: &'a Config,
    pub out: &'a mut Outbox,
    pub counters: &'a mut Counters,
}

impl Context<'_> {
    pub(super) fn up(&mut self, id: StreamId, item: StreamItem) {
        self.out.up(Item::Stream(id, item));
    }

    /// Puts TCP and IP header in front of the payload and hands the packet down.
    pub(super) fn down(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        header: &Header,
        mut packet: Buffer,
        id: u16,
    ) {
        wire::prepend(&mut packet, local, remote, header);
        ip::prepend(&mut packet, local.ip(), remote.ip(), ip::TCP, self.config.hop_limit, id);
        self.counters.segments_sent += 1;
        self.out.down(Item::Packet(packet));
    }
}

/// State of a connection. Once established, its two directions hold the further states of RFC 9293.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A SYN has been sent.
    SynSent,
    /// A SYN has come, and been answered by one.
    SynReceived,
    /// Both ends know each other's sequence numbers.
    Established,
    /// Both directions are over, and this end closed first: TIME-WAIT is to follow.
    TimeWait,
    /// Over.
    Closed,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: StreamId,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) state: State,
    /// Opened by the application, and not by the peer.
    pub(super) active: bool,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) acks: AckPolicy,
    pub(super) timers: Deadlines,
    pub(super) clock: Clock,
    /// Our first sequence number.
    pub(super) initial: u64,
    /// Transmissions of the SYN, and when the first was.
    pub(super) syns: u32,
    pub(super) syn_sent: Instant,
    /// Bits by which the peer's window field is shifted, if both ends scale.
    pub(super) peer_scale: Option<u8>,
    /// The MSS that the peer announced, without options taken off; and the path's MTU.
    pub(super) peer_mss: u32,
    pub(super) mtu: u32,
    /// An acknowledgement is due, now or by a timer.
    pub(super) ack_due: bool,
    pub(super) ack_now: bool,
    /// Time at which the last segment was answered that may be forged.
    pub(super) challenged: Option<Instant>,
    ip_id: u16,
    port: StreamPort,
    /// The FIN of this end was sent before the peer's came.
    closed_first: bool,
}

/// The state of the stream port.
#[derive(Clone, Copy, Debug, Default)]
struct StreamPort {
    /// The bytes that the application may still write, and the freed space that it has not been granted yet.
    writable: u64,
    freed: u64,
    reported: u64,
    finish_reported: bool,
}

impl Connection {
    pub(super) fn new(
        ctx: &Context<'_>,
        id: StreamId,
        (local, remote): (SocketAddr, SocketAddr),
        state: State,
        mut random: Stream,
        initial: Option<u32>,
    ) -> Self {
        let config = ctx.config;
        let initial = seq::initial(initial.unwrap_or(random.bits() as u32));
        let clock = Clock::new(random.bits() as u32);
        let ip_id = random.bits() as u16;
        let congestion = controls::control(config.congestion, ctx.now, random);
        // The SYN takes a sequence number.
        let sender = Sender::new(initial + 1, 536, config.initial_window.max(1), config.min_rto, congestion);
        Self {
            id,
            local,
            remote,
            state,
            active: state == State::SynSent,
            sender,
            receiver: Receiver::new(0, config.receive_buffer.get().max(1)),
            acks: AckPolicy::default(),
            timers: Deadlines::default(),
            clock,
            initial,
            syns: 0,
            syn_sent: ctx.now,
            peer_scale: None,
            peer_mss: 536,
            mtu: config.mtu,
            ack_due: false,
            ack_now: false,
            challenged: None,
            ip_id,
            port: StreamPort { writable: config.send_buffer.get(), ..StreamPort::default() },
            closed_first: false,
        }
    }

    /// Time at which to wake it.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Whether the handshake is under way, opened by the peer.
    pub(super) fn is_embryonic(&self) -> bool {
        self.state == State::SynReceived && !self.active
    }

    /// Takes an item from above.
    pub(super) fn on_stream(&mut self, ctx: &mut Context<'_>, item: StreamItem) {
        match item {
            StreamItem::Data(bytes) => {
                if self.sender.buffer.is_finished() || bytes.len() as u64 > self.port.writable {
                    ctx.counters.credit_violations += 1;
                    self.abort(ctx);
                    return;
                }
                self.port.writable -= bytes.len() as u64;
                if self.state == State::Established {
                    self.sender.check_app_limited();
                }
                self.sender.buffer.write(bytes);
            }
            StreamItem::Credit(credit) => self.receiver.grant(credit),
            StreamItem::Finish => self.sender.buffer.finish(),
            StreamItem::Reset => {
                self.send_reset(ctx);
                self.state = State::Closed;
                return;
            }
            StreamItem::Open { .. } | StreamItem::Opened | StreamItem::Transmitted(_) => {
                ctx.counters.wrong_items += 1;
                return;
            }
        }
        self.advance(ctx);
    }

    /// Does the work that is due by now.
    pub(super) fn wake(&mut self, ctx: &mut Context<'_>) {
        self.note_option_len();
        while let Some(timer) = self.timers.expired(ctx.now) {
            let (now, timers, counters) = (ctx.now, &mut self.timers, &mut *ctx.counters);
            let mut verdict = Verdict::Alive;
            match timer {
                Timer::Handshake => verdict = self.on_handshake_timeout(ctx),
                Timer::Retransmission => verdict = self.sender.on_timeout(now, timers, counters),
                Timer::LossProbe => self.sender.on_loss_probe(now, timers, counters),
                Timer::Reordering => self.sender.on_reordering_over(now, timers, counters),
                Timer::Persist => verdict = self.sender.on_persist(now, timers),
                Timer::Pacing => {}
                Timer::DelayedAck | Timer::CompressedAck => self.ack_now = true,
            }
            if verdict == Verdict::Gone {
                ctx.counters.connections_timed_out += 1;
                self.fail(ctx);
                return;
            }
        }
        self.advance(ctx);
    }

    /// Does everything that has become possible: send, acknowledge, deliver, grant, end.
    pub(super) fn advance(&mut self, ctx: &mut Context<'_>) {
        if self.state != State::Established {
            return;
        }
        // Delivered first, so that what is sent advertises the space that this frees.
        self.deliver(ctx);
        self.note_option_len();
        self.sender.send(ctx.now, &mut self.timers, ctx.counters);
        self.flush(ctx);
        if self.ack_now || (self.ack_due && self.receiver.has_opened()) {
            self.send_ack(ctx);
        }
        self.grant(ctx);
        if self.sender.has_sent_fin() && !self.receiver.is_finished() {
            self.closed_first = true;
        }
        if self.sender.is_done() && self.port.finish_reported {
            self.state = if self.closed_first { State::TimeWait } else { State::Closed };
        }
    }

    fn note_option_len(&mut self) {
        let room = if self.clock.is_agreed() { 3 } else { 4 };
        self.sender.option_len = if self.sender.sack { self.receiver.blocks.option_len(room) } else { 0 };
    }

    fn deliver(&mut self, ctx: &mut Context<'_>) {
        let mut delivered = false;
        while let Some(bytes) = self.receiver.deliver() {
            ctx.up(self.id, StreamItem::Data(bytes));
            delivered = true;
        }
        if delivered && self.receiver.has_opened() {
            self.ack_now = true;
        }
        if self.receiver.is_finished() && self.receiver.is_drained() && !self.port.finish_reported {
            self.port.finish_reported = true;
            ctx.up(self.id, StreamItem::Finish);
        }
    }

    /// Sends the segments that the sender has decided upon.
    fn flush(&mut self, ctx: &mut Context<'_>) {
        let mut outbox = core::mem::take(&mut self.sender.outbox);
        for outgoing in outbox.drain(..) {
            let payload = self.sender.buffer.copy(outgoing.seq, outgoing.len as usize);
            let last = outgoing.seq + u64::from(outgoing.len) == self.sender.buffer.end();
            let mut flags = ACK;
            if outgoing.fin {
                flags |= FIN;
            }
            if last && outgoing.len > 0 {
                flags |= PSH;
            }
            self.transmit(ctx, outgoing.seq, flags, payload);
        }
        self.sender.outbox = outbox;
        let sent = self.sender.nxt.min(self.sender.buffer.end()) - (self.initial + 1);
        if sent > self.port.reported {
            self.port.reported = sent;
            ctx.up(self.id, StreamItem::Transmitted(sent));
        }
    }

    /// Sends an acknowledgement without data.
    pub(super) fn send_ack(&mut self, ctx: &mut Context<'_>) {
        self.transmit(ctx, self.sender.nxt, ACK, Buffer::copy_from(&[]));
    }

    fn send_reset(&mut self, ctx: &mut Context<'_>) {
        if self.state == State::SynSent {
            return;
        }
        ctx.counters.resets_sent += 1;
        self.transmit(ctx, self.sender.nxt, RST | ACK, Buffer::copy_from(&[]));
    }

    /// Sends a segment that acknowledges the data that has arrived.
    fn transmit(&mut self, ctx: &mut Context<'_>, seq: u64, flags: u8, payload: Buffer) {
        let sack = if self.sender.sack { self.receiver.blocks.report() } else { wire::Blocks::default() };
        let options = Options { timestamps: self.clock.stamp(ctx.now), sack, ..Options::default() };
        let window = self.receiver.advertise();
        self.put(ctx, seq, flags, window, options, payload);
        self.receiver.acknowledged = self.receiver.next();
        self.acks.sent(core::mem::take(&mut self.ack_due) | core::mem::take(&mut self.ack_now));
        self.timers.stop(Timer::DelayedAck);
        self.timers.stop(Timer::CompressedAck);
    }

    /// Hands a segment down.
    pub(super) fn put(
        &mut self,
        ctx: &mut Context<'_>,
        seq: u64,
        flags: u8,
        window: u16,
        options: Options,
        payload: Buffer,
    ) {
        let header = Header {
            source: self.local.port(),
            destination: self.remote.port(),
            seq: seq as u32,
            ack: if flags & ACK != 0 { self.receiver.next() as u32 } else { 0 },
            flags,
            window,
            options,
        };
        self.ip_id = self.ip_id.wrapping_add(1);
        ctx.down(self.local, self.remote, &header, payload, self.ip_id);
    }

    /// Decides when to acknowledge the data that has arrived.
    pub(super) fn schedule_ack(&mut self, ctx: &Context<'_>, when: When) {
        match when {
            When::Never => return,
            When::Now => self.ack_now = true,
            When::Delayed if ctx.config.delayed_ack.is_zero() => self.ack_now = true,
            When::Delayed => {
                if self.timers.get(Timer::DelayedAck).is_none() {
                    self.timers.set(Timer::DelayedAck, wheel::expiry(ctx.now, ctx.config.delayed_ack));
                }
            }
            When::Together(wait) => {
                if self.timers.get(Timer::CompressedAck).is_none() {
                    self.timers.set(Timer::CompressedAck, ctx.now + wait);
                }
            }
        }
        self.ack_due = true;
    }

    /// Notes that `bytes` of the send buffer are free again.
    pub(super) fn free(&mut self, bytes: u64) {
        self.port.freed += bytes;
    }

    /// The connection stands: the application may write.
    pub(super) fn grant_first(&self, ctx: &mut Context<'_>) {
        ctx.up(self.id, StreamItem::Credit(ctx.config.send_buffer.get()));
    }

    /// Grants space that has become free, in lots that are worth an item.
    fn grant(&mut self, ctx: &mut Context<'_>) {
        let lot = (ctx.config.send_buffer.get() / 16).min(64 << 10);
        let empty = self.sender.una >= self.sender.buffer.end();
        if self.port.freed > 0 && (self.port.freed >= lot || empty) && !self.sender.buffer.is_finished() {
            let freed = core::mem::take(&mut self.port.freed);
            self.port.writable += freed;
            ctx.up(self.id, StreamItem::Credit(freed));
        }
    }

    /// Ends the connection with a reset to both sides.
    pub(super) fn abort(&mut self, ctx: &mut Context<'_>) {
        self.send_reset(ctx);
        self.fail(ctx);
    }

    /// Ends the connection; the application hears of it if it knows of the connection.
    pub(super) fn fail(&mut self, ctx: &mut Context<'_>) {
        if !self.is_embryonic() {
            ctx.up(self.id, StreamItem::Reset);
        }
        self.state = State::Closed;
    }
}
