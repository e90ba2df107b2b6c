//! Hops that tell each other ranks: each repairs what it has lost, until its child has as many packets of a batch as
//! it.
//!
//! A [`store`] holds the batches of one [`direction`], and the [`sender`] for each child knows what that one still
//! [`need`]s of each. The rest is what every node does; [`strict`](super::strict) is the other way.

mod ahead;
mod direction;
mod margin;
mod marks;
mod need;
mod node;
mod sender;
mod sink;
mod store;
mod transmit;

pub(super) use node::Node;
#[cfg(test)]
pub(super) use node::Ranks;
