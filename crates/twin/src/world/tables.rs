//! The tables of services, as the document has them.

use std::collections::BTreeMap;

use hopcast_core::Instant;
use hopcast_stack::network::{Hop, MacAddress, NetworkPlan, interface_name};
use hopcast_stack::service::StatusTable;
use hopcast_wire::ethernet;

use crate::results::ServiceTable;
use crate::scenario::model::{NodeId, Scenario};

/// Maximum number of rows of all tables of a run. Chosen: some hundred kilobytes; the table of each node of a mesh of
/// 200 has 200, and with all of them a sweep's results would be too large to open.
const MAX_ROWS: usize = 4000;

/// The tables of nodes' services, in the order in which they are added, without empty ones. Beyond the maximum their
/// rows are left out.
pub(super) struct Tables<'s> {
    scenario: &'s Scenario,
    /// The names of interfaces, once they are needed.
    names: Option<BTreeMap<MacAddress, String>>,
    tables: Vec<ServiceTable>,
    room: usize,
}

impl<'s> Tables<'s> {
    pub(super) const fn new(scenario: &'s Scenario) -> Self {
        Self { scenario, names: None, tables: Vec::new(), room: MAX_ROWS }
    }

    pub(super) fn add(&mut self, node: NodeId, service: &str, table: &StatusTable) {
        if table.rows.is_empty() {
            return;
        }
        let names = self.names.get_or_insert_with(|| names_of(self.scenario));
        let name_of = |address| names.get(&address).cloned().unwrap_or_else(|| ethernet::text(address));
        let time = |at: Instant| format!("{:.3} s", at.as_secs_f64());
        let (rows, left_out) = table.text(self.room, name_of, time);
        self.room -= rows.len();
        self.tables.push(ServiceTable {
            node: self.scenario.nodes[node].name.clone(),
            service: service.to_owned(),
            table: table.name.to_owned(),
            columns: table.columns.iter().map(|&column| column.to_owned()).collect(),
            rows,
            left_out,
        });
    }

    pub(super) fn finish(self) -> Vec<ServiceTable> {
        self.tables
    }
}

/// Leaves out the rows beyond the maximum of tables that several processes have made.
pub(crate) fn limit_tables(tables: &mut [ServiceTable]) {
    let mut room = MAX_ROWS;
    for table in tables {
        table.left_out += table.rows.len().saturating_sub(room);
        table.rows.truncate(room);
        room -= table.rows.len();
    }
}

/// The names of interfaces by their addresses: `n1 eth0`.
fn names_of(scenario: &Scenario) -> BTreeMap<MacAddress, String> {
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
