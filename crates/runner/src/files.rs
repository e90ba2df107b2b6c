//! Scenarios from the file system.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hopcast_core::Bytes;
use hopcast_twin::scenario::model::Plan;
use hopcast_twin::scenario::{self, Diagnostic, FileError, Files, Overrides};

/// Entries of a directory among which a file that is not there is looked for. Chosen: more than a person keeps in one.
const MAX_BESIDE: usize = 10_000;

/// The files of this system.
#[derive(Clone, Copy, Debug)]
pub struct FileSystem;

/// Reads a scenario file.
///
/// # Errors
/// The first mistake: where it is, and what to write instead.
pub fn load(path: &Path, overrides: &Overrides) -> Result<Plan, Diagnostic> {
    scenario::load(&FileSystem, path, overrides)
}

/// Reads a scenario from `text` as if it were in the file `path`, which is not opened.
///
/// # Errors
/// As [`load`].
pub fn load_text(path: &Path, text: &str, overrides: &Overrides) -> Result<Plan, Diagnostic> {
    scenario::load_text(&FileSystem, path, text, overrides)
}

/// The bytes of the scenario file at `path`, which may be a study of the program's own.
///
/// # Errors
/// If it cannot be read.
pub fn read_scenario(path: &Path) -> Result<Vec<u8>, FileError> {
    scenario::read_scenario(&FileSystem, path)
}

impl Files for FileSystem {
    fn read(&self, path: &Path, max: Bytes) -> Result<Vec<u8>, FileError> {
        // Asked before opening: to open a pipe may wait for ever.
        if !fs::metadata(path).map_err(reason)?.is_file() {
            return Err(FileError::NotRegular);
        }
        let mut contents = Vec::new();
        let file = fs::File::open(path).map_err(reason)?;
        file.take(max.get() + 1).read_to_end(&mut contents).map_err(reason)?;
        if contents.len() as u64 > max.get() { Err(FileError::TooLarge(max)) } else { Ok(contents) }
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
    }

    fn beside(&self, path: &Path) -> Vec<String> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let entries = fs::read_dir(dir).into_iter().flatten().take(MAX_BESIDE);
        let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
        let mut names: Vec<_> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}

fn reason(error: io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound => FileError::NotFound,
        _ => {
            // The operating system's words without its number.
            let text = error.to_string();
            FileError::System(text.split(" (os error").next().unwrap_or_default().to_owned())
        }
    }
}
