//! The scenario language: a YAML file becomes a [`Plan`](model::Plan) that can be run, or one [`Diagnostic`] with the
//! place of the mistake and its correction. `docs/scenario.md` is the reference of every key.
//!
//! The steps of reading a file: `yaml` parses text into a tree whose nodes have their places; `files` merges includes;
//! `set` applies the overrides of the command line; `sweep` multiplies the tree into cases; then each case is decoded,
//! by `topology` with `generate`, `exchange` and `link`, by `services`, `groups`, by `flows` with `apps` and `fits`,
//! and by `events`. [`describe()`] prints the result.

mod apps;
mod capacity;
mod churn;
mod comparable;

mod describe;

mod events;
mod exchange;
mod files;
mod fits;
mod flows;
mod frequency;
mod generate;
mod groups;
mod link;
pub mod model;
mod plan;
pub mod programs;
mod published;
mod routing;
mod schema;
mod segments;
mod services;
mod set;
mod shared;
mod ships;
mod studies;
mod sweep;
mod topology;
mod video_trace;
mod workload;
mod worlds;

pub use capacity::{BlockBound, Capacities, capacity};

pub use describe::{describe, notes};
pub use exchange::{to_graphml, to_mermaid};
pub use files::{read_scenario, tree};
pub use hopcast_config::{Diagnostic, FileError, Files, MemoryFiles, decode, did_you_mean, yaml};
pub use plan::{Overrides, load, load_text};
pub use schema::SCHEMA;
pub use studies::studies;
pub use worlds::{needs_live, needs_virtual_time};

pub(crate) use capacity::{Ferry, TooMuchWork};
pub(crate) use plan::{TOP, usual_step};
