//! The requests of others that this member answers, and what it has sent and heard of late.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopcast_core::bytes::complete;
use hopcast_core::{Duration, Instant, Stream};

use super::cache::Cache;
use super::message::Message;
use super::recent::Recent;
use super::wire::{MAX_RUNS, MAX_WANTS, MemberId, MessageId, Missing, Want};
use crate::runs::Runs;

/// The requests that are to be answered.
#[derive(Debug)]
pub(super) struct Serving {
    jobs: BTreeMap<MessageId, Job>,
    /// The messages that are served now, in their order.
    ready: BTreeMap<u64, MessageId>,
    /// The messages that are served later, with when.
    later: BTreeSet<(Instant, u64, MessageId)>,
    /// Jobs that there have been.
    number: u64,
    /// The parts that this member has sent of late, each with the number of its transmission.
    sent: VecDeque<Sent>,
    /// Network traffic memory: fragments that were heard or sent.
    memory: Recent<(MessageId, Part)>,
    /// Whether fragments are drawn at random, as where anybody answers.
    draws: bool,
}

/// A part that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    number: u64,
    id: MessageId,
    part: Part,
}

/// The parts of a message that are to be sent.
#[derive(Debug)]
struct Job {
    fragments: Runs,
    /// How many combinations of a chunk.
    chunks: BTreeMap<u32, u32>,
    /// Members that were asked before: what they send is beside this.
    beside: Vec<MemberId>,
    not_before: Instant,
    /// Its place among the jobs.
    number: u64,
}

/// Part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// A fragment.
    Fragment(u32),
    /// A combination of a chunk.
    Chunk(u32),
}

/// The transmissions of this member that the sender of a request has heard, so that none under way is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The transmissions up to this one.
    Until(u16),
    /// All those before a time: what is still missing of them was lost.
    AllBefore(Instant),
    /// That is not known: the request is to anyone.
    Nothing,
}

/// A packet that answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    Fragment(u32),
    Combination(u32),
}

/// Messages that are served at a time, at most: requests for more are not answered, and made again. Chosen: some
/// seconds' worth at 1 Mbit/s of small ones.
const MAX_JOBS: usize = 1024;
/// Part of what a member that lacks something of a chunk can give of it which it sends for a request, as its divisor.
/// Chosen: the last of what one can give is new to fewer of the others than the first of what another can, which a
/// request of a tenth of its length brings.
const PARTS: usize = 3;
/// Percentage of a chunk below which a member holds little of it. Chosen: where 30 % is lost that is three of six
/// fragments. Without this, peers send 0.5 % more there; where half is lost, nobody has as much at first.
const LITTLE: usize = 60;
/// Time without anything new of a message after which a member gives what little it has. Chosen: the longest time for
/// which others gather what they ask for; of a message that stalls, each may have what nobody else has.
const STILL_COMES: Duration = Duration::from_secs(3);
/// Transmissions that are remembered. Chosen: what may be under way over a satellite at 10 Mbit/s.
const MAX_SENT: usize = 512;
/// Fragments in the traffic memory. Chosen: 9 s of 10 Mbit/s.
const MAX_MEMORY: usize = 8192;

impl Serving {
    pub(super) fn new(remembers: Duration, draws: bool) -> Self {
        Self {
            jobs: BTreeMap::new(),
            ready: BTreeMap::new(),
            later: BTreeSet::new(),
            number: 0,
            sent: VecDeque::new(),
            memory: Recent::new(remembers, MAX_MEMORY),
            draws,
        }
    }

    /// When the next may be sent.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if !self.ready.is_empty() {
            return Some(Instant::ZERO);
        }
        self.later.first().map(|&(at, ..)| at)
    }

    /// Takes what a request names as far as it is held, and says what of it is not. `before` are those that were asked
    /// before this member, each of which has passed on what it does not send itself; `heard` is the number of this
    /// member's last transmission that the request knows of, if it is to this member alone, and `transmissions` that of
    /// the next.
    pub(super) fn take(
        &mut self,
        not_before: Instant,
        (wants, before): (&[Want], &[MemberId]),
        (heard, transmissions): (Heard, u64),
        cache: &Cache,
        mut serves: impl FnMut(MessageId) -> bool,
    ) -> Vec<Want> {
        let mut rest = Vec::new();
        let under_way = match heard {
            Heard::Nothing => Vec::new(),
            Heard::Until(heard) => {
                let heard = complete(heard.into(), 16, transmissions);
                self.last_sent(|sent| sent.number > heard)
            }
            Heard::AllBefore(at) => self.last_sent(|sent| sent.at > at),
        };
        let is_again = matches!(heard, Heard::AllBefore(_));
        let taken = Taken { not_before, remembers: heard == Heard::Nothing, is_again, under_way };
        for want in wants {
            if let Missing::Whole(count) = want.missing {
                self.take_whole(&taken, (want.id, count), cache, &mut serves, &mut rest);
                continue;
            }
            match cache.get(want.id).filter(|_| serves(want.id)) {
                Some(message) => {
                    rest.extend(self.take_part(&taken, want, message));
                    if let Some(job) = self.jobs.get_mut(&want.id) {
                        job.beside = before.to_vec();
                    }
                }
                None => rest.push(want.clone()),
            }
        }
        rest.truncate(MAX_WANTS);
        rest
    }

    /// The parts that were sent last, by message.
    fn last_sent(&self, is_last: impl Fn(&Sent) -> bool) -> Vec<(MessageId, Part)> {
        let last = self.sent.iter().rev().take_while(|sent| is_last(sent));
        let mut sent: Vec<_> = last.map(|sent| (sent.id, sent.part)).collect();
        sent.sort_unstable();
        sent
    }

    fn take_whole(
        &mut self,
        taken: &Taken,
        (first, count): (MessageId, u32),
        cache: &Cache,
        serves: &mut impl FnMut(MessageId) -> bool,
        rest: &mut Vec<Want>,
    ) {
        let end = first.sequence.saturating_add(count);
        let mut next = first.sequence;
        let mut lacks = |from: u32, to: u32| {
            if to > from {
                let id = MessageId { sequence: from, ..first };
                rest.push(Want { id, missing: Missing::Whole(to - from) });
            }
        };
        for (id, message) in cache.of_series(first, end) {
            if self.jobs.len() >= MAX_JOBS {
                return;
            }
            if !serves(id) {
                continue;
            }
            lacks(next, id.sequence);
            next = id.sequence + 1;
            let all: Vec<_> = std::iter::once(0..message.shape.fragments()).collect();
            let want = Want { id, missing: Missing::Fragments(all) };
            // Of one that is incomplete here the rest is asked for again, by its fragments.
            let _ = self.take_part(taken, &want, message);
        }
        lacks(next, end);
    }

    /// Takes what is held of a message, and gives back what is not.
    fn take_part(&mut self, taken: &Taken, want: &Want, message: &Message) -> Option<Want> {
        let (id, not_before) = (want.id, taken.not_before);
        let under_way = taken.under_way(id);
        match &want.missing {
            Missing::Whole(_) => None,
            Missing::Fragments(runs) => {
                let (mut serve, mut rest) = (Runs::new(), Vec::new());
                for run in runs {
                    let run =
                        run.start.min(message.shape.fragments())..run.end.min(message.shape.fragments());
                    let absent = message.absent(run.clone());
                    let mut held = Runs::one(run);
                    absent.runs().for_each(|run| held.remove_run(run));
                    serve.insert_set(&held);
                    rest.extend(absent.ranges().take(MAX_RUNS));
                }
                for (_, part) in under_way {
                    if let &Part::Fragment(index) = part {
                        serve.remove_run(index.into()..u64::from(index) + 1);
                    }
                }
                if taken.remembers {
                    let is_remembered =
                        |&index: &u64| self.memory.has(not_before, (id, Part::Fragment(index as u32)));
                    let known: Vec<u64> = serve.numbers().filter(is_remembered).collect();
                    known.into_iter().for_each(|index| serve.remove_run(index..index + 1));
                }
                if !serve.is_empty()
                    && let Some(job) = self.job(id, not_before)
                {
                    job.fragments.insert_set(&serve);
                }
                (!rest.is_empty()).then_some(Want { id, missing: Missing::Fragments(rest) })
            }
            Missing::Combinations { chunk, count, unknown } => {
                let mut unknown = Runs::of(unknown);
                let lacking = usize::from(*count);
                let leaves = !taken.is_again && leaves_to_others(not_before, message, *chunk, lacking);
                let could =
                    if leaves { 0 } else { message.can_give(*chunk, &unknown, lacking, taken.is_again) };
                let can = if message.is_whole() { could } else { could.div_ceil(PARTS) } as u32;
                let sent = under_way.iter().filter(|&&(_, part)| part == Part::Chunk(*chunk)).count() as u32;
                let left = can.saturating_sub(sent);
                if left > 0
                    && let Some(job) = self.job(id, not_before)
                {
                    // One combination serves all that lack something of the chunk.
                    let number = job.chunks.entry(*chunk).or_default();
                    *number = left.max(*number);
                }
                let rest = u32::from(*count) - can;
                (rest > 0).then(|| {
                    if !leaves && could as u32 == can {
                        // What this member holds as it is will be known by what it sends.
                        message.present().runs().for_each(|run| unknown.remove_run(run));
                    }
                    let unknown = unknown.ranges().collect();
                    let missing = Missing::Combinations { chunk: *chunk, count: rest as u8, unknown };
                    Want { id, missing }
                })
            }
        }
    }

    /// Adds all fragments of a message that is held.
    pub(super) fn push(&mut self, now: Instant, id: MessageId, message: &Message) {
        if let Some(job) = self.job(id, now) {
            job.fragments.insert_set(&message.present());
        }
    }

    fn job(&mut self, id: MessageId, not_before: Instant) -> Option<&mut Job> {
        if !self.jobs.contains_key(&id) {
            if self.jobs.len() >= MAX_JOBS {
                return None;
            }
            self.number += 1;
            let number = self.number;
            self.later.insert((not_before, number, id));
            let (fragments, chunks) = (Runs::new(), BTreeMap::new());
            self.jobs.insert(id, Job { fragments, chunks, beside: Vec::new(), not_before, number });
        }
        self.jobs.get_mut(&id)
    }

    /// Somebody else has sent a part: it need not be sent by this member.
    pub(super) fn overheard(&mut self, now: Instant, from: MemberId, id: MessageId, part: Part) {
        self.memory.note(now, (id, part));
        let Some(job) = self.jobs.get_mut(&id) else { return };
        match part {
            Part::Fragment(index) => job.fragments.remove_run(index.into()..u64::from(index) + 1),
            Part::Chunk(chunk) => {
                if let Some(count) = job.chunks.get_mut(&chunk)
                    && !job.beside.contains(&from)
                {
                    *count -= 1;
                    if *count == 0 {
                        job.chunks.remove(&chunk);
                    }
                }
            }
        }
        if job.is_done() {
            self.end(id);
        }
    }

    /// Ends what was to be sent of a message.
    pub(super) fn end(&mut self, id: MessageId) {
        if let Some(job) = self.jobs.remove(&id) {
            self.ready.remove(&job.number);
            self.later.remove(&(job.not_before, job.number, id));
        }
    }

    /// This member sends a part, as the transmission of that number.
    pub(super) fn sends(&mut self, now: Instant, number: u64, id: MessageId, part: Part) {
        self.sent.push_back(Sent { at: now, number, id, part });
        if self.sent.len() > MAX_SENT {
            self.sent.pop_front();
        }
        self.memory.note(now, (id, part));
    }

    /// The next repair, and whether it is the last of its message.
    pub(super) fn next(&mut self, now: Instant, random: &mut Stream) -> Option<(MessageId, Repair, bool)> {
        while let Some(&(at, number, id)) = self.later.first()
            && at <= now
        {
            self.later.pop_first();
            self.ready.insert(number, id);
        }
        let (_, &id) = self.ready.first_key_value()?;
        let job = self.jobs.get_mut(&id)?;
        let repair = if let Some(index) = job.take_fragment(self.draws, random) {
            Repair::Fragment(index)
        } else {
            let (&chunk, count) = job.chunks.iter_mut().next()?;
            *count -= 1;
            if *count == 0 {
                job.chunks.remove(&chunk);
            }
            Repair::Combination(chunk)
        };
        let is_last = job.is_done();
        if is_last {
            self.end(id);
        }
        Some((id, repair, is_last))
    }
}

/// Circumstances of a request that is taken.
struct Taken {
    /// When to answer.
    not_before: Instant,
    /// Whether what this member has heard of late is not to be sent.
    remembers: bool,
    /// Whether the same was asked for before in vain.
    is_again: bool,
    /// The parts that this member has sent since the request's sender heard it last, in order.
    under_way: Vec<(MessageId, Part)>,
}

/// Whether a member that is asked for combinations of a chunk, of which so many are lacking there, leaves that to
/// others unless it is asked again: something new of the message still comes to it, and it has less of the chunk than
/// who asks, and little of it. Its combinations would be of few fragments: they say something new to fewer others.
fn leaves_to_others(now: Instant, message: &Message, chunk: u32, lacking: usize) -> bool {
    if message.last_new().is_none_or(|last| now.since(last) >= STILL_COMES) {
        return false;
    }
    let of = message.shape.fragments_of(chunk).len();
    let held = of - message.lacks(chunk);
    held < of.saturating_sub(lacking) && held * 100 < of * LITTLE
}

impl Taken {
    fn under_way(&self, id: MessageId) -> &[(MessageId, Part)] {
        let first = self.under_way.partition_point(|&(other, _)| other < id);
        let len = self.under_way[first..].partition_point(|&(other, _)| other == id);
        &self.under_way[first..first + len]
    }
}

impl Job {
    fn is_done(&self) -> bool {
        self.fragments.is_empty() && self.chunks.is_empty()
    }

    /// Takes a fragment: the first, or one at random, so that members that answer at one time send different ones.
    fn take_fragment(&mut self, draws: bool, random: &mut Stream) -> Option<u32> {
        let place =
            if draws && !self.fragments.is_empty() { random.below(self.fragments.count()) } else { 0 };
        let index = self.fragments.numbers().nth(place as usize)?;
        self.fragments.remove_run(index..index + 1);
        Some(index as u32)
    }
}
