//! The run directory: its owner, and the lock that lets one process at a time write into it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hopcast_trace::log::EXTENSION;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::manifest;

/// The file with the finished runs of a run directory.
pub(crate) const JOURNAL: &str = "runs.journal";
/// The file with the directory's owner. It is locked while a process writes into the directory; the kernel releases the
/// lock with the process.
const OWNER: &str = "owner.json";
/// The directory of the runs in virtual time, in that of a scenario in both worlds.
pub(crate) const VIRTUAL: &str = "virtual";
/// The files of a run, without its directories and captures.
const RESULTS: [&str; 16] = [
    "manifest.json",
    "summary.json",
    "report.html",
    "comparison.html",
    "topology.json",
    "flows.csv",
    "receivers.csv",
    "counters.csv",
    "links.csv",
    "timeseries.csv",
    "latency.csv",
    "flows.parquet",
    "receivers.parquet",
    "counters.parquet",
    "links.parquet",
    "timeseries.parquet",
];

/// The scenario whose results a directory holds.
///
/// Two owners are equal if they name one file, whatever its contents, or if both the name of the file and the title are
/// equal, as in a copy of the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// The name of the scenario's file.
    scenario: String,
    /// Its title.
    title: String,
    /// The path of the file.
    #[serde(default)]
    path: Option<PathBuf>,
}

impl Owner {
    /// The scenario in `file`.
    pub(crate) fn new(file: &Path, title: &str) -> Self {
        // The program's own studies have no path.
        let path = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        Self { path: Some(path), ..Self::named(file, title) }
    }

    /// The scenario of a run's manifest and document, wherever its file was.
    pub(crate) fn of_run(manifest: &Value, title: &str) -> Self {
        Self::named(Path::new(manifest["scenario_file"].as_str().unwrap_or_default()), title)
    }

    fn named(file: &Path, title: &str) -> Self {
        let name = file.file_name().unwrap_or_default();
        Self { scenario: name.to_string_lossy().into_owned(), title: title.to_owned(), path: None }
    }

    fn is_same(&self, other: &Self) -> bool {
        let one_file = self.path.is_some() && self.path == other.path;
        one_file || (&self.scenario, &self.title) == (&other.scenario, &other.title)
    }

    /// The owner that `file` names; without one, that of the results in the directory.
    fn of_directory(mut file: &File, dir: &Path) -> Option<Self> {
        let mut text = String::new();
        let _ = file.read_to_string(&mut text);
        serde_json::from_str(&text).ok().or_else(|| {
            let read = |name: &str| fs::read(dir.join(name)).ok();
            let json = |name: &str| serde_json::from_slice::<Value>(&read(name)?).ok();
            Some(Self::of_run(&json("manifest.json")?, json("summary.json")?["scenario"].as_str()?))
        })
    }
}

/// The treatment of results of another scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherResults {
    /// Other results stay, and the error mentions `--fresh`.
    Keep,
    /// Other results stay, and the error mentions no option.
    KeepAlways,
    /// Other results are removed.
    Replace,
}

/// The directory that a run is written to. It is made before the run, so that a failure is known at once and no other
/// run takes the same.
pub(crate) struct RunDirectory {
    path: PathBuf,
    made: bool,
    /// Holds the lock.
    _owner: File,
}

impl RunDirectory {
    /// Takes `wanted`, or the next free `runs/NAME-NNN`, for a scenario. Refuses a directory with other files, with the
    /// results of another scenario, or into which a process is writing.
    pub(crate) fn take(
        wanted: Option<&Path>,
        name: &str,
        owner: &Owner,
        other_results: OtherResults,
    ) -> Result<Self, Failure> {
        let failure = |path: &Path, error| Failure::input(format!("{}: {error}", path.display()));
        let Some(path) = wanted else {
            fs::create_dir_all("runs").map_err(|error| failure(Path::new("runs"), error))?;
            for number in 1..=u32::MAX {
                let path = Path::new("runs").join(format!("{name}-{number:03}"));
                match fs::create_dir(&path) {
                    Ok(()) => return Self::own(path, true, owner, other_results),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(failure(&path, error)),
                }
            }
            return Err(Failure::input("runs: no free name is left"));
        };
        let made = !path.exists();
        fs::create_dir_all(path).map_err(|error| failure(path, error))?;
        let entries = fs::read_dir(path).map_err(|error| failure(path, error))?;
        // Files of an interrupted run count too; a run in both worlds has them in a subdirectory at first.
        let here = |path: &Path| {
            let is_there = |file: &&str| path.join(file).is_file();
            ["manifest.json", "summary.json", JOURNAL].iter().any(is_there) || names_owner(&path.join(OWNER))
        };
        let run = here(path) || here(&path.join(VIRTUAL));
        let empty = entries.flatten().all(|entry| entry.file_name() == "captures");
        if !empty && !run {
            let message = format!(
                "--out {}: expected a new or empty directory or an earlier run's, found something else",
                path.display()
            );
            return Err(Failure::input(message));
        }
        Self::own(path.to_owned(), made, owner, other_results)
    }

    /// Takes the directory that a run was read from, to write its report again; its owner stays.
    pub(crate) fn again(path: &Path, owner: &Owner) -> Result<Self, Failure> {
        let file = locked(path)?;
        let known = Owner::of_directory(&file, path);
        write_owner(&file, path, known.as_ref().unwrap_or(owner))?;
        Ok(Self { path: path.to_owned(), made: false, _owner: file })
    }

    /// Locks the directory, and makes it the owner's unless it is another one's.
    fn own(path: PathBuf, made: bool, owner: &Owner, other_results: OtherResults) -> Result<Self, Failure> {
        let file = locked(&path)?;
        let known = Owner::of_directory(&file, &path);
        let is_ours = known.as_ref().is_some_and(|known| known.is_same(owner));
        if let Some(found) = held_by(&path, known.as_ref()).filter(|_| !is_ours) {
            if other_results != OtherResults::Replace {
                if file.metadata().is_ok_and(|file| file.len() == 0) {
                    let _ = fs::remove_file(path.join(OWNER));
                }
                let fresh =
                    if other_results == OtherResults::Keep { ", or --fresh to replace them" } else { "" };
                return Err(Failure::input(format!(
                    "--out {}: holds {found}, not of `{}`: choose another --out{fresh}",
                    path.display(),
                    owner.scenario
                )));
            }
            clear(&path).map_err(|error| Failure::run(format!("{}: {error}", path.display())))?;
            eprintln!("{}: {found} are replaced (--fresh)", path.display());
        }
        // A report does not know the path of the file.
        let place = known.filter(|_| is_ours && owner.path.is_none()).and_then(|known| known.path);
        let owner = Owner { path: owner.path.clone().or(place), ..owner.clone() };
        write_owner(&file, &path, &owner)?;
        Ok(Self { path, made, _owner: file })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file with the finished runs.
    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    /// Tells the user that results are replaced, if the directory holds those of a complete run.
    pub(crate) fn say_what_is_replaced(&self) {
        if self.path.join("manifest.json").is_file() {
            eprintln!("{}: the results of an earlier run are replaced", self.path.display());
        }
    }

    /// The directory of captures, emptied.
    pub(crate) fn captures(&self) -> Result<PathBuf, Failure> {
        let captures = self.path.join("captures");
        let failure = |error| Failure::run(format!("{}: {error}", captures.display()));
        fs::create_dir_all(&captures).map_err(failure)?;
        self.drop_captures()?;
        Ok(captures)
    }

    /// Removes the captures and logs of an earlier run.
    pub(crate) fn drop_captures(&self) -> Result<(), Failure> {
        drop_captures(&self.path).map_err(Failure::run)
    }

    /// Releases the directory without writing results: it is removed if it was new and no run is finished. If one is,
    /// returns the command that resumes.
    pub(crate) fn give_up(self) -> Option<String> {
        if has_journal(&self.path) {
            return Some(format!(
                "what is finished is kept; to go on:\n  {}",
                manifest::resuming(&self.path)
            ));
        }
        if self.made {
            // A directory that is not empty stays, since it has files of others.
            let _ = clear(&self.path);
            let _ = fs::remove_dir(self.path.join("captures"));
            let _ = fs::remove_file(self.path.join(OWNER));
            let _ = fs::remove_dir(&self.path);
        }
        None
    }
}

/// Whether the file is an owner's, since other programs may use the name; the file of an interrupted run is empty.
fn names_owner(path: &Path) -> bool {
    fs::read(path).is_ok_and(|text| text.is_empty() || serde_json::from_slice::<Owner>(&text).is_ok())
}

/// Whether a file system has no locks, such as NFS without a lock daemon.
fn has_no_locks(error: &io::Error) -> bool {
    let without_daemon = rustix::io::Errno::NOLCK.raw_os_error();
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(without_daemon)
}

/// Whether a run in the directory is finished.
fn has_journal(dir: &Path) -> bool {
    let holds = |path: PathBuf| fs::metadata(path).is_ok_and(|file| file.len() > 0);
    holds(dir.join(JOURNAL)) || holds(dir.join(VIRTUAL).join(JOURNAL))
}

/// The file with the owner of `dir`, locked.
fn locked(dir: &Path) -> Result<File, Failure> {
    let path = dir.join(OWNER);
    let failed = |error: io::Error| Failure::input(format!("{}: {error}", path.display()));
    loop {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(failed)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::input(format!(
                    "--out {}: another hopcast is writing into this directory",
                    dir.display()
                )));
            }
            Err(TryLockError::Error(error)) if has_no_locks(&error) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Ok(()) => {}
        }
        // Another process may have given the directory up, and removed the file that was locked here.
        let (ours, there) = (file.metadata().map_err(failed)?, fs::metadata(&path));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(file);
        }
        fs::create_dir_all(dir).map_err(failed)?;
    }
}

/// The contents of `dir` and their owner, for messages.
fn held_by(dir: &Path, owner: Option<&Owner>) -> Option<String> {
    let what = match (dir.join("summary.json").is_file(), has_journal(dir)) {
        (true, _) => "the results",
        (false, true) => "finished runs",
        (false, false) => return None,
    };
    Some(match owner {
        Some(Owner { scenario, title, .. }) => format!("{what} of `{scenario}` ({title})"),
        None => format!("{what} of an unknown scenario"),
    })
}

/// Writes the owner of `dir` into its locked file.
fn write_owner(mut file: &File, dir: &Path, owner: &Owner) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(owner).map_err(Failure::run)?;
    text.push(b'\n');
    let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&text));
    written.map_err(|error| Failure::input(format!("{}: {error}", dir.join(OWNER).display())))
}

/// Removes all files of a run from its directory, except the one with its owner.
fn clear(dir: &Path) -> io::Result<()> {
    let there = |result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) | Ok(()) => Ok(()),
    };
    RESULTS.into_iter().chain([JOURNAL]).map(|name| fs::remove_file(dir.join(name))).try_for_each(there)?;
    drop_captures(dir)?;
    // Made by runs in both worlds, by plots, and by programs of live runs.
    for name in [VIRTUAL, "plots"] {
        there(fs::remove_dir_all(dir.join(name)))?;
    }
    for entry in fs::read_dir(dir)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("case-") {
            there(fs::remove_dir_all(entry.path()))?;
        }
    }
    Ok(())
}

fn drop_captures(dir: &Path) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(dir.join("captures")) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "pcapng" || extension == EXTENSION) {
            fs::remove_file(&path)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_locks_is_written_to_and_other_errors_are_said() {
        let of = |errno: rustix::io::Errno| has_no_locks(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert!(of(rustix::io::Errno::NOLCK) && of(rustix::io::Errno::OPNOTSUPP));
        assert!(!of(rustix::io::Errno::ACCESS) && !of(rustix::io::Errno::IO));
    }
}
