//! Errors of the links' emulation.

use std::io;

use thiserror::Error;

use crate::lab;

/// Links could not be started, or stopped unexpectedly.
#[derive(Debug, Error)]
pub enum Error {
    /// The lab was set up for another number of links.
    #[error("the lab has interfaces for {found} links, not for {expected}")]
    Interfaces {
        /// Number of links for which the lab has interfaces.
        found: usize,
        /// Number of links that were to be started.
        expected: usize,
    },
    /// The lab's kernel counters cannot be read.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// The operating system gives no thread or no descriptor.
    #[error("cannot start the links: {0}")]
    Start(#[source] io::Error),
    /// A thread could not go on.
    #[error("the links stopped: {0}")]
    Stopped(#[source] io::Error),
    /// A thread panicked.
    #[error("a link's thread panicked")]
    Panicked,
}
