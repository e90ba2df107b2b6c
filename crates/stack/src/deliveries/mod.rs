//! The table of deliveries: one file for each.
//!
//! A new delivery is a file here and a line in [`DELIVERIES`].

mod broadcast;
mod ip_multicast;
mod unicast;

use crate::group::{DeliveryLayer, DeliveryRow};

/// All deliveries, in the order in which to show them.
pub static DELIVERIES: &[&DeliveryRow] =
    &[&unicast::UNICAST, &broadcast::BROADCAST, &ip_multicast::IP_MULTICAST];

/// The delivery of a flow to several receivers whose transport has no tree of its own and whose file names none.
pub fn usual() -> DeliveryLayer {
    DeliveryLayer::of(&unicast::UNICAST)
}
