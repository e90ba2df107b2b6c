//! Senders that list receivers, which come and go at given times.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Duration, Instant, Item, Machine, Port, earliest};

use crate::group::GroupEnd;

/// A receiver that comes or goes.
#[derive(Clone, Copy)]
struct Change {
    at: Instant,
    address: Ipv6Addr,
    joins: bool,
}

/// A sender whose receivers come and go at given times.
pub(super) struct TimedSender<S> {
    sender: S,
    /// Adds a receiver.
    join: fn(&mut S, Ipv6Addr),
    /// Takes a receiver out.
    leave: fn(&mut S, Ipv6Addr),
    /// The changes to come, in the order of time.
    changes: VecDeque<Change>,
}

impl<S: Machine> TimedSender<S> {
    /// The sender at an end of a flow, with how receivers join and leave it, made of those receivers that are there
    /// from the beginning, in the order of the file.
    pub(super) fn at(
        end: &GroupEnd<'_>,
        [join, leave]: [fn(&mut S, Ipv6Addr); 2],
        sender: impl FnOnce(Vec<Ipv6Addr>) -> S,
    ) -> Self {
        let mut changes = Vec::new();
        for member in end.flow.hearers(end.node) {
            let IpAddr::V6(address) = end.plan.address(member.node, true) else { continue };
            let change = |(at, joins)| Change { at, address, joins };
            changes.extend(member.changes(Duration::ZERO).into_iter().map(change));
        }
        changes.sort_by_key(|change| change.at);
        let begins = changes.iter().take_while(|change| change.at == Instant::ZERO && change.joins).count();
        let sender = sender(changes.drain(..begins).map(|change| change.address).collect());
        Self { sender, join, leave, changes: changes.into() }
    }

    /// The sender.
    pub(super) const fn sender(&self) -> &S {
        &self.sender
    }

    fn change(&mut self, now: Instant) {
        while let Some(Change { address, joins, .. }) = self.changes.pop_front_if(|change| change.at <= now) {
            match joins {
                true => (self.join)(&mut self.sender, address),
                false => (self.leave)(&mut self.sender, address),
            }
        }
    }
}

impl<S: Machine> Machine for TimedSender<S> {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.change(now);
        self.sender.handle(now, port, item);
    }

    fn wake(&mut self, now: Instant) {
        self.change(now);
        self.sender.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.sender.poll(now)
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.sender.deadline(), self.changes.front().map(|change| change.at))
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.sender.counters(report);
    }
}
