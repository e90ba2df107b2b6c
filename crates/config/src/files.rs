//! Sources of the files that a configuration names: a file system, or memory.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use hopcast_core::Bytes;
use thiserror::Error;

/// A source of files.
pub trait Files {
    /// The whole file at `path`, which may have at most `max` bytes.
    ///
    /// # Errors
    /// If there is no such file, if it is larger, or if it cannot be read.
    fn read(&self, path: &Path, max: Bytes) -> Result<Vec<u8>, FileError>;

    /// One path for all the paths that lead to a file: by it a file that includes itself is recognised. The path itself
    /// if there is no such file.
    fn canonical(&self, path: &Path) -> PathBuf;

    /// The names of the files in the directory of `path`, to find the one that a slip of spelling meant. It need not be
    /// all of them.
    fn beside(&self, path: &Path) -> Vec<String>;
}

/// Why a file cannot be read. Its path is for the caller to say.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    /// There is no file at the path.
    #[error("No such file or directory")]
    NotFound,
    /// A directory, a pipe or a device.
    #[error("it is not a regular file")]
    NotRegular,
    /// The file is larger than this.
    #[error("it is larger than {0}")]
    TooLarge(Bytes),
    /// Not one of the files that the program carries with it.
    #[error("the program has no such file")]
    NotInProgram,
    /// The operating system's reason.
    #[error("{0}")]
    System(String),
}

/// Files in memory, for where there is no file system.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(BTreeMap<PathBuf, Vec<u8>>);

impl<P: AsRef<Path>, C: Into<Vec<u8>>> FromIterator<(P, C)> for MemoryFiles {
    fn from_iter<I: IntoIterator<Item = (P, C)>>(files: I) -> Self {
        Self(files.into_iter().map(|(path, contents)| (resolved(path.as_ref()), contents.into())).collect())
    }
}

impl Files for MemoryFiles {
    fn read(&self, path: &Path, max: Bytes) -> Result<Vec<u8>, FileError> {
        let contents = self.0.get(&resolved(path)).ok_or(FileError::NotFound)?;
        if contents.len() as u64 > max.get() { Err(FileError::TooLarge(max)) } else { Ok(contents.clone()) }
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        resolved(path)
    }

    fn beside(&self, path: &Path) -> Vec<String> {
        let path = resolved(path);
        let siblings = self.0.keys().filter(|other| other.parent() == path.parent());
        siblings.filter_map(|other| Some(other.file_name()?.to_str()?.to_owned())).collect()
    }
}

/// `path` without `.` and without `..` after a name.
fn resolved(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(resolved.components().next_back(), Some(Component::Normal(_))) =>
            {
                resolved.pop();
            }
            Component::ParentDir | Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                resolved.push(part);
            }
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_memory_is_found_by_every_path_that_leads_to_it() {
        let files: MemoryFiles = [("a/./b.yaml", "text")].into_iter().collect();
        for path in ["a/b.yaml", "./a/b.yaml", "a/c/../b.yaml", "c/../a/../a/b.yaml"] {
            assert_eq!(files.read(Path::new(path), Bytes::new(4)).unwrap(), b"text", "{path}");
            assert_eq!(files.canonical(Path::new(path)), Path::new("a/b.yaml"));
        }
        for path in ["b.yaml", "../a/b.yaml", "/a/b.yaml", "a"] {
            assert_eq!(files.read(Path::new(path), Bytes::new(4)), Err(FileError::NotFound), "{path}");
        }
    }

    #[test]
    fn a_file_in_memory_has_a_largest_size() {
        let files: MemoryFiles = [("a", "12345")].into_iter().collect();
        let error = files.read(Path::new("a"), Bytes::new(4)).unwrap_err();
        assert_eq!(error, FileError::TooLarge(Bytes::new(4)));
    }
}
