//! Fixed-point units of BBR, as Linux has them: the rounding is part of the behaviour.

/// A delivery rate, in segments per microsecond times 2^24 (Linux `BW_SCALE`).
pub(super) type Bandwidth = u64;
/// One segment per microsecond (Linux `BW_UNIT`).
pub(super) const BANDWIDTH_UNIT: Bandwidth = 1 << 24;

/// A gain, times 2^8 (Linux `BBR_SCALE`).
pub(super) type Gain = u64;
/// A gain of one (Linux `BBR_UNIT`).
pub(super) const UNIT: Gain = 256;
