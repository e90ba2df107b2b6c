//! When a member asks for what it lacks, for what, and whom.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Duration, Instant, Stream};

use super::cache::Cache;
use super::config::{Policy, Replication, Servers};
use super::message::Message;
use super::neighbours::Neighbours;
use super::series::{Catalogue, Series, SeriesId};
use super::wire::{DATA_OVERHEAD, MAX_RUNS, MAX_WANTS, MemberId, MessageId, Missing, Want};
use crate::backoff::truncated_exponential;
use crate::round_trip::RoundTrip;
use crate::runs::Runs;

/// A member's requests.
#[derive(Debug)]
pub(super) struct Asking {
    every: Duration,
    share: f64,
    tail_after: u32,
    back_off: u32,
    is_coded: bool,
    servers: Servers,
    /// Whether it asks for everything that it hears of.
    pulls: bool,
    /// Bytes of the wants that fit a request.
    room: usize,
    random: Stream,
    /// When to look for what is missing; `None` while nothing is.
    next: Option<Instant>,
    /// Requests in a row after which nothing new came.
    fruitless: u32,
    /// What was asked for, by this member or by others, and is expected.
    asked: BTreeMap<MessageId, Vec<Asked>>,
    /// Time from a request to the first of its answer.
    answers: RoundTrip,
    /// Requests of this member without any answer yet, by the member that was asked.
    waiting: BTreeMap<MemberId, Instant>,
}

/// What was asked for of a message.
#[derive(Clone, Debug)]
struct Asked {
    /// The fragments, all of them if it is whole.
    fragments: Runs,
    /// Who is to answer.
    server: Option<MemberId>,
    /// When to give that up.
    until: Instant,
}

/// What there is to ask for and whom.
pub(super) struct View<'a> {
    pub(super) cache: &'a Cache,
    pub(super) catalogue: &'a Catalogue,
    pub(super) neighbours: &'a mut Neighbours,
}

/// Fragments in one request at most. Chosen: answers take some seconds at 1 Mbit/s, and no longer: the next request
/// knows better.
const MAX_FRAGMENTS: u64 = 256;
/// Fruitless passes after which a request names all that is missing whatever its share (DisService's code).
const PASSES: u32 = 2;
/// Messages of which something is asked for at a time, at most. Chosen: some requests full of single ones.
const MAX_ASKED: usize = 4096;

impl Asking {
    pub(super) fn new(policy: &Policy, random: Stream) -> Self {
        let every = policy.ask_interval();
        Self {
            every,
            share: policy.requests.share,
            tail_after: policy.requests.tail_after,
            back_off: policy.requests.back_off,
            is_coded: policy.is_coded,
            servers: policy.requests.servers,
            pulls: policy.replication == Replication::Pull,
            room: usize::from(policy.fragment) + DATA_OVERHEAD - REQUEST_HEADER,
            random,
            next: None,
            fruitless: 0,
            asked: BTreeMap::new(),
            answers: RoundTrip::new(every * 2),
            waiting: BTreeMap::new(),
        }
    }

    /// When to look for what is missing.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// Whether this member asks for what is missing of a series.
    pub(super) fn asks_for(&self, series: &Series) -> bool {
        series.is_asked_for() || self.pulls && !series.is_wanted()
    }

    /// Something may be missing now.
    pub(super) fn something_is_missing(&mut self, now: Instant) {
        if self.next.is_none() {
            let wait = self.spread(self.every);
            self.next = Some(now + wait);
        }
    }

    /// Something is there that was not before: a neighbour, or what it holds. What was asked for in vain may be had.
    pub(super) fn has_news(&mut self, now: Instant) {
        if self.fruitless > 0 {
            self.fruitless = 0;
            let wait = self.spread(self.every);
            self.next = self.next.map(|next| next.min(now + wait));
        }
        self.something_is_missing(now);
    }

    /// A repair was heard, of this member's own requests or others'; `is_last` says that its sender has sent all that it
    /// has been asked for of the message.
    pub(super) fn repair(
        &mut self,
        now: Instant,
        from: MemberId,
        id: MessageId,
        is_last: bool,
        backoff: Duration,
    ) {
        if let Some(at) = self.waiting.remove(&from) {
            self.answers.sample(now.since(at));
        }
        let until = now + self.answers.timeout().max(self.every);
        let Some(all) = self.asked.get_mut(&id) else { return };
        all.iter_mut()
            .filter(|asked| asked.server.is_none_or(|server| server == from))
            .for_each(|asked| asked.until = until);
        if is_last {
            all.retain(|asked| asked.server.is_some_and(|server| server != from));
            if all.is_empty() {
                self.asked.remove(&id);
            }
            let soon = now + backoff;
            self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
        }
    }

    /// Something new came.
    pub(super) fn progress(&mut self) {
        self.fruitless = 0;
    }

    /// A message is whole, or is of no interest any more.
    pub(super) fn forget(&mut self, id: MessageId) {
        self.asked.remove(&id);
    }

    /// A back-off before a request, of at most `max`, in a group of some neighbours.
    pub(super) fn back_off(&mut self, max: Duration, neighbours: usize) -> Duration {
        truncated_exponential(&mut self.random, max, neighbours as f64 + 1.0)
    }

    /// Another member has asked, or has passed a request on: what is missing here too need not be asked for.
    pub(super) fn heard(
        &mut self,
        now: Instant,
        server: Option<MemberId>,
        wants: &[Want],
        view: &View<'_>,
    ) -> u64 {
        let until = now + self.answers.timeout().max(self.every);
        let mut suppressed = 0;
        for want in wants {
            let Some(series) = view.catalogue.get(want.id.into()).filter(|series| self.asks_for(series))
            else {
                continue;
            };
            let message = view.cache.get(want.id);
            let fragments = match &want.missing {
                Missing::Whole(count) => {
                    let of = want.id.sequence..want.id.sequence.saturating_add(*count);
                    for sequence in series
                        .missing()
                        .skip_while(|&at| at < of.start)
                        .take_while(|&at| at < of.end)
                        .take(MAX_WANTS)
                    {
                        suppressed += 1;
                        self.note(SeriesId::from(want.id).message(sequence), everything(), server, until);
                    }
                    continue;
                }
                Missing::Fragments(runs) => to_runs(runs),
                Missing::Combinations { chunk, count, unknown } => {
                    // Combinations of fragments that are all known here, or fewer than are missing, do not help enough.
                    let helps = message.is_some_and(|message| {
                        let unknown = to_runs(unknown);
                        message.lacks(*chunk) <= usize::from(*count)
                            && message
                                .missing(message.shape.fragments_of(*chunk))
                                .all(|index| unknown.contains(index.into()))
                    });
                    match helps {
                        true => to_runs(unknown),
                        false => continue,
                    }
                }
            };
            if series.missing().any(|sequence| sequence == want.id.sequence) {
                suppressed += 1;
                self.note(want.id, fragments, server, until);
            }
        }
        suppressed
    }

    fn note(&mut self, id: MessageId, fragments: Runs, server: Option<MemberId>, until: Instant) {
        if self.asked.len() >= MAX_ASKED && !self.asked.contains_key(&id) {
            return;
        }
        let all = self.asked.entry(id).or_default();
        // Whoever passes a request on has none of the rest.
        all.retain(|asked| asked.server != server);
        all.push(Asked { fragments, server, until });
        if all.len() > MAX_SERVERS {
            all.remove(0);
        }
    }

    /// What to ask for now, and whom: the server, if it is to be one, and the wants; none if there is nothing to ask for.
    pub(super) fn wake(
        &mut self,
        now: Instant,
        view: &mut View<'_>,
    ) -> Option<(Option<MemberId>, Vec<Want>)> {
        if self.next.is_none_or(|next| next > now) {
            return None;
        }
        self.next = None;
        let late: Vec<MemberId> = self
            .waiting
            .iter()
            .filter(|(_, at)| now.since(**at) >= self.answers.timeout())
            .map(|(&member, _)| member)
            .collect();
        for member in late {
            self.waiting.remove(&member);
            view.neighbours.unanswered(now, member);
        }
        for asked in self.asked.values_mut() {
            asked.retain(|asked| asked.until > now);
        }
        self.asked.retain(|_, asked| !asked.is_empty());
        if view.neighbours.count(now) == 0 {
            // Whoever comes is news.
            return None;
        }
        let wants = self.wants(now, view);
        let interval =
            self.every * u64::from(1_u32.checked_shl(self.fruitless).unwrap_or(u32::MAX).min(self.back_off));
        if wants.is_empty() {
            let earliest = self.asked.values().flatten().map(|asked| asked.until).min();
            self.next = earliest.or_else(|| self.is_missing(view).then(|| now + self.every));
            return None;
        }
        let wait = self.spread(interval);
        self.next = Some(now + wait);
        self.fruitless = self.fruitless.saturating_add(1);
        let server = match self.servers {
            Servers::Anyone(_) => None,
            Servers::One => {
                let ids: Vec<MessageId> = wants.iter().map(|want| want.id).collect();
                view.neighbours.server(now, &ids, &[], &mut self.random)
            }
        };
        let until = now + self.answers.timeout().max(self.every);
        for want in &wants {
            match &want.missing {
                Missing::Whole(count) => {
                    for sequence in want.id.sequence..want.id.sequence + count {
                        self.note(MessageId { sequence, ..want.id }, everything(), server, until);
                    }
                }
                Missing::Fragments(runs) => self.note_more(want.id, runs, server, until),
                Missing::Combinations { unknown, .. } => self.note_more(want.id, unknown, server, until),
            }
        }
        server.into_iter().for_each(|server| _ = self.waiting.entry(server).or_insert(now));
        Some((server, wants))
    }

    /// Notes what was asked of a server beside what it is to send already.
    fn note_more(
        &mut self,
        id: MessageId,
        runs: &[std::ops::Range<u32>],
        server: Option<MemberId>,
        until: Instant,
    ) {
        let before = self.asked.get(&id).and_then(|all| all.iter().find(|asked| asked.server == server));
        let mut fragments = before.map_or_else(Runs::new, |asked| asked.fragments.clone());
        runs.iter().for_each(|run| fragments.insert_run(run.start.into()..run.end.into()));
        self.note(id, fragments, server, until);
    }

    /// Whether anything is missing at all.
    fn is_missing(&self, view: &View<'_>) -> bool {
        view.catalogue.iter().any(|(_, series)| self.asks_for(series) && series.missing().next().is_some())
    }

    fn wants(&mut self, now: Instant, view: &View<'_>) -> Vec<Want> {
        let mut budget = Budget { room: self.room, fragments: MAX_FRAGMENTS };
        let mut wants: Vec<Want> = Vec::new();
        let series: Vec<_> = view.catalogue.iter().filter(|(_, series)| self.asks_for(series)).collect();
        for (id, series) in series {
            for sequence in series.missing() {
                if budget.is_spent() || wants.len() >= MAX_WANTS {
                    return wants;
                }
                let message = id.message(sequence);
                let found = match view.cache.get(message) {
                    Some(held) => self.of_message(now, message, held, sequence == series.newest),
                    None if self.is_asked(message) || !self.is_drawn() => Vec::new(),
                    None => match wants.last_mut() {
                        // One more of several in a row.
                        Some(Want { id: first, missing: Missing::Whole(count) })
                            if SeriesId::from(*first) == id && first.sequence + *count == sequence =>
                        {
                            *count += 1;
                            budget.fragments = budget.fragments.saturating_sub(1);
                            Vec::new()
                        }
                        _ => vec![Want { id: message, missing: Missing::Whole(1) }],
                    },
                };
                for want in found {
                    if !budget.takes(&want) {
                        return wants;
                    }
                    wants.push(want);
                }
            }
        }
        wants
    }

    /// What to ask for of a message of which something is here.
    fn of_message(&mut self, now: Instant, id: MessageId, message: &Message, is_newest: bool) -> Vec<Want> {
        // It may still be coming.
        let comes = is_newest && now.since(message.last_new) < self.every * u64::from(self.tail_after);
        let end = if comes { message.highest } else { message.shape.fragments() };
        let asked = self.asked.get(&id);
        let is_asked = |index: u32| {
            asked.is_some_and(|all| all.iter().any(|asked| asked.fragments.contains(index.into())))
        };
        let missing: Vec<u32> = message.missing(0..end).filter(|&index| !is_asked(index)).collect();
        if self.is_coded {
            return self.chunks_of(id, message, &missing);
        }
        let mut runs = Vec::new();
        for index in missing {
            if self.is_drawn() {
                extend(&mut runs, index);
            }
        }
        runs.truncate(MAX_RUNS);
        if runs.is_empty() { Vec::new() } else { vec![Want { id, missing: Missing::Fragments(runs) }] }
    }

    /// What to ask for, as combinations: for each chunk as many as make it whole, or all that are missing and not asked
    /// for yet if these are fewer.
    fn chunks_of(&self, id: MessageId, message: &Message, missing: &[u32]) -> Vec<Want> {
        let chunks: BTreeSet<u32> = missing.iter().map(|&index| message.shape.chunk_of(index)).collect();
        let want = |chunk: u32| {
            let mut unknown = Vec::new();
            let of = missing.iter().filter(|&&index| message.shape.chunk_of(index) == chunk);
            of.for_each(|&index| extend(&mut unknown, index));
            let count = missing.iter().filter(|&&index| message.shape.chunk_of(index) == chunk).count();
            let count = count.min(message.lacks(chunk)) as u8;
            Want { id, missing: Missing::Combinations { chunk, count, unknown } }
        };
        chunks.into_iter().map(want).collect()
    }

    fn is_asked(&self, id: MessageId) -> bool {
        self.asked.contains_key(&id)
    }

    /// Whether one of those that are missing is asked for now.
    fn is_drawn(&mut self) -> bool {
        self.share >= 1.0 || self.fruitless >= PASSES || self.random.chance(self.share)
    }

    /// An interval, give or take a fifth.
    fn spread(&mut self, interval: Duration) -> Duration {
        interval.mul_f64(0.8 + 0.4 * self.random.uniform())
    }
}

/// Bytes of a request before its wants, with as many servers as there can be.
const REQUEST_HEADER: usize = 10 + 2 + 2 + 1 + MAX_SERVERS * MemberId::LEN;
/// Servers of which a message is expected at a time, at most.
const MAX_SERVERS: usize = 8;

struct Budget {
    room: usize,
    fragments: u64,
}

impl Budget {
    const fn is_spent(&self) -> bool {
        self.room < 16 || self.fragments == 0
    }

    fn takes(&mut self, want: &Want) -> bool {
        let (len, fragments) = (want.len(), fragments_of(want));
        let fits = len + 4 <= self.room;
        if fits {
            self.room -= len;
            self.fragments = self.fragments.saturating_sub(fragments);
        }
        fits
    }
}

fn fragments_of(want: &Want) -> u64 {
    match &want.missing {
        Missing::Whole(count) => (*count).into(),
        Missing::Fragments(runs) => runs.iter().map(|run| u64::from(run.end - run.start)).sum(),
        Missing::Combinations { count, .. } => (*count).into(),
    }
}

/// Adds a number to runs, which is higher than all in them.
pub(super) fn extend(runs: &mut Vec<std::ops::Range<u32>>, index: u32) {
    match runs.last_mut() {
        Some(run) if run.end == index => run.end += 1,
        _ => runs.push(index..index + 1),
    }
}

pub(super) fn to_runs(ranges: &[std::ops::Range<u32>]) -> Runs {
    let mut runs = Runs::new();
    ranges.iter().for_each(|run| runs.insert_run(run.start.into()..run.end.into()));
    runs
}

fn everything() -> Runs {
    let mut runs = Runs::new();
    runs.insert_run(0..u64::MAX);
    runs
}
