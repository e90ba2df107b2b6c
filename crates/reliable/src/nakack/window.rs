//! The messages of one member in a view that somebody may still lack.

use std::collections::VecDeque;
use std::sync::Arc;

use hopcast_core::bytes::complete;

use super::wire::Flags;

/// A message as it is held.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) flags: Flags,
    pub(super) payload: Arc<[u8]>,
    /// Number of this member's own transmission that carried it last; 0 if none has.
    pub(super) transmitted: u64,
}

/// The messages of one member, from the first that is not stable on. Numbers are in full; packets have the lowest 32
/// bits.
#[derive(Debug)]
pub(super) struct Window {
    /// Number of the first slot: each message before it is stable, and delivered here.
    base: u64,
    slots: VecDeque<Option<Held>>,
    /// Number up to which all messages are here.
    contiguous: u64,
    /// Number up to which messages are known to exist.
    known: u64,
    /// Number of the message that is delivered next.
    delivered: u64,
    bytes: u64,
}

/// Maximum number of messages that are held of a member, or known to be missing. Chosen: 90 MB in packets of 1,400
/// bytes, which is more than flow control lets out by default; a forged number costs a request for as many at most.
pub(super) const SPAN: u64 = 1 << 16;

impl Window {
    /// An empty window, whose first message has a number.
    pub(super) fn new(first: u64) -> Self {
        Self {
            base: first,
            slots: VecDeque::new(),
            contiguous: first,
            known: first,
            delivered: first,
            bytes: 0,
        }
    }

    /// The number in full of which a packet has the lowest 32 bits.
    pub(super) fn in_full(&self, low: u32) -> u64 {
        complete(low, 32, self.contiguous)
    }

    /// Number up to which all messages are here.
    pub(super) const fn contiguous(&self) -> u64 {
        self.contiguous
    }

    /// Number up to which messages are known to exist.
    pub(super) const fn known(&self) -> u64 {
        self.known
    }

    /// Number of the first message that is held.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// Number of the message that is delivered next.
    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes that are held.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is room for one more message of this member itself.
    pub(super) const fn has_room(&self) -> bool {
        self.known - self.base < SPAN
    }

    /// Learns that all messages before a number exist. True if that is news.
    pub(super) fn learn(&mut self, known: u64) -> bool {
        let is_news = known > self.known && known - self.base <= SPAN;
        if is_news {
            self.known = known;
        }
        is_news
    }

    /// Takes a message. False if it is here already, or too far ahead.
    pub(super) fn insert(&mut self, number: u64, flags: Flags, payload: &[u8], transmitted: u64) -> bool {
        if number < self.base || number - self.base >= SPAN {
            return false;
        }
        let place = (number - self.base) as usize;
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        let slot = &mut self.slots[place];
        if slot.is_some() {
            return false;
        }
        self.bytes += cost(payload);
        *slot = Some(Held { flags, payload: Arc::from(payload), transmitted });
        self.known = self.known.max(number + 1);
        while self.has(self.contiguous) {
            self.contiguous += 1;
        }
        true
    }

    /// Whether a message is here, or was.
    pub(super) fn has(&self, number: u64) -> bool {
        number < self.base || self.get(number).is_some()
    }

    pub(super) fn get(&self, number: u64) -> Option<&Held> {
        let place = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.slots.get(place)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Held> {
        let place = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.slots.get_mut(place)?.as_mut()
    }

    /// Whether something is missing of what is known to exist before a number.
    pub(super) fn lacks(&self, before: u64) -> bool {
        self.contiguous < before.min(self.known)
    }

    /// Runs of missing messages before a number: each its first, and its length.
    pub(super) fn missing(&self, before: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let end = before.min(self.known);
        let mut at = self.contiguous;
        std::iter::from_fn(move || {
            while at < end && self.has(at) {
                at += 1;
            }
            let first = at;
            while at < end && !self.has(at) {
                at += 1;
            }
            (at > first).then_some((first, at - first))
        })
    }

    /// The next message in order, if it is here; it is delivered with that.
    pub(super) fn deliver(&mut self) -> Option<Held> {
        let next = self.get(self.delivered)?.clone();
        self.delivered += 1;
        Some(next)
    }

    /// Forgets what is stable, all before a number, as far as it has been delivered here.
    pub(super) fn collect(&mut self, stable: u64) {
        let until = stable.min(self.delivered);
        while self.base < until {
            if let Some(Some(held)) = self.slots.pop_front() {
                self.bytes -= cost(&held.payload);
            }
            self.base += 1;
        }
        if self.slots.is_empty() && self.slots.capacity() > KEPT_SLOTS {
            self.slots = VecDeque::new();
        }
    }
}

/// Slots whose memory an empty window keeps. Chosen: the packets of a few round trips.
const KEPT_SLOTS: usize = 1024;

/// Bytes that a message is counted as, so that empty ones count too.
fn cost(payload: &[u8]) -> u64 {
    payload.len() as u64 + 64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(window: &mut Window, number: u64) -> bool {
        window.insert(number, Flags::default(), b"x", 0)
    }

    #[test]
    fn what_is_missing_is_what_others_have_gone_past() {
        let mut window = Window::new(10);
        assert!(insert(&mut window, 10) && insert(&mut window, 13) && !insert(&mut window, 13));
        assert!(window.learn(16) && !window.learn(16) && !window.learn(12));
        let missing: Vec<_> = window.missing(u64::MAX).collect();
        assert_eq!(missing, [(11, 2), (14, 2)]);
        assert_eq!(window.missing(12).collect::<Vec<_>>(), [(11, 1)]);
        assert!(window.lacks(12) && !window.lacks(11));
    }

    #[test]
    fn only_what_is_stable_and_delivered_is_forgotten() {
        let mut window = Window::new(1);
        (1..5).for_each(|number| assert!(insert(&mut window, number)));
        assert!(window.deliver().is_some() && window.deliver().is_some());
        window.collect(4);
        assert_eq!((window.base(), window.contiguous()), (3, 5));
        assert!(window.get(2).is_none() && window.has(2) && window.get(3).is_some());
        assert_eq!(window.bytes(), 2 * 65);
        assert!(!insert(&mut window, 2), "what is stable never comes again");
    }

    #[test]
    fn a_number_far_ahead_takes_no_memory() {
        let mut window = Window::new(0);
        assert!(!insert(&mut window, SPAN) && !window.learn(SPAN + 1) && !window.learn(u64::MAX));
        assert_eq!((window.slots.len(), window.known()), (0, 0));
    }

    #[test]
    fn numbers_go_on_across_the_end_of_32_bits() {
        let first = (1 << 32) - 2;
        let mut window = Window::new(first);
        for low in [u32::MAX - 1, u32::MAX, 0, 1] {
            let number = window.in_full(low);
            assert!(insert(&mut window, number));
            assert_eq!(number as u32, low);
        }
        assert_eq!(window.contiguous(), first + 4);
    }

    #[test]
    fn a_window_has_room_for_as_many_as_may_be_missing() {
        let mut window = Window::new(3);
        assert!(window.learn(3 + SPAN - 1) && window.has_room());
        assert!(window.learn(3 + SPAN) && !window.has_room());
        assert!(insert(&mut window, 3 + SPAN - 1) && !insert(&mut window, 3 + SPAN));
        assert!(insert(&mut window, 3) && window.deliver().is_some());
        window.collect(4);
        assert!(window.has_room() && insert(&mut window, 3 + SPAN));
    }

    #[test]
    fn a_window_that_is_empty_again_keeps_little_memory() {
        for (messages, is_kept) in [(KEPT_SLOTS as u64 / 2, true), (4 * KEPT_SLOTS as u64, false)] {
            let mut window = Window::new(0);
            (0..messages).for_each(|number| assert!(insert(&mut window, number)));
            assert_eq!(std::iter::from_fn(|| window.deliver()).count() as u64, messages);
            window.collect(messages - 1);
            assert!(window.slots.capacity() as u64 >= messages, "one is held");
            window.collect(messages);
            assert_eq!((window.bytes(), window.slots.capacity() > 0), (0, is_kept));
        }
    }

    #[test]
    fn what_is_delivered_is_what_is_next_and_what_was_sent_again_is_marked_as_such() {
        let mut window = Window::new(1);
        assert!(insert(&mut window, 2) && window.deliver().is_none());
        assert_eq!((window.contiguous(), window.delivered(), window.known()), (1, 1, 3));
        assert!(window.get_mut(1).is_none() && window.get_mut(0).is_none());
        window.get_mut(2).unwrap().transmitted = 9;
        assert!(insert(&mut window, 1));
        let transmitted: Vec<_> =
            std::iter::from_fn(|| window.deliver()).map(|held| held.transmitted).collect();
        assert_eq!((transmitted, window.delivered()), (vec![0, 9], 3));
    }
}
