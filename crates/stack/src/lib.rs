//! Composition of protocols' machines: the table of transports, the network's addresses and routes, and the building of
//! a flow on nodes.
//!
//! A flow's stack is a list of [`Layer`]s, each a row of the [table](TRANSPORTS) with its settings. A
//! [`FlowPlan`](flow::FlowPlan) knows the flow's route and who takes part; a [`FlowBuilder`](flow::FlowBuilder) puts
//! the machines on nodes, in virtual time or on the kernel.
//!
//! | module | content |
//! |---|---|
//! | [`network`] | nodes, links, addresses, idealised routes |
//! | [`table`] | what the tables share: options, worlds, a row with its settings |
//! | [`transport`] | the row of a transport, and what its settings implement |
//! | [`transports`] | the table: one file for each transport; stacks of them |
//! | [`group`] | groups of receivers, and the row of a delivery |
//! | [`deliveries`] | the table: one file for each delivery |
//! | [`service`] | the row of a service of a node |
//! | [`services`] | the table: one file for each service |
//! | [`platform`] | a node being built, and the platform below its machines |
//! | [`flow`] | a flow being built |
//! | [`site`] | the layer between the sites of a deployment |

pub mod deliveries;
mod error;
pub mod flow;
pub mod group;
pub mod network;
pub mod platform;
pub mod service;
pub mod services;
pub mod site;
pub mod table;
pub mod transport;
pub mod transports;

pub use error::{BuildError, Cause};
pub use platform::{BuiltNodes, KernelNode, LowerPort, NodeBuilder, PlacedMachine, VirtualNode};
pub use transport::{Layer, Transport};
pub use transports::{Stack, TRANSPORTS, Variants, layer};
