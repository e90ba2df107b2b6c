//! A sender, as a receiver knows it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hopcast_core::{Duration, Instant};

use super::super::config::Join;
use super::feedback::Congestion;
use super::object::Object;
use super::stream::Piece;
use super::{Ask, Delivered, Delivery, Feedback, Heard, Output};
use crate::norm::fec::Codec;
use crate::norm::wire::{
    Ack, Acknowledged, Body, Command, Data, Fec, Flags, Fti, Header, Info, NodeId, PayloadId, Position,
    Timestamp, quantise, serial,
};

/// A sender.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) node: NodeId,
    pub(super) address: SocketAddr,
    pub(super) instance: u16,
    /// Another instance that was heard, and how often in a row.
    other: Option<(u16, u8)>,
    pub(super) grtt: Duration,
    pub(super) backoff: u8,
    pub(super) group_size: f64,
    /// Its clock at the last probe, and when that came.
    pub(super) probe: Option<(Timestamp, Instant)>,
    pub(super) objects: BTreeMap<u64, Object>,
    /// Objects before it are of no interest any more.
    pub(super) first: u64,
    /// The last place of which was heard; none before the first object.
    pub(super) last: Option<(u64, u32)>,
    /// The sender has sent nothing after this symbol.
    pub(super) end: Option<(u64, u32, u16)>,
    /// The code of the last object, by its numbers of source and parity symbols.
    codec: Option<(u16, u16, Codec)>,
    pub(super) fec: Fec,
    /// Sequence number of the last packet of new data.
    pub(super) fresh: Option<u16>,
    /// Sequence number of the packet at hand.
    pub(super) sequence: u16,
    /// The block of which repairs were heard last, and when.
    pub(super) repairing: Option<((u64, u32), Instant)>,
    /// When to ask for what is missing then.
    pub(super) timer: Option<Instant>,
    /// When to look whether an answer is overdue.
    pub(super) overdue: Option<Instant>,
    /// Number of NACKs since the sender was last heard, and the time before which there is no other.
    pub(super) unanswered: (u32, Instant),
    /// Others asked for something that is missing here too.
    pub(super) spared: bool,
    /// When to acknowledge, and what.
    pub(super) acknowledge: Option<(Instant, Position)>,
    pub(super) congestion: Congestion,
    pub(super) last_heard: Instant,
}

/// Packets in a row that another instance must be heard for before the one that is known is forgotten. Chosen: one
/// forged packet does not end a transfer, and a sender that restarts sends two.
const RESTART: u8 = 2;
/// Objects that are looked for before the first one heard, with [`Join::Everything`]; those that are gone are
/// squelched.
const BEFORE: u64 = 1 << 10;
/// Objects that one packet can show to be missing. More are a sender that lies, or was not heard for long.
const MAX_AHEAD: u64 = 1 << 14;
/// Longest round-trip time that is believed (RFC 5740, section 5.5.1, allows 1000 s).
const MAX_GRTT: Duration = Duration::from_secs(30);

impl Remote {
    pub(super) fn new(node: NodeId, instance: u16, address: SocketAddr, now: Instant) -> Self {
        Self {
            node,
            address,
            instance,
            other: None,
            grtt: Duration::ZERO,
            backoff: 0,
            group_size: 1.0,
            probe: None,
            objects: BTreeMap::new(),
            first: 0,
            last: None,
            end: None,
            codec: None,
            fec: Fec::ReedSolomon8,
            fresh: None,
            sequence: 0,
            repairing: None,
            timer: None,
            overdue: None,
            unanswered: (0, now),
            spared: false,
            acknowledge: None,
            congestion: Congestion::default(),
            last_heard: now,
        }
    }

    /// Notes what every packet says. False if the packet is not to be looked at.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        heard: &Heard<'_>,
        header: Header,
        ask: &mut Ask<'_>,
    ) -> bool {
        if header.instance != self.instance {
            let times =
                self.other.filter(|&(other, _)| other == header.instance).map_or(1, |(_, times)| times + 1);
            if times < RESTART {
                self.other = Some((header.instance, times));
                return false;
            }
            ask.counts.restarts += 1;
            *self = Self::new(self.node, header.instance, heard.from, now);
        }
        self.other = None;
        self.address = heard.from;
        self.last_heard = now;
        self.unanswered.0 = 0;
        self.sequence = heard.message.sequence;
        self.grtt = quantise::rtt(header.grtt).min(MAX_GRTT);
        self.backoff = header.backoff;
        self.group_size = f64::from(quantise::group_size(header.group_size));
        self.congestion.packet(now, heard.message.sequence, heard.marked, heard.bytes, self.grtt);
        true
    }

    /// Takes a NORM_INFO.
    pub(super) fn info(&mut self, now: Instant, info: &Info<'_>, ask: &mut Ask<'_>, out: &mut Output) {
        let Some(number) = self.place(info.object, ask) else { return };
        self.fec = info.fec;
        self.passed(
            now,
            (number, self.objects.get(&number).map_or(0, |object| object.next)),
            info.flags,
            ask,
        );
        let Some(object) = self.object(number, info.flags, info.fti, ask) else { return };
        if object.info.is_none() && !object.is_done {
            object.info = Some(info.payload.to_vec());
            object.asked_info.answered();
        }
        self.decode_all(number, ask);
        self.hand_up(number, ask, out);
    }

    /// Takes a NORM_DATA.
    pub(super) fn data(&mut self, now: Instant, data: &Data<'_>, ask: &mut Ask<'_>, out: &mut Output) {
        let Some(number) = self.place(data.object, ask) else { return };
        self.fec = data.fec;
        let block = self.block_number(number, data.fec, data.id.block);
        self.passed(now, (number, block), data.flags, ask);
        let held = self.held();
        let was_known = self.objects.get(&number).is_some_and(|object| object.layout.is_some());
        let Some(object) = self.object(number, data.flags, data.fti, ask) else { return };
        object.heard = Some(object.heard.map_or(block, |heard| heard.max(block)));
        if object.has(block) {
            ask.counts.duplicates += 1;
            return;
        }
        let symbols = object.source(block).map(|source| source + object.parity());
        let longest = object.layout.as_ref().map(|layout| usize::from(layout.fti.segment) + 8);
        let fits = symbols.is_none_or(|symbols| data.id.symbol < symbols)
            && longest.is_none_or(|longest| data.payload.len() <= longest)
            && object.count().is_none_or(|count| block < count);
        if !fits {
            ask.counts.refused += 1;
            return;
        }
        if held >= ask.config.buffer && block != object.next {
            ask.counts.no_room += 1;
            return;
        }
        let state = object.blocks.entry(block).or_insert_with(|| super::block::Block {
            asked: object.asked.remove(&block).unwrap_or_default(),
            ..Default::default()
        });
        if state.symbols.contains_key(&data.id.symbol) {
            ask.counts.duplicates += 1;
            return;
        }
        state.asked.progress();
        state.symbols.insert(data.id.symbol, data.payload.to_vec());
        object.held += data.payload.len() as u64;
        if was_known {
            self.decode(number, block, ask);
        } else {
            self.decode_all(number, ask);
        }
        self.hand_up(number, ask, out);
    }

    /// The number of an object, and what that shows of objects before it; `None` if it is of no interest.
    fn place(&mut self, id: u16, ask: &mut Ask<'_>) -> Option<u64> {
        let Some((last, _)) = self.last else {
            let number = (1 << 32) | u64::from(id);
            self.first = match ask.config.join {
                Join::Everything => number - BEFORE,
                Join::Object | Join::Now => number,
            };
            self.last = Some((number, 0));
            return Some(number);
        };
        let number = last.checked_add_signed(i64::from(serial::distance16(id, last as u16)))?;
        if number < self.first {
            ask.counts.duplicates += 1;
            return None;
        }
        if number - self.first > MAX_AHEAD {
            ask.counts.refused += 1;
            return None;
        }
        Some(number)
    }

    /// A block number out of its low bits, near those that are known.
    pub(super) fn block_number(&self, number: u64, fec: Fec, block: u32) -> u32 {
        let known = self.objects.get(&number).map(|object| object.heard.unwrap_or(object.next));
        let Some(near) = known else { return block };
        let bits = fec.block_bits();
        let mask = if bits == 32 { u32::MAX } else { (1 << bits) - 1 };
        near.wrapping_add_signed(serial::block_distance(fec, block, near & mask))
    }

    /// The object, which may be new. `None` if it is one that we cannot take.
    fn object(
        &mut self,
        number: u64,
        flags: Flags,
        fti: Option<Fti>,
        ask: &mut Ask<'_>,
    ) -> Option<&mut Object> {
        let known = self.objects.contains_key(&number);
        let object = self.objects.entry(number).or_default();
        if !known || object.layout.is_none() {
            object.flags = Flags(flags.0 & (Flags::INFO.0 | Flags::FILE.0 | Flags::STREAM.0));
        }
        object.asked_whole.answered();
        if object.layout.is_none()
            && !object.is_done
            && let Some(fti) = fti
        {
            let first = match ask.config.join {
                Join::Now if !known || object.complete.is_empty() => object
                    .blocks
                    .keys()
                    .next()
                    .copied()
                    .or(object.heard)
                    .unwrap_or(self.last.map_or(0, |(_, block)| block)),
                Join::Now | Join::Object | Join::Everything => 0,
            };
            if !object.set_layout(fti, ask.config.max_object, ask.config.framing, first) {
                ask.counts.refused += 1;
                object.finish();
            }
        }
        Some(object)
    }

    /// Decodes a block if enough of it has arrived.
    fn decode(&mut self, number: u64, block: u32, ask: &mut Ask<'_>) {
        let Some(object) = self.objects.get_mut(&number) else { return };
        let (Some(source), Some(layout)) = (object.source(block), &object.layout) else { return };
        if !object.blocks.get(&block).is_some_and(|found| found.is_complete(source)) {
            return;
        }
        let (source, parity) = (layout.fti.source, layout.fti.parity);
        // Codes cost arithmetic: one is made only when a block is there to be decoded.
        if self.codec.as_ref().is_none_or(|&(k, n, _)| (k, n) != (source, parity)) {
            match Codec::of(&layout.fti) {
                Ok(codec) => self.codec = Some((source, parity, codec)),
                Err(_) => {
                    ask.counts.refused += 1;
                    object.finish();
                    return;
                }
            }
        }
        if let Some((_, _, codec)) = &self.codec {
            object.decode(block, codec);
        }
    }

    /// Decodes what came before it was known how the object is cut.
    fn decode_all(&mut self, number: u64, ask: &mut Ask<'_>) {
        let blocks =
            self.objects.get(&number).map(|object| object.blocks.keys().copied().collect::<Vec<u32>>());
        blocks.into_iter().flatten().for_each(|block| self.decode(number, block, ask));
    }

    /// Hands up what an object has become complete of.
    fn hand_up(&mut self, number: u64, ask: &mut Ask<'_>, out: &mut Output) {
        let (from, address, id) = (self.node, self.address, number as u16);
        let Some(object) = self.objects.get_mut(&number) else { return };
        let mut up = |what| out.delivered.push(Delivery { from, address, object: id, what });
        if object.is_done {
            return;
        }
        object.advance_stream(&mut |piece| {
            up(match piece {
                Piece::Bytes(bytes) => Delivered::Bytes(bytes),
                Piece::Message(bytes) => Delivered::Message(bytes),
                Piece::End => Delivered::End,
            });
        });
        if let Some(bytes) = object.take_whole() {
            let (file, info) = (object.flags.contains(Flags::FILE), object.info.take());
            up(Delivered::Object { file, info, bytes });
        }
        ask.counts.completed += u64::from(object.is_done);
        self.forget_done();
    }

    /// Forgets objects that are done, up to the first that is not.
    pub(super) fn forget_done(&mut self) {
        let Some((last, _)) = self.last else { return };
        while self.first <= last && self.objects.get(&self.first).is_some_and(|object| object.is_done) {
            // The last one stays, so that what is repeated of it is known.
            if self.first == last {
                break;
            }
            self.objects.remove(&self.first);
            self.first += 1;
        }
    }

    /// Something is missing that nobody has any more.
    pub(super) fn give_up(&self, number: u64, ask: &mut Ask<'_>, out: &mut Output) {
        let (from, address, object) = (self.node, self.address, number as u16);
        out.delivered.push(Delivery { from, address, object, what: Delivered::Missing });
        ask.counts.given_up += 1;
    }

    /// Takes a NORM_CMD.
    pub(super) fn command(
        &mut self,
        now: Instant,
        command: &Command<'_>,
        ask: &mut Ask<'_>,
        out: &mut Output,
    ) {
        match command {
            Command::Flush { last, acknowledge } => {
                self.flushed(now, last, ask);
                if acknowledge.contains(&ask.node) && self.has_all(last) && self.acknowledge.is_none() {
                    // Spread over half a GRTT, so that those that are asked do not answer at once.
                    let at = now + self.grtt.mul_f64(ask.random.uniform() / 2.0);
                    self.acknowledge = Some((at, *last));
                }
            }
            Command::Squelch { first, invalid } => self.squelched(first, invalid, ask, out),
            Command::CongestionControl { sequence, sent, rate, nodes, .. } => {
                self.probe = Some((*sent, now));
                self.congestion.probe(
                    now,
                    (*sequence, *rate),
                    nodes,
                    ask.node,
                    (self.grtt, self.backoff, self.group_size),
                    ask.random,
                );
            }
            Command::RepairAdvertisement { repairs, cc, .. } => {
                self.heard_requests(now, repairs);
                if let Some(cc) = cc {
                    self.heard_congestion(now, *cc);
                }
            }
            Command::AcknowledgementRequest { kind, id, acknowledge } => {
                if acknowledge.contains(&ask.node) && *kind >= Acknowledged::APPLICATION && !ask.config.silent
                {
                    let what = Acknowledged::Other { kind: *kind, payload: &[] };
                    ask.counts.acks_sent += 1;
                    self.say_ack(now, *id, what, out);
                }
            }
            Command::EndOfTransmission | Command::Application(_) => {}
        }
    }

    /// The sender has nothing after a symbol.
    fn flushed(&mut self, now: Instant, last: &Position, ask: &mut Ask<'_>) {
        let Some(number) = self.place(last.object, ask) else { return };
        self.fec = last.fec;
        let block = self.block_number(number, last.fec, last.id.block);
        self.objects.entry(number).or_default();
        if let Some(object) = self.objects.get_mut(&number) {
            object.heard = Some(object.heard.map_or(block, |heard| heard.max(block)));
        }
        self.end = Some((number, block, last.id.symbol));
        self.advance(number, block);
        if let Some((place, _)) = self.repairing.take() {
            self.answer_is_over(place);
        }
        self.look(now, ask);
    }

    /// Whether everything up to a position is here.
    fn has_all(&self, position: &Position) -> bool {
        let Some((last, _)) = self.last else { return false };
        let number = last.wrapping_add_signed(i64::from(serial::distance16(position.object, last as u16)));
        let block = self.block_number(number, position.fec, position.id.block);
        (self.first..=number).all(|at| {
            self.objects.get(&at).is_some_and(|object| {
                object.is_done
                    || at == number && object.layout.is_some() && {
                        // All of a stream that was sent, which may go on.
                        object.next > block
                            || object.next == block
                                && object
                                    .blocks
                                    .get(&block)
                                    .is_some_and(|state| state.missing(position.id.symbol + 1).is_empty())
                    }
            })
        })
    }

    /// What comes before a position is no longer held by the sender.
    fn squelched(&mut self, first: &Position, invalid: &[u16], ask: &mut Ask<'_>, out: &mut Output) {
        let Some((last, _)) = self.last else { return };
        let number = last.wrapping_add_signed(i64::from(serial::distance16(first.object, last as u16)));
        if number > last + 1 || number.saturating_sub(self.first) > MAX_AHEAD {
            ask.counts.refused += 1;
            return;
        }
        let invalid = invalid
            .iter()
            .map(|&id| last.wrapping_add_signed(i64::from(serial::distance16(id, last as u16))));
        let gone: Vec<u64> =
            (self.first..number).chain(invalid.filter(|at| (self.first..=last).contains(at))).collect();
        for at in gone {
            let object = self.objects.entry(at).or_default();
            if !object.is_done {
                // Of what was sent before this receiver came nothing was promised.
                let is_known = object.heard.is_some();
                object.finish();
                if is_known {
                    self.give_up(at, ask, out);
                }
            }
        }
        let block = self.block_number(number, first.fec, first.id.block);
        let skipped =
            self.objects.get_mut(&number).is_some_and(|object| !object.is_done && object.skip_to(block));
        if skipped {
            self.give_up(number, ask, out);
            self.hand_up(number, ask, out);
        }
        self.forget_done();
    }

    fn say_ack(&self, now: Instant, id: u8, what: Acknowledged<'static>, out: &mut Output) {
        let ack = Ack {
            sender: self.node,
            instance: self.instance,
            id,
            grtt_response: self.response(now),
            cc: self.congestion.feedback(self.grtt),
            what,
        };
        out.feedback.push(Feedback { to: self.address, body: Body::Ack(ack) });
    }

    /// The sender's clock now, as far as its last probe shows.
    pub(super) fn response(&self, now: Instant) -> Timestamp {
        self.probe.map_or(Timestamp::default(), |(sent, came)| sent.after(now.since(came)))
    }

    pub(super) fn wake(&mut self, now: Instant, ask: &mut Ask<'_>, out: &mut Output) {
        if self.overdue.is_some_and(|at| at <= now) {
            self.overdue = None;
            self.look(now, ask);
        }
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            self.ask(now, ask, out);
        }
        if let Some((_, position)) = self.acknowledge.take_if(|&mut (at, _)| at <= now)
            && !ask.config.silent
        {
            ask.counts.acks_sent += 1;
            self.say_ack(now, 0, Acknowledged::Flush(position), out);
        }
        if self.congestion.is_due(now) {
            if !ask.config.silent {
                ask.counts.acks_sent += 1;
                self.say_ack(now, 0, Acknowledged::CongestionControl, out);
            }
            self.congestion.said();
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let acknowledge = self.acknowledge.map(|(at, _)| at);
        [self.timer, self.overdue, acknowledge, self.congestion.deadline()].into_iter().flatten().min()
    }

    /// Bytes held.
    pub(super) fn held(&self) -> u64 {
        self.objects.values().map(|object| object.held).sum()
    }

    /// Position of a symbol.
    pub(super) fn position(&self, number: u64, block: u32, symbol: u16) -> Position {
        let bits = self.fec.block_bits();
        let mask = if bits == 32 { u32::MAX } else { (1 << bits) - 1 };
        let block_len = match self.fec {
            Fec::SmallBlock => self.objects.get(&number).and_then(|object| object.source(block)).unwrap_or(0),
            Fec::ReedSolomon | Fec::ReedSolomon8 => 0,
        };
        let id = PayloadId { block: block & mask, symbol, block_len };
        Position { fec: self.fec, object: number as u16, id }
    }
}
