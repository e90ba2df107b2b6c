//! The member of NORM on libnorm: a program of ours, which is built on the machine that needs it, since libnorm's
//! interface is C++ and few machines have it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::Error;

/// The program.
const SOURCE: &str = include_str!("../../peers/norm/peer.cc");
/// The header of libnorm, as Debian and Ubuntu install it.
pub(crate) const HEADER: &str = "/usr/include/normApi.h";
/// The package that has it.
pub(crate) const PACKAGE: &str = "libnorm-dev";
/// The compiler, by its name in the PATH.
pub(crate) const COMPILER: &str = "c++";

/// Whether libnorm can be compiled with.
pub(crate) fn is_installed() -> bool {
    Path::new(HEADER).is_file()
}

/// The place of the built program, in the user's cache directory; each version of its source has its own.
pub(super) fn path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    // FNV-1a: two versions of one source are to differ, and nobody is to be kept from anything.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let version = SOURCE.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    Some(cache.join("hopcast").join(format!("norm-peer-{version:016x}")))
}

/// Builds the program, if it is not there.
///
/// # Errors
/// libnorm or the compiler is not installed, or the compiler's first line.
pub(super) fn build() -> Result<(), Error> {
    let path = path().ok_or(Error::NoCache)?;
    if path.is_file() {
        return Ok(());
    }
    if !is_installed() {
        return Err(Error::NoLibnorm);
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(Error::file(directory))?;
    // Another run may build it, or run it, at the same time.
    let own = |ending: &str| path.with_added_extension(format!("{}{ending}", std::process::id()));
    let (source, fresh) = (own(".cc"), own(""));
    fs::write(&source, SOURCE).map_err(Error::file(&source))?;
    let mut compile = Command::new(COMPILER);
    compile.args(["-std=c++17", "-O1", "-o"]).arg(&fresh).arg(&source).arg("-lnorm");
    let output = compile.output();
    let _ = fs::remove_file(&source);
    let output = output.map_err(|error| Error::start(COMPILER, error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().find(|line| line.contains("error")).unwrap_or("it says nothing").to_owned();
        return Err(Error::NotBuilt(said));
    }
    fs::rename(&fresh, &path).map_err(Error::file(path))
}
