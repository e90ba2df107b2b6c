//! PGM against OpenPGM: files go both ways between our machines, on real sockets, and the real one's, on a switched
//! segment that loses frames of both.
//!
//! All of it needs root, TUN, namespaces, OpenPGM and a C++ compiler, and is skipped aloud where those are missing.
//! Long tests are ignored unless requested: `cargo test -p hopcast-live --test pgm -- --ignored`.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods)] // these tests run in real time

#[path = "../common/mod.rs"]
mod common;
mod congestion;
mod ours;
#[path = "../norm/peer.rs"]
mod peer;
mod program;
mod raw;
#[path = "../norm/segment.rs"]
mod segment;
mod transfers;
