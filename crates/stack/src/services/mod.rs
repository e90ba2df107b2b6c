//! The table of services: one file for each.
//!
//! A new service is a file here and a line in [`SERVICES`].

mod vlan;

use crate::service::ServiceRow;

/// All services, in the order in which to show them.
pub static SERVICES: &[&ServiceRow] = &[&vlan::VLAN];
