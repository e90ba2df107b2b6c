//! Services and groups.

use std::fmt::{self, Write};

use hopcast_core::Instant;

use super::super::model::{Group, NodeId, Scenario, ServiceSpec};
use super::{MAX_LISTED, counted, names_of};

/// Services, a line each: the kind of service, its nodes, and its interfaces.
pub(super) fn write_services(out: &mut String, scenario: &Scenario) -> fmt::Result {
    if scenario.services.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nServices: {}", scenario.services.len())?;
    for ServiceSpec { name, layer, on, interfaces, .. } in scenario.services.iter().take(MAX_LISTED) {
        let of =
            if interfaces.is_empty() { String::new() } else { format!("on {} of ", interfaces.join(", ")) };
        writeln!(out, "  {name}: {layer} {of}{}", names_of(scenario, on))?;
    }
    match scenario.services.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

/// Groups, a line each: their address, their delivery, and the members at the start.
pub(super) fn write_groups(out: &mut String, scenario: &Scenario) -> fmt::Result {
    let groups: Vec<&Group> = scenario.groups.iter().filter(|group| !group.name.is_empty()).collect();
    if groups.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nGroups: {}", groups.len())?;
    for group in groups.iter().take(MAX_LISTED) {
        let Group { name, delivery, members, linger, .. } = group;
        let (first, later): (Vec<_>, Vec<_>) =
            members.iter().partition(|member| member.is_member(Instant::ZERO));
        let first: Vec<NodeId> = first.iter().map(|member| member.node).collect();
        let [v4, v6] = [false, true].map(|ipv6| group.address(ipv6));
        writeln!(out, "  {name}: {delivery}, {v4} or {v6}")?;
        let later = match later.len() {
            0 => String::new(),
            later => format!(
                "; {} by events, who receive for {linger} after a leave",
                counted(later, "later member")
            ),
        };
        writeln!(out, "    {}: {}{later}", counted(first.len(), "member"), names_of(scenario, &first))?;
    }
    match groups.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}
