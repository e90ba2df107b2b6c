//! The configuration of a QUIC, with quinn's values unless stated otherwise.

use hopcast_core::{Bytes, Duration};

/// Maximum number of streams that one end has opened; more wait until one is over. Chosen: it bounds memory.
pub const MAX_STREAMS: u32 = 1024;
/// Maximum number of connections; the peer's are refused beyond, and none is made. Chosen: it bounds memory.
pub const MAX_CONNECTIONS: usize = 16;
/// Minimum UDP payload of a path that QUIC can use: RFC 9000 section 14.
pub const MIN_DATAGRAM: u16 = 1200;
/// UDP payload that fills an Ethernet frame over IPv4: 1500 less the headers of IPv4 and UDP (RFC 791, RFC 768).
pub const DEFAULT_DATAGRAM: u16 = 1472;

/// The congestion control, which decides how much is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC, quinn's own, with quinn's pacing of 1.25 windows a round trip.
    Cubic,
    /// The BBR version 1 that this crate's TCP has, with its pacing.
    Bbr,
}

/// The settings of one QUIC endpoint; both ends should have the same [`datagram`](Self::datagram).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Congestion control. Default: CUBIC, as quinn has it.
    pub congestion: Congestion,
    /// Bytes of a stream that the peer may send ahead of what the application has taken, twice that for a connection,
    /// and twice that is kept of what the peer has not acknowledged. Default: 2,816 KiB, 100 Mbit/s over 230 ms;
    /// quinn's 1.25 MB are for 100 ms. Less than rate times round trip holds the sender back, where packets are lost
    /// less than twice that. More may end the connection: quinn-proto gives up a stream with over 1,024 gaps in what
    /// has arrived, which this many full packets cannot have.
    pub receive_window: Bytes,
    /// Every datagram's longest UDP payload in bytes, at least 1200. Default: 1472. Whoever builds the stack knows the
    /// path, so that it is not searched for; a datagram that does not fit is lost.
    pub datagram: u16,
    /// Time that the peer may be silent before the connection is given up, and its streams are reset. Default: 300 s,
    /// ten times quinn's: where half of the packets are lost, timeouts that double make a handshake take minutes. An
    /// idle connection sends nothing, and ends by this too.
    pub idle_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            congestion: Congestion::Cubic,
            receive_window: Bytes::new(2816 << 10),
            datagram: DEFAULT_DATAGRAM,
            idle_timeout: Duration::from_secs(300),
        }
    }
}
