//! The files of a store: segments, to the last of which records are appended.
//!
//! A record is dead once another of its key follows. Where dead ones take more than live ones, the oldest segment goes:
//! what is alive of it is appended again. A removal is dead from the start: what it takes away lies before it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc;
use rustix::fs::{FlockOperation, flock};

use super::record::{HEADER, head, records};

/// Length at which a segment is complete, in bytes. Chosen: shorter ones are many files, longer ones hold dead records
/// for longer.
const SEGMENT: u64 = 4 << 20;
/// Maximum length of a key, in bytes.
const MAX_KEY: usize = 1 << 10;
/// End of the name of a segment, and the file that shows that a store is in use.
const SUFFIX: &str = ".log";
const LOCK: &str = "lock";

/// Segments, and where the live records are.
#[derive(Debug)]
pub(super) struct Log {
    directory: PathBuf,
    segments: BTreeMap<u64, Segment>,
    live: BTreeMap<Vec<u8>, Place>,
    /// The last segment, if it is still appended to.
    tail: Option<File>,
    is_synced: bool,
    /// It is locked as long as this is.
    _lock: File,
}

#[derive(Debug, Default)]
struct Segment {
    bytes: u64,
    live: u64,
}

#[derive(Clone, Debug)]
struct Place {
    segment: u64,
    at: Range<u64>,
    time: u64,
}

/// A record of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// When it was written first, in milliseconds since 1970.
    pub(crate) time: u64,
}

/// The records of earlier runs, the oldest first, and what was passed over.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) records: Vec<Kept>,
    /// Damaged places.
    pub(crate) damaged: u64,
    /// Files that are no segments.
    pub(crate) foreign: u64,
    /// Records that were left out since there are more bytes of them than fit.
    pub(crate) beyond: u64,
}

impl Log {
    /// Opens a store whose records take `max` bytes together at most.
    ///
    /// # Errors
    /// The directory cannot be made, read or locked: another process may have it.
    pub(super) fn open(directory: &Path, max: u64) -> io::Result<(Self, Found)> {
        fs::create_dir_all(directory)?;
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(directory.join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => io::Error::other("another process has it"),
            error => error.into(),
        })?;
        let mut log = Self {
            directory: directory.to_owned(),
            segments: BTreeMap::new(),
            live: BTreeMap::new(),
            tail: None,
            is_synced: true,
            _lock: lock,
        };
        let mut found = Found::default();
        let mut values = BTreeMap::new();
        for number in log.list(&mut found)? {
            log.read(number, max, &mut values, &mut found)?;
        }
        let mut all: Vec<_> =
            values.into_iter().map(|(key, (value, time))| Kept { key, value, time }).collect();
        all.sort_by_key(|record| {
            (record.time, log.live.get(&record.key).map(|it| (it.segment, it.at.start)))
        });
        let mut bytes: u64 = all.iter().map(|record| record.value.len() as u64).sum();
        let fit = all.iter().take_while(|record| {
            let is_too_much = bytes > max;
            bytes -= record.value.len() as u64;
            is_too_much
        });
        let beyond = fit.count();
        for record in all.drain(..beyond) {
            log.bury(&record.key);
        }
        found.beyond += beyond as u64;
        found.records = all;
        Ok((log, found))
    }

    /// The numbers of the segments.
    fn list(&self, found: &mut Found) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| {
                let digits = name.strip_suffix(SUFFIX).filter(|digits| digits.len() == 16)?;
                u64::from_str_radix(digits, 16).ok()
            });
            match number {
                Some(number) if entry.file_type().is_ok_and(|kind| kind.is_file()) => numbers.push(number),
                _ => found.foreign += u64::from(name != LOCK),
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Reads a segment, after all older ones.
    fn read(
        &mut self,
        number: u64,
        max: u64,
        values: &mut BTreeMap<Vec<u8>, (Vec<u8>, u64)>,
        found: &mut Found,
    ) -> io::Result<()> {
        let path = self.path(number);
        if fs::metadata(&path)?.len() > SEGMENT + max + (HEADER + MAX_KEY) as u64 {
            // Its last record alone is more than fits.
            found.beyond += 1;
            return fs::remove_file(&path);
        }
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(_) => {
                // A disk that has failed there.
                found.damaged += 1;
                return Ok(());
            }
        };
        self.segments.insert(number, Segment { bytes: bytes.len() as u64, live: 0 });
        let (records, damaged) = records(&bytes);
        found.damaged += damaged;
        // What follows would be lost with a record that was cut short.
        self.tail = match damaged {
            0 if (bytes.len() as u64) < SEGMENT => OpenOptions::new().append(true).open(&path).ok(),
            _ => None,
        };
        for record in records {
            self.bury(record.key);
            if record.value.is_empty() {
                values.remove(record.key);
                continue;
            }
            values.insert(record.key.to_vec(), (record.value.to_vec(), record.time));
            self.bear(record.key, Place { segment: number, at: record.place, time: record.time });
        }
        Ok(())
    }

    /// Bytes of all segments.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.values().map(|segment| segment.bytes).sum()
    }

    fn live_bytes(&self) -> u64 {
        self.segments.values().map(|segment| segment.live).sum()
    }

    /// Writes a record, or takes one away if its value is empty.
    ///
    /// # Errors
    /// It could not be written, and is not there any more.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8], time: u64) -> io::Result<()> {
        let is_removal = value.is_empty();
        if is_removal && !self.live.contains_key(key) {
            return Ok(());
        }
        if key.len() > MAX_KEY || u32::try_from(value.len()).is_err() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.bury(key);
        let head = head(key, value, time);
        let place = match self.append(&[&head, value]) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                self.drop_dead();
                self.append(&[&head, value])?
            }
            appended => appended?,
        };
        if !is_removal {
            self.bear(key, Place { time, ..place });
        }
        Ok(())
    }

    /// Makes room where dead records take more than live ones.
    ///
    /// # Errors
    /// Live records could not be written again; they stay where they are.
    pub(super) fn clean(&mut self) -> io::Result<()> {
        while self.bytes() > 2 * self.live_bytes() + 2 * SEGMENT
            && let Some(&oldest) = self.segments.keys().next()
        {
            self.finish_if(oldest);
            self.move_live(oldest)?;
            self.drop_dead();
        }
        Ok(())
    }

    /// Appends again what is alive of a segment.
    fn move_live(&mut self, segment: u64) -> io::Result<()> {
        let here = self.live.iter().filter(|(_, place)| place.segment == segment);
        let mut places: Vec<_> = here.map(|(key, place)| (key.clone(), place.clone())).collect();
        places.sort_by_key(|(_, place)| place.at.start);
        let Some((_, first)) = places.first() else { return Ok(()) };
        debug_assert!(first.segment == segment);
        let file = File::open(self.path(segment))?;
        for (key, Place { at, time, .. }) in places {
            let mut bytes = vec![0; (at.end - at.start) as usize];
            file.read_exact_at(&mut bytes, at.start)?;
            let place = self.append(&[&bytes])?;
            self.bury(&key);
            self.bear(&key, Place { time, ..place });
        }
        // What was moved is to be there before its first place goes.
        self.sync()
    }

    /// Removes the segments of which nothing is alive, as far as nothing before them is.
    fn drop_dead(&mut self) {
        let appended = self.tail.is_some().then(|| self.segments.keys().next_back().copied()).flatten();
        while let Some((&oldest, segment)) = self.segments.first_key_value()
            && segment.live == 0
            && Some(oldest) != appended
            && fs::remove_file(self.path(oldest)).is_ok()
        {
            self.segments.remove(&oldest);
        }
    }

    /// Appends a record, in pieces, to the last segment.
    fn append(&mut self, pieces: &[&[u8]]) -> io::Result<Place> {
        let last = self.segments.last_key_value().map(|(&number, segment)| (number, segment.bytes));
        let (number, at) = match last {
            Some((number, len)) if self.tail.is_some() && len < SEGMENT => (number, len),
            last => {
                self.sync()?;
                let number = last.map_or(0, |(number, _)| number + 1);
                let options = OpenOptions::new()
                    .append(true)
                    .create_new(true)
                    .mode(0o640)
                    .custom_flags(libc::O_NOFOLLOW)
                    .to_owned();
                self.tail = Some(options.open(self.path(number))?);
                self.segments.insert(number, Segment::default());
                (number, 0)
            }
        };
        let file = self.tail.as_mut().ok_or(io::ErrorKind::NotFound)?;
        self.is_synced = false;
        if let Err(error) = pieces.iter().try_for_each(|bytes| file.write_all(bytes)) {
            // Half a record is taken away again; if that fails too, the next one goes to another segment.
            if file.set_len(at).is_err() {
                self.tail = None;
            }
            return Err(error);
        }
        let end = at + pieces.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
        self.segments.entry(number).or_default().bytes = end;
        Ok(Place { segment: number, at: at..end, time: 0 })
    }

    /// Ends a segment if it is the last one.
    fn finish_if(&mut self, segment: u64) {
        if self.segments.keys().next_back() == Some(&segment) {
            self.tail = None;
        }
    }

    /// Brings to the disk what was written.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if let Some(tail) = self.tail.as_ref().filter(|_| !self.is_synced) {
            tail.sync_data()?;
            File::open(&self.directory)?.sync_all()?;
        }
        self.is_synced = true;
        Ok(())
    }

    fn bear(&mut self, key: &[u8], place: Place) {
        let segment = self.segments.entry(place.segment).or_default();
        segment.live += place.at.end - place.at.start;
        self.live.insert(key.to_vec(), place);
    }

    fn bury(&mut self, key: &[u8]) {
        if let Some(place) = self.live.remove(key)
            && let Some(segment) = self.segments.get_mut(&place.segment)
        {
            segment.live -= place.at.end - place.at.start;
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:016x}{SUFFIX}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 64 << 20;

    type KeyAndValue = (Vec<u8>, Vec<u8>);

    /// The keys and values of a store that is opened, and what was passed over: damaged, foreign, beyond.
    fn opened(directory: &Path, max: u64) -> (Vec<KeyAndValue>, [u64; 3]) {
        let (_, found) = Log::open(directory, max).unwrap();
        let records = found.records.into_iter().map(|record| (record.key, record.value)).collect();
        (records, [found.damaged, found.foreign, found.beyond])
    }

    fn record(key: u8, value: &[u8]) -> KeyAndValue {
        (vec![key], value.to_vec())
    }

    #[test]
    fn the_last_record_of_each_key_is_there_in_the_next_run_the_oldest_first() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(dir.path(), MAX).unwrap();
        for (time, key, value) in
            [(1, 7, "old"), (2, 1, "one"), (3, 7, "new"), (4, 2, "two"), (5, 2, ""), (6, 3, "three")]
        {
            log.put(&[key], value.as_bytes(), time).unwrap();
        }
        let refused = Log::open(dir.path(), MAX).unwrap_err().to_string();
        assert_eq!(refused, "another process has it");
        drop(log);
        let expected = vec![record(1, b"one"), record(7, b"new"), record(3, b"three")];
        assert_eq!(opened(dir.path(), MAX), (expected.clone(), [0; 3]));
        // The next run goes on in the same segment.
        let (mut log, _) = Log::open(dir.path(), MAX).unwrap();
        log.put(&[9], b"nine", 2).unwrap();
        drop(log);
        let mut more = expected;
        more.insert(1, record(9, b"nine"));
        assert_eq!(opened(dir.path(), MAX), (more, [0; 3]));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "a segment and the lock");
    }

    #[test]
    fn what_is_damaged_cut_short_or_foreign_is_passed_over_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(dir.path(), MAX).unwrap();
        (0..4).for_each(|key| log.put(&[key], &[key; 100], key.into()).unwrap());
        drop(log);
        let segment = dir.path().join("0000000000000000.log");
        let mut bytes = fs::read(&segment).unwrap();
        let length = bytes.len() / 4;
        bytes[length + 50] ^= 1;
        bytes.truncate(4 * length - 10);
        fs::write(&segment, bytes).unwrap();
        fs::write(dir.path().join("notes.txt"), "of a person").unwrap();
        fs::write(dir.path().join("0000000000000001.log"), "no record at all").unwrap();
        fs::create_dir(dir.path().join("0000000000000002.log")).unwrap();
        let expected = vec![record(0, &[0; 100]), record(2, &[2; 100])];
        assert_eq!(opened(dir.path(), MAX), (expected, [3, 2, 0]));
        assert!(dir.path().join("notes.txt").exists());
    }

    #[test]
    fn dead_records_take_no_more_than_live_ones_and_two_segments() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(dir.path(), MAX).unwrap();
        log.put(b"first", b"stays", 1).unwrap();
        let value = vec![5; 100 << 10];
        let mut most = 0;
        for at in 0..600_u64 {
            // Some 4 MiB are alive, of 60 MiB that are written.
            log.put(&[(at % 40) as u8], &value, 2 + at).unwrap();
            log.clean().unwrap();
            most = most.max(log.bytes());
        }
        let live = log.live_bytes();
        assert!(live > 40 * (100 << 10) && most <= 2 * live + 2 * SEGMENT + value.len() as u64, "{most}");
        // The lock is empty.
        let on_disk: u64 =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
        assert_eq!(on_disk, log.bytes());
        drop(log);
        let (found, passed) = opened(dir.path(), MAX);
        assert_eq!(
            (found.len(), found[0].clone(), passed),
            (41, (b"first".to_vec(), b"stays".to_vec()), [0; 3])
        );
        // A removal whose record is gone goes too.
        let (mut log, _) = Log::open(dir.path(), MAX).unwrap();
        (0..40).for_each(|key| log.put(&[key], &[], 1000).unwrap());
        (0..400_u64).for_each(|at| log.put(b"x", &value, at).and_then(|()| log.clean()).unwrap());
        drop(log);
        let (found, _) = opened(dir.path(), MAX);
        assert_eq!(
            found.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(),
            [b"first".to_vec(), b"x".to_vec()]
        );
    }

    #[test]
    fn of_more_than_fits_the_newest_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(dir.path(), MAX).unwrap();
        (0..10).for_each(|key| log.put(&[key], &[key; 1000], key.into()).unwrap());
        drop(log);
        let (found, passed) = opened(dir.path(), 3500);
        assert_eq!(found.iter().map(|(key, _)| key[0]).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(passed, [0, 0, 7]);
    }

    #[test]
    fn a_segment_that_cannot_be_written_is_left_for_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(dir.path(), MAX).unwrap();
        log.put(&[1], b"one", 1).unwrap();
        // Writing to it fails as a full disk does, and what was written cannot be taken back.
        log.tail = Some(OpenOptions::new().append(true).open("/dev/full").unwrap());
        log.put(&[2], b"two", 2).unwrap();
        // Now there is no room for another one either.
        log.tail = Some(OpenOptions::new().append(true).open("/dev/full").unwrap());
        fs::create_dir(log.path(2)).unwrap();
        assert!(log.put(&[3], b"three", 3).is_err() && log.put(&[1], b"new", 3).is_err());
        fs::remove_dir(log.path(2)).unwrap();
        log.put(&[4], b"four", 4).unwrap();
        drop(log);
        // What could not be replaced is as it was.
        assert_eq!(opened(dir.path(), MAX).0, [record(1, b"one"), record(2, b"two"), record(4, b"four")]);
    }
}
