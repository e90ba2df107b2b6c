//! When a member asks for what it lacks, for what, and whom.

mod coded;
mod lost;
mod wants;

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant, Stream};

use super::cache::Cache;
use super::config::{Policy, Replication, Servers};
use super::expected::Expected;
use super::losses::Losses;
use super::neighbours::Neighbours;
use super::series::{Catalogue, Series};
use super::serving::Part;
use super::turns::{Turn, Turns};
use super::wire::{DATA_OVERHEAD, HEADER, MAX_SERVERS, MAX_WANTS, MemberId, MessageId, Missing, Want};
pub(super) use lost::MAX_LOST;
use wants::fragments;

use crate::round_trip::RoundTrip;

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
    /// The members that were heard last to send combinations of all fragments of a chunk, by message.
    givers: BTreeMap<MessageId, MemberId>,
    /// Parts that this member and others have asked for and that are still to come.
    expected: Expected,
    /// Time from a request to the first of its answer.
    answers: RoundTrip,
    /// Requests that were made or heard, without any answer yet, by the member that was asked: where one was made only
    /// once, the answer tells how long one takes (Karn's rule).
    waiting: BTreeMap<MemberId, Waiting>,
    turns: Turns,
    /// Messages that others of many have and that this member lost on the way.
    losses: Losses,
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

/// Requests for a message after which nothing new of it came.
#[derive(Clone, Debug)]
struct Passes {
    fruitless: u32,
    next: Instant,
    /// The members that were asked last, where repairs are combinations: they have given what they could.
    asked: Vec<MemberId>,
}

/// The state that a request follows from: what is held, what is known of, and who is there.
pub(super) struct View<'a> {
    pub(super) cache: &'a Cache,
    pub(super) catalogue: &'a Catalogue,
    pub(super) neighbours: &'a mut Neighbours,
}

/// A longer time without data is a pause.
const MAX_SPACING: Duration = Duration::from_millis(500);
/// Packets of data for whose time what is missing is gathered while they come. Chosen: of messages of some fragments,
/// losses of three, so that one request does for them; twice as many, and messages come a second later.
const GATHERED: u64 = 16;
/// Longest time for which what is missing is gathered because data come slowly. Chosen: a third of DisService's
/// interval; requests are then some hundredths of what they bring.
const MAX_GATHERING: Duration = Duration::from_secs(1);
/// Fruitless passes after which a request names all that is missing whatever its share (DisService's code).
const PASSES: u32 = 2;
/// Requests in a row that may have been lost, or their answers, before the time between them grows. Chosen: where 30 %
/// is lost each way half of them are, and one message in sixteen needs a fifth.
const LOST_PASSES: u32 = 4;
/// Messages of which something is asked for at a time, at most. Chosen: some requests full of single ones.
pub(super) const MAX_ASKED: usize = 4096;

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
            givers: BTreeMap::new(),
            expected: Expected::default(),
            answers: RoundTrip::new(every * 2),
            waiting: BTreeMap::new(),
            turns: Turns::new(every, links > 1),
            losses: Losses::default(),
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
        let (packets, longest) = match self.is_coded {
            true => (coded::GATHERED, coded::MAX_GATHERING),
            false => (GATHERED, MAX_GATHERING),
        };
        let gathers = if self.comes(now) { (self.spacing * packets).min(longest) } else { Duration::ZERO };
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
        if !self.is_coded && !self.passes.is_empty() {
            self.passes.clear();
            let wait = self.spread(self.every) + self.back_off();
            self.next = self.next.map(|next| next.min(now + wait));
        }
        self.something_is_missing(now);
    }

    /// A neighbour has said that it holds a message which this member lacks.
    pub(super) fn can_be_had(&mut self, now: Instant, id: MessageId) {
        if let Some(passes) = self.passes.get_mut(&id) {
            *passes = Passes { fruitless: 0, next: now, asked: Vec::new() };
        }
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
            self.turns.note_in_time();
        }
        let until = self.late_at(now);
        self.turns.answers(from, until);
        self.note_passed(now, from, id);
        if !self.expected.has(id) {
            return;
        }
        self.turns.follows(from);
        self.expected.comes(from, (id, part), until);
        if is_last {
            if self.expected.ends(from, id) {
                self.note_lost(now, from, id);
            }
            // While data come, others' answers end too, and one request asks for what they have left.
            let pause = if self.comes(now) { self.gathers(now) } else { self.every / 4 };
            let soon = now + self.spread(pause) + self.back_off();
            self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
        }
    }

    /// Something new came, as a repair or as it was published: while that is so, what is missing is asked for at the
    /// usual intervals.
    pub(super) fn progress(&mut self, now: Instant, id: MessageId, is_repair: bool) {
        if self.is_coded {
            // Whoever heard it holds it of this message, and has no more of others.
            if let Some(passes) = self.passes.get_mut(&id) {
                (passes.fruitless, passes.next) = (0, now);
            }
        } else {
            self.passes.clear();
        }
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
        self.expected.forget(id);
        self.passes.remove(&id);
        self.givers.remove(&id);
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
        if let Some(server) = server.filter(|_| self.turns.is_crowd()) {
            if server != own && view.neighbours.get(server).is_none() {
                // A server that was never heard here will not be heard to answer.
                return 0;
            }
            let mut missing = wants.iter().flat_map(|want| self.missing_of(want, view)).peekable();
            let is_missing = missing.peek().is_some();
            // Of what others have asked for already, one asks for what it lost.
            let is_of_one = is_missing && missing.all(|id| self.expected.has(id) || self.losses.has(id));
            if !is_missing {
                let parts = wants.iter().map(|want| fragments(want, self.fragments_each));
                let parts = parts.fold(0, u64::saturating_add);
                self.turns.promises(server, parts, until);
            } else if !is_of_one {
                self.asks(now, server, false);
                self.turns.leaves();
            }
            if passed_on_by.is_none() && !is_of_one {
                for want in wants {
                    // Of others it is not known that there are any.
                    let newest = view.catalogue.get(want.id.into()).map(|series| series.newest);
                    let known =
                        want.messages().take_while(|id| newest.is_some_and(|last| id.sequence <= last));
                    self.expected.in_order(server, known.take(MAX_WANTS));
                }
            }
        }
        let mut suppressed = 0;
        for want in wants {
            if let Some(passed_on_by) = passed_on_by {
                self.expected.note_absent(passed_on_by, want, self.turns.is_crowd());
            }
            for id in self.missing_of(want, view) {
                suppressed += 1;
                self.expected.note(id, &want.missing, server, until);
            }
        }
        suppressed
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
        let late: Vec<MemberId> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| now.since(waiting.since) >= self.answers.timeout() * self.turns.late())
            .map(|(&member, _)| member)
            .collect();
        if !late.is_empty() {
            self.turns.note_late();
        }
        for member in late {
            let is_own = self.waiting.remove(&member).is_some_and(|waiting| waiting.is_own);
            // One that answers others will come to it.
            if is_own && self.turns.answers_until(member).is_none() {
                view.neighbours.unanswered(now, member);
            }
        }
        self.expected.expire(now, &self.turns, |server| self.waiting.contains_key(&server));
        // Whoever comes is news.
        view.neighbours.present(now).next()?;
        let (expected, times) =
            (self.expected.parts(view.cache, self.fragments_each), (self.every, self.timeout()));
        let parts = match self.turns.turn(now, expected, times, &mut self.random) {
            Turn::Full => {
                self.note_last_few(now, view);
                self.next = Some(now + self.spread(self.every));
                return None;
            }
            Turn::Other(until) => {
                self.note_last_few(now, view);
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
            let expected = self.expected.next_end(&self.turns);
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
                let first =
                    if self.is_coded { wants.iter().max_by_key(|want| want.parts()) } else { wants.first() };
                let active = first.and_then(|want| self.expected.of(want.id).last()?.server);
                let is_present = |&server: &MemberId| view.neighbours.get(server).is_some();
                active.filter(is_present).or_else(|| match first.filter(|_| self.is_coded) {
                    Some(want) => self.server_of_parts(now, want.id, &wants, view),
                    None => {
                        let ids: Vec<MessageId> = wants.iter().map(|want| want.id).collect();
                        // What is missing of a message may be anywhere; of much, two would send the same.
                        let is_whole = |want: &Want| matches!(want.missing, Missing::Whole(_));
                        let current = self.turns.current().filter(|_| wants.iter().any(is_whole));
                        view.neighbours.server(now, &ids, (&[], current), &mut self.random)
                    }
                })
            }
        };
        if let Some(server) = server.filter(|_| self.turns.is_crowd())
            && wants.iter().any(|want| view.neighbours.holds(server, want.id))
        {
            // Another is asked for the rest, and not through this one.
            wants.retain(|want| view.neighbours.holds(server, want.id));
        }
        let is_in_vain = |want: &Want| self.passes.get(&want.id).is_some_and(|passes| passes.fruitless > 0);
        let is_again = if self.is_coded {
            wants.iter().max_by_key(|want| want.parts()).is_some_and(is_in_vain)
        } else {
            wants.iter().any(is_in_vain)
        };
        let until = self.late_at(now);
        for want in &wants {
            for id in want.messages() {
                self.expected.note(id, &want.missing, server, until);
                self.passes_on(now, id);
            }
            if let Some(passes) = self.passes.get_mut(&want.id).filter(|_| self.is_coded) {
                passes.asked.extend(server);
            }
        }
        if let Some(server) = server {
            if self.turns.is_crowd() {
                self.expected.in_order(server, wants.iter().flat_map(Want::messages));
            }
            self.asks(now, server, true);
        }
        Some((server, is_again, wants))
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

    /// The messages that a request names and that this member lacks and asks for, as many as it looks at.
    fn missing_of<'v>(&self, want: &Want, view: &View<'v>) -> impl Iterator<Item = MessageId> + use<'v> {
        let (id, sequences) = (want.id, want.sequences());
        let series = view.catalogue.get(id.into()).filter(|series| self.asks_for(series));
        let missing = series.into_iter().flat_map(move |series| series.missing_in(sequences.clone()));
        missing.map(move |sequence| MessageId { sequence, ..id }).take(MAX_WANTS)
    }

    /// A message of this many fragments was heard of.
    pub(super) const fn set_fragments_each(&mut self, fragments: u32) {
        self.fragments_each = fragments as u64;
    }

    /// A message is asked for: not again for some time, if nothing comes.
    fn passes_on(&mut self, now: Instant, id: MessageId) {
        if self.passes.len() >= MAX_ASKED && !self.passes.contains_key(&id) {
            return;
        }
        self.passes.entry(id).or_insert(Passes { fruitless: 0, next: now, asked: Vec::new() });
        let slow = self.every.max((self.spacing * GATHERED).min(MAX_GATHERING));
        let (every, lost, max) = if self.is_coded {
            (slow, coded::LOST_PASSES, self.back_off.min(coded::MAX_BACK_OFF))
        } else {
            (self.every, LOST_PASSES, self.back_off)
        };
        let Some(passes) = self.passes.get_mut(&id) else { return };
        let in_vain = passes.fruitless.saturating_sub(lost);
        let factor = 1_u32.checked_shl(in_vain).unwrap_or(u32::MAX).min(max);
        passes.next = now + every * u64::from(factor);
        passes.fruitless = passes.fruitless.saturating_add(1);
    }

    /// Whether anything is missing at all.
    fn is_missing(&self, view: &View<'_>) -> bool {
        let mut incomplete = view.catalogue.incomplete();
        incomplete.any(|(_, series)| self.asks_for(series) && series.missing().next().is_some())
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
