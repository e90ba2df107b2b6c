//! While nothing is heard of a neighbour: how long the window waits, when to probe, and when the neighbour is gone.
//!
//! On one hop silence is no congestion: a burst of losses passes by what is sent into it, and acknowledgements are lost
//! like packets. So the window has room for as many packets as have lately passed between two acknowledgements, and
//! after that probes go on at up to a tenth of the link. Where hundreds are not answered the link is gone; the longer,
//! the more seldom it is probed.

use hopcast_core::{Duration, Instant};

/// Room in the window, in multiples of the longest silence of late. Chosen; less, and a silence that is longer empties
/// the window; more is a queue.
const ROOM: u32 = 2;
/// Maximum room, in packets. Bursts of 8 packets on average, each way, seldom last for as long. Chosen; more would be a
/// longer queue where a silence had another reason.
const MAX_ROOM: u32 = 256;
/// Packets between two acknowledgements that do not count as silence: two are acknowledged together. Chosen: one
/// acknowledgement may be lost.
const USUAL: u32 = 4;
/// Share by which the longest silence fades with each acknowledgement. Chosen; faster, and it is forgotten before the
/// next one; slower, and room is kept that nothing needs.
const FADING: f64 = 1.0 / 4096.0;
/// Minimum spacing of probes, in packet times: chosen: closer ones would crowd out others, rarer ones make a burst of
/// losses, which lasts for a number of packets, long.
const PROBE_SPACING: u64 = 10;
/// Maximum number of probes in a round trip, once the first has had time to be answered. Chosen; fewer find the end of
/// a burst later, more crowd out others.
const PROBES_A_ROUND: u64 = 4;
/// Minimum spacing of probes, however fast the link seems: a neighbour may be as good as at no distance. Chosen;
/// shorter costs processor time for nothing, longer delays a fast link.
const MIN_SPACING: Duration = Duration::from_micros(100);
/// Maximum of that spacing: a slow link is found again soon enough. Chosen; longer finds it later, shorter fills a slow
/// link with probes.
const MAX_SPACING: Duration = Duration::from_millis(500);
/// Spacing of probes before anything has been heard at all: a long path gets a handful of small packets in vain.
/// Chosen; shorter costs more of them, longer delays the start where the first is lost.
const FIRST_SPACING: Duration = Duration::from_millis(40);
/// Probes without an answer from which on the link counts as down. Chosen: at 50 % each way, a burst of losses is as
/// long once in 10^64 times.
const LINK_DOWN_PROBES: u32 = 512;
/// A link that is down is probed often enough that its return is found within this share of its absence. Chosen; more
/// often costs packets in vain, more seldom loses more of the time after an outage.
const LINK_DOWN_SHARE: u64 = 64;
/// Minimum number of probes before a neighbour is given up, however long it has been silent. Where 60 % are lost each
/// way in bursts of 8, as many are unanswered once in some ten thousand silences. Chosen; with fewer, a burst of losses
/// ends streams.
const MIN_PROBES: u32 = 200;

/// The silence of a neighbour, as a hop sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct Silence {
    /// The longest run of transmissions of late of which none was acknowledged, fading.
    longest: f64,
    /// Probes since anything was heard, and when the first was due.
    probes: u32,
    since: Instant,
}

impl Silence {
    /// Something was heard; `transmissions` after the last news, if it is new.
    pub(super) fn heard(&mut self, transmissions: Option<u64>) {
        self.probes = 0;
        if let Some(transmissions) = transmissions {
            let run = transmissions.min(MAX_ROOM.into()) as f64;
            self.longest = run.max(self.longest * (1.0 - FADING));
        }
    }

    /// A timeout has gone off.
    pub(super) fn probe(&mut self, now: Instant) {
        if self.probes == 0 {
            self.since = now;
        }
        self.probes = self.probes.saturating_add(1);
    }

    /// Packets that may be in flight besides the window.
    pub(super) fn room(&self) -> usize {
        let run = (self.longest as u32).saturating_sub(USUAL);
        (run * ROOM).min(MAX_ROOM) as usize
    }

    /// Time to wait for an acknowledgement at `now`: `first`, and after that until the next probe. A packet takes
    /// `packet_time` on the link; there may be no round trip yet.
    pub(super) fn timeout(
        &self,
        now: Instant,
        first: Duration,
        packet_time: Duration,
        round_trip: Option<Duration>,
    ) -> Duration {
        let Some(round_trip) = round_trip else {
            return if self.probes == 0 { first } else { FIRST_SPACING };
        };
        if self.probes == 0 {
            return first;
        }
        let rare = if self.probes >= LINK_DOWN_PROBES {
            now.since(self.since) / LINK_DOWN_SHARE
        } else {
            Duration::ZERO
        };
        let spaced = (packet_time * PROBE_SPACING).clamp(MIN_SPACING, MAX_SPACING);
        let next = if self.probes == 1 { round_trip * 2 } else { round_trip / PROBES_A_ROUND };
        first.min(next).max(spaced).max(rare)
    }

    /// Whether the neighbour may be given up, if it has been silent for long enough.
    pub(super) fn may_give_up(&self) -> bool {
        self.probes >= MIN_PROBES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const FIRST: Duration = Duration::from_millis(25);
    const ROUND_TRIP: Option<Duration> = Some(Duration::from_millis(20));

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    fn silent_for(probes: u32, since: u64) -> Silence {
        let mut silence = Silence::default();
        (0..probes).for_each(|_| silence.probe(at(since)));
        silence
    }

    #[test]
    fn probes_follow_each_other_at_no_more_than_four_a_round_trip_and_a_tenth_of_the_link() {
        let timeout =
            |probes, packet_time| silent_for(probes, 0).timeout(at(0), FIRST, packet_time, ROUND_TRIP);
        let quick = Duration::from_micros(40);
        assert_eq!([0, 1, 2, 511].map(|probes| timeout(probes, quick)), [FIRST, FIRST, MS(5), MS(5)]);
        assert_eq!([0, 1, 2].map(|probes| timeout(probes, MS(12))), [FIRST, MS(120), MS(120)]);
        assert_eq!(timeout(2, MS(120)), MS(500), "a slow link is probed twice a second");
        let unknown = |probes| silent_for(probes, 0).timeout(at(0), FIRST, quick, None);
        assert_eq!([0, 1, 9].map(unknown), [FIRST, MS(40), MS(40)]);
    }

    #[test]
    fn a_neighbour_at_no_distance_is_not_probed_without_end() {
        let silence = silent_for(9, 0);
        let none = Duration::ZERO;
        assert_eq!(silence.timeout(at(0), FIRST, none, Some(none)), Duration::from_micros(100));
    }

    #[test]
    fn a_link_that_is_gone_is_probed_within_a_64th_of_its_absence() {
        let timeout = |probes, now| silent_for(probes, 1000).timeout(at(now), FIRST, MS(0), ROUND_TRIP);
        assert_eq!(timeout(511, 65_000), MS(5));
        assert_eq!(timeout(512, 65_000), MS(1000));
        assert_eq!(timeout(512, 1064), MS(5));
    }

    #[test]
    fn the_window_has_room_for_twice_the_longest_silence_of_late() {
        let mut silence = Silence::default();
        (0..100).for_each(|_| silence.heard(Some(2)));
        assert_eq!(silence.room(), 0, "two packets to an acknowledgement are no silence");
        silence.heard(Some(24));
        assert_eq!(silence.room(), 40);
        (0..4096).for_each(|_| silence.heard(Some(2)));
        assert_eq!(silence.room(), 8, "it fades by e with 4,096 acknowledgements");
        silence.heard(Some(1 << 40));
        assert_eq!(silence.room(), 256);
        let before = silence.room();
        silence.heard(None);
        assert_eq!(silence.room(), before);
    }

    #[test]
    fn two_hundred_probes_must_be_unanswered_before_a_neighbour_is_given_up() {
        assert!(!silent_for(199, 0).may_give_up());
        let mut silence = silent_for(200, 0);
        assert!(silence.may_give_up());
        silence.heard(None);
        assert!(!silence.may_give_up());
    }
}
