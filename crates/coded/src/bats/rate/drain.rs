//! Rate at which a queue before the link empties.

use hopcast_core::Duration;

use super::samples::MIN_PACKETS;

/// How much further apart packets arrive than they were sent, from which on they have queued. Chosen: less is chance,
/// more overlooks a queue.
const QUEUED: f64 = 1.25;
/// Share of the link's rate below which packets that arrive further apart have been held up, and not queued. Chosen: a
/// link is seldom slower by half than a moment ago; more, and a queue is overlooked on a link whose rate varies.
const MIN_SHARE: f64 = 0.5;

/// The rate at which a queue empties: that of packets that arrived further apart than they were sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drain(Option<f64>);

impl Drain {
    /// In bits per second, if a queue has been seen.
    pub(super) const fn get(self) -> Option<f64> {
        self.0
    }

    /// Takes `packets` packets of `bits` bits in all, which left within one time and arrived within another; `link`:
    /// the rate of the link as it is believed, in bits per second.
    pub(super) fn update(
        &mut self,
        packets: u64,
        bits: f64,
        (left, arrived): (Duration, Duration),
        link: f64,
    ) {
        if packets < MIN_PACKETS || arrived.is_zero() {
            return;
        }
        let rate = bits / arrived.as_secs_f64();
        if rate < link * MIN_SHARE {
            // They were held up, as by an outage.
            return;
        }
        let drain = self.0.unwrap_or(rate);
        if arrived.as_secs_f64() > QUEUED * left.as_secs_f64() {
            self.0 = Some(drain + (rate - drain) / 4.0);
        } else if rate > QUEUED * drain {
            // The link has become faster.
            self.0 = None;
        }
    }
}
