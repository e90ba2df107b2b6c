//! A message as a member holds it: whole, or some of its fragments.

use std::collections::BTreeMap;
use std::ops::Range;

use hopcast_code::field::axpy;
use hopcast_core::{Instant, Stream};

use super::combinations::Combinations;
use super::object::digest;
use super::wire::{Shape, Symbol};
use crate::runs::Runs;

/// A message that is held.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) shape: Shape,
    fragments: BTreeMap<u32, Vec<u8>>,
    /// Numbers of the fragments that are here.
    present: Runs,
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

/// Bytes of memory beside the fragments. Chosen: what a message with one fragment takes in maps, about.
const OVERHEAD: usize = 400;

impl Message {
    pub(super) const fn new(now: Instant, shape: Shape, expires: Option<Instant>) -> Self {
        Self {
            shape,
            fragments: BTreeMap::new(),
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
        let mut add = |(index, bytes): (usize, &[u8])| message.add(index as u32, bytes.to_vec());
        if object.is_empty() {
            add((0, object));
        } else {
            object.chunks(len).enumerate().for_each(add);
        }
        message.highest = shape.fragments() - 1;
        message
    }

    pub(super) const fn size(&self) -> usize {
        self.size
    }

    pub(super) fn is_whole(&self) -> bool {
        self.fragments.len() as u64 == u64::from(self.shape.fragments())
    }

    /// Numbers of the fragments that are here.
    pub(super) const fn present(&self) -> &Runs {
        &self.present
    }

    pub(super) fn fragment(&self, index: u32) -> Option<&[u8]> {
        self.fragments.get(&index).map(Vec::as_slice)
    }

    /// The object of a whole message.
    pub(super) fn object(&self) -> Vec<u8> {
        let mut object = Vec::with_capacity(self.shape.length as usize);
        self.fragments.values().for_each(|bytes| object.extend(bytes));
        object
    }

    /// Takes a symbol, which is one of this message's shape.
    pub(super) fn receive(&mut self, now: Instant, symbol: Symbol<'_>) -> Arrival {
        let is_new = match symbol {
            Symbol::Fragment { index, bytes } => {
                self.highest = self.highest.max(index);
                let is_new = !self.fragments.contains_key(&index);
                if is_new {
                    self.learn(index, bytes.to_vec());
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
        if digest(&self.object()) == self.shape.digest {
            return Arrival::Whole;
        }
        (self.fragments, self.present, self.size) = (BTreeMap::new(), Runs::new(), OVERHEAD);
        Arrival::Damaged
    }

    /// Takes a combination, and the fragments that it makes known. Whether it is innovative.
    fn combine(&mut self, chunk: u32, of: &Range<u32>, coefficients: &[u8], bytes: &[u8]) -> bool {
        if of.clone().all(|index| self.fragments.contains_key(&index)) {
            return false;
        }
        let fragments = &self.fragments;
        let known = |column: usize| fragments.get(&(of.start + column as u32)).map(Vec::as_slice);
        let rows = self.combinations.entry(chunk).or_default();
        let before = rows.size();
        let is_new = rows.insert(coefficients.to_vec(), bytes.to_vec(), known);
        self.size += rows.size() - before;
        self.solve(chunk, of.start);
        is_new
    }

    /// Takes a fragment that is new, and those that it makes known.
    fn learn(&mut self, index: u32, bytes: Vec<u8>) {
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
            self.add(index, bytes);
        }
    }

    fn add(&mut self, index: u32, bytes: Vec<u8>) {
        self.size += bytes.len();
        self.present.insert(index.into());
        self.fragments.insert(index, bytes);
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
