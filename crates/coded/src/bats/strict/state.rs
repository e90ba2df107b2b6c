//! The state of a node, for tests.

use core::fmt::Write as _;

use super::super::hop::OverHop as _;
use super::direction::Role;
use super::node::Node;

impl Node {
    /// Number of batches that it holds, and of blocks.
    pub(in super::super) fn held(&self) -> (usize, usize) {
        let directions = || self.directions.iter().flatten();
        let blocks = directions().map(|direction| match &direction.role {
            Role::Source(source) => source.held(),
            Role::Sink(sink) => sink.held(),
            Role::Relay => 0,
        });
        (directions().map(|direction| direction.ring.len()).max().unwrap_or(0), blocks.max().unwrap_or(0))
    }

    /// The state, for the message of a test that fails.
    pub(in super::super) fn state(&self) -> String {
        let mut state = String::new();
        for n in &self.neighbours {
            _ = write!(
                state,
                "to {}: could {} rate {:?} srtt {:?} min {:?} loss {:.3} backlog {} {} deadline {:?} due {:?}; ",
                n.address,
                self.could_make(n.out),
                n.sender.hop.rate.rate(),
                n.sender.hop.rate.srtt(),
                n.sender.hop.rate.min_rtt(),
                n.sender.quality().loss(),
                n.sender.backlog(),
                n.sender.state(),
                n.sender.deadline(self.could_make(n.out)),
                n.receiver.due(),
            );
        }
        for direction in self.directions.iter().flatten() {
            _ = write!(
                state,
                "direction {} floor {} budget {:.2} ring {}..{} next {:?}; ",
                direction.session.mark,
                direction.floor(),
                direction.budget,
                direction.ring.first(),
                direction.ring.end(),
                direction.next_event(),
            );
            if let Role::Source(source) = &direction.role {
                state += &source.state();
            }
        }
        state
    }
}
