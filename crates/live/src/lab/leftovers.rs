//! Remains of labs whose process was killed or crashed.

use std::fs;
use std::path::PathBuf;

use super::registry::{CreatedNamespace, Process, records};
use super::{Error, Namespace, path, programs, remove};

/// A lab without an owner.
#[derive(Clone, Debug)]
pub struct Leftover {
    file: PathBuf,
    owner: Process,
    /// Its namespaces that still exist.
    namespaces: Vec<Namespace>,
}

impl Leftover {
    /// The names of its network namespaces that still exist.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.iter().map(Namespace::name)
    }

    /// The number of its former process.
    pub fn owner(&self) -> u32 {
        self.owner.pid()
    }
}

/// All labs without an owner: those with a record, whose process is gone.
///
/// # Errors
/// The directory of records, if it cannot be read.
pub fn find() -> Result<Vec<Leftover>, Error> {
    let gone = records()?.into_iter().filter(|(_, record)| !record.owner.is_alive());
    let leftover = |(file, record): (PathBuf, super::registry::Record)| Leftover {
        file,
        owner: record.owner,
        namespaces: record.namespaces.iter().filter_map(still_there).collect(),
    };
    Ok(gone.map(leftover).collect())
}

/// Removes all labs of [`find`], and returns a line for each removal.
///
/// # Errors
/// As [`find`].
pub fn clean() -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    for leftover in find()? {
        let namespaces: Vec<_> = leftover.namespaces.iter().collect();
        let ended = programs::end_all_in(&namespaces);
        done.extend(ended.into_iter().map(|(id, command)| format!("ended process {id} ({command})")));
        remove(leftover.namespaces());
        done.extend(leftover.namespaces().map(|name| {
            let left = if path(name).exists() { "could not remove" } else { "removed" };
            format!("{left} network namespace {name}")
        }));
        if leftover.namespaces().all(|name| !path(name).exists()) {
            let failed = |source| Error::File { path: leftover.file.clone(), source };
            fs::remove_file(&leftover.file).map_err(failed)?;
            done.push(format!("removed {}", leftover.file.display()));
        }
    }
    Ok(done)
}

fn still_there(made: &CreatedNamespace) -> Option<Namespace> {
    // Only names that labs give are accepted, whatever the record contains.
    let ours = made.name.starts_with("hopcast-") && !made.name.contains('/');
    let namespace = ours.then(|| Namespace::open(&made.name).ok()).flatten()?;
    // A later namespace of the same name is not the lab's.
    made.inode.is_none_or(|inode| namespace.identity() == Some(inode)).then_some(namespace)
}
