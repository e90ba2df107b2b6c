//! FRANC: reliable delivery over one wireless hop by network coding, with a helper that overhears.
//!
//! After Hundebøll, Pahlevani, Roetter Lucani and Fitzek, "Throughput vs. delay in lossy wireless mesh networks with
//! random linear network coding" (European Wireless 2014), and PlayNCool, from which its budgets are.
//!
//! # The story
//!
//! Packets that enter an [`edge`] are put into *symbols*, and symbols into *blocks*. Each symbol is sent once as it is, at
//! once, in an ENC packet. Whatever is lost is made up for by random combinations of the block's symbols, also in ENC
//! packets, each of which makes up for any loss. The decoder at the other end gives packets out as soon as they are known
//! and in order, and says in ACK packets what rank and which symbols of which blocks it has. Then the encoder is idle, or
//! sends on.
//!
//! A [`helper`] overhears both. It never decodes: it combines what it has heard and sends that to the decoder, when its
//! link to the decoder is better than the encoder's.
//!
//! ```text
//!              e1  +--------+  e2
//!          +------>| helper |------+
//!          |       +--------+      v
//!     +---------+      e3      +---------+
//!     | encoder |------------->| decoder |      and the same the other way round: an edge is both
//!     +---------+              +---------+
//! ```
//!
//! # Who sends how much
//!
//! With [`Plan::Budget`] it is as in the paper: the encoder's budget grows with each symbol, by what PlayNCool says, is
//! spent at once, and grows again after a timeout; the helper waits for its threshold, then spends its own budget.
//!
//! With [`Plan::Deficit`], the default, everybody keeps account of what the decoder is *expected* to lack: what it said
//! last, less what was sent since, times what the link lets through. When that comes to a packet, one is sent. Without
//! a helper the encoder so sends 1/(1 - e3) packets for a symbol, as budgets would have it, but is put right by each
//! acknowledgement. With one, the encoder completes what decoder *and* helper have together, 1/(1 - e1 e3) packets for a
//! symbol, which is the least there is; and the helper hands the decoder what it lacks and the helper has. Several blocks
//! are under way, so the medium is not idle while the end of one is waited for.
//!
//! # Delay
//!
//! What waits, waits at the encoder's input, under CoDel and a bound on its delay, and not in the interface: an edge
//! hands over the next frame when it hears one of its own come back from the medium (`Station::echo` of the link). There
//! are no full windows behind which a queue could hide, as a new symbol is sent only when nothing older is missing.
//!
//! # Two ways on one medium
//!
//! Acknowledgements travel in ENC packets that go the other way, which are shortened to make room; small packets, such as
//! TCP's acknowledgements, share a symbol as long as the interface is busy anyway, or for [`Config::gather`].
//!
//! # What it may be plugged into
//!
//! `Above(0)` is a packet port, `Below(0)` a frame port. A chain of segments is two edges whose packet ports are plugged
//! into each other, or into a host that forwards. Both ends and the helper need the same [`Config`].
//!
//! | module | what |
//! |---|---|
//! | [`config`] | the settings, the paper's among them |
//! | [`playncool`] | the budgets |
//! | `wire` | the packets |
//! | `session` | how two ends meet, and meet again |
//! | `input` | packets into symbols and back; CoDel |
//! | `encoder`, `decoder`, `acks` | one direction of an edge |
//! | `edge`, `helper` | the machines |
//! | `estimate`, `gate`, `bits` | what links lose; how much waits in the interface; sets of symbols |
//!
//! # Scope and departures
//!
//! - Symbols are first sent as they are, in the paper's plan too: its text leaves that open, and over GF(2) a decoder
//!   that lacks one symbol has use for only half of all combinations.
//! - Packets are delivered in the order in which they were sent. What waits for a missing one is not given out early.
//! - The check is no signature: who can send frames of this type with the association's number can disturb it.
//! - When an end begins anew, what was on its way is lost, as it would be in any router that restarts.

mod acks;
mod bits;
mod combination;
pub mod config;
mod decoder;
mod edge;
mod encoder;
mod estimate;
mod gate;
mod helper;
mod input;
pub mod playncool;
mod relay;
mod session;
mod wire;

#[cfg(test)]
mod tests;

pub use config::{Config, Field, Links, Losses, Plan, Queue};
pub use edge::edge;
pub use helper::helper;
pub use wire::ETHER_TYPE;
