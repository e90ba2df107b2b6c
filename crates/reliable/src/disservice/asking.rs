//! When a member asks for what it lacks, for what, and whom.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant, Stream};

use super::cache::Cache;
use super::config::{Policy, Replication, Servers};
use super::losses::{Losses, Orders};
use super::message::Message;
use super::neighbours::Neighbours;
use super::series::{Catalogue, Series, SeriesId};
use super::serving::Part;
use super::turns::{Turn, Turns};
use super::wire::{
    DATA_OVERHEAD, HEADER, MAX_RUNS, MAX_SERVERS, MAX_WANTS, MemberId, MessageId, Missing, Want,
};
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
    /// Mean time between packets of data as they are published while they come, and when the last one came.
    spacing: Duration,
    last_data: Instant,
    /// Since when nothing more is to come of what others are known to hold, and the time after which the rest is asked
    /// for too.
    idle_since: Option<Instant>,
    patience: Duration,
    /// When to look for what is missing; `None` while nothing is.
    next: Option<Instant>,
    /// Requests in a row after which nothing new of a message came, and when it may be asked for again.
    passes: BTreeMap<MessageId, Passes>,
    /// Requests of this member and of others whose answers are still to come, by message.
    asked: BTreeMap<MessageId, Vec<Asked>>,
    /// Time from a request to the first of its answer.
    answers: RoundTrip,
    /// Requests that were made or heard, without any answer yet, by the member that was asked: where one was made only
    /// once, the answer tells how long one takes (Karn's rule).
    waiting: BTreeMap<MemberId, Waiting>,
    turns: Turns,
    /// What one of many was sent and did not hear.
    losses: Losses,
    /// What servers are to send to one of many, in their order.
    orders: Orders,
    /// Fragments of the last message that was heard of.
    fragments_each: u64,
}

/// A request without any answer yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    since: Instant,
    /// Whether it was made only once.
    is_once: bool,
    /// Whether it is one of this member's own.
    is_own: bool,
}

/// A request for parts of a message whose answer is still to come.
#[derive(Clone, Debug)]
struct Asked {
    /// The fragments, all of them if it is whole.
    fragments: Runs,
    /// Combinations that are still to come, by chunk.
    combinations: BTreeMap<u32, u32>,
    /// Who is to answer.
    server: Option<MemberId>,
    /// When to give that up.
    until: Instant,
}

/// Requests for a message after which nothing new of it came.
#[derive(Clone, Copy, Debug)]
struct Passes {
    fruitless: u32,
    next: Instant,
}

/// The state that a request follows from: what is held, what is known of, and who is there.
pub(super) struct View<'a> {
    pub(super) cache: &'a Cache,
    pub(super) catalogue: &'a Catalogue,
    pub(super) neighbours: &'a mut Neighbours,
}

/// A longer time without data is a pause.
const MAX_SPACING: Duration = Duration::from_millis(500);
/// Longest time for which what is missing is gathered because data come slowly. Chosen: a third of DisService's
/// interval; requests are then some hundredths of what they bring.
const MAX_GATHERING: Duration = Duration::from_secs(1);
/// Fruitless passes after which a request names all that is missing whatever its share (DisService's code).
const PASSES: u32 = 2;
/// Requests in a row that may have been lost, or their answers, before the time between them grows. Chosen: where 30 %
/// is lost each way half of them are, and one message in sixteen needs a fifth.
const LOST_PASSES: u32 = 4;
/// Members that are to answer for one message at a time, at most. Chosen: as many as one request passes through.
const MAX_ANSWERING: usize = MAX_SERVERS;
/// Messages in a row that a member of many lost, at most: others may not have more either. Chosen: a burst of some
/// packets.
const MAX_LOST: usize = 8;
/// Messages of which something is asked for at a time, at most. Chosen: some requests full of single ones.
const MAX_ASKED: usize = 4096;

impl Asked {
    fn is_nothing(&self) -> bool {
        self.fragments.is_empty() && self.combinations.values().all(|&expected| expected == 0)
    }

    /// When to give it up.
    fn ends(&self, turns: &Turns) -> Instant {
        let answers = self.server.and_then(|server| turns.answers_until(server));
        answers.map_or(self.until, |until| until.max(self.until))
    }
}

/// Fragments that a want names, with messages of so many each, as far as is known.
fn fragments(want: &Want, each: u64) -> u64 {
    want.parts() * if matches!(want.missing, Missing::Whole(_)) { each } else { 1 }
}

impl Asking {
    pub(super) fn new(policy: &Policy, links: u32, random: Stream) -> Self {
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
            spacing: Duration::ZERO,
            last_data: Instant::ZERO,
            idle_since: None,
            patience: policy.summaries.0,
            next: None,
            passes: BTreeMap::new(),
            asked: BTreeMap::new(),
            answers: RoundTrip::new(every * 2),
            waiting: BTreeMap::new(),
            turns: Turns::new(every, links > 1),
            losses: Losses::default(),
            orders: Orders::default(),
            fragments_each: 1,
        }
    }

    /// When to look for what is missing.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.next, self.losses.deadline()].into_iter().flatten().min()
    }

    /// Whether this member asks for what is missing of a series.
    pub(super) fn asks_for(&self, series: &Series) -> bool {
        series.is_asked_for() || self.pulls && !series.is_wanted()
    }

    /// Time at which what is asked for now, or comes now, is late.
    fn late_at(&self, now: Instant) -> Instant {
        now + self.timeout()
    }

    fn timeout(&self) -> Duration {
        (self.answers.timeout() * self.turns.late()).max(self.every)
    }

    /// Whether new data come.
    fn comes(&self, now: Instant) -> bool {
        now.since(self.last_data) < (self.spacing * 4).max(self.every)
    }

    /// Time for which what is missing is gathered for one request: longer while new data come slowly.
    fn gathers(&self, now: Instant) -> Duration {
        let gathers = if self.comes(now) { (self.spacing * 16).min(MAX_GATHERING) } else { Duration::ZERO };
        self.every.max(gathers)
    }

    /// Something may be missing now.
    pub(super) fn something_is_missing(&mut self, now: Instant) {
        if self.next.is_none() {
            let wait = self.spread(self.gathers(now)) + self.back_off();
            self.next = Some(now + wait);
        }
    }

    /// Something is there that was not before: a neighbour, or what it holds. What was asked for in vain may be had.
    pub(super) fn has_news(&mut self, now: Instant) {
        if !self.passes.is_empty() {
            self.passes.clear();
            let wait = self.spread(self.every) + self.back_off();
            self.next = self.next.map(|next| next.min(now + wait));
        }
        self.something_is_missing(now);
    }

    /// A repair was heard, of this member's own requests or others'; `is_last` says that its sender has sent all that
    /// it has been asked for of the message.
    pub(super) fn repair(
        &mut self,
        now: Instant,
        from: MemberId,
        (id, part): (MessageId, Part),
        is_last: bool,
    ) {
        if let Some(waiting) = self.waiting.remove(&from)
            && waiting.is_once
        {
            self.answers.sample(now.since(waiting.since));
            self.turns.is_in_time();
        }
        let until = self.late_at(now);
        self.turns.answers(from, until);
        self.is_past(now, from, id);
        let Some(all) = self.asked.get_mut(&id) else { return };
        self.turns.follows(from);
        for asked in all.iter_mut().filter(|asked| asked.server.is_none_or(|server| server == from)) {
            asked.until = until;
            if let Part::Chunk(chunk) = part
                && let Some(expected) = asked.combinations.get_mut(&chunk)
            {
                *expected = expected.saturating_sub(1);
            }
        }
        if is_last {
            all.retain(|asked| asked.server.is_some_and(|server| server != from));
            if all.is_empty() {
                self.asked.remove(&id);
                self.is_lost(now, from, id);
            }
            // While data come, others' answers end too, and one request asks for what they have left.
            let pause = if self.comes(now) { self.gathers(now) } else { self.every / 4 };
            let soon = now + self.spread(pause) + self.back_off();
            self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
        }
    }

    /// A server of many answers what it was asked for of a message. If it was to send a few others since it was heard
    /// last, those have been lost on the way to this member, or to several.
    fn is_past(&mut self, now: Instant, server: MemberId, id: MessageId) {
        if !self.turns.is_crowd() {
            return;
        }
        let Some((last, number)) = self.orders.answered(server, id) else { return };
        let before = |(&id, all): (&MessageId, &Vec<Asked>)| {
            let is_asked = all.iter().any(|asked| asked.server == Some(server));
            let of = self.orders.number(server, id).filter(|&of| is_asked && of < number)?;
            Some((of, id))
        };
        let mut between: Vec<(u64, MessageId)> = self.asked.iter().filter_map(before).collect();
        if between.len() > MAX_LOST {
            between.retain(|&(of, _)| last.is_some_and(|last| of > last));
        }
        if between.len() > MAX_LOST {
            return;
        }
        for (_, id) in between {
            if let Some(all) = self.asked.get_mut(&id) {
                all.retain(|asked| asked.server != Some(server));
                if all.is_empty() {
                    self.asked.remove(&id);
                    self.is_lost(now, server, id);
                }
            }
        }
    }

    /// A message of a series is heard from its publisher for the first time: those before it were lost.
    pub(super) fn is_published(&mut self, now: Instant, id: MessageId, view: &View<'_>) {
        if !self.turns.is_crowd() {
            return;
        }
        let Some(series) = view.catalogue.get(id.into()).filter(|series| self.asks_for(series)) else {
            return;
        };
        let before = id.sequence.saturating_sub(MAX_LOST as u32)..id.sequence;
        for sequence in series.missing_in(before) {
            let lost = MessageId { sequence, ..id };
            if !self.is_asked(lost) {
                self.is_lost(now, id.publisher, lost);
            }
        }
    }

    /// A server has sent all of a message, and unless the rest comes soon, another that heard it is asked.
    fn is_lost(&mut self, now: Instant, server: MemberId, id: MessageId) {
        if self.turns.is_crowd() && matches!(self.servers, Servers::One) {
            let wait = self.every.mul_f64(2.0 * self.random.uniform());
            self.losses.add(now, id, server, wait);
        }
    }

    /// Something new came, as a repair or as it was published: while that is so, what is missing is asked for at the
    /// usual intervals.
    pub(super) fn progress(&mut self, now: Instant, is_repair: bool) {
        self.passes.clear();
        if !is_repair {
            let gap = now.since(self.last_data);
            self.last_data = now;
            if gap < MAX_SPACING {
                self.spacing = (self.spacing * 7 + gap) / 8;
            }
        }
        self.something_is_missing(now);
    }

    /// A message is whole, or is of no interest any more.
    pub(super) fn forget(&mut self, id: MessageId) {
        self.asked.remove(&id);
        self.passes.remove(&id);
        self.losses.remove(id);
    }

    /// Another member has asked, or has passed a request on (`passed_on_by`): what is missing here too need not be
    /// asked for. Says for how many messages that is so.
    pub(super) fn heard(
        &mut self,
        now: Instant,
        own: MemberId,
        server: Option<MemberId>,
        passed_on_by: Option<MemberId>,
        wants: &[Want],
        view: &View<'_>,
    ) -> u64 {
        let until = self.late_at(now);
        let mut is_of_one = false;
        if let Some(server) = server.filter(|_| self.turns.is_crowd()) {
            if server != own && view.neighbours.get(server).is_none() {
                // A server that was never heard here will not be heard to answer.
                return 0;
            }
            let mut lacks = wants.iter().filter(|want| self.asks_for_some(want, view)).peekable();
            if lacks.peek().is_some() {
                // Of what others have asked for already, one asks for what it lost.
                is_of_one = lacks.all(|want| self.is_asked(want.id) || self.losses.has(want.id));
                if !is_of_one {
                    self.asks(now, server, false);
                    self.turns.leaves();
                }
            } else {
                let parts = wants.iter().map(|want| fragments(want, self.fragments_each)).sum();
                self.turns.promises(server, parts, until);
            }
        }
        let mut suppressed = 0;
        if let Some(server) = server.filter(|_| self.turns.is_crowd() && passed_on_by.is_none() && !is_of_one)
        {
            wants.iter().for_each(|want| self.orders.ask(server, want));
        }
        for want in wants {
            let series = view.catalogue.get(want.id.into()).filter(|series| self.asks_for(series));
            let Some(series) = series else { continue };
            if let Some(passed_on_by) = passed_on_by {
                self.is_not_with(passed_on_by, want);
            }
            for sequence in series.missing_in(want.sequences()).take(MAX_WANTS) {
                suppressed += 1;
                self.note(MessageId { sequence, ..want.id }, &want.missing, server, until);
            }
        }
        suppressed
    }

    /// A member that was asked does not have this.
    fn is_not_with(&mut self, server: MemberId, want: &Want) {
        let Some(all) = self.asked.get_mut(&want.id) else { return };
        for asked in all.iter_mut().filter(|asked| asked.server == Some(server)) {
            match &want.missing {
                Missing::Whole(_) => asked.fragments = Runs::new(),
                Missing::Fragments(runs) => asked.fragments.remove_all(runs),
                Missing::Combinations { chunk, count, .. } => {
                    if let Some(expected) = asked.combinations.get_mut(chunk) {
                        *expected = expected.saturating_sub((*count).into());
                    }
                }
            }
        }
        if self.turns.is_crowd() {
            all.retain(|asked| !asked.is_nothing());
            if all.is_empty() {
                self.asked.remove(&want.id);
            }
        }
    }

    /// Notes what a server is to send of a message, beside what it is to send already.
    fn note(&mut self, id: MessageId, missing: &Missing, server: Option<MemberId>, until: Instant) {
        if self.asked.len() >= MAX_ASKED && !self.asked.contains_key(&id) {
            return;
        }
        let all = self.asked.entry(id).or_default();
        let place = all.iter().position(|asked| asked.server == server).unwrap_or_else(|| {
            if all.len() >= MAX_ANSWERING {
                all.remove(0);
            }
            let (fragments, combinations) = (Runs::new(), BTreeMap::new());
            all.push(Asked { fragments, combinations, server, until });
            all.len() - 1
        });
        let asked = &mut all[place];
        asked.until = until;
        match missing {
            Missing::Whole(_) => asked.fragments.insert_run(0..u64::MAX),
            Missing::Fragments(runs) => asked.fragments.insert_all(runs),
            Missing::Combinations { chunk, count, .. } => {
                let expected = asked.combinations.entry(*chunk).or_default();
                *expected = (*expected).max((*count).into());
            }
        }
    }

    /// The request to make now: the server, if it is to be one; whether the same was asked for before in vain; and the
    /// wants. `None` if there is nothing to ask for.
    pub(super) fn wake(
        &mut self,
        now: Instant,
        view: &mut View<'_>,
    ) -> Option<(Option<MemberId>, bool, Vec<Want>)> {
        if let Some((server, wants)) = self.lost(now, view) {
            return Some((Some(server), false, wants));
        }
        if self.next.is_none_or(|next| next > now) {
            return None;
        }
        self.next = None;
        self.turns.begin(now, view.neighbours.known());
        self.orders.retain(|server| {
            self.turns.answers_until(server).is_some() || self.waiting.contains_key(&server)
        });
        let late: Vec<MemberId> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| now.since(waiting.since) >= self.answers.timeout() * self.turns.late())
            .map(|(&member, _)| member)
            .collect();
        if !late.is_empty() {
            self.turns.is_late();
        }
        for member in late {
            let is_own = self.waiting.remove(&member).is_some_and(|waiting| waiting.is_own);
            // One that answers others will come to it.
            if is_own && self.turns.answers_until(member).is_none() {
                view.neighbours.unanswered(now, member);
            }
        }
        for all in self.asked.values_mut() {
            all.retain(|asked| asked.ends(&self.turns) > now);
        }
        self.asked.retain(|_, asked| !asked.is_empty());
        // Whoever comes is news.
        view.neighbours.present(now).next()?;
        let (expected, times) = (self.expected(view.cache), (self.every, self.timeout()));
        let parts = match self.turns.turn(now, expected, times, &mut self.random) {
            Turn::Full => {
                self.few_are_lost(now, view);
                self.next = Some(now + self.spread(self.every));
                return None;
            }
            Turn::Other(until) => {
                self.few_are_lost(now, view);
                self.next = Some(until.min(now + self.spread(self.every)));
                return None;
            }
            Turn::Own(parts) => parts,
        };
        let mut wants = self.wants(now, parts, view);
        if wants.is_empty() {
            if expected > 0 || !self.turns.is_crowd() {
                self.idle_since = None;
            } else if self.idle_since.is_none() {
                self.idle_since = Some(now);
            }
            let expected = self.asked.values().flatten().map(|asked| asked.ends(&self.turns)).min();
            let later = self.passes.values().map(|passes| passes.next).filter(|&next| next > now).min();
            let earliest = [expected, later].into_iter().flatten().min();
            let next = earliest.or_else(|| self.is_missing(view).then(|| now + self.every));
            let wait = self.back_off();
            self.next = next.map(|next| next + wait);
            return None;
        }
        self.idle_since = None;
        self.turns.takes();
        let wait = self.spread(self.gathers(now));
        self.next = Some(now + wait);
        let server = match self.servers {
            Servers::Anyone(_) => None,
            Servers::One => {
                // One that answers already for the same sends no more than it has to.
                let active = wants.first().and_then(|want| self.asked.get(&want.id)?.last()?.server);
                let is_present = |&server: &MemberId| view.neighbours.get(server).is_some();
                active.filter(is_present).or_else(|| {
                    let ids: Vec<MessageId> = wants.iter().map(|want| want.id).collect();
                    // What is missing of a message may be anywhere; of much, two would send the same.
                    let is_whole = |want: &Want| matches!(want.missing, Missing::Whole(_));
                    let current = self.turns.current().filter(|_| wants.iter().any(is_whole));
                    view.neighbours.server(now, &ids, (&[], current), &mut self.random)
                })
            }
        };
        if let Some(server) = server.filter(|_| self.turns.is_crowd())
            && let Some(neighbour) = view.neighbours.get(server)
            && wants.iter().any(|want| neighbour.holds(server, want.id))
        {
            // Another is asked for the rest, and not through this one.
            wants.retain(|want| neighbour.holds(server, want.id));
        }
        let is_again = wants.iter().any(|want| self.passes.contains_key(&want.id));
        let until = self.late_at(now);
        for want in &wants {
            for sequence in want.sequences() {
                let id = MessageId { sequence, ..want.id };
                self.note(id, &want.missing, server, until);
                self.passes_on(now, id);
            }
        }
        if let Some(server) = server {
            if self.turns.is_crowd() {
                wants.iter().for_each(|want| self.orders.ask(server, want));
            }
            self.asks(now, server, true);
        }
        Some((server, is_again, wants))
    }

    /// The request to make now for what this member lost of what others have, and of whom.
    fn lost(&mut self, now: Instant, view: &View<'_>) -> Option<(MemberId, Vec<Want>)> {
        let again = now + self.every * 4;
        let (ids, servers) = self.losses.take(now, again, MAX_WANTS);
        let mut budget = Budget { room: self.room, fragments: MAX_WANTS as u64, each: self.fragments_each };
        let mut wants = Vec::new();
        for id in ids {
            // Somebody else may have asked for it meanwhile.
            let is_asked = self.asked.contains_key(&id);
            let is_missing = view.catalogue.get(id.into()).is_some_and(|series| {
                self.asks_for(series) && series.missing_in(id.sequence..id.sequence + 1).next().is_some()
            });
            if is_asked || !is_missing {
                continue;
            }
            let found = match view.cache.get(id) {
                Some(held) => self.of_message(now, id, held, false),
                None => vec![Want { id, missing: Missing::Whole(1) }],
            };
            wants.extend(found.into_iter().filter(|want| budget.takes(want)));
        }
        if wants.is_empty() {
            return None;
        }
        let except: Vec<MemberId> = servers.into_iter().collect();
        let server = view.neighbours.any(now, &except, &mut self.random)?;
        for want in &wants {
            self.note(want.id, &want.missing, Some(server), again);
        }
        Some((server, wants))
    }

    /// A member is asked, by this one or another.
    fn asks(&mut self, now: Instant, server: MemberId, is_own: bool) {
        self.turns.follows(server);
        if self.waiting.len() < MAX_ASKED || self.waiting.contains_key(&server) {
            let new = Waiting { since: now, is_once: true, is_own };
            let again = |waiting: &mut Waiting| {
                waiting.is_once = false;
                waiting.is_own |= is_own;
            };
            self.waiting.entry(server).and_modify(again).or_insert(new);
        }
    }

    /// Whether a request of another member is for something that is missing here too.
    fn asks_for_some(&self, want: &Want, view: &View<'_>) -> bool {
        view.catalogue.get(want.id.into()).is_some_and(|series| {
            self.asks_for(series) && series.missing_in(want.sequences()).next().is_some()
        })
    }

    /// Number of parts that have been asked for and are still to come.
    fn expected(&self, cache: &Cache) -> u64 {
        let of = |(&id, all): (&MessageId, &Vec<Asked>)| {
            let (missing, fragments) = match cache.get(id) {
                Some(message) => {
                    let fragments = u64::from(message.shape.fragments());
                    (fragments - message.present().count(), fragments)
                }
                None => (self.fragments_each, self.fragments_each),
            };
            let asked = |asked: &Asked| {
                let combinations = asked.combinations.values().copied().map(u64::from).sum::<u64>();
                asked.fragments.count().min(fragments) + combinations
            };
            all.iter().map(asked).sum::<u64>().min(missing)
        };
        self.asked.iter().map(of).sum()
    }

    /// A message of this many fragments was heard of.
    pub(super) const fn is_of(&mut self, fragments: u32) {
        self.fragments_each = fragments as u64;
    }

    /// A message is asked for: not again for some time, if nothing comes.
    fn passes_on(&mut self, now: Instant, id: MessageId) {
        if self.passes.len() >= MAX_ASKED && !self.passes.contains_key(&id) {
            return;
        }
        let passes = self.passes.entry(id).or_insert(Passes { fruitless: 0, next: now });
        let in_vain = passes.fruitless.saturating_sub(LOST_PASSES);
        let factor = 1_u32.checked_shl(in_vain).unwrap_or(u32::MAX).min(self.back_off);
        passes.next = now + self.every * u64::from(factor);
        passes.fruitless = passes.fruitless.saturating_add(1);
    }

    /// While it is not this member's turn: the last few that it lacks of what others hold need none.
    fn few_are_lost(&mut self, now: Instant, view: &View<'_>) {
        let mut lost = Vec::new();
        for (id, series) in view.catalogue.incomplete().filter(|(_, series)| self.asks_for(series)) {
            let Some(held) = view.neighbours.held(now, id, None) else { continue };
            for sequence in series.missing().filter(|&sequence| held.contains(sequence.into())) {
                let message = id.message(sequence);
                if lost.len() >= MAX_LOST {
                    return;
                }
                if !self.is_asked(message) && !self.losses.has(message) {
                    lost.push(message);
                }
            }
        }
        if let Some(server) = self.turns.current() {
            lost.into_iter().for_each(|id| self.is_lost(now, server, id));
        }
    }

    /// Whether anything is missing at all.
    fn is_missing(&self, view: &View<'_>) -> bool {
        let mut incomplete = view.catalogue.incomplete();
        incomplete.any(|(_, series)| self.asks_for(series) && series.missing().next().is_some())
    }

    fn wants(&mut self, now: Instant, parts: u64, view: &View<'_>) -> Vec<Want> {
        let each = if self.turns.is_crowd() { self.fragments_each } else { 1 };
        let mut budget = Budget { room: self.room, fragments: parts, each };
        let mut wants: Vec<Want> = Vec::new();
        let series: Vec<_> =
            view.catalogue.incomplete().filter(|(_, series)| self.asks_for(series)).collect();
        let is_of_holders = self.turns.is_crowd()
            && matches!(self.servers, Servers::One)
            && self.idle_since.is_none_or(|since| now.since(since) < self.patience);
        for (id, series) in series {
            // What nobody of many is known to hold would only be asked for in vain, and each waits for the others'
            // answers: until nothing is to come for some time, since what holders said may have been lost.
            let held = if is_of_holders { view.neighbours.held(now, id, None) } else { None };
            let is_held = |&sequence: &u32| held.as_ref().is_none_or(|held| held.contains(sequence.into()));
            for sequence in series.missing().filter(is_held) {
                if budget.is_spent() || wants.len() >= MAX_WANTS {
                    return wants;
                }
                let message = id.message(sequence);
                let is_late = self.passes.get(&message).is_some_and(|passes| passes.next > now);
                if is_late || self.losses.has(message) {
                    continue;
                }
                let found = match view.cache.get(message) {
                    Some(held) => self.of_message(now, message, held, sequence == series.newest),
                    None if self.is_asked(message) || !self.is_drawn(message) => Vec::new(),
                    None => match wants.last_mut() {
                        // One more of several in a row.
                        Some(Want { id: first, missing: Missing::Whole(count) })
                            if SeriesId::from(*first) == id && first.sequence + *count == sequence =>
                        {
                            *count += 1;
                            budget.fragments = budget.fragments.saturating_sub(budget.each);
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

    /// Wants for a message of which something is here.
    fn of_message(&mut self, now: Instant, id: MessageId, message: &Message, is_newest: bool) -> Vec<Want> {
        // It may still be coming.
        let comes = is_newest && now.since(message.last_new) < self.every * u64::from(self.tail_after);
        let end = if comes { message.highest } else { message.shape.fragments() };
        if self.is_coded {
            // A chunk is asked for when it is over: one combination then serves what several members lost of it.
            let end = if comes { message.shape.fragments_of(message.shape.chunk_of(end)).start } else { end };
            return self.chunks_of(id, message, end);
        }
        let asked = self.asked.get(&id);
        let is_asked = |index: u32| {
            asked.is_some_and(|all| all.iter().any(|asked| asked.fragments.contains(index.into())))
        };
        let missing: Vec<u32> = message.missing(0..end).filter(|&index| !is_asked(index)).collect();
        let mut runs = Vec::new();
        for index in missing {
            if self.is_drawn(id) {
                extend(&mut runs, index);
            }
        }
        runs.truncate(MAX_RUNS);
        if runs.is_empty() { Vec::new() } else { vec![Want { id, missing: Missing::Fragments(runs) }] }
    }

    /// Wants for combinations: for each chunk before a fragment as many as make it whole, unless as many are
    /// still to come.
    fn chunks_of(&self, id: MessageId, message: &Message, end: u32) -> Vec<Want> {
        let mut chunks: Vec<(u32, Vec<std::ops::Range<u32>>)> = Vec::new();
        for index in message.missing(0..end) {
            let chunk = message.shape.chunk_of(index);
            if chunks.last().is_none_or(|&(last, _)| last != chunk) {
                chunks.push((chunk, Vec::new()));
            }
            if let Some((_, unknown)) = chunks.last_mut() {
                extend(unknown, index);
            }
        }
        let asked = self.asked.get(&id).map_or(&[][..], |all| all);
        let want = |(chunk, unknown)| {
            let expected = |asked: &Asked| {
                let is_whole = asked.fragments.contains(u64::from(u32::MAX));
                if is_whole { u32::MAX } else { asked.combinations.get(&chunk).copied().unwrap_or(0) }
            };
            let expected = asked.iter().map(expected).fold(0, u32::saturating_add);
            let lacks = message.lacks(chunk) as u32;
            let missing = Missing::Combinations { chunk, count: lacks as u8, unknown };
            (lacks > expected).then_some(Want { id, missing })
        };
        chunks.into_iter().filter_map(want).collect()
    }

    fn is_asked(&self, id: MessageId) -> bool {
        self.asked.contains_key(&id)
    }

    /// Whether one of those that are missing is asked for now.
    fn is_drawn(&mut self, id: MessageId) -> bool {
        let is_fruitless = |passes: &Passes| passes.fruitless >= PASSES;
        self.share >= 1.0 || self.passes.get(&id).is_some_and(is_fruitless) || self.random.chance(self.share)
    }

    /// Time to wait for another member of many that asks for the same.
    fn back_off(&mut self) -> Duration {
        self.turns.back_off(self.every, &mut self.random)
    }

    /// An interval, give or take a fifth.
    fn spread(&mut self, interval: Duration) -> Duration {
        interval.mul_f64(0.8 + 0.4 * self.random.uniform())
    }
}

/// Bytes of a request before its wants, with as many servers as there can be.
const REQUEST_HEADER: usize = HEADER + 2 + 2 + 1 + MAX_SERVERS * MemberId::LEN;

struct Budget {
    room: usize,
    fragments: u64,
    /// Fragments of a whole message, as far as is known.
    each: u64,
}

impl Budget {
    const fn is_spent(&self) -> bool {
        self.room < 16 || self.fragments == 0
    }

    fn takes(&mut self, want: &Want) -> bool {
        let len = want.len();
        let fits = len + 4 <= self.room;
        if fits {
            self.room -= len;
            self.fragments = self.fragments.saturating_sub(fragments(want, self.each));
        }
        fits
    }
}

/// Adds a number to runs, which is higher than all in them.
pub(super) fn extend(runs: &mut Vec<std::ops::Range<u32>>, index: u32) {
    match runs.last_mut() {
        Some(run) if run.end == index => run.end += 1,
        _ => runs.push(index..index + 1),
    }
}
