//! The member of PGM on OpenPGM: the program `peers/pgm.cc`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hopcast_node::testing::Requirement;

use crate::peer::build;
use crate::segment::{GROUP, address};

/// Port of the encapsulation. OpenPGM's sender listens at that of the group alone, so that requests go there too.
pub(crate) const PORT: u16 = 3056;

/// The library that it is built with.
pub(crate) const LIBRARY: Requirement<'_> = Requirement::Library("pgm", "/usr/include/pgm-5.3/pgm/pgm.h");

/// Its settings as a member on a node; of several `raw`, and others, the last counts.
pub(crate) fn place(node: usize) -> Vec<String> {
    let [a, b, c, d] = address(node);
    vec![
        format!("group={GROUP}"),
        format!("udp={PORT}"),
        // Its address is on the loopback interface too.
        "interface=eth0".to_owned(),
        format!("address={a}.{b}.{c}.{d}"),
        format!("id={}", node + 1),
    ]
}

/// The program, built when it is first asked for.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("pgm", &["-I/usr/include/pgm-5.3", "-lpgm"]))
}
