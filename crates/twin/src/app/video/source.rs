//! The frames of a video: type, size and time of each.

use hopcast_core::{Duration, Stream};

use crate::scenario::model::{FrameType, Frames, MAX_FRAME, Pattern};

/// A generator of the frames of a video, without an end.
pub(crate) struct FrameSource {
    frames: Frames,
    place: usize,
    random: Stream,
}

/// A frame, and the time to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) picture: FrameType,
    pub(super) bytes: u32,
    pub(super) gap: Duration,
}

impl FrameSource {
    pub(crate) fn new(frames: Frames, random: Stream) -> Self {
        Self { frames, place: 0, random }
    }

    pub(super) fn next(&mut self) -> Next {
        let place = self.place;
        self.place += 1;
        match &self.frames {
            Frames::Pattern(pattern) => {
                self.place %= pattern.gop as usize;
                let picture = pattern.picture(place as u32);
                let bytes = pattern.mean_bytes(picture) * factor(pattern, &mut self.random);
                let bytes = (bytes.round() as u32).clamp(1, MAX_FRAME);
                Next { picture, bytes, gap: pattern.interval }
            }
            Frames::Trace { frames, interval } => {
                self.place %= frames.len();
                let frame = frames[place];
                Next { picture: frame.picture, bytes: frame.bytes, gap: interval.unwrap_or(frame.gap) }
            }
        }
    }

    /// Begins again with the first frame.
    pub(super) const fn restart(&mut self) {
        self.place = 0;
    }
}

/// The size of a frame relative to its mean: lognormal with a mean of 1.
fn factor(pattern: &Pattern, random: &mut Stream) -> f64 {
    let variation = pattern.variation.get();
    if variation == 0.0 {
        return 1.0;
    }
    let variance = (1.0 + variation * variation).ln();
    (variance.sqrt() * random.normal() - variance / 2.0).exp()
}

#[cfg(test)]
mod tests {
    use hopcast_core::{Fraction, Rate, Seed};

    use super::*;

    fn pattern(gop: u32, b_frames: u32, variation: f64) -> Pattern {
        Pattern {
            rate: Rate::from_mbit(4),
            interval: Duration::from_millis(40),
            gop,
            b_frames,
            variation: Fraction::new(variation).unwrap(),
        }
    }

    fn frames(pattern: Pattern, count: usize) -> Vec<Next> {
        let mut source = FrameSource::new(Frames::Pattern(pattern), Seed::new(1, 0).stream(&["video"], 0));
        (0..count).map(|_| source.next()).collect()
    }

    #[test]
    fn the_types_are_those_of_the_group() {
        for (gop, b_frames, expected) in [
            (12, 2, "IBBPBBPBBPBBIBB"),
            (5, 0, "IPPPPIPPPPIPPPP"),
            (4, 1, "IBPBIBPBIBPBIBP"),
            (1, 2, "IIIIIIIIIIIIIII"),
        ] {
            let found: String = frames(pattern(gop, b_frames, 0.0), 15)
                .iter()
                .map(|frame| format!("{:?}", frame.picture))
                .collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_sizes_have_the_mean_rate_and_the_proportions_of_their_types() {
        for (gop, b_frames) in [(12, 2), (30, 3), (25, 0), (1, 0)] {
            let bytes: u64 =
                frames(pattern(gop, b_frames, 0.0), gop as usize).iter().map(|f| u64::from(f.bytes)).sum();
            // 4 Mbit/s at 25 frames a second are 20,000 B a frame.
            assert!(bytes.abs_diff(20_000 * u64::from(gop)) <= u64::from(gop));
        }
        let sizes: Vec<u32> = frames(pattern(12, 2, 0.0), 4).iter().map(|frame| frame.bytes).collect();
        assert_eq!(sizes, [68966, 11034, 11034, 27586]);
    }

    #[test]
    fn sizes_vary_as_much_as_they_are_told() {
        let sizes: Vec<f64> = frames(pattern(1, 0, 0.3), 50_000).iter().map(|f| f64::from(f.bytes)).collect();
        let mean = sizes.iter().sum::<f64>() / 50_000.0;
        let deviation = (sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / 50_000.0).sqrt();
        assert!((mean / 20_000.0 - 1.0).abs() < 0.01, "{mean}");
        assert!((deviation / mean - 0.3).abs() < 0.01, "{deviation}");
    }
}
