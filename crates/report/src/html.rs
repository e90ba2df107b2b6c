//! `report.html`: one file that opens without a network.

use std::fmt::Write as _;
use std::path::Path;

use hopcast_twin::results::Document;
use serde_json::Value;

use crate::Topology;
use crate::align::{HIDDEN, Padding, SHOWN, align, mark};
use crate::bibliography::{bibtex, reference};
use crate::citation::citations;
use crate::finding::findings;
use crate::grid::{Cell, Column, Grid, Row, whose};
use crate::number;
use crate::plot::canvas::escape;
use crate::plot::{Pictures, Plot, Section, Size, map, pictures, theme};
use crate::study::{Study, distinct};

mod cases;
mod counters;
mod frames;
mod kinds;
mod provenance;
mod services;
mod sheet;

/// The whole page.
///
/// Text from users' files is escaped; the page loads nothing, and has no date or host name except those of `manifest`.
pub fn render(document: &Document, topology: &Topology, manifest: &Value) -> String {
    page(document, &pictures(document, topology), manifest, None)
}

/// The page with plots that are already drawn, and the frames of videos that the run directory has.
pub(crate) fn page(document: &Document, pictures: &Pictures, manifest: &Value, dir: Option<&Path>) -> String {
    let study = Study::new(document);
    let title = if document.scenario.is_empty() { "hopcast run" } else { &document.scenario };
    fill(include_str!("html/report.html"), |name| {
        match name {
        "title" => escape(title),
        "style" => style(),
        "script" => include_str!("html/report.js").to_owned(),
        "extent" => escape(&extent(&study)),
        "interrupted" if document.interrupted => {
            "<p class=\"warning\">The run was interrupted: what is here is whole, but not all that was asked for.</p>"
                .into()
        }
        "findings" => findings(&study).iter().fold(String::new(), |mut out, finding| {
            let _ = writeln!(out, "<p>{}</p>", escape(&finding.replace(" %", "\u{a0}%")));
            out
        }),
        "citation" => citation(&study, manifest),
        "cases" => cases::cases(&study),
        "throughput" => {
            section(pictures, Section::Throughput, "goodput", &throughput_heading(document, pictures))
        }
        "table" => table(&study),
        "frames" => frames::frames(&study, dir),
        "latency" => section(pictures, Section::Latency, "latency", "Latency"),
        "series" => section(pictures, Section::Series, "series", "Over time"),
        "network" => section(pictures, Section::Network, "network", "The network"),
        "ships" => section(pictures, Section::Map, "ships", "The ships"),
        "packets" => section(pictures, Section::Packets, "packets", "Where packets died"),
        "manifest" => provenance::provenance(manifest),
        _ => String::new(),
    }
    })
}

/// The heading of the pictures of goodput and other figures, in their order.
fn throughput_heading(document: &Document, pictures: &Pictures) -> String {
    let figures = pictures.plots.iter().flat_map(|plot| &plot.keys).find(|(name, _)| *name == "figure");
    let whose = whose(document).0;
    match figures.map(|(_, title)| title.as_str()) {
        None => "Goodput".into(),
        Some("goodput") => format!("Goodput, and other figures beside {whose} ones"),
        Some(_) if document.summary.iter().all(|row| row.published.is_empty()) => {
            "Savings, and goodput".into()
        }
        Some(_) => format!("Figures beside {whose} ones, and goodput"),
    }
}

/// The sentences to cite, the publication that the scenario repeats, and both as BibTeX.
fn citation(study: &Study<'_>, manifest: &Value) -> String {
    let citations = citations(study, manifest);
    let mut out = String::new();
    for citation in &citations {
        let _ = writeln!(
            out,
            "<figure class=\"cite on\"><blockquote class=\"copy\" aria-label=\"Citation\">{}</blockquote></figure>",
            escape(&citation.replace(" %", "\u{a0}%"))
        );
    }
    let source = study.document.source.as_ref();
    if let Some(source) = source {
        let _ = writeln!(out, "<p class=\"source\">After {}</p>", escape(&reference(source)));
    }
    if source.is_some() || !citations.is_empty() {
        let _ = writeln!(
            out,
            "<details class=\"bibtex\"><summary>BibTeX</summary>\n\
             <pre class=\"copy\" tabindex=\"0\" role=\"region\" aria-label=\"BibTeX\"><code>{}</code></pre>\n</details>",
            bibtex(study.document, manifest).lines().map(escape).collect::<Vec<_>>().join("\n")
        );
    }
    out
}

/// The style of a page.
pub(crate) fn style() -> String {
    include_str!("html/report.css").to_owned() + &theme::style()
}

/// Replaces each `{{name}}` by text in a single pass, so that inserted text is never taken for a placeholder.
pub(crate) fn fill(template: &str, text: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out.push_str(before);
        out.push_str(&text(name));
        rest = after;
    }
    out + rest
}

fn extent(study: &Study<'_>) -> String {
    let runs = study.document.runs.len();
    let cases = distinct(
        study
            .document
            .runs
            .iter()
            .map(|run| run.parameters.values().map(Value::to_string).collect::<Vec<_>>()),
    )
    .len();
    let seeds = distinct(study.document.runs.iter().map(|run| run.seed));
    let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let mut parts = vec![plural(runs, "run")];
    if cases > 1 {
        parts.push(plural(cases, "case"));
    }
    if runs > cases && cases > 0 && runs.is_multiple_of(cases) {
        parts.push(format!("{} of each", plural(runs / cases, "repeat")));
    }
    if let [seed] = seeds[..] {
        parts.push(format!("seed {seed}"));
    }
    parts.join(" · ")
}

/// Maximum size of the pictures of a section, in bytes; further ones are in `plots/` only.
const MAX_SECTION_BYTES: usize = 4 << 20;

fn section(pictures: &Pictures, which: Section, id: &str, heading: &str) -> String {
    let all: Vec<&Plot> = pictures.plots.iter().filter(|plot| plot.section == which).collect();
    if all.is_empty() {
        return String::new();
    }
    let mut bytes = 0;
    let fits = |plot: &&&Plot| {
        bytes += plot.inline(Size::Wide).len() + plot.inline(Size::Narrow).len();
        bytes <= MAX_SECTION_BYTES
    };
    let shown: Vec<&Plot> = match which {
        // The last moments are to be among those of a long run.
        Section::Map => map::fitting(&all, MAX_SECTION_BYTES),
        _ => all.iter().take(1).chain(all.iter().skip(1).take_while(fits)).copied().collect(),
    };
    let chosen = middle_case(pictures);
    let mut out = format!(
        "<section id=\"{id}\">\n<div class=\"head\"><h2>{heading}</h2>{}</div>\n",
        selectors(&shown, chosen.as_deref())
    );
    for plot in &shown {
        let keys = plot.keys.iter().fold(String::new(), |mut keys, (name, value)| {
            let _ = write!(keys, " data-{name}=\"{}\"", escape(value));
            keys
        });
        let _ = writeln!(
            out,
            "<figure{keys}>\n<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n<figcaption>{}</figcaption>\n</figure>",
            plot.inline(Size::Wide),
            plot.inline(Size::Narrow),
            escape(&plot.caption)
        );
    }
    out.push_str("<p class=\"none\">There is no picture for this choice.</p>\n");
    let left_out = pictures.left_out.get(&which).copied().unwrap_or(0);
    out.push_str(&bounds(shown.len(), all.len() - shown.len(), left_out, which));
    out + "</section>\n"
}

/// The remark on plots that a section leaves out, and on the files that have them.
fn bounds(shown: usize, in_files: usize, left_out: usize, which: Section) -> String {
    let file = match which {
        Section::Throughput => "flows.csv",
        Section::Latency => "latency.csv",
        Section::Series => "timeseries.csv",
        Section::Network => "links.csv",
        Section::Map => "summary.json",
        Section::Packets => "captures",
    };
    let of = |count: usize| number::plain(count as f64);
    let mut notes = Vec::new();
    if in_files > 0 {
        notes.push(format!("{} more pictures of this kind are in <code>plots/</code>.", of(in_files)));
    }
    if left_out > 0 {
        let chosen = match which {
            Section::Map => "a selection of the moments, of the first cases",
            _ => "those of the first flows and cases",
        };
        notes.push(format!(
            "Of {} pictures of this kind, {} are drawn: {chosen}. \
             The numbers of the other {} are in <code>{file}</code>.",
            of(shown + in_files + left_out),
            of(shown + in_files),
            of(left_out)
        ));
    }
    if notes.is_empty() { String::new() } else { format!("<p class=\"note\">{}</p>\n", notes.join(" ")) }
}

/// The middle one of the cases that all sections have, which is shown first: the first case of a sweep is mostly
/// without impairment, and has the smallest differences.
fn middle_case(pictures: &Pictures) -> Option<String> {
    let of_section = |section| {
        let own = pictures.plots.iter().filter(move |plot: &&Plot| plot.section == section);
        let cases = distinct(own.flat_map(|plot| &plot.keys).filter(|(name, _)| *name == "case"));
        (!cases.is_empty()).then_some(cases)
    };
    let sections = [Section::Latency, Section::Series, Section::Network, Section::Map];
    let fewest = sections.into_iter().filter_map(of_section).min_by_key(Vec::len)?;
    fewest.get(fewest.len() / 2).map(|(_, value)| value.clone())
}

/// A selector for each key that has several values.
fn selectors(plots: &[&Plot], case: Option<&str>) -> String {
    let names = distinct(plots.iter().flat_map(|plot| plot.keys.iter().map(|(name, _)| *name)));
    let mut out = String::new();
    for name in names {
        let values = plots.iter().flat_map(|plot| plot.keys.iter().filter(|(key, _)| *key == name));
        let values = distinct(values.map(|(_, value)| value.as_str()));
        let chosen = values.iter().position(|value| name == "case" && Some(*value) == case).unwrap_or(0);
        let _ = write!(out, "<label>{name} <select data-key=\"{name}\" autocomplete=\"off\">");
        for (place, value) in values.iter().enumerate() {
            let selected = if place == chosen { " selected" } else { "" };
            let value = escape(value);
            let _ = write!(out, "<option value=\"{value}\"{selected}>{value}</option>");
        }
        out.push_str("</select></label>");
    }
    if out.is_empty() { out } else { format!("<div class=\"choose\">{out}</div>") }
}

/// Maximum number of rows of a table on the page. Chosen: browsers are slow to lay out more.
const MAX_TABLE_ROWS: usize = 1000;

fn table(study: &Study<'_>) -> String {
    let grid = Grid::new(study);
    if grid.rows.is_empty() {
        return "<p>There are no results.</p>".into();
    }
    let rows = &grid.rows[..grid.rows.len().min(MAX_TABLE_ROWS)];
    let mut out = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Summary\"><table class=\"sortable\">\n<thead><tr>",
    );
    for column in &grid.columns {
        let Column { title, numeric, .. } = column;
        let class = if *numeric { " class=\"number\"" } else { "" };
        let unit = column.unit();
        let _ =
            write!(out, "<th scope=\"col\"{class}>{}<br><span>{}</span></th>", escape(title), escape(&unit));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let aligned: Vec<Vec<String>> = grid
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let cells: Vec<&Cell> = rows.iter().map(|row| &row.cells[place]).collect();
            if column.numeric { align(&cells, true, false, Padding::Page) } else { Vec::new() }
        })
        .collect();
    for (index, row) in rows.iter().enumerate() {
        let new_group = index > 0 && rows[index - 1].group != row.group;
        out.push_str(if new_group { "<tr class=\"group\">" } else { "<tr>" });
        table_row(&mut out, &grid, row, |column| aligned[column].get(index).map(String::as_str));
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n<p class=\"note\">");
    let mut notes = Vec::new();
    if grid.marks() {
        notes.push(format!(
            "<span class=\"best\">Bold and blue</span>: the best{}, and its equals.",
            escape(&grid.scope)
        ));
    }
    if grid.intervals() {
        notes.push(
            "±: 95 % confidence interval of the mean over repeats (Student t).\
             <span class=\"intervals\"> A wider window shows the intervals.</span>"
                .into(),
        );
    }
    if grid.partial() {
        notes.push("†: the mean of the repeats that have this figure; not all do.".into());
    }
    if grid.agreed() {
        notes.push("Without ±: all repeats gave the same.".into());
    }
    if rows.len() < grid.rows.len() {
        notes.push(format!(
            "Here are the first {} of {} rows; <code>summary.json</code> has all.",
            number::plain(rows.len() as f64),
            number::plain(grid.rows.len() as f64)
        ));
    }
    out + &notes.join(" ") + "</p>\n"
}

fn table_row<'t>(out: &mut String, grid: &Grid, row: &Row, aligned: impl Fn(usize) -> Option<&'t str>) {
    for (place, (column, cell)) in grid.columns.iter().zip(&row.cells).enumerate() {
        let class = match (column.numeric, cell.best) {
            (true, true) => " class=\"number best\"",
            (true, false) => " class=\"number\"",
            _ => "",
        };
        let text = aligned(place).or(cell.text.as_deref()).unwrap_or("–");
        let text = match text.split_once(" ±") {
            Some((mean, interval)) if cell.ci95.is_some() => {
                format!("{}<span class=\"ci\"> ±{}</span>", escape(mean), escape(interval))
            }
            _ => match mark(cell, false) {
                mark if mark.is_empty() => escape(text),
                mark => escape(text).replacen(&mark, &format!("<b>{mark}</b>"), 1),
            },
        };
        let padded = cell.is_figure() || cell.text.is_none();
        let text = if padded { text.replace(HIDDEN, "<i>").replace(SHOWN, "</i>") } else { text };
        let _ = write!(out, "<td{class}>{text}</td>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_with_braces_is_no_place_in_the_template() {
        let text = |name: &str| if name == "a" { "{{b}}".to_owned() } else { "never".into() };
        assert_eq!(fill("<p>{{a}}</p>", text), "<p>{{b}}</p>");
    }
}
