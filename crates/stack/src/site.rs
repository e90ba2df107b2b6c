//! The layer between the sites of a deployment, or among those of a group, as the file of a node names it.

use std::fmt;

use hopcast_config::Diagnostic;
use hopcast_config::decode::choice;
use hopcast_config::yaml::Node;

use crate::transport::{Layer, PortKind, Row};
use crate::transports::{TRANSPORTS, layer};

pub use crate::transport::{
    GroupMember, GroupService, GroupTransport, Holder, Holding, MemoryShare, SiteEdge, SiteRelay,
    SiteTransport, StoreAndForward, StoringMember,
};
pub use crate::transports::{Splice, Tunnel};

/// A layer that can be between sites.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteLayer(Layer);

impl SiteLayer {
    /// The transport with options that `over` names; `port` is what it must offer.
    ///
    /// # Errors
    /// A transport that cannot be between sites or does not offer that, or options that it does not have.
    pub fn read(node: &Node, port: PortKind) -> Result<Self, Diagnostic> {
        let names: Vec<&str> = between_sites(port).map(|row| row.name).collect();
        choice(node, "over", &names)?;
        layer(node).map(Self)
    }

    /// The first transport of the table that can be between sites and offers `port`, with its defaults.
    ///
    /// # Panics
    /// Never for packets, datagrams and streams: a test holds that each is offered.
    pub fn default_for(port: PortKind) -> Self {
        Self(between_sites(port).next().expect("some transport between sites offers it").layer())
    }

    /// The transport.
    ///
    /// # Panics
    /// Never: there is no such layer without one.
    pub fn transport(&self) -> &dyn SiteTransport {
        self.0.settings().between_sites().expect("it was read as one")
    }
}

/// The name, with the options that are not the default.
impl fmt::Display for SiteLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The transports that can be between sites and offer `port`.
fn between_sites(port: PortKind) -> impl Iterator<Item = &'static Row> {
    let fits =
        move |row: &'static Row| row.offers.has(port) && row.layer().settings().between_sites().is_some();
    TRANSPORTS.iter().copied().filter(move |row| fits(row))
}

/// A layer that can be among the members of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupLayer(Layer);

impl GroupLayer {
    /// The transport with options that `over` names.
    ///
    /// # Errors
    /// A transport that cannot be among sites, or options that it does not have.
    pub fn read(node: &Node) -> Result<Self, Diagnostic> {
        let names: Vec<&str> = among_members().map(|row| row.name).collect();
        choice(node, "over", &names)?;
        layer(node).map(Self)
    }

    /// The transport.
    ///
    /// # Panics
    /// Never: there is no such layer without one.
    pub fn transport(&self) -> GroupService<'_> {
        self.0.settings().among_members().expect("it was read as one")
    }

    /// Whether its members hold messages for each other.
    pub fn stores_and_forwards(&self) -> bool {
        matches!(self.transport(), GroupService::StoreAndForward(_))
    }

    /// Maximum number of members, this site included, if there is one; they have addresses of IPv6.
    pub fn max_members(&self) -> Option<usize> {
        self.0.settings().max_members(true)
    }
}

/// The first transport of the table that can be among the members of a group, with its defaults.
impl Default for GroupLayer {
    fn default() -> Self {
        Self(among_members().next().expect("some transport can be among members").layer())
    }
}

/// The name, with the options that are not the default.
impl fmt::Display for GroupLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The transports that can be among the members of a group.
fn among_members() -> impl Iterator<Item = &'static Row> {
    TRANSPORTS.iter().copied().filter(|row| row.layer().settings().among_members().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_transport_can_be_among_the_members_of_a_group() {
        for row in among_members() {
            assert!(
                row.groups && row.offers.has(PortKind::Datagram) && row.offers.has(PortKind::Message),
                "{}",
                row.name
            );
        }
        assert_eq!(
            among_members().map(|row| row.name).collect::<Vec<_>>(),
            ["norm", "nakack", "pgm", "disservice"]
        );
        assert_eq!(GroupLayer::default().to_string(), "norm");
        assert!(!GroupLayer::default().stores_and_forwards());
    }

    #[test]
    fn datagrams_and_streams_can_be_carried_between_sites() {
        let names = |port| between_sites(port).map(|row| row.name).collect::<Vec<_>>();
        assert_eq!(names(PortKind::Datagram), ["btp", "brtp"]);
        assert_eq!(names(PortKind::Stream), ["brtp"]);
        assert_eq!(SiteLayer::default_for(PortKind::Datagram).to_string(), "btp");
    }
}
