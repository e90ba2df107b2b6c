//! Errors of a live capture.

use std::io;

use thiserror::Error;

use crate::lab;

/// A capture could not be begun, or is not complete.
#[derive(Debug, Error)]
pub enum Error {
    /// The operating system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// A node cannot be entered.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A device cannot be listened to.
    #[error("cannot capture `{device}`: {source}")]
    Device {
        /// Its name.
        device: String,
        /// The reason.
        source: io::Error,
    },
    /// No device can be listened to.
    #[error("cannot capture: {0}")]
    Devices(#[source] io::Error),
    /// The kernel dropped packets of a device before they were read.
    #[error("{packets} packets of `{device}` came faster than they were read")]
    Missed {
        /// The device's name.
        device: String,
        /// Number of packets.
        packets: u32,
    },
    /// The file cannot be written.
    #[error("capture: {0}")]
    Write(#[source] io::Error),
    /// The log cannot be written.
    #[error("log: {0}")]
    WriteLog(#[source] io::Error),
    /// The disk is slower than the network.
    #[error("capture: it could not be written as fast as frames came, and ends early")]
    Overrun,
    /// A thread of the capture panicked.
    #[error("the thread that {0} panicked")]
    Panicked(&'static str),
}
