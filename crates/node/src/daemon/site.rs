//! The whole node as one machine: the switchboard at the UDP port, and the machines of its lanes.

use hopcast_core::{Assembly, Instant, Item, Machine, Port, earliest};

use super::stack::{LANES, Stack};
use super::switchboard::Switchboard;

/// A node: `Below(0)` is its UDP port, the other ports below are the devices and sockets of its carriers.
pub(crate) struct Site {
    pub(crate) switchboard: Switchboard,
    pub(crate) machines: Assembly,
    /// Memberships of its UDP port that it has yet to say.
    memberships: Vec<Item>,
}

impl Site {
    pub(crate) fn new(switchboard: Switchboard, stack: Stack, memberships: Vec<Item>) -> Self {
        Self { switchboard, machines: stack.machines, memberships }
    }
}

impl Machine for Site {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(0), Item::Datagram(datagram)) => {
                if let Some((lane, datagram)) = self.switchboard.arrived(now, datagram) {
                    self.machines.handle(now, Port::Below(LANES + lane as u32), Item::Datagram(datagram));
                }
            }
            (port, item) => self.machines.handle(now, port, item),
        }
    }

    fn wake(&mut self, now: Instant) {
        if self.switchboard.deadline().is_some_and(|at| at <= now) {
            self.switchboard.wake(now);
        }
        if self.machines.deadline().is_some_and(|at| at <= now) {
            self.machines.wake(now);
        }
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        if let Some(membership) = self.memberships.pop() {
            return Some((Port::Below(0), membership));
        }
        if let Some(hello) = self.switchboard.poll() {
            return Some((Port::Below(0), Item::Datagram(hello)));
        }
        loop {
            match self.machines.poll(now)? {
                (Port::Below(lane), Item::Datagram(datagram)) if lane >= LANES => {
                    if let Some(datagram) = self.switchboard.departs((lane - LANES) as usize, datagram) {
                        return Some((Port::Below(0), Item::Datagram(datagram)));
                    }
                }
                other => return Some(other),
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let memberships = (!self.memberships.is_empty()).then_some(Instant::ZERO);
        earliest(memberships, earliest(self.switchboard.deadline(), self.machines.deadline()))
    }
}
