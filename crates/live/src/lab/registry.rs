//! Records that labs write of themselves, which distinguish the remains of dead labs from living labs.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;

/// The record of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) owner: Process,
    pub(crate) namespaces: Vec<CreatedNamespace>,
}

/// A namespace that a lab has created, or is about to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CreatedNamespace {
    pub(crate) name: String,
    /// Its inode, once it exists.
    pub(crate) inode: Option<u64>,
}

/// A process, distinguishable from later ones with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pid: u32,
    /// Start time, in the kernel's ticks since boot.
    started: u64,
}

impl Process {
    /// The calling process.
    pub(crate) fn this() -> Result<Self, Error> {
        let pid = std::process::id();
        let started = start_of(pid).ok_or(Error::NoProc)?;
        Ok(Self { pid, started })
    }

    pub(crate) fn is_alive(self) -> bool {
        start_of(self.pid) == Some(self.started)
    }

    pub(crate) const fn pid(self) -> u32 {
        self.pid
    }
}

/// The start time of a process that is not a zombie (proc_pid_stat(5): field 22, and 3 for the state).
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// The record of a living lab, which is removed after the last of its namespaces.
pub(crate) struct Registration {
    path: PathBuf,
    namespaces: Vec<String>,
}

impl Registration {
    /// Writes the record of lab `id`.
    pub(crate) fn new(id: &str, record: &Record) -> Result<Self, Error> {
        let directory = directory();
        fs::create_dir_all(&directory).map_err(|source| Error::File { path: directory.clone(), source })?;
        let namespaces = record.namespaces.iter().map(|made| made.name.clone()).collect();
        let registration = Self { path: directory.join(format!("{id}.json")), namespaces };
        if let Some(other) = read(&registration.path)
            && other.owner.is_alive()
        {
            let (path, pid) = (registration.path.clone(), other.owner.pid);
            return Err(Error::IdInUse { id: id.to_owned(), pid, path });
        }
        registration.update(record)?;
        Ok(registration)
    }

    pub(crate) fn update(&self, record: &Record) -> Result<(), Error> {
        let path = &self.path;
        let text = serde_json::to_string(record).expect("a record is strings and numbers");
        // Written whole or not at all, even if this process is killed.
        let next = path.with_extension("new");
        let written = fs::write(&next, text).and_then(|()| fs::rename(&next, path));
        written.map_err(|source| Error::File { path: path.clone(), source })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.namespaces.iter().all(|name| !super::path(name).exists()) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// All records, with their files.
pub(crate) fn records() -> Result<Vec<(PathBuf, Record)>, Error> {
    let directory = directory();
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::File { path: directory, source }),
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|ext| ext == "json")).collect();
    paths.sort();
    Ok(paths.into_iter().filter_map(|path| read(&path).map(|record| (path, record))).collect())
}

fn read(path: &Path) -> Option<Record> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// The directory of records, which a restart of the machine clears as it clears the namespaces.
fn directory() -> PathBuf {
    PathBuf::from("/run/hopcast-labs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_another_one_has_its_number() {
        let this = Process::this().unwrap();
        assert!(this.is_alive());
        assert!(!Process { started: this.started + 1, ..this }.is_alive());
    }
}
