//! Deliveries: one row of a table for each, and its machines at the ends of a flow.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use hopcast_config::Diagnostic;
use hopcast_config::yaml::Node;
use hopcast_core::{Instant, Machine};

use super::{Group, MemberMachine};
use crate::network::{Network, NetworkPlan, NodeId, Segments};
use crate::table::{Configured, OptionDoc, Options, TableRow, Worlds};

/// A row of the table of deliveries.
#[derive(Debug)]
pub struct DeliveryRow {
    /// Its name in `delivery`.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The worlds that it runs in.
    pub worlds: Worlds,
    /// Its options, each with its documentation.
    pub options: fn() -> Vec<OptionDoc>,
    /// Reads the options into settings; without any, the defaults.
    pub read: fn(&'static Self, Option<&Node>) -> Result<DeliveryLayer, Diagnostic>,
}

/// The settings of a delivery, and what it puts on the ends of a flow.
pub trait Delivery: fmt::Debug + Send + Sync {
    /// Whether members listen to the flow's sender only (source-specific multicast): the group's addresses are of that
    /// kind, and members answer by unicast.
    fn is_of_one_source(&self) -> bool {
        false
    }

    /// Whether routers bring what is sent to the group's address to the members, by idealised trees.
    fn is_routed(&self) -> bool {
        false
    }

    /// The reason why it cannot bring datagrams from `from` to the members over the segments of this network; `None` if
    /// it can.
    fn refuses(
        &self,
        group: &Group,
        from: NodeId,
        network: Network<'_>,
        segments: &Segments,
    ) -> Option<String> {
        let _ = (group, from, network, segments);
        None
    }

    /// Its machine at one end of a flow, above the host's datagrams: `Below(0)` is attached to them, and `Above(0)` is
    /// the transport's. `None` where it has none.
    fn machine(&self, end: &GroupEnd<'_>) -> Option<DeliveryMachine>;
}

/// One end of a flow to a group, as its delivery sees it.
#[derive(Clone, Copy)]
pub struct GroupEnd<'a> {
    /// The group.
    pub group: &'a Group,
    /// The node.
    pub node: NodeId,
    /// The flow's sender.
    pub sender: NodeId,
    /// The sender's address in the flow.
    pub source: IpAddr,
    /// Whether the flow's packets are IPv6.
    pub ipv6: bool,
    /// Whether machines are attached to the kernel here.
    pub on_kernel: bool,
    /// Nodes, and the links that they are attached to.
    pub plan: &'a NetworkPlan,
}

impl GroupEnd<'_> {
    /// Whether this is the flow's sender.
    pub fn is_sender(&self) -> bool {
        self.node == self.sender
    }

    /// The group's address.
    pub fn address(&self) -> IpAddr {
        self.group.address(self.ipv6)
    }
}

/// The machine of a delivery at one end of a flow.
pub struct DeliveryMachine {
    /// The machine.
    pub machine: Box<dyn Machine>,
    /// The name before its counters where the end has several machines.
    pub name: &'static str,
    /// The times at which it joins or leaves a group, in order.
    pub changes: Vec<Instant>,
}

impl DeliveryMachine {
    /// A machine that joins no group.
    pub fn new(name: &'static str, machine: impl Machine + 'static) -> Self {
        Self { machine: Box::new(machine), name, changes: Vec::new() }
    }

    /// A machine that joins a group and leaves it.
    pub(crate) fn member(member: MemberMachine) -> Self {
        let changes = member.times().collect();
        Self { machine: Box::new(member), name: "", changes }
    }
}

/// A delivery with its settings.
pub type DeliveryLayer = Configured<DeliveryRow, dyn Delivery>;

impl TableRow for DeliveryRow {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl DeliveryLayer {
    /// The delivery of a row, with its defaults.
    ///
    /// # Panics
    /// Never: without options there is nothing to be wrong, which a test holds for the whole table.
    pub fn of(row: &'static DeliveryRow) -> Self {
        (row.read)(row, None).expect("the defaults are right")
    }
}

impl<S: Delivery + Clone + 'static> Options<S> {
    /// The delivery `row` as a file has it, for [`DeliveryRow::read`]: `defaults`, changed by the options that are
    /// there.
    ///
    /// # Errors
    /// A key that is none of the options, or a value that is not allowed.
    pub fn delivery(
        &self,
        row: &'static DeliveryRow,
        options: Option<&Node>,
        defaults: S,
    ) -> Result<DeliveryLayer, Diagnostic> {
        let settings = self.read(row.name, options, defaults.clone())?;
        let changed = self.changed(&settings, &defaults);
        Ok(Configured::new(row, Arc::new(settings), changed))
    }
}
