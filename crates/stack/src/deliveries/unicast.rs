//! `unicast`: a copy to each member.

use crate::group::{Delivery, DeliveryMachines, DeliveryRow, FanOut, GroupEnd};
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
    fn machines(&self, end: &GroupEnd<'_>) -> DeliveryMachines {
        let none = DeliveryMachines::default();
        if !end.sends() {
            return none;
        }
        let others = end.flow.hearers(end.node).into_iter();
        let members = others.map(|member| (end.plan.address(member.node, end.ipv6), member)).collect();
        none.sending("unicast", FanOut::new(end.address(), members))
    }
}
