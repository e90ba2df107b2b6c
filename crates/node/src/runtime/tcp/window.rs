//! Bounds of the bytes that wait for a reader, of one connection and of all.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use hopcast_core::StreamItem;

/// Maximum window of a connection, in bytes. A proxy's edge passes it on to the far edge as the stream's window, so it
/// bounds a stream's bytes in a round trip of the whole path. Chosen: 160 Mbit/s at 100 ms; more lets few connections
/// hold all memory.
const MAX_WINDOW: u64 = 2 << 20;
/// Minimum window of a connection, in bytes, so that each goes on. Chosen: 1.3 Mbit/s at 100 ms; more leaves room for
/// fewer connections.
const MIN_WINDOW: u64 = 16 << 10;
/// Share of the whole budget that is the first window of a connection, at most [`MAX_FIRST_GRANT`]. It counts only once
/// bytes arrive: idle connections cost the others nothing. Chosen; a smaller share starts slowly, a larger one is used
/// up by fewer connections.
const FIRST_GRANT_SHARE: u64 = 1024;
/// Maximum first window, in bytes. Chosen: 5 Mbit/s at 100 ms; a larger one is used up by fewer connections.
const MAX_FIRST_GRANT: u64 = 64 << 10;
/// Growth of the window for each byte read. Chosen: it has four times its size after a round trip, and its maximum
/// after three. Less, such as the factor of two of TCP's slow start, takes longer; with more, connections that have
/// read little hold much.
const GROWTH: u64 = 3;
/// Share of the whole budget that one source may hold, so that its stalled connections leave the rest to others.
/// Chosen; a larger share leaves less, a smaller one limits who is alone.
const SOURCE_SHARE: u64 = 4;
/// One connection may take one over this number of what is left to its source and to all. So stalled connections share
/// the budget, and leave some of it (the dynamic threshold of Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998).
const CONNECTION_SHARE: u64 = 8;

/// The memory of all connections of a runtime.
#[derive(Debug)]
pub(in super::super) struct Budget {
    bytes: u64,
    /// Bytes that have arrived and are not read.
    waiting: Cell<u64>,
    /// Bytes that count as taken, of all and of each source: see [`Window::settle`].
    taken: Cell<u64>,
    sources: RefCell<BTreeMap<IpAddr, u64>>,
}

impl Budget {
    pub(in super::super) fn new(bytes: u64) -> Rc<Self> {
        Rc::new(Self { bytes, waiting: Cell::new(0), taken: Cell::new(0), sources: RefCell::default() })
    }

    /// Whether waiting bytes leave too little for one more connection. Granted bytes do not count: most of them never
    /// arrive.
    pub(super) fn is_exhausted(&self) -> bool {
        self.bytes.saturating_sub(self.waiting.get()) < MIN_WINDOW
    }

    /// Bytes that have arrived and wait for their readers.
    pub(in super::super) fn waiting(&self) -> u64 {
        self.waiting.get()
    }

    fn first(&self) -> u64 {
        (self.bytes / FIRST_GRANT_SHARE).clamp(MIN_WINDOW, MAX_FIRST_GRANT)
    }

    fn window(&self, source: IpAddr) -> u64 {
        let left = self.bytes.saturating_sub(self.taken.get());
        let of_source = self.sources.borrow().get(&source).copied().unwrap_or(0);
        let left_to_source = (self.bytes / SOURCE_SHARE).saturating_sub(of_source);
        (left.min(left_to_source) / CONNECTION_SHARE).clamp(MIN_WINDOW, MAX_WINDOW)
    }

    /// A connection of this source takes `now` in place of `before`.
    fn change(&self, source: IpAddr, before: u64, now: u64) {
        self.taken.set(self.taken.get() - before + now);
        let mut sources = self.sources.borrow_mut();
        let of_source = sources.entry(source).or_default();
        *of_source = *of_source - before + now;
        if *of_source == 0 {
            sources.remove(&source);
        }
    }
}

/// The grants and the waiting bytes of one connection.
#[derive(Debug)]
pub(super) struct Window {
    budget: Rc<Budget>,
    source: IpAddr,
    /// Size by the bytes read so far, if the budget allows it.
    size: u64,
    /// Bytes that were granted and have not arrived.
    outstanding: u64,
    /// Bytes that have arrived and are not read.
    waiting: u64,
    /// Bytes that it takes of the budget.
    taken: u64,
}

impl Window {
    pub(super) fn new(budget: &Rc<Budget>, source: IpAddr) -> Self {
        let (budget, first) = (Rc::clone(budget), budget.first());
        Self { budget, source, size: first, outstanding: first, waiting: 0, taken: 0 }
    }

    /// The first grant.
    pub(super) fn first_grant(&self) -> StreamItem {
        StreamItem::Credit(self.budget.first())
    }

    /// Notes that bytes have arrived; false if they exceed the grant.
    pub(super) fn received(&mut self, len: usize) -> bool {
        let len = len as u64;
        let allowed = len <= self.outstanding;
        let len = len.min(self.outstanding);
        self.outstanding -= len;
        self.waiting += len;
        self.budget.waiting.set(self.budget.waiting.get() + len);
        self.settle();
        allowed
    }

    /// Notes that bytes were read; returns a grant once it reaches half a window.
    pub(super) fn consumed(&mut self, len: usize) -> Option<StreamItem> {
        let len = (len as u64).min(self.waiting);
        self.waiting -= len;
        self.budget.waiting.set(self.budget.waiting.get() - len);
        self.size = (self.size + GROWTH * len).min(MAX_WINDOW);
        self.settle();
        let window = self.budget.window(self.source).min(self.size);
        let more = window.saturating_sub(self.outstanding + self.waiting);
        if more < window / 2 {
            return None;
        }
        self.outstanding += more;
        self.settle();
        Some(StreamItem::Credit(more))
    }

    /// Takes waiting bytes, and grants beyond the first one, from the budget: those bytes may arrive at once.
    fn settle(&mut self) {
        let now = self.waiting.max((self.outstanding + self.waiting).saturating_sub(self.budget.first()));
        if now != self.taken {
            self.budget.change(self.source, self.taken, now);
            self.taken = now;
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.budget.waiting.set(self.budget.waiting.get() - self.waiting);
        (self.outstanding, self.waiting) = (0, 0);
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = 64 << 20;

    fn source(number: u16) -> IpAddr {
        let [high, low] = number.to_be_bytes();
        [10, 0, high, low].into()
    }

    impl Window {
        /// All granted bytes arrive and are read in one round trip; returns their number.
        fn round_trip(&mut self) -> u64 {
            let comes = self.outstanding;
            let mut left = comes;
            while left > 0 {
                let len = left.min(1400);
                assert!(self.received(len as usize));
                if let Some(item) = self.consumed(len as usize) {
                    assert!(matches!(item, StreamItem::Credit(1..)), "{item:?}");
                }
                left -= len;
            }
            comes
        }

        /// It reads until its window has the maximum size, receives that much, and reads none of it.
        fn stall(mut self) -> Self {
            (0..8).for_each(|_| _ = self.round_trip());
            assert!(self.received(self.outstanding as usize));
            self
        }
    }

    #[test]
    fn connections_that_are_idle_cost_those_that_are_read_nothing() {
        let budget = Budget::new(ALL);
        let alone = speed(&mut Window::new(&budget, source(1)));
        // As fast as with the whole budget from the start.
        let mut full = Window::new(&budget, source(1));
        full.size = MAX_WINDOW;
        assert!(alone >= speed(&mut full) && alone > MAX_WINDOW / 3, "{alone}");
        drop(full);
        let of_many: Vec<_> = (0..500).map(|number| Window::new(&budget, source(number))).collect();
        assert!(of_many.iter().all(|idle| idle.outstanding == MAX_FIRST_GRANT) && !budget.is_exhausted());
        assert_eq!(speed(&mut Window::new(&budget, source(1000))), alone);
        let of_one: Vec<_> = (0..20_000).map(|_| Window::new(&budget, source(1000))).collect();
        assert!(!budget.is_exhausted());
        assert_eq!(speed(&mut Window::new(&budget, source(1000))), alone);
        drop((of_many, of_one));
        assert_eq!((budget.waiting(), budget.taken.get(), budget.sources.borrow().len()), (0, 0, 0));
    }

    /// Mean bytes in a round trip of a connection that is read, of 20 after the first four.
    fn speed(reader: &mut Window) -> u64 {
        (0..4).for_each(|_| _ = reader.round_trip());
        (0..20).map(|_| reader.round_trip()).sum::<u64>() / 20
    }

    #[test]
    fn readers_that_stall_share_what_there_is_until_nothing_is_left() {
        let budget = Budget::new(ALL);
        let mut stalled = Vec::new();
        while !budget.is_exhausted() {
            stalled.push(Window::new(&budget, source(stalled.len() as u16 % 100)).stall());
        }
        assert!(budget.waiting() <= ALL, "{}", budget.waiting());
        let alone = stalled[0].waiting;
        assert!((MAX_WINDOW / 3..=MAX_WINDOW).contains(&alone), "{alone}");
        assert!(stalled[stalled.len() - 1].waiting < 2 * MIN_WINDOW);
        drop(stalled);
        assert_eq!((budget.waiting(), budget.taken.get(), budget.sources.borrow().len()), (0, 0, 0));
        assert_eq!(Window::new(&budget, source(1)).stall().waiting, alone);
    }

    #[test]
    fn one_source_that_stalls_leaves_the_rest_to_others() {
        let budget = Budget::new(ALL);
        let alone = Window::new(&budget, source(2)).stall().waiting;
        let stalled: Vec<_> = (0..300).map(|_| Window::new(&budget, source(1)).stall()).collect();
        assert!(budget.waiting() < ALL / SOURCE_SHARE + 300 * MIN_WINDOW, "{}", budget.waiting());
        assert!(stalled[299].waiting <= MIN_WINDOW);
        assert_eq!(Window::new(&budget, source(2)).stall().waiting, alone);
    }

    #[test]
    fn who_reads_is_granted_more_however_little_is_left() {
        let budget = Budget::new(ALL);
        let mut reader = Window::new(&budget, source(1));
        let _stalled: Vec<_> = (0..8000).map(|_| Window::new(&budget, source(1)).stall()).collect();
        assert!(budget.is_exhausted());
        for _ in 0..300 {
            assert!(reader.round_trip() > 0, "it is starved");
        }
        assert!(!reader.received(1 << 30), "more than was granted");
    }
}
