//! NORM: negative acknowledgements and erasure codes (RFC 5740, with RFC 5401, 5052 and 5510).
//!
//! A **session** is a group address and its members, each of which may send to all others; one is one machine, a
//! [`Session`]. What a member sends is a list of **objects**: data, files, and streams without end. An object is cut
//! into segments of one length, these are grouped into **blocks** of up to 64, and each block has parity symbols, any
//! of which stands in for any symbol that is lost ([`fec`]). [`wire`] has the messages.
//!
//! **A transfer without loss** is a row of NORM_DATA at the sender's rate, and NORM_CMD(FLUSH) at its end, a few
//! times, so that whoever lost the last packets learns of them. Receivers are silent.
//!
//! **With loss**, a receiver knows what it lacks of a block once the sender has gone on to the next. It draws a
//! back-off, so that of a large group few speak, and sends a NORM_NACK that names as many symbols as it lacks, of
//! parity where there is some left. Whoever hears that as much was asked for already stays silent. With feedback by
//! unicast the sender tells them, by NORM_CMD(REPAIR_ADV). The sender waits for others in the round, and then sends
//! as many parity symbols as the receiver asked for that lacks most: each stands in for another loss at each
//! receiver.
//!
//! A request counts as a *number of symbols lacked at a time*: what was sent of the block since then counts towards
//! it. So a request that crosses its answer on the way is not answered twice. And a receiver takes an answer for over
//! when it hears the sender go on to something else, not when a timer says so. Both are why a transfer takes seconds
//! where NACK timers of the group's round-trip time (**GRTT**) would take twice that. Parity that the group has asked
//! for in each block so far goes ahead of requests.
//!
//! **Timers follow the group**: the sender probes the GRTT by NORM_CMD(CC), and knows the number of receivers, or
//! estimates it from how many of them ask (RFC 5401); both stand in each of its packets, and scale the back-offs.
//!
//! **The rate** is fixed, or that of a TCP to the receiver with the worst path: receivers measure losses and their
//! round trips, and those that limit the rate answer each probe. A packet that a queue has marked (ECN) counts as
//! lost.
//!
//! **Ends**: NORM_CMD(EOT) when a sender leaves; NORM_CMD(SQUELCH) where somebody asks for what is no longer held;
//! positive acknowledgements of chosen receivers, asked for by NORM_CMD(FLUSH), say that all has arrived there.
//!
//! # Scope and departures
//!
//! - **One code**: Reed-Solomon over GF(2^8) as libnorm has it (encoding ids 5, 129, and 2 with m = 8; see [`fec`]),
//!   so at most 255 symbols a block.
//! - **The back-off follows the group**: RFC 5740 has a factor of 4 whatever the size. Up to 50 receivers it is 0, 1 or
//!   2 here: a few requests too many cost less than the time. In large groups it is as large as RFC 5401 needs for four
//!   NACKs a round, 9 for 10,000 receivers that tell the sender alone. [`SenderConfig::backoff`] sets another.
//! - **In a large group, of a factor of 5 and more, what is found missing later has a back-off of its own**: RFC 5740
//!   has one for all that is missing when it ends, so that many whose back-off for a block is about to end ask for the
//!   next one at once.
//! - **Feedback has sequence numbers of its own**, apart from those of a member's own sending, as section 4.1 asks
//!   for.
//! - **Who has the worst path** is found as RFC 5740 says, but receivers are spared their answers to a probe once the
//!   sender has said that it has heard of a lower rate, by unicast feedback too.
//! - **A stream's last block is protected once it is full**: its parity is made of all of its symbols. Up to there
//!   what is lost of it is asked for as it is, and lost to a receiver that does not ask. In a small group a request for
//!   it counts as a number too, and what that leaves out is asked for again; in a large one all that is named is sent.
//! - **Messages on a stream** have a length of two bytes before each, between members of ours. To others a stream is
//!   bytes, in which the starts of messages are marked as section 4.2.1 has it.
//! - **NORM_CMD(APPLICATION) is read and left to nobody**, and no signature is checked: who can send to the group can
//!   disturb it. What that can cost is bounded, and tests hold the bounds.

mod backlog;
mod config;
mod congestion;
pub mod fec;
mod receiver;
mod sender;
mod session;
pub mod wire;

pub use config::{Framing, RateControl, ReceiverConfig, SenderConfig};
pub use session::{Config, Session};

pub use crate::{Join, Order};

#[cfg(test)]
mod tests;
