//! Workloads: the units that the application of a flow sends, and their times.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use hopcast_core::{Bytes, Duration, Fraction, Instant, Rate};

use super::programs::Program;

/// Maximum frame of a video, in bytes. Chosen: it bounds buffers; larger than frames of any video.
pub(crate) const MAX_FRAME: u32 = 16 << 20;
/// Minimum and maximum size of a short flow, in bytes. Chosen: a flow carries at least its header, and a distribution
/// has to end somewhere.
pub(crate) const SHORT_FLOW: RangeInclusive<u64> = 24..=1 << 30;

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub enum App {
    /// Datagrams at a mean rate, like iperf2's UDP.
    Cbr {
        /// Rate of UDP payload while it is on; `None` saturates the first link.
        rate: Option<Rate>,
        /// UDP payload of each datagram.
        size: Bytes,
        /// The intervals between them.
        arrivals: Arrivals,
        /// The time in which it sends.
        span: SendSpan,
    },
    /// The maximum that the transport accepts.
    Bulk {
        /// Maximum rate of payload; `None` for no limit.
        rate: Option<Rate>,
        /// Number of bytes in all; `None` without an end.
        bytes: Option<Bytes>,
        /// The time in which it sends.
        span: SendSpan,
    },
    /// A real file, whose hash is checked at the end.
    File {
        /// The contents, read when the scenario was.
        contents: Arc<[u8]>,
        /// The time in which it sends.
        span: SendSpan,
    },
    /// Messages of a fixed size at a fixed rate, echoed by the receiver.
    Messages {
        /// Each message's payload.
        size: Bytes,
        /// The time between two messages.
        every: Duration,
        /// The time in which it sends.
        span: SendSpan,
    },
    /// The frames of a video, each with a deadline.
    Video {
        /// Types and sizes of the frames.
        frames: Frames,
        /// Maximum time from the sending of a frame to its complete delivery.
        deadline: Duration,
        /// The time in which it sends.
        span: SendSpan,
    },
    /// Many streams, each of which is opened, filled and closed.
    ShortFlows {
        /// Size of each stream.
        size: SizeLaw,
        /// The mean time from one to the next.
        every: Duration,
        /// The intervals between them.
        gaps: Spread,
        /// The time in which it sends.
        span: SendSpan,
    },
    /// A real program, in a live run only.
    Program {
        /// The program with its options.
        program: Program,
        /// The time in which it sends.
        span: SendSpan,
    },
}

impl App {
    /// The contents that it sends, if that is a file.
    pub(crate) const fn contents(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::File { contents, .. } => Some(contents),
            Self::Program { program: Program::Copy(copy), .. } => Some(&copy.contents),
            _ => None,
        }
    }

    /// The contents that it sends, for replacing them.
    pub(crate) const fn contents_mut(&mut self) -> Option<&mut Arc<[u8]>> {
        match self {
            Self::File { contents, .. } => Some(contents),
            Self::Program { program: Program::Copy(copy), .. } => Some(&mut copy.contents),
            _ => None,
        }
    }

    /// The time in which it sends.
    pub const fn span(&self) -> SendSpan {
        match self {
            Self::Cbr { span, .. }
            | Self::Bulk { span, .. }
            | Self::File { span, .. }
            | Self::Messages { span, .. }
            | Self::Video { span, .. }
            | Self::ShortFlows { span, .. }
            | Self::Program { span, .. } => *span,
        }
    }
}

/// The time in which an application sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendSpan {
    /// Start; `None` waits for a `start` event.
    pub start: Option<Instant>,
    /// End; `None` for the end of the run.
    pub stop: Option<Instant>,
}

/// The distribution of times around their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// All equal to the mean.
    #[default]
    Constant,
    /// Exponential; arrivals with such gaps are a Poisson process.
    Exponential,
}

/// The distribution of the intervals between datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// The distribution of the gaps.
    pub gaps: Spread,
    /// The pauses, if there are any.
    pub on_off: Option<OnOff>,
}

/// Alternating periods of being on and off, the first of them on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// Mean length of a period that is on.
    pub on: Duration,
    /// Mean length of a period that is off.
    pub off: Duration,
    /// The distribution of both lengths.
    pub durations: Spread,
}

/// A distribution of sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizeLaw {
    /// All of this size.
    Fixed(Bytes),
    /// Exponential, of this mean.
    Exponential(Bytes),
    /// Pareto of this mean: most sizes are small, and a few large ones have most of the bytes.
    Pareto {
        /// The mean.
        mean: Bytes,
        /// The exponent of the tail, more than 1.
        shape: f64,
    },
}

/// The frames of a video, in the order of coding.
#[derive(Clone, Debug, PartialEq)]
pub enum Frames {
    /// A regular pattern.
    Pattern(Pattern),
    /// A recorded trace, repeated.
    Trace {
        /// The frames: at least one, of which the first is an I-frame.
        frames: Arc<[TraceFrame]>,
        /// The time from one frame to the next; `None` if the trace has it.
        interval: Option<Duration>,
    },
}

/// Groups of pictures that differ only in the sizes of their frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pattern {
    /// The mean rate.
    pub rate: Rate,
    /// The time from one frame to the next.
    pub interval: Duration,
    /// Frames from one I-frame to the next.
    pub gop: u32,
    /// Number of B-frames between two other frames.
    pub b_frames: u32,
    /// The standard deviation of a frame's size, as a share of the mean of its type.
    pub variation: Fraction,
}

impl Pattern {
    /// The sizes of I-, P- and B-frames relative to each other. x264 typically makes I-frames 2.5 to 3 times as large
    /// as P-frames, and these 2.5 to 3 times as large as B-frames (Merritt on ffmpeg-devel, 22 October 2007).
    const WEIGHTS: [f64; 3] = [6.25, 2.5, 1.0];

    /// The type of the frame at an index of a group.
    pub const fn picture(&self, place: u32) -> FrameType {
        match place {
            0 => FrameType::I,
            _ if place.is_multiple_of(self.b_frames + 1) => FrameType::P,
            _ => FrameType::B,
        }
    }

    /// The mean size of frames of a type, in bytes, with which all frames together have the mean rate.
    pub fn mean_bytes(&self, picture: FrameType) -> f64 {
        let weight = |picture: FrameType| Self::WEIGHTS[picture as usize];
        let weights: f64 = (0..self.gop).map(|place| weight(self.picture(place))).sum();
        let seconds = self.interval.as_secs_f64() * f64::from(self.gop);
        self.rate.bits_per_sec() as f64 / 8.0 * seconds * weight(picture) / weights
    }
}

/// A frame of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceFrame {
    /// Its type.
    pub picture: FrameType,
    /// Its size.
    pub bytes: u32,
    /// The time to the next frame; zero if the trace has no times.
    pub gap: Duration,
}

/// The type of a frame, by the frames that are needed to decode it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameType {
    /// Only itself.
    I,
    /// The I- or P-frame before it.
    P,
    /// The two I- or P-frames before it in the order of coding, which are on either side of it in the order of display.
    B,
}

impl fmt::Display for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cbr { rate, size, arrivals, .. } => {
                write!(f, "datagrams of {size}, ")?;
                match rate {
                    Some(rate) => write!(f, "{rate}")?,
                    None => f.write_str("saturating")?,
                }
                if arrivals.gaps == Spread::Exponential {
                    f.write_str(", Poisson")?;
                }
                if let Some(OnOff { on, off, durations }) = arrivals.on_off {
                    let mean = if durations == Spread::Exponential { " on average" } else { "" };
                    write!(f, ", {on} on and {off} off{mean}")?;
                }
            }
            Self::Bulk { rate, bytes, .. } => {
                match bytes {
                    Some(bytes) => write!(f, "{bytes} in bulk")?,
                    None => f.write_str("as much as goes")?,
                }
                if let Some(rate) = rate {
                    write!(f, ", at most {rate}")?;
                }
            }
            Self::File { contents, .. } => write!(f, "a file of {} bytes", contents.len())?,
            Self::Messages { size, every, .. } => write!(f, "messages of {size} every {every}")?,
            Self::Video { frames, deadline, .. } => write!(f, "video, {frames}, deadline {deadline}")?,
            Self::ShortFlows { size, every, gaps, .. } => {
                let poisson = if *gaps == Spread::Exponential { " on average, Poisson" } else { "" };
                write!(f, "a flow of {size} every {every}{poisson}")?;
            }
            Self::Program { program, .. } => write!(f, "{program}")?,
        }
        write!(f, ", {}", self.span())
    }
}

impl fmt::Display for SendSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.start {
            Some(start) => write!(f, "from {start}")?,
            None => f.write_str("from its start event")?,
        }
        self.stop.map_or(Ok(()), |stop| write!(f, " to {stop}"))
    }
}

impl fmt::Display for SizeLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => write!(f, "{size}"),
            Self::Exponential(mean) => write!(f, "{mean} on average, exponential,"),
            Self::Pareto { mean, shape } => write!(f, "{mean} on average, Pareto of shape {shape},"),
        }
    }
}

impl fmt::Display for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(pattern) => {
                let Pattern { rate, interval, gop, b_frames, variation } = pattern;
                write!(
                    f,
                    "{rate}, a frame every {interval}, GOP of {gop} with {b_frames} B-frames in a row"
                )?;
                if variation.get() > 0.0 { write!(f, ", sizes ± {variation}") } else { Ok(()) }
            }
            Self::Trace { frames, .. } => write!(f, "a trace of {} frames", frames.len()),
        }
    }
}
