//! The directory whose files are sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use nix::libc;

use super::Event;
use crate::group::names::{self, FileFault};
use crate::group::wire::{PIECE, hash, piece_len, pieces};

/// Files of the directory that are looked at. Chosen: a look takes some milliseconds; the receivers remember 16 times
/// as many.
pub(crate) const MAX_FILES: usize = 4096;
/// Looks in a row that have to find a file unchanged before it is taken. Chosen: a second and a half; fewer take files
/// that are still being written, more send later.
const STABLE: u32 = 3;

/// The directory, and what was seen there.
pub(super) struct Watched {
    directory: PathBuf,
    seen: BTreeMap<String, Seen>,
    /// Names of the files that are offered.
    offered: BTreeMap<u64, String>,
    /// Names that were complained of, and whether the directory was.
    unfit: BTreeSet<String>,
    complained: bool,
    /// The file that was read last.
    open: Option<(u64, File)>,
}

/// A file as it was seen last.
struct Seen {
    id: u64,
    /// How often in a row it was like that.
    times: u32,
}

impl Watched {
    pub(super) const fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            seen: BTreeMap::new(),
            offered: BTreeMap::new(),
            unfit: BTreeSet::new(),
            complained: false,
            open: None,
        }
    }

    /// Looks at the directory: what there is to send, and what no more.
    pub(super) fn look(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let found = match self.list(&mut events) {
            Ok(found) => found,
            Err(error) => {
                // Files that cannot be seen for a moment are offered all the same.
                if !std::mem::replace(&mut self.complained, true) {
                    events.push(Event::Trouble(format!("{}: {error}", self.directory.display())));
                }
                return events;
            }
        };
        self.complained = false;
        let mut before = std::mem::take(&mut self.seen);
        for (name, (id, size)) in found {
            let times = before.remove(&name).filter(|seen| seen.id == id).map_or(1, |seen| seen.times + 1);
            if times == STABLE {
                // An older one of this name goes first.
                self.forget(|_, other| *other == name, &mut events);
                events.push(Event::Found { id, name: Arc::from(name.as_str()), size });
                self.offered.insert(id, name.clone());
            }
            self.seen.insert(name, Seen { id, times: times.min(STABLE + 1) });
        }
        let seen = std::mem::take(&mut self.seen);
        self.forget(|id, name| seen.get(name).is_none_or(|seen| seen.id != *id), &mut events);
        self.seen = seen;
        events
    }

    /// Reads a piece of a file that is offered, if it is as it was.
    pub(super) fn read(&mut self, id: u64, piece: u32) -> Event {
        match self.read_piece(id, piece) {
            Ok(bytes) => Event::Read { id, piece, bytes },
            Err(_) => self.has_changed(id),
        }
    }

    /// Reads all of a file that is offered, if it is as it was.
    pub(super) fn read_whole(&mut self, id: u64) -> Event {
        match self.read_all(id) {
            Ok((changed, bytes)) => Event::ReadWhole { id, changed, bytes },
            Err(_) => self.has_changed(id),
        }
    }

    /// A file is offered no more, until it has been seen unchanged for a while.
    fn has_changed(&mut self, id: u64) -> Event {
        self.open = None;
        if let Some(name) = self.offered.remove(&id) {
            self.seen.remove(&name);
        }
        Event::Gone(id)
    }

    fn read_all(&self, id: u64) -> io::Result<(u64, Vec<u8>)> {
        let name = self.offered.get(&id).ok_or(io::ErrorKind::NotFound)?;
        let file = self.open(name)?;
        let metadata = file.metadata()?;
        let mut bytes = vec![0; usize::try_from(metadata.len()).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, 0)?;
        // It may have changed while it was read.
        if identity(name, &metadata) != id || identity(name, &file.metadata()?) != id {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let changed = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        Ok((u64::try_from(changed.max(0)).unwrap_or(u64::MAX), bytes))
    }

    /// A link that took the file's place meanwhile is not followed.
    fn open(&self, name: &str) -> io::Result<File> {
        let options =
            OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).to_owned();
        options.open(self.directory.join(name))
    }

    fn read_piece(&mut self, id: u64, piece: u32) -> io::Result<Vec<u8>> {
        let name = self.offered.get(&id).ok_or(io::ErrorKind::NotFound)?;
        let file = match self.open.take() {
            Some((open, file)) if open == id => file,
            _ => self.open(name)?,
        };
        let metadata = file.metadata()?;
        if identity(name, &metadata) != id {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; piece_len(metadata.len(), piece) as usize];
        file.read_exact_at(&mut bytes, u64::from(piece) * PIECE)?;
        self.open = Some((id, file));
        Ok(bytes)
    }

    /// The plain files of the directory that can be sent.
    fn list(&mut self, events: &mut Vec<Event>) -> io::Result<BTreeMap<String, (u64, u64)>> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            // One that is gone by now is no longer of interest; links are not followed.
            let Ok(metadata) = entry.metadata() else { continue };
            if !metadata.is_file() {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let sound = if entry.file_name().to_str().is_none() {
                Err(FileFault::NotText)
            } else {
                names::check(&name)
            };
            let sound = sound.and(pieces(metadata.len()).map(|_| ()).ok_or(FileFault::TooLarge));
            let sound = if found.len() < MAX_FILES { sound } else { Err(FileFault::TooMany) };
            match sound {
                Ok(()) => _ = found.insert(name.clone(), (identity(&name, &metadata), metadata.len())),
                Err(why)
                    if !name.starts_with('.')
                        && self.unfit.len() < MAX_FILES
                        && self.unfit.insert(name.clone()) =>
                {
                    events.push(Event::Trouble(format!(
                        "{}: {name:?} is not sent: {why}",
                        self.directory.display()
                    )));
                }
                Err(_) => {}
            }
        }
        Ok(found)
    }

    /// Offers no more the files that `is_over` names.
    fn forget(&mut self, is_over: impl Fn(&u64, &String) -> bool, events: &mut Vec<Event>) {
        self.offered.retain(|id, name| {
            let over = is_over(id, name);
            if over {
                events.push(Event::Gone(*id));
            }
            !over
        });
    }
}

/// The number by which members know a file: the same as long as its name, length and time of change are, in any run
/// of the node.
fn identity(name: &str, metadata: &Metadata) -> u64 {
    let time = [metadata.mtime(), metadata.mtime_nsec()].map(i64::to_be_bytes);
    hash(&[name.as_bytes(), &metadata.len().to_be_bytes(), &time[0], &time[1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a look, in words.
    fn words(events: Vec<Event>) -> Vec<String> {
        let word = |event| match event {
            Event::Found { name, size, .. } => format!("found {name} {size}"),
            Event::Gone(_) => "gone".to_owned(),
            Event::Trouble(line) => line.rsplit('/').next().unwrap_or_default().to_owned(),
            other => format!("{other:?}"),
        };
        events.into_iter().map(word).collect()
    }

    #[test]
    fn a_file_is_taken_once_it_has_not_changed_for_a_while_and_again_when_it_has() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.bin");
        let mut watched = Watched::new(dir.path().to_owned());
        let mut look = || words(watched.look());
        fs::write(&path, "1").unwrap();
        assert_eq!([look(), look()], [[""; 0], []]);
        fs::write(&path, "12").unwrap();
        assert_eq!([look(), look(), look()], [vec![], vec![], vec!["found a.bin 2"]]);
        assert_eq!(look(), [""; 0], "once");
        fs::write(&path, "123").unwrap();
        assert_eq!([look(), look(), look()], [vec!["gone"], vec![], vec!["found a.bin 3"]]);
        fs::remove_file(&path).unwrap();
        assert_eq!([look(), look()], [vec!["gone"], vec![]]);
        // A new run knows it by the same number.
        fs::write(&path, "4").unwrap();
        let id = |watched: &mut Watched| {
            (0..3).flat_map(|_| watched.look()).find_map(|event| match event {
                Event::Found { id, .. } => Some(id),
                _ => None,
            })
        };
        let again = id(&mut Watched::new(dir.path().to_owned()));
        assert!(again.is_some() && again == id(&mut watched));
    }

    #[test]
    fn links_directories_and_hidden_files_stay_here_and_odd_names_are_told_of_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("inner")).unwrap();
        fs::write(dir.path().join(".hidden"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        fs::write(dir.path().join("a\nb"), "x").unwrap();
        let mut watched = Watched::new(dir.path().to_owned());
        let told: Vec<_> = (0..5).flat_map(|_| words(watched.look())).collect();
        assert_eq!(
            told,
            ["\"a\\nb\" is not sent: names have no control characters"]
                .map(|line| format!("{}: {line}", dir.path().file_name().unwrap().display()))
        );
    }

    #[test]
    fn a_piece_of_a_file_that_has_changed_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, vec![7; PIECE as usize + 1]).unwrap();
        let mut watched = Watched::new(dir.path().to_owned());
        let found = (0..3).flat_map(|_| watched.look()).next();
        let Some(Event::Found { id, .. }) = found else { panic!("{found:?}") };
        assert!(matches!(watched.read(id, 1), Event::Read { bytes, .. } if bytes == [7]));
        let whole = watched.read_whole(id);
        assert!(matches!(&whole, Event::ReadWhole { bytes, changed, .. }
            if bytes.len() as u64 == PIECE + 1 && *changed > 1_600_000_000_000_000_000));
        fs::write(&path, vec![8; PIECE as usize]).unwrap();
        assert!(matches!(watched.read(id, 0), Event::Gone(gone) if gone == id));
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(matches!(watched.read(id, 0), Event::Gone(_)));
    }
}
