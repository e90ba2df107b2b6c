//! Frames under way.

use core::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use hopcast_core::{Buffer, Instant, Reception};

use crate::reports::Reports;
use crate::{Attachment, Event};

/// The frames under way, in the order of their arrival; those that arrive at one instant in the order in which they
/// were launched. `R` is how each will be received: nothing on a wire.
#[derive(Debug)]
pub(crate) enum Flight<R> {
    /// Arrivals are launched in their order.
    InOrder(VecDeque<Arriving<R>>),
    /// A frame may overtake others.
    AnyOrder { frames: BinaryHeap<Arriving<R>>, launched: u64 },
}

/// The fate of a frame that is not lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) at: Instant,
    pub(crate) twice: bool,
    /// The bit that is flipped, by its place in the frame in units of 2^-64 of its length.
    pub(crate) flip: Option<u64>,
}

/// A frame under way.
#[derive(Debug)]
pub(crate) struct Arriving<R> {
    at: Instant,
    /// Orders frames that arrive at one instant.
    order: u64,
    // Narrow, so that a frame under way is one cache line.
    from: u32,
    to: u32,
    pub(crate) overheard: bool,
    pub(crate) corrupted: bool,
    /// Whether this is the copy of a frame that was duplicated.
    pub(crate) copy: bool,
    pub(crate) frame: Buffer,
    reception: R,
}

impl<R: Copy> Flight<R> {
    /// Frames under way, of which some may overtake others if `reorder`.
    pub(crate) fn new(reorder: bool) -> Self {
        if reorder {
            Self::AnyOrder { frames: BinaryHeap::new(), launched: 0 }
        } else {
            Self::InOrder(VecDeque::new())
        }
    }

    /// Lets frames overtake others from now on.
    pub(crate) fn allow_reordering(&mut self) {
        if let Self::InOrder(line) = self {
            let mut reordered = Self::new(true);
            line.drain(..).for_each(|frame| reordered.push(frame));
            *self = reordered;
        }
    }

    /// Sends `frame` on its way.
    pub(crate) fn launch(
        &mut self,
        fate: Fate,
        mut frame: Buffer,
        from: Attachment,
        to: Attachment,
        overheard: bool,
        reception: R,
    ) {
        let corrupted = fate.flip.is_some_and(|place| flip(&mut frame, place));
        let (at, order, from, to) = (fate.at, 0, from as u32, to as u32);
        if fate.twice {
            let frame = frame.clone();
            let first = Arriving { at, order, from, to, overheard, corrupted, copy: false, frame, reception };
            self.push(first);
        }
        let copy = fate.twice;
        self.push(Arriving { at, order, from, to, overheard, corrupted, copy, frame, reception });
    }

    /// Whether none of them, nor any launched later, overtakes another.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        matches!(self, Self::InOrder(_))
    }

    /// The time at which the first of them arrives.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        match self {
            Self::InOrder(frames) => frames.front().map(|frame| frame.at),
            Self::AnyOrder { frames, .. } => frames.peek().map(|frame| frame.at),
        }
    }

    /// Takes the first of them, arrived or not.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Arriving<R>> {
        match self {
            Self::InOrder(frames) => frames.pop_front(),
            Self::AnyOrder { frames, .. } => frames.pop(),
        }
    }

    /// Takes whichever comes first by `now`, the next report or the next arrival; of both at one time, the report.
    pub(crate) fn take_due(&mut self, reports: &mut Reports, now: Instant) -> Option<Due<R>> {
        let arrival = self.next();
        if let Some(report) = reports.next().filter(|&report| report <= now)
            && arrival.is_none_or(|arrival| report <= arrival)
        {
            return reports.pop().map(Due::Report);
        }
        if arrival? > now {
            return None;
        }
        self.pop().map(Due::Arrival)
    }

    /// The frames that have arrived by `now`, in any order.
    pub(crate) fn due(&self, now: Instant) -> impl Iterator<Item = &Arriving<R>> {
        let (line, heap) = match self {
            Self::InOrder(frames) => (Some(frames), None),
            Self::AnyOrder { frames, .. } => (None, Some(frames)),
        };
        let line = line.into_iter().flatten().take_while(move |frame| frame.at <= now);
        let heap = heap.into_iter().flatten().filter(move |frame| frame.at <= now);
        line.chain(heap)
    }

    fn push(&mut self, mut frame: Arriving<R>) {
        match self {
            Self::InOrder(frames) => {
                debug_assert!(frames.back().is_none_or(|last| last.at <= frame.at));
                frames.push_back(frame);
            }
            Self::AnyOrder { frames, launched } => {
                *launched += 1;
                frame.order = *launched;
                frames.push(frame);
            }
        }
    }
}

/// The next that is due on a link.
#[derive(Debug)]
pub(crate) enum Due<R> {
    /// A report.
    Report(Event),
    /// An arrival.
    Arrival(Arriving<R>),
}

impl<R> Arriving<R> {
    pub(crate) fn from(&self) -> Attachment {
        self.from as Attachment
    }

    pub(crate) fn to(&self) -> Attachment {
        self.to as Attachment
    }

    pub(crate) fn into_event(self) -> Event
    where
        R: Into<Option<Reception>>,
    {
        let (from, to, reception) = (self.from(), self.to(), self.reception.into());
        Event::Delivered { from, to, frame: self.frame, overheard: self.overheard, reception }
    }
}

// A frame under way on a wire is one cache line.
const _: () = assert!(size_of::<Arriving<Wired>>() <= 64);

/// Frames on a wire, of whose reception nothing is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wired;

impl From<Wired> for Option<Reception> {
    fn from(_: Wired) -> Self {
        None
    }
}

/// Flips the bit that lies `place` / 2^64 into the frame, if the frame has any.
fn flip(frame: &mut Buffer, place: u64) -> bool {
    let bit = ((u128::from(place) * (frame.len() as u128 * 8)) >> 64) as usize;
    match frame.get_mut(bit / 8) {
        Some(byte) => {
            *byte ^= 1 << (bit % 8);
            true
        }
        None => false,
    }
}

/// The greatest is the one that arrives first, which is what a [`BinaryHeap`] gives first.
impl<R> Ord for Arriving<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<R> PartialOrd for Arriving<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R> PartialEq for Arriving<R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<R> Eq for Arriving<R> {}
