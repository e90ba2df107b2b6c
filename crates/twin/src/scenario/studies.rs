//! The studies that are embedded in the program: the files of `scenarios/studies` at the time of the build, and those
//! of `scenarios/networks`, which they include.
//!
//! They are read at paths such as `hopcast:studies/parity.yaml`, so that a published table or an included file, which
//! is named relative to its study, is found as in a checkout.

use std::path::{Path, PathBuf};

use hopcast_config::FileError;

include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// The folder under which they are read.
const DIR: &str = "hopcast:studies";

/// Each study by name, with the path from which it is loaded.
pub fn studies() -> impl Iterator<Item = (&'static str, PathBuf)> {
    let own = FILES.iter().filter(|(file, _)| !file.contains('/'));
    own.filter_map(|(file, _)| Some((file.strip_suffix(".yaml")?, Path::new(DIR).join(file))))
}

/// The contents of an embedded file, or the error that it does not exist; `None` if `path` is no path of embedded
/// files.
pub(super) fn read(path: &Path) -> Option<Result<Vec<u8>, FileError>> {
    let name = path.strip_prefix(DIR).ok()?;
    let found = FILES.iter().find(|(file, _)| Path::new(file) == name);
    Some(found.map(|(_, contents)| contents.to_vec()).ok_or(FileError::NotInProgram))
}
