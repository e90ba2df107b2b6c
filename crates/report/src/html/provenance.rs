//! The manifest, for repeating the run.

use std::fmt::Write as _;

use serde_json::Value;

use crate::number;
use crate::plot::canvas::escape;

/// Labels of the manifest's keys on the page, in their order there; the command comes first, and keys without a label
/// last.
const LABELS: [(&str, &str); 13] = [
    ("scenario_file", "Scenario"),
    ("scenario_sha256", "SHA-256 of the scenario"),
    ("shard", "Shard"),
    ("seed", "Seed"),
    ("cases", "Cases"),
    ("repeats", "Repeats of each"),
    ("shards", "Joined from shards"),
    ("hopcast", "hopcast version"),
    ("sources", "Hash of its sources"),
    ("finished", "Finished"),
    ("took_s", "Took"),
    ("cpu", "Processor"),
    ("kernel", "Kernel"),
];

/// Maximum length of the scenario on the page, in characters. Chosen: it bounds the page; scenarios are far shorter.
const MAX_SCENARIO: usize = 100_000;

/// The section on repeating the run; empty if the manifest is.
pub(super) fn provenance(manifest: &Value) -> String {
    let Some(entries) = manifest.as_object().filter(|entries| !entries.is_empty()) else {
        return String::new();
    };
    let mut out = String::from("<h2>How to repeat this</h2>\n");
    if let Some(command) = entries.get("command").and_then(Value::as_str) {
        let _ = writeln!(
            out,
            "<pre class=\"copy\" tabindex=\"0\" role=\"region\" aria-label=\"Command\"><code>{}</code></pre>",
            escape(command)
        );
    }
    if let Some(scenario) = entries.get("scenario").and_then(Value::as_str) {
        out.push_str(&self::scenario(scenario));
    }
    out.push_str("<dl>\n");
    let known = LABELS.iter().filter_map(|(key, label)| Some((*key, *label, entries.get(*key)?)));
    let named = |key: &str| LABELS.iter().any(|(known, _)| *known == key);
    let above = |key: &str, value: &Value| matches!(key, "command" | "scenario") && value.is_string();
    let others = entries.iter().filter(|(key, value)| !named(key) && !above(key, value));
    for (key, label, value) in known.chain(others.map(|(key, value)| (key.as_str(), key.as_str(), value))) {
        if value.is_null() {
            continue;
        }
        let mono = if matches!(key, "scenario_sha256" | "sources") { " class=\"hash\"" } else { "" };
        let _ = writeln!(
            out,
            "<div><dt>{}</dt><dd{mono}>{}</dd></div>",
            escape(label),
            escape(&shown(key, value))
        );
    }
    out + "</dl>\n"
}

/// The scenario file as it was run.
fn scenario(text: &str) -> String {
    // Line breaks are kept; other control characters are made visible.
    let lines = |text: &str| text.lines().map(escape).collect::<Vec<_>>().join("\n");
    let end = text.char_indices().nth(MAX_SCENARIO).map_or(text.len(), |(end, _)| end);
    let rest = if end < text.len() { "\n… <code>manifest.json</code> has the rest." } else { "" };
    format!(
        "<details><summary>The scenario file, as it was run</summary>\n\
         <pre class=\"copy\" tabindex=\"0\" role=\"region\" aria-label=\"Scenario\"><code>{}</code></pre>{rest}\n</details>\n",
        lines(&text[..end])
    )
}

fn shown(key: &str, value: &Value) -> String {
    match (key, value) {
        ("took_s", Value::Number(seconds)) => seconds.as_f64().map_or_else(|| seconds.to_string(), duration),
        // RFC 3339's form is hard to read for a person.
        ("finished", Value::String(time)) if time.ends_with('Z') => {
            format!("{} UTC", time.trim_end_matches('Z').replacen('T', " ", 1))
        }
        ("shard", shard) => format!("{} of {}", shard["number"], shard["of"]),
        (_, Value::String(text)) => text.clone(),
        (_, other) => other.to_string(),
    }
}

fn duration(seconds: f64) -> String {
    let whole = seconds.round();
    let (hours, minutes) = ((whole / 3600.0).floor(), (whole % 3600.0 / 60.0).floor());
    if whole >= 3600.0 {
        format!("{hours} h {minutes} min")
    } else if whole >= 60.0 {
        format!("{minutes} min {} s", whole % 60.0)
    } else {
        format!("{} s", number::number(seconds))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_duration_is_in_the_units_that_fit_it() {
        assert_eq!(
            [33.872, 59.7, 245.0, 7384.0].map(duration),
            ["33.9 s", "1 min 0 s", "4 min 5 s", "2 h 3 min"]
        );
    }

    #[test]
    fn known_keys_have_labels_and_unknown_ones_their_names() {
        let page = provenance(&json!({
            "command": "hopcast run <x>", "took_s": 33.872, "finished": "2026-11-21T08:17:27Z",
            "cpu": null, "nested": { "a": 1 },
        }));
        assert!(page.contains("<code>hopcast run &lt;x&gt;</code>"));
        assert!(page.contains("<dt>Took</dt><dd>33.9 s</dd>"));
        assert!(page.contains("<dt>Finished</dt><dd>2026-11-21 08:17:27 UTC</dd>"));
        assert!(page.contains("<dt>nested</dt><dd>{&quot;a&quot;:1}</dd>"));
        assert!(!page.contains("Processor") && !page.contains("<dt>command"));
        assert_eq!(provenance(&json!({})), "");
    }

    #[test]
    fn the_scenario_keeps_its_lines_and_is_only_text() {
        let page =
            provenance(&json!({ "scenario": "title: <x>\nseed: 1\n", "shard": { "number": 2, "of": 3 } }));
        assert!(page.contains("<code>title: &lt;x&gt;\nseed: 1</code>"), "{page}");
        assert!(page.contains("<dt>Shard</dt><dd>2 of 3</dd>"), "{page}");
    }
}
