//! Programs of ours on others' libraries: each is built on the machine that needs it, since few machines have the
//! library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::Error;

/// The header that the programs in C++ include.
pub(super) const CPP_PEER: (&str, &str) = ("peer.h", include_str!("../../peers/peer.h"));

/// A program that is built when it is first needed.
pub(crate) struct BuiltProgram {
    /// The application of a flow that it is.
    pub(crate) app: &'static str,
    /// The library that it is built with, as people call it.
    pub(crate) library: &'static str,
    /// The command that installs the library.
    pub(crate) remedy: &'static str,
    /// Path of a file of the library; `None` if there cannot be one.
    pub(crate) installed_at: fn() -> Option<PathBuf>,
    /// The compiler, by its name in the PATH.
    pub(crate) compiler: &'static str,
    /// The compiler's arguments, for its source and what is built of it.
    pub(crate) arguments: fn(source: &Path, into: &Path) -> Vec<String>,
    /// The sources, each after its name: the one that is compiled, and those that it includes.
    pub(crate) sources: &'static [(&'static str, &'static str)],
}

impl BuiltProgram {
    /// Whether the library is there to build with.
    pub(crate) fn has_library(&self) -> bool {
        (self.installed_at)().is_some_and(|path| path.is_file())
    }

    /// The place of what is built, in the user's cache directory; each version of the sources has its own.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
        // FNV-1a: two versions of the sources are to differ, and nobody is to be kept from anything.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let version =
            self.sources.iter().flat_map(|(_, text)| text.bytes()).fold(0xcbf2_9ce4_8422_2325, step);
        Some(cache.join("hopcast").join(format!("{}-peer-{version:016x}", self.app)))
    }

    /// Builds the program, if it is not there.
    ///
    /// # Errors
    /// The library or the compiler is not installed, or the compiler's first line.
    pub(super) fn build(&self) -> Result<(), Error> {
        let path = self.path().ok_or(Error::NoCache(self.app))?;
        if path.exists() {
            return Ok(());
        }
        if !self.has_library() {
            return Err(self.no_library());
        }
        // Another run may build it, or run it, at the same time.
        let own = path.with_added_extension(std::process::id().to_string());
        fs::create_dir_all(&own).map_err(Error::file(&own))?;
        let built = self.build_in(&own, &path);
        // What remains of it is of no use.
        let _ = fs::remove_dir_all(&own);
        built
    }

    /// Builds the program in a directory of its own, and moves it to its place.
    fn build_in(&self, own: &Path, path: &Path) -> Result<(), Error> {
        for (name, text) in self.sources {
            let source = own.join(name);
            fs::write(&source, text).map_err(Error::file(&source))?;
        }
        let compiled = self.sources.first().map_or("", |(name, _)| name);
        let (source, fresh) = (own.join(compiled), own.join("built"));
        let output = Command::new(self.compiler).args((self.arguments)(&source, &fresh)).output();
        let output = output.map_err(|error| Error::start(self.compiler, error))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said =
                said.lines().find(|line| line.contains("error")).unwrap_or("it says nothing").to_owned();
            return Err(Error::NotBuilt { app: self.app, said });
        }
        match fs::rename(&fresh, path) {
            // Somebody else's, of the same sources.
            Err(_) if path.exists() => Ok(()),
            renamed => renamed.map_err(Error::file(path)),
        }
    }

    pub(super) fn no_library(&self) -> Error {
        Error::NoLibrary { app: self.app, library: self.library, remedy: self.remedy }
    }
}
