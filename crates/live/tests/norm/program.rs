//! The member of NORM on libnorm: the program `peers/norm.cc`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hopcast_node::testing::Requirement;

use crate::peer::build;
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
    PROGRAM.get_or_init(|| build("norm", &["-lnorm"]))
}
