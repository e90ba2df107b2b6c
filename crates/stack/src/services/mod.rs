//! The table of services: one file for each.
//!
//! A new service is a file here and a line in [`SERVICES`].

mod batman;
mod bridge;
mod firewall;
mod link_state;
mod meadcast_forger;
mod meadcast_router;
mod pgm_router;
mod pim;
mod queriers;
mod vlan;
pub(crate) mod xcast_router;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{did_you_mean_one_of, whole};
use hopcast_config::yaml::Node;

use crate::service::ServiceRow;

pub(crate) use queriers::MLD_QUERIER;

/// The table of services, in the order in which it is shown.
pub static SERVICES: &[&ServiceRow] = &[
    &vlan::VLAN,
    &bridge::BRIDGE,
    &batman::BATMAN_IV,
    &batman::BATMAN_V,
    &queriers::IGMP,
    &queriers::MLD,
    &pim::PIM,
    &link_state::LINK_STATE,
    &pgm_router::PGM_ROUTER,
    &meadcast_router::MEADCAST_ROUTER,
    &meadcast_forger::MEADCAST_FORGER,
    &xcast_router::XCAST_ROUTER,
    &firewall::FIREWALL,
];

/// The row of the service that `run` names.
///
/// # Errors
/// A service that is not in the table.
pub fn find(run: &Node, name: &str) -> Result<&'static ServiceRow, Diagnostic> {
    SERVICES.iter().copied().find(|row| row.name == name).ok_or_else(|| {
        let names: Vec<&str> = SERVICES.iter().map(|row| row.name).collect();
        let hint = did_you_mean_one_of(name, &names);
        run.error(format!("there is no service `{name}`{hint} (services: {})", names.join(", ")))
    })
}

/// The documentation of `copies-per-second`.
const COPIES_PER_SECOND: &str = "Maximum number of copies and plain packets in a second, a tenth of them at once. With fewer, data is dropped; with more, a forged packet costs more.";

/// Reads a maximum number of packets in a second.
pub(crate) fn per_second(node: &Node, key: &str) -> Result<u32, Diagnostic> {
    whole(node, key, 10..=1_000_000_000).map(|found| found as u32)
}
