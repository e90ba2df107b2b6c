//! What the manifest says, for who wants to run it again.

use std::fmt::Write as _;

use serde_json::Value;

use crate::number;
use crate::plot::canvas::escape;

/// What the manifest's keys are called on the page, in the order in which they stand there; the command comes before
/// them all, and what has no name here after them.
const LABELS: [(&str, &str); 10] = [
    ("scenario_file", "Scenario"),
    ("scenario_sha256", "SHA-256 of the scenario"),
    ("seed", "Seed"),
    ("cases", "Cases"),
    ("repeats", "Repeats of each"),
    ("hopcast", "hopcast version"),
    ("finished", "Finished"),
    ("took_s", "Took"),
    ("cpu", "Processor"),
    ("kernel", "Kernel"),
];

/// The part of the page on how to repeat the run; empty if the manifest is.
pub(super) fn provenance(manifest: &Value) -> String {
    let Some(entries) = manifest.as_object().filter(|entries| !entries.is_empty()) else {
        return String::new();
    };
    let mut out = String::from("<h2>How to repeat this</h2>\n");
    if let Some(command) = entries.get("command").and_then(Value::as_str) {
        let _ = writeln!(
            out,
            "<pre tabindex=\"0\" role=\"region\" aria-label=\"Command\"><code>{}</code></pre>",
            escape(command)
        );
    }
    out.push_str("<dl>\n");
    let known = LABELS.iter().filter_map(|(key, label)| Some((*key, *label, entries.get(*key)?)));
    let named = |key: &str| LABELS.iter().any(|(known, _)| *known == key);
    let text_command = |key: &str, value: &Value| key == "command" && value.is_string();
    let others = entries.iter().filter(|(key, value)| !named(key) && !text_command(key, value));
    for (key, label, value) in known.chain(others.map(|(key, value)| (key.as_str(), key.as_str(), value))) {
        if value.is_null() {
            continue;
        }
        let mono = if key == "scenario_sha256" { " class=\"hash\"" } else { "" };
        let _ = writeln!(
            out,
            "<div><dt>{}</dt><dd{mono}>{}</dd></div>",
            escape(label),
            escape(&shown(key, value))
        );
    }
    out + "</dl>\n"
}

fn shown(key: &str, value: &Value) -> String {
    match (key, value) {
        ("took_s", Value::Number(seconds)) => seconds.as_f64().map_or_else(|| seconds.to_string(), duration),
        // RFC 3339, which is for machines.
        ("finished", Value::String(time)) if time.ends_with('Z') => {
            format!("{} UTC", time.trim_end_matches('Z').replacen('T', " ", 1))
        }
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
}
