//! The member of NORM on libnorm: the program in `peers/norm`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hopcast_node::testing::Requirement;

use crate::segment::GROUP;

/// Port of the session.
pub(crate) const PORT: u16 = 6003;

/// The library that it is built with.
pub(crate) const LIBRARY: Requirement<'_> = Requirement::Library("norm", "/usr/include/normApi.h");

/// Its settings as a member on a node.
pub(crate) fn place(node: usize) -> Vec<String> {
    vec![format!("group={GROUP}"), format!("port={PORT}"), format!("id={}", node + 1)]
}

/// The program, built when it is first asked for.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/norm/peer.cc");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("norm-peer");
        // Another process of tests may build it, or run it, at the same time.
        let fresh = program.with_extension(std::process::id().to_string());
        let mut build = Command::new("c++");
        build.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&fresh).arg(&source);
        let built = build.arg("-lnorm").output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        std::fs::rename(&fresh, &program).unwrap();
        program
    })
}
