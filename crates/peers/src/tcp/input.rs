//! A segment arrives for a connection that stands: is it believable, what does it acknowledge, what does it bring.

use hopcast_core::{Buffer, Duration, StreamItem};

use super::ack::Standing;
use super::connection::{Connection, Context, State};
use super::sender::Ack;
use super::seq;
use super::wire::{ACK, FIN, Header, RST, SYN};

/// Segments that may be forged are answered at most this often: Linux `tcp_invalid_ratelimit`.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);
/// Minimum MSS to which an ICMP message may bring a connection down, for IPv4 and IPv6: the payloads of the smallest
/// MTUs that hosts must support, 576 and 1280 (RFC 1122 section 3.3.2, RFC 8200 section 5).
const MIN_PATH_MSS: [u32; 2] = [536, 1220];

impl Connection {
    /// Takes a segment in; `payload` is the part behind the header.
    pub(super) fn on_segment(&mut self, ctx: &mut Context<'_>, header: &Header, payload: Buffer) {
        let handshaking = self.state != State::Established;
        if handshaking && !self.on_handshake(ctx, header) {
            return;
        }
        // Data on a SYN are not taken (RFC 7413); they come again.
        if !(handshaking && header.has(SYN)) {
            self.on_established(ctx, header, payload);
        }
        self.advance(ctx);
    }

    fn on_established(&mut self, ctx: &mut Context<'_>, header: &Header, payload: Buffer) {
        let now = ctx.now;
        let next = self.receiver.next();
        let start = seq::expand(next, header.seq);
        let end = start + payload.len() as u64 + u64::from(header.has(FIN));
        if self.clock.is_stale(now, header.options.timestamps)
            && !header.has(RST)
            && !self.is_late_duplicate(header, start, end)
        {
            ctx.counters.paws_rejected += 1;
            self.answer_unacceptable(ctx, start, end);
            return;
        }
        if !self.receiver.admits(start, end) {
            ctx.counters.out_of_window += 1;
            if !header.has(RST) {
                self.answer_unacceptable(ctx, start, end);
            }
            return;
        }
        if header.has(RST) {
            // RFC 5961 section 3: only the exact number resets; one within the window is asked about.
            if start == next {
                ctx.counters.resets_received += 1;
                ctx.up(self.id, StreamItem::Reset);
                self.state = State::Closed;
            } else {
                self.challenge(ctx);
            }
            return;
        }
        if header.has(SYN) {
            // RFC 5961 section 4.
            self.challenge(ctx);
            return;
        }
        if !header.has(ACK) {
            return;
        }
        let number = seq::expand(self.sender.una, header.ack);
        // RFC 5961 section 5.
        if number > self.sender.nxt || number + self.sender.largest_window.max(65_535) < self.sender.una {
            self.challenge(ctx);
            return;
        }
        if start <= self.receiver.acknowledged {
            self.clock.note(now, header.options.timestamps);
        }
        self.take_ack(ctx, header, number, start, !payload.is_empty() || header.has(FIN));
        self.take_data(ctx, start, payload, header.has(FIN));
    }

    fn take_ack(
        &mut self,
        ctx: &mut Context<'_>,
        header: &Header,
        number: u64,
        start: u64,
        carries_data: bool,
    ) {
        let una = self.sender.una;
        let mut blocks = [(0, 0); 4];
        let reported = header.options.sack.as_slice();
        for (block, &(from, to)) in blocks.iter_mut().zip(reported) {
            *block = (seq::expand(una, from), seq::expand(una, to));
        }
        let ack = Ack {
            number,
            seq: start,
            window: self.window_of(header),
            carries_data,
            sack: &blocks[..reported.len()],
            echoed: self.clock.echoed(ctx.now, header.options.timestamps),
        };
        let freed = self.sender.on_ack(ctx.now, &ack, &mut self.timers, ctx.counters);
        self.free(freed);
    }

    fn take_data(&mut self, ctx: &mut Context<'_>, start: u64, payload: Buffer, fin: bool) {
        use super::receive::Arrival;
        let finished = self.receiver.is_finished();
        let end = start + payload.len() as u64;
        if start > self.receiver.next()
            && self.acks.is_compressing()
            && self.receiver.blocks.is_crowded_by(start, end)
        {
            self.send_ack(ctx);
        }
        let arrival = self.receiver.take(start, payload, fin);
        match arrival {
            Arrival::OutOfOrder => ctx.counters.out_of_order_received += 1,
            Arrival::Duplicate => ctx.counters.duplicates_received += 1,
            Arrival::Pruned => ctx.counters.receive_buffer_full += 1,
            Arrival::Nothing | Arrival::InOrder { .. } => {}
        }
        let standing = Standing {
            next: self.receiver.next(),
            unacknowledged: self.receiver.next() - self.receiver.acknowledged,
            full_segment: self.receiver.largest_segment(),
            gap: self.receiver.has_gap(),
            sack: self.sender.sack,
            rtt: self.sender.rtt.smoothed(),
            rto: self.sender.rtt.timeout(),
        };
        let ended = !finished && self.receiver.is_finished();
        let when = self.acks.on_arrival(ctx.now, arrival, ended, &standing);
        self.schedule_ack(ctx, when);
    }

    /// Whether a segment with an old timestamp is only an acknowledgement overtaken by another, which changes nothing
    /// (Linux `tcp_disordered_ack`).
    fn is_late_duplicate(&self, header: &Header, start: u64, end: u64) -> bool {
        header.has(ACK)
            && start == end
            && start == self.receiver.next()
            && header.ack == self.sender.una as u32
            && self.window_of(header) == self.sender.peer_window
    }

    /// Answers with where this end is, after a segment outside of the window; at most now and then if it had no data,
    /// so that two ends never answer each other without end.
    fn answer_unacceptable(&mut self, ctx: &mut Context<'_>, start: u64, end: u64) {
        if start == end {
            self.challenge(ctx);
            return;
        }
        if start < self.receiver.next() {
            ctx.counters.duplicates_received += 1;
            self.receiver.blocks.duplicated(start, end.min(self.receiver.next()));
        }
        self.ack_now = true;
    }

    fn challenge(&mut self, ctx: &mut Context<'_>) {
        if self.challenged.is_some_and(|last| ctx.now.since(last) < CHALLENGE_INTERVAL) {
            return;
        }
        self.challenged = Some(ctx.now);
        ctx.counters.challenge_acks += 1;
        self.ack_now = true;
    }

    /// An ICMP message says that the segment at `seq` did not fit a link of `mtu` bytes.
    pub(super) fn on_packet_too_big(&mut self, ctx: &mut Context<'_>, seq: u32, mtu: u32) {
        let number = seq::expand(self.sender.una, seq);
        // RFC 5927 section 7: it must be about something that is outstanding.
        if self.state != State::Established || number < self.sender.una || number >= self.sender.nxt {
            return;
        }
        let min = MIN_PATH_MSS[usize::from(self.local.is_ipv6())] + self.header_len();
        let mtu = mtu.max(min);
        if mtu >= self.mtu {
            return;
        }
        ctx.counters.mtu_reductions += 1;
        self.mtu = mtu;
        self.set_mss();
        self.sender.on_smaller_mss(ctx.now);
        self.advance(ctx);
    }
}
