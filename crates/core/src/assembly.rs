//! Machines plugged into one another: an [`Assembly`] is itself a [`Machine`].

use std::collections::{BTreeSet, VecDeque};

use crate::machine::{Item, Machine, Port};
use crate::observer::Observer;
use crate::outbox::Outbox;
use crate::time::Instant;

/// A machine inside an [`Assembly`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(usize);

impl Slot {
    /// The machine's number in its assembly: from 0, in the order in which they were added.
    pub const fn index(self) -> usize {
        self.0
    }
}

/// Several machines wired port to port: a protocol stack, or a host with all that runs on it.
///
/// # The order of hand-overs at one instant
///
/// Everything that machines hand each other at one instant goes through one first-in first-out queue. A machine that
/// has received an item is drained completely, its items joining the end of the queue in the order it gave them,
/// before the next item of the queue is delivered. When several machines are due at one instant they are woken in the
/// order in which they were added, and the queue is emptied after each. Items for the outside keep the order in which
/// they were given. An item from an unconnected port is dropped and counted.
#[derive(Default)]
pub struct Assembly {
    parts: Vec<Part>,
    outside_below: Vec<Option<(usize, Port)>>,
    outside_above: Vec<Option<(usize, Port)>>,
    queue: VecDeque<(usize, Port, Item)>,
    out: Outbox,
    /// Each machine's deadline, so that a host with thousands of machines need not look at all of them.
    deadlines: BTreeSet<(Instant, usize)>,
    /// Room for the machines that are due, so that waking allocates nothing.
    due: Vec<usize>,
    unconnected: u64,
    observer: Option<Box<dyn Observer>>,
}

struct Part {
    machine: Box<dyn Machine>,
    below: Vec<Wire>,
    above: Vec<Wire>,
    deadline: Option<Instant>,
}

#[derive(Clone, Copy)]
enum Wire {
    Nowhere,
    Inside(usize, Port),
    Outside(Port),
}

impl Assembly {
    /// An assembly without machines.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a machine, which has no connections yet.
    pub fn add(&mut self, machine: Box<dyn Machine>) -> Slot {
        let (slot, deadline) = (self.parts.len(), machine.deadline());
        self.parts.push(Part { machine, below: Vec::new(), above: Vec::new(), deadline });
        self.deadlines.extend(deadline.map(|at| (at, slot)));
        Slot(slot)
    }

    /// Plugs `one` and `other` into each other; what either gives arrives at the other.
    pub fn wire(&mut self, one: (Slot, Port), other: (Slot, Port)) {
        self.set_wire(one, Wire::Inside(other.0.0, other.1));
        self.set_wire(other, Wire::Inside(one.0.0, one.1));
    }

    /// Makes the port `inner` of a machine the port `outer` of the assembly.
    pub fn expose(&mut self, inner: (Slot, Port), outer: Port) {
        self.set_wire(inner, Wire::Outside(outer));
        let (side, index) = match outer {
            Port::Below(index) => (&mut self.outside_below, index as usize),
            Port::Above(index) => (&mut self.outside_above, index as usize),
        };
        if side.len() <= index {
            side.resize(index + 1, None);
        }
        side[index] = Some((inner.0.0, inner.1));
    }

    /// Number of machines.
    pub fn machines(&self) -> usize {
        self.parts.len()
    }

    /// Has `observer` watch all machines from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    /// Has nobody watch any more.
    pub fn unobserve(&mut self) {
        self.observer = None;
    }

    /// The machine in `slot`.
    pub fn machine(&self, slot: Slot) -> &dyn Machine {
        &*self.parts[slot.0].machine
    }

    /// Wakes one machine, and delivers what it hands over; the others are left alone until they are due.
    pub fn wake_machine(&mut self, now: Instant, slot: Slot) {
        let mut out = std::mem::take(&mut self.out);
        self.wake_machine_into(now, slot, &mut |port, item| out.push(port, item));
        self.out = out;
    }

    /// As [`wake_machine`](Self::wake_machine), but what leaves by a port of the assembly is given to `out` at once,
    /// not kept for [`Machine::poll`].
    pub fn wake_machine_into(&mut self, now: Instant, slot: Slot, out: &mut impl FnMut(Port, Item)) {
        self.parts[slot.0].machine.wake(now);
        self.drain(now, slot.0, out);
        self.settle(now, out);
    }

    /// As [`Machine::handle`], but what leaves by a port of the assembly is given to `out` at once, not kept for
    /// [`Machine::poll`].
    pub fn handle_into(&mut self, now: Instant, port: Port, item: Item, out: &mut impl FnMut(Port, Item)) {
        let inner = match port {
            Port::Below(index) => self.outside_below.get(index as usize),
            Port::Above(index) => self.outside_above.get(index as usize),
        };
        let Some(&Some((index, port))) = inner else {
            self.unconnected += 1;
            return;
        };
        self.give(now, index, port, item, out);
        self.settle(now, out);
    }

    /// As [`Machine::wake`], but what leaves by a port of the assembly is given to `out` at once, not kept for
    /// [`Machine::poll`].
    pub fn wake_into(&mut self, now: Instant, out: &mut impl FnMut(Port, Item)) {
        let mut due = std::mem::take(&mut self.due);
        due.extend(self.deadlines.range(..=(now, usize::MAX)).map(|&(_, index)| index));
        due.sort_unstable();
        for index in due.drain(..) {
            // An item of another machine may have moved the deadline.
            if self.parts[index].deadline.is_some_and(|at| at <= now) {
                self.parts[index].machine.wake(now);
                self.drain(now, index, out);
                self.settle(now, out);
            }
        }
        self.due = due;
    }

    fn set_wire(&mut self, (slot, port): (Slot, Port), wire: Wire) {
        let part = &mut self.parts[slot.0];
        let (side, index) = match port {
            Port::Below(index) => (&mut part.below, index as usize),
            Port::Above(index) => (&mut part.above, index as usize),
        };
        if side.len() <= index {
            side.resize(index + 1, Wire::Nowhere);
        }
        side[index] = wire;
    }

    /// Delivers the items of the queue until it is empty.
    fn settle(&mut self, now: Instant, out: &mut impl FnMut(Port, Item)) {
        while let Some((index, port, item)) = self.queue.pop_front() {
            self.give(now, index, port, item, out);
        }
    }

    /// Gives an item to a machine, and takes all that it hands over.
    fn give(
        &mut self,
        now: Instant,
        index: usize,
        port: Port,
        mut item: Item,
        out: &mut impl FnMut(Port, Item),
    ) {
        if let Some(observer) = &mut self.observer {
            observer.arriving(now, Slot(index), port, &mut item);
        }
        self.parts[index].machine.handle(now, port, item);
        self.drain(now, index, out);
    }

    fn drain(&mut self, now: Instant, index: usize, out: &mut impl FnMut(Port, Item)) {
        let part = &mut self.parts[index];
        while let Some((port, mut item)) = part.machine.poll(now) {
            if let Some(observer) = &mut self.observer {
                observer.handed_over(now, Slot(index), port, &mut item);
            }
            let wire = match port {
                Port::Below(index) => part.below.get(index as usize),
                Port::Above(index) => part.above.get(index as usize),
            };
            match wire {
                Some(&Wire::Inside(to, port)) => self.queue.push_back((to, port, item)),
                Some(&Wire::Outside(port)) => out(port, item),
                Some(Wire::Nowhere) | None => self.unconnected += 1,
            }
        }
        if let Some(observer) = &mut self.observer {
            observer.drained(now, Slot(index), &*part.machine);
        }
        let deadline = part.machine.deadline();
        let before = core::mem::replace(&mut part.deadline, deadline);
        if before != deadline {
            before.map(|at| self.deadlines.remove(&(at, index)));
            self.deadlines.extend(deadline.map(|at| (at, index)));
        }
    }
}

impl Machine for Assembly {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        let mut out = std::mem::take(&mut self.out);
        self.handle_into(now, port, item, &mut |port, item| out.push(port, item));
        self.out = out;
    }

    fn wake(&mut self, now: Instant) {
        let mut out = std::mem::take(&mut self.out);
        self.wake_into(now, &mut |port, item| out.push(port, item));
        self.out = out;
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("unconnected", self.unconnected);
        for part in &self.parts {
            part.machine.counters(report);
        }
    }
}

/// The earlier of two deadlines, where `None` is never.
pub fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
