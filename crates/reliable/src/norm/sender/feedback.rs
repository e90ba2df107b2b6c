//! Feedback of receivers: requests for repair, and acknowledgements.

use hopcast_core::{Duration, Instant};

use super::Sender;
use super::block::Request;
use super::object::Object;
use crate::norm::wire::{
    Ack, Acknowledged, CcFeedback, Command, Nack, NodeId, Repair, RepairFlags, RepairForm, Timestamp, serial,
};

/// Blocks that a NACK may ask for; those after them are asked for again. Chosen: one forged datagram costs no more work
/// than this, and 256 blocks are more than is repaired before the next round.
const MAX_BLOCKS: usize = 256;
/// Symbols that are named of a block at most.
const MAX_NAMED: usize = 255;
/// All symbols that a block can have.
const ALL: [u16; MAX_NAMED] = {
    let mut all = [0; MAX_NAMED];
    let mut symbol = 0;
    while symbol < MAX_NAMED {
        all[symbol] = symbol as u16;
        symbol += 1;
    }
    all
};
/// Advertisements in a GRTT at most. Chosen: each reaches those whose back-off ends within the next quarter, and a
/// flood of requests takes no more than that of the rate.
const ADVERTISEMENTS: u64 = 4;

impl Sender {
    /// Takes a NACK.
    pub(in crate::norm) fn nack(&mut self, now: Instant, from: NodeId, nack: &Nack) {
        if nack.sender != self.node || nack.instance != self.instance {
            return;
        }
        self.counts.nacks_received += 1;
        // Without the number of a probe there is only what it asks for that shows since when it can have heard.
        let round_trip = match (nack.cc, self.first_heard(&nack.repairs)) {
            (None, None) => None,
            (cc, heard) => self.response(now, nack.grtt_response, cc, heard),
        };
        self.group.note(now, from.0);
        if let Some(cc) = nack.cc {
            self.congestion_feedback(now, from, cc, round_trip);
        }
        let seen = now - round_trip.unwrap_or_else(|| self.grtt());
        let mut left = MAX_BLOCKS;
        let mut raised = false;
        for repair in &nack.repairs {
            raised |= self.requested(now, seen, repair, &mut left);
        }
        if raised && self.config.unicast_feedback {
            self.advertise(now);
        }
    }

    /// Takes an acknowledgement.
    pub(in crate::norm) fn ack(&mut self, now: Instant, from: NodeId, ack: &Ack<'_>) {
        if ack.sender != self.node || ack.instance != self.instance {
            return;
        }
        let round_trip = self.response(now, ack.grtt_response, ack.cc, None);
        self.group.note(now, from.0);
        if let Some(cc) = ack.cc {
            self.congestion_feedback(now, from, cc, round_trip);
        }
        if let Acknowledged::Flush(position) = ack.what
            && Some(position) == self.last()
            && self.flush.acknowledged(from)
        {
            self.counts.acknowledged += 1;
        }
    }

    /// The round trip that a response shows, which the group's follows. It is no longer than the time since `heard`, at
    /// which something was sent that the receiver had by then.
    fn response(
        &mut self,
        now: Instant,
        response: Timestamp,
        cc: Option<CcFeedback>,
        heard: Option<Instant>,
    ) -> Option<Duration> {
        let shown = self.probe.round_trip(now, response, cc.map(|cc| cc.sequence));
        self.counts.refused += u64::from(shown.is_none() && !response.is_zero());
        let round_trip = shown?.min(heard.map_or(Duration::MAX, |heard| now.since(heard)));
        self.grtt.sample(round_trip);
        Some(round_trip).filter(|&round_trip| round_trip <= self.config.max_grtt)
    }

    /// When the last block that requests name was begun: whoever asks for something of it has heard of it. `None` if it
    /// was not, or is no longer held.
    fn first_heard(&self, repairs: &[Repair]) -> Option<Instant> {
        let place = repairs.last()?.items.last()?;
        let last = self.source.last_object()?;
        let number = last.checked_add_signed(i64::from(serial::distance16(place.object, last as u16)))?;
        let object = self.objects.get(&number)?;
        object.blocks.get(&self.block_of(number, place.id.block))?.begun
    }

    /// Tells the group of requests and feedback that came by unicast: at once, so that those whose back-off is not over
    /// hear of it, but no more often than a few times in a round trip.
    pub(super) fn advertise(&mut self, now: Instant) {
        let earliest = self.advertised.map_or(now, |last| last + self.grtt() / ADVERTISEMENTS);
        self.advertise.get_or_insert(now.max(earliest));
    }

    /// Takes one request. True if it raised what is to be sent.
    fn requested(&mut self, now: Instant, seen: Instant, repair: &Repair, left: &mut usize) -> bool {
        let level = repair.flags;
        let step = if repair.form == RepairForm::Ranges { 2 } else { 1 };
        let mut raised = false;
        // Symbols of one block are collected, whatever items they are in.
        let mut named: Vec<u16> = Vec::new();
        let mut open: Option<(u64, u32, u16)> = None;
        for pair in repair.items.chunks_exact(step) {
            let (first, last) = (pair[0], pair[step - 1]);
            if *left == 0 {
                break;
            }
            let Some(from) = self.number_of(first.object) else { continue };
            let to = self.number_of(last.object).unwrap_or(from);
            if level.contains(RepairFlags::INFO) {
                *left -= 1;
                raised |= self.wants_info(from);
            }
            if level.contains(RepairFlags::OBJECT) {
                raised |= self.wants_objects(now, seen, from, to, left);
                continue;
            }
            let block = self.block_of(from, first.id.block);
            if level.contains(RepairFlags::BLOCK) {
                let last = self.block_of(to, last.id.block);
                raised |= self.wants_blocks(now, seen, from, block..last.saturating_add(1), left);
                continue;
            }
            if !level.contains(RepairFlags::SEGMENT) {
                continue;
            }
            if open.is_some_and(|(number, at, _)| (number, at) != (from, block)) {
                raised |= self.wants(now, seen, open.take(), &named, left);
                named.clear();
            }
            let count = &mut open.get_or_insert((from, block, 0)).2;
            if repair.form == RepairForm::Erasures {
                *count = (*count).max(first.id.symbol);
            } else if (first.object, first.id.block) == (last.object, last.id.block) {
                let symbols = (first.id.symbol..=last.id.symbol).take(MAX_NAMED - named.len());
                named.extend(symbols);
                *count = named.len() as u16;
            }
        }
        raised | self.wants(now, seen, open, &named, left)
    }

    /// The number of an object that was sent; `None` if there is none with that id, or it is no longer held.
    fn number_of(&mut self, id: u16) -> Option<u64> {
        let last = self.source.last_object()?;
        let number = last.checked_add_signed(i64::from(serial::distance16(id, last as u16)))?;
        if number > last {
            self.counts.refused += 1;
            return None;
        }
        if !self.objects.contains_key(&number) {
            self.say_what_is_left();
            return None;
        }
        Some(number)
    }

    /// A block number out of its low bits, near the last block sent.
    fn block_of(&self, number: u64, block: u32) -> u32 {
        let Some(object) = self.objects.get(&number) else { return block };
        let near = object.blocks.last_key_value().map_or(0, |(&last, _)| last);
        near.wrapping_add_signed(serial::block_distance(Object::FEC, block, near & super::MAX_BLOCK))
    }

    fn blocks_sent(&self, number: u64) -> std::ops::Range<u32> {
        let Some(object) = self.objects.get(&number) else { return 0..0 };
        object.first_block()..object.blocks.last_key_value().map_or(0, |(&last, _)| last + 1)
    }

    fn wants_objects(&mut self, now: Instant, seen: Instant, from: u64, to: u64, left: &mut usize) -> bool {
        let (mut raised, mut next) = (false, from);
        while *left > 0
            && next <= to
            && let Some((&number, _)) = self.objects.range(next..=to).next()
        {
            *left -= 1;
            raised |= self.wants_info(number);
            let blocks = self.blocks_sent(number);
            raised |= self.wants_blocks(now, seen, number, blocks, left);
            next = number + 1;
        }
        raised
    }

    fn wants_info(&mut self, number: u64) -> bool {
        let Some(object) = self.objects.get_mut(&number) else { return false };
        if object.info.is_none() || object.info_wanted {
            return false;
        }
        object.info_wanted = true;
        self.pending.insert((number, object.first_block()), Instant::ZERO, false);
        true
    }

    fn wants_blocks(
        &mut self,
        now: Instant,
        seen: Instant,
        number: u64,
        blocks: std::ops::Range<u32>,
        left: &mut usize,
    ) -> bool {
        let sent = self.blocks_sent(number);
        if blocks.start < sent.start {
            self.say_what_is_left();
        }
        let mut raised = false;
        for block in blocks.start.max(sent.start)..blocks.end.min(sent.end) {
            if *left == 0 {
                break;
            }
            let Some(object) = self.objects.get(&number) else { break };
            let source = object.source(block);
            let named = &ALL[..usize::from(source).min(ALL.len())];
            raised |= self.wants(now, seen, Some((number, block, source)), named, left);
        }
        raised
    }

    /// Takes a request for `count` symbols of a block.
    fn wants(
        &mut self,
        now: Instant,
        seen: Instant,
        block: Option<(u64, u32, u16)>,
        named: &[u16],
        left: &mut usize,
    ) -> bool {
        let Some((number, block, count)) = block else { return false };
        if *left == 0 || !self.source.has_sent(number, block) {
            self.counts.refused += u64::from(*left > 0);
            return false;
        }
        *left -= 1;
        let (loss, grtt, of_many) = (self.need.loss(), self.grtt(), self.is_large());
        let Some(object) = self.objects.get_mut(&number) else { return false };
        if block < object.first_block() {
            self.say_what_is_left();
            return false;
        }
        let source = object.source(block);
        let parity = if object.is_whole(block) { self.config.parity } else { 0 };
        let Some(state) = object.blocks.get_mut(&block) else { return false };
        self.counts.blocks_requested += 1;
        let (nacks, made_for) = (state.nack(now, grtt), state.made_for);
        let request =
            Request { count: count.min(source), named, symbols: source + parity, seen, loss, of_many };
        let raised = state.request(now, request, parity);
        if state.is_pending() {
            let spent = state.rounds > u32::from(self.config.robust);
            self.pending.insert((number, block), state.asked.unwrap_or(now), spent);
        }
        let delay = self.delay(made_for);
        self.group.nacks(nacks, made_for, delay);
        raised
    }

    /// Somebody asked for what is gone: says so, once every two GRTT.
    fn say_what_is_left(&mut self) {
        if self.squelch.is_none() {
            self.squelch = Some(self.squelched.map_or(Instant::ZERO, |at| at + self.grtt() * 2));
        }
    }

    /// The first symbol that can be repaired.
    pub(super) fn squelch_command(&self) -> Option<Command<'static>> {
        let (&number, object) = self.objects.first_key_value()?;
        let first = Self::position(number, object.first_block(), 0);
        Some(Command::Squelch { first, invalid: Vec::new() })
    }

    /// The requests of receivers, as far as they fit a segment, and the rate that limits the sender, so that those that
    /// hear of it need neither ask nor answer.
    pub(super) fn advertisement(&self, now: Instant) -> Option<Command<'static>> {
        let (mut repairs, mut room) = (Vec::new(), usize::from(self.config.segment));
        let mut limited = false;
        for (number, block) in self.pending.places() {
            let Some(state) = self.block((number, block)).filter(|state| state.is_pending()) else {
                continue;
            };
            let item = Self::position(number, block, state.pending());
            let repair =
                Repair { form: RepairForm::Erasures, flags: RepairFlags::SEGMENT, items: vec![item] };
            let Some(rest) = room.checked_sub(repair.len()) else {
                limited = true;
                break;
            };
            room = rest;
            repairs.push(repair);
        }
        let cc = self.congestion.as_ref().and_then(|congestion| congestion.suppression(now));
        let has_news = !repairs.is_empty() || cc.is_some();
        has_news.then_some(Command::RepairAdvertisement { limited, cc, repairs })
    }
}
