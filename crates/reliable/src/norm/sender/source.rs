//! New data: the objects in the order in which they were given, symbol by symbol.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hopcast_core::{Duration, Instant};

use super::block::Block;
use super::object::{Contents, Object};
use super::stream::Stream;
use super::{Packet, Sender};
use crate::down_streams::SendsStreams;
use crate::norm::config::RateControl;
use crate::norm::fec::Blocks;
use crate::norm::wire::Flags;
use crate::statistics::Kind;

/// The place up to which everything was sent once.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// Number of the next object to be given.
    next: u64,
    /// Number of the object being sent.
    current: u64,
    /// Whether its info has been sent.
    info_sent: bool,
    /// The next symbol of it; of a stream, the stream knows.
    block: u32,
    symbol: u16,
    /// The block behind which parity goes that nobody asked for, and how much of it is left.
    proactive: Option<(u32, u16)>,
    /// The last source symbol sent.
    last: Option<(u64, u32, u16)>,
    /// Blocks whose need is known at a time, in the order of that.
    settle: VecDeque<(Instant, u64, u32)>,
    /// Since when the next block of a stream, or the next object, waits for room.
    stalled: Option<Instant>,
    full: Option<Instant>,
    /// Blocks and objects that were dropped while somebody asked for them, less those that were not: each halves the
    /// patience.
    forced: u32,
}

/// Times for which a block of a stream or an object is held for those that still ask for it, where the next one waits
/// for its room. Chosen: at 50 % loss a block is complete after a few rounds, of which each hold has several.
const PATIENCE: u64 = 4;
/// Bytes of a stream that are held where the buffer has room for them, however slow it is, and maximum number of bytes
/// that wait to be sent. Chosen: a receiver that was cut off for seconds of a slow stream completes.
const MIN_BUFFER: u64 = 4 << 20;
/// Maximum buffer size that a stream announces. Chosen: as much as a receiver may be asked to reserve.
const MAX_ANNOUNCED: u64 = 64 << 20;
/// Halvings of the patience with those that never have enough. Chosen: what is left is less than a packet's time.
const MAX_HALVINGS: u32 = 16;

impl Source {
    /// Objects are numbered from one that differs from instance to instance, so that those of the one before are not
    /// taken for them. The low 16 bits are the object transport id.
    pub(super) fn new(instance: u16) -> Self {
        let first = (1 << 32) | u64::from(instance);
        Self {
            next: first,
            current: first,
            info_sent: false,
            block: 0,
            symbol: 0,
            proactive: None,
            last: None,
            settle: VecDeque::new(),
            stalled: None,
            full: None,
            forced: 0,
        }
    }

    /// Whether there is something new to be sent.
    pub(super) fn is_ready(&self, objects: &BTreeMap<u64, Object>) -> bool {
        if self.proactive.is_some() {
            return true;
        }
        let Some(object) = objects.get(&self.current) else { return false };
        match &object.contents {
            // Where it is finished, the next one is looked at.
            Contents::Whole { .. } => true,
            Contents::Stream(stream) => {
                let info = object.info.is_some() && !self.info_sent;
                info || stream.is_ready(true) || stream.is_finished()
            }
        }
    }

    /// Whether there is something new beyond doubt: [`is_ready`](Self::is_ready) finds an object that is finished only
    /// when it looks for more of it.
    pub(super) fn has_more(&self, objects: &BTreeMap<u64, Object>) -> bool {
        let Some(object) = objects.get(&self.current) else { return self.proactive.is_some() };
        let has_more = match &object.contents {
            Contents::Whole { blocks, .. } => self.block < blocks.count(),
            Contents::Stream(stream) => stream.is_ready(true),
        };
        let info = object.info.is_some() && !self.info_sent;
        self.proactive.is_some() || has_more || info || objects.contains_key(&(self.current + 1))
    }

    /// The last source symbol that was sent, if its object is held.
    pub(super) fn last(&self, objects: &BTreeMap<u64, Object>) -> Option<(u64, u32, u16)> {
        self.last.filter(|(object, ..)| objects.contains_key(object))
    }

    /// Whether something of a block was sent.
    pub(super) fn has_sent(&self, object: u64, block: u32) -> bool {
        self.last.is_some_and(|(last, at, _)| (object, block) <= (last, at))
    }

    /// Number of the last object of which something was sent.
    pub(super) fn last_object(&self) -> Option<u64> {
        self.last.map(|(object, ..)| object)
    }
}

/// Why an object is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::norm) enum Refusal {
    /// As many as may be are held, and the oldest of them is still being repaired or was sent just now.
    Full,
    /// It has more blocks than can be numbered, or its info is longer than a segment.
    TooLarge,
}

impl Sender {
    /// Gives an object to send.
    pub(in crate::norm) fn push(
        &mut self,
        now: Instant,
        bytes: Arc<[u8]>,
        info: Option<Arc<[u8]>>,
        flags: Flags,
    ) -> Result<u64, Refusal> {
        if !self.takes(bytes.len(), info.as_deref()) {
            return Err(Refusal::TooLarge);
        }
        let fti = self.fti(bytes.len() as u64);
        let blocks = Blocks::of(&fti).map_err(|_| Refusal::TooLarge)?;
        self.make_room(now, bytes.len() as u64)?;
        self.object_bytes += bytes.len() as u64;
        // Of an object without bytes its info is all that there is to send.
        let info = info.or_else(|| bytes.is_empty().then(Arc::default));
        let object = Object::new(Contents::Whole { bytes, blocks }, info, flags, fti);
        Ok(self.add(object))
    }

    /// Whether an object of `len` bytes can ever be sent, with what is said of it.
    pub(in crate::norm) fn takes(&self, len: usize, info: Option<&[u8]>) -> bool {
        info.is_none_or(|info| info.len() <= usize::from(self.config.segment))
            && Blocks::of(&self.fti(len as u64)).is_ok()
    }

    /// Opens a stream.
    pub(in crate::norm) fn open_stream(&mut self, now: Instant) -> Result<u64, Refusal> {
        self.make_room(now, 0)?;
        // Receivers of others reserve this much.
        let fti = self.fti(self.held_bytes().min(MAX_ANNOUNCED));
        let stream = Stream::new(self.config.segment, self.config.source);
        Ok(self.add(Object::new(Contents::Stream(stream), None, Flags::STREAM, fti)))
    }

    /// A stream that was opened, while it is held.
    pub(in crate::norm) fn stream(&mut self, number: u64) -> Option<&mut Stream> {
        self.objects.get_mut(&number)?.stream_mut()
    }

    fn add(&mut self, object: Object) -> u64 {
        let number = self.source.next;
        self.objects.insert(number, object);
        self.source.next += 1;
        number
    }

    /// Drops objects that need not be held any more, until there is room for one of `bytes`.
    fn make_room(&mut self, now: Instant, bytes: u64) -> Result<(), Refusal> {
        while self.is_full(bytes) {
            let oldest = self.objects.first_key_value().map(|(&oldest, _)| oldest).ok_or(Refusal::Full)?;
            if self.pending.has_object(oldest) {
                // Whoever asks for it without end holds up everybody else no longer than this.
                self.source.full.get_or_insert(now);
            }
            if self.room_due().is_none_or(|at| at > now) {
                return Err(Refusal::Full);
            }
            if self.pending.remove_object(oldest) {
                self.counts.given_up += 1;
                self.source.forced += 1;
            } else {
                self.source.forced = self.source.forced.saturating_sub(1);
            }
            self.source.full = None;
            let dropped = self.objects.remove(&oldest);
            self.object_bytes -= dropped.map_or(0, |object| object.bytes());
        }
        Ok(())
    }

    /// Number of objects held.
    #[cfg(test)]
    pub(in crate::norm) fn held_objects(&self) -> usize {
        self.objects.len()
    }

    fn is_full(&self, bytes: u64) -> bool {
        let limit = self.config.buffer;
        self.objects.len() >= self.config.objects
            || self.object_bytes > 0 && self.object_bytes.saturating_add(bytes) > limit
    }

    /// When the oldest object may be dropped for another one; `None` while it is still to be sent.
    pub(in crate::norm) fn room_due(&self) -> Option<Instant> {
        let (&oldest, object) = self.objects.first_key_value()?;
        if oldest >= self.source.current {
            return None;
        }
        if self.pending.has_object(oldest) {
            return self.source.full.map(|since| since + self.patience());
        }
        Some(object.sent.map_or(Instant::ZERO, |last| last + self.hold()))
    }

    /// Time for which what is still asked for keeps its room, once something else waits for that.
    fn patience(&self) -> Duration {
        self.hold() * PATIENCE / (1 << self.source.forced.min(MAX_HALVINGS))
    }

    /// Time for which what was sent is held in any case: that of some requests of a receiver, of which each waits
    /// for its back-off and then for its answer.
    pub(super) fn hold(&self) -> Duration {
        (self.round() + self.grtt()) * 4
    }

    /// Whether the next block of a stream waits for the repair of its oldest.
    pub(super) fn is_stalled(&self, now: Instant) -> bool {
        self.source.proactive.is_none() && self.release_time().is_some_and(|at| at > now)
    }

    /// When the oldest block of the stream may be dropped, if the next one waits for its room.
    pub(super) fn release_time(&self) -> Option<Instant> {
        let number = self.source.current;
        let object = self.objects.get(&number)?;
        let stream = object.stream()?;
        let max = self.config.buffer / self.block_bytes(stream);
        if !stream.begins_block() || (stream.held() as u64) < max.max(2) {
            return None;
        }
        let first = stream.first();
        let sent = object.blocks.get(&first).and_then(|block| block.last_sent()).unwrap_or(Instant::ZERO);
        if self.pending.contains((number, first)) {
            // Whoever asks for it without end holds up everybody else no longer than this.
            return Some(self.source.stalled.unwrap_or(sent) + self.patience());
        }
        Some(sent + self.hold())
    }

    fn block_bytes(&self, stream: &Stream) -> u64 {
        u64::from(self.config.source) * stream.symbol() as u64
    }

    /// Bytes of a stream that are held in any case: what is sent while repairs of it can be asked for.
    fn held_bytes(&self) -> u64 {
        let needed = self.rate().bits_per_sec() as f64 / 8.0 * self.hold().as_secs_f64();
        (needed as u64).max(MIN_BUFFER).min(self.config.buffer)
    }

    /// Drops blocks of the stream for which nobody can be expected to ask any more, and the oldest one where the next
    /// one waits for its room.
    fn release(&mut self, now: Instant) {
        let number = self.source.current;
        if self.release_time().is_some_and(|at| at <= now) {
            self.source.stalled = None;
            if self.drop_first(number) {
                self.counts.given_up += 1;
                self.source.forced += 1;
            } else {
                self.source.forced = self.source.forced.saturating_sub(1);
            }
        }
        let (hold, bytes) = (self.hold(), self.held_bytes());
        while let Some(object) = self.objects.get(&number)
            && let Some(stream) = object.stream()
            && stream.begins_block()
            && stream.held() as u64 > (bytes / self.block_bytes(stream)).max(2)
            && !self.pending.contains((number, stream.first()))
            && object
                .blocks
                .get(&stream.first())
                .and_then(Block::last_sent)
                .is_none_or(|sent| sent + hold <= now)
        {
            self.drop_first(number);
        }
    }

    /// Drops the first block of a stream. True if somebody asked for it.
    fn drop_first(&mut self, number: u64) -> bool {
        let Some(object) = self.objects.get_mut(&number) else { return false };
        let Some(stream) = object.stream_mut() else { return false };
        let first = stream.first();
        stream.drop_first();
        object.blocks.remove(&first);
        self.pending.remove((number, first))
    }

    /// The next packet of new data.
    pub(super) fn next_new(&mut self, now: Instant) -> Option<Packet> {
        // An object that turns out to be finished is followed by the next one.
        while self.source.is_ready(&self.objects) {
            if let Some((block, left)) = self.source.proactive {
                self.source.proactive = (left > 1).then(|| (block, left - 1));
                let number = self.source.current;
                if let Some(symbol) = self.proactive_symbol(now, number, block) {
                    self.repairs += 1;
                    return self.data(number, block, symbol, Kind::Repair);
                }
                continue;
            }
            let number = self.source.current;
            let has_info = self.objects.get(&number).is_some_and(|object| object.info.is_some());
            if has_info && !std::mem::replace(&mut self.source.info_sent, true) {
                let source = &mut self.source;
                source.last = Some((number, 0, 0));
                self.flush.advance(now);
                return self.info(number, Kind::Data);
            }
            self.release(now);
            let Some((block, symbol)) = self.advance() else {
                self.source.current += 1;
                (self.source.block, self.source.symbol, self.source.info_sent) = (0, 0, false);
                continue;
            };
            let object = self.objects.get_mut(&number)?;
            object.blocks.entry(block).or_default().sent(now);
            object.sent = Some(now);
            self.source.last = Some((number, block, symbol));
            self.repairs = 0;
            self.flush.advance(now);
            if symbol + 1 == object.source(block) && object.is_whole(block) {
                self.block_ended(now, number, block, symbol + 1);
            }
            return self.data(number, block, symbol, Kind::Data);
        }
        None
    }

    fn proactive_symbol(&mut self, now: Instant, number: u64, block: u32) -> Option<u16> {
        let object = self.objects.get_mut(&number)?;
        let source = object.source(block);
        object.blocks.get_mut(&block)?.next_proactive(now, source, self.config.parity)
    }

    /// The next source symbol of the object being sent; `None` if it is finished.
    fn advance(&mut self) -> Option<(u32, u16)> {
        let object = self.objects.get_mut(&self.source.current)?;
        match &mut object.contents {
            Contents::Whole { blocks, .. } => {
                let (block, symbol) = (self.source.block, self.source.symbol);
                if block >= blocks.count() {
                    return None;
                }
                self.source.symbol += 1;
                if self.source.symbol == blocks.source(block) {
                    (self.source.block, self.source.symbol) = (block + 1, 0);
                }
                Some((block, symbol))
            }
            Contents::Stream(stream) => {
                if !stream.is_ready(false) {
                    stream.flush();
                }
                stream.advance()
            }
        }
    }

    fn block_ended(&mut self, now: Instant, number: u64, block: u32, source: u16) {
        let need = |&(_, number, block): &(Instant, u64, u32)| {
            self.objects.get(&number).and_then(|object| object.blocks.get(&block)?.need)
        };
        // Of those before one that was asked for, nobody lacks anything as far as is known.
        let last = self.source.settle.iter().rposition(|block| need(block).is_some());
        // Of a small group all will be known soon.
        let last = last.filter(|_| self.is_large());
        let asked = self.source.settle.iter().take(last.map_or(0, |last| last + 1));
        let asked = asked.map(|block| need(block).unwrap_or(0));
        let parity = self.need.proactive(source, self.config.parity, asked);
        self.source.proactive = (parity > 0).then_some((block, parity));
        // A round of requests later what it needed is known: it is sent until the next block begins, and answered.
        let sending = self.rate().time_for(u64::from(parity + 4) * u64::from(self.config.segment));
        let at = now + sending + self.round() + self.grtt() * 2;
        self.source.settle.push_back((at, number, block));
        let made_for = self.group.get();
        let state = self.objects.get_mut(&number).and_then(|object| object.blocks.get_mut(&block));
        state.into_iter().for_each(|state| state.made_for = made_for);
    }

    /// Notes the need of blocks whose round of requests is over.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some((_, number, block)) = self.source.settle.pop_front_if(|&mut (at, ..)| at <= now) {
            let Some(object) = self.objects.get(&number) else { continue };
            let source = object.source(block);
            let Some(state) = object.blocks.get(&block) else { continue };
            // Where nobody asked, what was sent ahead was enough, and less may be.
            let need = state.need.unwrap_or_else(|| state.parity_sent().saturating_sub(1));
            self.need.block(source, need);
            let (nacks, delay) = (state.nacks(), self.delay(state.made_for));
            self.group.round(nacks, delay);
        }
        if self.stalls() && self.source.stalled.is_none() {
            self.source.stalled = Some(now);
        }
    }

    fn stalls(&self) -> bool {
        self.source.is_ready(&self.objects)
            && self.source.proactive.is_none()
            && self.release_time().is_some()
    }

    /// Bytes of a stream that wait to be sent.
    pub(in crate::norm) fn waiting(&self, number: u64) -> u64 {
        self.objects.get(&number).and_then(Object::stream).map_or(0, Stream::waiting)
    }

    /// Bytes of a message or stream in a symbol.
    pub(in crate::norm) fn symbol_payload(&self) -> u64 {
        u64::from(self.config.segment)
    }

    /// Bytes of a stream that may wait to be sent.
    pub(in crate::norm) fn buffer(&self) -> u64 {
        self.config.buffer.min(MIN_BUFFER)
    }

    /// How its rate is set.
    pub(in crate::norm) fn rate_control(&self) -> RateControl {
        self.config.rate
    }

    /// Says that the sender leaves, once all has been sent.
    pub(in crate::norm) fn leave(&mut self, now: Instant) {
        self.flush.leave(now);
    }

    /// Whether each receiver that was to acknowledge has.
    pub(in crate::norm) fn is_acknowledged(&self) -> bool {
        !self.source.is_ready(&self.objects) && self.flush.is_acknowledged()
    }
}

impl SendsStreams for Sender {
    fn open(&mut self, now: Instant) -> Option<u64> {
        self.open_stream(now).ok()
    }

    fn write(&mut self, number: u64, bytes: &[u8]) {
        if let Some(stream) = self.stream(number) {
            stream.write(bytes, false);
        }
    }

    fn end(&mut self, number: u64) {
        if let Some(stream) = self.stream(number) {
            stream.end();
        }
    }

    fn waiting(&self, number: u64) -> u64 {
        Self::waiting(self, number)
    }

    fn progress(&mut self, number: u64) -> Option<(u64, bool)> {
        self.stream(number).map(|stream| (stream.sent(), stream.is_finished()))
    }
}
