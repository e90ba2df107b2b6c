//! How hosts find their neighbours, and how routes are made.

use super::model::Neighbours;
use hopcast_config::Diagnostic;
use hopcast_config::decode;
use hopcast_config::yaml::Node;

const NEIGHBOURS: [&str; 2] = ["plan", "resolve"];

/// How Ethernet addresses of neighbours are known.
pub(crate) fn neighbours(node: &Node, key: &str) -> Result<Neighbours, Diagnostic> {
    match decode::text(node, key)? {
        "plan" => Ok(Neighbours::Plan),
        "resolve" => Ok(Neighbours::Resolve),
        text => {
            let hint = decode::did_you_mean(text, NEIGHBOURS);
            let expected = decode::listed(&NEIGHBOURS);
            Err(node.error(format!("`{key}`: expected one of {expected}, found `{text}`{hint}")))
        }
    }
}
