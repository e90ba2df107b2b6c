//! The configuration of a KCP, with the values of kcptun's `fast3` unless stated otherwise.

use hopcast_code::reed_solomon::{Code, Error};
use hopcast_core::Duration;

/// Maximum number of conversations; more are refused with a reset. Chosen: it bounds memory.
pub const MAX_CONVERSATIONS: usize = 1024;
/// Maximum number of conversations that are over and still answered for; the oldest makes room. Chosen: it bounds
/// memory; with fewer, a late segment of an older one is taken for a new one.
pub const MAX_REMEMBERED: usize = 4096;
/// Range of [`Config::mtu`]. Chosen: less leaves hardly a payload, more is no UDP datagram.
pub const MTU: core::ops::RangeInclusive<u16> = 200..=65_000;

/// The settings of one KCP endpoint; both ends should have the same [`mtu`](Self::mtu) and [`fec`](Self::fec).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Minimum timeouts of 30 ms that grow by half each time, instead of 100 ms that double. Default: on.
    pub nodelay: bool,
    /// The clock at which acknowledgements and timeouts are looked after, between 10 ms and 5 s. Default: 10 ms. Longer
    /// saves packets, and adds to every round trip.
    pub interval: Duration,
    /// Number of later acknowledgements that make a segment lost. Default: 2; 0 leaves it to the timeout. Too few
    /// repeat what was merely overtaken.
    pub resend: u32,
    /// KCP's own congestion window, in the manner of Reno. Default: off (`nc 1`), so that only the windows limit it.
    pub congestion_control: bool,
    /// Segments in flight. Default: 1024, as kcptun's server has it, which is the end that sends in a download, and as
    /// the scenario language sets a real kcptun at both ends; kcptun's client has 128. The rate is at most this many
    /// segments in a round trip, so fewer leave a long path idle; without a congestion window nothing else holds it
    /// back, so more than the path holds fill its queue and are repeated there.
    pub send_window: u16,
    /// Segments that wait for the application or for one before them; KCP makes it at least 128. Default: 1024, as
    /// kcptun's server has it; its client has 512.
    pub receive_window: u16,
    /// Maximum length of a UDP payload, in bytes. Default: 1350.
    pub mtu: u16,
    /// Whether to send at once what an acknowledgement or a write allows, as kcptun does, instead of at the next tick,
    /// as the original does. Default: on.
    pub eager: bool,
    /// Reed-Solomon parity over datagrams. Default: none; [`FAST3_FEC`](Self::FAST3_FEC) has kcptun's.
    pub fec: Option<Fec>,
    /// Time that a peer may owe an acknowledgement and send nothing at all before its stream is reset. Default: 30 s,
    /// as kcptun's sessions have it.
    pub silence: Duration,
}

impl Config {
    /// kcptun's `fast3` (nodelay 1, interval 10, resend 2, nc 1) without parity.
    pub const FAST3: Self = Self {
        nodelay: true,
        interval: Duration::from_millis(10),
        resend: 2,
        congestion_control: false,
        send_window: 1024,
        receive_window: 1024,
        mtu: 1350,
        eager: true,
        fec: None,
        silence: Duration::from_secs(30),
    };

    /// The same with kcptun's parity.
    pub const FAST3_FEC: Self = Self { fec: Some(Fec::KCPTUN), ..Self::FAST3 };
}

impl Default for Config {
    fn default() -> Self {
        Self::FAST3
    }
}

/// Number of parity datagrams, and of KCP's that they follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fec {
    data: u8,
    parity: u8,
}

impl Fec {
    /// kcptun's `datashard` 10 and `parityshard` 3.
    pub const KCPTUN: Self = Self { data: 10, parity: 3 };

    /// `parity` datagrams after each `data` of them.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] unless there is data, and together they are at most 255.
    pub fn new(data: u8, parity: u8) -> Result<Self, Error> {
        Code::new(data.into(), parity.into()).map(|_| Self { data, parity })
    }

    /// Datagrams of KCP's in a group.
    pub fn data(self) -> usize {
        self.data.into()
    }

    /// Parity datagrams in a group.
    pub fn parity(self) -> usize {
        self.parity.into()
    }
}
