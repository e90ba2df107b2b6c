//! Probe: the neighbour is asked whether it is still there, and packets go on to it.

/// A neighbour that is being probed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// Number of probes so far.
    pub(super) asked: u32,
}
