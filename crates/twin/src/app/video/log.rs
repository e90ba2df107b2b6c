//! The fate of each frame, and which of them can be decoded.

use std::collections::VecDeque;

use hopcast_core::Instant;

use crate::results::Video;
use crate::scenario::model::FrameType;

/// The frames of a video at one receiver.
///
/// A frame can be decoded if it is complete before its deadline and the frames that it refers to can be decoded: of a
/// P-frame the I- or P-frame before it, of a B-frame the two before it in the order of coding. This is the *decodable
/// frame rate* of video over lossy networks (Ke, Shieh, Hwang and Ziviani, "An evaluation framework for more realistic
/// simulations of MPEG video transmission", 2008), with lateness beside loss. Only frames that are not decided are
/// kept: those of one deadline.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameLog {
    /// The undecided frames, from number `first` on.
    pending: VecDeque<Pending>,
    first: u64,
    /// Whether the last two I- and P-frames cannot be decoded, the latest last.
    broken: [bool; 2],
    sent: u64,
    delivered: u64,
    in_time: u64,
    decodable: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    picture: FrameType,
    deadline: Instant,
    /// Whether it was sent in the measurement window.
    counts: bool,
    in_time: bool,
}

impl FrameLog {
    /// Notes that the next frame is sent; `counts` if that is in the measurement window.
    pub(crate) fn sent(&mut self, now: Instant, picture: FrameType, deadline: Instant, counts: bool) {
        self.pending.push_back(Pending { picture, deadline, counts, in_time: false });
        self.sent += u64::from(counts);
        self.decide(Some(now));
    }

    /// Notes that frame `number` is complete.
    pub(crate) fn delivered(&mut self, now: Instant, number: u64, counts: bool) {
        self.delivered += u64::from(counts);
        // A frame that is decided already is late.
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        if let Some(frame) = place.and_then(|place| self.pending.get_mut(place))
            && now <= frame.deadline
        {
            frame.in_time = true;
            self.in_time += u64::from(counts);
        }
    }

    /// Decides the fate of frames that have arrived in time or no longer can; without a time, of all frames.
    fn decide(&mut self, now: Option<Instant>) {
        let decided = |frame: &mut Pending| frame.in_time || now.is_none_or(|now| frame.deadline < now);
        while let Some(frame) = self.pending.pop_front_if(decided) {
            self.first += 1;
            let [before, latest] = self.broken;
            let misses_reference = match frame.picture {
                FrameType::I => false,
                FrameType::P => latest,
                FrameType::B => before || latest,
            };
            let decodable = frame.in_time && !misses_reference;
            self.decodable += u64::from(decodable && frame.counts);
            if frame.picture != FrameType::B {
                self.broken = [latest, !decodable];
            }
        }
    }

    /// Adds the fates of the frames at another receiver, after the end of the run.
    pub(crate) fn add(&mut self, other: &Self) {
        let mut other = other.clone();
        other.decide(None);
        self.decide(None);
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.in_time += other.in_time;
        self.decodable += other.decodable;
    }

    /// The figures, after the end of the run.
    pub(crate) fn figures(&self) -> Video {
        let mut all = self.clone();
        all.decide(None);
        let Self { sent, delivered, in_time, decodable, .. } = all;
        let share = |frames: u64| (sent > 0).then(|| frames as f64 / sent as f64);
        Video {
            frames_sent: sent,
            frames_delivered: delivered,
            frames_late: delivered - in_time,
            frames_lost: sent.saturating_sub(delivered),
            frames_undecodable: in_time - decodable,
            in_time_ratio: share(in_time),
            decodable_frame_ratio: share(decodable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fates of frames of the given types, one a second with a deadline of half a second: `.` arrives at once,
    /// `l` late, `x` never.
    fn figures(pictures: &str, fates: &str) -> [u64; 5] {
        let at = |half_seconds: usize| Instant::from_nanos(half_seconds as u64 * 500_000_000);
        let mut log = FrameLog::default();
        let mut late = Vec::new();
        for (number, (picture, fate)) in pictures.chars().zip(fates.chars()).enumerate() {
            let picture = match picture {
                'I' => FrameType::I,
                'P' => FrameType::P,
                _ => FrameType::B,
            };
            log.sent(at(2 * number), picture, at(2 * number + 1), true);
            match fate {
                '.' => log.delivered(at(2 * number + 1), number as u64, true),
                'l' => late.push(number as u64),
                _ => {}
            }
        }
        late.into_iter().for_each(|number| log.delivered(at(1000), number, true));
        let Video { frames_sent, frames_delivered, frames_late, frames_lost, frames_undecodable, .. } =
            log.figures();
        [frames_sent, frames_delivered, frames_late, frames_lost, frames_undecodable]
    }

    #[test]
    fn a_frame_falls_with_those_that_it_refers_to() {
        let gop = "IBBPBBPBBPBBIBBPBBPBBPBB";
        // sent, delivered, late, lost, undecodable
        assert_eq!(figures(gop, "........................"), [24, 24, 0, 0, 0]);
        assert_eq!(
            figures(gop, ".x......................"),
            [24, 23, 0, 1, 0],
            "a B-frame takes nothing along"
        );
        assert_eq!(
            figures(gop, ".........x.............."),
            [24, 23, 0, 1, 4],
            "its own two, and two of the next group"
        );
        assert_eq!(figures(gop, "...l...................."), [24, 24, 1, 0, 10], "late is as bad as lost");
        assert_eq!(
            figures(gop, "x......................."),
            [24, 23, 0, 1, 13],
            "up to the next I-frame, and two beyond"
        );
        assert_eq!(figures(gop, "x..x...................."), [24, 22, 0, 2, 12]);
    }
}
