//! Tests of hosts, in one program.

#![allow(clippy::unwrap_used)] // in helpers of tests too

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
