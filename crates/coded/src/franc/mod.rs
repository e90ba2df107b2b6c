//! FRANC: reliable delivery over one wireless hop by network coding, with a helper that overhears.
//!
//! After Hundebøll, Pahlevani, Roetter Lucani and Fitzek, "Throughput vs. delay in lossy wireless mesh networks with
//! random linear network coding" (European Wireless 2014), and PlayNCool, from which its budgets are.
//!
//! # The story
//!
//! Packets that enter an [`edge`](fn@edge) are put into *symbols*, and symbols into *blocks*. Each symbol is sent as
//! it is, at once, in an ENC packet. Where it is not known what was lost, it is made up for by random combinations of
//! the block's symbols, also in ENC packets, each of which makes up for any loss. The decoder at the other end gives
//! packets out as soon as they are known and in order, and says in ACK packets what rank and which symbols of which
//! blocks it has. Then the encoder is idle, or sends on.
//!
//! A [`helper`](fn@helper) overhears both, and sends the decoder what it lacks.
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
//! spent at once on combinations, and grows again after a timeout; the helper waits for its threshold, then spends its
//! own budget on combinations of what it has heard, which it never decodes.
//!
//! With [`Plan::Deficit`], the default, what is *known* to be lacking is sent again as it is, for a combination of one
//! symbol is of use as it arrives, and never for nothing; and as long as there is something better to do, it is waited
//! for until more is known. Combinations are for what is *expected* to be lacking: at the end of a burst, when what
//! waits has no room, or when nobody answers. So without a helper a symbol costs 1/(1 - e3) packets and no more. With
//! one, the encoder completes what decoder *and* helper have together, 1/(1 - e1 e3) packets for a symbol, which is the
//! minimum; the helper hands over what it has and the decoder lacks, and tells the encoder with each packet what
//! both have of a block, since where links are bad it hears of that sooner than the encoder does. Several blocks are
//! under way, so the medium is not idle while the end of one is waited for.
//!
//! # Delay
//!
//! Packets wait at the encoder's input, under CoDel and a bound on its delay, and not in the interface: an edge hands
//! over the next frame when it hears one of its own come back from the medium (`Station::echo` of the link). There are
//! no full windows behind which a queue could hide, as a new symbol is sent only when nothing older is known to be
//! missing. Losses are repaired as fast as acknowledgements come, so these are frequent, and seldom when the encoder's
//! input is behind: then what waits there waits longest.
//!
//! # Two directions on one medium
//!
//! Acknowledgements travel in ENC packets that go the other way, which are shortened to make room; small packets, such
//! as TCP's acknowledgements, share a symbol as long as the interface is busy anyway, or for [`Config::gather`].
//!
//! # What it may be plugged into
//!
//! `Above(0)` is a packet port, `Below(0)` a frame port. A chain of segments is two edges whose packet ports are
//! plugged into each other, or into a host that forwards; several edges may share a station. Both ends and the helper
//! need the same [`Config`].
//!
//! | module | what |
//! |---|---|
//! | [`config`] | the settings, the paper's among them |
//! | [`playncool`] | the budgets |
//! | `wire` | the packets |
//! | `session` | how two ends meet, and meet again |
//! | `input` | packets into symbols and back; CoDel |
//! | `encoder`, `decoder`, `acks` | one direction of an edge |
//! | `edge`, `helper`, `relay` | the machines; what the helper does for one direction |
//! | `combination` | which coefficients a combination has |
//! | `estimate`, `gate`, `bits` | what links lose; how much waits in the interface; sets of symbols |
//!
//! # Scope and departures
//!
//! - Symbols are first sent as they are, in the paper's plan too: its text leaves that open, and over GF(2) a decoder
//!   that lacks one symbol has use for only half of all combinations.
//! - Packets do not carry their coefficients, but a bitmap of what was summed up, and over GF(2^8) a number from which
//!   both ends draw. Only what a helper recodes carries them, as in the paper.
//! - In the paper's plan the decoder also acknowledges its first packet, and combinations leave out what the decoder is
//!   known to have.
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
mod lengths;
pub mod playncool;
mod relay;
mod session;
mod wire;

#[cfg(test)]
mod tests;

pub use config::{Config, ConfigError, Field, Links, Losses, Plan, Queue};
pub use edge::edge;
pub use helper::helper;
pub use wire::ETHER_TYPE;
