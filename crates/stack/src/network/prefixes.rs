//! Reading of prefixes from a file.

use std::net::IpAddr;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{one_or_list, text};
use hopcast_config::yaml::Node;
use hopcast_host::Prefix;

/// The prefixes of a segment: one, or a list of one of each version of IP.
///
/// # Errors
/// Text that is no prefix, or a second prefix of its version.
pub fn read_prefixes(node: &Node, key: &str) -> Result<Vec<Prefix>, Diagnostic> {
    let mut prefixes: Vec<Prefix> = Vec::new();
    for item in one_or_list(node) {
        let prefix = read_prefix(item, key)?;
        let same = |other: &&Prefix| other.first().is_ipv4() == prefix.first().is_ipv4();
        if let Some(other) = prefixes.iter().find(same) {
            let version = if prefix.first().is_ipv4() { 4 } else { 6 };
            return Err(item.error(format!(
                "`{key}`: a segment has one prefix of each version of IP, and {other} and {prefix} are both of IPv{version}"
            )));
        }
        prefixes.push(prefix);
    }
    if prefixes.is_empty() {
        return Err(
            node.error(format!("`{key}`: expected a prefix such as `10.7.0.0/24`, found an empty list"))
        );
    }
    Ok(prefixes)
}

fn read_prefix(node: &Node, key: &str) -> Result<Prefix, Diagnostic> {
    let text = text(node, key)?;
    let expected = || {
        node.error(format!(
            "`{key}`: expected a prefix with its length, such as `10.7.0.0/24` or `fd07::/64`, found `{text}`"
        ))
    };
    let (first, length) = text.split_once('/').ok_or_else(expected)?;
    let first: IpAddr = first.trim().parse().map_err(|_| expected())?;
    let length: u8 = length.trim().parse().map_err(|_| expected())?;
    let prefix = Prefix::around(first, length).ok_or_else(expected)?;
    if prefix.first() != first {
        return Err(node.error(format!(
            "`{key}`: {first} is an address in a prefix of {length} bits, and not its first: did you mean `{prefix}`?"
        )));
    }
    Ok(prefix)
}
