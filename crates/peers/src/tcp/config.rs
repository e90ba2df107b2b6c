//! The configuration of a TCP, with the defaults of Linux 6.x unless stated otherwise.

use hopcast_core::{Bytes, Duration};

/// Maximum number of connections; more are refused with a reset. Chosen: it bounds memory.
pub const MAX_CONNECTIONS: usize = 4096;
/// Maximum number of handshakes under way that peers have begun; SYNs beyond it are dropped, and come again. Chosen: it
/// bounds memory; with fewer, a burst of connections waits for a timeout.
pub const SYN_BACKLOG: usize = 256;
/// Maximum number of connections in TIME-WAIT; the oldest makes room. Chosen: it bounds memory; with fewer, a late
/// segment is answered with a reset sooner.
pub const MAX_TIME_WAIT: usize = 4096;

/// The settings of one TCP endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The congestion control. Default: CUBIC.
    pub congestion: Congestion,
    /// Selective acknowledgements (RFC 2018). Default: on.
    pub sack: bool,
    /// The congestion window before the first acknowledgement, in segments. Default: 10 (RFC 6928).
    pub initial_window: u32,
    /// The receive buffer, which bounds the advertised window. Default: 6 MiB, the ceiling of Linux's autotuning.
    /// Too small starves a long fat path; too large only costs memory.
    pub receive_buffer: Bytes,
    /// The send buffer: how far the application can be ahead of the acknowledgements. Default: 4 MiB.
    pub send_buffer: Bytes,
    /// Maximum length of a packet that the first link takes, in bytes, until an ICMP message says less. Default: 1500.
    /// Too large loses every full segment unless routers answer; too small costs headers.
    pub mtu: u32,
    /// Minimum retransmission timeout. Default: 200 ms (Linux; RFC 6298 says 1 s).
    pub min_rto: Duration,
    /// Maximum time that an acknowledgement is held back. Default: 40 ms (Linux); zero acknowledges every segment.
    pub delayed_ack: Duration,
    /// The hop limit of what is sent. Default: 64 (Linux). A longer path is not passed.
    pub hop_limit: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            congestion: Congestion::Cubic,
            sack: true,
            initial_window: 10,
            receive_buffer: Bytes::new(6 << 20),
            send_buffer: Bytes::new(4 << 20),
            mtu: 1500,
            min_rto: Duration::from_millis(200),
            delayed_ack: Duration::from_millis(40),
            hop_limit: 64,
        }
    }
}

/// A congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC as Linux 6.x has it, with HyStart++ (RFC 9406).
    Cubic,
    /// BBR version 1, as Linux 6.x has it, with pacing.
    Bbr,
    /// Reno (RFC 5681).
    Reno,
    /// Vegas, which reads congestion from round trips.
    Vegas,
}
