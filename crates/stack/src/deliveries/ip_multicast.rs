//! `ip-multicast`: idealised IP multicast, whose routers know every member at once.

use hopcast_config::decode::flag;

use crate::error::BuildError;
use crate::group::{Delivery, DeliveryRow, GroupEnd, MemberMachine};
use crate::platform::LowerPort;
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

    fn put_on_end(&self, end: GroupEnd<'_, '_>) -> Result<LowerPort, BuildError> {
        let (flow, group) = (end.flow(), end.group);
        let Some(times) = group.member(end.node).filter(|_| !end.is_sender()) else { return Ok(end.lower) };
        let source = self.one_source.then(|| end.source().ip());
        let machine = MemberMachine::new(group.address(flow.spec.ipv6), source, times, group.linger);
        let on_kernel = end.builder.is_on_kernel();
        let machine = if on_kernel { machine.announced() } else { machine };
        let changes: Vec<_> = machine.times().collect();
        Ok(end.builder.attach_member(end.node, Box::new(machine), changes, end.lower))
    }
}
