//! Number of packets that make it all but certain that a deficit is made up: for a round of repair that is the last.

use hopcast_code::bats::ranks::Channel;
use hopcast_code::bats::recoding::Repairs;

use super::super::bursts::BURSTY;
use super::super::span::MAX_SYMBOLS;

/// Change of loss or bursts at which the table is made anew, as a share; of loss, at least `MIN_CHANGE`. Chosen: it
/// moves the number of packets by less than one; a smaller one makes tables for noise.
const CHANGE: f64 = 0.1;
/// Minimum change of the loss, in all: see [`CHANGE`].
const MIN_CHANGE: f64 = 0.005;

/// The packets to send for each deficit, for the loss of one hop.
#[derive(Debug)]
pub(super) struct Margin {
    /// Probability that they are too few, where losses are independent and where they come in bursts.
    shortfall: [f64; 2],
    loss: f64,
    burst: f64,
    repairs: Option<Repairs>,
}

impl Margin {
    /// Packets of which with this probability too few arrive: where losses are independent, and in bursts.
    pub(super) const fn new(shortfall: [f64; 2]) -> Self {
        Self { shortfall, loss: 0.0, burst: 1.0, repairs: None }
    }

    /// The hop is found to lose this share of its packets, in runs of this mean length.
    pub(super) fn update(&mut self, loss: f64, burst: f64) {
        let (loss, burst) = (loss.clamp(0.0, 0.9), burst.clamp(1.0, 1e3));
        let same = (loss - self.loss).abs() <= (CHANGE * self.loss).max(MIN_CHANGE)
            && (burst - self.burst).abs() <= CHANGE * self.burst;
        if same && self.repairs.is_some() {
            return;
        }
        (self.loss, self.burst) = (loss, burst);
        let channel = if burst > BURSTY {
            // Simple Gilbert: bad loses all, and is left after as many packets as a burst has.
            let leaves_bad = 1.0 / burst;
            let enters_bad = (leaves_bad * loss / (1.0 - loss)).min(1.0);
            Channel::bursty([0.0, 1.0], [enters_bad, leaves_bad], 256)
        } else {
            Channel::independent(loss, 256)
        };
        let shortfall = self.shortfall[usize::from(burst > BURSTY)];
        self.repairs = channel.ok().map(|channel| Repairs::new(&channel, MAX_SYMBOLS, 1.0 - shortfall));
    }

    /// The packets to send so that `missing` more arrive.
    pub(super) fn packets(&self, missing: u8) -> u8 {
        let packets = self.repairs.as_ref().map_or(0, |repairs| repairs.packets(usize::from(missing)));
        packets.min(usize::from(u8::MAX)).max(usize::from(missing)) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_round_sends_what_it_takes() {
        let mut margin = Margin::new([1e-4; 2]);
        assert_eq!(margin.packets(3), 3);
        margin.update(0.2, 1.0);
        // 0.2^6 = 6.4e-5 is the first below 1e-4.
        assert_eq!(margin.packets(1), 6);
        assert!(margin.packets(16) > 20);
        let alone = margin.packets(4);
        margin.update(0.2, 8.0);
        assert!(margin.packets(4) > 2 * alone, "bursts take more");
        margin.update(0.0, 1.0);
        assert_eq!(margin.packets(1), 2, "a combination may say nothing new, with probability 1/256");
    }

    /// The packets for one that is missing, where a packet is lost or says nothing new with this probability.
    fn packets(fails: f64) -> u8 {
        let mut margin = Margin::new([1e-4; 2]);
        margin.update((fails - 1.0 / 256.0) / (1.0 - 1.0 / 256.0), 1.0);
        margin.packets(1)
    }

    #[test]
    fn one_batch_in_ten_thousand_is_left_incomplete_at_most() {
        // f^n <= 1e-4.
        for (fails, expected) in [(0.0099, 2), (0.0101, 3), (0.046, 3), (0.047, 4), (0.0995, 4), (0.1005, 5)]
        {
            assert_eq!(packets(fails), expected, "{fails}");
        }
    }

    #[test]
    fn bursts_of_two_are_no_accident_and_shorter_ones_are() {
        let sixteen = |burst| {
            let mut margin = Margin::new([1e-4; 2]);
            margin.update(0.2, burst);
            margin.packets(16)
        };
        assert_eq!(sixteen(1.45), sixteen(1.0));
        assert!(sixteen(2.0) > sixteen(1.0) && sixteen(1.55) > sixteen(1.0));
    }

    #[test]
    fn the_table_is_made_anew_when_loss_or_bursts_change_by_a_tenth() {
        let mut margin = Margin::new([1e-4; 2]);
        for (loss, burst, expected) in [
            (0.2, 1.0, (0.2, 1.0)),
            (0.218, 1.0, (0.2, 1.0)),
            (0.182, 1.09, (0.2, 1.0)),
            (0.222, 1.0, (0.222, 1.0)),
            (0.222, 1.11, (0.222, 1.11)),
            (0.0, 1.0, (0.0, 1.0)),
            (0.0049, 1.0, (0.0, 1.0)),
            (0.0051, 1.0, (0.0051, 1.0)),
            (0.01, 1.0, (0.0051, 1.0)),
        ] {
            margin.update(loss, burst);
            assert_eq!((margin.loss, margin.burst), expected, "{loss}, {burst}");
        }
    }
}
