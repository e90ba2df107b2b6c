//! Sequence numbers that do not wrap.
//!
//! Inside a connection a sequence number has 64 bits, of which the lower 32 are what the header holds. It begins above
//! 2^32, so that a number before the first one is still a number; 2^64 bytes are never sent.

/// The 64-bit number for an initial sequence number.
pub(super) const fn initial(wire: u32) -> u64 {
    (1 << 32) + wire as u64
}

/// The number nearest to `near` that the header writes as `wire`.
#[inline]
pub(super) const fn expand(near: u64, wire: u32) -> u64 {
    let distance = wire.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(distance as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_taken_for_the_nearest_one_that_is_written_so() {
        let near = initial(u32::MAX - 1);
        assert_eq!(expand(near, u32::MAX), near + 1);
        assert_eq!(expand(near, 5), near + 7);
        assert_eq!(expand(near + 7, u32::MAX - 1), near);
        assert_eq!(expand(initial(0), u32::MAX), initial(0) - 1);
    }
}
