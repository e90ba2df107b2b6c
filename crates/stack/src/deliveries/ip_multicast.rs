//! `ip-multicast`: idealised IP multicast, whose routers know every member at once.

use hopcast_config::decode::flag;

use crate::group::{Delivery, DeliveryMachines, DeliveryRow, GroupEnd, GroupReach, MemberMachine};
use crate::table::{Form, Opt, Options, Worlds};

pub(super) static IP_MULTICAST: DeliveryRow = DeliveryRow {
    name: "ip-multicast",
    about: "IP multicast, idealised: routers know every join at once; trees of reverse shortest paths",
    worlds: Worlds::Both,
    options: || OPTIONS.docs(&IpMulticast::default()),
    read: |row, options| OPTIONS.delivery(row, options, IpMulticast::default()),
};

/// The settings.
#[derive(Clone, Debug, Default)]
struct IpMulticast {
    one_source: bool,
}

static OPTIONS: Options<IpMulticast> = Options(&[Opt {
    key: "one-source",
    about: "Whether members listen to the flow's sender only (source-specific multicast, RFC 4607).",
    form: Form::Flag,
    set: |settings, node, key| flag(node, key).map(|found| settings.one_source = found),
    show: |settings| settings.one_source.to_string(),
}]);

impl Delivery for IpMulticast {
    fn is_of_one_source(&self) -> bool {
        self.one_source
    }

    fn is_routed(&self) -> bool {
        true
    }

    fn refuses(&self, reach: &GroupReach<'_>) -> Option<String> {
        let is_refused = self.one_source && reach.flow.exchange.is_mutual();
        is_refused.then(|| {
            "members of `one-source` hear the flow's sender alone, and this transport's must hear each other".to_owned()
        })
    }

    fn machines(&self, end: &GroupEnd<'_>) -> DeliveryMachines {
        let source = self.one_source.then_some(end.source);
        DeliveryMachines::joining(MemberMachine::at(end, end.address(), source))
    }
}
