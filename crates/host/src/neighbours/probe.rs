//! Probe: requests check whether the neighbour is still reachable, while packets are sent to it.

/// A neighbour that is being probed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// Number of probes so far.
    pub(super) asked: u32,
}
