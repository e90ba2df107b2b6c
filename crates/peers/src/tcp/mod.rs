//! TCP in virtual time: the rival that every study compares with, modelled on Linux 6.x.
//!
//! [`Tcp`] is a machine: below it a packet port, whole IP packets with TCP in them; above it a stream port. What
//! crosses the wire are real segments, so that a capture opens in Wireshark.
//!
//! # The protocol as a story
//!
//! An application opens a stream, and a SYN leaves that offers an MSS, window scaling, timestamps and selective
//! acknowledgements (`handshake`). Once the answer is there the application is granted the send buffer as
//! credit. What it writes is cut into segments when they leave, and kept until it is acknowledged (`send_buffer`).
//!
//! **Sending.** Two windows limit what is in flight: the peer's, and the congestion window. Each segment sent gets a
//! place on the `scoreboard`, in order of sequence and in order of transmission, with a note of the deliveries so far
//! (`rate`). CUBIC sends as acknowledgements arrive; BBR sends bursts at its pacing rate (`pacer`).
//!
//! **Receiving.** Segments are put in order (`receive`) and go up as far as the application has granted credit; what
//! waits takes space from the advertised window. Acknowledgements (`ack`) are sent for every second segment or after a
//! while, at once when something is missing, and say which blocks have arrived (`sack`).
//!
//! **An acknowledgement arrives** (`input`, then `sender`). The scoreboard learns what is delivered; the round trip
//! (`rtt`) and the delivery rate are measured. `rack` finds what is lost: sent before something that has been
//! delivered, and with its time for reordering over. The first loss begins a recovery (`recovery`), in which the window
//! comes down to what the congestion control says, proportionally (`prr`), while lost segments are sent again first
//! (`output`). If the tail is lost and nothing comes back, a probe after two round trips asks for it; if all is lost,
//! the retransmission timer goes off (`timeouts`). What turns out to have been needless is undone.
//!
//! **The congestion control** (`congestion`, by name in `controls`) sets the window: `cubic` with `hystart`, or `bbr`
//! with its `long_term` estimate and its allowance for `aggregation`.
//!
//! **Closing.** Each direction ends with its own FIN; the end that closed first remembers the connection for a minute
//! (`time_wait`).
//!
//! # What is modelled
//!
//! RFC 9293 with half-close, simultaneous open and close, resets, TIME-WAIT, zero-window probes, silly window avoidance
//! on both sides; RFC 7323 (timestamps, PAWS, scaling); RFC 2018, 2883 (SACK, D-SACK); RFC 6298 with Linux' variance
//! and its floor *under the variance*; RFC 8985 (RACK-TLP); RFC 6937 (PRR); RFC 5682 (F-RTO); RFC 3522 (Eifel) and
//! D-SACK undo; CUBIC as in `tcp_cubic.c`, RFC 9406 (HyStart++), RFC 7661-like window validation, slow start after
//! idle; BBR v1 as in `tcp_bbr.c`; Linux' quick acknowledgements and SACK compression; RFC 5961 challenge
//! acknowledgements; path MTU discovery by ICMP (RFC 1191, 8201) for what is outstanding (RFC 5927). How far that
//! carries is shown in `tests/acceptance.rs`, beside figures of a real kernel.
//!
//! # Bounds
//!
//! [`config::MAX_CONNECTIONS`], [`config::SYN_BACKLOG`] and [`config::MAX_TIME_WAIT`] connections; of each, the send
//! buffer, the receive buffer, and one segment out of order for each 512 bytes of the latter.
//!
//! # Scope and departures
//!
//! From Linux 6.x:
//!
//! - HyStart++ as in RFC 9406 instead of Linux' HyStart, as the configuration says. CUBIC looks ahead by the minimum
//!   round trip of the last five minutes, Linux by the minimum since the last timeout.
//! - The receive window is the whole receive buffer from the start, without autotuning; the send buffer is fixed too.
//!   Only payload counts towards them, not what the kernel's bookkeeping takes.
//! - No segmentation offload: segments leave one by one, in lumps of the size that Linux' autosizing would give a
//!   segmented packet (`deferral`). BBR's bursts and quanta have that size too; BBR defers nothing, since pacing is
//!   what holds it back.
//! - Timers are those of a kernel with 250 ticks a second (`wheel`), and all hosts' ticks coincide. The handshake's
//!   timer, TIME-WAIT and what a kernel has a high-resolution timer for are exact.
//! - Delayed acknowledgements wait a fixed time ([`Config::delayed_ack`]) instead of 40 to 200 ms by estimate, and
//!   there is no interactive mode. The receiver's own handshake round trip stands for its estimate in SACK compression.
//!   The application reads at once, so that nothing is merged on the way up (GRO).
//! - A segment keeps its boundaries for its life: a part that is selectively acknowledged counts once all of it is.
//!   After a smaller MTU or beside SACK blocks, one outstanding segment may leave as two packets, counted as one in
//!   flight.
//! - Under heavy loss Linux takes a few more segments for lost that are not (1.3 % of its retransmissions were in vain
//!   where 15 % are lost, 0.7 % of ours). BBR then takes a path for a policed one sooner: there it carries 0.7 of what
//!   ours does, and 0.83 where ours counts as many losses.
//! - The reordering threshold is learnt, and RACK's window with it; neither is ever unlearnt within a connection, and
//!   nothing is remembered from one connection to the next (no metrics cache).
//! - Neither ECN, fast open, MD5, authentication, urgent data, keep-alive, SYN cookies, Nagle's algorithm, path MTU
//!   probing, nor corking. FIN-WAIT-2 has no timeout: a half-closed connection may go on for ever.
//! - Without timestamps from the peer a segment is taken as it is (RFC 7323 would drop it).
//! - Reneging is found when the retransmission timer goes off and the first segment is marked as delivered, as in
//!   Linux.
//!
//! From RFC 9438, as in Linux:
//!
//! - Alpha is never set to 1 once the estimate of Reno's window has reached the window before the loss (section 4.3).
//! - The window does not take the estimate's value where that is larger: it grows by (estimate - window) / window for
//!   each segment acknowledged, both rounded down, and this step is kept for 1/32 s while the window stays. On short
//!   paths with light loss this makes it up to 1.5 times slower than the RFC.
//! - The target is the curve one minimum round trip ahead, not one smoothed round trip (section 4.2), in whole
//!   segments.
//! - Without a loss yet the window grows by at least 5 % a round trip.
//! - 717/1024 of the window remain after a loss, and 15/8 is 1/alpha.
//! - A timeout forgets the window before the loss (section 4.8 keeps it).
//!
//! From RFC 6298: as in Linux, 200 ms of minimum timeout, the first of 1 s; and the timer takes only those segments for
//! lost whose time by RACK is over.

mod ack;
mod bbr;
#[cfg(feature = "quic")]
pub(crate) mod bbr_adapter;
pub mod config;
mod congestion;
mod connection;
mod controls;
mod counters;
mod cubic;
mod deferral;
mod handshake;
mod hop_bbr;
mod hystart;
mod input;
mod minmax;
mod output;
mod pacer;
mod prr;
mod rack;
mod random_loss;
mod ranges;
mod rate;
mod receive;
mod recovery;
mod reno;
mod rtt;
mod sack;
mod scoreboard;
mod send_buffer;
mod sender;
mod seq;
#[allow(clippy::module_inception)]
mod tcp;
#[cfg(test)]
mod tests;
mod time_wait;
mod timeouts;
mod timer;
mod timestamps;
mod vegas;
mod wheel;
mod window;
mod wire;

pub use config::{Config, Congestion};
pub(crate) use hop_bbr::{Acked, HopBbr};
pub(crate) use rate::Snapshot;
pub use tcp::Tcp;
