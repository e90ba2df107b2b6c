//! AIS in sentences of NMEA 0183: `!AIVDM,1,1,,A,15RTgt0PAso;90TKcjM8h6g208CQ,0*4A`.
//!
//! A sentence has no date, so a time must come with it: in a tag block before it, `\c:1567684904*5A\` (NMEA 4.10;
//! seconds, or milliseconds), or as the last of the fields behind the checksum, as the US Coast Guard's logs have it.
//! Sentences of more than one part, messages that are no position reports and other sentences (`$GPGGA`) are ignored
//! and counted. A wrong checksum is a mistake: the line was damaged, and what else was is not known.

use hopcast_config::Diagnostic;

use super::super::utc::{self, Utc};
use super::super::{Line, Traces};
use super::Reports;
use super::payload::{self, Message};

pub(in super::super) fn read(file: &str, text: &str) -> Result<Traces, Diagnostic> {
    let mut reports = Reports::default();
    for line in Line::all(file, text).filter(|line| !line.is_empty()) {
        match sentence(&line)? {
            Some((at, Message::Report(report))) => reports.add(at, report),
            Some((_, Message::Other)) | None => reports.ignored += 1,
        }
    }
    Ok(reports.tracks())
}

/// The time and the message of a line; `None` if it is another sentence, or a part of a message.
fn sentence(line: &Line<'_>) -> Result<Option<(Utc, Message)>, Diagnostic> {
    let text = line.text.trim();
    let (tags, sentence) = match text.strip_prefix('\\') {
        Some(rest) => {
            let (tags, sentence) = rest.split_once('\\').ok_or_else(|| {
                line.error(text, "expected a tag block to end with `\\`, found the end of the line")
            })?;
            (Some(tags), sentence)
        }
        None => (None, text),
    };
    if !sentence.starts_with(['!', '$']) {
        return Err(line.error(sentence, "expected a sentence of NMEA, which begins with `!` or `$`"));
    }
    let (body, behind) = checked(line, &sentence[1..])?;
    let mut fields = body.split(',');
    let name = fields.next().unwrap_or_default();
    if !sentence.starts_with('!') || name.len() != 5 || !(name.ends_with("VDM") || name.ends_with("VDO")) {
        return Ok(None);
    }
    let mut field = |what: &str| {
        fields
            .next()
            .ok_or_else(|| line.error(body, format!("expected {what}, found the end of the sentence")))
    };
    let parts = field("the number of parts")?;
    if parts.parse::<u8>().is_err() {
        return Err(line.error(parts, format!("expected the number of parts, found `{parts}`")));
    }
    if parts != "1" {
        return Ok(None);
    }
    for what in ["the number of this part", "the number of the message", "the channel"] {
        field(what)?;
    }
    let payload = field("the payload")?;
    let message = payload::read(payload).map_err(|error| {
        let rest = payload.get(error.at..).unwrap_or(payload);
        line.error(rest, error.message)
    })?;
    if message == Message::Other {
        return Ok(None);
    }
    let at = match tags.map(|tags| tag_time(line, tags)).transpose()?.flatten() {
        Some(at) => Some(at),
        None => behind.rsplit_once(',').and_then(|(_, last)| utc::of_seconds(last.trim().parse().ok()?)),
    };
    let at = at.ok_or_else(|| {
        line.error(
            sentence,
            "expected a time with each report: seconds since 1970 in a tag block before it, `\\c:SECONDS*hh\\`, or \
             behind it, `,SECONDS`",
        )
    })?;
    Ok(Some((at, message)))
}

/// The part of `text` before its checksum, and the part behind it.
fn checked<'a>(line: &Line<'_>, text: &'a str) -> Result<(&'a str, &'a str), Diagnostic> {
    let wrong = |found: &str, message: String| Err(line.error(found, message));
    let Some((body, behind)) = text.split_once('*') else {
        return wrong(&text[text.len()..], "expected a checksum, `*` and two digits, found the end".into());
    };
    let sum = body.bytes().fold(0, |sum, byte| sum ^ byte);
    let digits = behind.get(..2).unwrap_or(behind);
    // `from_str_radix` would take a sign.
    let is_hex = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex || u8::from_str_radix(digits, 16) != Ok(sum) {
        return wrong(behind, format!("expected the checksum {sum:02X}, found `{digits}`"));
    }
    Ok((body, &behind[2..]))
}

/// The time in a tag block, if there is one.
fn tag_time(line: &Line<'_>, tags: &str) -> Result<Option<Utc>, Diagnostic> {
    let (body, _) = checked(line, tags)?;
    let Some(value) = body.split(',').find_map(|tag| tag.strip_prefix("c:")) else { return Ok(None) };
    let number = line.number(value, "seconds since 1970")?;
    // Receivers may write milliseconds: as seconds these would be the year 5138.
    let seconds = if number >= 1e11 { number / 1e3 } else { number };
    match utc::of_seconds(seconds) {
        Some(at) => Ok(Some(at)),
        None => Err(line.error(value, format!("expected a time from 1900 to 2199, found `{value}`"))),
    }
}
