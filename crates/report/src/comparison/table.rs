//! The comparison for a terminal.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use super::{Comparison, FlowCase, Leading};
use crate::figure::Better;
use crate::number;
use crate::table::{TableOptions, clip};

/// Maximum number of cases of only one run that are named. Chosen: more make the line too long to read.
const MAX_NAMED: usize = 5;

/// A row for each figure of each flow that differs, and for each goodput; below them the result.
pub fn table(comparison: &Comparison, options: TableOptions) -> String {
    let leading = comparison.leading();
    let titles = leading.titles();
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_header(titles.iter().copied().chain(["figure", "A", "B", "B - A", ""]));
    let mut rows = 0;
    for (compared, measure) in comparison.shown() {
        let differs = compared.difference.significant == Some(true);
        if !differs && compared.figure != "goodput_mbps" {
            continue;
        }
        let shown = |value: f64| number::number(value * measure.scale);
        let of = |value: f64| if measure.unit == "%" { number::percent(value * 100.0) } else { shown(value) };
        let unit = if measure.unit.is_empty() { String::new() } else { format!(" [{}]", measure.unit) };
        let verdict = match (compared.difference.significant, measure.better) {
            (None, _) => "?",
            (Some(false), _) => "=",
            (Some(true), Better::Neither) => "differs",
            (Some(true), better) if (compared.difference.difference > 0.0) == (better == Better::High) => {
                "better"
            }
            (Some(true), _) => "worse",
        };
        let cells = leading.cells(&compared.case).into_iter().map(|name| clip(&name, 24)).chain([
            format!("{}{unit}", measure.title),
            of(compared.a.mean),
            of(compared.b.mean),
            super::page::with_interval(compared, measure),
            verdict.to_owned(),
        ]);
        table.add_row(cells);
        rows += 1;
    }
    for column in titles.len() + 1..titles.len() + 4 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut out = String::new();
    if rows > 0 {
        for line in table.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out.push_str(&format!(" A: {}; B: {}; ± 95 % confidence interval (Welch)\n", comparison.a, comparison.b));
    out.push_str(&format!(" {}\n", comparison.verdict()));
    for (name, only) in [(&comparison.a, &comparison.only_a), (&comparison.b, &comparison.only_b)] {
        if !only.is_empty() {
            out.push_str(&format!(" only in {name}: {}\n", named(only, &leading)));
        }
    }
    let limit = options.width.map_or(usize::MAX, usize::from);
    out.lines().flat_map(|line| [clip(line, limit), "\n".to_owned()]).collect()
}

fn named(cases: &[FlowCase], leading: &Leading) -> String {
    let names: Vec<String> = cases.iter().take(MAX_NAMED).map(|case| leading.cells(case).join(" ")).collect();
    let more = cases.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}
