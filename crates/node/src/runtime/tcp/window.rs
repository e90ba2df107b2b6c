//! How many bytes may wait for a reader, of one connection and of all.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use hopcast_core::StreamItem;

/// What one may wait for at most, in bytes. A proxy's edge passes this on to the far edge as that stream's window, so that it
/// bounds what a stream carries in a round trip of the whole path: 160 Mbit/s at 100 ms.
const WINDOW: u64 = 2 << 20;
/// And at least, so that each goes on: 1.3 Mbit/s at 100 ms.
const LEAST: u64 = 16 << 10;
/// One source may hold such a part of what there is for all, so that its connections that stall leave the rest to others.
const SOURCES: u64 = 4;
/// One connection may take such a part of what is left for its source and for all. Those that stall so share what there is,
/// and leave some (the dynamic threshold of Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998).
const PART: u64 = 8;

/// What all connections of a runtime may hold.
#[derive(Debug)]
pub(in super::super) struct Budget {
    bytes: u64,
    held: Cell<u64>,
    /// What those of each source hold.
    sources: RefCell<BTreeMap<IpAddr, u64>>,
}

impl Budget {
    pub(in super::super) fn new(bytes: u64) -> Rc<Self> {
        Rc::new(Self { bytes, held: Cell::new(0), sources: RefCell::default() })
    }

    /// Whether there is too little left for one more.
    pub(super) fn is_exhausted(&self) -> bool {
        self.bytes.saturating_sub(self.held.get()) < LEAST
    }

    /// What has been granted, arrived or not.
    pub(in super::super) fn held(&self) -> u64 {
        self.held.get()
    }

    fn window(&self, source: IpAddr) -> u64 {
        let left = self.bytes.saturating_sub(self.held.get());
        let of_source = self.sources.borrow().get(&source).copied().unwrap_or(0);
        let left_to_source = (self.bytes / SOURCES).saturating_sub(of_source);
        (left.min(left_to_source) / PART).clamp(LEAST, WINDOW)
    }

    fn take(&self, source: IpAddr, bytes: u64) {
        self.held.set(self.held.get() + bytes);
        *self.sources.borrow_mut().entry(source).or_default() += bytes;
    }

    fn give_back(&self, source: IpAddr, bytes: u64) {
        self.held.set(self.held.get() - bytes);
        let mut sources = self.sources.borrow_mut();
        if let Some(held) = sources.get_mut(&source) {
            *held -= bytes;
            if *held == 0 {
                sources.remove(&source);
            }
        }
    }
}

/// What one connection may be sent, and what waits of it.
#[derive(Debug)]
pub(super) struct Window {
    budget: Rc<Budget>,
    source: IpAddr,
    first: u64,
    /// Granted and not arrived, and arrived and not read.
    outstanding: u64,
    waiting: u64,
}

impl Window {
    pub(super) fn new(budget: &Rc<Budget>, source: IpAddr) -> Self {
        let first = budget.window(source);
        budget.take(source, first);
        Self { budget: Rc::clone(budget), source, first, outstanding: first, waiting: 0 }
    }

    /// The grant with which it begins.
    pub(super) const fn first_grant(&self) -> StreamItem {
        StreamItem::Credit(self.first)
    }

    /// Notes that bytes have arrived; false if they are more than was granted.
    pub(super) fn received(&mut self, len: usize) -> bool {
        let len = len as u64;
        let allowed = len <= self.outstanding;
        let len = len.min(self.outstanding);
        self.outstanding -= len;
        self.waiting += len;
        allowed
    }

    /// Notes that bytes were read; what is granted for that, once it is worth an item: half a window.
    pub(super) fn consumed(&mut self, len: usize) -> Option<StreamItem> {
        let len = (len as u64).min(self.waiting);
        self.waiting -= len;
        self.budget.give_back(self.source, len);
        let window = self.budget.window(self.source);
        let more = window.saturating_sub(self.outstanding + self.waiting);
        if more < window / 2 {
            return None;
        }
        self.outstanding += more;
        self.budget.take(self.source, more);
        Some(StreamItem::Credit(more))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.budget.give_back(self.source, self.outstanding + self.waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = 64 << 20;

    fn granted(item: &StreamItem) -> u64 {
        let StreamItem::Credit(bytes) = item else { panic!("{item:?}") };
        *bytes
    }

    fn source(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    #[test]
    fn readers_that_stall_share_what_there_is_until_nothing_is_left() {
        let budget = Budget::new(ALL);
        let mut stalled = Vec::new();
        while !budget.is_exhausted() {
            stalled.push(Window::new(&budget, source(stalled.len() as u8 % 100)));
        }
        assert!(budget.held() <= ALL, "{}", budget.held());
        assert_eq!(granted(&stalled[0].first_grant()), WINDOW);
        assert!(granted(&stalled[stalled.len() - 1].first_grant()) < 2 * LEAST);
        drop(stalled);
        assert_eq!((budget.held(), budget.sources.borrow().len()), (0, 0));
        assert_eq!(granted(&Window::new(&budget, source(1)).first_grant()), WINDOW);
    }

    #[test]
    fn one_source_that_stalls_leaves_the_rest_to_others() {
        let budget = Budget::new(ALL);
        let stalled: Vec<_> = (0..300).map(|_| Window::new(&budget, source(1))).collect();
        assert!(budget.held() < ALL / SOURCES + 300 * LEAST, "{}", budget.held());
        assert_eq!(granted(&stalled[299].first_grant()), LEAST);
        assert_eq!(granted(&Window::new(&budget, source(2)).first_grant()), WINDOW);
    }

    #[test]
    fn who_reads_is_granted_more_however_little_is_left() {
        let budget = Budget::new(ALL);
        let mut reader = Window::new(&budget, source(1));
        let _stalled: Vec<_> = (0..8000).map(|_| Window::new(&budget, source(1))).collect();
        assert!(budget.is_exhausted());
        let mut may = granted(&reader.first_grant());
        for _ in 0..3000 {
            let len = may.min(1400) as usize;
            assert!(len > 0, "it is starved");
            assert!(reader.received(len));
            may -= len as u64;
            may += reader.consumed(len).map_or(0, |item| granted(&item));
        }
        assert!(!reader.received(1 << 30), "more than was granted");
    }
}
