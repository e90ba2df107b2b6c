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
//! | [`transport`] | the row of a transport, its options, and stacks of them |
//! | [`transports`] | the table: one file for each transport |
//! | [`group`] | groups of receivers, and the row of a delivery |
//! | [`deliveries`] | the table: one file for each delivery |
//! | [`service`] | the row of a service of a node |
//! | [`services`] | the table: one file for each service |
//! | [`platform`] | a node being built, and the platform below its machines |
//! | [`flow`] | a flow being built |
//! | [`site`] | what a deployed node asks of a transport |

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
pub use platform::{BuiltNodes, KernelNode, LowerPort, NodeBuilder, VirtualNode};
pub use transport::{Layer, Stack, Transport, Variants, layer};
pub use transports::TRANSPORTS;
