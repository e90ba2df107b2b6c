//! `unicast`: a copy to each member.

use crate::group::{Delivery, DeliveryMachine, DeliveryRow, FanOut, GroupEnd};
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
    fn machine(&self, end: &GroupEnd<'_>) -> Option<DeliveryMachine> {
        if !end.is_sender() {
            return None;
        }
        let others = end.group.members.iter().filter(|member| member.node != end.node);
        let members =
            others.map(|member| (end.plan.address(member.node, end.ipv6), member.clone())).collect();
        Some(DeliveryMachine::new("unicast", FanOut::new(end.address(), members)))
    }
}
