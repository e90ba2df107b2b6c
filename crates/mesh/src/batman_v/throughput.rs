//! Throughput, in units of 100 kbit/s: of links, of paths, and what a hop takes of it.

use hopcast_core::Rate;

/// Throughput of a link about which nothing is known, 1 Mbit/s (`BATADV_THROUGHPUT_DEFAULT_VALUE`).
pub(super) const DEFAULT: u32 = 10;
/// A path of no more than this is not halved where it enters and leaves by one radio, 1 Mbit/s.
const MAX_NOT_HALVED: u32 = 10;
/// Rate of a radio over its throughput, by which the throughput is estimated, as the kernel does.
const RATE_OVER_THROUGHPUT: u32 = 3;
/// Bits behind the point of an average, and the logarithm of the number of samples of which the newest is one
/// (`DECLARE_EWMA(throughput, 10, 8)`).
const FRACTION: u32 = 10;
const WEIGHT: u32 = 3;

/// A rate in units of 100 kbit/s, which is 1 at least.
pub(super) fn units(rate: Rate) -> u32 {
    u32::try_from(rate.bits_per_sec() / 100_000).unwrap_or(u32::MAX).max(1)
}

/// Throughput of a radio that sends at a rate.
pub(super) fn of_radio(rate: Rate) -> u32 {
    units(rate) / RATE_OVER_THROUGHPUT
}

/// Throughput of a path behind one hop more. `shares_radio` says that it enters and leaves a node by one radio, which
/// has to send everything that it receives.
pub(super) fn with_penalty(throughput: u32, hop_penalty: u8, shares_radio: bool) -> u32 {
    if shares_radio && throughput > MAX_NOT_HALVED {
        return throughput / 2;
    }
    (u64::from(throughput) * u64::from(u8::MAX - hop_penalty) / u64::from(u8::MAX)) as u32
}

/// Moving average, of which each sample is an eighth and the first is all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Average(u64);

impl Average {
    pub(super) const fn push(&mut self, sample: u32) {
        let sample = (sample as u64) << FRACTION;
        self.0 = if self.0 == 0 { sample } else { ((self.0 << WEIGHT) - self.0 + sample) >> WEIGHT };
    }

    /// The average; 0 if there is no sample.
    pub(super) const fn get(self) -> u32 {
        (self.0 >> FRACTION) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_takes_its_penalty_or_half() {
        // 10 * 225 / 255 = 8.8, and 11 / 2 = 5.5.
        for (throughput, apart, shared) in [
            (0, 0, 0),
            (1, 0, 0),
            (10, 8, 8),
            (11, 9, 5),
            (1000, 882, 500),
            (u32::MAX, 3_789_677_025, u32::MAX / 2),
        ] {
            assert_eq!(with_penalty(throughput, 30, false), apart, "{throughput}");
            assert_eq!(with_penalty(throughput, 30, true), shared, "{throughput}");
        }
        assert_eq!([with_penalty(1000, 0, false), with_penalty(1000, 255, false)], [1000, 0]);
    }

    #[test]
    fn an_average_begins_with_its_first_sample_and_moves_by_an_eighth() {
        let mut average = Average::default();
        assert_eq!(average.get(), 0);
        for (sample, expected) in [(1000, 1000), (0, 875), (0, 765), (1000, 794), (u32::MAX, 536_871_607)] {
            average.push(sample);
            assert_eq!(average.get(), expected);
        }
        let mut average = Average::default();
        (0..3).for_each(|_| average.push(u32::MAX));
        assert_eq!(average.get(), u32::MAX);
    }

    #[test]
    fn rates_are_cut_to_units_and_a_radio_has_a_third() {
        assert_eq!([units(Rate::from_mbit(54)), of_radio(Rate::from_mbit(54))], [540, 180]);
        assert_eq!([units(Rate::from_bits_per_sec(99_999)), units(Rate::from_bits_per_sec(199_999))], [1, 1]);
        assert_eq!(units(Rate::from_bits_per_sec(u64::MAX)), u32::MAX);
    }
}
