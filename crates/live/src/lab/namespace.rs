//! Network namespaces by name, as `ip netns` keeps them.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::Error;

/// Prefix of the names of all namespaces of labs.
const PREFIX: &str = "hopcast-";

/// Directory in which `ip netns` keeps namespaces.
const DIRECTORY: &str = "/run/netns";

/// An existing network namespace.
#[derive(Clone, Debug)]
pub struct Namespace {
    name: Arc<str>,
    file: Arc<File>,
}

impl Namespace {
    /// The namespace of that name.
    ///
    /// # Errors
    /// [`Error::Open`], if there is none.
    pub fn open(name: &str) -> Result<Self, Error> {
        let file = File::open(path(name)).map_err(|source| Error::Open { name: name.to_owned(), source })?;
        Ok(Self { name: name.into(), file: Arc::new(file) })
    }

    /// Its name, for `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Moves the calling thread into it for good, with all threads and processes that it starts from now on.
    ///
    /// # Errors
    /// [`Error::Enter`], if that is not allowed.
    pub fn enter(&self) -> Result<(), Error> {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| Error::Enter { name: self.name.to_string(), source: error.into() })
    }

    /// Runs `work` on a thread inside of it.
    ///
    /// # Errors
    /// [`Error::Enter`], if it cannot be entered.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| self.enter().map(|()| work()));
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Inode, which tells it from a later namespace of the same name.
    pub(crate) fn identity(&self) -> Option<u64> {
        self.file.metadata().ok().map(|file| file.ino())
    }
}

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// A name for the namespace of each node: `hopcast-<id>-<node>`, in characters that every program accepts.
pub(super) fn names<'a>(id: &str, nodes: impl Iterator<Item = &'a str>) -> Vec<String> {
    /// Maximum length of the node's part, in bytes. Chosen: enough to recognise a node, and far below the limit of file
    /// names.
    const MAX_LENGTH: usize = 40;
    let mut taken = BTreeSet::new();
    let name = |(number, node): (usize, &'a str)| {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let short: String = node.chars().take(MAX_LENGTH).map(plain).collect();
        // A tilde marks shortened names, and no short name contains one.
        let as_it_is = short == node && !node.is_empty() && taken.insert(node);
        if as_it_is { format!("{PREFIX}{id}-{short}") } else { format!("{PREFIX}{id}-{short}~{number}") }
    };
    nodes.enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_and_long_names_become_plain_and_stay_apart() {
        let long = "x".repeat(300);
        let names = names("7", ["a", "a", "ä/b", "ö/b", "", &long, "a~1"].into_iter());
        assert_eq!(names[..2], ["hopcast-7-a", "hopcast-7-a~1"]);
        assert_eq!(names[2..5], ["hopcast-7-__b~2", "hopcast-7-__b~3", "hopcast-7-~4"]);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(names.iter().all(|name| name.len() < 100), "{names:?}");
    }
}
