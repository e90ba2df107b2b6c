//! A machine that its owner looks into while somebody else runs it.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use crate::machine::{Item, Machine, Port};
use crate::time::Instant;

/// A handle on a machine, which is itself that machine: one handle is given to whoever runs it, a clone is kept.
pub struct Shared<M>(Rc<RefCell<M>>);

impl<M> Shared<M> {
    /// The first handle on `machine`.
    pub fn new(machine: M) -> Self {
        Self(Rc::new(RefCell::new(machine)))
    }

    /// The machine, for reading.
    ///
    /// # Panics
    /// If it is called while the machine runs or is being changed.
    pub fn get(&self) -> Ref<'_, M> {
        self.0.borrow()
    }

    /// The machine, for changing.
    ///
    /// # Panics
    /// If it is called while the machine runs or is being looked at.
    pub fn get_mut(&self) -> RefMut<'_, M> {
        self.0.borrow_mut()
    }
}

impl<M> Clone for Shared<M> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<M: Machine> Machine for Shared<M> {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.get_mut().handle(now, port, item);
    }

    fn wake(&mut self, now: Instant) {
        self.get_mut().wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.get_mut().poll(now)
    }

    fn deadline(&self) -> Option<Instant> {
        self.get().deadline()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.get().counters(report);
    }

    fn discards(&self) -> Option<u64> {
        self.get().discards()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has one thing to do, at a time that its owner sets.
    #[derive(Default)]
    struct Alarm {
        at: Option<Instant>,
        rung: u64,
    }

    impl Machine for Alarm {
        fn handle(&mut self, now: Instant, _port: Port, _item: Item) {
            self.at = Some(now);
        }

        fn wake(&mut self, _now: Instant) {
            self.at = None;
            self.rung += 1;
        }

        fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
            (self.rung > 1).then_some((Port::Above(0), Item::Credit(self.rung)))
        }

        fn deadline(&self) -> Option<Instant> {
            self.at
        }

        fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
            report("rung", self.rung);
        }
    }

    #[test]
    fn whoever_runs_it_and_its_owner_have_the_same_machine() {
        let owner = Shared::new(Alarm::default());
        let mut runner: Box<dyn Machine> = Box::new(owner.clone());
        let now = Instant::from_nanos(5);
        owner.get_mut().at = Some(now);
        assert_eq!((runner.deadline(), runner.poll(now)), (Some(now), None));
        runner.wake(now);
        runner.handle(now, Port::Below(0), Item::Credit(1));
        assert_eq!((owner.get().at, owner.get().rung), (Some(now), 1));
        owner.get_mut().rung = 7;
        assert_eq!(runner.poll(now), Some((Port::Above(0), Item::Credit(7))));
        runner.counters(&mut |name, value| assert_eq!((name, value), ("rung", 7)));
    }
}
