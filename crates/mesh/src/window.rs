//! The last 64 sequence numbers of a sender, and the protection against one who jumps back and forth.

use hopcast_core::{Duration, Instant};

/// Number of sequence numbers that are remembered (`BATADV_TQ_LOCAL_WINDOW_SIZE`, `BATADV_BCAST_MAX_AGE`).
pub(crate) const WINDOW: i32 = 64;
/// A number that is this far ahead is taken for that of a sender that has restarted (`BATADV_EXPECTED_SEQNO_RANGE`).
const RESTART_AHEAD: i32 = 65_536;
/// Minimum time between two restarts of a sender that are believed (`BATADV_RESET_PROTECTION_MS`).
const RESET_PROTECTION: Duration = Duration::from_secs(30);

/// Whether a number is marked in a window, whose bit 0 is that of the newest number.
#[inline]
pub(crate) fn contains(bits: u64, newest: u32, seqno: u32) -> bool {
    let behind = newest.wrapping_sub(seqno).cast_signed();
    (0..WINDOW).contains(&behind) && bits >> behind & 1 != 0
}

/// Takes a number that is this far ahead of the newest, and marks it if `mark` is set. Returns whether it is the newest
/// now: it is ahead, or so far away that the sender has restarted, which forgets the others.
#[inline]
pub(crate) fn advance(bits: &mut u64, ahead: i32, mark: bool) -> bool {
    let mark = u64::from(mark);
    match ahead {
        -63..=0 => {
            *bits |= mark << -ahead;
            return false;
        }
        1..=63 => *bits = *bits << ahead | mark,
        _ => *bits = mark,
    }
    true
}

/// Whether a number that is this far ahead of the newest is that of a sender that has restarted.
#[inline]
pub(crate) const fn is_restart(ahead: i32) -> bool {
    ahead <= -WINDOW || ahead >= RESTART_AHEAD
}

/// The last time that a sender was taken to have restarted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResetProtection(Option<Instant>);

impl ResetProtection {
    /// Whether a number that is this far ahead is refused: it says that the sender has restarted, too soon after the
    /// last time. Otherwise a restart is noted.
    pub(crate) fn refuses(&mut self, now: Instant, ahead: i32) -> bool {
        if !is_restart(ahead) {
            return false;
        }
        if self.0.is_some_and(|last| now < last + RESET_PROTECTION) {
            return true;
        }
        self.0 = Some(now);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_64_numbers_across_the_end_of_32_bits() {
        let (mut bits, mut newest) = (0, u32::MAX - 1);
        for (seqno, moved) in
            [(u32::MAX - 1, false), (0, true), (u32::MAX, false), (62, true), (u32::MAX, false)]
        {
            let ahead = seqno.wrapping_sub(newest).cast_signed();
            assert_eq!(advance(&mut bits, ahead, true), moved, "{seqno}");
            if moved {
                newest = seqno;
            }
        }
        let marked: Vec<u32> =
            (0..70).map(|back| 62_u32.wrapping_sub(back)).filter(|&n| contains(bits, 62, n)).collect();
        assert_eq!(marked, [62, 0, u32::MAX]);
        assert!(!contains(bits, 62, 63), "one that has not come yet");
        assert!(advance(&mut bits, 1, false));
        assert!(contains(bits, 63, 0) && !contains(bits, 63, 63) && !contains(bits, 63, u32::MAX));
        assert!(advance(&mut bits, 64, true));
        assert_eq!(bits, 1);
    }

    #[test]
    fn a_restart_is_believed_once_in_30_seconds() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut protection = ResetProtection::default();
        assert!(!protection.refuses(at(0), -63) && !protection.refuses(at(0), 65_535));
        assert!(!protection.refuses(at(1), -64));
        assert!(protection.refuses(at(2), 65_536) && protection.refuses(at(30), i32::MIN));
        assert!(!protection.refuses(at(31), 65_536));
    }
}
