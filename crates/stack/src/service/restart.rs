//! A service's machine that events stop, start, and restart with other settings.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;

use hopcast_core::{Instant, Item, Machine, Membership, Outbox, Port, earliest};

use super::{
    HostConfig, InterfaceUser, LowerInterface, ServiceLayer, ServiceRoutes, StatusReader, StatusTable,
};

/// A machine that is replaced at given times. While it is stopped it drops what arrives, and hands back what a hook is
/// given.
pub(crate) struct Restartable {
    running: Option<Box<dyn Machine>>,
    /// Reads the tables of the machine that runs.
    reader: Option<StatusReader>,
    host: HostConfig,
    lower: Vec<LowerInterface>,
    user: InterfaceUser,
    routes: Rc<dyn ServiceRoutes>,
    /// The changes to come, in the order of time: the settings of the new machine, or `None` where it is stopped.
    changes: VecDeque<(Instant, Option<ServiceLayer>)>,
    restarts: u64,
    dropped_while_stopped: u64,
    out: Outbox,
    /// The memberships that the machine was handed and that hold; a new one is handed them, too.
    heard: Memberships,
    /// Those that it has handed up; they end with it.
    told: Memberships,
    /// The counters of machines that have been replaced.
    before: BTreeMap<&'static str, u64>,
}

impl Restartable {
    /// The machine of a service at a node of this host and these routes, attached to the `lower` interfaces, the first
    /// of whose own `user` uses, with what events change there, in the order of time.
    pub(crate) fn new(
        service: &ServiceLayer,
        changes: impl IntoIterator<Item = (Instant, Option<ServiceLayer>)>,
        host: &HostConfig,
        (lower, user): (Vec<LowerInterface>, InterfaceUser),
        routes: Rc<dyn ServiceRoutes>,
    ) -> Self {
        let changes = changes.into_iter().collect();
        let (running, reader) = service.settings().readable_machine(host, (&lower, user), &routes);
        Self {
            running: Some(running),
            reader,
            host: host.clone(),
            lower,
            user,
            routes,
            changes,
            restarts: 0,
            dropped_while_stopped: 0,
            out: Outbox::new(),
            heard: Memberships::default(),
            told: Memberships::default(),
            before: BTreeMap::new(),
        }
    }

    /// The tables of the machine; none while it is stopped.
    pub(super) fn tables(&self) -> Vec<StatusTable> {
        self.reader.as_ref().map_or_else(Vec::new, |read| read())
    }

    fn change(&mut self, now: Instant) {
        while let Some((_, to)) = self.changes.pop_front_if(|&mut (at, _)| at <= now) {
            self.restarts += u64::from(to.is_some());
            let make = |layer: ServiceLayer| {
                layer.settings().readable_machine(&self.host, (&self.lower, self.user), &self.routes)
            };
            let (new, reader) = to.map(make).unzip();
            self.reader = reader.flatten();
            if let Some(old) = std::mem::replace(&mut self.running, new) {
                old.counters(&mut |counter, value| *self.before.entry(counter).or_default() += value);
            }
            for (port, membership) in std::mem::take(&mut self.told).all() {
                self.out.push(port, Item::Membership(Membership { joined: false, ..membership }));
            }
            if let Some(new) = &mut self.running {
                self.heard.all().for_each(|(port, held)| new.handle(now, port, Item::Membership(held)));
            }
        }
    }
}

impl Machine for Restartable {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.change(now);
        self.heard.note(port, &item);
        match &mut self.running {
            Some(machine) => machine.handle(now, port, item),
            // A hook that does nothing hands back what it is given.
            None => match item {
                Item::Transit(_) => self.out.push(port, item),
                // The next machine is handed it.
                Item::Membership(_) => {}
                _ => self.dropped_while_stopped += 1,
            },
        }
    }

    fn wake(&mut self, now: Instant) {
        self.change(now);
        if let Some(machine) = &mut self.running {
            machine.wake(now);
        }
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.out.pop().or_else(|| {
            let (port, item) = self.running.as_mut()?.poll(now)?;
            self.told.note(port, &item);
            Some((port, item))
        })
    }

    fn deadline(&self) -> Option<Instant> {
        let own = self.running.as_ref().and_then(|machine| machine.deadline());
        earliest(own, self.changes.front().map(|&(at, _)| at))
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("restarts", self.restarts);
        report("dropped_while_stopped", self.dropped_while_stopped);
        self.before.iter().for_each(|(counter, value)| report(counter, *value));
        if let Some(machine) = &self.running {
            machine.counters(report);
        }
    }
}

/// Memberships that hold, each with the port that it crossed.
#[derive(Default)]
struct Memberships(BTreeSet<(Port, IpAddr, Option<IpAddr>, Option<u32>)>);

impl Memberships {
    /// Takes note of an item that crosses a port.
    fn note(&mut self, port: Port, item: &Item) {
        let Item::Membership(membership) = item else { return };
        let Membership { group, source, interface, joined } = *membership;
        let key = (port, group, source, interface);
        if joined {
            self.0.insert(key);
        } else {
            self.0.remove(&key);
        }
    }

    fn all(&self) -> impl Iterator<Item = (Port, Membership)> {
        self.0.iter().map(|&(port, group, source, interface)| {
            (port, Membership { group, source, interface, joined: true })
        })
    }
}
