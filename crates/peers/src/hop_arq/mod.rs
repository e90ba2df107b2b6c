//! Selective repeat on each hop: the honest competitor of network coding.
//!
//! Each hop repeats what it loses itself, within its own round trip, and passes on at once whatever arrives, in any
//! order; only the far end puts the bytes in order. On links that lose independently this reaches what the links carry,
//! as coding does: a packet that is lost on a hop costs that hop one more transmission, and nobody else anything. What
//! it needs for that, coding does not: an acknowledgement for each packet, in time, over each hop. [`HopArq`] is an
//! edge or a relay.
//!
//! # The protocol as a story
//!
//! **A hop** (`outgoing`, `incoming`). Every transmission has a *number* of its own, and every chunk of a stream an
//! *index* that stays, as QUIC has it with packets and offsets: so an acknowledgement is never ambiguous, a round trip
//! never wrong, and a retransmission lost in its turn is found as quickly. Acknowledgements name the numbers that have
//! arrived in runs. A transmission is lost once a later one has arrived; where the path turns out to let packets
//! overtake each other, once a later one has arrived for so long. A lost tail is found by a timeout of a round trip and
//! its variance, and at least a millisecond.
//!
//! **How fast** (`tcp::hop_bbr`). BBR's model of the path sets window and pace of each hop. A loss without a queue is
//! the link's own and counts as delivered (`tcp::random_loss`); other losses are hidden from BBR.
//!
//! **Silence** (`silence`). On one hop nothing heard is no congestion. The window has room for as many packets as
//! have lately passed between two acknowledgements; after a timeout probes go on at up to a tenth of the link, and ever
//! more seldom only where hundreds are not answered.
//!
//! **Back-pressure.** A relay whose onward path does not take what arrives asks for a pause, and for its end; since
//! that word may be lost, whoever pauses asks now and then with a packet.
//!
//! **Streams** (`edge`, `stream`). The ends cut streams into chunks, and grant each other bytes for each stream, so
//! that a reader who does not read holds nobody else up. The opener's first grant opens the stream, the other's answer
//! makes it stand.
//!
//! **When a node is lost.** What a relay had acknowledged and not passed on is lost with it. Neighbours notice, since
//! nobody knows their session, or nothing is acknowledged for [`Config::silence`] and 200 probes, and say so to both
//! ends, where all streams are reset.
//!
//! # Bounds
//!
//! [`config::MAX_STREAMS`] streams, of each a send and a receive buffer, which have no bound in common; for each hop,
//! at most [`config::MAX_HELD`] chunks that are not acknowledged, and as many that wait, since what is not paused in
//! time is not in the window either. So a hop carries no more than 8,192 chunks in a round trip, 158 Mbit/s over 600
//! ms. Of [`config::MAX_AHEAD`] chunks beyond the first that has not arrived each end knows which have, so that one
//! that is lost many times in a row does not hold the others up: 24 bytes each at the sender, fewer at the receiver.
//!
//! # Scope
//!
//! Where the queue before a link holds hardly more than two packets, its drops look like the link's own losses:
//! the link is filled all the same, and sent up to several times what it takes.
//!
//! A rival for studies: nothing is authenticated, there is no version, and all nodes have the same settings.

pub mod config;
mod counters;
mod edge;
mod hop;
mod incoming;
mod machine;
mod outgoing;
mod silence;
mod stream;
#[cfg(test)]
mod tests;
mod wire;

pub use config::Config;

/// The bytes of a full packet before those of the stream.
pub const OVERHEAD: u64 = (wire::PACKET_HEADER + wire::CHUNK_HEADER) as u64;
pub use machine::HopArq;
