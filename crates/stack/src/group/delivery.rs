//! Deliveries: one row of a table for each, and its machines at the ends of a flow.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use hopcast_config::Diagnostic;
use hopcast_config::yaml::Node;
use hopcast_core::{Machine, Stream};
use hopcast_host::Hook;

use super::{GroupEnd, GroupReach, MemberMachine};
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

    /// Whether routers bring what is sent to the group's address to the members, each by its reverse path to the
    /// sender.
    fn is_routed(&self) -> bool {
        false
    }

    /// Whether these trees are those that services of routers make for themselves, for members that report to queriers.
    fn is_left_to_services(&self) -> bool {
        false
    }

    /// Whether what is sent to the group stays on its link: the group's address is one of link scope.
    fn is_of_link_scope(&self) -> bool {
        false
    }

    /// The reason why it cannot bring a flow's datagrams to all that are to hear them; `None` if it can.
    fn refuses(&self, reach: &GroupReach<'_>) -> Option<String> {
        let _ = reach;
        None
    }

    /// Whether a node may have one flow only to a group, as its members could not tell two apart.
    fn is_of_one_flow(&self) -> bool {
        false
    }

    /// Bytes that it adds to the headers of a datagram at most.
    fn overhead(&self) -> u64 {
        0
    }

    /// Bytes that it adds to a datagram beside which it adds as few as it can.
    fn min_overhead(&self) -> u64 {
        self.overhead()
    }

    /// Its machines at one end of a flow.
    fn machines(&self, end: &GroupEnd<'_>) -> DeliveryMachines;

    /// How it brings what programs of a site's host send to members, if it is not for flows alone.
    fn at_sites(&self) -> Option<&dyn SiteDelivery> {
        None
    }
}

/// A delivery from a site of a deployment to hosts that need not know of it.
pub trait SiteDelivery {
    /// The reason why it cannot serve a group, as the end of a sentence about it; `None` if it can.
    fn refuses(&self, group: &SiteGroup<'_>) -> Option<String>;

    /// The sender to a group, with a random stream of its own.
    fn sender(&self, group: &SiteGroup<'_>, random: Stream) -> SiteSender;
}

/// A group of hosts to which programs of a site's host send.
#[derive(Clone, Copy, Debug)]
pub struct SiteGroup<'a> {
    /// The address of the site's host from which members are sent to.
    pub own: IpAddr,
    /// The address that programs send to.
    pub to: IpAddr,
    /// The members' addresses.
    pub members: &'a [IpAddr],
}

/// A sender at a site.
pub struct SiteSender {
    /// Its machine: `Above(0)` carries the packets of programs, and `Below(1)` is the hook, by which it sends too.
    pub machine: Box<dyn Machine>,
    /// The packets that it takes out of the host.
    pub hooks: Vec<Hook>,
    /// How it serves the members now.
    pub shown: Shown,
}

/// How a sender serves its members at the moment of the call, in lines for people.
pub type Shown = Box<dyn Fn() -> String>;

/// The machines of a delivery at one end of a flow, above the host's datagrams.
#[derive(Default)]
pub struct DeliveryMachines {
    /// Joins a group on the host, and leaves it; above the host.
    pub(crate) member: Option<MemberMachine>,
    /// Brings datagrams to the members, with the name before its counters where the end has several machines; above
    /// the other.
    pub(crate) sender: Option<(&'static str, Box<dyn Machine>)>,
    /// The packets that the same machine takes out of the host, on `Below(1)`, by which it sends packets too.
    pub(crate) hooks: Vec<Hook>,
    /// How that machine serves the members, if it says so.
    pub(crate) shown: Option<Shown>,
}

impl DeliveryMachines {
    /// The same, with a machine that brings datagrams to the members: `Below(0)` is attached to the host's datagrams,
    /// and `Above(0)` is the transport's.
    #[must_use]
    pub fn sending(self, name: &'static str, machine: impl Machine + 'static) -> Self {
        Self { sender: Some((name, Box::new(machine))), ..self }
    }

    /// The same, whose machine that brings datagrams to the members takes packets out of the host by these hooks, on
    /// `Below(1)`, by which it sends packets too.
    #[must_use]
    pub fn with_hooks(self, hooks: impl IntoIterator<Item = Hook>) -> Self {
        Self { hooks: hooks.into_iter().collect(), ..self }
    }

    /// The same, whose machine that brings datagrams to the members serves them as this says.
    #[must_use]
    pub fn showing(self, shown: impl Fn() -> String + 'static) -> Self {
        Self { shown: Some(Box::new(shown)), ..self }
    }

    /// A machine that joins a group and leaves it.
    pub(crate) fn joining(member: Option<MemberMachine>) -> Self {
        Self { member, ..Self::default() }
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
