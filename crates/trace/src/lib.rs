//! Where packets went, and where they died: the log of a run, and the story of a packet in it.
//!
//! A run that records writes a [`log`]: what each link delivered and dropped, and what each machine of each node
//! received and handed on, with the beginning of each packet's bytes. A [`Query`] chooses packets
//! (`arp between a and b`), and [`follow`] says what became of each copy of them, over links, machines, VLAN tags and
//! tunnels. Captures in pcapng are read into the same log, with less detail.
//!
//! | module | what |
//! |---|---|
//! | [`log`] | the log: its format, its writer ([`Recorder`]) and its reader ([`Log`]) |
//! | [`outcome`] | which counters of machines mean that a packet was dropped, ignored, or had arrived before |
//! | [`capture`] | captures in pcapng as a log |
//! | [`content`] | the layers of a packet's bytes, and the keys by which copies are matched |
//! | [`query`] | the small language of queries |
//! | [`story`] | the steps of each packet, as a tree of its copies |
//! | [`verdict`] | what became of them, in one line |
//! | [`view`] | stories as text, as JSON, and as marks on a drawing of the network |
//!
//! # Scope and departures
//!
//! - Of each packet the log has the first 128 bytes. Packets whose first bytes and last 32 bytes are the same, and that
//!   are as long, count as one; the checksum of UDP or TCP tells others apart.
//! - Symbols of a coded batch are not matched by content: a packet became part of what its machine sent next, and is
//!   seen again where it was decoded.

pub mod capture;
pub mod content;
mod course;
mod fragment;
mod known;
pub mod log;
mod notes;
pub mod outcome;
pub mod query;
pub mod story;
pub mod verdict;
pub mod view;

pub use fragment::Fragment;
pub use known::KnownNetwork;
pub use log::{Log, LogError, MemoryLog, Recorder};
pub use query::{Query, QueryError};
pub use story::{Story, follow};
