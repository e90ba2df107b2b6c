//! MEADcast: explicit multicast whose receivers are plain hosts, over routers of which any may take part.
//!
//! A sender knows its receivers. It asks for the routers on the way to each ([discovery](wire::Kind::Request)), builds
//! a tree of those that answer, and puts receivers into groups, each receiver behind a router that serves it.
//! A data packet bears a list of routers and their receivers in an IPv6 routing header, and is addressed to the first
//! receiver. The first MEADcast router that it meets makes a copy for each router of the list; where a copy reaches the
//! router that it is for, that makes a plain packet for each of its receivers (MEADcast to unicast, M2U). Routers
//! without MEADcast forward it by its destination, and a receiver that a MEADcast packet reaches unchanged reads it as
//! one that is for itself: the routing header has no segments left, and the transport's checksum always fits the
//! destination.
//!
//! The source is the thesis that measured MEADcast in a kernel ("Evaluation of medium-sized networks based on an
//! original implementation of the MEADcast Router", chapter 4), after Danciu and Tran, "MEADcast: Explicit Multicast
//! with Privacy Aspects" (International Journal on Advances in Security, 2019).
//!
//! # The revision
//!
//! The thesis proposes a revision (section 5.2.4), each part of which a sender may use or not; routers take part in all
//! of them. Without them, all is as the thesis has it.
//!
//! | part of [`Config`](sender::Config) | what it changes |
//! |---|---|
//! | `hold` | a packet is not copied before the paths of its receivers part |
//! | `next_hop` | packets are addressed to the router that is to handle them: if it fails, no receiver gets a list |
//! | `short_lists` | a [header](wire::short) whose list is compressed by prefix, and parts where the tree does |
//! | `nonce`, `key` | forged responses to discovery are [refused](Key) |
//! | `ask_joiners` | a receiver that joins is [asked about](sender::Config::ask_joiners) at once; not in the thesis |
//! | `grouping` | packets are chosen so that links carry [few bytes](sender::Grouping); not in the thesis |

pub mod directory;
pub mod forger;
mod key;
pub mod router;
pub mod sender;
pub mod wire;

pub use key::{Key, Statement};
