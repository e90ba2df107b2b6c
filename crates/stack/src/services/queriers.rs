//! `igmp-querier`, `mld-querier`: routers that ask who is a member of which group.

use std::rc::Rc;

use hopcast_config::decode::{some_duration, whole};
use hopcast_core::{Duration, Machine};
use hopcast_host::Hook;
use hopcast_host::querier::{Config, Interface, Querier};
use hopcast_wire::ip;

use crate::service::{HostConfig, LowerInterface, MulticastRole, Service, ServiceRoutes, ServiceRow};
use crate::table::{Form, Opt, Options, Worlds};

pub(super) static IGMP: ServiceRow = ServiceRow {
    name: "igmp-querier",
    about: "asks on every interface who is a member of which IPv4 group (IGMPv3, RFC 3376)",
    worlds: Worlds::Both,
    on_host: true,
    for_sites: false,
    options: || OPTIONS.docs(&Settings::new(false)),
    read: |row, node| OPTIONS.service(row, node, Settings::new(false)),
};

/// Name of the service by which routers hear of members of IPv6 groups.
pub(crate) const MLD_QUERIER: &str = "mld-querier";

pub(super) static MLD: ServiceRow = ServiceRow {
    name: MLD_QUERIER,
    about: "asks on every interface who is a member of which IPv6 group (MLDv2, RFC 3810)",
    worlds: Worlds::Both,
    on_host: true,
    for_sites: false,
    options: || OPTIONS.docs(&Settings::new(true)),
    read: |row, node| OPTIONS.service(row, node, Settings::new(true)),
};

/// The settings.
#[derive(Clone, Debug)]
struct Settings {
    ipv6: bool,
    config: Config,
}

impl Settings {
    fn new(ipv6: bool) -> Self {
        Self { ipv6, config: Config::default() }
    }
}

static OPTIONS: Options<Settings> = Options(&[
    Opt {
        key: "robustness",
        about: "Packets of a kind of which all but one may be lost, 1 to 7. More, and silent members are forgotten later.",
        form: Form::Numbers(1, 7),
        set: |settings, node, key| {
            whole(node, key, 1..=7).map(|found| settings.config.robustness = found as u8)
        },
        show: |settings| settings.config.robustness.to_string(),
    },
    Opt {
        key: "query-interval",
        about: "The time between queries. Shorter costs packets; longer serves members for longer that vanish unheard.",
        form: Form::Duration,
        set: |settings, node, key| {
            some_duration(node, key).map(|found| {
                settings.config.query_interval = found;
                // RFC 3376 section 8.3: the answers come before the next query.
                let limit = Duration::from_nanos(found.as_nanos() / 2);
                settings.config.query_response_interval = settings.config.query_response_interval.min(limit);
            })
        },
        show: |settings| settings.config.query_interval.to_string(),
    },
    Opt {
        key: "last-member-query-interval",
        about: "The time for others to answer when a member leaves. Too short, and they lose packets; longer, and a group that nobody wants is sent for longer.",
        form: Form::Duration,
        set: |settings, node, key| {
            some_duration(node, key).map(|found| settings.config.last_member_query_interval = found)
        },
        show: |settings| settings.config.last_member_query_interval.to_string(),
    },
]);

impl Service for Settings {
    fn hooks(&self) -> Vec<Hook> {
        match self.ipv6 {
            false => vec![Hook::Protocol(ip::IGMP)],
            // MLD bears a hop-by-hop header with Router Alert.
            true => vec![Hook::ExtensionHeader { header: 0, kind: None }],
        }
    }

    fn multicast(&self) -> Option<MulticastRole> {
        Some(MulticastRole::Reports)
    }

    fn machine(
        &self,
        host: &HostConfig,
        _: &[LowerInterface],
        _: &Rc<dyn ServiceRoutes>,
    ) -> Box<dyn Machine> {
        let mut interfaces = Interface::of_host(host);
        for Interface { v4, v6, .. } in &mut interfaces {
            if self.ipv6 { *v4 = None } else { *v6 = None }
        }
        Box::new(Querier::new(self.config, &interfaces))
    }
}
