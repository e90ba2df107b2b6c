//! When a receiver asks, and for what.
//!
//! A block is asked for once the sender has gone on to the next, or has said that it is at the end. Whoever has
//! asked, or was heard to ask for as much, waits for the answer: until the sender is heard to be done with the
//! block (repairs of it came, and then something else), or for long enough that the request or all of the answer
//! must have been lost. Before each round of requests there is a random back-off (RFC 5401, section 3.2.2; RFC
//! 5740, section 5.3).

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

use super::block::Asked;
use super::object::Object;
use super::remote::Remote;
use super::{Ask, Feedback, Output};
use crate::backoff::truncated_exponential;
use crate::norm::wire::{Body, Flags, Nack, Position, Repair, RepairFlags, RepairForm};

/// Bytes of requests in a NACK. Chosen: one datagram on any path, and blocks enough for a round.
const MAX_REQUESTS: usize = 1000;
/// Minimum time between two NACKs, which doubles with each one after which nothing of the sender is heard. Chosen:
/// whatever round trip a sender claims, a receiver sends a thousand a second at most, and a forged claim of objects
/// that nobody has is followed by about one a second.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum number of times that it doubles: to a second.
const MAX_DOUBLINGS: u32 = 10;
/// Blocks and objects that are looked at in a round. Chosen: more than a NACK names; the others have their turn in the
/// next one.
const MAX_LOOKED_AT: usize = 512;

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Missing {
    /// Anything at all of an object.
    Object(u64),
    /// Its info.
    Info(u64),
    /// A block of which nothing came.
    Block(u64, u32),
    /// Symbols of a block.
    Symbols(u64, u32, Vec<u16>),
}

impl Remote {
    /// Notes that a packet of a place was heard.
    pub(super) fn passed(&mut self, now: Instant, place: (u64, u32), flags: Flags, ask: &mut Ask<'_>) {
        let before = self.last;
        self.advance(place.0, place.1);
        let mut news = before != self.last;
        // libnorm marks no repairs, but goes back for them.
        if flags.contains(Flags::REPAIR) || before.is_some_and(|before| place < before) {
            if let Some((other, _)) = self.repairing.replace((place, now))
                && other != place
            {
                self.answer_is_over(other);
                news = true;
            }
        } else {
            // Repairs and new data may take turns: two packets of new data in a row are the end of repairs.
            let before = self.fresh.replace(self.sequence);
            let in_a_row = before.is_some_and(|before| before.wrapping_add(1) == self.sequence);
            if let Some((other, _)) = self.repairing.take_if(|(other, _)| in_a_row && *other != place) {
                self.answer_is_over(other);
                news = true;
            }
        }
        if self.end.is_some_and(|(number, block, _)| place > (number, block)) {
            self.end = None;
        }
        if news {
            self.look(now, ask);
        }
    }

    pub(super) fn advance(&mut self, number: u64, block: u32) {
        self.last = self.last.max(Some((number, block)));
    }

    /// The sender has sent what it will of a block's repairs.
    pub(super) fn answer_is_over(&mut self, (number, block): (u64, u32)) {
        if let Some(object) = self.objects.get_mut(&number) {
            asked(object, block).answered();
            object.asked_info.answered();
        }
    }

    /// Longest time until the answer to a request begins: the sender waits a GRTT for other requests, and its
    /// answer comes within another; those of others in the round come first.
    fn hold(&self) -> Duration {
        self.grtt * (u64::from(self.backoff) + 2)
    }

    /// Starts the back-off if something is missing that nobody has asked for.
    pub(super) fn look(&mut self, now: Instant, ask: &mut Ask<'_>) {
        if self.timer.is_some() || ask.config.silent {
            return;
        }
        let (missing, overdue) = self.missing(now, 1);
        if missing.is_empty() {
            self.overdue = overdue;
            return;
        }
        self.back_off(now, Duration::ZERO, ask);
    }

    fn back_off(&mut self, now: Instant, min: Duration, ask: &mut Ask<'_>) {
        let max = self.grtt * u64::from(self.backoff);
        let min = min.max(self.unanswered.1.since(now));
        self.timer = Some(now + truncated_exponential(ask.random, max, self.group_size).max(min));
        self.spared = false;
    }

    /// Asks for what is missing.
    pub(super) fn ask(&mut self, now: Instant, ask: &mut Ask<'_>, out: &mut Output) {
        let (missing, _) = self.missing(now, MAX_LOOKED_AT);
        if missing.is_empty() {
            ask.counts.nacks_suppressed += u64::from(std::mem::take(&mut self.spared));
        }
        let mut repairs: Vec<Repair> = Vec::new();
        let mut room = MAX_REQUESTS;
        let mut given_up = Vec::new();
        for missing in missing {
            let repair = self.request(&missing);
            let Some(rest) = room.checked_sub(repair.len()) else { break };
            let (number, asked) = self.asked(&missing);
            if !asked.ask(now, ask.config.robust) {
                given_up.push(number);
                continue;
            }
            room = rest;
            push(&mut repairs, repair);
        }
        given_up.dedup();
        for number in given_up {
            if let Some(object) = self.objects.get_mut(&number).filter(|object| !object.is_done) {
                object.finish();
                self.give_up(number, ask, out);
            }
        }
        self.forget_done();
        if !repairs.is_empty() {
            ask.counts.nacks_sent += 1;
            let interval = MIN_INTERVAL * (1 << self.unanswered.0.min(MAX_DOUBLINGS));
            self.unanswered = (self.unanswered.0.saturating_add(1), now + interval);
            let nack = Nack {
                sender: self.node,
                instance: self.instance,
                grtt_response: self.response(now),
                cc: self.congestion.feedback(self.grtt),
                repairs,
            };
            self.congestion.said();
            out.feedback.push(Feedback { to: self.address, body: Body::Nack(nack) });
        }
        let (missing, overdue) = self.missing(now, 1);
        self.overdue = overdue;
        if !missing.is_empty() {
            // There was more than a NACK has room for.
            self.back_off(now, MIN_INTERVAL.max(self.grtt / 2), ask);
        }
    }

    /// Takes the requests of others: what they ask for need not be asked for here.
    pub(super) fn heard_requests(&mut self, now: Instant, repairs: &[Repair]) {
        let mut symbols: BTreeMap<(u64, u32), (u16, Vec<u16>)> = BTreeMap::new();
        for repair in repairs {
            let pairs: Vec<(Position, Position)> = match repair.form {
                RepairForm::Ranges => repair.items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
                RepairForm::Items | RepairForm::Erasures => {
                    repair.items.iter().map(|&item| (item, item)).collect()
                }
            };
            for (first, last) in pairs {
                let (Some(from), Some(to)) = (self.near(first.object), self.near(last.object)) else {
                    continue;
                };
                let (low, high) = (
                    self.block_number(from, first.fec, first.id.block),
                    self.block_number(to, last.fec, last.id.block),
                );
                if repair.flags.contains(RepairFlags::INFO) || repair.flags.contains(RepairFlags::OBJECT) {
                    for (_, object) in self.objects.range_mut(from..=to.max(from)) {
                        object.asked_info.heard(now);
                        if repair.flags.contains(RepairFlags::OBJECT) {
                            object.asked_whole.heard(now);
                            object.blocks.values_mut().for_each(|block| block.asked.heard(now));
                            self.spared = true;
                        }
                    }
                }
                if repair.flags.contains(RepairFlags::BLOCK)
                    && from == to
                    && let Some(object) = self.objects.get_mut(&from)
                {
                    let range = low..high.saturating_add(1).max(low);
                    object.blocks.range_mut(range.clone()).for_each(|(_, block)| block.asked.heard(now));
                    let upto = object.heard.map_or(0, |heard| heard + 1);
                    for block in (range.start.max(object.next)..range.end.min(upto)).take(MAX_LOOKED_AT) {
                        if !object.has(block) && !object.blocks.contains_key(&block) {
                            object.asked.entry(block).or_default().heard(now);
                        }
                    }
                    self.spared = true;
                }
                if repair.flags.contains(RepairFlags::SEGMENT) && (from, low) == (to, high) {
                    let (count, named) = symbols.entry((from, low)).or_default();
                    if repair.form == RepairForm::Erasures {
                        *count = (*count).max(first.id.symbol);
                    } else {
                        let range = first.id.symbol..=last.id.symbol;
                        named.extend(range.take(255_usize.saturating_sub(named.len())));
                        *count = named.len() as u16;
                    }
                }
            }
        }
        for ((number, block), (count, named)) in symbols {
            let Some(object) = self.objects.get_mut(&number) else { continue };
            let (source, parity) = (object.source(block), object.parity());
            let Some(state) = object.blocks.get_mut(&block) else { continue };
            let Some(source) = source else { continue };
            // Without parity only the symbols that were named help.
            let is_named = |symbols: &[u16]| symbols.iter().all(|symbol| named.contains(symbol));
            let is_enough = match parity {
                0 => is_named(&state.missing(source)),
                _ => count >= state.lacking(source),
            };
            if is_enough {
                state.asked.heard(now);
                self.spared = true;
            }
        }
    }

    /// An object number that others use, if it is of interest here.
    fn near(&self, id: u16) -> Option<u64> {
        let (last, _) = self.last?;
        let number =
            last.checked_add_signed(i64::from(crate::norm::wire::serial::distance16(id, last as u16)))?;
        (self.first..=last).contains(&number).then_some(number)
    }

    /// What is missing that is to be asked for, at most `most` of it, in the order in which it was sent; and when the
    /// answer to what was asked for is overdue.
    fn missing(&self, now: Instant, most: usize) -> (Vec<Missing>, Option<Instant>) {
        let mut found = Found { now, hold: self.hold(), most, missing: Vec::new(), overdue: None, seen: 0 };
        let Some((last, last_block)) = self.last else { return (found.missing, None) };
        let busy =
            |number, block| self.repairing.filter(|&(place, _)| place <= (number, block)).map(|(_, at)| at);
        for number in self.first..=last {
            if found.is_full() {
                break;
            }
            let Some(object) = self.objects.get(&number) else {
                found.note(&Asked::default(), None, || Missing::Object(number));
                continue;
            };
            if object.is_done {
                continue;
            }
            if object.heard.is_none() && object.layout.is_none() && !object.flags.contains(Flags::INFO) {
                found.note(&object.asked_whole, busy(number, 0), || Missing::Object(number));
                continue;
            }
            if object.lacks_info() && (number < last || last_block > 0 || self.end.is_some()) {
                found.note(&object.asked_info, busy(number, 0), || Missing::Info(number));
            }
            let ended = self.end.filter(|&(at, ..)| at == number);
            let known = object.count().unwrap_or(object.heard.map_or(0, |heard| heard + 1));
            let upto = if number < last { known } else { known.min(last_block + 1) };
            for block in object.next..upto {
                if found.is_full() {
                    break;
                }
                if object.has(block) {
                    continue;
                }
                let at_end = ended.filter(|&(_, at, _)| at == block).map(|(.., symbol)| symbol);
                let is_past = (number, block) < (last, last_block) || at_end.is_some();
                if !is_past {
                    continue;
                }
                let Some(state) = object.blocks.get(&block) else {
                    // Of the unfinished block of a stream there are only the symbols that were sent.
                    let asked = object.asked.get(&block).copied().unwrap_or_default();
                    found.note(&asked, busy(number, block), || match (at_end, object.source(block)) {
                        (Some(symbol), Some(source)) if symbol + 1 < source => {
                            Missing::Symbols(number, block, (0..=symbol).collect())
                        }
                        _ => Missing::Block(number, block),
                    });
                    continue;
                };
                let Some(source) = object.source(block) else {
                    found.note(&state.asked, busy(number, block), || Missing::Block(number, block));
                    continue;
                };
                let wanted = match at_end {
                    Some(symbol) if symbol + 1 < source => state.missing(symbol + 1),
                    _ => state.wanted(source, object.parity()),
                };
                if !wanted.is_empty() {
                    found.note(&state.asked, busy(number, block), || Missing::Symbols(number, block, wanted));
                }
            }
        }
        (found.missing, found.overdue)
    }

    /// What was asked for of something that is missing.
    fn asked(&mut self, missing: &Missing) -> (u64, &mut Asked) {
        let number = match *missing {
            Missing::Object(number)
            | Missing::Info(number)
            | Missing::Block(number, _)
            | Missing::Symbols(number, ..) => number,
        };
        let object = self.objects.entry(number).or_default();
        let asked = match *missing {
            Missing::Object(_) => &mut object.asked_whole,
            Missing::Info(_) => &mut object.asked_info,
            Missing::Block(_, block) | Missing::Symbols(_, block, _) => asked(object, block),
        };
        (number, asked)
    }

    fn request(&self, missing: &Missing) -> Repair {
        let range = |flags, first: Position, last: Position| Repair {
            form: RepairForm::Ranges,
            flags,
            items: vec![first, last],
        };
        match missing {
            Missing::Object(number) => {
                let position = self.position(*number, 0, 0);
                range(RepairFlags::OBJECT, position, position)
            }
            Missing::Info(number) => {
                let items = vec![self.position(*number, 0, 0)];
                Repair { form: RepairForm::Items, flags: RepairFlags::INFO, items }
            }
            Missing::Block(number, block) => {
                let position = self.position(*number, *block, 0);
                range(RepairFlags::BLOCK, position, position)
            }
            Missing::Symbols(number, block, symbols) => {
                let mut items = Vec::new();
                for run in symbols.chunk_by(|one, next| one + 1 == *next) {
                    items.push(self.position(*number, *block, run[0]));
                    items.push(self.position(*number, *block, run[run.len() - 1]));
                }
                Repair { form: RepairForm::Ranges, flags: RepairFlags::SEGMENT, items }
            }
        }
    }
}

/// What was asked for of a block.
fn asked(object: &mut Object, block: u32) -> &mut Asked {
    match object.blocks.get_mut(&block) {
        Some(state) => &mut state.asked,
        None => object.asked.entry(block).or_default(),
    }
}

/// Adds a request to those before it, in one list with them where they are alike.
fn push(repairs: &mut Vec<Repair>, repair: Repair) {
    match repairs.last_mut() {
        Some(last) if (last.form, last.flags) == (repair.form, repair.flags) => {
            // Objects and blocks that follow each other are one range.
            if !repair.flags.contains(RepairFlags::SEGMENT)
                && let (Some(end), [first, only]) = (last.items.last_mut(), &repair.items[..])
                && first == only
                && follows(repair.flags, end, first)
            {
                *end = *first;
                return;
            }
            last.items.extend(repair.items);
        }
        _ => repairs.push(repair),
    }
}

/// Whether an object or block is the one after another.
fn follows(flags: RepairFlags, end: &Position, next: &Position) -> bool {
    if flags.contains(RepairFlags::OBJECT) {
        return next.object == end.object.wrapping_add(1);
    }
    next.object == end.object && next.id.block == end.id.block.wrapping_add(1)
}

struct Found {
    now: Instant,
    hold: Duration,
    most: usize,
    missing: Vec<Missing>,
    overdue: Option<Instant>,
    seen: usize,
}

impl Found {
    fn is_full(&self) -> bool {
        self.missing.len() >= self.most || self.seen >= MAX_LOOKED_AT
    }

    fn note(&mut self, asked: &Asked, busy: Option<Instant>, missing: impl FnOnce() -> Missing) {
        self.seen += 1;
        if asked.is_awaited(self.now, self.hold, busy) {
            let until = asked.until(self.hold, busy);
            self.overdue = self.overdue.into_iter().chain(until).min();
        } else {
            self.missing.push(missing());
        }
    }
}
