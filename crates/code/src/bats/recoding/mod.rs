//! Number of packets that a relay sends of each batch.
//!
//! A link's packets are the scarce thing, and a batch of low rank deserves fewer of them: with rank r, packets beyond
//! the r that arrive are wasted. **Adaptive recoding** gives t_r packets to a batch of rank r so that the next node's
//! mean rank is as large as a mean number of packets, the **budget** b, allows (*A Unified Adaptive Recoding Framework
//! for Batched Network Coding*, 2021, which also shows that E_r is concave for any stationary loss):
//!
//! ```text
//! maximise  sum_r h_r E_r(t_r)   so that   sum_r h_r t_r = b
//! ```
//!
//! E_r(t) is the rank that t packets bring. Over a large field and with independent losses its slope is
//! (1 - loss) Pr[Bin(t, 1 - loss) < r], the probability that one packet more arrives and still says something new. So
//! there is a **price** for a packet, in units of rank, at which everybody raises t_r as long as the slope is above it,
//! and the budget is met by choosing the price. Between two prices, some batches go by one and the others by the other.
//!
//! With **feedback** of the rank that the next node has, a batch is sent in phases. Only the deficit counts: what the
//! next node lacks of the relay's rank (multi-phase recoding: Yin, Tahernia and Mak, *Network* 4(4), 2024). One
//! feedback is worth more than any size of batch. As fractions of the capacity 1 - loss over six hops, q = 256, with
//! the best budget and by exact calculation (the tests hold it) for M = 8, 16 and 32:
//!
//! | loss | the same t for all | adaptive | with one feedback | with two |
//! |---|---|---|---|---|
//! |  5 % | 0.888 0.924 0.946 | 0.911 0.937 0.956 | 0.990 0.991 0.992 | 0.999 0.999 0.999 |
//! | 10 % | 0.849 0.894 0.926 | 0.875 0.913 0.939 | 0.971 0.979 0.986 | 0.996 0.996 0.997 |
//! | 20 % | 0.795 0.855 0.898 | 0.825 0.878 0.915 | 0.942 0.961 0.975 | 0.980 0.985 0.990 |
//!
//! # The pieces
//!
//! - [`Plan`]: t by phase and deficit, for a rank distribution, a channel and a budget. Made anew when these have
//!   changed, every few seconds, say; asked for every batch.
//! - [`Blockwise`]: the same for a block of batches whose ranks are known, with a whole number of packets for all.
//! - [`Repairs`]: how many packets make it likely that a deficit is made up, for those who would rather be sure.
//! - [`Path`]: a chain of hops, each with the best plan, and the budget that is best for the whole.
//!
//! ```
//! use hopcast_code::bats::ranks::{Channel, Ranks, Scheme};
//! use hopcast_code::bats::recoding::Plan;
//!
//! let channel = Channel::independent(0.1, 256)?;
//! let arrived = Ranks::full(16).after(&channel, Scheme::Random, |_| 18);
//! let plan = Plan::new(&arrived, &channel, Scheme::Random, 1, 18.0);
//! let policy = plan.policy(0);
//! assert!(policy.packets(0, 16) > policy.packets(0, 12));
//! assert!((plan.budget() - 18.0).abs() < 1e-9);
//! # Ok::<(), hopcast_code::bats::ranks::Error>(())
//! ```

mod blockwise;
mod path;
mod plan;
mod repairs;
#[cfg(test)]
mod tests;

pub use blockwise::Blockwise;
pub use path::Path;
pub use plan::{Plan, Policy};
pub use repairs::Repairs;

/// Number of combinations that systematic recoding adds to the `received` packets of a batch, of which `target` are to
/// be sent on: max(M_r - r, 0) (RFC 9426).
pub const fn systematic_repairs(target: usize, received: usize) -> usize {
    target.saturating_sub(received)
}
