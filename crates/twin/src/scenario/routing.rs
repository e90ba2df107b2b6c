//! How hosts find their neighbours, how routers hear of memberships, and how routes are made.

use super::model::{Neighbours, Reporting};
use hopcast_config::Diagnostic;
use hopcast_config::decode::choice;
use hopcast_config::yaml::Node;

/// How Ethernet addresses of neighbours are known.
pub(crate) fn neighbours(node: &Node, key: &str) -> Result<Neighbours, Diagnostic> {
    let (found, ..) = choice(node, key, &["plan", "resolve"])?;
    Ok(if found == "resolve" { Neighbours::Resolve } else { Neighbours::Plan })
}

/// How routers know of hosts' memberships.
pub(crate) fn membership(node: &Node, key: &str) -> Result<Reporting, Diagnostic> {
    let (found, ..) = choice(node, key, &["plan", "report"])?;
    Ok(if found == "report" { Reporting::Report } else { Reporting::Plan })
}
