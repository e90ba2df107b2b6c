//! The handshake: SYN, SYN-ACK, ACK, what the two ends agree on, and the MSS that comes of it.

use hopcast_core::{Buffer, StreamItem};
use hopcast_wire::ip::Version;

use super::connection::{Connection, Context, State};
use super::recovery::whole_millis;
use super::rtt::INITIAL_RTO;
use super::seq;
use super::timeouts::Verdict;
use super::timer::Timer;
use super::wire::{self, ACK, Header, Options, RST, SYN};

/// Retransmissions of a SYN: Linux `tcp_syn_retries`.
const SYN_RETRIES: u32 = 6;
/// Retransmissions of a SYN-ACK: Linux `tcp_synack_retries`.
const SYN_ACK_RETRIES: u32 = 5;
/// Maximum window scale: RFC 7323 section 2.3.
const MAX_SCALE: u8 = 14;
/// The MSS of a peer that does not say: RFC 9293 section 3.7.1.
const DEFAULT_MSS: [u32; 2] = [536, 1220];
/// Minimum MSS that is believed (Linux `TCP_MIN_MSS`).
const MIN_MSS: u32 = 88;

impl Connection {
    /// Sends the SYN, or the SYN-ACK; again if need be.
    pub(super) fn send_syn(&mut self, ctx: &mut Context<'_>) {
        let answer = self.state == State::SynReceived;
        let offered = |agreed: bool| !answer || agreed;
        let options = Options {
            mss: Some(self.mtu.saturating_sub(self.header_len()).min(65_535) as u16),
            window_scale: offered(self.peer_scale.is_some()).then(|| self.scale()),
            sack_permitted: ctx.config.sack && offered(self.sender.sack),
            timestamps: offered(self.clock.is_agreed()).then(|| self.clock.offer(ctx.now)),
            ..Options::default()
        };
        let flags = if answer { SYN | ACK } else { SYN };
        let window = self.receiver.advertise_unscaled();
        self.put(ctx, self.initial, flags, window, options, Buffer::copy_from(&[]));
        if self.syns > 0 {
            ctx.counters.syn_retransmits += 1;
        }
        let wait = INITIAL_RTO * (1 << self.syns.min(16));
        self.syns += 1;
        self.timers.set(Timer::Handshake, ctx.now + wait);
    }

    pub(super) fn on_handshake_timeout(&mut self, ctx: &mut Context<'_>) -> Verdict {
        let limit = if self.state == State::SynSent { SYN_RETRIES } else { SYN_ACK_RETRIES };
        if self.syns > limit {
            return Verdict::Gone;
        }
        self.send_syn(ctx);
        Verdict::Alive
    }

    /// Takes the peer's SYN in: its sequence number and its options.
    pub(super) fn take_syn(&mut self, ctx: &Context<'_>, header: &Header) {
        let options = &header.options;
        let default = DEFAULT_MSS[usize::from(self.remote.is_ipv6())];
        self.peer_mss = options.mss.map_or(default, u32::from).max(MIN_MSS);
        self.peer_scale = options.window_scale.map(|scale| scale.min(MAX_SCALE));
        let scale = if self.peer_scale.is_some() { self.scale() } else { 0 };
        self.sender.sack = ctx.config.sack && options.sack_permitted;
        if let Some(timestamps) = options.timestamps {
            self.clock.agree(ctx.now, timestamps);
        }
        self.receiver.begin(seq::initial(header.seq) + 1, scale);
        self.set_mss();
    }

    /// The peer has answered: the connection stands.
    pub(super) fn establish(&mut self, ctx: &mut Context<'_>, header: &Header) {
        self.timers.stop(Timer::Handshake);
        self.state = State::Established;
        let now = ctx.now;
        let first = self.initial + 1;
        let rtt = match self.clock.echoed(now, header.options.timestamps) {
            _ if self.syns == 1 => Some(now.since(self.syn_sent)),
            Some(echoed) => Some(whole_millis(now).since(echoed)),
            None => None,
        };
        if let Some(rtt) = rtt {
            self.sender.rtt.sample(rtt, first, first);
            self.sender.rtt.note_min(now, rtt);
        }
        // RFC 6298 (5.7), RFC 5681: a SYN that had to be sent more than twice says that the path is bad.
        if self.syns > 2 {
            self.sender.window.size = 1;
        }
        self.sender.rate.delivered = 1;
        self.sender.rate.delivered_at = now;
        let window = self.window_of(header);
        let seq = seq::expand(self.receiver.next(), header.seq);
        self.sender.begin(now, seq, window);
        if self.active {
            ctx.counters.connections_opened += 1;
            ctx.up(self.id, StreamItem::Opened);
        } else {
            ctx.counters.connections_accepted += 1;
            ctx.up(self.id, StreamItem::Open { local: self.local, remote: self.remote });
        }
        self.grant_first(ctx);
    }

    /// Takes a segment in while a SYN of ours is not answered. True if the connection stands and the segment's data,
    /// if any, are to be looked at.
    pub(super) fn on_handshake(&mut self, ctx: &mut Context<'_>, header: &Header) -> bool {
        match self.state {
            State::SynSent => self.on_syn_sent(ctx, header),
            State::SynReceived => self.on_syn_received(ctx, header),
            State::Established => true,
            State::TimeWait | State::Closed => false,
        }
    }

    fn on_syn_sent(&mut self, ctx: &mut Context<'_>, header: &Header) -> bool {
        let acknowledged = header.has(ACK) && header.ack == (self.initial + 1) as u32;
        if header.has(ACK) && !acknowledged {
            if !header.has(RST) {
                ctx.counters.resets_sent += 1;
                let reset = Header { seq: header.ack, flags: RST, ..Header::default() };
                ctx.down(self.local, self.remote, &reset, Buffer::copy_from(&[]), 0);
            }
            return false;
        }
        if header.has(RST) {
            if acknowledged {
                ctx.counters.resets_received += 1;
                ctx.counters.connections_refused += 1;
                self.fail(ctx);
            }
            return false;
        }
        if !header.has(SYN) {
            return false;
        }
        self.take_syn(ctx, header);
        if !acknowledged {
            // Both open at once: RFC 9293 section 3.5.
            self.state = State::SynReceived;
            self.syns = 0;
            self.send_syn(ctx);
            return false;
        }
        self.establish(ctx, header);
        self.ack_now = true;
        true
    }

    fn on_syn_received(&mut self, ctx: &mut Context<'_>, header: &Header) -> bool {
        let next = self.receiver.next();
        let number = seq::expand(next, header.seq);
        if header.has(RST) {
            if number == next {
                ctx.counters.resets_received += 1;
                self.fail(ctx);
            }
            return false;
        }
        if header.has(SYN) && number + 1 == next {
            if header.has(ACK) && header.ack == (self.initial + 1) as u32 {
                // The other half of opening at once.
                self.establish(ctx, header);
                self.ack_now = true;
                return true;
            }
            self.send_syn(ctx);
            return false;
        }
        if !header.has(ACK) || number < next || !self.receiver.admits(number, number) {
            return false;
        }
        if header.ack != (self.initial + 1) as u32 {
            ctx.counters.resets_sent += 1;
            let reset = Header { seq: header.ack, flags: RST, ..Header::default() };
            ctx.down(self.local, self.remote, &reset, Buffer::copy_from(&[]), 0);
            return false;
        }
        self.establish(ctx, header);
        true
    }

    /// The window that a segment offers, in bytes. A SYN's is not scaled (RFC 7323 section 2.2).
    pub(super) fn window_of(&self, header: &Header) -> u64 {
        let scale = if header.has(SYN) { 0 } else { self.peer_scale.unwrap_or(0) };
        u64::from(header.window) << scale
    }

    /// The path takes packets of up to `mtu` bytes, and the peer's MSS holds as well.
    pub(super) fn set_mss(&mut self) {
        let options = if self.clock.is_agreed() { wire::TIMESTAMPS_LEN } else { 0 };
        let path = self.mtu.saturating_sub(self.header_len());
        self.sender.mss = path.min(self.peer_mss).saturating_sub(options).max(MIN_MSS - options);
    }

    /// The length of the IP and TCP headers without options.
    pub(super) fn header_len(&self) -> u32 {
        (Version::of(self.local.ip()).header_len() + wire::HEADER) as u32
    }

    /// The scale with which the receive buffer can be advertised.
    fn scale(&self) -> u8 {
        (0..MAX_SCALE).find(|&scale| self.receiver.capacity() >> scale <= 65_535).unwrap_or(MAX_SCALE)
    }
}
