//! Tests of hosts, in one program.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use hopcast_core::Machine;

mod errors;
mod frames;
mod groups;
mod hook;
mod hook_answers;
mod hostile;
mod link_scope;
mod membership;
mod neighbours;
mod neighbours_under_loss;
mod network;
mod ping;
mod querier;
mod querier_bounds;
mod querier_on_a_host;
mod segment;
mod shared_link;
mod udp;

/// The value of a machine's counter, which it has.
fn counter(machine: &dyn Machine, name: &str) -> u64 {
    let mut found = None;
    machine.counters(&mut |counter, value| {
        if counter == name {
            found = Some(value);
        }
    });
    found.unwrap_or_else(|| panic!("no counter {name}"))
}
