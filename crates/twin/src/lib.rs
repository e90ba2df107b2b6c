//! The twin: scenarios, the virtual-time world, workloads, measurements and results.
//!
//! A [`scenario`] file is read into a [`Plan`](scenario::model::Plan): every case of its sweep, resolved. A [`World`]
//! is one repeat of one case, [`run_to_end`](World::run_to_end) gives its results, and [`document()`] puts those of all
//! runs together. Files are read through a source that the caller gives ([`Files`](scenario::Files)); the crate reads
//! no clock and starts no thread. `hopcast-runner` does, and runs a plan on every core.
//!
//! | module | what |
//! |---|---|
//! | [`scenario`] | the scenario language: files, includes, overrides, sweeps, and errors with their corrections |
//! | [`world`] | the deterministic event engine, the hosts, the routes |
//! | `app` | the workloads, as machines: `cbr`, `bulk`, `file`, `messages`, `video`, `short-flows` |
//! | `meter` | the measurements of a flow |
//! | [`bounds`] | the bounds of flows, and the share of the delivered bytes that counts as goodput |
//! | `capture` | pcapng |
//! | [`collect`](mod@collect) | from the observations of a run to its part of the document |
//! | [`monitor`] | the progress of runs |
//! | `link_budget` | why there is a radio link between two ships |
//! | `ship_maps` | tracks of ships, and the links between them at some moments |
//! | `run` | one run from its first instant to its last, and the document of all |
//! | [`mod@probe`] | who reaches whom, checked in stages |
//! | [`identity`] | the hash that identifies a run |
//! | [`stats`] | means with intervals |
//! | [`results`] | the document |

mod app;
pub mod bounds;
pub mod capture;
pub mod collect;
pub mod identity;
mod link_budget;
mod meter;
pub mod monitor;
mod observed;
pub mod probe;
pub mod results;
mod run;
pub mod saving;
pub mod scenario;
mod ship_maps;
pub mod stats;
pub mod world;

pub use identity::Identities;
pub use link_budget::{NoBudget, link_budget};
pub use monitor::Monitor;
pub use run::{document, run_end};
pub use world::{World, WorldError};
