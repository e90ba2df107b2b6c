//! The results of a run, for people: the table in the terminal, the files of a run directory, the plots, and the page
//! that shows them all.
//!
//! Everything here is a view of one [`Document`](hopcast_twin::results::Document). The path from it to a picture has
//! three steps. A `study` reads the sweep: the parameters that vary, those that choose the protocol, and the axis of
//! the plots. A `grid` lays the summary out in rows and columns, once, for the terminal and the page. The [`plots`]
//! draw the groups of the study.
//!
//! - [`table::render`] prints the summary for a terminal.
//! - [`write_run_directory`] writes the directory of a run, and [`read_run_directory`] reads it back.
//! - [`html::render`] makes `report.html`, which opens without a network.
//! - [`join`] joins the shards of a sweep, and [`comparison`] compares two runs.
//! - [`iperf3`] prints a flow as iperf3 would.
//!
//! The same document gives the same bytes: no clock, no host name, no order of hashing. Statistics are computed with
//! the runs; here a [`figure()`] is looked up, never estimated, except for the two curves that pool the repeats of a
//! case (latency and the time series), whose captions say so.

mod align;
mod bibliography;
mod citation;
pub mod comparison;
mod csv_files;
mod directory;
mod error;
mod figure;
mod finding;
mod grid;
pub mod html;
pub mod iperf3;
mod live;
mod number;
#[cfg(feature = "parquet")]
mod parquet_files;
mod plot;
mod rivals;
mod shard;
mod study;
mod swept;
pub mod table;
mod topology;
mod welch;

pub use csv_files::flows as flows_csv;
pub use directory::{RunDirectory, read_run_directory, write_run_directory};
pub use error::{JoinError, ReadError, RowError, TopologyError};
pub use figure::figure;
pub use plot::{Plot, plots, route_picture};
pub use shard::{Shard, join};
pub use topology::{Topology, TopologyLink, TopologyNode};
pub use welch::Difference;
