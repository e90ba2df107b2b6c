//! Mermaid: a drawing in text form, which Markdown viewers render.

use std::fmt::Write;

use super::values;
use crate::scenario::model::{LinkModel, Scenario};

/// The values of a link that a drawing shows.
const SHOWN: [&str; 3] = ["rate", "delay", "loss"];

/// A scenario's network as a Mermaid flowchart.
pub fn write(scenario: &Scenario) -> String {
    let mut out = String::from("flowchart LR\n");
    // Writing to a string cannot fail. Nodes have numbers as identifiers, since names may contain Mermaid's syntax.
    for (number, node) in scenario.nodes.iter().enumerate() {
        let _ = writeln!(out, "  n{number}[\"{}\"]", node.name);
    }
    for (number, link) in scenario.links.iter().enumerate() {
        match &link.model {
            LinkModel::PointToPoint(config) => {
                let label = label(values::link(config));
                let _ = match label.is_empty() {
                    true => writeln!(out, "  n{} --- n{}", link.ends[0], link.ends[1]),
                    false => writeln!(out, "  n{} ---|\"{label}\"| n{}", link.ends[0], link.ends[1]),
                };
            }
            LinkModel::Medium(config) => {
                let keys = values::direction(&config.direction, &hopcast_link::Direction::default());
                let kind = if link.has_radios() { "radio" } else { "" };
                let parts = [link.name.clone(), kind.to_owned(), label(keys)];
                let label =
                    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("<br/>");
                let _ = writeln!(out, "  m{number}((\"{label}\"))");
                for end in &link.ends {
                    let _ = writeln!(out, "  n{end} -.- m{number}");
                }
            }
            LinkModel::Switch(config) => {
                let base = hopcast_link::Direction::default();
                let _ = writeln!(out, "  m{number}[/\"{}\"/]", link.name);
                for (end, direction) in link.ends.iter().zip(&config.directions) {
                    let label = label(values::direction(direction, &base));
                    let _ = match label.is_empty() {
                        true => writeln!(out, "  n{end} --- m{number}"),
                        false => writeln!(out, "  n{end} ---|\"{label}\"| m{number}"),
                    };
                }
            }
        }
    }
    out
}

fn label(keys: Vec<(&'static str, String)>) -> String {
    let shown = keys.into_iter().filter(|(key, _)| SHOWN.contains(key));
    let parts: Vec<String> = shown
        .map(|(key, value)| match key {
            "loss" if value.starts_with('{') => "bursty loss".to_owned(),
            "rate" => value,
            _ => format!("{key} {value}"),
        })
        .collect();
    parts.join("<br/>")
}
