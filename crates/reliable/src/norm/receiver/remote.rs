//! A sender, as a receiver knows it.

use std::net::SocketAddr;

use hopcast_core::{Duration, FadingLoss, Instant};

use super::feedback::{Arrival, Congestion};
use super::in_order::InOrder;
use super::nack::Requests;
use super::numbering::Numbering;
use super::object::Object;
use super::objects::Objects;
use super::places::Turn;
use super::progress::{Place, Progress};
use super::stream::Piece;
use super::{Ask, Delivered, Delivery, Heard, Output};
use crate::norm::fec::Codec;
use crate::norm::wire::{
    Body, Data, Flags, Fti, Header, Info, NodeId, Position, Timestamp, quantise, serial,
};
use crate::{Join, Order};

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
    pub(super) objects: Objects,
    in_order: InOrder,
    pub(super) progress: Progress,
    pub(super) numbering: Numbering,
    /// The code of the last object, by its numbers of source and parity symbols.
    codec: Option<(u16, u16, Codec)>,
    /// Sequence number of the packet at hand.
    sequence: u16,
    /// Whether a packet was heard, and the share of packets that was not.
    has_begun: bool,
    loss: FadingLoss,
    pub(super) requests: Requests,
    /// When to acknowledge, and what.
    pub(super) acknowledge: Option<(Instant, Position)>,
    /// Number of the first object that was heard: of those before it nothing is promised.
    joined: u64,
    /// Something that was promised was given up: an acknowledgement of what follows would be one of that too.
    pub(super) gave_up: bool,
    /// When it is gone, once it has said that it leaves.
    pub(super) leaves: Option<Instant>,
    pub(super) congestion: Congestion,
    pub(super) last_heard: Instant,
    /// How long it keeps its place, if it has one.
    pub(super) turn: Turn,
}

/// Packets in a row that another instance must be heard for before the one that is known is forgotten. Chosen: one
/// forged packet does not end a transfer, and a sender that restarts sends two.
const RESTART: u8 = 2;
/// Objects that are looked for before the first one heard, with [`Join::Everything`]; those that are gone are
/// squelched.
const BEFORE: u64 = 1 << 10;
/// Objects that one packet can show to be missing. More are a sender that lies, or was not heard for long.
pub(super) const MAX_AHEAD: u64 = 1 << 14;
/// Sequence numbers by which a packet may be ahead of the last one. Chosen: more is a sender that began anew.
const MAX_GAP: u16 = 1 << 10;
/// Packets over which the share of lost ones is estimated. Chosen: some blocks.
const LOSS_WEIGHT: f64 = 256.0;
/// Chance at which a request that a sender answers is given up all the same, because all requests or their answers were
/// lost; and how many times the robust factor that may take. Chosen: none of a million; a path that loses two thirds.
const GIVEN_UP_WRONGLY: f64 = 1e-6;
const MAX_PATIENCE: f64 = 4.0;
/// Chance at which a receiver slows down because all requests or their answers were lost, and the number of requests
/// that this takes. Chosen: one of sixteen, which are ten requests where half is lost; where little is, a sender that
/// does not answer is busy.
const SLOWED_WRONGLY: f64 = 1.0 / 16.0;
const MIN_PATIENT: f64 = 2.0;
const MAX_PATIENT: f64 = 10.0;
/// Longest round-trip time that is believed (RFC 5401, section 3.7.4, can say 1000 s).
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
            objects: Objects::default(),
            in_order: InOrder::default(),
            progress: Progress::default(),
            numbering: Numbering::default(),
            codec: None,
            sequence: 0,
            has_begun: false,
            loss: FadingLoss::new(LOSS_WEIGHT / 4.0, 0.0),
            requests: Requests::new(now),
            acknowledge: None,
            joined: 0,
            gave_up: false,
            leaves: None,
            congestion: Congestion::default(),
            last_heard: now,
            turn: Turn::new(now),
        }
    }

    /// Number of requests in vain after which a receiver gives up: the robust factor, and more where so much is lost
    /// that as many requests or their answers may be lost by chance. A request is taken to be lost as often as an
    /// answer.
    pub(super) fn patience(&self, robust: u16) -> u16 {
        let robust = f64::from(robust);
        self.requests_of(GIVEN_UP_WRONGLY).clamp(robust, MAX_PATIENCE * robust) as u16
    }

    /// Number of requests in vain after which a receiver waits longer for each, though it hears the sender. One that
    /// only repeats that it is at the end is not busy, and may soon forget the end of a stream, as libnorm does.
    pub(super) fn patient(&self) -> u16 {
        if self.progress.is_idle() {
            return u16::MAX;
        }
        self.requests_of(SLOWED_WRONGLY).clamp(MIN_PATIENT, MAX_PATIENT) as u16
    }

    /// Number of requests of which all come to nothing by this chance.
    fn requests_of(&self, chance: f64) -> f64 {
        let answered = (1.0 - self.loss.share().clamp(0.0, 0.99)).powi(2);
        chance.ln() / (1.0 - answered).ln()
    }

    /// Notes the fields that every packet has. False if the rest of the packet is to be ignored.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        heard: &Heard<'_>,
        header: Header,
        ask: &mut Ask<'_>,
        out: &mut Output,
    ) -> bool {
        if header.instance != self.instance {
            let times =
                self.other.filter(|&(other, _)| other == header.instance).map_or(1, |(_, times)| times + 1);
            if times < RESTART {
                self.other = Some((header.instance, times));
                return false;
            }
            ask.counts.restarts += 1;
            self.close(ask, out);
            *self = Self { turn: self.turn, ..Self::new(self.node, header.instance, heard.from, now) };
        }
        self.other = None;
        self.address = heard.from;
        self.last_heard = now;
        self.requests.heard();
        let ahead = heard.message.sequence.wrapping_sub(self.sequence);
        if self.has_begun && ahead > 0 && ahead < MAX_GAP {
            self.loss.add(f64::from(ahead), f64::from(ahead - 1), LOSS_WEIGHT);
        }
        (self.sequence, self.has_begun) = (heard.message.sequence, true);
        self.grtt = quantise::rtt(header.grtt).min(MAX_GRTT);
        self.backoff = header.backoff;
        self.group_size = f64::from(quantise::group_size(header.group_size));
        let arrival = Arrival {
            sequence: heard.message.sequence,
            marked: heard.marked,
            bytes: heard.bytes,
            is_object: !matches!(heard.message.body, Body::Command(..)),
        };
        self.congestion.packet(now, arrival, self.grtt);
        true
    }

    /// Takes a NORM_INFO.
    pub(super) fn info(&mut self, now: Instant, info: &Info<'_>, ask: &mut Ask<'_>, out: &mut Output) {
        let Some(number) = self.place(info.object, ask) else { return };
        self.numbering.note(info.fec, info.fti);
        let known = self.objects.get(number);
        let place = (number, known.map_or(0, |object| object.next()));
        let is_new = known.is_none_or(|object| object.lacks_info() || !object.is_known());
        if is_new && !self.has_room(number, None, ask) {
            ask.counts.no_room += 1;
            return;
        }
        if self.open(number, info.flags, info.fti, None, ask)
            && self.objects.change(number, |object| object.take_info(info.payload)) == Some(true)
        {
            self.turn.progress(now);
        }
        self.passed(now, place, info.flags, ask);
        self.decode_all(now, number);
        self.hand_up(number, ask, out);
    }

    /// Takes a NORM_DATA.
    pub(super) fn data(&mut self, now: Instant, data: &Data<'_>, ask: &mut Ask<'_>, out: &mut Output) {
        let Some(number) = self.place(data.object, ask) else { return };
        self.numbering.note(data.fec, data.fti);
        let Some(id) = self.numbering.read(data.fec, data.id) else {
            ask.counts.refused += 1;
            return;
        };
        let known = self.objects.get(number);
        let is_first = known.is_none_or(|object| object.heard.is_none() && object.layout.is_none());
        let begins = data.flags.contains(Flags::STREAM) && is_first;
        // It begins with new data: repairs are of what was sent before (RFC 5740, section 4.2.1, on the flag).
        if begins && data.flags.contains(Flags::REPAIR) && ask.config.join == Join::Now {
            return;
        }
        let block = match begins {
            true => self.numbering.begin(id.block),
            false => self.block_number(number, id.block),
        };
        let was_known = known.is_some_and(|object| object.layout.is_some());
        if known.is_none() && !self.has_room(number, None, ask) {
            ask.counts.no_room += 1;
            return;
        }
        if self.open(number, data.flags, data.fti, Some(block), ask) {
            let fits = self.objects.get(number).is_some_and(|object| {
                let is_of_length =
                    id.block_len == 0 || object.source(block).is_none_or(|k| k == id.block_len);
                object.fits(block, id.symbol, data.payload.len())
                    && (object.count().is_none() || is_of_length)
            });
            if !fits {
                ask.counts.refused += 1;
                return;
            }
            self.objects.change(number, |object| {
                object.heard = Some(object.heard.map_or(block, |heard| heard.max(block)));
            });
        }
        let asked = self.objects.get(number).and_then(|object| object.asked_of(block).at());
        self.passed(now, (number, block), data.flags, ask);
        let has = self.objects.get(number).is_none_or(|object| {
            object.has(block)
                || object.block(block).is_some_and(|found| found.symbols.contains_key(&id.symbol))
        });
        if has {
            ask.counts.duplicates += 1;
        } else if !self.has_room(number, Some(block), ask) {
            ask.counts.no_room += 1;
        } else {
            self.progress.served(now, (number, block), asked);
            self.objects.change(number, |object| object.insert(block, id.symbol, data.payload));
            self.turn.progress(now);
            match was_known {
                true => self.decode(now, number, block),
                false => self.decode_all(now, number),
            }
            self.hand_up(number, ask, out);
            if self.objects.get(number).is_none_or(|object| object.has(block)) {
                self.look_behind(now, ask);
            }
        }
    }

    /// Whether there is room for a piece of an object, of a block or not. There always is for what is next, so that
    /// what waits for it is handed up.
    fn has_room(&self, number: u64, block: Option<u32>, ask: &Ask<'_>) -> bool {
        let held = self.objects.held();
        let is_next = match ask.config.order {
            Order::AsComplete => self.objects.oldest().is_none_or(|oldest| oldest >= number),
            // Of the first one nothing may have been heard.
            Order::BySender => number <= self.objects.first(),
        };
        let is_next_block =
            block.is_none_or(|block| self.objects.get(number).is_none_or(|object| object.next() == block));
        (held.incomplete < ask.config.buffer || is_next && is_next_block)
            && (held.decoded + self.in_order.bytes() < ask.config.max_object || is_next)
    }

    /// Notes that a packet of a place was heard.
    fn passed(&mut self, now: Instant, place: Place, flags: Flags, ask: &mut Ask<'_>) {
        let shown = self.progress.passed(now, place, flags, self.sequence);
        if let Some(place) = shown.answered {
            self.answer_is_over(place);
        }
        if shown.news {
            self.look(now, ask);
        }
    }

    /// The sender has sent all that it will send of a block's repairs.
    pub(super) fn answer_is_over(&mut self, (number, block): Place) {
        self.objects.change(number, |object| {
            object.asked(block).answered();
            object.asked_info.answered();
        });
    }

    /// The number of an object; `None` if it is of no interest.
    pub(super) fn place(&mut self, id: u16, ask: &mut Ask<'_>) -> Option<u64> {
        let Some((last, _)) = self.progress.last else {
            let number = (1 << 32) | u64::from(id);
            self.joined = number;
            self.objects.begin(match ask.config.join {
                Join::Everything => number - BEFORE,
                Join::Object | Join::Now => number,
            });
            self.progress.advance((number, 0));
            return Some(number);
        };
        let number = last.checked_add_signed(i64::from(serial::distance16(id, last as u16)))?;
        if number < self.objects.first() {
            ask.counts.duplicates += 1;
            return None;
        }
        if number - self.objects.first() > MAX_AHEAD {
            ask.counts.refused += 1;
            return None;
        }
        Some(number)
    }

    /// A block number out of its low bits, near those that are known.
    pub(super) fn block_number(&self, number: u64, block: u32) -> u32 {
        let near = self.objects.get(number).map(|object| object.heard.unwrap_or(object.next()));
        near.map_or(block, |near| self.numbering.block_near(near, block))
    }

    /// Makes an object known, of which a block was heard or only the info. False if nothing more is wanted of it.
    fn open(
        &mut self,
        number: u64,
        flags: Flags,
        fti: Option<Fti>,
        block: Option<u32>,
        ask: &mut Ask<'_>,
    ) -> bool {
        let numbering = self.numbering;
        let config = ask.config;
        let taken = self.objects.open_or_change(number, |object| {
            if object.layout.is_some() {
                return true;
            }
            object.flags = Flags(flags.0 & (Flags::INFO.0 | Flags::FILE.0 | Flags::STREAM.0));
            object.fti = fti.or(object.fti);
            let Some(fti) = object.fti else { return true };
            let first = match (flags.contains(Flags::STREAM), block) {
                // Where a stream begins for this receiver shows with its first symbol.
                (true, None) => return true,
                (true, Some(block)) => {
                    let first = object.partial().first().map_or(block, |&first| first.min(block));
                    match config.join {
                        Join::Now => first,
                        Join::Object | Join::Everything => numbering.origin(first),
                    }
                }
                (false, _) => 0,
            };
            let taken = object.set_layout(fti, config.max_object, config.framing, first);
            if !taken {
                object.finish();
            }
            taken
        });
        ask.counts.refused += u64::from(taken == Some(false));
        taken == Some(true)
    }

    /// Decodes a block if enough of it has arrived.
    fn decode(&mut self, now: Instant, number: u64, block: u32) {
        let Some(object) = self.objects.get(number).filter(|object| object.is_decodable(block)) else {
            return;
        };
        let Some(fti) = object.layout.as_ref().map(|layout| layout.fti) else { return };
        // Codes cost arithmetic: one is made only when a block is there to be decoded.
        if self.codec.as_ref().is_none_or(|&(source, parity, _)| (source, parity) != (fti.source, fti.parity))
        {
            self.codec = Codec::of(&fti).ok().map(|codec| (fti.source, fti.parity, codec));
        }
        if let Some((_, _, codec)) = &self.codec {
            let complete = self.objects.change(number, |object| object.decode(block, codec));
            self.turn.complete(now, complete.unwrap_or(0));
        }
    }

    /// Decodes symbols that came before the object's division into blocks was known.
    fn decode_all(&mut self, now: Instant, number: u64) {
        let blocks = self.objects.get(number).map(Object::partial);
        blocks.into_iter().flatten().for_each(|block| self.decode(now, number, block));
    }

    /// Hands up the parts of an object that are complete now.
    pub(super) fn hand_up(&mut self, number: u64, ask: &mut Ask<'_>, out: &mut Output) {
        let (mut pieces, mut whole) = (Vec::new(), None);
        self.objects.change(number, |object| {
            object.advance_stream(&mut |piece| pieces.push(piece));
            whole =
                object.take_whole().map(|(bytes, info)| (object.flags.contains(Flags::FILE), info, bytes));
        });
        self.deliver(number, pieces, ask, out);
        if let Some((file, info, bytes)) = whole {
            ask.counts.completed += 1;
            self.up(number, Delivered::Object { file, info, bytes }, out);
        }
    }

    /// Hands up pieces of a stream.
    pub(super) fn deliver(&mut self, number: u64, pieces: Vec<Piece>, ask: &mut Ask<'_>, out: &mut Output) {
        for piece in pieces {
            let what = match piece {
                Piece::Bytes(bytes) => Delivered::Bytes(bytes),
                Piece::Message(bytes) => {
                    ask.counts.messages += 1;
                    Delivered::Message(bytes)
                }
                Piece::End => {
                    ask.counts.completed += 1;
                    Delivered::End
                }
                Piece::Gap => {
                    self.missing_for_good(number, ask, out);
                    continue;
                }
            };
            self.up(number, what, out);
        }
    }

    fn up(&self, number: u64, what: Delivered, out: &mut Output) {
        let (from, address) = (self.node, self.address);
        out.delivered.push(Delivery { from, address, object: number, what });
    }

    /// Holds back what was handed up from a place on until what its sender gave before it is over, if that was asked
    /// for.
    pub(super) fn put_in_order(&mut self, place: usize, ask: &Ask<'_>, out: &mut Output) {
        if ask.config.order == Order::BySender {
            self.in_order.order(&mut out.delivered, place, self.objects.first());
        }
    }

    /// An object is missing that nobody has any more: one that was sent after this receiver came, or that it has
    /// heard of since.
    pub(super) fn is_gone(&mut self, number: u64, ask: &mut Ask<'_>, out: &mut Output) {
        if number >= self.joined || self.objects.get(number).is_some_and(Object::is_known) {
            self.missing_for_good(number, ask, out);
        }
        self.objects.finish(number);
    }

    /// Something is missing that nobody has any more.
    pub(super) fn missing_for_good(&mut self, number: u64, ask: &mut Ask<'_>, out: &mut Output) {
        self.up(number, Delivered::Missing, out);
        self.gave_up = true;
        ask.counts.given_up += 1;
    }

    /// Memory that all of it takes.
    #[cfg(test)]
    pub(super) fn held(&self) -> super::held::Held {
        let held = self.objects.held();
        super::held::Held { decoded: held.decoded + self.in_order.bytes(), ..held }
    }

    /// Nothing more comes of what was sent so far: what is not complete is missing.
    pub(super) fn close(&mut self, ask: &mut Ask<'_>, out: &mut Output) {
        let place = out.delivered.len();
        if let Some((last, _)) = self.progress.last {
            let wanted: Vec<u64> = self.objects.wanted(last).collect();
            for number in wanted {
                self.is_gone(number, ask, out);
            }
            self.objects.clear(last + 1);
        }
        self.in_order.order(&mut out.delivered, place, u64::MAX);
        self.requests.stop();
        self.leaves = None;
    }

    pub(super) fn wake(&mut self, now: Instant, ask: &mut Ask<'_>, out: &mut Output) {
        if self.leaves.is_some_and(|at| at <= now) {
            self.close(ask, out);
        }
        let place = out.delivered.len();
        self.wake_requests(now, ask, out);
        self.wake_acknowledgements(now, ask, out);
        self.put_in_order(place, ask, out);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let acknowledge = self.acknowledge.map(|(at, _)| at);
        let all = [self.leaves, self.requests.deadline(), acknowledge, self.congestion.deadline()];
        all.into_iter().flatten().min()
    }
}
