//! A service's machine that events stop, start, and restart with other settings.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use hopcast_core::{Instant, Item, Machine, Outbox, Port, earliest};

use super::{HostConfig, ServiceLayer, ServiceRoutes};

/// A machine that is replaced at given times. While it is stopped it drops what arrives, and hands back what a hook is
/// given.
pub(crate) struct Restartable {
    running: Option<Box<dyn Machine>>,
    host: HostConfig,
    routes: Rc<dyn ServiceRoutes>,
    /// The changes to come, in the order of time: the settings of the new machine, or `None` where it is stopped.
    changes: VecDeque<(Instant, Option<ServiceLayer>)>,
    restarts: u64,
    dropped_while_stopped: u64,
    out: Outbox,
    /// The counters of machines that have been replaced.
    before: BTreeMap<&'static str, u64>,
}

impl Restartable {
    /// The machine of a service at a node of this host and these routes, with what events change there, in the order of
    /// time.
    pub(crate) fn new(
        service: &ServiceLayer,
        changes: impl IntoIterator<Item = (Instant, Option<ServiceLayer>)>,
        host: &HostConfig,
        routes: Rc<dyn ServiceRoutes>,
    ) -> Self {
        let changes = changes.into_iter().collect();
        let running = Some(service.settings().machine(host, &routes));
        Self {
            running,
            host: host.clone(),
            routes,
            changes,
            restarts: 0,
            dropped_while_stopped: 0,
            out: Outbox::new(),
            before: BTreeMap::new(),
        }
    }

    fn change(&mut self, now: Instant) {
        while let Some((_, to)) = self.changes.pop_front_if(|&mut (at, _)| at <= now) {
            self.restarts += u64::from(to.is_some());
            let new = to.map(|layer| layer.settings().machine(&self.host, &self.routes));
            if let Some(old) = std::mem::replace(&mut self.running, new) {
                old.counters(&mut |counter, value| *self.before.entry(counter).or_default() += value);
            }
        }
    }
}

impl Machine for Restartable {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.change(now);
        match &mut self.running {
            Some(machine) => machine.handle(now, port, item),
            // A hook that does nothing hands back what it is given.
            None => match item {
                Item::Transit(_) => self.out.push(port, item),
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
        self.out.pop().or_else(|| self.running.as_mut()?.poll(now))
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
