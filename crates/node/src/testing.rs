//! Requirements of tests on the machine, reported where they are missing.

use std::io::Write;
use std::path::Path;

/// A requirement that not every machine fulfils.
#[derive(Clone, Copy, Debug)]
pub enum Requirement<'a> {
    /// Root, with root's rights over networks.
    Root,
    /// The TUN and TAP driver.
    Tun,
    /// A program on the path.
    Program(&'a str),
    /// A C or C++ library with its headers: its name, and the path of one of the headers.
    Library(&'a str, &'a str),
    /// A file that is no program: a name for it, and its path.
    File(&'a str, &'a str),
}

impl<'a> Requirement<'a> {
    /// Its name in `HOPCAST_REQUIRE`.
    const fn name(self) -> &'a str {
        match self {
            Self::Root => "root",
            Self::Tun => "tun",
            Self::Program(name) | Self::Library(name, _) | Self::File(name, _) => name,
        }
    }

    /// The reason why it is missing; `None` if it is there.
    fn missing(self) -> Option<String> {
        let on_path = |program: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
        };
        match self {
            Self::Root => (!rustix::process::geteuid().is_root()).then(|| "not root".to_owned()),
            Self::Tun => (!Path::new("/dev/net/tun").exists()).then(|| "no /dev/net/tun".to_owned()),
            Self::Program(name) => (!on_path(name)).then(|| format!("no program `{name}`")),
            Self::Library(name, header) if !Path::new(header).is_file() => {
                Some(format!("no library `{name}` to build with"))
            }
            Self::File(name, path) => (!Path::new(path).is_file()).then(|| format!("no `{name}`")),
            Self::Library(name, _) => (!on_path("c++")).then(|| format!("no C++ compiler for `{name}`")),
        }
    }
}

/// Whether all of `needs` are fulfilled. If not, a line on standard error says that the test was skipped, and why.
///
/// # Panics
/// If a missing one is named by the variable `HOPCAST_REQUIRE`: there the test must not be skipped.
pub fn require(needs: &[Requirement<'_>]) -> bool {
    let named = std::env::var("HOPCAST_REQUIRE").unwrap_or_default();
    for need in needs.iter().filter(|need| named.split(' ').any(|name| name == need.name())) {
        assert!(need.missing().is_none(), "HOPCAST_REQUIRE names it: {}", need.missing().unwrap_or_default());
    }
    let missing: Vec<String> = needs.iter().filter_map(|need| need.missing()).collect();
    if !missing.is_empty() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // Not captured, unlike the output of tests that pass.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {}", missing.join(", "));
    }
    missing.is_empty()
}
