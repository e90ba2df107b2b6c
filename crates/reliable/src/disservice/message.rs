//! A message as a member holds it: whole, or some of its fragments.

use std::collections::BTreeMap;
use std::ops::Range;

use hopcast_code::field::axpy;
use hopcast_core::bytes::Malformed;
use hopcast_core::{Buffer, Instant, Stream};

use super::combinations::Combinations;
use super::object::{MAX_METADATA, Metadata, digest_of};
use super::wire::{Shape, Symbol};
use crate::runs::Runs;

/// A message that is held.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) shape: Shape,
    fragments: Fragments,
    /// Numbers of the fragments that are here.
    present: Runs,
    /// Combinations of the fragments of a chunk, by its number.
    combinations: BTreeMap<u32, Combinations>,
    /// Highest number of a fragment that was heard, by whom however sent.
    pub(super) highest: u32,
    /// Time after which nobody needs it.
    pub(super) expires: Option<Instant>,
    /// When something new of it came last.
    pub(super) last_new: Instant,
    /// Bytes of memory that it takes.
    size: usize,
}

/// The fragments of a message. Most that are held are whole, and small: they are kept without a map.
#[derive(Clone, Debug)]
enum Fragments {
    All(Box<[Box<[u8]>]>),
    Some(BTreeMap<u32, Box<[u8]>>),
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
    pub(super) const fn new(now: Instant, shape: Shape, expires: Option<Instant>) -> Self {
        Self {
            shape,
            fragments: Fragments::Some(BTreeMap::new()),
            present: Runs::new(),
            combinations: BTreeMap::new(),
            highest: 0,
            expires,
            last_new: now,
            size: OVERHEAD,
        }
    }

    /// A message of an object.
    pub(super) fn whole(now: Instant, shape: Shape, expires: Option<Instant>, object: &[u8]) -> Self {
        let mut message = Self::new(now, shape, expires);
        let len = usize::from(shape.fragment);
        message.fragments = Fragments::All(match object {
            [] => Box::new([Box::default()]),
            object => object.chunks(len).map(Box::from).collect(),
        });
        message.present.insert_run(0..shape.fragments().into());
        message.size += object.len();
        message.highest = shape.fragments() - 1;
        message
    }

    pub(super) const fn size(&self) -> usize {
        self.size
    }

    pub(super) fn is_whole(&self) -> bool {
        match &self.fragments {
            Fragments::All(_) => true,
            Fragments::Some(fragments) => fragments.len() as u64 == u64::from(self.shape.fragments()),
        }
    }

    /// Numbers of the fragments that are here.
    pub(super) const fn present(&self) -> &Runs {
        &self.present
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
        let is_new = match symbol {
            Symbol::Fragment { index, bytes } => {
                self.highest = self.highest.max(index);
                let is_new = self.fragments.get(index).is_none();
                if is_new {
                    self.learn(index, bytes.into());
                }
                is_new
            }
            Symbol::Combination { chunk, coefficients, bytes } => {
                let of = self.shape.fragments_of(chunk);
                self.highest = self.highest.max(of.end.saturating_sub(1));
                self.combine(chunk, &of, coefficients, bytes)
            }
        };
        if !is_new {
            return Arrival::Known;
        }
        self.last_new = now;
        if !self.is_whole() {
            return Arrival::New;
        }
        self.combinations.clear();
        if digest_of(self.fragments.iter()) == self.shape.digest {
            self.fragments.complete();
            return Arrival::Whole;
        }
        self.fragments = Fragments::Some(BTreeMap::new());
        (self.present, self.size) = (Runs::new(), OVERHEAD);
        Arrival::Damaged
    }

    /// Takes a combination, and the fragments that it makes known. Whether it is innovative.
    fn combine(&mut self, chunk: u32, of: &Range<u32>, coefficients: &[u8], bytes: &[u8]) -> bool {
        if of.clone().all(|index| self.fragments.get(index).is_some()) {
            return false;
        }
        let fragments = &self.fragments;
        let known = |column: usize| fragments.get(of.start + column as u32);
        let rows = self.combinations.entry(chunk).or_default();
        let before = rows.size();
        let is_new = rows.insert(coefficients.to_vec(), bytes.to_vec(), known);
        self.size += rows.size() - before;
        self.solve(chunk, of.start);
        is_new
    }

    /// Takes a fragment that is new, and those that it makes known.
    fn learn(&mut self, index: u32, bytes: Box<[u8]>) {
        let chunk = self.shape.chunk_of(index);
        let first = self.shape.fragments_of(chunk).start;
        if let Some(rows) = self.combinations.get_mut(&chunk) {
            let before = rows.size();
            rows.learn((index - first) as usize, &bytes);
            self.size -= before - rows.size();
        }
        self.add(index, bytes);
        self.solve(chunk, first);
    }

    fn solve(&mut self, chunk: u32, first: u32) {
        while let Some(rows) = self.combinations.get_mut(&chunk) {
            let before = rows.size();
            let Some((column, mut bytes)) = rows.take_solved() else { return };
            let index = first + column as u32;
            bytes.truncate(self.shape.fragment_len(index));
            rows.learn(column, &bytes);
            self.size -= before - rows.size();
            self.add(index, bytes.into());
        }
    }

    fn add(&mut self, index: u32, bytes: Box<[u8]>) {
        let Fragments::Some(fragments) = &mut self.fragments else { return };
        self.size += bytes.len();
        self.present.insert(index.into());
        fragments.insert(index, bytes);
    }

    /// The fragments of a range that are missing: in as many steps as there are runs, and not as there are fragments.
    pub(super) fn absent(&self, range: Range<u32>) -> Runs {
        let mut absent = Runs::one(range);
        self.present.runs().for_each(|run| absent.remove_run(run));
        absent
    }

    /// Numbers of the fragments of a range that are missing.
    pub(super) fn missing(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        self.present.gaps(range.start.into()..range.end.into()).map(|index| index as u32)
    }

    /// Number of combinations that would make a chunk whole.
    pub(super) fn lacks(&self, chunk: u32) -> usize {
        let unknown = self.missing(self.shape.fragments_of(chunk)).count();
        unknown - self.combinations.get(&chunk).map_or(0, Combinations::len)
    }

    /// Number of combinations of unknown fragments of a chunk that this member can give.
    pub(super) fn can_give(&self, chunk: u32, unknown: &Runs) -> usize {
        let of = self.shape.fragments_of(chunk);
        let first = of.start;
        let present =
            of.filter(|&index| unknown.contains(index.into()) && self.present.contains(index.into()));
        let is_wanted = |column: usize| unknown.contains((first + column as u32).into());
        present.count() + self.combinations.get(&chunk).map_or(0, |rows| rows.of(is_wanted).count())
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
        for (row, sum) in self.combinations.get(&chunk).into_iter().flat_map(|rows| rows.of(|_| true)) {
            let factor = factor();
            axpy(&mut coefficients, factor, row);
            axpy(&mut bytes, factor, sum);
            is_empty = false;
        }
        (!is_empty).then_some((coefficients, bytes))
    }
}

impl Fragments {
    fn get(&self, index: u32) -> Option<&[u8]> {
        match self {
            Self::All(fragments) => fragments.get(index as usize).map(|bytes| &**bytes),
            Self::Some(fragments) => fragments.get(&index).map(|bytes| &**bytes),
        }
    }

    /// Those that are here, ascending.
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let (all, some) = match self {
            Self::All(fragments) => (Some(fragments.iter()), None),
            Self::Some(fragments) => (None, Some(fragments.values())),
        };
        all.into_iter().flatten().chain(some.into_iter().flatten()).map(|bytes| &**bytes)
    }

    /// All are here.
    fn complete(&mut self) {
        if let Self::Some(fragments) = self {
            *self = Self::All(std::mem::take(fragments).into_values().collect());
        }
    }
}
