//! Frames of a test picture as they were sent and as they arrived, side by side.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Error, run::Recording};

/// One frame of a test picture, as PNG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramePair {
    /// The frame's number, which the picture shows too.
    pub number: u64,
    /// The frame that was sent.
    pub sent: Vec<u8>,
    /// The frame that was shown at the receiver, however damaged; `None` if none was.
    pub received: Option<Vec<u8>>,
}

/// The frames that were due at these times after the first one, in seconds, `width` pixels wide.
///
/// # Errors
/// A missing ffmpeg, or a frame that the sender's recording does not have.
pub fn pictures(recording: &Recording, times: &[f64], width: u32) -> Result<Vec<FramePair>, Error> {
    let frame = |&time: &f64| {
        let number = (time.max(0.0) * f64::from(recording.fps)).round() as u64;
        let sent = picture(&recording.sent, number, recording.fps, width)?
            .ok_or_else(|| Error::NoFrame { path: recording.sent.clone(), number })?;
        let received = picture(&recording.received, number, recording.fps, width)?;
        Ok(FramePair { number, sent, received })
    };
    times.iter().map(frame).collect()
}

fn picture(path: &Path, number: u64, fps: u32, width: u32) -> Result<Option<Vec<u8>>, Error> {
    if !path.exists() {
        return Ok(None);
    }
    // By its time stamp, half a frame to either side.
    let at = |frame: f64| frame.max(-0.5) / f64::from(fps);
    let (from, to) = (at(number as f64 - 0.5), at(number as f64 + 0.5));
    let filter = format!("select='between(t,{from:.6},{to:.6})',scale={width}:-2");
    let mut command = Command::new("ffmpeg");
    command.args([
        "-nostdin",
        "-hide_banner",
        "-loglevel",
        "error",
        "-copyts",
        "-fflags",
        "+noparse+nofillin",
    ]);
    command.args(["-f", "mpegts", "-i"]).arg(path).args(["-map", "0:v", "-vf", &filter]);
    command.args(["-fps_mode", "passthrough", "-frames:v", "1", "-c:v", "png", "-f", "image2pipe", "-"]);
    let done = command.stdin(Stdio::null()).output().map_err(|error| Error::start("ffmpeg", error))?;
    // For an empty recording ffmpeg prints an error, and no picture.
    Ok((!done.stdout.is_empty()).then_some(done.stdout))
}
