//! The machine: one for each kind of feedback.

use std::net::SocketAddr;

use hopcast_core::{Instant, Item, Machine, Port, Stream};

use super::config::{Config, Feedback};
use super::{ranks, strict};

/// A node on the path of a session: an edge, where data enters and leaves, or a relay.
///
/// | port | carries |
/// |---|---|
/// | `Below(0)` | UDP datagrams, to and from the neighbours |
/// | `Above(0)`, at an edge | units (a UDP datagram's payload each), and where delivery is reliable, streams |
pub struct Node(Kind);

enum Kind {
    Ranks(Box<ranks::Node>),
    Strict(Box<strict::Node>),
}

impl Node {
    /// The edge at `local`, whose application talks as `ends.0` to `ends.1`, with the neighbours that lead to the other
    /// edge. What tells its session from those of others is drawn from `random`, of which no two edges may have the
    /// same.
    pub fn edge(
        config: Config,
        local: SocketAddr,
        ends: (SocketAddr, SocketAddr),
        neighbours: &[SocketAddr],
        random: Stream,
    ) -> Self {
        Self(match config.feedback {
            Feedback::Ranks => {
                Kind::Ranks(Box::new(ranks::Node::edge(config, local, ends, neighbours, random)))
            }
            Feedback::None => {
                Kind::Strict(Box::new(strict::Node::edge(config, local, ends, neighbours, random)))
            }
        })
    }

    /// The relay at `local` between some neighbours and others; what comes from any on one side goes to all on the
    /// other.
    pub fn relay(
        config: Config,
        local: SocketAddr,
        left: &[SocketAddr],
        right: &[SocketAddr],
        random: Stream,
    ) -> Self {
        Self(match config.feedback {
            Feedback::Ranks => Kind::Ranks(Box::new(ranks::Node::relay(config, local, left, right, random))),
            Feedback::None => Kind::Strict(Box::new(strict::Node::relay(config, local, left, right, random))),
        })
    }

    fn machine(&self) -> &dyn Machine {
        match &self.0 {
            Kind::Ranks(node) => &**node,
            Kind::Strict(node) => &**node,
        }
    }

    fn machine_mut(&mut self) -> &mut dyn Machine {
        match &mut self.0 {
            Kind::Ranks(node) => &mut **node,
            Kind::Strict(node) => &mut **node,
        }
    }

    /// The node with rank feedback, for tests that look into it.
    #[cfg(test)]
    pub(super) fn ranked(&self) -> &ranks::Node {
        let Kind::Ranks(node) = &self.0 else { panic!("a node without rank feedback") };
        node
    }

    /// The node without rank feedback, for tests that look into it.
    #[cfg(test)]
    pub(super) fn strict(&self) -> &strict::Node {
        let Kind::Strict(node) = &self.0 else { panic!("a node with rank feedback") };
        node
    }

    /// The state, for the message of a test that fails.
    #[cfg(test)]
    pub(super) fn state(&self) -> String {
        match &self.0 {
            Kind::Ranks(node) => node.state(),
            Kind::Strict(node) => node.state(),
        }
    }
}

impl Machine for Node {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.machine_mut().handle(now, port, item);
    }

    fn wake(&mut self, _now: Instant) {
        // Of either kind: whatever is due is found when polled.
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.machine_mut().poll(now)
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine().deadline()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.machine().counters(report);
    }
}
