//! Services: machines that run on a node whatever flows there are, between its links and its host.
//!
//! A service is its protocol's folder and one file in [`services`](crate::services): its [`ServiceRow`], which
//! scenarios, checks and documentation read, and its settings, which implement [`Service`].

mod group_egress;
mod group_forwarder;
mod hook_chain;
mod restart;
mod routes;
mod status;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use hopcast_config::Diagnostic;
use hopcast_config::yaml::Node;
use hopcast_core::{Machine, Rate};
pub use hopcast_host::Config as HostConfig;
use hopcast_host::{Hook, Prefix};
use hopcast_wire::vlan::Tag;

use crate::network::MacAddress;
use crate::table::{Configured, OptionDoc, Options, TableRow, Worlds};

pub(crate) use group_egress::OnKernel;
pub use group_egress::{GroupEgress, GroupEgresses};
pub(crate) use group_forwarder::GroupForwarder;
pub use hook_chain::HookChain;
pub(crate) use restart::Restartable;
pub(crate) use routes::NoRoutes;
pub use routes::{ServiceNode, ServiceRoutes};
pub use status::{ORIGINATORS, ServiceStatus, StatusCell, StatusReader, StatusTable};

/// A row of the table of services.
#[derive(Debug)]
pub struct ServiceRow {
    /// Its name in `run`.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The worlds that it runs in.
    pub worlds: Worlds,
    /// Whether it is attached to the host, out of which it takes packets, and not to interfaces.
    pub on_host: bool,
    /// Whether a node of a deployment can run it: for what its host forwards, where all that it knows is the host's
    /// addresses, or between interfaces that its host gives up.
    pub for_sites: bool,
    /// Its options, each with its documentation.
    pub options: fn() -> Vec<OptionDoc>,
    /// Reads those of a map's keys that are its options into settings.
    pub read: fn(&'static Self, &Node) -> Result<ServiceLayer, Diagnostic>,
}

/// The settings of a service, and how it is put on a node.
pub trait Service: fmt::Debug + Send + Sync {
    /// The interfaces that a service called `name` makes of those that it is attached to, in the order of its upper
    /// ports.
    ///
    /// # Errors
    /// It cannot be attached to these.
    fn makes(&self, name: &str, lower: &[LowerInterface]) -> Result<Vec<UpperInterface>, AttachError> {
        let _ = name;
        if lower.is_empty() { Ok(Vec::new()) } else { Err(AttachError::ToHost) }
    }

    /// The frames that pass between these interfaces, of a service that joins them; the one interface that it makes is
    /// the host's port.
    ///
    /// # Errors
    /// It has settings of ports that are none of these.
    fn joins(&self, lower: &[LowerInterface]) -> Result<Option<JoinedPorts>, AttachError> {
        let _ = lower;
        Ok(None)
    }

    /// Of a service that makes a mesh: maximum length of a packet that leaves by its one interface, if those below take
    /// packets of `lower` bytes. That interface is on one segment with those of its kind at all nodes that frames lead
    /// to, over whatever hops.
    fn mesh_mtu(&self, lower: u32) -> Option<u32> {
        let _ = lower;
        None
    }

    /// EtherType that the service takes from its interfaces, leaving all other frames to the host; `None` if it takes
    /// all frames.
    fn ether_type(&self) -> Option<u16> {
        None
    }

    /// The packets that a service on the host takes out of it.
    fn hooks(&self) -> Vec<Hook> {
        Vec::new()
    }

    /// Whether it finds the routes of its node, and fills its [table](ServiceRoutes::route_table): beyond its own links
    /// the node has no others then. Its machine is woken when a link of the node goes down or up.
    fn routes_unicast(&self) -> bool {
        false
    }

    /// Interfaces and links that its options name, of which each is at one of its nodes at least, with the option.
    fn names_interfaces(&self) -> Vec<(&'static str, &str)> {
        Vec::new()
    }

    /// Its part in multicast routing, if it has one.
    fn multicast(&self) -> Option<MulticastRole> {
        None
    }

    /// Its machine at one node: `Below(i)` is interface i of `lower`, those that it is attached to, and `Above(i)` of
    /// those that it makes. Of one that is attached to the host, `lower` are the interfaces of the host, and `Below(0)`
    /// is its hook. It may keep the node's `routes`, and look up what they are at any time. At a site of a deployment
    /// there are neither routes nor a host's interfaces.
    fn machine(
        &self,
        host: &HostConfig,
        lower: &[LowerInterface],
        routes: &Rc<dyn ServiceRoutes>,
    ) -> Box<dyn Machine>;

    /// The same of one whose first interface this uses, and a reader of its tables, if it has any.
    fn readable_machine(
        &self,
        host: &HostConfig,
        (lower, user): (&[LowerInterface], InterfaceUser),
        routes: &Rc<dyn ServiceRoutes>,
    ) -> (Box<dyn Machine>, Option<StatusReader>) {
        let _ = user;
        (self.machine(host, lower, routes), None)
    }
}

/// The part of a service in multicast routing. At a node each that reports is attached to an `Above` port of the one
/// that routes by its `Above(0)`, and of the designated one by its `Above(1)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MulticastRole {
    /// It hands up who is a member of which group on which interface ([`Membership`](hopcast_core::Membership)): on all
    /// of them by `Above(0)`, and by `Above(1)` on those where no other router serves the members.
    Reports,
    /// It takes those, and fills the node's [table](ServiceRoutes::group_table) of groups, by which the host forwards.
    Routes,
    /// It takes those of the interfaces where it serves the members, and brings them their groups' packets itself, by
    /// hooks.
    Designated,
}

/// A service cannot be attached to these interfaces; a part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// It is one of those that are attached to the host.
    #[error("it is attached to the host, and not to interfaces")]
    ToHost,
    /// It wants another number of interfaces.
    #[error("`{kind}` is attached to {wanted}, and not to {found}")]
    Number {
        /// The kind of service.
        kind: &'static str,
        /// The interfaces that it wants, in words.
        wanted: &'static str,
        /// Number of those that it would be attached to.
        found: usize,
    },
    /// It has settings of a port that it is not attached to.
    #[error("`{key}`: `{port}` is none of its interfaces{hint} (interfaces: {known})")]
    NoSuchPort {
        /// The option.
        key: &'static str,
        /// The port.
        port: String,
        /// The nearest right name, as a part of a sentence; empty if none is near.
        hint: String,
        /// The interfaces that it is attached to.
        known: String,
    },
}

/// An interface that a service is attached to.
#[derive(Clone, Debug)]
pub struct LowerInterface {
    /// Its name: `eth0`, `eth0.7`.
    pub name: String,
    /// The name of the link that it leads to, if nothing stands between.
    pub link: Option<String>,
    /// Its Ethernet address.
    pub mac: MacAddress,
    /// Maximum length of a packet that leaves by it, in bytes, at the start.
    pub mtu: u32,
    /// The tags that its frames have on the link, from the outermost.
    pub tags: Vec<Tag>,
    /// Rate at which its link sends; `None` if that takes no time.
    pub rate: Option<Rate>,
    /// Whether it is a mesh's, which is told which groups are wanted above.
    pub is_mesh: bool,
    /// Whether it is a radio that contends for its medium.
    pub is_radio: bool,
}

/// The user of an interface that a service makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceUser {
    /// The host, which tells a mesh the groups that it listens to.
    Host,
    /// A service that joins interfaces, which may tell a mesh the groups that are wanted behind others.
    Bridge,
    /// Another service, or nothing that is known.
    Other,
}

impl InterfaceUser {
    /// The Ethernet address of the interface that a service makes over those of `lower`: that of the host's interface,
    /// if the host has no other; else that of the first below.
    pub fn address_above(self, host: &HostConfig, lower: &[LowerInterface]) -> MacAddress {
        match (self, &*host.interfaces, lower) {
            (Self::Host, [only], _) => only.mac,
            (_, _, [first, ..]) => first.mac,
            _ => [0; 6],
        }
    }
}

/// Interfaces that a service joins, and their VLANs.
#[derive(Clone, Debug)]
pub struct JoinedPorts {
    /// The type of the tags by which their frames are sorted; `None` if all frames pass with their tags.
    pub tag_kind: Option<u16>,
    /// The interfaces below, in their order.
    pub ports: Vec<PortVlans>,
    /// The host's port.
    pub host: PortVlans,
}

/// The VLANs of a port.
#[derive(Clone, Debug, Default)]
pub struct PortVlans {
    /// That of frames without a tag; `None` if they are dropped.
    pub native: Option<u16>,
    /// Those whose frames leave with their tag.
    pub tagged: Vec<u16>,
    /// Those whose frames leave without a tag.
    pub untagged: Vec<u16>,
}

/// An interface that a service makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpperInterface {
    /// Its name.
    pub name: String,
    /// The place of the interface below through which its frames leave.
    pub over: usize,
    /// The tags that its frames have on the link, from the outermost.
    pub tags: Vec<Tag>,
    /// The prefixes whose addresses hosts have there, at most one of each version of IP.
    pub prefixes: Vec<Prefix>,
}

/// A service with its settings.
pub type ServiceLayer = Configured<ServiceRow, dyn Service>;

impl TableRow for ServiceRow {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl<S: Service + Clone + 'static> Options<S> {
    /// The service `row` as a file has it, for [`ServiceRow::read`]: `defaults`, changed by those keys of a map that
    /// are options; its other keys are everybody's.
    ///
    /// # Errors
    /// A value that is not allowed.
    pub fn service(
        &self,
        row: &'static ServiceRow,
        node: &Node,
        defaults: S,
    ) -> Result<ServiceLayer, Diagnostic> {
        let mut settings = defaults.clone();
        for option in self.0 {
            if let Some(value) = node.get(option.key) {
                (option.set)(&mut settings, value, option.key)?;
            }
        }
        let changed = self.changed(&settings, &defaults);
        Ok(Configured::new(row, Arc::new(settings), changed))
    }
}
