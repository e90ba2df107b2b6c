//! The comparison as a page of its own.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Compared, Comparison, FlowCase, Leading};
use crate::figure::{Better, Measure, interval};
use crate::html::{fill, style};
use crate::number;
use crate::plot::canvas::escape;

/// Maximum number of rows on the page. Chosen: browsers are slow to lay out more.
const MAX_ROWS: usize = 5000;

/// `comparison.html`: one file that opens without a network. `manifests` are those of the two runs.
pub fn page(comparison: &Comparison, manifests: [&Value; 2]) -> String {
    let names = [("A", &comparison.a), ("B", &comparison.b)];
    fill(include_str!("comparison.html"), |name| match name {
        "style" => style(),
        "script" => include_str!("../html/report.js").to_owned(),
        "title" => escape(&format!("{} and {}", comparison.a, comparison.b)),
        "verdict" => escape(&comparison.verdict()).replace(" %", "\u{a0}%"),
        "runs" => names.iter().zip(manifests).fold(String::new(), |mut out, ((letter, name), manifest)| {
            let text = |key: &str| manifest.get(key).and_then(Value::as_str).unwrap_or_default();
            let _ = writeln!(
                out,
                "<div><dt>{letter}: {}</dt><dd><code>{}</code><br>hopcast {} {}</dd></div>",
                escape(name),
                escape(text("command")),
                escape(text("hopcast")),
                escape(text("sources"))
            );
            out
        }),
        "table" => table(comparison),
        "only" => names
            .iter()
            .zip([&comparison.only_a, &comparison.only_b])
            .fold(String::new(), |out, ((letter, _), cases)| {
                out + &only(letter, cases, &comparison.leading())
            }),
        _ => String::new(),
    })
}

fn table(comparison: &Comparison) -> String {
    let leading = comparison.leading();
    let mut out = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Comparison\"><table class=\"sortable\">\n<thead><tr>",
    );
    for name in leading.titles().into_iter().chain(["figure"]) {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(name));
    }
    for name in ["A", "B", "B − A", "B ÷ A"] {
        let _ = write!(out, "<th scope=\"col\" class=\"number\">{name}</th>");
    }
    out.push_str("<th scope=\"col\">verdict</th></tr></thead>\n<tbody>\n");
    let all = comparison.shown().count();
    for (compared, measure) in comparison.shown().take(MAX_ROWS) {
        out.push_str("<tr>");
        for cell in leading.cells(&compared.case) {
            let _ = write!(out, "<td>{}</td>", escape(&cell));
        }
        let unit = if measure.unit.is_empty() { String::new() } else { format!(" [{}]", measure.unit) };
        let _ = write!(out, "<td>{}{unit}</td>", measure.title);
        for mean in [compared.a, compared.b] {
            let text = number::number(mean.mean * measure.scale);
            let ci95 =
                interval(mean).map(|ci95| format!(" ± {}", number::interval(&text, ci95 * measure.scale)));
            let ci95 = ci95.map_or_else(String::new, |ci95| format!("<span class=\"ci\">{ci95}</span>"));
            let _ = write!(out, "<td class=\"number\">{text}{ci95}</td>");
        }
        let ratio = compared.b.mean / compared.a.mean;
        let ratio = if ratio.is_finite() { number::number(ratio) } else { "–".into() };
        let (class, verdict) = verdict(compared, measure);
        let _ = writeln!(
            out,
            "<td class=\"number\">{}</td><td class=\"number\">{ratio}</td><td class=\"{class}\">{verdict}</td></tr>",
            with_interval(compared, measure)
        );
    }
    out.push_str("</tbody></table></div>\n");
    if all > MAX_ROWS {
        let _ = writeln!(
            out,
            "<p class=\"note\">Here are the first {MAX_ROWS} of {all} figures; <code>--format json</code> prints all.</p>"
        );
    }
    out
}

/// The difference with its interval.
pub(super) fn with_interval(compared: &Compared, measure: &Measure) -> String {
    let difference = compared.difference.difference * measure.scale;
    let text = number::number(difference);
    let sign = if difference > 0.0 { "+" } else { "" };
    let ci95 = compared
        .difference
        .ci95
        .filter(|ci95| *ci95 > 0.0)
        .map(|ci95| format!(" ± {}", number::interval(&text, ci95 * measure.scale)));
    format!("{sign}{text}{}", ci95.unwrap_or_default())
}

fn verdict(compared: &Compared, measure: &Measure) -> (&'static str, &'static str) {
    match (compared.difference.significant, measure.better) {
        (None, _) => ("unknown", "too few repeats"),
        (Some(false), _) => ("alike", "not told apart"),
        (Some(true), Better::Neither) => ("differs", "differs"),
        (Some(true), better) if (compared.difference.difference > 0.0) == (better == Better::High) => {
            ("better", "B is better")
        }
        (Some(true), _) => ("worse", "B is worse"),
    }
}

fn only(letter: &str, cases: &[FlowCase], leading: &Leading) -> String {
    if cases.is_empty() {
        return String::new();
    }
    let mut out =
        format!("<details><summary>Only in {letter}: {} flows of cases</summary><ul>\n", cases.len());
    for case in cases.iter().take(MAX_ROWS) {
        let _ = writeln!(out, "<li>{}</li>", escape(&leading.cells(case).join(" · ")));
    }
    out + "</ul></details>\n"
}
