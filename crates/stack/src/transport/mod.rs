//! Transports: one row of a table for each, and how it is put on nodes.
//!
//! A transport is a protocol's folder (in `coded`, `peers` and so on) and one file in
//! [`transports`](crate::transports): its [`Row`], which scenarios, checks and documentation read, and its settings,
//! which implement [`Transport`]: how its machines are put on the nodes of a flow. Nothing else names a protocol.
//!
//! To put them there, a transport is handed an [`End`] of the flow, or all of its [`FlowNodes`]; both know the
//! [`FlowPlan`].

mod end;
mod ends;
mod kernel;
mod layer;
mod nodes;
mod participants;
mod plan;
mod ports;
mod program;
mod row;
mod site;

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use hopcast_core::Duration;

use crate::error::BuildError;
use crate::group::Exchange;
use crate::network::NodeId;
use crate::platform::LowerPort;

pub use end::End;
pub use ends::Ends;
pub use layer::{ETHERNET_HEADER, Layer, can_relay, fit, overhead};
pub use nodes::FlowNodes;
pub use participants::{Participant, Participants};
pub use plan::{FlowPlan, FlowSpec};
pub use ports::{PortKind, Ports};
pub(crate) use program::on_loopback;
pub use program::{ProgramCommand, ProgramEnds, ProgramPair, ReadyAt};
pub use row::{Count, Feedback, ReadOptions, Row, Socket};
pub use site::{
    GroupMember, GroupService, GroupTransport, Holder, Holding, MemoryShare, SiteEdge, SiteRelay,
    SiteTransport, StoreAndForward, StoringMember,
};

/// The user of a transport, as far as that matters to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// An application that has no use for a datagram after so long.
    Deadline(Duration),
    /// A protocol in a tunnel that repairs its losses, and takes a long delay for one.
    Tunnel,
}

/// The settings of a transport, and how it is put on the nodes of a flow.
pub trait Transport: fmt::Debug + Send + Sync + Any {
    /// Bytes that it puts before the payload of a full packet; `ip` is the length of the IP header.
    fn overhead(&self, ip: u64) -> u64;

    /// Bytes of the [`overhead`](Self::overhead) that only packets have which repair others: a bound on what a link
    /// carries does not count them.
    fn repair_overhead(&self) -> u64 {
        0
    }

    /// Whether it repairs losses by sending lost packets again, and not by parity: a bound for blocks of packets is not
    /// one of what it can do.
    fn repeats(&self) -> bool {
        false
    }

    /// The same transport with the defaults that fit what is above it, if they differ.
    fn fitted(&self, above: Above) -> Option<Arc<dyn Transport>> {
        let _ = above;
        None
    }

    /// Puts its machine on one end of a flow, above [`End::below`]; says which port is above it, or `None` where the
    /// application has sockets of its own.
    ///
    /// # Errors
    /// See [`BuildError`].
    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError>;

    /// Puts its machines on those nodes between the ends that are [built here](FlowNodes::builds); `depth` is its
    /// place in the stack, from the top. What a node gets depends on no other, so that a node's machines are the same
    /// wherever they are built.
    ///
    /// # Errors
    /// See [`BuildError`].
    fn put_between(&self, nodes: &mut FlowNodes<'_>, depth: usize) -> Result<(), BuildError> {
        let _ = (nodes, depth);
        Ok(())
    }

    /// Whether it carries datagrams between any two neighbours of a flow, and not only between its ends: if all layers
    /// below a transport do, nodes between the ends can relay for it.
    fn reaches_relays(&self) -> bool {
        false
    }

    /// Puts it on a node between the ends, below a relay at `address`; says which port is above it. Only called if it
    /// [reaches relays](Self::reaches_relays); `below` is the port of the layer below it, `None` for the host.
    ///
    /// # Errors
    /// See [`BuildError`].
    fn put_below_relay(
        &self,
        nodes: &mut FlowNodes<'_>,
        (node, address): (NodeId, SocketAddr),
        below: Option<LowerPort>,
    ) -> Result<Option<LowerPort>, BuildError> {
        let _ = (nodes, node, address);
        Ok(below)
    }

    /// Maximum length of a packet that it carries, in bytes, if its frames have a length of their own.
    fn packet_mtu(&self) -> Option<u32> {
        None
    }

    /// Bytes that it fills of each frame's payload, on a link whose frames it sends itself.
    fn frame_payload(&self) -> Option<u64> {
        None
    }

    /// The real programs at the ends, if it is one.
    fn programs(&self, at: ProgramEnds) -> Option<ProgramPair> {
        let _ = at;
        None
    }

    /// The same transport between the sites of a deployment, if it can be there.
    fn between_sites(&self) -> Option<&dyn SiteTransport> {
        None
    }

    /// The same transport among the members of a group of sites, if it can be there.
    fn among_members(&self) -> Option<GroupService<'_>> {
        None
    }

    /// Maximum number of members of a group that it serves at a time, the sender included, if there is one.
    fn max_members(&self, ipv6: bool) -> Option<usize> {
        let _ = ipv6;
        None
    }

    /// Whether it ends the connections of the transport above it, and carries on their streams.
    fn ends_connections(&self) -> bool {
        false
    }

    /// Whether datagrams of an application that can wait are granted: it sends as fast as this takes them.
    fn grants_datagrams(&self) -> bool {
        false
    }

    /// Whether it keeps what it holds while its node begins anew ([`FlowPlan::restarts_of`]).
    fn keeps_over_restart(&self) -> bool {
        false
    }

    /// Who is to hear what is sent to a group's address.
    fn exchange(&self) -> Exchange {
        Exchange::FromSender
    }

    /// Whether a station that overhears is to help.
    fn wants_helper(&self) -> bool {
        false
    }

    /// The reason why it cannot be on top of `lower` although the ports fit; `own` is its row.
    fn refuses_below(&self, own: &'static Row, lower: &Layer) -> Option<String> {
        let _ = (own, lower);
        None
    }

    /// The reason why `upper` cannot be on top of it although the ports fit; `own` is its row.
    fn refuses_above(&self, own: &'static Row, upper: &Layer) -> Option<String> {
        let _ = (own, upper);
        None
    }

    /// The address that the sender's application opens its connection to: the far end's, unless nodes between end it.
    fn first_hop(&self, plan: &FlowPlan<'_>, source: Ends) -> SocketAddr {
        let _ = plan;
        source.remote
    }

    /// The ends as an application on top of it sees them where the platform is the kernel.
    fn ends_on_kernel(&self, ends: Ends) -> Ends {
        ends
    }

    /// The option that has been changed and that the kernel's own transport does not have, if any.
    fn virtual_time_only(&self) -> Option<&'static str> {
        None
    }
}
