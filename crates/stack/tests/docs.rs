//! The documents list the rows of the tables, with their lines and options.
//!
//! After a change of the table: `HOPCAST_RECORD=1 cargo test -p hopcast-stack --test docs` writes the lists anew.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use hopcast_stack::TRANSPORTS;
use hopcast_stack::deliveries::DELIVERIES;
use hopcast_stack::service::ServiceRow;
use hopcast_stack::services::SERVICES;
use hopcast_stack::table::{Form, OptionDoc};
use hopcast_stack::transport::Row;
use serde_json::{Map, Value, json};

fn repository(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

/// Holds the part of a document between `<!-- NAME -->` and `<!-- /NAME -->` to a text, or writes it.
fn hold(file: &str, name: &str, text: &str) {
    let document = fs::read_to_string(repository(file)).expect("the document");
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("{file} has no {begin}"));
    let (held, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{file} has no {end}"));
    if std::env::var_os("HOPCAST_RECORD").is_some() {
        fs::write(repository(file), format!("{before}{begin}{text}{end}{after}")).expect("the document");
    } else {
        assert_same(&format!("{file}, {name}"), held, text);
    }
}

/// Fails with the first line that differs, and with what writes the document anew.
fn assert_same(what: &str, held: &str, made: &str) {
    let lines = || held.lines().map(Some).chain([None]).zip(made.lines().map(Some).chain([None]));
    if held != made {
        let (held, made) = lines().find(|(held, made)| held != made).unwrap_or_default();
        let (held, made) = (held.unwrap_or("nothing more"), made.unwrap_or("nothing more"));
        panic!(
            "{what}: there is\n  {held}\nwhere the table has\n  {made}\nwrite it with: HOPCAST_RECORD=1 cargo test -p hopcast-stack --test docs"
        );
    }
}

/// One after the other, since both write the same document.
#[test]
fn the_reference_lists_the_transports_and_their_options_as_the_table_has_them() {
    hold("docs/scenario.md", "transports", &transports());
    hold("docs/scenario.md", "options of transports", &options());
    hold("docs/scenario.md", "deliveries", &deliveries());
    hold("docs/scenario.md", "services", &services());
}

fn services() -> String {
    let mut text = "| `run` | worlds | about |\n|---|---|---|\n".to_owned();
    for row in SERVICES {
        let _ = writeln!(text, "| `{}` | {} | {} |", row.name, row.worlds, row.about);
    }
    for row in SERVICES {
        let _ = writeln!(text, "\n| option of `{}` | what | default |\n|---|---|---|", row.name);
        for OptionDoc { key, about, default, .. } in (row.options)() {
            let default = if default.is_empty() { "none".to_owned() } else { format!("`{default}`") };
            let _ = writeln!(text, "| `{key}` | {about} | {default} |");
        }
    }
    text
}

fn deliveries() -> String {
    let mut text = "| name | worlds | about | options |\n|---|---|---|---|\n".to_owned();
    for row in DELIVERIES {
        let option = |option: &OptionDoc| {
            let about = option.about.trim_end_matches('.');
            let default = match option.default.as_str() {
                "" => "none".to_owned(),
                default => format!("`{default}`"),
            };
            format!("`{}`: {about}; {default}", option.key)
        };
        let options: Vec<String> = (row.options)().iter().map(option).collect();
        let _ =
            writeln!(text, "| `{}` | {} | {} | {} |", row.name, row.worlds, row.about, options.join(". "));
    }
    text
}

fn transports() -> String {
    let mut text =
        "| name | offers | needs below | receivers | routes | feedback | worlds | about |\n|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for Row { name, offers, needs, receivers, paths, feedback, worlds, about, .. } in TRANSPORTS {
        let _ = writeln!(
            text,
            "| `{name}` | {offers} | {needs} | {receivers} | {paths} | {feedback} | {worlds} | {about} |"
        );
    }
    text
}

/// Transports with the same options and defaults share their rows.
fn options() -> String {
    let mut groups: Vec<(Vec<&str>, Vec<[String; 3]>)> = Vec::new();
    for row in TRANSPORTS {
        let options: Vec<[String; 3]> = (row.options)()
            .into_iter()
            .map(|option| [option.key.to_owned(), option.about.to_owned(), option.default])
            .collect();
        if options.is_empty() {
            continue;
        }
        match groups.iter_mut().find(|(_, known)| *known == options) {
            Some((names, _)) => names.push(row.name),
            None => groups.push((vec![row.name], options)),
        }
    }
    let mut text = String::new();
    for (names, options) in groups {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(text, "\n| option of {} | what | default |\n|---|---|---|", names.join(", "));
        for [key, about, default] in options {
            let default = if default.is_empty() { "none".to_owned() } else { format!("`{default}`") };
            let _ = writeln!(text, "| `{key}` | {about} | {default} |");
        }
    }
    text + "\n"
}

#[test]
fn the_readme_names_every_transport_delivery_and_service_and_no_other() {
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    for (list, rows) in [
        ("transports", TRANSPORTS.iter().map(|row| row.name).collect::<BTreeSet<_>>()),
        ("groups", DELIVERIES.iter().map(|row| row.name).collect()),
        ("services", SERVICES.iter().map(|row| row.name).collect()),
    ] {
        let begin = format!("| {list} |");
        let line = readme.lines().find(|line| line.starts_with(&begin)).expect("a line of the list");
        let named: BTreeSet<&str> = line.split('`').skip(1).step_by(2).collect();
        assert_eq!(named, rows, "README.md's line of {list}");
    }
}

/// The lines of code in the page are those of the row, in their order, but for the remarks behind them.
#[test]
fn the_architecture_shows_the_worked_example_as_it_is() {
    let page = fs::read_to_string(repository("ARCHITECTURE.md")).unwrap();
    let (_, section) = page.split_once("## A transport is one folder and one row").expect("the section");
    let section = section.split("\n## ").next().unwrap();
    let code = |file: &str| {
        let text = fs::read_to_string(repository(file)).unwrap();
        text.split("#[cfg(test)]").next().unwrap().trim_end().to_owned()
    };
    let (protocol, row) = (code("crates/coded/src/repeat.rs"), code("crates/stack/src/transports/fec.rs"));
    let (protocol_lines, row_lines) = (protocol.lines().count(), row.lines().count());
    let size = format!("in {protocol_lines} lines of protocol and {row_lines} of row");
    assert!(section.contains(&size), "ARCHITECTURE.md does not say: {size}");
    assert!(protocol_lines < 100 && row_lines < 100, "the example is small");
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let row = row.lines().map(squeezed).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let blocks: Vec<&str> = section.split("```").skip(1).step_by(2).collect();
    assert!(blocks.len() >= 3, "{} blocks of code", blocks.len());
    for block in blocks {
        let block = block.strip_prefix("rust\n").expect("a block of Rust");
        let lines = block.lines().map(|line| squeezed(line.split(" // ").next().unwrap()));
        let written = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        for part in written.split("...") {
            assert!(row.contains(part.trim_matches(['"', ',', ' '])), "not in the row's file: {part}");
        }
    }
}

#[test]
fn the_schema_has_what_the_tables_have() {
    let path = repository("docs/scenario.schema.json");
    let text = fs::read_to_string(&path).expect("the schema");
    let mut schema: Value = serde_json::from_str(&text).expect("JSON");
    let layers: Map<String, Value> = TRANSPORTS.iter().map(|row| (row.name.to_owned(), layer(row))).collect();
    let names: Vec<&str> = DELIVERIES.iter().map(|row| row.name).collect();
    let deliveries =
        DELIVERIES.iter().map(|row| (row.name.to_owned(), with_options(row.about, &(row.options)())));
    let parts = [
        ("/$defs/layer/anyOf/1/properties", Value::Object(layers)),
        ("/$defs/delivery/anyOf/0/enum", json!(names)),
        ("/$defs/delivery/anyOf/1/properties", Value::Object(deliveries.collect())),
        ("/$defs/service/anyOf", SERVICES.iter().map(|row| service(row)).collect()),
    ];
    let record = std::env::var_os("HOPCAST_RECORD").is_some();
    for (pointer, part) in parts {
        let written = schema.pointer_mut(pointer).unwrap_or_else(|| panic!("a place {pointer}"));
        if record {
            *written = part;
        } else {
            let pretty = |value: &Value| serde_json::to_string_pretty(value).expect("JSON");
            assert_same(&format!("docs/scenario.schema.json, {pointer}"), &pretty(written), &pretty(&part));
        }
    }
    if record {
        let text = serde_json::to_string_pretty(&schema).expect("JSON");
        fs::write(path, text + "\n").expect("the schema");
    }
}

/// A service, with the keys that all have and its options.
fn service(row: &ServiceRow) -> Value {
    let name = json!({ "$ref": "#/$defs/name" });
    let mut properties = Map::new();
    let mut add = |key: &str, about: &str, mut value: Value| {
        value["description"] = about.into();
        properties.insert(key.to_owned(), value);
    };
    add("name", "The name that events and results use. Default: its `run` and its place.", name);
    add("run", "The kind of service. Needed.", json!({ "const": row.name }));
    let names = json!({ "$ref": "#/$defs/some-names" });
    add("on", "The nodes that it runs on: names, classes, or `all`. Needed.", names);
    let words = json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/words" }] });
    let mut required = vec!["run", "on"];
    if row.on_host {
        let none = json!({ "type": "array", "maxItems": 0 });
        add("interfaces", "None: it is attached to the host. Default: `[]`.", none);
    } else {
        let about =
            "The interfaces that it is attached to at each node, or the links that they lead to. Needed.";
        add("interfaces", about, words);
        required.push("interfaces");
    }
    for option in (row.options)() {
        properties.insert(option.key.to_owned(), described(&option));
    }
    json!({
        "description": row.about,
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "required": required,
    })
}

/// A transport with options.
fn layer(row: &Row) -> Value {
    with_options(row.about, &(row.options)())
}

fn with_options(about: &str, options: &[OptionDoc]) -> Value {
    if options.is_empty() {
        return json!({ "description": about, "$ref": "#/$defs/empty" });
    }
    let properties: Map<String, Value> =
        options.iter().map(|option| (option.key.to_owned(), described(option))).collect();
    json!({
        "description": about,
        "anyOf": [
            { "$ref": "#/$defs/empty" },
            { "type": "object", "additionalProperties": false, "properties": properties },
        ],
    })
}

/// The settings of a port of a bridge.
fn port() -> Value {
    let vlan =
        |about: &str| json!({ "type": "integer", "minimum": 1, "maximum": 4094, "description": about });
    let vlans = |about: &str| {
        let one = json!({ "type": "integer", "minimum": 1, "maximum": 4094 });
        json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }], "description": about })
    };
    let properties = json!({
        "tagged": vlans("The VLANs whose frames it takes, and is given with their tag."),
        "untagged": vlans("The VLANs whose frames it takes, and is given without a tag."),
        "native": vlan("The VLAN of frames without a tag. Default: the first of `untagged`."),
        "router": {
            "enum": ["heard", "always", "never"],
            "description": "Whether multicast routers are behind it. Default: heard."
        },
    });
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// The values of an option, with its documentation and default.
fn described(option: &OptionDoc) -> Value {
    let mut value = match option.form {
        Form::Duration => json!({ "$ref": "#/$defs/duration" }),
        Form::Size => json!({ "$ref": "#/$defs/size" }),
        Form::Rate => json!({ "$ref": "#/$defs/rate" }),
        Form::Share => json!({ "$ref": "#/$defs/share" }),
        Form::Percent(max) => json!({
            "description": format!("0 % to {max} %"),
            "type": "string",
            "pattern": "^[0-9][0-9.]*\\s*%$",
        }),
        Form::Count => json!({ "$ref": "#/$defs/count" }),
        Form::CountOr(max, words) => {
            let number = json!({ "type": "integer", "minimum": 0, "maximum": max });
            json!({ "anyOf": [number, { "enum": words }] })
        }
        Form::Numbers(min, max) => {
            let number = json!({ "type": "integer", "minimum": min, "maximum": max });
            json!({ "anyOf": [number, { "type": "array", "items": number, "minItems": 1 }] })
        }
        Form::Flag => json!({ "$ref": "#/$defs/flag" }),
        Form::Word => json!({ "type": "string" }),
        Form::Words => json!({ "$ref": "#/$defs/words" }),
        Form::Names => json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/words" }] }),
        Form::Prefixes => json!({ "$ref": "#/$defs/prefixes" }),
        Form::OneOf(words) => json!({ "enum": words }),
        Form::OneNumberOf(numbers) => json!({ "enum": numbers }),
        Form::Shares(keys) => {
            let share = |(key, about): &(&str, &str)| {
                ((*key).to_owned(), json!({ "$ref": "#/$defs/share", "description": about }))
            };
            let shares: Map<String, Value> = keys.iter().map(share).collect();
            json!({ "type": "object", "additionalProperties": false, "properties": shares })
        }
        Form::Port => port(),
        Form::Ports => json!({ "type": "object", "additionalProperties": port() }),
        Form::PerInterface(min, max) => {
            let number = json!({ "type": "integer", "minimum": min, "maximum": max });
            json!({ "type": "object", "additionalProperties": number })
        }
    };
    let default = if option.default.is_empty() { "none" } else { &option.default };
    value["description"] = format!("{} Default: {default}.", option.about).into();
    value
}
