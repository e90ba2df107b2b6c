//! The end of BBR's startup: the path is full when the bandwidth stops growing.

use super::units::{Bandwidth, Gain, UNIT};

/// The path is full when the bandwidth has not grown by a quarter in three round trips (Linux `bbr_full_bw_thresh`).
const FULL_GROWTH: Gain = UNIT * 5 / 4;
/// Number of those round trips (Linux `bbr_full_bw_cnt`).
const FULL_ROUNDS: u32 = 3;
/// The growth of the bandwidth.
#[derive(Clone, Debug, Default)]
pub(super) struct FullPath {
    /// The bandwidth from which growth is counted.
    pub(super) bandwidth: Bandwidth,
    /// Round trips without enough growth.
    pub(super) rounds: u32,
    /// Whether the path has been filled.
    pub(super) reached: bool,
}

impl FullPath {
    /// A round trip has ended that the application did not limit.
    pub(super) fn end_round(&mut self, bandwidth: Bandwidth) {
        if self.reached {
            return;
        }
        if bandwidth >= self.bandwidth * FULL_GROWTH / UNIT {
            self.bandwidth = bandwidth;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= FULL_ROUNDS;
    }

    /// Counts growth anew; a path that has been filled stays so.
    pub(super) const fn restart(&mut self) {
        self.bandwidth = 0;
        self.rounds = 0;
    }
}
