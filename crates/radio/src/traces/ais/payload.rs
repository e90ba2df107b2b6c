//! Messages of AIS in the six-bit armour of NMEA 0183: ITU-R M.1371-5, annex 8, tables 48 and 67.
//!
//! ```text
//!                  message 1, 2, 3   message 18
//! type                     0..6        0..6
//! MMSI                     8..38       8..38
//! longitude               61..89      57..85     1/10,000 minute, two's complement
//! latitude                89..116     85..112
//! true heading           128..137    124..133    degrees; 511: not known
//! ```

use super::{Report, known};

/// Bits of a message, of which only what a position report has is kept.
struct Bits {
    /// The first 192 bits, six to a character.
    bits: [u8; 32],
    count: usize,
}

/// A message.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// A position report.
    Report(Report),
    /// Another message, or a report without a position.
    Other,
}

/// The error of a payload: the index of the bad character, if it is one, and what was expected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PayloadError {
    pub(super) at: usize,
    pub(super) message: String,
}

/// Reads the payload of a sentence that is a whole message.
pub(super) fn read(payload: &str) -> Result<Message, PayloadError> {
    let bits = unarmour(payload)?;
    let short = || PayloadError {
        at: payload.len(),
        message: format!("expected a whole message, found {} bits", bits.count),
    };
    let (longitude, latitude, heading) = match bits.unsigned(0, 6).ok_or_else(short)? {
        1..=3 => (61, 89, 128),
        18 => (57, 85, 124),
        _ => return Ok(Message::Other),
    };
    let mmsi = bits.unsigned(8, 30).ok_or_else(short)?;
    let longitude = bits.signed(longitude, 28).ok_or_else(short)?;
    let latitude = bits.signed(latitude, 27).ok_or_else(short)?;
    let heading = bits.unsigned(heading, 9).ok_or_else(short)?;
    let degrees = |minutes: i32| f64::from(minutes) / 600_000.0;
    let position =
        known(degrees(latitude), degrees(longitude)).map_err(|message| PayloadError { at: 0, message })?;
    let heading = (heading < 360).then(|| f64::from(heading));
    Ok(position.map_or(Message::Other, |position| Message::Report(Report { mmsi, position, heading })))
}

/// Six bits of each character: its code less 48, and less 8 more above 40 (IEC 61162-1, table of six-bit fields).
fn unarmour(payload: &str) -> Result<Bits, PayloadError> {
    let mut bits = Bits { bits: [0; 32], count: 0 };
    for (at, byte) in payload.bytes().enumerate() {
        let value = match byte {
            48..=87 => byte - 48,
            96..=119 => byte - 56,
            _ => {
                let message =
                    "expected the characters of six-bit armour, `0` to `W` and `` ` `` to `w`".into();
                return Err(PayloadError { at, message });
            }
        };
        if let Some(place) = bits.bits.get_mut(at) {
            *place = value;
            bits.count += 6;
        }
    }
    Ok(bits)
}

impl Bits {
    /// The number of `length` bits from `start` on, the first of which has the highest value.
    fn unsigned(&self, start: usize, length: usize) -> Option<u32> {
        if start + length > self.count {
            return None;
        }
        let bit = |at: usize| u32::from(self.bits[at / 6] >> (5 - at % 6) & 1);
        Some((start..start + length).fold(0, |number, at| number << 1 | bit(at)))
    }

    fn signed(&self, start: usize, length: usize) -> Option<i32> {
        let unused = 32 - length as u32;
        self.unsigned(start, length).map(|number| (number << unused) as i32 >> unused)
    }
}
