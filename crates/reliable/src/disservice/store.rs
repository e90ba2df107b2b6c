//! The records that a member hands to a store that outlasts it, and takes from there when it begins again.
//!
//! Each record is a [`Message`](hopcast_core::Message) whose name is its key and whose payload is its value; one
//! without a payload takes the record away. The key begins with a letter:
//!
//! - `m`, group (32), publisher (48), sequence number (32): a whole message. Its value is length, fragment, chunk,
//!   digest, the time that it has left in ms (64; all ones if it never expires), and its object.
//! - `s`, group (32), publisher (48): a series. Its value is the newest number (32), and for each run of messages
//!   that were handed up or given up its first number and the one after its last (32 each).

use hopcast_core::bytes::{Malformed, Reader};
use hopcast_core::{Duration, Message as Unit};

use super::series::SeriesId;
use super::wire::{MemberId, MessageId, Shape};
use crate::runs::Runs;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Message { id: MessageId, shape: Shape, lifetime: Option<u64>, object: &'a [u8] },
    Series { id: SeriesId, newest: u32, done: Runs },
}

/// Runs that are restored of a series, at most. Chosen: 64 KiB of them.
const MAX_RUNS: usize = 8192;

/// Place of the time that a message has left in its record's value: behind length, fragment, chunk and digest.
const LIFETIME: std::ops::Range<usize> = 11..19;

/// Bytes of a message's record before its object.
const HEAD: usize = LIFETIME.end;

/// A record as it is some time after it was handed out: its message has less time left. `None` if that has expired.
pub fn aged(mut record: Unit, by: Duration) -> Option<Unit> {
    let parsed = record.name.as_deref().and_then(|key| Record::parse(key, &record.payload).ok());
    let Some(Record::Message { lifetime: Some(left), .. }) = parsed else { return Some(record) };
    let left = left.checked_sub(by.as_millis()).filter(|&left| left > 0)?;
    record.payload[LIFETIME].copy_from_slice(&left.to_be_bytes());
    Some(record)
}

pub(super) fn message_key(id: MessageId) -> Vec<u8> {
    let mut key = vec![b'm'];
    key.extend(id.group.to_be_bytes());
    id.publisher.write(&mut key);
    key.extend(id.sequence.to_be_bytes());
    key
}

pub(super) fn series_key(id: SeriesId) -> Vec<u8> {
    let mut key = vec![b's'];
    key.extend(id.group.to_be_bytes());
    id.publisher.write(&mut key);
    key
}

/// The value of a message's record before its object.
pub(super) fn message_head(shape: Shape, lifetime: Option<u64>) -> [u8; HEAD] {
    let mut out = [0; HEAD];
    out[..4].copy_from_slice(&shape.length.to_be_bytes());
    out[4..6].copy_from_slice(&shape.fragment.to_be_bytes());
    out[6] = shape.chunk;
    out[7..LIFETIME.start].copy_from_slice(&shape.digest.to_be_bytes());
    out[LIFETIME].copy_from_slice(&lifetime.unwrap_or(u64::MAX).to_be_bytes());
    out
}

/// The value of a series' record.
pub(super) fn series_value(newest: u32, done: &Runs) -> Vec<u8> {
    let mut out = newest.to_be_bytes().to_vec();
    for run in done.ranges() {
        out.extend(run.start.to_be_bytes());
        out.extend(run.end.to_be_bytes());
    }
    out
}

impl<'a> Record<'a> {
    pub(super) fn parse(key: &[u8], value: &'a [u8]) -> Result<Self, Malformed> {
        let (mut key, mut value) = (Reader::new(key), Reader::new(value));
        let kind = key.u8("kind of record")?;
        let id = SeriesId { group: key.u32("group")?, publisher: MemberId::read(&mut key)? };
        match kind {
            b'm' => {
                let id = id.message(key.u32("sequence number")?);
                let shape = Shape {
                    length: value.u32("length")?,
                    fragment: value.u16("fragment")?,
                    chunk: value.u8("chunk")?,
                    digest: value.u32("digest")?,
                };
                Malformed::unless(shape.fragment > 0 && shape.chunk > 0, "fragment")?;
                let lifetime = Some(value.u64("lifetime")?).filter(|&lifetime| lifetime < u64::MAX);
                let object = value.take_rest();
                Malformed::unless(object.len() == shape.length as usize, "length")?;
                Ok(Self::Message { id, shape, lifetime, object })
            }
            b's' => {
                let newest = value.u32("newest number")?;
                let mut done = Runs::new();
                for _ in 0..MAX_RUNS {
                    if value.is_empty() {
                        break;
                    }
                    let (first, end) = (value.u32("first of run")?, value.u32("end of run")?);
                    done.insert_run(first.into()..end.into());
                }
                Ok(Self::Series { id, newest, done })
            }
            _ => Err(Malformed { field: "kind of record" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Buffer;

    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let id = SeriesId { group: 7, publisher: MemberId { node: 3, run: 9 } };
        let mut done = Runs::new();
        done.insert_run(2..5);
        done.insert(9);
        let shape = Shape { length: 3, fragment: 2, chunk: 1, digest: 8 };
        let value = |lifetime| [&message_head(shape, lifetime)[..], b"abc"].concat();
        let key = message_key(id.message(5));
        for lifetime in [None, Some(77)] {
            let record = Record::Message { id: id.message(5), shape, lifetime, object: b"abc" };
            assert_eq!(Record::parse(&key, &value(lifetime)), Ok(record));
        }
        let series = Record::Series { id, newest: 12, done: done.clone() };
        assert_eq!(Record::parse(&series_key(id), &series_value(12, &done)), Ok(series));
        let after = |lifetime, seconds| {
            let unit = Unit::new(0, Buffer::copy_from(&value(lifetime))).named(key.clone());
            let aged = aged(unit, Duration::from_secs(seconds))?;
            let parsed = Record::parse(&key, &aged.payload).unwrap();
            let Record::Message { lifetime, object, .. } = parsed else { panic!("{parsed:?}") };
            assert_eq!(object, b"abc");
            Some(lifetime)
        };
        assert_eq!((after(Some(7000), 5), after(Some(7000), 7)), (Some(Some(2000)), None));
        assert_eq!(after(None, 1_000_000), Some(None));
        assert!(Record::parse(&key, &value(None)[1..]).is_err());
        assert!(Record::parse(b"x", b"").is_err());
    }
}
