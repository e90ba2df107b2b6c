//! The twin: scenarios, the virtual-time world, workloads, measurements and results.
//!
//! A [`scenario`] file is read into a [`Plan`](scenario::model::Plan): every case of its sweep, resolved. [`run()`]
//! runs each case as often as it is repeated, every run in a [`World`] of its own, and gives one
//! [`Document`](results::Document).
//!
//! | module | what |
//! |---|---|
//! | [`scenario`] | the scenario language: files, includes, overrides, sweeps, and errors that say what to write |
//! | [`world`] | the deterministic event engine, the hosts, the routes |
//! | `app` | the workloads, as machines: `cbr`, `bulk`, `file`, `messages` |
//! | `meter` | what is measured of a flow |
//! | `capture` | pcapng |
//! | `collect` | from a world that has run to its part of the document |
//! | [`monitor`] | how far runs have come |
//! | [`mod@run`] | all cases and repeats, on every core |
//! | [`stats`] | means with intervals |
//! | [`results`] | the document |

mod app;
pub mod capture;
mod collect;
mod meter;
pub mod monitor;
pub mod results;
pub mod run;
pub mod scenario;
pub mod stats;
pub mod world;

pub use monitor::Monitor;
pub use run::{end_of, run};
pub use world::World;
