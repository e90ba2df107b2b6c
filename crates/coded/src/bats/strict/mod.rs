//! BATS without rank feedback: the strict mode.
//!
//! Neighbours tell each other what they lose on average and in what bursts, and what congestion control needs. They do
//! not tell what they have of a batch, so no hop repairs what it has lost: each sends enough of every batch in advance,
//! and what is missing at the far end is made up for from the near end. That is what BATS codes were made for, and what
//! is left where reports are late, rare or lost, or where there are many receivers.
//!
//! # A packet's path
//!
//! 1. The **source** puts symbols into the systematic batches of a **block** as they come, M symbols a batch, and sends
//!    each at once; it carries an index and no vector. When a batch is whole, a few combinations of its symbols follow.
//! 2. A **relay** passes on at once, and as it came, what is innovative. When a batch is over, as packets of the next
//!    one arrive or when nothing has come for 2 ms, it counts the rank r that it has and sends combinations until it
//!    has sent t_r packets. It never decodes and never waits for a batch before it sends of it.
//! 3. The numbers t_r are those of **adaptive recoding** ([`plan`]): the mean rank behind the hop is made as large as
//!    the budget allows, for the losses and bursts of this hop and the ranks that batches have here. It is blockwise
//!    adaptive recoding with the last 256 batches for a block.
//! 4. The **budget** is the source's ([`path`]): 0.98 M / (1 - p) packets a batch, p being the loss of the worst hop.
//!    All nodes receive it in bytes, since systematic packets are shorter: each hop then is as busy as every other, and
//!    no queue grows.
//! 5. The **sink** solves batches as they become whole, and blocks by the outer code. Its `EndToEndReport` goes back
//!    from hop to hop, each adding what it loses: how much is innovative of each block that is not over, and the mean
//!    rank of batches.
//! 6. The source closes a block of K symbols with **repair batches**: as many packets as are missing by the last
//!    end-to-end report, less what is expected to come of those under way. What is expected follows from the mean rank;
//!    what becomes of it, from the next end-to-end report. So a block ends with a batch that has as few packets as it
//!    needs, and, should those be lost, with a few more each time. Meanwhile the next blocks are under way.
//!
//! A block that waits for more symbols is closed before it is full, after 50 ms, or when nothing is added and some of
//! it is missing. The symbols that it might have had count as zeros, which cost nothing to send. How many it has is in
//! the packets of its repair batches, and in those of the systematic batches of the next block.
//!
//! Where bursts are measured, as many systematic batches take turns as a burst has packets, twice over: a burst then
//! takes little of each. Blocks tell how many. Where a hop is nearly idle, each batch is sent so often that it passes
//! as it is with 99 %, the smallest batches too.
//!
//! # Reliable or not
//!
//! BRTP repairs a block until the sink has it. Where no end-to-end report comes for twice the usual time, what is under
//! way of the oldest block is taken for lost. BTP sends 2.5 standard deviations of what arrives on top, and gives a
//! block up when its deadline has passed since it was closed; the sink, since it last heard something new of it, or
//! before what it knows behind a gap would be late.
//!
//! # What may be had
//!
//! Goodput over six hops of 300 Mbit/s, 20 us, in Mbit/s, M = 32, K = 1,024, frames of 1,514 bytes counted whole; the
//! bound is that of adaptive recoding with the best budget, exactly calculated, all links equally full of shorter
//! systematic and longer coded packets (`bound` in the tests):
//!
//! | loss of each hop | published | ours | bound |
//! |---|---|---|---|
//! |  0 % | 277 | 286.8 | 288.1 |
//! |  5 % | 213 | 254.9 | 260.9 |
//! | 10 % | 192 | 235.1 | 241.7 |
//! | 15 % | 174 | 218.6 | 224.4 |
//! | 20 % | 163 | 200.7 | 208.2 |
//!
//! With rank feedback (`Feedback::Ranks`) it is 7 to 12 % more.
//!
//! # Scope and departures
//!
//! - RFC 9426 leaves open how a source knows when to stop, and what a recoder's M_r is: here the end-to-end report and
//!   the plan.
//! - Packets of any batch may come over any parent, and all children get all batches; a source then serves the neediest
//!   sink. Batches are not spread over disjoint paths.
//! - A relay's memory is `window` batches, an edge's as many systematic batches in blocks, at least 2 blocks and at
//!   most 16.

mod block;
mod code;
mod delivery;
mod direction;
mod losses;
mod meter;
mod node;
mod order;
mod path;
mod plan;
mod ring;
mod sender;
mod sink;
mod source;
#[cfg(test)]
mod state;
#[cfg(test)]
mod tests;
mod transmit;

pub(super) use node::Node;
#[cfg(test)]
pub(super) use node::Strict;
