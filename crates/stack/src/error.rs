//! Errors of building a flow's machines.

use std::error::Error;

use hopcast_host::BindError;

/// A flow cannot be built on its nodes. One line for a person.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A machine cannot be put on a node.
    #[error("flow `{flow}` at `{node}`: {cause}")]
    AtNode {
        /// The flow's name.
        flow: String,
        /// The node's name.
        node: String,
        /// The cause.
        cause: Cause,
    },
    /// Fewer disjoint routes exist than the flow's `paths` asks for.
    #[error("flow `{flow}`: `paths`: wanted {wanted} without a node in common, found {found}")]
    TooFewPaths {
        /// The flow's name.
        flow: String,
        /// Routes that the file asks for.
        wanted: usize,
        /// Routes without a node in common.
        found: usize,
    },
    /// A transport needs longer datagrams than its route has room for.
    #[error(
        "flow `{flow}`: `{transport}` needs datagrams of {needed} bytes ({source_section}), its route has room for {room}"
    )]
    DatagramTooShort {
        /// The flow's name.
        flow: String,
        /// The transport's name.
        transport: &'static str,
        /// Bytes that a datagram must have room for.
        needed: u16,
        /// Section that specifies it.
        source_section: &'static str,
        /// Bytes that the route has room for.
        room: u16,
    },
}

/// The cause of an error at one node.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// Another machine has the host's port.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The settings of the transport contradict each other.
    #[error(transparent)]
    Settings(Box<dyn Error + Send + Sync>),
    /// TCP's packets were asked for where TCP is the kernel's.
    #[error("packets of TCP are the kernel's own")]
    OnKernel,
    /// A socket or device of the kernel was asked for in virtual time.
    #[error("in virtual time there is no kernel")]
    NotOnKernel,
    /// The transport needs a layer below it, and there is none.
    #[error("the transport has no layer below it")]
    NoLowerLayer,
    /// A service is attached to the interface that the transport needs.
    #[error("a service has taken the interface on `{link}`")]
    InterfaceTaken {
        /// The link's name.
        link: String,
    },
    /// The flow's route has no link to code on.
    #[error("no link to code on")]
    NoLink,
    /// The transport wants a helper, and `roles` names none on a link of the route.
    #[error("`roles` names no `helper` on `{link}`")]
    NoHelper {
        /// The link's name.
        link: String,
    },
}
