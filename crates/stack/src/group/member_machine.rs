//! The machine at a receiver of a flow to a group: joins it and leaves it at the times of the file.

use std::collections::VecDeque;
use std::net::IpAddr;

use hopcast_core::{Duration, Instant, Item, Machine, Membership, Outbox, Port};

use super::{GroupEnd, Member};

/// Joins a group on the host below it, and leaves it, at given times; everything else passes.
pub(crate) struct MemberMachine {
    group: IpAddr,
    source: Option<IpAddr>,
    /// The changes to come, in the order of time.
    changes: VecDeque<(Instant, bool)>,
    out: Outbox,
}

impl MemberMachine {
    /// A member of `group`, of one `source` if there is one, at `times`, that goes on to receive for `linger` after
    /// each leave.
    pub(crate) fn new(group: IpAddr, source: Option<IpAddr>, times: &Member, linger: Duration) -> Self {
        let changes = times.changes(linger).into();
        Self { group, source, changes, out: Outbox::new() }
    }

    /// The one that joins `group` at an end of a flow; `None` where that never listens.
    pub(crate) fn at(end: &GroupEnd<'_>, group: IpAddr, source: Option<IpAddr>) -> Option<Self> {
        let times = end.flow.listener(end.node)?;
        let member = Self::new(group, source, &times, end.flow.group.linger);
        Some(if end.on_kernel { member.announced() } else { member })
    }

    /// The same machine, which reports at the start that it is no member, if it is none: a socket of the kernel is
    /// opened at the start then, and not at the join, where opening it would cost time.
    pub(crate) fn announced(mut self) -> Self {
        if self.changes.front().is_some_and(|&(at, _)| at > Instant::ZERO) {
            self.changes.push_front((Instant::ZERO, false));
        }
        self
    }

    /// The times at which it joins or leaves.
    pub(crate) fn times(&self) -> impl Iterator<Item = Instant> {
        self.changes.iter().map(|&(at, _)| at)
    }
}

impl Machine for MemberMachine {
    fn handle(&mut self, _now: Instant, port: Port, item: Item) {
        match port {
            Port::Above(_) => self.out.down(item),
            Port::Below(_) => self.out.up(item),
        }
    }

    fn wake(&mut self, now: Instant) {
        while let Some((_, joined)) = self.changes.pop_front_if(|&mut (at, _)| at <= now) {
            let Self { group, source, .. } = *self;
            self.out.down(Item::Membership(Membership { group, source, interface: None, joined }));
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        self.changes.front().map(|&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The changes that the machine makes: seconds, and whether it joins.
    fn changes(spans: &[(u64, Option<u64>)]) -> Vec<(u64, bool)> {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let spans = spans.iter().map(|&(from, to)| (at(from), to.map(at))).collect();
        let times = Member { node: 0, spans };
        let mut machine =
            MemberMachine::new(IpAddr::from([239, 0, 0, 1]), None, &times, Duration::from_secs(1));
        let mut found = Vec::new();
        while let Some(now) = machine.deadline() {
            machine.wake(now);
            while let Some((Port::Below(0), Item::Membership(change))) = machine.poll(now) {
                found.push((now.as_nanos() / 1_000_000_000, change.joined));
            }
        }
        found
    }

    #[test]
    fn it_joins_and_leaves_at_its_times_and_lingers() {
        assert_eq!(changes(&[(0, Some(5)), (8, None)]), [(0, true), (6, false), (8, true)]);
    }

    #[test]
    fn who_is_back_within_the_linger_never_leaves() {
        assert_eq!(changes(&[(0, Some(5)), (6, Some(7))]), [(0, true), (8, false)]);
    }
}
