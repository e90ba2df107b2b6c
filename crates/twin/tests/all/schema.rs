//! The schema for editors and the decoder allow the same.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use hopcast_runner::{FileSystem, load_text};
use hopcast_stack::TRANSPORTS;
use hopcast_twin::scenario::yaml::{Kind, Node};
use hopcast_twin::scenario::{MemoryFiles, Overrides, SCHEMA, tree};

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// Value that a reader of YAML 1.2's core schema makes of a node.
fn value(node: &Node) -> Value {
    match &node.kind {
        Kind::Scalar(text) => match text.as_str() {
            "" | "null" | "~" => Value::Null,
            "true" => json!(true),
            "false" => json!(false),
            text => match (text.parse::<u64>(), text.parse::<f64>()) {
                (Ok(number), _) => json!(number),
                (_, Ok(number)) if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                    json!(number)
                }
                _ => json!(text),
            },
        },
        Kind::List(items) => items.iter().map(value).collect(),
        Kind::Map(entries) => entries.iter().map(|entry| (entry.key.clone(), value(&entry.value))).collect(),
    }
}

fn complaints(text: &str) -> Vec<String> {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let files: MemoryFiles = [("test.yaml", text)].into_iter().collect();
    let document = value(&tree(&files, Path::new("test.yaml")).unwrap());
    validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn every_example_fits_the_schema() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let of = |dir: PathBuf| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let examples = of(dir.clone()).chain(of(dir.join("studies")));
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let mut seen = 0;
    for path in examples.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")) {
        let document = value(&tree(&FileSystem, &path).unwrap());
        let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

/// A scenario with every kind of map, and in each a mark at which a key can be added.
const WHOLE: &str = "\
@/properties:
duration: 1s
measure: {from: 0s @/properties/measure/properties}
topology:
  nodes: [a, {name: b @/$defs/topology/properties/nodes/items/anyOf/1/properties}, c, {name: q0, place: {x: 0 m, y: 1 km @/$defs/topology/properties/nodes/items/anyOf/1/properties/place/properties}, power: 20 dBm}, q1,
    {name: q2, place: {x: 1 nmi, y: 0 m}, power: 20 dBm, height: 5 m, antennas: {beams: 2 @/$defs/topology/properties/nodes/items/anyOf/1/properties/antennas/anyOf/1/properties}}]
  links:
    - {between: [a, b], rate: 1 Mbit/s, backward: {delay: 1ms @/$defs/direction/properties} @/$defs/written-link/anyOf/0/properties}
    - {between: [b, c], loss: {gilbert-elliott: {p: 1 %, r: 1 % @/$defs/loss/anyOf/2/properties/gilbert-elliott/properties}}}
    - {name: l, between: [b, c], loss: {four-state: {p13: 1 % @/$defs/loss/anyOf/3/properties/four-state/properties}}}
    - {name: m, medium: [a, b, c], rate: 1 Mbit/s, mac: {csma: {retries: 1 @/$defs/mac/anyOf/2/properties/csma/anyOf/1/properties}},
       hears: [[a, b], {from: c, to: b @/$defs/written-link/anyOf/1/properties/hears/items/anyOf/1/properties}],
       pairs: [{from: a, to: b, loss: 1 % @/$defs/written-link/anyOf/1/properties/pairs/items/properties}] @/$defs/written-link/anyOf/1/properties}
    - {name: w, switch: [a, b], rate: 1 Mbit/s, stations: {a: {rate: 2 Mbit/s}} @/$defs/written-link/anyOf/2/properties}
    - {name: r, radio: [q0, q2], mac: {csma: {retries: 1 @/$defs/written-link/anyOf/3/properties/mac/anyOf/1/properties/csma/anyOf/1/properties}}, channel: {law: {log-distance: {reference: 40 dB, exponent: 2 @/$defs/written-link/anyOf/3/properties/channel/anyOf/1/properties/law/anyOf/2/properties/log-distance/properties}},
        rates: [{signal: -80 dBm, rate: 1 Mbit/s @/$defs/written-link/anyOf/3/properties/channel/anyOf/1/properties/rates/items/properties}], shadowing: {deviation: 3 dB @/$defs/written-link/anyOf/3/properties/channel/anyOf/1/properties/shadowing/properties} @/$defs/written-link/anyOf/3/properties/channel/anyOf/1/properties} @/$defs/written-link/anyOf/3/properties}
    - {name: r2, radio: [q0, q2], channel: {law: {free-space: {frequency: 5.8 GHz @/$defs/written-link/anyOf/3/properties/channel/anyOf/1/properties/law/anyOf/0/properties/free-space/properties}}, rates: [{signal: -80 dBm, rate: 1 Mbit/s}]}}
    - {name: r3, radio: [q0, q2], channel: {law: {two-ray: {frequency: 5.8 GHz @/$defs/written-link/anyOf/3/properties/channel/anyOf/1/properties/law/anyOf/1/properties/two-ray/properties}}, rates: [{signal: -80 dBm, rate: 1 Mbit/s}]}}
    - {name: o, between: [a, b], rate: 1 Mbit/s, queue: {drop-tail: {limit: 1 packet @/$defs/queue/anyOf/2/properties/drop-tail/anyOf/1/properties}}}
    - {name: q, between: [a, b], queue: {codel: {target: 1ms @/$defs/queue/anyOf/3/properties/codel/anyOf/2/properties}}}
  chain: {hops: 1, link: {rate: 1 Mbit/s @/$defs/link/properties} @/$defs/topology/properties/chain/properties}
  grid: {rows: 1, columns: 1 @/$defs/topology/properties/grid/properties}
  star: {prefix: s, leaves: 1 @/$defs/topology/properties/star/properties}
  tree: {prefix: t, depth: 1, fanout: 1, inner: i, leaves: l @/$defs/topology/properties/tree/properties}
  full: {prefix: f, nodes: 2 @/$defs/topology/properties/full/properties}
  switch: {prefix: w, nodes: 2, link: {name: v, stations: {w0: {rate: 2 Mbit/s}} @/$defs/topology/properties/switch/properties/link/properties} @/$defs/topology/properties/switch/properties}
motion: [{node: q1, waypoints: [{at: 0 s, x: 0 m, y: 0 m @/properties/motion/items/properties/waypoints/items/properties}] @/properties/motion/items/properties}]
events: [{at: 0s, links: m, loss: 1 % @/$defs/event/properties}]
services:
  - {run: vlan, on: [a, b], interfaces: q @/$defs/service/anyOf/0/properties}
  - {run: bridge, on: a, interfaces: o @/$defs/service/anyOf/1/properties}
  - {run: batman-iv, on: c, interfaces: l @/$defs/service/anyOf/2/properties}
  - {run: batman-v, on: b, interfaces: w @/$defs/service/anyOf/3/properties}
  - {run: igmp-querier, on: a @/$defs/service/anyOf/4/properties}
  - {run: mld-querier, on: a @/$defs/service/anyOf/5/properties}
  - {run: pim, on: a @/$defs/service/anyOf/6/properties}
  - {run: link-state, on: a @/$defs/service/anyOf/7/properties}
  - {run: pgm-router, on: a @/$defs/service/anyOf/8/properties}
  - {run: meadcast-router, on: a @/$defs/service/anyOf/9/properties}
  - {run: meadcast-forger, on: a @/$defs/service/anyOf/10/properties}
  - {run: xcast-router, on: a @/$defs/service/anyOf/11/properties}
  - {run: firewall, on: a @/$defs/service/anyOf/12/properties}
groups: [{name: g, delivery: {ip-multicast: {one-source: on @/$defs/delivery/anyOf/1/properties/ip-multicast/anyOf/1/properties}} @/$defs/group/properties}]
roles: {relay: [b] @/properties/roles/properties}
neighbours: resolve
routes: [{node: a, to: default, via: b @/properties/routes/items/properties}]
routing: {convergence: 1s @/properties/routing/properties}
flows:
  - {from: a, to: b, over: udp, app: {cbr: {rate: 1 Mbit/s, on-off: {on: 1s, off: 1s @/$defs/app/anyOf/1/properties/cbr/properties/on-off/properties} @/$defs/app/anyOf/1/properties/cbr/properties}} @/$defs/flow/properties}
  - {from: a, to: b, over: udp, app: {bulk: {rate: 1 Mbit/s @/$defs/app/anyOf/2/properties/bulk/anyOf/1/properties}}}
  - {from: a, to: b, over: udp, app: {messages: {size: 100 B, rate: 1 Hz @/$defs/app/anyOf/4/properties/messages/properties}}}
  - {from: a, to: b, over: udp, app: {video: {rate: 1 Mbit/s @/$defs/app/anyOf/5/properties/video/properties}}}
  - {from: a, to: b, over: tcp-bbr, app: {short-flows: {size: {pareto: {mean: 1 kB @/$defs/app/anyOf/6/properties/short-flows/properties/size/anyOf/2/properties/pareto/anyOf/1/properties}}, arrivals: 1 /s @/$defs/app/anyOf/6/properties/short-flows/properties}}}
  - {from: a, to: b, over: udp, app: {iperf3: {rate: 1 Mbit/s @/$defs/app/anyOf/7/properties/iperf3/anyOf/1/properties}}}
  - {from: a, to: b, over: tcp-bbr, app: {iperf2: {parallel: 2 @/$defs/app/anyOf/8/properties/iperf2/anyOf/1/properties}}}
  - {from: a, to: b, over: tcp-bbr, app: {nuttcp: {reverse: on @/$defs/app/anyOf/9/properties/nuttcp/anyOf/1/properties}}}
  - {from: a, to: b, over: ip, app: {ping: {every: 1s @/$defs/app/anyOf/10/properties/ping/anyOf/1/properties}}}
  - {from: a, to: b, over: udp, app: {ffmpeg: {picture: 64x64 @/$defs/app/anyOf/11/properties/ffmpeg/anyOf/1/properties}}}
  - {from: a, to: b, over: tcp-bbr, app: {copy: {path: Cargo.toml @/$defs/app/anyOf/12/properties/copy/properties}}}
  - {from: a, to: [b], over: udp, delivery: ip-multicast, app: {libnorm: {bytes: 1 kB @/$defs/app/anyOf/13/properties/libnorm/properties}}}
  - {from: a, to: [b], over: udp, delivery: ip-multicast, app: {openpgm: {bytes: 1 kB @/$defs/app/anyOf/14/properties/openpgm/properties}}}
  - {from: a, to: [b], over: udp, delivery: ip-multicast, app: {jgroups: {bytes: 1 kB @/$defs/app/anyOf/15/properties/jgroups/properties}}}
  - {from: a, to: [b], over: udp, delivery: ip-multicast, app: {uftp: {bytes: 1 kB @/$defs/app/anyOf/16/properties/uftp/properties}}}
  - {from: a, to: [b], over: udp, delivery: ip-multicast, app: {udpcast: {bytes: 1 kB @/$defs/app/anyOf/17/properties/udpcast/properties}}}
exec:
  - {at: a, command: [ss], expect: {exit: 0 @/properties/exec/items/properties/expect/properties} @/properties/exec/items/properties}
variants:
";

/// The text without its marks, and for each mark the text with an unknown key there.
fn marked() -> (String, Vec<(String, String)>) {
    let with_options = TRANSPORTS.iter().filter(|row| !(row.options)().is_empty());
    let variants = with_options.map(|row| row.name).map(|name| {
        format!("  v-{name}: {{{name}: {{@/$defs/layer/anyOf/1/properties/{name}/anyOf/1/properties}}}}\n")
    });
    let whole: String = std::iter::once(WHOLE.to_owned()).chain(variants).collect();
    let mut parts = whole.split('@');
    let first = parts.next().unwrap_or_default().to_owned();
    let ends = |part: &str| part.find(['}', ':']).unwrap_or(part.len());
    let parts: Vec<(&str, &str)> = parts.map(|part| part.split_at(ends(part))).collect();
    // The first mark is alone on its line, which the other places are without.
    let text = |marked: Option<usize>| {
        parts.iter().enumerate().fold(first.clone(), |text, (number, (mark, rest))| {
            let top = *mark == "/properties";
            let rest = if top { rest.trim_start_matches(':') } else { rest };
            let separator = if text.ends_with('{') || top { "" } else { "," };
            let extra = if marked == Some(number) { format!("{separator}zz: 1") } else { String::new() };
            text + &extra + rest
        })
    };
    let marks = (0..parts.len()).map(|number| (parts[number].0.to_owned(), text(Some(number)))).collect();
    (text(None), marks)
}

#[test]
fn the_schema_allows_the_keys_that_the_decoder_allows() {
    let (plain, marks) = marked();
    load_text(Path::new("test.yaml"), &plain, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(complaints(&plain), [""; 0]);
    let schema = schema();
    for (pointer, text) in &marks {
        let error = load_text(Path::new("test.yaml"), text, &Overrides::default()).unwrap_err().to_string();
        let (_, listed) = error.split_once("(allowed here: ").unwrap_or_else(|| panic!("{pointer}: {error}"));
        let mut allowed: BTreeSet<&str> = listed.trim_end_matches(')').split(", ").collect();
        if pointer.starts_with("/$defs/written-link/anyOf/0/") {
            // They would make it a medium, a switch or a radio link, which are other kinds.
            allowed.remove("medium");
            allowed.remove("switch");
            allowed.remove("radio");
        }
        let known = schema.pointer(pointer).and_then(Value::as_object);
        let known: BTreeSet<&str> = known
            .unwrap_or_else(|| panic!("no {pointer} in the schema"))
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(known, allowed, "{pointer}");
        assert!(!complaints(text).is_empty(), "{pointer}: the schema knows `zz`");
    }
    assert!(marks.len() > 30, "{}", marks.len());
}

#[test]
fn every_key_has_a_description() {
    let (mut without, mut seen) = (Vec::new(), 0);
    describe("", &schema(), &mut without, &mut seen);
    assert_eq!(without, [""; 0], "keys without a description of their own");
    assert!(seen > 300, "{seen}");
}

/// Adds the pointers of the keys in `value` that have no description, or that of another key of their map.
fn describe(pointer: &str, value: &Value, without: &mut Vec<String>, seen: &mut usize) {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, part)| (format!("{pointer}/{key}"), part)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(number, part)| (format!("{pointer}/{number}"), part)).collect()
        }
        _ => Vec::new(),
    };
    // A key that is called `properties` is no map of keys.
    if pointer.ends_with("/properties") && !pointer.ends_with("/properties/properties") {
        let mut texts = BTreeSet::new();
        for (pointer, key) in &parts {
            *seen += 1;
            let text = key.get("description").and_then(Value::as_str).unwrap_or_default();
            if text.chars().count() < 10 || !texts.insert(text) {
                without.push(pointer.clone());
            }
        }
    }
    for (pointer, part) in parts {
        describe(&pointer, part, without, seen);
    }
}

#[test]
fn a_quantity_without_a_unit_does_not_fit() {
    let text = "duration: 10\ntopology: { chain: { hops: 2 } }\nflows: [{ from: n0, to: n1, over: udp, app: bulk }]\n";
    let found = complaints(text);
    assert!(found.len() == 1 && found[0].starts_with("/duration"), "{found:?}");
}

/// A scenario with the places that [`ALIKE`] and [`REFUSED`] change.
const PLAIN: &str = "\
duration: 1s
topology:
  nodes: [a, b]
  links:
    - {name: air, medium: [a, b], rate: 1 Mbit/s, mac: perfect, queue: 10 packets}
flows:
  - {name: f, from: a, to: b, over: udp, ip: 4, app: {video: {rate: 1 Mbit/s, fps: 25, gop: 12}}}
  - {name: g, from: a, to: b, over: udp, paths: 1, app: {iperf3: {rate: 1 Mbit/s, parallel: 2}}}
events:
  - {at: 0s, links: all, loss: 1 %}
";

/// Changes that both accept: (a part of the text, its replacement).
const ALIKE: [(&str, &str); 18] = [
    ("", ""),
    ("ip: 4", "ip: 6"),
    ("mac: perfect", "mac: {perfect: {}}"),
    ("mac: perfect", "mac: {perfect: }"),
    ("mac: perfect", "mac: {csma: {cw-min: 0, cw-max: 32_767, retries: 255}}"),
    ("queue: 10 packets", "queue: {drop-tail: }"),
    ("queue: 10 packets", "queue: {drop-tail: {}}"),
    ("queue: 10 packets", "queue: {codel: }"),
    ("fps: 25", "fps: 1_0"),
    ("fps: 25", "fps: 2_5.5"),
    ("duration: 1s", "duration: 1s\nmeasure:"),
    ("duration: 1s", "duration: 1s\nroles:"),
    ("duration: 1s", "duration: 1s\nroles: {relay: []}"),
    ("duration: 1s", "duration: 1s\nnotes:\nvariants:\nquick:\nsweep:"),
    ("links: all, loss: 1 %", "links: all, to: b, from: a, loss: 1 %"),
    ("links: all, loss: 1 %", "stop: [f, g]"),
    ("links: all, loss: 1 %", "links: all, loss: 1 %, every: 10ms, until: 1s"),
    ("rate: 1 Mbit/s, parallel: 2", "rate: 1 Mbit/s, parallel: 128"),
];

/// Changes that both refuse: (a part of the text, its replacement). `@` is the place at which the decoder reports the
/// mistake, if that is not the event itself.
const REFUSED: [(&str, &str); 30] = [
    ("ip: 4", "ip: @IPv4"),
    ("ip: 4", "ip: @ipv6"),
    ("ip: 4", "ip: @v4"),
    ("mac: perfect", "mac: {perfect: @{slot: 1us}}"),
    ("mac: perfect", "mac: {csma: {cw-min: @32768}}"),
    ("mac: perfect", "mac: {csma: {cw-max: @40000}}"),
    ("mac: perfect", "mac: {csma: {retries: @256}}"),
    ("mac: perfect", "mac: {csma: {retries: @_5}}"),
    ("queue: 10 packets", "queue: {drop-tail: @[]}"),
    ("queue: 10 packets", "queue: {drop-tail: {limit: @0.5}}"),
    ("queue: 10 packets", "queue: 10 packets, mtu: @575"),
    ("fps: 25", "fps: @many"),
    ("fps: 25", "fps: @_10"),
    ("fps: 25", "fps: @0.05"),
    ("fps: 25", "fps: @1001"),
    ("gop: 12", "gop: @0"),
    ("paths: 1", "paths: @9"),
    ("parallel: 2", "parallel: @129"),
    ("duration: 1s", "duration: 1s\nmeasure: @[]"),
    ("duration: 1s", "duration: 1s\nroles: {relay@: }"),
    ("duration: 1s", "duration: 1s\nroles: {relay: @{}}"),
    ("duration: 1s", "duration: 1s\nrepeats: @0"),
    ("links: all, loss: 1 %", "links: all"),
    ("links: all, loss: 1 %", "name: nothing"),
    ("links: all, loss: 1 %", "loss: 1 %"),
    ("links: all, loss: 1 %", "start: @[]"),
    ("links: all, loss: 1 %", "links: @[], loss: 1 %"),
    ("links: all, loss: 1 %", "links: all, loss: 1 %, until: @1s"),
    ("links: all, loss: 1 %", "links: all, to: @b, delay: 1ms"),
    ("links: all, loss: 1 %", "links: all, to: @b, loss: 1 %, up: true"),
];

#[test]
fn the_schema_and_the_decoder_accept_the_same_and_refuse_the_same() {
    let load = |text: &str| load_text(Path::new("test.yaml"), text, &Overrides::default());
    let text = |part: &str, other: &str| {
        assert!(PLAIN.contains(part), "{part}");
        PLAIN.replacen(part, other, 1)
    };
    for (part, other) in ALIKE {
        let text = text(part, other);
        load(&text).unwrap_or_else(|error| panic!("{other}: {error}"));
        assert_eq!(complaints(&text), [""; 0], "{other}");
    }
    for (part, other) in REFUSED {
        let text = text(part, other);
        let at = text.find('@').or(text.find("{at: 0s")).unwrap();
        let (line, column) = (text[..at].matches('\n').count() + 1, at - text[..at].rfind('\n').unwrap());
        let place = format!("{line}:{column}");
        let text = text.replace('@', "");
        let error = load(&text).err().unwrap_or_else(|| panic!("the decoder accepts {other}")).to_string();
        assert!(error.starts_with(&format!("test.yaml:{place}: ")), "{other}: {error}");
        assert!(!complaints(&text).is_empty(), "the schema accepts {other}");
    }
}
