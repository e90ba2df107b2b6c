//! Settings that both ends and their helpers agree on.

use hopcast_code::field::Field as _;
use hopcast_code::field::{Gf2, Gf256};
use hopcast_code::rlnc::{Shape, packed_len};
use hopcast_core::Duration;

use super::lengths::{ENC, bitmap_len};

/// The settings of a FRANC segment. Encoder, decoder and helper need the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The field of the coefficients. Default: [`Field::Binary8`]; the paper's: [`Field::Binary`], with which more
    /// combinations say nothing new. Only what a helper recodes under [`Plan::Budget`] carries its coefficients, which
    /// take a byte instead of a bit each.
    pub field: Field,
    /// Number of symbols that are coded together, 1 to 255. Default: 64; the paper's: 150. More symbols make vectors
    /// and acknowledgements longer, fewer make blocks more often wait for their last symbols.
    pub block: u8,
    /// Bytes of a symbol. Default: what fills a frame of 1500 bytes. Larger ones do not fit the link.
    pub symbol: u16,
    /// Maximum number of unfinished blocks, 1 to 64. Default: 8; the paper's: 1. More keep the medium busy while
    /// feedback is rare, and need memory at all three nodes.
    pub window: u8,
    /// Rule by which the encoder and the helper choose packets to send.
    pub plan: Plan,
    /// Time that the encoder waits for an acknowledgement before it sends more. Default: 20 ms (paper, section IV).
    /// Shorter than an acknowledgement takes, it sends what nobody needs; longer, losses at the end of a burst wait.
    pub timeout: Duration,
    /// Whether a helper overhears the segment.
    pub helper: bool,
    /// The links' losses.
    pub links: Links,
    /// The queue at the encoder's input.
    pub queue: Queue,
    /// Interval of the decoder's acknowledgements while something is missing. Default: 5 ms. Each acknowledgement costs
    /// the medium about a quarter of a frame; until it comes, nobody sends again what was lost.
    pub ack_interval: Duration,
    /// The same interval while the encoder's input is behind, so that it is not the missing packets that are mainly
    /// waited for. Default: 20 ms.
    pub ack_interval_behind: Duration,
    /// The same interval where a frame of its own carries the acknowledgement along. Default: 4 ms.
    pub piggyback_interval: Duration,
    /// Maximum time that a symbol waits for more small packets to fill it, while there is nothing else to wait for.
    /// Default: 3 ms. Longer saves frames, such as those of TCP's acknowledgements, and delays them.
    pub gather: Duration,
    /// Maximum length of a packet above, in bytes. Default: 1500. With [`Plan::Budget`] a packet must fit a symbol.
    pub mtu: u16,
}

/// A field of coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// GF(2).
    Binary,
    /// GF(2^8).
    Binary8,
}

/// Division of the sending between the encoder and the helper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plan {
    /// The paper's: PlayNCool's budgets, spent symbol by symbol, and a timeout when they do not suffice. One packet a
    /// symbol, and an acknowledgement whenever the decoder has decoded all that it has heard of.
    Budget {
        /// Budgets are multiplied by this. The paper's: 1.05. More wastes packets, less waits for timeouts more often.
        overshoot: f64,
    },
    /// As many packets as are expected to be missing, corrected by every acknowledgement: the encoder completes what
    /// decoder and helper have together, the helper hands the decoder what it lacks. Packets fill symbols without
    /// regard to their edges.
    Deficit,
}

/// Source of the loss probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Links {
    /// Sequence numbers and what receivers report of them.
    Measured,
    /// From elsewhere, and fixed.
    Given(Losses),
}

/// The loss probabilities of the three links, in PlayNCool's names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// From the source to the helper.
    pub e1: f64,
    /// From the helper to the destination.
    pub e2: f64,
    /// From the source to the destination.
    pub e3: f64,
}

/// The discipline of the encoder's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// First in, first out, with a maximum number of packets: what the paper's implementation amounts to.
    Fifo {
        /// Maximum number of packets.
        packets: usize,
    },
    /// CoDel (RFC 8289), and a bound on the delay for senders that do not listen to it.
    CoDel {
        /// The acceptable standing delay.
        target: Duration,
        /// The time over which it must be seen standing.
        interval: Duration,
        /// No packet that has waited longer is sent.
        max_wait: Duration,
    },
}

/// A mistake in the settings; one line that names the setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A block without symbols.
    #[error("block: expected 1 to 255 symbols, found 0")]
    Block,
    /// A window that acknowledgements cannot report.
    #[error("window: expected 1 to 64 blocks, found {0}")]
    Window(u8),
    /// Symbols that are shorter than their headers are worth.
    #[error("symbol: expected at least 64 bytes, found {0}")]
    Symbol(u16),
    /// Packets that do not fit a symbol, where each packet is one.
    #[error("mtu: a packet of {mtu} bytes does not fit a symbol of {symbol}")]
    Mtu {
        /// Maximum length of a packet, in bytes.
        mtu: u16,
        /// A symbol, in bytes.
        symbol: u16,
    },
    /// A helper was wanted of settings that have none.
    #[error("helper: the segment's settings have none")]
    NoHelper,
}

impl Config {
    /// The paper's parameters (section IV): binary field, 150 symbols of 1450 bytes, 20 ms, 5 %, one block at a time.
    pub fn paper() -> Self {
        Self {
            field: Field::Binary,
            block: 150,
            symbol: 1450,
            window: 1,
            plan: Plan::Budget { overshoot: 1.05 },
            queue: Queue::Fifo { packets: 1000 },
            gather: Duration::ZERO,
            mtu: 1450 - 4,
            ..Self::default()
        }
    }

    /// The same with a helper, whose frames need a little room.
    #[must_use]
    pub fn with_helper(self) -> Self {
        Self { helper: true, ..self }.fitted()
    }

    /// The same over another field, with symbols that still fit.
    #[must_use]
    pub fn over(self, field: Field) -> Self {
        Self { field, ..self }.fitted()
    }

    /// The same with the largest symbol that fits; the paper's plan keeps its own if that does.
    fn fitted(self) -> Self {
        let symbol = FRAME.saturating_sub(self.overhead() as u16);
        match self.plan {
            Plan::Budget { .. } => Self { symbol: self.symbol.min(symbol), ..self },
            Plan::Deficit => Self { symbol, ..self },
        }
    }

    /// The first mistake in the settings, if there is any.
    ///
    /// # Errors
    ///
    /// The setting, and its fault.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let &Self { block, window, symbol, mtu, .. } = self;
        if block == 0 {
            return Err(ConfigError::Block);
        }
        if !(1..=64).contains(&window) {
            return Err(ConfigError::Window(window));
        }
        if symbol < 64 {
            return Err(ConfigError::Symbol(symbol));
        }
        if matches!(self.plan, Plan::Budget { .. }) && mtu > symbol - 4 {
            return Err(ConfigError::Mtu { mtu, symbol });
        }
        Ok(())
    }

    /// Maximum length of a frame that any of the three sends, in bytes behind the Ethernet header.
    pub fn longest_frame(&self) -> usize {
        self.overhead() + usize::from(self.symbol)
    }

    /// Maximum length of the headers before a symbol, in bytes.
    fn overhead(&self) -> usize {
        let sum = ENC + bitmap_len(self.block);
        match self.plan {
            _ if !self.helper => sum,
            // Its helper sends symbols as they are.
            Plan::Deficit => sum.max(ENC + 1 + self.report_len()),
            Plan::Budget { .. } => sum.max(ENC + self.vector_len() + self.report_len()),
        }
    }

    /// Length of a helper's report, in bytes.
    pub(super) fn report_len(&self) -> usize {
        match self.plan {
            Plan::Budget { .. } => 4,
            Plan::Deficit => 8 + bitmap_len(self.block),
        }
    }

    pub(super) fn vector_len(&self) -> usize {
        let block = usize::from(self.block);
        match self.field {
            Field::Binary => packed_len::<Gf2>(block),
            Field::Binary8 => packed_len::<Gf256>(block),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        // `validate` has seen to both numbers.
        Shape::new(usize::from(self.block.max(1)), usize::from(self.symbol.max(1)))
            .expect("a shape within bounds")
    }

    /// A number that differs where settings do that both ends must share.
    pub(super) fn profile(&self) -> u32 {
        let bits = match self.field {
            Field::Binary => Gf2::BITS,
            Field::Binary8 => Gf256::<0x11D>::BITS,
        };
        u32::from(self.symbol) << 16 | u32::from(self.block) << 8 | bits
    }
}

/// Maximum payload of an Ethernet frame, in bytes (IEEE 802.3, section 3.2.7).
const FRAME: u16 = 1500;

impl Default for Config {
    fn default() -> Self {
        let config = Self {
            field: Field::Binary8,
            block: 64,
            symbol: 0,
            window: 8,
            plan: Plan::Deficit,
            timeout: Duration::from_millis(20),
            helper: false,
            links: Links::Measured,
            queue: Queue::CoDel {
                target: Duration::from_millis(5),
                interval: Duration::from_millis(40),
                max_wait: Duration::from_millis(100),
            },
            ack_interval: Duration::from_millis(5),
            ack_interval_behind: Duration::from_millis(20),
            piggyback_interval: Duration::from_millis(4),
            gather: Duration::from_millis(3),
            mtu: 1500,
        };
        config.fitted()
    }
}
