//! A group of sites that share files and messages.
//!
//! A transport of the table brings what one member sends to all others; it repairs what the paths lose. What it does
//! not do is done here, for any transport alike:
//!
//! 1. A sender finds a file ([`disk`]), and **offers** its number to each member that is up. The members answer with
//!    **receipts**: they have it, or lack these pieces of it, or do not take it ([`wire`]). So a member that is back,
//!    or joins late, gets what it lacks as long as the file is there; and a sender that is started anew asks before
//!    it sends.
//! 2. The pieces that somebody lacks are messages of the transport, as many as a window has ([`transfer`]). Receipts
//!    for the pieces move it. What the transport gives up is offered again later ([`catalogue`]).
//! 3. A receiver writes pieces to a hidden file, which gets its name when all are there ([`incoming`]), and remembers
//!    its number.
//! 4. Messages of programs are datagrams of a second machine of the transport, so that files do not delay them, and
//!    are numbered ([`talk`]): receipts say how many came.
//!
//! Where the members of the transport hold messages for each other, none of that is needed: [`store_forward`].
//!
//! [`LocalMember`] is the machine that composes these. Ten times a second it takes what the disk says; the thread that
//! carries data tells it as often who is up.

pub(crate) mod catalogue;
pub(crate) mod disk;
pub(crate) mod incoming;
mod lane;
mod machine;
mod names;
mod pieces;
mod report;
mod statements;
mod store_forward;
mod talk;
#[cfg(test)]
mod tests;
mod transfer;
pub(crate) mod wire;

pub(crate) use machine::{LocalMember, MemberConfig};
pub(crate) use store_forward::{Other, StoreForward, StoringConfig};
