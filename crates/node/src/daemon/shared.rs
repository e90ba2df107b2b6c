//! A machine that is looked into while somebody else runs it.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use hopcast_core::{Instant, Item, Machine, Port};

/// A handle on a machine, which is a machine; its clones are the same one.
pub(crate) struct Shared<M>(Rc<RefCell<M>>);

impl<M> Shared<M> {
    pub(crate) fn new(machine: M) -> Self {
        Self(Rc::new(RefCell::new(machine)))
    }

    /// To look at, while it does not run.
    pub(crate) fn get(&self) -> Ref<'_, M> {
        self.0.borrow()
    }

    /// To change, while it does not run.
    pub(crate) fn get_mut(&self) -> RefMut<'_, M> {
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
}
