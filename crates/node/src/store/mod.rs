//! A store of records on disk that outlasts the node: keys with their last values.
//!
//! A thread of its own writes, since a disk may take any time. What waits for it is kept by key, so that a record that
//! is written often and one that is taken away again cost no more than their last state. A full disk costs what could
//! not be written, and one line. [`log`] has the files, [`record`] their format.
//!
//! The thread syncs once a second: a crash of the host costs what was written since, a crash of the node what waited.

mod log;
mod record;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration as Time, SystemTime, UNIX_EPOCH};

use hopcast_core::{Buffer, Duration, Instant};

pub(crate) use self::log::Found;
use self::log::Log;
use crate::Clock;

/// Time between two syncs. Chosen; shorter keeps the disk busy, longer loses more when the power fails.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Time without failures after which the next one is worth a line. Chosen: a disk that is full for hours says so once.
const CALM: Duration = Duration::from_secs(60);
/// Bytes that wait for the disk beyond which no record is taken. Chosen: some seconds of a slow disk; more is memory.
const MAX_WAITING: usize = 16 << 20;
/// Maximum time that the thread has to write what waits when the node ends. Chosen: what systemd allows, about half.
const FAREWELL: Time = Time::from_secs(5);

/// A store, which is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Store {
    shared: Arc<Shared>,
    troubles: Receiver<String>,
    over: Receiver<()>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// Bytes of its files, and records that could not be written.
    bytes: AtomicU64,
    lost: AtomicU64,
}

/// Records that wait for the thread.
#[derive(Debug, Default)]
struct Waiting {
    records: BTreeMap<Vec<u8>, Arc<Buffer>>,
    bytes: usize,
    is_over: bool,
}

impl Store {
    /// Opens the store of a directory, whose values take `max` bytes together at most.
    ///
    /// # Errors
    /// The directory cannot be made, read or locked, or there is no thread.
    pub(crate) fn open(directory: &Path, max: u64) -> io::Result<(Self, Found)> {
        let (log, found) = Log::open(directory, max)?;
        let shared = Arc::new(Shared::default());
        shared.bytes.store(log.bytes(), Ordering::Relaxed);
        let (troubles_out, troubles) = channel();
        let (over_out, over) = channel();
        let place = directory.display().to_string();
        let writer = Writer { log, shared: Arc::clone(&shared), place, troubles: troubles_out, failed: None };
        let work = move || {
            writer.run();
            // Nobody waits for it unless the node ends.
            let _ = over_out.send(());
        };
        thread::Builder::new().name("store".to_owned()).spawn(work)?;
        Ok((Self { shared, troubles, over }, found))
    }

    /// Keeps a value under a key, in the place of the one before; an empty one takes the record away.
    pub(crate) fn put(&self, key: Vec<u8>, value: impl Into<Arc<Buffer>>) {
        let value = value.into();
        let mut waiting = self.shared.waiting();
        let before = waiting.records.get(&key).map_or(0, |value| value.len());
        if waiting.bytes - before >= MAX_WAITING && !value.is_empty() {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes = waiting.bytes - before + value.len();
        waiting.records.insert(key, value);
        drop(waiting);
        self.shared.changed.notify_one();
    }

    /// The next line that a person should read.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.troubles.try_recv().ok()
    }

    /// Bytes of its files.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Records that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.shared.waiting().is_over = true;
        self.shared.changed.notify_one();
        // A disk that does not answer is not waited for without end.
        let _ = self.over.recv_timeout(FAREWELL);
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Its fields hold together between any two lines that hold it.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time since 1970 by the host's clock, in milliseconds.
#[allow(clippy::disallowed_methods)] // Records outlast the node, and its clock.
pub(crate) fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The thread's state.
struct Writer {
    log: Log,
    shared: Arc<Shared>,
    place: String,
    troubles: Sender<String>,
    /// When writing failed last.
    failed: Option<Instant>,
}

impl Writer {
    fn run(mut self) {
        let clock = Clock::starting_now();
        let mut next_sync = Instant::ZERO + SYNC_INTERVAL;
        loop {
            let (records, is_over) = self.next_records();
            let time = wall_clock();
            let mut failure = None;
            for (key, value) in records {
                if let Err(error) = self.log.put(&key, &value, time) {
                    self.shared.lost.fetch_add(1, Ordering::Relaxed);
                    failure.get_or_insert(error);
                }
            }
            failure = failure.or(self.log.clean().err());
            if is_over || clock.now() >= next_sync {
                failure = failure.or(self.log.sync().err());
                next_sync = clock.now() + SYNC_INTERVAL;
            }
            self.shared.bytes.store(self.log.bytes(), Ordering::Relaxed);
            self.report(clock.now(), failure);
            if is_over {
                return;
            }
        }
    }

    /// Waits for records, until the next sync at most. The second part says whether no more will come.
    fn next_records(&self) -> (BTreeMap<Vec<u8>, Arc<Buffer>>, bool) {
        let interval = Time::from_nanos(SYNC_INTERVAL.as_nanos());
        let is_idle = |waiting: &mut Waiting| waiting.records.is_empty() && !waiting.is_over;
        let waited = self.shared.changed.wait_timeout_while(self.shared.waiting(), interval, is_idle);
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        waiting.bytes = 0;
        (std::mem::take(&mut waiting.records), waiting.is_over)
    }

    /// Says that the disk fails, once until it has written for a while.
    fn report(&mut self, now: Instant, failure: Option<io::Error>) {
        let is_known = self.failed.is_some_and(|at| now < at + CALM);
        let Some(error) = failure else {
            self.failed = self.failed.filter(|_| is_known);
            return;
        };
        self.failed = Some(now);
        if !is_known {
            let place = &self.place;
            let line = format!("{place}: {error}: what comes while this lasts is not there after a restart");
            // The node may have ended.
            let _ = self.troubles.send(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MAX: u64 = 1 << 20;

    fn key(name: &str) -> Vec<u8> {
        name.as_bytes().to_vec()
    }

    fn put(store: &Store, key: Vec<u8>, value: &[u8]) {
        store.put(key, Buffer::copy_from(value));
    }

    #[test]
    fn the_next_run_finds_what_the_last_one_put_and_nothing_that_it_took_away() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("node-ship/charts");
        let (store, found) = Store::open(&place, MAX).unwrap();
        assert_eq!(found.records, []);
        for round in 0..100_u8 {
            put(&store, key("last"), &[round; 10]);
            put(&store, key(&format!("gone {round}")), b"x");
        }
        (0..100).for_each(|round| put(&store, key(&format!("gone {round}")), b""));
        drop(store);
        let (store, found) = Store::open(&place, MAX).unwrap();
        let records: Vec<_> = found.records.iter().map(|it| (it.key.clone(), it.value.clone())).collect();
        assert_eq!((records, found.damaged), (vec![(key("last"), vec![99; 10])], 0));
        assert!(found.records[0].time.abs_diff(wall_clock()) < 60_000);
        assert_eq!((store.lost(), store.trouble()), (0, None));
    }

    #[test]
    fn a_disk_that_fails_is_worth_a_line_and_the_store_goes_on_when_it_writes_again() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("store");
        let (store, _) = Store::open(&place, MAX).unwrap();
        // Where the first segment would be there is something else.
        let segment = place.join("0000000000000000.log");
        fs::create_dir(&segment).unwrap();
        let until = |done: &dyn Fn() -> bool| {
            (0..1000).any(|_| {
                std::thread::park_timeout(Time::from_millis(10));
                done()
            })
        };
        for lost in 1..=3 {
            put(&store, key("a"), b"1");
            assert!(until(&|| store.lost() == lost));
        }
        fs::remove_dir(&segment).unwrap();
        put(&store, key("b"), b"2");
        assert!(until(&|| store.bytes() > 0));
        let line = store.trouble().unwrap();
        assert!(line.contains("not there after a restart") && line.contains("store: "), "{line}");
        assert_eq!(store.trouble(), None);
        drop(store);
        let (_store, found) = Store::open(&place, MAX).unwrap();
        assert_eq!(found.records.iter().map(|it| it.key.clone()).collect::<Vec<_>>(), [key("b")]);
    }

    #[test]
    fn what_waits_for_a_disk_is_bounded() {
        let shared = Arc::new(Shared::default());
        let (_troubles, troubles) = channel();
        let (over_out, over) = channel();
        over_out.send(()).unwrap();
        // Nobody takes what waits.
        let store = Store { shared, troubles, over };
        let value = vec![0; 1 << 20];
        (0..100_u8).for_each(|number| put(&store, vec![number], &value));
        assert_eq!((store.shared.waiting().bytes, store.lost()), (MAX_WAITING, 100 - 16));
        // In the place of one there is room for another, and what is taken away makes room.
        put(&store, vec![0], &value);
        put(&store, vec![1], b"");
        put(&store, vec![200], &value);
        assert_eq!((store.shared.waiting().bytes, store.lost()), (MAX_WAITING, 100 - 16));
    }
}
