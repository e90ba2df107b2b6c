//! The items that a machine is about to hand over, and machines without timers.

use std::collections::VecDeque;

use crate::machine::{Item, Machine, Port};
use crate::time::Instant;

/// The items that a machine is about to hand over, each with the port by which it leaves; the oldest leaves first.
#[derive(Debug, Default)]
pub struct Outbox(VecDeque<(Port, Item)>);

impl Outbox {
    /// An outbox that holds nothing.
    pub const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Adds an item that leaves by `port`.
    #[inline]
    pub fn push(&mut self, port: Port, item: Item) {
        self.0.push_back((port, item));
    }

    /// Adds an item that leaves by `Above(0)`.
    #[inline]
    pub fn up(&mut self, item: Item) {
        self.push(Port::Above(0), item);
    }

    /// Adds an item that leaves by `Below(0)`.
    #[inline]
    pub fn down(&mut self, item: Item) {
        self.push(Port::Below(0), item);
    }

    /// Takes the oldest item: the answer to [`Machine::poll`].
    #[inline]
    pub fn pop(&mut self) -> Option<(Port, Item)> {
        self.0.pop_front()
    }

    /// Whether there is nothing to hand over.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A machine without timers: it acts on what arrives, at once, and never needs to be woken. Each is a [`Machine`].
///
/// ```
/// use hopcast_core::*;
///
/// /// Sends every datagram back to where it came from.
/// #[derive(Default)]
/// struct Echo(Outbox);
///
/// impl Reactive for Echo {
///     fn react(&mut self, _now: Instant, _port: Port, item: Item) {
///         self.0.down(item);
///     }
///
///     fn next(&mut self) -> Option<(Port, Item)> {
///         self.0.pop()
///     }
/// }
///
/// let machine: Box<dyn Machine> = Box::new(Echo::default());
/// assert_eq!(machine.deadline(), None);
/// ```
pub trait Reactive {
    /// `item` arrived on `port`. The rules of [`Machine::handle`] hold.
    fn react(&mut self, now: Instant, port: Port, item: Item);

    /// The next item to hand over, and its port; `None` once there is nothing more. A machine that only receives has
    /// none.
    fn next(&mut self) -> Option<(Port, Item)> {
        None
    }

    /// Whether there is something to hand over that no arrival has caused: its owner put it there.
    fn is_pending(&self) -> bool {
        false
    }

    /// The machine's own figures, as [`Machine::counters`].
    fn counters(&self, _report: &mut dyn FnMut(&'static str, u64)) {}
}

impl<R: Reactive> Machine for R {
    #[inline]
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.react(now, port, item);
    }

    #[inline]
    fn wake(&mut self, _now: Instant) {}

    #[inline]
    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.next()
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.is_pending().then_some(Instant::ZERO)
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        Reactive::counters(self, report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_leave_in_the_order_in_which_they_were_put_there() {
        let mut out = Outbox::new();
        out.push(Port::Below(7), Item::Credit(1));
        out.up(Item::Credit(2));
        out.down(Item::Credit(3));
        assert!(!out.is_empty());
        let ports = [Port::Below(7), Port::Above(0), Port::Below(0)];
        for (credit, port) in (1..).zip(ports) {
            assert_eq!(out.pop(), Some((port, Item::Credit(credit))));
        }
        assert!(out.is_empty() && out.pop().is_none());
    }

    /// Passes everything upwards.
    #[derive(Default)]
    struct Riser(Outbox);

    impl Reactive for Riser {
        fn react(&mut self, _now: Instant, _port: Port, item: Item) {
            self.0.up(item);
        }

        fn next(&mut self) -> Option<(Port, Item)> {
            self.0.pop()
        }

        fn is_pending(&self) -> bool {
            !self.0.is_empty()
        }

        fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
            report("risers", 1);
        }
    }

    #[test]
    fn a_machine_without_timers_is_woken_only_for_what_its_owner_put_there() {
        let mut riser = Riser::default();
        let machine: &mut dyn Machine = &mut riser;
        machine.handle(Instant::ZERO, Port::Below(0), Item::Credit(1));
        assert_eq!(machine.poll(Instant::ZERO), Some((Port::Above(0), Item::Credit(1))));
        assert_eq!(machine.deadline(), None);
        let mut counted = 0;
        machine.counters(&mut |name, value| counted += u64::from(name == "risers") * value);
        assert_eq!(counted, 1);
        riser.0.up(Item::Credit(2));
        assert_eq!(riser.deadline(), Some(Instant::ZERO));
    }
}
