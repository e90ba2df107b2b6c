//! `unicast`: a copy to each member.

use crate::error::BuildError;
use crate::group::{Delivery, DeliveryRow, FanOut, GroupEnd};
use crate::platform::LowerPort;
use crate::table::{Options, Worlds};

pub(super) static UNICAST: DeliveryRow = DeliveryRow {
    name: "unicast",
    about: "the sender sends each datagram once to every member",
    worlds: Worlds::Both,
    options: Vec::new,
    read: |row, options| Options(&[]).delivery(row, options, Unicast),
};

/// No settings.
#[derive(Clone, Debug)]
struct Unicast;

impl Delivery for Unicast {
    fn put_on_end(&self, end: GroupEnd<'_, '_>) -> Result<LowerPort, BuildError> {
        if !end.is_sender() {
            return Ok(end.lower);
        }
        let (flow, group) = (end.flow(), end.group);
        let others = group.members.iter().filter(|member| member.node != end.node);
        let members =
            others.map(|member| (flow.plan.address(member.node, flow.spec.ipv6), member.clone())).collect();
        let machine = FanOut::new(group.address(flow.spec.ipv6), members);
        let name = flow.counter_name("unicast");
        Ok(end.builder.attach(name, end.node, Box::new(machine), end.lower))
    }
}
