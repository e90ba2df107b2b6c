//! The tables of services, as the document has them.

use std::collections::BTreeMap;

use hopcast_stack::network::{Hop, MacAddress, NetworkPlan, interface_name};
use hopcast_stack::service::{StatusCell, StatusTable};

use super::World;
use crate::results::ServiceTable;

/// Maximum number of rows of all tables of a run. Chosen: some hundred kilobytes; the table of each node of a mesh of
/// 200 has 200, and with all of them a sweep's results would be too large to open.
const MAX_ROWS: usize = 4000;

/// The tables of all nodes' services as they are now, without empty ones, in the order of the nodes. Beyond the maximum
/// their rows are left out.
pub(super) fn of(world: &World) -> Vec<ServiceTable> {
    let (mut tables, mut room, mut names) = (Vec::new(), MAX_ROWS, None);
    for (node, spec) in world.scenario.nodes.iter().enumerate() {
        for (_, service, StatusTable { name, columns, rows }) in world.service_tables(node) {
            if rows.is_empty() {
                continue;
            }
            let names = names.get_or_insert_with(|| names_of(world));
            let left_out = rows.len().saturating_sub(room);
            let shown = rows.iter().take(room).map(|row| row.iter().map(|cell| shown(cell, names)).collect());
            let rows: Vec<Vec<String>> = shown.collect();
            room -= rows.len();
            tables.push(ServiceTable {
                node: spec.name.clone(),
                service: service.to_owned(),
                table: name.to_owned(),
                columns: columns.iter().map(|&column| column.to_owned()).collect(),
                rows,
                left_out,
            });
        }
    }
    tables
}

/// The names of interfaces by their addresses: `n1 eth0`.
fn names_of(world: &World) -> BTreeMap<MacAddress, String> {
    let scenario = &world.scenario;
    let plan = NetworkPlan::of(scenario.network());
    let of_node = |node: usize| {
        let named = move |(number, hop): (u32, &Hop)| {
            let name = format!("{} {}", scenario.nodes[node].name, interface_name(number));
            (NetworkPlan::mac(hop.link, hop.attachment), name)
        };
        (0..).zip(plan.interfaces(node)).map(named).collect::<Vec<_>>()
    };
    (0..scenario.nodes.len()).flat_map(of_node).collect()
}

fn shown(cell: &StatusCell, names: &BTreeMap<MacAddress, String>) -> String {
    match cell {
        StatusCell::Address(address) => names.get(address).cloned().unwrap_or_else(|| {
            let bytes = address.map(|byte| format!("{byte:02x}"));
            bytes.join(":")
        }),
        StatusCell::Time(at) => format!("{:.3} s", at.as_secs_f64()),
        StatusCell::Text(text) => text.clone(),
    }
}
