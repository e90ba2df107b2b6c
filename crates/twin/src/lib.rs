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
//! | `app` | the workloads, as machines: `cbr`, `bulk`, `file`, `messages`, `video`, `short-flows` |
//! | `meter` | what is measured of a flow |
//! | [`bounds`] | the bounds of flows, and how much of what was delivered counts as goodput |
//! | `capture` | pcapng |
//! | [`collect`](mod@collect) | from what a run has left to be read to its part of the document |
//! | [`monitor`] | how far runs have come |
//! | [`mod@run`] | all cases and repeats, or a part of them, on every core |
//! | [`identity`] | what a run is recognised by |
//! | [`journal`] | finished runs on disk, for a sweep that is cut short |
//! | [`stats`] | means with intervals |
//! | [`results`] | the document |

mod app;
pub mod bounds;
pub mod capture;
pub mod collect;
pub mod identity;
pub mod journal;
mod meter;
pub mod monitor;
pub mod results;
pub mod run;
pub mod scenario;
pub mod stats;
pub mod world;

pub use identity::Identities;
pub use journal::Journal;
pub use monitor::Monitor;
pub use run::{Job, Jobs, Part, Stage, VirtualTime, end_of, run, run_jobs, run_jobs_on};
pub use world::World;
