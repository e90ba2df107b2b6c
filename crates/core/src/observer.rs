//! Watching the machines of an [`Assembly`](crate::Assembly).

use crate::assembly::Slot;
use crate::machine::{Item, Machine, Port};
use crate::time::Instant;

/// Whoever watches what the machines of an [`Assembly`](crate::Assembly) are given and hand over.
///
/// For each call of a machine it is told of the item that arrives, if it is not a wake; then of each item that the
/// machine hands over because of it, in order; then that this is all. It may [mark](crate::Buffer::set_mark) an item's
/// bytes, and changes nothing else.
pub trait Observer {
    /// `item` is about to be given to the machine in `slot`.
    fn arriving(&mut self, now: Instant, slot: Slot, port: Port, item: &mut Item);

    /// The machine in `slot` has handed `item` over.
    fn handed_over(&mut self, now: Instant, slot: Slot, port: Port, item: &mut Item);

    /// The machine in `slot` has handed over all that followed from the last arrival or wake.
    fn drained(&mut self, now: Instant, slot: Slot, machine: &dyn Machine);
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::{Assembly, Buffer, Outbox, Reactive};

    /// Hands on each second packet.
    #[derive(Default)]
    struct EverySecond {
        seen: u64,
        out: Outbox,
    }

    impl Reactive for EverySecond {
        fn react(&mut self, _now: Instant, port: Port, item: Item) {
            self.seen += 1;
            if self.seen.is_multiple_of(2) {
                let across = if port == Port::Below(0) { Port::Above(0) } else { Port::Below(0) };
                self.out.push(across, item);
            }
        }

        fn next(&mut self) -> Option<(Port, Item)> {
            self.out.pop()
        }
    }

    type Lines = Rc<RefCell<Vec<String>>>;

    struct Notes(Lines);

    impl Observer for Notes {
        fn arriving(&mut self, _now: Instant, slot: Slot, port: Port, _item: &mut Item) {
            self.0.borrow_mut().push(format!("to {} at {port:?}", slot.index()));
        }

        fn handed_over(&mut self, _now: Instant, slot: Slot, port: Port, _item: &mut Item) {
            self.0.borrow_mut().push(format!("from {} at {port:?}", slot.index()));
        }

        fn drained(&mut self, _now: Instant, slot: Slot, _machine: &dyn Machine) {
            self.0.borrow_mut().push(format!("all of {}", slot.index()));
        }
    }

    #[test]
    fn each_hand_over_is_seen_in_its_order() {
        let mut assembly = Assembly::new();
        let [lower, upper] = [(); 2].map(|()| assembly.add(Box::new(EverySecond::default())));
        assembly.wire((lower, Port::Above(0)), (upper, Port::Below(0)));
        assembly.expose((lower, Port::Below(0)), Port::Below(0));
        let lines = Lines::default();
        assembly.observe(Box::new(Notes(lines.clone())));
        for _ in 0..2 {
            assembly.handle(Instant::ZERO, Port::Below(0), Item::Packet(Buffer::zeroed(1)));
        }
        let seen = [
            "to 0 at Below(0)",
            "all of 0",
            "to 0 at Below(0)",
            "from 0 at Above(0)",
            "all of 0",
            "to 1 at Below(0)",
            "all of 1",
        ];
        assert_eq!(*lines.borrow(), seen);
    }
}
