//! The changes of routes, and of which services run where, by a scenario's events.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use hopcast_core::{Instant, Item, Machine, Port, earliest};
use hopcast_stack::network::GlobalRoutes;

use crate::scenario::model::{Action, Event, Scenario, ServiceSpec};

/// Changes the routes by an event, with what they know of services.
pub(super) fn change_routes(routes: &mut GlobalRoutes, event: &Event, services: &[ServiceSpec]) {
    match &event.action {
        Action::Link { link, from, change } => _ = routes.change_link(*link, *from, change),
        Action::Service { service, .. } => routes.change_service(*service, &services[*service], event.at),
        Action::Start(_)
        | Action::Stop(_)
        | Action::Restart(_)
        | Action::Join { .. }
        | Action::Leave { .. } => {}
    }
}

/// A machine on a kernel, and the routes that it looks up, which follow the events of the scenario as the kernel's do.
pub(super) struct OnChangingRoutes<M> {
    machine: M,
    routes: Rc<RefCell<GlobalRoutes>>,
    services: Vec<ServiceSpec>,
    /// The events to come, each with the time at which routes follow it.
    changes: VecDeque<(Instant, Event)>,
}

impl<M> OnChangingRoutes<M> {
    pub(super) fn new(machine: M, scenario: &Scenario, routes: Rc<RefCell<GlobalRoutes>>) -> Self {
        let of_routes = |event: &&Event| matches!(event.action, Action::Link { .. } | Action::Service { .. });
        let follows = |event: &Event| (event.at + scenario.routing.convergence, event.clone());
        let changes = scenario.events.iter().filter(of_routes).map(follows).collect();
        Self { machine, routes, services: scenario.services.clone(), changes }
    }

    /// The machine.
    pub(super) const fn inner(&self) -> &M {
        &self.machine
    }

    fn change(&mut self, now: Instant) {
        while let Some((_, event)) = self.changes.pop_front_if(|&mut (at, _)| at <= now) {
            change_routes(&mut self.routes.borrow_mut(), &event, &self.services);
        }
    }
}

impl<M: Machine> Machine for OnChangingRoutes<M> {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.change(now);
        self.machine.handle(now, port, item);
    }

    fn wake(&mut self, now: Instant) {
        self.change(now);
        self.machine.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.machine.poll(now)
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.machine.deadline(), self.changes.front().map(|&(at, _)| at))
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.machine.counters(report);
    }
}
