//! Composition of protocols' machines: the table of transports, the network's addresses and routes, and the building of
//! a flow on nodes.
//!
//! A flow's stack is a list of [`Layer`]s, each a row of the [table](TRANSPORTS) with its settings. A
//! [`FlowPlan`](transport::FlowPlan) knows the flow's route and who takes part; a [`FlowBuilder`](flow::FlowBuilder)
//! puts the machines on nodes, in virtual time or on the kernel.
//!
//! | module | content |
//! |---|---|
//! | [`table`] | the tables' common part: options, worlds, a row with its settings |
//! | [`service`] | the row of a service of a node |
//! | [`network`] | nodes, links, services, addresses, idealised routes |
//! | [`platform`] | a node being built, and the platform below its machines |
//! | [`group`] | groups of receivers, and the row of a delivery |
//! | [`transport`] | the row of a transport, what its settings implement, and a flow's plan, ends and nodes |
//! | [`flow`] | a flow being built |
//! | [`services`], [`deliveries`], [`transports`] | the tables: one file for each service, delivery and transport |
//! | [`site`] | the layer between the sites of a deployment |
//!
//! A module uses only those above it in this list.

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
pub use hopcast_host::PingConfig;
pub use platform::{BuiltNodes, KernelNode, LowerPort, NodeBuilder, PlacedMachine, VirtualNode};
pub use transport::{Layer, Transport};
pub use transports::{Stack, TRANSPORTS, Variants, hosts_datagrams, layer};
