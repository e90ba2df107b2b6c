//! KCP in virtual time: a retransmitting protocol over UDP that trades bandwidth for delay, as kcptun runs it.
//!
//! [`Kcp`] is a machine: below it a datagram port, to one remote; above it a stream port. The protocol itself is the
//! `kcp` crate's, a port of skywind3000's `ikcp.c`: it takes the time in milliseconds, reads no clock and draws no
//! random number, so the same run twice is the same run. What is here drives it, guards it, and adds what kcptun adds.
//!
//! # The protocol as a story
//!
//! A *conversation* is what two ends with the same number `conv` say to each other. Its bytes are cut into segments of
//! at most an MTU less 24 bytes of header (`wire`), numbered from zero. There is no handshake.
//!
//! **Sending.** As many segments are in flight as the send window, the peer's receive window and, if it is on, a
//! congestion window in the manner of Reno allow. With `nc 1`, as here, it is off: KCP never slows down for loss.
//!
//! **Acknowledging.** Each segment is acknowledged by its own number, with the sender's time stamp sent back, so that
//! round trips are measured on repeated segments too; and every header says up to where all has arrived (`una`). What
//! is to be acknowledged is gathered until the next tick of `interval`, so that a tick is part of each round trip.
//!
//! **Repeating.** A segment is lost if it is not acknowledged within its timeout: the round trip and four deviations,
//! at least 30 ms in `nodelay`, growing by half each time and not doubling; or once `resend` datagrams have
//! acknowledged later ones, up to five times. Where no congestion window suffers from it, repeating too early only
//! costs bandwidth, and that is what KCP pays with.
//!
//! **Back-pressure.** What the application does not take waits in the receive window; when that is closed, the sender
//! asks for it after 7 s, then half as long again each time (`IKCP_PROBE_INIT`).
//!
//! **Parity** (`fec`). kcptun puts Reed-Solomon parity under it: each 10 datagrams are followed by 3, and any 10 of the
//! 13 give back the rest, so that most losses do not cost a round trip: [`Config::FAST3_FEC`].
//!
//! # How streams begin and end
//!
//! KCP knows neither. kcptun has smux above it, which puts many streams into one conversation. Here each stream is a
//! conversation of its own with a number drawn from a seeded stream, and this much of our own is added:
//!
//! - The bytes of a conversation are records of two bytes of length (`records`). The opener's first record says only
//!   that it opens, a record of length zero says that this direction is over, and the other goes on.
//! - A reset is a bare header with a command that KCP does not have (85). It is sent once; whoever still speaks in a
//!   conversation that was reset, or never was, is reset again.
//! - A conversation that is over is remembered (`remembered`): what comes late opens nothing, and who missed the last
//!   acknowledgement is given it again.
//! - A peer that owes acknowledgements and says nothing for 30 s is given up, as smux does.
//!
//! The opener learns that its stream stands from whatever comes back first, and then has credit for two windows: one in
//! flight, one queued.
//!
//! # What arrives may be anything
//!
//! The crate's differences of numbers overflow, where they are checked, on numbers and times that are far apart, and a
//! fragment's count does. So a datagram is read before KCP reads it: only of a known conversation, acknowledging only
//! what has been sent and time stamps that have been, no longer than a segment, not a fragment. A conversation ends
//! before its numbers or its clock reach 2^30. Nothing is authenticated: who can guess `conv` can end a conversation.
//!
//! # Bounds
//!
//! [`config::MAX_CONVERSATIONS`] and [`config::MAX_REMEMBERED`] conversations; of each, two send windows and two
//! receive windows of segments, and as many acknowledgements as fill a datagram; of parity, four groups.
//!
//! # Scope and departures
//!
//! How near it comes to kcptun is shown in `tests/figures.rs`: 17.2 Mbit/s (16.8 to 17.5 with ten seeds) with the
//! window of kcptun's client, where 16.7 were measured.
//!
//! From kcptun and its kcp-go, which is another implementation of the same protocol:
//!
//! - [`Config::eager`] sends at once what acknowledgements and writes allow, as kcp-go does. But kcp-go repeats a
//!   segment early only once between timeouts, and the last ones after a single later acknowledgement; it counts each
//!   acknowledgement, and only of what was sent no earlier than the segment; its timeouts grow by half a round trip;
//!   and it asks for a closed window after half a second. Here these are as in `ikcp.c`.
//! - Of several acknowledgements in one datagram the highest counts for the segments before it. That is the crate's
//!   feature `fastack-conserve`, by which it means the opposite of what `ikcp.c` does: without it, as in `ikcp.c`
//!   today, only those of segments sent later count. kcp-go lies between the two. The feature is on since it comes
//!   nearer to what was measured; without it the figure above is 15.3 Mbit/s (14.9 to 15.9), with 12 % of segments sent
//!   being repetitions instead of 16 %.
//! - Neither encryption (kcptun's default costs 20 bytes a datagram) nor compression, neither smux nor its 8-byte
//!   frames.
//! - Parity is computed from another matrix (`hopcast_code::reed_solomon`) than klauspost's, so it would not be
//!   understood; everything else of a datagram is as kcp-go sends it. Both ends must be set to the same group: there is
//!   no auto-tuning. The round trip is taken from recovered acknowledgements too. All streams of one [`Kcp`] share
//!   groups.
//!
//! From `ikcp.c`: streams only, no messages, so no fragments; a segment that was sent 20 times does not end the
//! conversation (kcp-go ignores it too), silence does; acknowledgements that fill a datagram do not wait for the tick.

pub mod config;
mod conversation;
mod counters;
mod fec;
mod lower;
mod machine;
mod output;
mod records;
mod remembered;
mod wire;

#[cfg(test)]
mod tests;

pub use config::{Config, Fec};
pub use machine::Kcp;
