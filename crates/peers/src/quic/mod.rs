//! QUIC in virtual time: streams over UDP with acknowledgements by packet number, as quinn has it.
//!
//! [`Quic`] is a machine: below it a datagram port, to one remote; above it a stream port. The protocol itself is the
//! `quinn-proto` crate's: it receives the time as an argument and keeps no socket. What is here drives it in virtual
//! time, takes all that it would draw by lot from a seed, and puts a cryptography under it that is reproducible
//! (`crypto`).
//!
//! # The protocol as a story
//!
//! **Opening.** The application that opens the first stream opens a connection. A hello is sent in a datagram filled up
//! to the path's MTU; the answer with the certificates comes back in two; the client's *finished* goes together with
//! the first data, one round trip after the hello (RFC 9001). A client that has lost the answer repeats its hello after
//! a second, then two, then four; and the answer to what was repeated may make the first round trip look like a second,
//! so that the timeouts after it are of several (RFC 9002 section 6.2). On paths that lose much this decides how soon a
//! transfer begins.
//!
//! **Sending.** Each stream of the application is a bidirectional stream of the connection. Packets are numbered, each
//! number is sent once, and what was in a lost packet goes into another one. Acknowledgements name ranges of numbers,
//! so that, other than over TCP, a round trip is never ambiguous and no lost repetition waits for a timeout.
//!
//! **Losing.** A packet is lost once one sent three or more later is acknowledged, or one later and 9/8 of a round trip
//! have passed (RFC 9002 section 6.1, not adaptive as TCP's RACK is: what is overtaken by more is sent again, and CUBIC
//! slows down for it). If nothing is acknowledged at all, two probes are sent after a timeout that doubles.
//!
//! **Pacing.** `quic` is quinn's CUBIC, with bursts of at least ten packets at 1.25 windows a round trip. `quic-bbr` is
//! the BBR that this crate's TCP has, with its pacing (`bbr`): quinn-proto's own draws from the machine's entropy.
//!
//! **Back-pressure.** The receiver grants [`Config::receive_window`] ahead of what its application has taken. Above,
//! the application may write half a mebibyte ahead of what is on the wire.
//!
//! # How streams begin and end
//!
//! QUIC announces a stream to the other end with the first of its bytes. So that who accepts may be the first to speak,
//! the opener's first byte is not the application's. Half-closing and resets are QUIC's own. A connection is never
//! closed: when all is said it is silent, and is forgotten after [`Config::idle_timeout`].
//!
//! # Determinism
//!
//! Connection ids, packet numbers that are skipped, key phases and the handshake's random bytes come from the seed. The
//! time of day reaches nothing: there are no tokens, which alone have one. quinn-proto wants the standard library's
//! instants, which cannot be made without a clock: `clock` reads it once, and only differences are used. That is why
//! this module is a cargo feature, `quic`, which is off where there is no clock.
//!
//! # What arrives may be anything
//!
//! quinn-proto reads what arrives. A packet whose tag is wrong is dropped, so that who does not know the connection ids
//! can end nothing. The cryptography hides nothing: who sees packets can forge them.
//!
//! # Bounds
//!
//! [`config::MAX_CONNECTIONS`] connections, [`config::MAX_STREAMS`] streams that each end has opened on one of them,
//! and as many that wait; of a connection, two receive windows of what is not acknowledged and two of what is not read,
//! and of each stream half a mebibyte that QUIC has not taken.
//!
//! # Scope and departures
//!
//! - No secrecy. Packets are as long as real ones, but Wireshark cannot open them: it finds keys that do not fit.
//! - The sizes of the handshake's messages are of our own choice (`crypto::session`). Neither resumption nor 0-RTT.
//! - The path's MTU is given, not searched for; segmentation offload, spin bit, greasing, migration, and address
//!   validation by tokens are off; congestion marks do not get through to it.
//! - From quinn's defaults: receive windows of 2,816 KiB instead of 1.25 MB, 1024 streams instead of 100, and an idle
//!   timeout of 300 s instead of 30.
//! - BBR counts full datagrams where it counts segments in TCP. A recovery lasts while each round trip loses something,
//!   as with TCP's, and not for one round trip as RFC 9002 has it.

mod bbr;
mod clock;
pub mod config;
mod connection;
mod counters;
mod crypto;
mod machine;
mod stream;
mod wire;

#[cfg(test)]
mod tests;

pub use config::{Config, Congestion};
pub use machine::Quic;
