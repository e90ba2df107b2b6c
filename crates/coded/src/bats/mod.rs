//! BATS transports: BTP, which gives up in time what it cannot deliver, and BRTP, which delivers everything in order.
//!
//! Over a path of lossy hops, a code from end to end must send enough for the losses of all hops together, and one that
//! is decoded and encoded anew at every hop delays everything. BATS (*batched sparse codes*; RFC 9426) is in between:
//! relays do not decode, but combine what they have got anew, so that each hop has to make up for its own losses only.
//!
//! ```text
//!  application                                                          application
//!   units, streams                                                       units, streams
//!      │                                                                    ▲
//!   ┌──┴───┐  DATA   ┌───────┐  DATA   ┌───────┐  DATA   ┌──────┐           │
//!   │ edge ├────────►│ relay ├────────►│ relay ├────────►│ edge ├───────────┘
//!   │source│◄────────┤       │◄────────┤       │◄────────┤ sink │
//!   └──────┘ REPORT  └───────┘ REPORT  └───────┘ REPORT  └──────┘
//! ```
//!
//! The other way round it is the same: each edge is a source and a sink, and each relay carries both directions.
//!
//! # Words
//!
//! - A **session** is what a source sends, from its start to its end. By its mark, drawn at random, everybody knows
//!   what belongs to it, and nobody takes what comes back for what comes.
//! - A **symbol** is T bytes of what the application gave (`framing`: units and pieces of streams), numbered from 0. It
//!   is filled in the moment that it may be sent. Shorter ones travel without the zeros at their end.
//! - A **batch** is M symbols in a row, 16 by default. Relays combine packets of one batch and never of two: that
//!   bounds the **vector** of M coefficients that a combination carries, and the arithmetic. What is sent as it is has
//!   none.
//! - The **rank** of a batch at a node is how many linearly independent packets of it the node has. M is enough to
//!   decode, whichever they are. A packet that raises it is **innovative**.
//! - A **block** is K symbols, the unit of the outer code (`strict`). With rank feedback no outer code is needed.
//!
//! # A symbol's path, with rank feedback
//!
//! 1. The source makes a symbol when the hop's pacing and window (`rate`) and the child's grant allow, and sends it.
//! 2. A relay keeps each innovative packet (`batch`) and passes it on at once: a symbol as it came, or else a fresh
//!    combination of what it has of the batch. It never waits for the rest of a batch.
//! 3. Receivers report (`receiver`): what has arrived, and the ranks of the batches that are not complete. A report is
//!    due every quarter of a round trip, at once when something is missing, and travels with data where it can.
//! 4. What a child needs of a batch (`need`) is the difference of the ranks less what is under way. Repairs come
//!    before anything new, oldest batch first; each is a combination, so it does not matter what was lost.
//! 5. The sink decodes (`sink`), and reports how far it has delivered. As this floor moves up the path, everybody
//!    forgets what is before it.
//!
//! Where delivery has a deadline, nothing older is handed up (`age`): each unit bears a stamp. What waits longer at the
//! source is dropped there, a node gives a batch up whose newest symbol is older, and the sink goes on without the
//! symbols that are missing before what it holds would be late. The number of rounds of repair may be bounded too: then
//! the last one has a margin for what may be lost of the repairs themselves (`margin`).
//!
//! Repairs are sent ahead of need (`ahead`) where a report would come too late for a deadline, and else where a hop has
//! capacity to spare: a message that is lost then arrives a millisecond later instead of a round trip. Each hop plans
//! by itself, from its round trip, loss and bursts, the age of the data, and the time to the end, which reports tell.
//!
//! # Congestion
//!
//! Each hop has its own rate: what its receiver says arrives, no matter how much of it is lost at random. Between hops
//! there is back-pressure: a relay grants its parent as many new symbols as pass in a round trip, and some more where
//! losses come in bursts, less what waits here. So queues form at the source, where the application is notified.
//!
//! # When something breaks
//!
//! Each node draws an *instance* (as a receiver) and an *epoch* (as a sender) when it starts. A new instance has
//! nothing, so its parents send everything again from the floor; what is from an old epoch does not count. Until all
//! that it has passed on is delivered, a node asks a silent child now and then whether it is still the same. So relays
//! may vanish and return, and hops may be cut for any time. An edge that is started anew has a new session, which
//! replaces the one before once its source vouches for it (`vouch`), and the other edge resets its streams: it hears of
//! it, as it asks every second while it has streams and nothing comes (`framing/streams`). If nothing comes for
//! [`Config::stream_timeout`], it resets them too.
//!
//! Each symbol has a checksum, which the sink checks (`framing`): what was damaged in transit, be it in a relay, is
//! dropped and counted, and all streams are reset at both edges. What is stale, foreign, repeated, reflected or
//! malformed is counted and dropped, and no datagram costs more memory than the window of batches that is there anyway.
//!
//! In a reliable tree, a branch that gets nowhere for 30 s while others do is given up, and the others go on
//! (`branch`). If it comes back it gets what is new from then on; what it has missed is gone, and so are its streams.
//!
//! # Several children, several parents
//!
//! A source or relay with several children sends everything to all of them, each repaired by itself and all as fast as
//! the neediest: a tree from one source to several sinks. Or, if [`Config::split`] says so, each batch takes one of
//! disjoint paths to the same sink, whichever has room first; those of a path that falls silent take the others.
//!
//! # Figures
//!
//! [`Node`] counts packets by cause (first, repair, ahead of need, probe), bytes by kind (payload, headers, vectors,
//! reports, INFO), packets by what they brought (innovative, redundant), and batches by rank (`rank_r`), by packets
//! sent to a child, their recoding number (`batch_packets_n`), and by how many of those its rank lacks
//! (`batch_losses_n`). Of each direction they tell what the hops carried and lost (`hop_bytes_out`, `hop_lost_out`,
//! ...).
//!
//! # Scope and departures
//!
//! `wire` is the reference of the formats. From RFC 9426 are the batch header, the fields and sizes of batches, and in
//! `strict` the outer code; the delivery protocol around it is our own, since the RFC leaves it open.
//!
//! - A block is not fixed beforehand: symbols are numbered on and batches are filled on the fly, so that the first
//!   symbol of a block does not wait for its last.
//! - A packet that is sent as it is carries an index in place of a vector, and others leave the zeros at the ends of
//!   theirs out: vectors are 1.1 % of a packet.
//! - The batch number has 24 bits more than the RFC's 13, in the block's number.
//! - With rank feedback there is no outer code: hops repair until the next node has all, and two or three rounds
//!   of that already bring 98 to 99.9 % of what a link can carry, where no code without feedback reaches 93 %.
//! - GF(2) is not used. Its vectors are shorter, but 1.6 packets in each batch are wasted.
//! - A source takes one sink's word for what is delivered, in a tree all sinks'. In a tree only the source should send:
//!   a relay knows one session in each direction.
//! - Nothing is encrypted or signed; checksums are for accidents. Who can read the datagrams can forge them: put an
//!   encryption above and a trusted network, or another tunnel, below.

mod age;
mod batch;
mod branch;
mod bursts;
mod child;
mod config;
mod counters;
mod edge;
mod framing;
mod hop;
mod machine;
mod mode;
mod node;
mod overhead;
mod packet;
mod ranks;
mod rate;
mod receiver;
mod shape;
mod span;
mod strict;
#[cfg(test)]
mod tests;
mod transmit;
mod vouch;
mod wire;

pub use config::{BatchSize, Config, Delivery, Feedback};
pub use machine::Node;
