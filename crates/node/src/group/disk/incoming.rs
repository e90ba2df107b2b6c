//! The directory for files of others.
//!
//! A file is written under a hidden name in its sender's directory, and renamed when it is complete: programs see whole
//! files only. It takes the place of an older file of its name from the same sender, and of nothing else.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use nix::libc;

use super::Event;
use crate::group::incoming::MAX_KNOWN;
use crate::group::wire::PIECE;

/// Beginning and end of the name of a file that is incomplete; the file of those that were complete.
const PARTIAL: (&str, &str) = (".hopcast-", ".part");
const RECORD: &str = ".hopcast-received";
/// Length of a line of that file: a number in hexadecimal digits, and the end of the line.
const LINE: usize = 17;
/// Files that are open at a time. Chosen: as many as there are members with one under way, on most nodes.
const MAX_OPEN: usize = 16;
/// Files of a member that are counted. Chosen: it bounds the time of a look.
const MAX_COUNTED: usize = 1 << 16;

/// The directory, with a directory for each member.
pub(super) struct Inbox {
    directory: PathBuf,
    members: Vec<String>,
    open: BTreeMap<(usize, u64), File>,
}

impl Inbox {
    pub(super) const fn new(directory: PathBuf, members: Vec<String>) -> Self {
        Self { directory, members, open: BTreeMap::new() }
    }

    /// Removes what earlier runs left incomplete; says which files they completed.
    pub(super) fn begin(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for from in 0..self.members.len() {
            let directory = self.of(from);
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let is_partial = |name: &str| name.starts_with(PARTIAL.0) && name.ends_with(PARTIAL.1);
                if name.to_str().is_some_and(is_partial) {
                    let _ = fs::remove_file(entry.path());
                }
            }
            match known(&directory.join(RECORD)) {
                Ok(ids) => events.push(Event::Known { from, ids }),
                Err(error) => {
                    let line = format!("{}: {error}: its files are taken again", directory.display());
                    events.push(Event::Trouble(line));
                }
            }
        }
        events
    }

    /// Writes a piece of an incomplete file.
    pub(super) fn write(&mut self, from: usize, id: u64, piece: u32, bytes: &[u8]) -> io::Result<()> {
        if !self.open.contains_key(&(from, id)) {
            if self.open.len() >= MAX_OPEN {
                // It is opened again with its next piece.
                self.open.pop_first();
            }
            fs::create_dir_all(self.of(from))?;
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o644)
                .custom_flags(libc::O_NOFOLLOW)
                .open(self.partial(from, id))?;
            self.open.insert((from, id), file);
        }
        let file = self.open.get(&(from, id)).ok_or(io::ErrorKind::NotFound)?;
        file.write_all_at(bytes, u64::from(piece) * PIECE)
    }

    /// Writes all of a file, unless one of its name that was changed later is there. Whether it was written; it is
    /// remembered in any case.
    pub(super) fn deliver(
        &mut self,
        from: usize,
        id: u64,
        name: &str,
        changed: u64,
        bytes: &[u8],
    ) -> io::Result<bool> {
        let changed = UNIX_EPOCH + Duration::from_nanos(changed);
        let is_newer = |there: fs::Metadata| there.is_file() && there.modified().is_ok_and(|at| at > changed);
        if fs::symlink_metadata(self.of(from).join(name)).is_ok_and(is_newer) {
            remember(&self.of(from), id)?;
            return Ok(false);
        }
        self.write(from, id, 0, bytes)?;
        if let Some(file) = self.open.get(&(from, id)) {
            file.set_len(bytes.len() as u64)?;
            file.set_modified(changed)?;
        }
        self.finish(from, id, name)?;
        Ok(true)
    }

    /// Gives a complete file its name, and remembers it: in this order, so that one that is remembered is there.
    pub(super) fn finish(&mut self, from: usize, id: u64, name: &str) -> io::Result<()> {
        let partial = self.partial(from, id);
        let file = match self.open.remove(&(from, id)) {
            Some(file) => file,
            None => File::open(&partial)?,
        };
        file.sync_all()?;
        fs::rename(&partial, self.of(from).join(name))?;
        let directory = self.of(from);
        File::open(&directory)?.sync_all()?;
        remember(&directory, id)
    }

    /// Removes an incomplete file.
    pub(super) fn discard(&mut self, from: usize, id: u64) {
        self.open.remove(&(from, id));
        let _ = fs::remove_file(self.partial(from, id));
    }

    /// Bytes that complete files take.
    pub(super) fn used(&self) -> u64 {
        let files = (0..self.members.len()).flat_map(|from| {
            let entries = fs::read_dir(self.of(from)).into_iter().flatten().flatten();
            entries.take(MAX_COUNTED).filter_map(|entry| {
                let is_partial = entry.file_name().to_string_lossy().starts_with(PARTIAL.0);
                let metadata = entry.metadata().ok().filter(|it| it.is_file() && !is_partial)?;
                Some(metadata.len())
            })
        });
        files.sum()
    }

    fn of(&self, from: usize) -> PathBuf {
        self.directory.join(&self.members[from])
    }

    fn partial(&self, from: usize, id: u64) -> PathBuf {
        self.of(from).join(format!("{}{id:016x}{}", PARTIAL.0, PARTIAL.1))
    }
}

/// The last files that a record names. A line that was cut short, as by a crash, is passed over.
fn known(path: &Path) -> io::Result<Vec<u64>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let max = (MAX_KNOWN * LINE) as u64;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(max)))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| line.len() == LINE - 1);
    let id = |line: &[u8]| u64::from_str_radix(std::str::from_utf8(line).ok()?, 16).ok();
    Ok(lines.filter_map(id).collect())
}

/// Adds a file to the record, which is written anew once half of it is older than what is remembered.
fn remember(directory: &Path, id: u64) -> io::Result<()> {
    let path = directory.join(RECORD);
    let line = |id: u64| format!("{id:016x}\n");
    let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
    // A line begins at the beginning of one, even if the one before was cut short.
    let cut = file.metadata()?.len() % LINE as u64 != 0;
    file.write_all(format!("{}{}", if cut { "\n" } else { "" }, line(id)).as_bytes())?;
    file.sync_data()?;
    if file.metadata()?.len() > 2 * (MAX_KNOWN * LINE) as u64 {
        let fresh = directory.join(format!("{RECORD}.new"));
        let lines: String = known(&path)?.into_iter().map(line).collect();
        fs::write(&fresh, lines)?;
        fs::rename(&fresh, &path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox(directory: &Path) -> Inbox {
        Inbox::new(directory.to_owned(), vec!["ship1".to_owned(), "shore".to_owned()])
    }

    fn visible(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.starts_with('.')).collect()
    }

    #[test]
    fn a_file_is_seen_when_it_is_whole_and_remembered_by_the_next_run() {
        let dir = tempfile::tempdir().unwrap();
        let ship = dir.path().join("ship1");
        let mut first = inbox(dir.path());
        first.write(0, 7, 1, b"end").unwrap();
        first.write(0, 7, 0, &vec![1; PIECE as usize]).unwrap();
        first.write(0, 8, 0, b"never complete").unwrap();
        assert_eq!(visible(&ship), [""; 0]);
        first.finish(0, 7, "chart").unwrap();
        assert_eq!(visible(&ship), ["chart"]);
        assert_eq!(
            (fs::read(ship.join("chart")).unwrap().len() as u64, first.used()),
            (PIECE + 3, PIECE + 3)
        );

        let second = inbox(dir.path());
        let known: Vec<_> = second.begin().into_iter().map(|event| format!("{event:?}")).collect();
        assert_eq!(known, ["Known { from: 0, ids: [7] }", "Known { from: 1, ids: [] }"]);
        let left = fs::read_dir(&ship).unwrap().count();
        assert_eq!(left, 2, "the file and the record; what was incomplete is gone");
    }

    #[test]
    fn a_newer_file_takes_the_place_of_one_of_its_name_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = inbox(dir.path());
        for (id, text) in [(1, "old"), (2, "new")] {
            inbox.write(0, id, 0, text.as_bytes()).unwrap();
            inbox.finish(0, id, "a").unwrap();
        }
        assert_eq!(fs::read_to_string(dir.path().join("ship1/a")).unwrap(), "new");
        // Of another sender, in the way of which there is a directory.
        fs::create_dir_all(dir.path().join("shore/a")).unwrap();
        inbox.write(1, 3, 0, b"x").unwrap();
        assert!(inbox.finish(1, 3, "a").is_err());
        inbox.discard(1, 3);
        assert_eq!(visible(&dir.path().join("shore")), ["a"]);
    }

    #[test]
    fn a_whole_file_takes_the_place_of_an_older_one_only() {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = inbox(dir.path());
        let of = |seconds: u64| seconds * 1_000_000_000;
        assert!(inbox.deliver(0, 1, "a", of(50), b"first and long").unwrap());
        assert!(inbox.deliver(0, 2, "a", of(70), b"third").unwrap());
        assert!(!inbox.deliver(0, 3, "a", of(60), b"second").unwrap());
        let path = dir.path().join("ship1/a");
        assert_eq!(fs::read_to_string(&path).unwrap(), "third");
        let changed = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(changed.duration_since(UNIX_EPOCH).unwrap().as_secs(), 70);
        let known: Vec<_> = inbox.begin().into_iter().map(|event| format!("{event:?}")).collect();
        assert_eq!(known[0], "Known { from: 0, ids: [1, 2, 3] }");
    }

    #[test]
    fn a_record_that_was_cut_short_costs_no_more_than_its_last_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(RECORD);
        [1, 2, 3].into_iter().for_each(|id| remember(dir.path(), id).unwrap());
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        remember(dir.path(), 4).unwrap();
        remember(dir.path(), 5).unwrap();
        assert_eq!(known(&path).unwrap(), [1, 2, 4, 5]);
        fs::write(&path, "no number at all\n").unwrap();
        assert!(known(&path).unwrap().is_empty());
        assert!(known(&dir.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn a_long_record_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(RECORD);
        let lines: String = (0..2 * MAX_KNOWN).map(|id| format!("{id:016x}\n")).collect();
        fs::write(&path, lines).unwrap();
        remember(dir.path(), u64::MAX).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len() as usize, MAX_KNOWN * LINE);
        assert_eq!(known(&path).unwrap().last(), Some(&u64::MAX));
    }
}
