//! Deliveries: what each is, in one row of a table, and what it puts on the nodes of a flow.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use hopcast_config::Diagnostic;
use hopcast_config::yaml::Node;

use super::Group;
use crate::error::BuildError;
use crate::flow::{FlowBuilder, FlowPlan};
use crate::network::{Network, NodeId, Segments};
use crate::platform::LowerPort;
use crate::table::{Configured, TableRow};
use crate::table::{OptionDoc, Options, Worlds};

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
    /// Whether each flow's sender is the only one that its members listen to: the group's addresses are of that kind,
    /// and whoever answers does so by unicast.
    fn is_of_one_source(&self) -> bool {
        false
    }

    /// Whether routers bring what is sent to the group's address to the members, by idealised trees.
    fn is_routed(&self) -> bool {
        false
    }

    /// Why it cannot bring datagrams from `from` to the members over the segments of this network; `None` if it can.
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

    /// Puts its machine, if it has one there, on one end of a flow, above the host's datagrams; says which port is
    /// above both.
    ///
    /// # Errors
    /// See [`BuildError`].
    fn put_on_end(&self, end: GroupEnd<'_, '_>) -> Result<LowerPort, BuildError>;
}

/// One end of a flow to a group, with the host's datagrams on it already.
pub struct GroupEnd<'b, 'a> {
    /// Puts machines on nodes.
    pub builder: &'b mut FlowBuilder<'a>,
    /// The node.
    pub node: NodeId,
    /// The group.
    pub group: &'a Group,
    /// The host's datagrams.
    pub lower: LowerPort,
}

impl<'a> GroupEnd<'_, 'a> {
    /// The flow.
    pub fn flow(&self) -> &'a FlowPlan<'a> {
        self.builder.flow
    }

    /// Whether the flow comes from here.
    pub fn is_sender(&self) -> bool {
        self.node == self.flow().spec.from
    }

    /// The sender's end of the flow.
    pub fn source(&self) -> SocketAddr {
        self.flow().source().local
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
