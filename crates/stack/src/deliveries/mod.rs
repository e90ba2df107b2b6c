//! The table of deliveries: one file for each.
//!
//! A new delivery is a file here and a line in [`DELIVERIES`].

mod broadcast;
mod ip_multicast;
pub(crate) mod meadcast;
mod one_hop;
mod receivers;
mod unicast;
mod xcast;
mod xcast_plus;

use hopcast_config::Diagnostic;
use hopcast_config::decode::did_you_mean_one_of;
use hopcast_config::yaml::{Kind, Node};

use crate::group::{DeliveryLayer, DeliveryRow};

/// The table of deliveries, in the order in which it is shown.
pub static DELIVERIES: &[&DeliveryRow] = &[
    &unicast::UNICAST,
    &broadcast::BROADCAST,
    &ip_multicast::IP_MULTICAST,
    &one_hop::ONE_HOP,
    &meadcast::MEADCAST,
    &xcast::XCAST,
    &xcast_plus::XCAST_PLUS,
];

/// The delivery of a flow to several receivers whose transport has no tree of its own and whose file names none.
pub fn default_delivery() -> DeliveryLayer {
    DeliveryLayer::of(&unicast::UNICAST)
}

/// Whether a name is that of a delivery.
pub fn is_delivery(name: &str) -> bool {
    DELIVERIES.iter().any(|row| row.name == name)
}

/// The delivery that `node` names: `ip-multicast`, or `ip-multicast: { … }` with options. `variants` are names that are
/// possible too, for messages.
///
/// # Errors
/// A delivery that is not in the table, or options that it does not have.
pub fn read<'n>(node: &Node, variants: impl Iterator<Item = &'n str>) -> Result<DeliveryLayer, Diagnostic> {
    let (name, span, options) = match &node.kind {
        Kind::Scalar(name) => (name, &node.span, None),
        Kind::Map(entries) if entries.len() == 1 => {
            (&entries[0].key, &entries[0].key_span, Some(&entries[0].value))
        }
        Kind::Map(_) | Kind::List(_) => {
            return Err(node.error(format!(
                "`delivery`: expected a delivery, such as `ip-multicast`, found {}",
                node.found()
            )));
        }
    };
    let names: Vec<&str> = DELIVERIES.iter().map(|row| row.name).chain(variants).collect();
    let Some(row) = DELIVERIES.iter().copied().find(|row| row.name == name) else {
        let hint = did_you_mean_one_of(name, &names);
        return Err(
            span.error(format!("there is no delivery `{name}`{hint} (deliveries: {})", names.join(", ")))
        );
    };
    (row.read)(row, options)
}
