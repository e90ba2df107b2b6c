//! Records of a segment.
//!
//! ```text
//! +---------+-----------+-----------+-------------------+---------------------+-----+-------+
//! | "hcr1"  | hash (64) | time (64) | key's length (16) | value's length (32) | key | value |
//! +---------+-----------+-----------+-------------------+---------------------+-----+-------+
//! ```
//!
//! The hash is of all behind it, the time that of the first writing, in milliseconds since 1970. A record without a
//! value takes the one of its key away. Integers are in network byte order.

use std::ops::Range;

use hopcast_core::bytes::{Malformed, Reader};

use crate::group::wire::{hash, hash_joined};

/// Beginning of a record: by it the next one is found behind one that is damaged.
const MARK: [u8; 4] = *b"hcr1";
/// Place of what the hash covers, and length of a record without its key and value, in bytes.
const HASHED: usize = 4 + 8;
pub(super) const HEADER: usize = HASHED + 8 + 2 + 4;
/// Marks of a segment behind which there is no sound record, at most. Chosen: more are no disk's damage, and each may
/// cost a hash of all that follows.
const MAX_DAMAGED: u64 = 256;

/// A record as it stands in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) time: u64,
    /// The record's place in the segment.
    pub(super) place: Range<u64>,
}

/// The bytes of a record before its value.
pub(super) fn head(key: &[u8], value: &[u8], time: u64) -> Vec<u8> {
    let mut record = Vec::with_capacity(HEADER + key.len());
    record.extend(MARK);
    record.extend([0; 8]);
    record.extend(time.to_be_bytes());
    record.extend((key.len() as u16).to_be_bytes());
    record.extend((value.len() as u32).to_be_bytes());
    record.extend(key);
    let sum = hash_joined(&[&record[HASHED..], value]);
    record[MARK.len()..HASHED].copy_from_slice(&sum.to_be_bytes());
    record
}

/// The records of a segment, and the number of places at which it is damaged. What is damaged is passed over up to the
/// next sound record.
pub(super) fn records(segment: &[u8]) -> (Vec<Found<'_>>, u64) {
    let (mut found, mut damaged, mut at) = (Vec::new(), 0, 0);
    while at < segment.len() && damaged < MAX_DAMAGED {
        if let Ok((record, len)) = parse(&segment[at..], at as u64) {
            found.push(record);
            at += len;
            continue;
        }
        damaged += 1;
        let rest = &segment[at + 1..];
        let next = rest.windows(MARK.len()).position(|bytes| bytes == MARK);
        at = next.map_or(segment.len(), |next| at + 1 + next);
    }
    (found, damaged)
}

fn parse(bytes: &[u8], at: u64) -> Result<(Found<'_>, usize), Malformed> {
    let mut reader = Reader::new(bytes);
    Malformed::unless(reader.array::<4>("mark")? == MARK, "mark")?;
    let sum = reader.u64("hash")?;
    let behind = reader.rest();
    let time = reader.u64("time")?;
    let (key, value) = (reader.u16("key's length")?, reader.u32("value's length")?);
    let key = reader.take(key.into(), "key")?;
    let value = reader.take(value as usize, "value")?;
    let len = HEADER + key.len() + value.len();
    Malformed::unless(hash(&[&behind[..len - HASHED]]) == sum, "hash")?;
    Ok((Found { key, value, time, place: at..at + len as u64 }, len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_damaged_costs_no_more_than_the_record_that_it_is_in() {
        let all: Vec<Vec<u8>> =
            (0..5_u8).map(|key| [&head(&[key], &[key; 40], key.into())[..], &[key; 40]].concat()).collect();
        let whole = all.concat();
        let keys = |bytes: &[u8]| {
            let (found, damaged) = records(bytes);
            (found.iter().map(|record| record.key[0]).collect::<Vec<_>>(), damaged)
        };
        assert_eq!(keys(&whole), (vec![0, 1, 2, 3, 4], 0));
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x40;
            let hit = (at / all[0].len()) as u8;
            let others: Vec<u8> = (0..5).filter(|&key| key != hit).collect();
            assert_eq!(keys(&changed), (others, 1), "byte {at}");
        }
        // A record that was cut short, as by a crash.
        assert_eq!(keys(&whole[..whole.len() - 1]), (vec![0, 1, 2, 3], 1));
        let found = records(&whole).0;
        assert_eq!(found[3], Found { key: &[3], value: &[3; 40], time: 3, place: 3 * 67..4 * 67 });
    }

    #[test]
    fn a_segment_of_marks_costs_bounded_work() {
        let marks = MARK.repeat(1 << 20);
        assert_eq!(records(&marks), (vec![], MAX_DAMAGED));
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_trap(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = records(&bytes);
            let _ = records(&[&MARK[..], &bytes].concat());
        }
    }
}
