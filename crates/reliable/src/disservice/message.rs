//! A message as a member holds it: whole, or some of its fragments.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use hopcast_code::field::axpy;
use hopcast_core::bytes::Malformed;
use hopcast_core::{Buffer, Instant, Stream};

use super::bodies::{self, Bodies, Body};
use super::combinations::Combinations;
use super::object::{MAX_METADATA, Metadata, digest_of};
use super::wire::{MessageId, Shape, Symbol};
use crate::runs::Runs;

/// A message that is held. Most of them are whole: those take little more than their fragments.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) shape: Shape,
    /// Time after which nobody needs it.
    pub(super) expires: Option<Instant>,
    fragments: Fragments,
}

/// The fragments of a message that are here.
#[derive(Clone, Debug)]
enum Fragments {
    All(Body),
    Some(Box<Partial>),
}

/// What is here of a message that is not whole.
#[derive(Clone, Debug)]
struct Partial {
    fragments: BTreeMap<u32, Box<[u8]>>,
    /// Numbers of the fragments that are here.
    present: Runs,
    /// Combinations of the fragments of a chunk, by its number.
    combinations: BTreeMap<u32, Combinations>,
    /// Highest number of a fragment that was heard, by whom however sent.
    highest: u32,
    /// When something new of it came last.
    last_new: Instant,
    /// Bytes of memory that it takes.
    size: usize,
}

/// Outcome of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It said nothing new.
    Known,
    /// It did.
    New,
    /// With it the message is whole.
    Whole,
    /// The message was whole with it, but not what its publisher sent: all of it is dropped.
    Damaged,
}

/// Bytes of memory beside the fragments. Chosen: what a message with one fragment takes until it is whole, about.
const OVERHEAD: usize = 400;

impl Message {
    pub(super) fn new(now: Instant, shape: Shape, expires: Option<Instant>) -> Self {
        Self { shape, expires, fragments: Fragments::Some(Box::new(Partial::new(now, 0))) }
    }

    /// A message of an object.
    pub(super) fn whole(shape: Shape, expires: Option<Instant>, object: &[u8]) -> Self {
        let len = usize::from(shape.fragment);
        let fragments: bodies::Fragments = match object {
            [] => Box::new([Box::default()]),
            object => object.chunks(len).map(Box::from).collect(),
        };
        Self { shape, expires, fragments: Fragments::All(Arc::new(fragments)) }
    }

    /// Bytes of memory that it takes, if no other member of this process holds it.
    pub(super) fn size(&self) -> usize {
        match &self.fragments {
            Fragments::All(_) => OVERHEAD + self.shape.length as usize,
            Fragments::Some(partial) => partial.size,
        }
    }

    pub(super) const fn is_whole(&self) -> bool {
        matches!(self.fragments, Fragments::All(_))
    }

    /// Has the body of a whole message in common with other members of this process.
    pub(super) fn share(&mut self, id: MessageId, bodies: &Bodies) {
        if let Fragments::All(body) = &mut self.fragments {
            *body = bodies.share(id, std::mem::take(Arc::make_mut(body)));
        }
    }

    /// Numbers of the fragments that are here.
    pub(super) fn present(&self) -> Cow<'_, Runs> {
        match &self.fragments {
            Fragments::All(_) => Cow::Owned(Runs::one(0..self.shape.fragments())),
            Fragments::Some(partial) => Cow::Borrowed(&partial.present),
        }
    }

    /// Highest number of a fragment that was heard, by whom however sent.
    pub(super) const fn highest(&self) -> u32 {
        match &self.fragments {
            Fragments::All(_) => self.shape.fragments() - 1,
            Fragments::Some(partial) => partial.highest,
        }
    }

    /// When something new of it came last; `None` if it is whole.
    pub(super) const fn last_new(&self) -> Option<Instant> {
        match &self.fragments {
            Fragments::All(_) => None,
            Fragments::Some(partial) => Some(partial.last_new),
        }
    }

    pub(super) fn fragment(&self, index: u32) -> Option<&[u8]> {
        self.fragments.get(index)
    }

    /// The metadata of a whole message, and their length.
    pub(super) fn metadata(&self) -> Result<(Metadata, usize), Malformed> {
        let mut head = Vec::new();
        for bytes in self.fragments.iter() {
            head.extend(bytes);
            if head.len() >= MAX_METADATA {
                break;
            }
        }
        let (metadata, rest) = Metadata::parse(&head)?;
        Ok((metadata, head.len() - rest.len()))
    }

    /// Some bytes and behind them the object of a whole message from a byte on: the only copy that is made of it, since
    /// it may be large.
    pub(super) fn copy(&self, head: &[u8], from: usize) -> Buffer {
        let mut copy = Buffer::zeroed(head.len() + self.shape.length as usize);
        copy.truncate(0);
        copy.append(head);
        let mut skipped = from;
        for bytes in self.fragments.iter() {
            let (before, bytes) = bytes.split_at(skipped.min(bytes.len()));
            skipped -= before.len();
            copy.append(bytes);
        }
        copy
    }

    /// Takes a symbol, which is one of this message's shape.
    pub(super) fn receive(&mut self, now: Instant, symbol: Symbol<'_>) -> Arrival {
        let Fragments::Some(partial) = &mut self.fragments else { return Arrival::Known };
        if !partial.receive(self.shape, symbol) {
            return Arrival::Known;
        }
        partial.last_new = now;
        if (partial.fragments.len() as u64) < u64::from(self.shape.fragments()) {
            return Arrival::New;
        }
        if digest_of(partial.fragments.values().map(|bytes| &**bytes)) == self.shape.digest {
            let fragments = std::mem::take(&mut partial.fragments).into_values().collect();
            self.fragments = Fragments::All(Arc::new(fragments));
            return Arrival::Whole;
        }
        **partial = Partial::new(now, partial.highest);
        Arrival::Damaged
    }

    /// The fragments of a range that are missing: in as many steps as there are runs, and not as there are fragments.
    pub(super) fn absent(&self, range: Range<u32>) -> Runs {
        let mut absent = Runs::one(range);
        self.present().runs().for_each(|run| absent.remove_run(run));
        absent
    }

    /// Numbers of the fragments of a range that are missing.
    pub(super) fn missing(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let partial = match &self.fragments {
            Fragments::All(_) => None,
            Fragments::Some(partial) => Some(partial),
        };
        let gaps = partial.map(|partial| partial.present.gaps(range.start.into()..range.end.into()));
        gaps.into_iter().flatten().map(|index| index as u32)
    }

    /// Combinations of fragments of a chunk that are unknown.
    fn combinations(&self, chunk: u32) -> Option<&Combinations> {
        match &self.fragments {
            Fragments::All(_) => None,
            Fragments::Some(partial) => partial.combinations.get(&chunk),
        }
    }

    /// Number of combinations that would make a chunk whole.
    pub(super) fn lacks(&self, chunk: u32) -> usize {
        let unknown = self.missing(self.shape.fragments_of(chunk)).count();
        unknown - self.combinations(chunk).map_or(0, Combinations::len)
    }

    /// Number of combinations that this member can give and that are new to another, which needs `lacks` more of a
    /// chunk and does not know these fragments. What combinations say to the other of those has been heard here too,
    /// but for what was lost on the way: so there may be one more, which is given where the same was asked for in vain
    /// (`is_again`).
    pub(super) fn can_give(&self, chunk: u32, unknown: &Runs, lacks: usize, is_again: bool) -> usize {
        let of = self.shape.fragments_of(chunk);
        let (first, present) = (of.start, self.present());
        let unknown_of = of.filter(|&index| unknown.contains(index.into()));
        let (held, missing): (Vec<u32>, Vec<u32>) =
            unknown_of.partition(|&index| present.contains(index.into()));
        let missing: Vec<usize> = missing.into_iter().map(|index| (index - first) as usize).collect();
        let rank = held.len() + self.combinations(chunk).map_or(0, |rows| rows.rank_in(&missing));
        let combined = (held.len() + missing.len()).saturating_sub(lacks);
        let maybe = usize::from(is_again && combined > 0).min(rank);
        rank.saturating_sub(combined).max(maybe).min(lacks)
    }

    /// A random combination of all that is held of a chunk: coefficients and bytes. So it serves all that lack
    /// something of the chunk, whichever fragments these are.
    pub(super) fn combination(&self, chunk: u32, random: &mut Stream) -> Option<(Vec<u8>, Vec<u8>)> {
        let of = self.shape.fragments_of(chunk);
        let (mut coefficients, mut bytes) = (vec![0; of.len()], vec![0; usize::from(self.shape.fragment)]);
        let mut is_empty = true;
        // A factor other than 0, so that a combination of a single fragment is never nothing.
        let mut factor = || 1 + random.below(255) as u8;
        for index in of.clone() {
            let Some(fragment) = self.fragment(index) else { continue };
            let factor = factor();
            coefficients[(index - of.start) as usize] = factor;
            axpy(&mut bytes, factor, fragment);
            is_empty = false;
        }
        for (row, sum) in self.combinations(chunk).into_iter().flat_map(|rows| rows.all()) {
            let factor = factor();
            axpy(&mut coefficients, factor, row);
            axpy(&mut bytes, factor, sum);
            is_empty = false;
        }
        (!is_empty).then_some((coefficients, bytes))
    }
}

impl Partial {
    const fn new(now: Instant, highest: u32) -> Self {
        Self {
            fragments: BTreeMap::new(),
            present: Runs::new(),
            combinations: BTreeMap::new(),
            highest,
            last_new: now,
            size: OVERHEAD,
        }
    }

    /// Takes a symbol of a message, and the fragments that it makes known. Whether it is innovative.
    fn receive(&mut self, shape: Shape, symbol: Symbol<'_>) -> bool {
        match symbol {
            Symbol::Fragment { index, bytes } => {
                self.highest = self.highest.max(index);
                let is_new = !self.fragments.contains_key(&index);
                if is_new {
                    self.learn(shape, index, bytes.into());
                }
                is_new
            }
            Symbol::Combination { chunk, coefficients, bytes } => {
                self.highest = self.highest.max(shape.fragments_of(chunk).end.saturating_sub(1));
                self.combine(shape, chunk, coefficients, bytes)
            }
        }
    }

    fn combine(&mut self, shape: Shape, chunk: u32, coefficients: &[u8], bytes: &[u8]) -> bool {
        let of = shape.fragments_of(chunk);
        if of.clone().all(|index| self.fragments.contains_key(&index)) {
            return false;
        }
        let fragments = &self.fragments;
        let known = |column: usize| fragments.get(&(of.start + column as u32)).map(|bytes| &**bytes);
        let rows = self.combinations.entry(chunk).or_default();
        let before = rows.size();
        let is_new = rows.insert(coefficients.to_vec(), bytes.to_vec(), known);
        self.size += rows.size() - before;
        self.solve(shape, chunk);
        is_new
    }

    /// Takes a fragment that is new, and those that it makes known.
    fn learn(&mut self, shape: Shape, index: u32, bytes: Box<[u8]>) {
        let chunk = shape.chunk_of(index);
        let first = shape.fragments_of(chunk).start;
        if let Some(rows) = self.combinations.get_mut(&chunk) {
            let before = rows.size();
            rows.learn((index - first) as usize, &bytes);
            self.size -= before - rows.size();
        }
        self.add(index, bytes);
        self.solve(shape, chunk);
    }

    fn solve(&mut self, shape: Shape, chunk: u32) {
        let first = shape.fragments_of(chunk).start;
        while let Some(rows) = self.combinations.get_mut(&chunk) {
            let before = rows.size();
            let Some((column, mut bytes)) = rows.take_solved() else { return };
            let index = first + column as u32;
            bytes.truncate(shape.fragment_len(index));
            rows.learn(column, &bytes);
            self.size -= before - rows.size();
            self.add(index, bytes.into());
        }
    }

    fn add(&mut self, index: u32, bytes: Box<[u8]>) {
        self.size += bytes.len();
        self.present.insert(index.into());
        self.fragments.insert(index, bytes);
    }
}

impl Fragments {
    fn get(&self, index: u32) -> Option<&[u8]> {
        match self {
            Self::All(body) => body.get(index as usize).map(|bytes| &**bytes),
            Self::Some(partial) => partial.fragments.get(&index).map(|bytes| &**bytes),
        }
    }

    /// Those that are here, ascending.
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let (all, some) = match self {
            Self::All(body) => (Some(body.iter()), None),
            Self::Some(partial) => (None, Some(partial.fragments.values())),
        };
        all.into_iter().flatten().chain(some.into_iter().flatten()).map(|bytes| &**bytes)
    }
}
