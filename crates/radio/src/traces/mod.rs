//! Tracks from files of other programs and of the world.
//!
//! | format | positions | ships are named by | time zero |
//! |---|---|---|---|
//! | [`Setdest`](Format::Setdest) | metres | the node's number | the file's |
//! | [`BonnMotion`](Format::BonnMotion) | metres | the line, from 0, comments not counted | the file's |
//! | [`Gpx`](Format::Gpx) | degrees | the track's name, or `track N` | the earliest point of the file |
//! | [`AisNmea`](Format::AisNmea) | degrees | the MMSI | the earliest report of the file |
//! | [`AisCsv`](Format::AisCsv) | degrees | the MMSI | the earliest report of the file |
//!
//! The work is that of reading the text and of sorting what is in it; memory is a few times the text's, and for GPX, of
//! which each element takes a node, up to some tens of times. A mistake is one line with its place, and nothing of the
//! file is used then.

mod ais;
mod bonnmotion;
mod gpx;
mod setdest;
mod utc;

use std::collections::BTreeMap;

use hopcast_config::Diagnostic;
use hopcast_core::{Duration, Instant};

use crate::position::Position;
use crate::track::Track;

/// Format of a file of tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Movements for ns-2, as `setdest` writes them and ns-3 reads them (ns-2 manual, section 16.1.2).
    Setdest,
    /// BonnMotion's own format in two dimensions: a line for each node, of times and coordinates in turn.
    BonnMotion,
    /// Tracks of GPX 1.0 or 1.1, whose points have times.
    Gpx,
    /// Position reports of AIS (ITU-R M.1371-5, messages 1, 2, 3 and 18) in NMEA 0183 sentences with times.
    AisNmea,
    /// Position reports of AIS as a table with a header, as coast guards publish them.
    AisCsv,
}

/// The tracks of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traces {
    /// A track for each ship, by its name.
    pub tracks: BTreeMap<String, Track>,
    /// Number of well-formed entries without a position: other messages than position reports, parts of long ones,
    /// reports of ships that do not know where they are, and tracks of GPX without points.
    pub ignored: u64,
}

impl Traces {
    /// Reads `text`, whose place in errors is `file`.
    ///
    /// # Errors
    ///
    /// At the first line that is not of the format, and if there is no track in the file.
    pub fn read(format: Format, file: &str, text: &str) -> Result<Self, Diagnostic> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let traces = match format {
            Format::Setdest => setdest::read(file, text),
            Format::BonnMotion => bonnmotion::read(file, text),
            Format::Gpx => gpx::read(file, text),
            Format::AisNmea => ais::nmea::read(file, text),
            Format::AisCsv => ais::table::read(file, text),
        }?;
        if traces.tracks.is_empty() {
            return Err(Diagnostic::of_file(file, "expected the positions of at least one ship, found none"));
        }
        Ok(traces)
    }
}

/// A line of a file, for its errors.
#[derive(Clone, Copy)]
struct Line<'a> {
    file: &'a str,
    /// Its number, from 1.
    number: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn all(file: &'a str, text: &'a str) -> impl Iterator<Item = Self> {
        (1..).zip(text.lines()).map(move |(number, text)| Line { file, number, text })
    }

    /// Whether there is nothing in it, or a comment.
    fn is_empty(&self) -> bool {
        let text = self.text.trim_start();
        text.is_empty() || text.starts_with('#')
    }

    /// An error at `part`, a part of this line.
    fn error(&self, part: &str, message: impl Into<String>) -> Diagnostic {
        let offset = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let before = self.text.get(..offset).unwrap_or(self.text);
        Diagnostic::at(self.file, self.number, before.chars().count() + 1, message)
    }

    /// An error at the end of the line.
    fn error_at_end(&self, message: impl Into<String>) -> Diagnostic {
        self.error(&self.text[self.text.len()..], message)
    }

    /// The finite number that `part`, a part of this line, is; `what` says which is expected.
    fn number(&self, part: &str, what: &str) -> Result<f64, Diagnostic> {
        let number = part.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.error(part, format!("expected {what}, found `{part}`")))
    }

    fn seconds(&self, part: &str) -> Result<f64, Diagnostic> {
        let what = "a time in seconds from 0 to 1e10";
        let seconds = self.number(part, what)?;
        if !(0.0..=MAX_SECONDS).contains(&seconds) {
            return Err(self.error(part, format!("expected {what}, found `{part}`")));
        }
        Ok(seconds)
    }

    /// The position on the plane of two numbers, which are the two `words`; an error is at the one that is too big.
    fn plane(&self, words: [&str; 2], x: f64, y: f64) -> Result<Position, Diagnostic> {
        let bad = if Position::metres(x, 0.0).is_err() { words[0] } else { words[1] };
        Position::metres(x, y).map_err(|error| self.error(bad, error.to_string()))
    }
}

/// Maximum time in a trace, in seconds. It fits an [`Instant`], with room for what comes after it.
const MAX_SECONDS: f64 = 1e10;

fn instant(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds.min(MAX_SECONDS))
}
