//! BATS without rank feedback.

mod account;
mod block;
mod code;
mod heard;
mod hop;
mod meter;
mod node;
mod order;
mod path;
mod plan;
mod ring;
mod sink;
mod source;
mod transmit;
mod way;

pub(super) use account::Account;
pub(super) use node::Node;
