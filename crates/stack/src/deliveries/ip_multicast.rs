//! `ip-multicast`: IP multicast, whose routers know every member at once, or make the trees themselves.

use hopcast_config::decode::{choice, flag};

use crate::group::{Delivery, DeliveryMachines, DeliveryRow, GroupEnd, GroupReach, MemberMachine};
use crate::service::{MulticastRole, ServiceLayer};
use crate::table::{Form, Opt, Options, Worlds};

pub(super) static IP_MULTICAST: DeliveryRow = DeliveryRow {
    name: "ip-multicast",
    about: "IP multicast by trees of reverse shortest paths: idealised, or joined by the routers' own protocol",
    worlds: Worlds::Both,
    options: || OPTIONS.docs(&IpMulticast::default()),
    read: |row, options| OPTIONS.delivery(row, options, IpMulticast::default()),
};

/// The settings.
#[derive(Clone, Debug, Default)]
struct IpMulticast {
    one_source: bool,
    /// Whether routers make the trees themselves.
    pim: bool,
}

/// The sources of trees, as the file has them.
const ROUTINGS: [&str; 2] = ["idealised", "pim"];

static OPTIONS: Options<IpMulticast> = Options(&[
    Opt {
        key: "one-source",
        about: "Whether members listen to the flow's sender only (source-specific multicast, RFC 4607).",
        form: Form::Flag,
        set: |settings, node, key| flag(node, key).map(|found| settings.one_source = found),
        show: |settings| settings.one_source.to_string(),
    },
    Opt {
        key: "routing",
        about: "How routers find the trees: `idealised`, all of them know every join at once; `pim`, those that run `pim` join hop by hop, for members that report to `igmp-querier` or `mld-querier`, of one source.",
        form: Form::OneOf(&ROUTINGS),
        set: |settings, node, key| {
            settings.pim = choice(node, key, &ROUTINGS)?.0 == ROUTINGS[1];
            Ok(())
        },
        show: |settings| ROUTINGS[usize::from(settings.pim)].to_owned(),
    },
]);

impl Delivery for IpMulticast {
    fn is_of_one_source(&self) -> bool {
        self.one_source || self.pim
    }

    fn is_left_to_services(&self) -> bool {
        self.pim
    }

    fn is_routed(&self) -> bool {
        true
    }

    fn refuses(&self, reach: &GroupReach<'_>) -> Option<String> {
        if self.is_of_one_source() && reach.flow.exchange.is_mutual() {
            let option = if self.pim { "routing: pim" } else { "one-source" };
            return Some(format!(
                "members of `{option}` hear the flow's sender alone, and this transport's must hear each other"
            ));
        }
        let routes = |layer: &ServiceLayer| layer.settings().multicast() == Some(MulticastRole::Routes);
        let is_routed = reach.network.services.iter().any(|service| routes(&service.layer));
        (self.pim && !is_routed).then(|| {
            "no router makes the trees of `routing: pim`: add `services: [{ run: pim, on: … }]`".to_owned()
        })
    }

    fn machines(&self, end: &GroupEnd<'_>) -> DeliveryMachines {
        let source = self.is_of_one_source().then_some(end.source);
        DeliveryMachines::joining(MemberMachine::at(end, end.address(), source))
    }
}
