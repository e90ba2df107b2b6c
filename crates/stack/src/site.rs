//! The rows of the tables that the file of a node names: the layer between the sites of a deployment or among those of
//! a group, the delivery to hosts, and the service for what the node's host forwards.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use hopcast_config::Diagnostic;
use hopcast_config::decode::choice;
use hopcast_config::yaml::Node;
use hopcast_core::{Machine, Rate, Stream};
use hopcast_host::{Hook, Interface};

use crate::deliveries::{self, DELIVERIES};
use crate::group::{DeliveryLayer, DeliveryRow, SiteDelivery};
use crate::network::{HOP_LIMIT, MacAddress};
use crate::service::{
    HostConfig, InterfaceUser, LowerInterface, NoRoutes, ServiceLayer, ServiceRoutes, ServiceRow,
    StatusReader,
};
use crate::services::SERVICES;
use crate::transport::{Layer, PortKind, Row};
use crate::transports::{TRANSPORTS, layer};

pub use crate::group::{SiteGroup, SiteSender};
pub use crate::service::HookChain;

pub use crate::transport::{
    GroupMember, GroupService, GroupTransport, Holder, Holding, MemoryShare, SiteEdge, SiteRelay,
    SiteTransport, StoreAndForward, StoringMember,
};
pub use crate::transports::{Splice, Tunnel};

/// MTU of an interface of which nothing is known: Ethernet's.
const DEFAULT_MTU: u32 = 1500;

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

/// A delivery to hosts that need not know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteDeliveryLayer(DeliveryLayer);

impl SiteDeliveryLayer {
    /// The delivery with options that `over` names.
    ///
    /// # Errors
    /// A delivery that is for flows alone, or options that it does not have.
    pub fn read(node: &Node) -> Result<Self, Diagnostic> {
        let names: Vec<&str> = at_sites().map(|row| row.name).collect();
        choice(node, "over", &names)?;
        deliveries::read(node, std::iter::empty()).map(Self)
    }

    /// The delivery.
    ///
    /// # Panics
    /// Never: there is no such layer without one.
    pub fn delivery(&self) -> &dyn SiteDelivery {
        self.0.settings().at_sites().expect("it was read as one")
    }

    /// Bytes that it adds to a packet at most.
    pub fn overhead(&self) -> u64 {
        self.0.settings().overhead()
    }

    /// Its name in the table.
    pub fn name(&self) -> &'static str {
        self.0.row().name
    }
}

/// The first delivery of the table that sites have, with its defaults.
impl Default for SiteDeliveryLayer {
    fn default() -> Self {
        Self(DeliveryLayer::of(at_sites().next().expect("some delivery is for sites")))
    }
}

/// The name, with the options that are not the default.
impl fmt::Display for SiteDeliveryLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The deliveries that sites have.
fn at_sites() -> impl Iterator<Item = &'static DeliveryRow> {
    DELIVERIES.iter().copied().filter(|row| DeliveryLayer::of(row).settings().at_sites().is_some())
}

/// An interface of a node's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteInterface {
    /// Its name.
    pub name: String,
    /// Its Ethernet address.
    pub mac: MacAddress,
    /// Maximum length of a packet that leaves by it, in bytes.
    pub mtu: u32,
    /// Rate at which it sends, if that is known.
    pub rate: Option<Rate>,
}

impl SiteInterface {
    /// One of which only the name is known: with the address `mac`, and Ethernet's MTU.
    pub fn unknown(name: &str, mac: MacAddress) -> Self {
        Self { name: name.to_owned(), mac, mtu: DEFAULT_MTU, rate: None }
    }
}

/// The machine of a service between interfaces: `Below(i)` is the one at place i, and `Above(0)` the host's own port.
pub struct SiteMachine {
    /// The machine.
    pub machine: Box<dyn Machine>,
    /// Reads its tables, if it has any.
    pub reader: Option<StatusReader>,
    /// MTU of the device at the host's own port, in bytes.
    pub mtu: u32,
    /// Whether it is told by [memberships](hopcast_core::Membership) which groups the host wants on that device.
    pub reports_memberships: bool,
}

/// A service for what a node's host forwards, or between its interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteService(ServiceLayer);

impl SiteService {
    /// The row of the service that `run` names.
    ///
    /// # Errors
    /// None that a node of a deployment can run.
    pub fn find(run: &Node) -> Result<&'static ServiceRow, Diagnostic> {
        let rows = || SERVICES.iter().copied().filter(|row| row.for_sites);
        let names: Vec<&str> = rows().map(|row| row.name).collect();
        let (name, ..) = choice(run, "run", &names)?;
        Ok(rows().find(|row| row.name == name).expect("it is one of them"))
    }

    /// The service of a row, with those keys of a map that are its options.
    ///
    /// # Errors
    /// A value that is not allowed.
    pub fn read(row: &'static ServiceRow, node: &Node) -> Result<Self, Diagnostic> {
        if let Some(device) = node.get("device").filter(|_| !row.on_host) {
            return Err(
                device.error("`device` is for scenarios: the name of a node's own device is in `tap`")
            );
        }
        (row.read)(row, node).map(Self)
    }

    /// The packets that it takes out of the host.
    pub fn hooks(&self) -> Vec<Hook> {
        self.0.settings().hooks()
    }

    /// EtherType of the frames that one between interfaces exchanges there, if it leaves all others to the host.
    pub fn ether_type(&self) -> Option<u16> {
        self.0.settings().ether_type()
    }

    /// Its machine at a host with these addresses, whose `Below(0)` is the hook. It draws from `random`.
    pub fn machine(&self, addresses: &[IpAddr], random: Stream) -> Box<dyn Machine> {
        let host = HostConfig {
            addresses: addresses.to_vec(),
            interfaces: Vec::new(),
            forwarding: true,
            hop_limit: HOP_LIMIT,
        };
        let routes: Rc<dyn ServiceRoutes> = Rc::new(NoRoutes::new(random));
        self.0.settings().machine(&host, &[], &routes)
    }

    /// Its machine between interfaces of the host, and the facts of its device there, which has this name and Ethernet
    /// address. It draws from `random`.
    ///
    /// # Errors
    /// It cannot be attached to these, or has a prefix, which scenarios alone have; a part of a sentence.
    pub fn between(
        &self,
        (device, mac): (&str, MacAddress),
        interfaces: &[SiteInterface],
        random: Stream,
    ) -> Result<SiteMachine, String> {
        let lower = |interface: &SiteInterface| {
            let SiteInterface { name, mac, mtu, rate } = interface.clone();
            LowerInterface {
                name,
                link: None,
                mac,
                mtu,
                tags: Vec::new(),
                rate,
                is_mesh: false,
                is_radio: false,
            }
        };
        let lower: Vec<_> = interfaces.iter().map(lower).collect();
        let settings = self.0.settings();
        let made = settings.makes(device, &lower).map_err(|error| error.to_string())?;
        settings.joins(&lower).map_err(|error| error.to_string())?;
        if made.iter().any(|made| !made.prefixes.is_empty()) {
            return Err("`prefix` is for scenarios: a node's own addresses are in `address`".to_owned());
        }
        let of_mesh = settings.mesh_mtu(lower.iter().map(|lower| lower.mtu).min().unwrap_or(DEFAULT_MTU));
        let mtu = of_mesh.unwrap_or(DEFAULT_MTU);
        let host = HostConfig {
            addresses: Vec::new(),
            interfaces: vec![Interface::new(mac, mtu)],
            forwarding: false,
            hop_limit: HOP_LIMIT,
        };
        let routes: Rc<dyn ServiceRoutes> = Rc::new(NoRoutes::new(random));
        let (machine, reader) = settings.readable_machine(&host, (&lower, InterfaceUser::Host), &routes);
        Ok(SiteMachine { machine, reader, mtu, reports_memberships: of_mesh.is_some() })
    }

    /// Its name in the table.
    pub fn name(&self) -> &'static str {
        self.0.row().name
    }
}

/// The name, with the options that are not the default.
impl fmt::Display for SiteService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Worlds;

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
    fn what_a_node_does_for_its_host_takes_packets_out_of_a_kernel() {
        let rows: Vec<_> = SERVICES.iter().copied().filter(|row| row.for_sites).collect();
        assert_eq!(
            rows.iter().map(|row| row.name).collect::<Vec<_>>(),
            ["bridge", "batman-iv", "batman-v", "meadcast-router"]
        );
        assert_eq!(rows.iter().map(|row| row.on_host).collect::<Vec<_>>(), [false, false, false, true]);
        assert!(rows.iter().all(|row| row.worlds == Worlds::Both));
        assert_eq!(at_sites().map(|row| row.name).collect::<Vec<_>>(), ["meadcast"]);
        let layer = SiteDeliveryLayer::default();
        let [own, to, member] = ["fd00::1", "ff18::1", "fd00::2"].map(|text| text.parse().unwrap());
        let refused = |members| layer.delivery().refuses(&SiteGroup { own, to, members }).is_some();
        assert_eq!([&[member][..], &[member, own]].map(refused), [false, true]);
        let random = hopcast_core::Seed::new(1, 0).stream(&["site"], 0);
        let sender = layer.delivery().sender(&SiteGroup { own, to, members: &[member] }, random);
        assert_eq!((sender.shown)(), "sender\n  - fd00::2\nunicast: fd00::2\n");
        assert!(!sender.hooks.is_empty());
    }

    #[test]
    fn frames_to_the_address_of_a_device_come_to_it_whatever_addresses_the_interfaces_below_have() {
        use hopcast_core::{Buffer, Frame, Instant, Item, Port, Seed};
        let [device, station, unknown] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3]];
        let below = |name, last| SiteInterface::unknown(name, [6, 0, 0, 0, 0, last]);
        let source =
            hopcast_config::yaml::Source { name: "node.yaml".to_owned(), dir: "".into(), lines: true };
        let text = hopcast_config::yaml::parse("run: bridge", &source.into()).unwrap();
        let service = SiteService::read(SiteService::find(text.get("run").unwrap()).unwrap(), &text).unwrap();
        let random = Seed::new(1, 0).stream(&["site"], 0);
        let interfaces = [below("left", 4), below("right", 5)];
        let mut bridge = service.between(("br0", device), &interfaces, random).unwrap().machine;
        for (to, ports) in [
            (device, vec![Port::Above(0)]),
            // The first interface's address is as good as one that nobody has: the host is not given those.
            (interfaces[0].mac, vec![Port::Below(1)]),
            (unknown, vec![Port::Below(1)]),
        ] {
            let frame = [&to[..], &station, &[8, 0], &[0; 46]].concat();
            bridge.handle(Instant::ZERO, Port::Below(0), Item::Frame(Frame::new(Buffer::copy_from(&frame))));
            let given = std::iter::from_fn(|| bridge.poll(Instant::ZERO)).map(|(port, _)| port);
            assert_eq!(given.collect::<Vec<_>>(), ports, "{to:x?}");
        }
    }

    #[test]
    fn datagrams_and_streams_can_be_carried_between_sites() {
        let names = |port| between_sites(port).map(|row| row.name).collect::<Vec<_>>();
        assert_eq!(names(PortKind::Datagram), ["btp", "brtp"]);
        assert_eq!(names(PortKind::Stream), ["brtp"]);
        assert_eq!(SiteLayer::default_for(PortKind::Datagram).to_string(), "btp");
    }
}
