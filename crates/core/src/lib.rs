//! The base of every part of hopcast: time, quantities, randomness, and the machine contract.
//!
//! hopcast's protocols, link models, hosts and applications are [`Machine`]s: state machines without I/O that are
//! given the time and what arrived. The same code therefore runs in virtual time, live on Linux, and in a browser.
//! This crate holds the contract and the pieces that several machines share. It knows no clock, no socket and no
//! ambient randomness.
//!
//! | module | what |
//! |---|---|
//! | [`time`] | [`Instant`] and [`Duration`], in nanoseconds |
//! | [`units`] | [`Rate`], [`Bytes`], [`Fraction`], [`Dbm`], and how a person writes them |
//! | [`random`] | one seed, and a named stream for each that draws from it |
//! | [`buffer`] | a packet's bytes, with headroom |
//! | [`bytes`] | [`Reader`] and [`Writer`] of numbers; errors name the field |
//! | [`machine`] | **the contract**: [`Machine`], its [`Port`]s, and the [`Item`]s that cross them |
//! | [`hook`] | the packets that a machine takes out of a host |
//! | [`outbox`] | what a machine is about to hand over; [`Reactive`], a machine without timers |
//! | [`shared`] | a machine that its owner looks into while somebody else runs it |
//! | [`plug`] | what ports are plugged into on a real host |
//! | [`stream`] | the stream port: back-pressure, half-close, reset |
//! | [`assembly`] | machines plugged into one another; the order of hand-overs at one instant |
//! | [`observer`] | whoever watches what the machines of an assembly hand each other |
//! | [`timers`] | a machine's timers |
//! | [`agenda`] | deadlines by key, as many as there are |
//! | [`loss`] | the share of packets that are lost, fading |
//! | [`recent`] | the recent numbers of a sender's packets, and which have arrived |
//! | [`pacer`] | when a paced sender may let the next packet go |
//! | [`pace`] | a rate limit on packets that others cause |
//! | [`codel`] | the queue discipline of RFC 8289, at links and at protocols' inputs |
//! | [`guide`] | a worked example: a stack of two machines on a lossy link |

pub mod agenda;
pub mod assembly;
pub mod buffer;
pub mod bytes;
pub mod codel;
mod decimal;
pub mod guide;
pub mod hook;
pub mod loss;
pub mod machine;
pub mod observer;
pub mod outbox;
pub mod pace;
pub mod pacer;
pub mod plug;
pub mod random;
pub mod recent;
pub mod shared;
pub mod stream;
pub mod time;
pub mod timers;
pub mod units;

pub use agenda::Agenda;
pub use assembly::{Assembly, Slot, earliest};
pub use buffer::Buffer;
pub use bytes::{Malformed, Reader, Writer};
pub use hook::Hook;
pub use loss::FadingLoss;
pub use machine::{
    Attributes, Datagram, Egress, Frame, FrameOutcome, FrameStatus, Item, Machine, Membership, Message, Port,
    Reception, Transit,
};
pub use observer::Observer;
pub use outbox::{Outbox, Reactive};
pub use pace::Pace;
pub use pacer::Pacer;
pub use random::{Seed, Stream};
pub use recent::RecentNumbers;
pub use shared::Shared;
pub use stream::{StreamId, StreamItem, StreamReader, StreamWriter};
pub use time::{Duration, Instant};
pub use timers::{Timer, Timers};
pub use units::{Bytes, Dbm, Fraction, QuantityError, Rate};
