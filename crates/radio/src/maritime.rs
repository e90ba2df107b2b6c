//! MaritimeManet's radio, as its digital twin models it.
//!
//! From the thesis on multicast over MaritimeManet (2025), appendices E and F: table 7 has the rate by signal, table 8
//! the maximum distance of each rate between two ships of one size. The law behind table 8 is not printed. Fitted to
//! its 27 distances d, rounded down to metres, it is
//!
//! signal = 0.7378 dBm + g + g - 23.5 log10 d, where g is 0 dB for 6 antennas, 4 for 12 and 10 for 24:
//!
//! 24 distances to the metre, and the others within 0.003 dB, which is 1.2 m.
//!
//! # Departures
//!
//! - The last row of table 7 says "below -82: 1 Mbit/s, below -90: 0". The distances of 1 Mbit/s in table 8 are those
//!   of -89 dBm, so the table here ends there.
//! - Table 8 has ships of equal size alone, and so only the sum of both gains. Here each ship has half of it.
//! - What a beam does outside its sector is not printed; here it receives 20 dB less ([`FRONT_TO_BACK`]). A
//!   hysteresis below that has no effect: a ship hands over at the edge of a sector.

use hopcast_core::{Duration, Rate};

use crate::beams::{Pattern, Sunflower};
use crate::budget::{Channel, Radio};
use crate::propagation::Law;
use crate::rates::{RateRow, RateTable};

/// Signal in dBm at 1 m between two ships of 6 antennas: the fit.
pub const SIGNAL_AT_ONE_METRE: f64 = 0.7378;
/// Exponent of the distance: the fit.
pub const EXPONENT: f64 = 2.35;
/// Decibels between a beam's sector and all other directions. Chosen, as ITU-R M.2135 has it.
pub const FRONT_TO_BACK: f64 = 20.0;
/// Height of an antenna above the sea, in metres. Chosen; the twin's law does not use it.
pub const HEIGHT: f64 = 10.0;
/// One-way delay of a link (thesis, section 5).
pub const DELAY: Duration = Duration::from_millis(1);
/// Percent of frames that a link loses at any signal (thesis, section 5).
pub const LOSS_PERCENT: f64 = 0.2;

/// Table 7 down to -89 dBm: minimum signal in dBm, and rate in 100 kbit/s.
const RATES: [(f64, u64); 9] = [
    (-64.0, 650),
    (-65.0, 585),
    (-66.0, 520),
    (-70.0, 390),
    (-74.0, 260),
    (-77.0, 195),
    (-79.0, 130),
    (-82.0, 65),
    (-89.0, 10),
];

/// Size of a ship, by the antennas that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// 6 antennas.
    Small,
    /// 12 antennas.
    Medium,
    /// 24 antennas.
    Large,
}

impl Size {
    /// The size with a number of antennas; `None` unless that is 6, 12 or 24.
    pub const fn of_antennas(antennas: u8) -> Option<Self> {
        match antennas {
            6 => Some(Self::Small),
            12 => Some(Self::Medium),
            24 => Some(Self::Large),
            _ => None,
        }
    }

    /// The radio of a ship of this size.
    pub fn radio(self) -> Radio {
        let (beams, gain) = match self {
            Self::Small => (6, 0.0),
            Self::Medium => (12, 4.0),
            Self::Large => (24, 10.0),
        };
        let pattern = Pattern::Sector { front_to_back: FRONT_TO_BACK };
        let antennas = Sunflower::new(beams, gain, pattern).expect("6 to 24 beams");
        Radio::new(SIGNAL_AT_ONE_METRE, antennas, HEIGHT).expect("finite figures")
    }
}

/// The twin's channel: its law of distance and its table of rates, without shadowing.
pub fn channel() -> Channel {
    let row = |(signal, rate)| RateRow { signal, rate: Rate::from_bits_per_sec(rate * 100_000) };
    Channel {
        law: Law::LogDistance { reference: 0.0, exponent: EXPONENT },
        shadowing: None,
        rates: RateTable::new(RATES.map(row).to_vec()).expect("signals and rates that fall"),
    }
}
