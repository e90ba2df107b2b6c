//! Tables of what the services of nodes know at the end of a run.

use std::fmt::Write as _;

use hopcast_twin::results::{Run, ServiceTable};

use super::cases::MAX_ROWS;
use super::sheet::{Column, Sheet};
use crate::number::plain;
use crate::study::distinct;

/// A table for each kind that a service has, with the rows of all its nodes.
pub(super) fn tables(run: &Run) -> String {
    let mut out = String::new();
    for kind in distinct(run.tables.iter().map(kind)) {
        let (service, table, columns) = kind;
        let of_nodes = || run.tables.iter().filter(|table| self::kind(table) == kind);
        let caption = format!("{service}: {table}, at the end of repeat {}", run.repeat);
        let columns = [Column::name("node")].into_iter().chain(columns.iter().map(|name| Column::name(name)));
        let rows = of_nodes().flat_map(|of_node| {
            of_node.rows.iter().enumerate().map(|(place, row)| {
                let cells = std::iter::once(&of_node.node).chain(row).cloned().map(Some);
                (place == 0, cells.collect())
            })
        });
        let count = of_nodes().map(|of_node| of_node.rows.len() + of_node.left_out).sum::<usize>();
        out.push_str(
            &Sheet { caption, columns: columns.collect(), rows: rows.take(MAX_ROWS).collect() }.html(),
        );
        if count > MAX_ROWS {
            let _ = writeln!(
                out,
                "<p class=\"note\">Of {} rows the first {MAX_ROWS} are shown; <code>summary.json</code> has more.</p>",
                plain(count as f64)
            );
        }
    }
    out
}

/// The service's name, and the table's name and columns.
fn kind(table: &ServiceTable) -> (&str, &str, &[String]) {
    (&table.service, &table.table, &table.columns)
}
