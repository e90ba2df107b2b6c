//! Traces of videos: a CSV file with a line for each frame, in the order in which they are sent.
//!
//! ```text
//! # time_ms,type,bytes         or without times: type,bytes
//! 0,I,41250
//! 40,P,12100
//! ```
//!
//! Blank lines and lines that start with `#` are skipped, and so is a first line of column names.

use std::sync::Arc;

use hopcast_core::Duration;

use super::model::{FrameType, MAX_FRAME, TraceFrame};
use hopcast_config::Diagnostic;

/// Maximum number of frames of a trace: eleven hours at 25 frames a second. Chosen: it bounds memory.
const MAX_FRAMES: usize = 1_000_000;
/// Maximum time from one frame to the next, in milliseconds: an hour. Chosen: more is a slip.
const MAX_GAP: f64 = 3_600_000.0;

/// A trace that was read.
#[derive(Clone, Debug)]
pub(crate) struct VideoTrace {
    pub(crate) frames: Arc<[TraceFrame]>,
    /// Whether it has the time of each frame.
    pub(crate) timed: bool,
}

impl VideoTrace {
    /// Parses the trace in `text`, the contents of `file`.
    pub(crate) fn parse(text: &str, file: &str) -> Result<Self, Diagnostic> {
        let mut frames: Vec<TraceFrame> = Vec::new();
        let mut last: Option<f64> = None;
        let mut columns = 0;
        let content = |line: &str| !line.is_empty() && !line.starts_with('#');
        let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| content(line));
        for (index, (line, content)) in lines.enumerate() {
            let fields: Vec<&str> = content.split(',').map(str::trim).collect();
            let wrong = |message: String| Diagnostic::at(file, line, 1, message);
            if index == 0 {
                columns = fields.len();
                if !(2..=3).contains(&columns) {
                    return Err(wrong(format!(
                        "expected `type,bytes` or `time_ms,type,bytes`, found `{content}`"
                    )));
                }
                if matches!(fields.as_slice(), [.., "type", "bytes"]) {
                    continue;
                }
            }
            if fields.len() != columns {
                return Err(wrong(format!("expected {columns} columns as before, found {}", fields.len())));
            }
            if frames.len() >= MAX_FRAMES {
                return Err(wrong(format!("a trace has at most {MAX_FRAMES} frames, this is one more")));
            }
            let [.., picture, bytes] = fields.as_slice() else { continue };
            let frame = TraceFrame {
                picture: type_of(picture).ok_or_else(|| {
                    wrong(format!("expected the type of a frame, `I`, `P` or `B`, found `{picture}`"))
                })?,
                bytes: size_of(bytes).ok_or_else(|| {
                    wrong(format!("expected the bytes of a frame, 1 to {MAX_FRAME}, found `{bytes}`"))
                })?,
                gap: Duration::ZERO,
            };
            if frames.is_empty() && frame.picture != FrameType::I {
                return Err(wrong(format!("expected an I-frame first, found `{picture}`")));
            }
            if columns == 3 {
                let at = fields[0];
                let time = at.parse::<f64>().ok().filter(|time| time.is_finite());
                let time = time.ok_or_else(|| wrong(format!("expected milliseconds, found `{at}`")))?;
                if let Some((last, before)) = last.zip(frames.last_mut()) {
                    let gap = time - last;
                    if !(0.0..=MAX_GAP).contains(&gap) {
                        return Err(wrong(format!(
                            "expected a time from {last} ms on, at most an hour later, found `{at}`"
                        )));
                    }
                    before.gap = Duration::from_secs_f64(gap / 1000.0);
                }
                last = Some(time);
            }
            frames.push(frame);
        }
        let timed = columns == 3;
        let spanned: Duration = frames.iter().fold(Duration::ZERO, |sum, frame| sum + frame.gap);
        if frames.is_empty() || (timed && spanned.is_zero()) {
            let needed = if timed { "two frames that are some time apart" } else { "a frame" };
            return Err(Diagnostic::of_file(file, format!("expected at least {needed}")));
        }
        // The time from the last frame to the first of the next round is the mean.
        if let (true, intervals @ 1.., Some(last)) = (timed, frames.len() as u64 - 1, frames.last_mut()) {
            last.gap = spanned / intervals;
        }
        Ok(Self { frames: frames.into(), timed })
    }
}

/// The type of a frame by its letter.
fn type_of(text: &str) -> Option<FrameType> {
    match text {
        "I" => Some(FrameType::I),
        "P" => Some(FrameType::P),
        "B" => Some(FrameType::B),
        _ => None,
    }
}

/// The size of a frame in bytes, if it is in range.
fn size_of(text: &str) -> Option<u32> {
    text.parse().ok().filter(|size| (1..=MAX_FRAME).contains(size))
}
