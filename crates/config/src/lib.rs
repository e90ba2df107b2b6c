//! Configuration files: YAML with places, typed values, and errors that say what to write instead.
//!
//! [`parse`](yaml::parse) makes of text a tree whose every word knows its line and column. [`Fields`](decode::Fields)
//! and the functions of [`decode`] read typed values from it: durations, rates, sizes, names, choices. A mistake is a
//! [`Diagnostic`], one line `file:line:column: message` with the nearest right spelling.
//!
//! The crate opens no file: text is given to it, and what a text names is read through [`Files`].

pub mod decode;
mod diagnostic;
mod files;
pub mod yaml;

pub use decode::did_you_mean;
pub use diagnostic::Diagnostic;
pub use files::{FileError, Files, MemoryFiles};
