//! Runs plans on a computer: scenario files are read, every core runs, finished runs and captures are kept in files.
//!
//! The twin itself is pure: it opens no file and starts no thread. [`load`] gives it the files of this system,
//! [`run_jobs`] gives each repeat of each case a thread and a [`World`](hopcast_twin::World) of its own.
//!
//! | module | what |
//! |---|---|
//! | `files` | scenarios from the file system |
//! | `run` | all cases and repeats, or a part of them, on every core |
//! | `virtual_time` | one run in virtual time, with its capture and its log |
//! | `log_file` | a log's file, which a thread of its own writes |
//! | `journal` | finished runs on disk, for a sweep that is cut short |

mod error;
mod files;
mod journal;
mod log_file;
mod run;
mod virtual_time;

pub use error::{JournalError, RunError};
pub use files::{FileSystem, load, load_text, read_scenario};
pub use journal::Journal;
pub use log_file::LogFile;
pub use run::{Executor, Job, Jobs, Part, run, run_jobs, run_jobs_on};
pub use virtual_time::VirtualTime;
