//! A group of sites that hold files and messages for each other.
//!
//! The transport's members hold what they hear, and bring it to whoever lacks it: what one site publishes reaches the
//! others also when it is gone, and through sites that only carry it on. So nothing is offered and no receipts come:
//!
//! 1. A file of the directory is published once, whole, as one message ([`outgoing`]); so is each message of a program,
//!    by a second machine of the transport, so that files do not delay them. Both say who published them ([`wire`]).
//! 2. A file that comes waits for the disk, and for room on it, and gets its name when it is written ([`arrivals`]).
//! 3. What the transport holds is kept in a [`Store`](crate::store::Store), with what was published and what waits. A
//!    node that is started anew takes all of it from there.
//!
//! [`StoreForward`] is the machine that composes these; [`files`] is its part with the disk, [`records`] that with the
//! store.

mod arrivals;
mod files;
mod machine;
mod outgoing;
mod records;
mod report;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use machine::{Other, StoreForward, StoringConfig};
