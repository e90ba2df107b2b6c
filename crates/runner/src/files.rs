//! Scenarios from the file system.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hopcast_core::Bytes;
use hopcast_twin::scenario::model::Plan;
use hopcast_twin::scenario::{self, Diagnostic, FileError, Files, Overrides};

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
