//! Networks from other programs' files and for them.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::fs;
use std::path::Path;

use hopcast_runner::load;
use hopcast_twin::scenario::model::{LinkModel, Scenario};
use hopcast_twin::scenario::{Overrides, notes, to_graphml, to_mermaid};

const FLOW: &str = "duration: 1s\nflows: [{ from: a, to: b, over: udp, app: { cbr: { rate: 1 Mbit/s } } }]\n";

/// The scenario of a topology, with the files beside it, or its error.
fn loaded(topology: &str, files: &[(&str, &str)]) -> Result<Scenario, String> {
    loaded_with_notes(topology, files).map(|(scenario, _)| scenario)
}

/// The same, with the notes.
fn loaded_with_notes(topology: &str, files: &[(&str, &str)]) -> Result<(Scenario, Vec<String>), String> {
    let dir = tempfile::tempdir().unwrap();
    for (name, contents) in files {
        fs::write(dir.path().join(name), contents).unwrap();
    }
    let file = dir.path().join("scenario.yaml");
    fs::write(&file, format!("{FLOW}topology:\n{topology}\n")).unwrap();
    let folder = format!("{}/", dir.path().display());
    let plan = load(&file, &Overrides::default()).map_err(|error| error.to_string().replace(&folder, ""))?;
    let notes = notes(&plan).into_iter().map(|note| note.replace(&folder, "")).collect();
    Ok((Scenario::clone(&plan.cases[0].scenario), notes))
}

fn config(scenario: &Scenario, link: usize) -> &hopcast_link::Config {
    match &scenario.links[link].model {
        LinkModel::PointToPoint(config) => config,
        LinkModel::Medium(_) | LinkModel::Switch(_) => panic!("a link between two"),
    }
}

const ZOO: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d35" />
  <key attr.name="LinkLabel" attr.type="string" for="edge" id="d34" />
  <key attr.name="label" attr.type="string" for="node" id="d32" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d31" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d29" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d29">52.5</data><data key="d31">13.4</data><data key="d32">a</data></node>
    <node id="1"><data key="d29">-8</data><data key="d31">9.9</data><data key="d32">b</data></node>
    <node id="2"><data key="d32">New York, NY</data></node>
    <node id="3"><data key="d32">New York, NY</data></node>
    <edge source="0" target="1"><data key="d34">10 Mbps</data><data key="d35">10000000.0</data></edge>
    <edge source="1" target="0"/>
    <edge source="1" target="2"/>
    <edge source="2" target="3"/>
  </graph>
</graphml>"#;

#[test]
fn a_network_of_the_topology_zoo_is_read_with_its_names_places_and_rates() {
    let link = "  graphml: { file: zoo.graphml, link: { rate: 1 Gbit/s, delay: 5ms } }";
    let scenario = loaded(link, &[("zoo.graphml", ZOO)]).unwrap();
    let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "New_York__NY", "New_York__NY_2"]);
    assert_eq!(scenario.nodes[0].position, Some((13.4, -52.5)), "north is up");
    assert_eq!(scenario.nodes[1].position, Some((9.9, 8.0)));
    let links: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["a-b", "b-a", "b-New_York__NY", "New_York__NY-New_York__NY_2"]);
    let rates: Vec<String> =
        (0..4).map(|link| config(&scenario, link).forward.rate.unwrap().to_string()).collect();
    assert_eq!(
        rates,
        ["10 Mbit/s", "1 Gbit/s", "1 Gbit/s", "1 Gbit/s"],
        "an edge's own before the template's"
    );
    assert_eq!(config(&scenario, 0).forward.delay.to_string(), "5ms");
}

#[test]
fn a_lab_of_containerlab_is_read_in_both_forms_of_links() {
    let lab = r#"
name: lab
topology:
  kinds: { linux: { image: alpine } }
  nodes:
    a: { kind: linux }
    b: { kind: linux }
    sw.1: { kind: bridge }
  links:
    - endpoints: ["a:eth1", "b:eth1"]
    - endpoints: ["a:eth2", "b:eth2"]
      mtu: 9000
    - type: veth
      endpoints: [{ node: b, interface: eth3 }, { node: sw.1, interface: eth1 }]
    - endpoints: ["a:eth4", "host:a-eth4"]
    - { type: mgmt-net, endpoint: { node: a, interface: eth5 }, host-interface: x }
"#;
    let topology = "  containerlab: { file: lab.clab.yml, link: { rate: 10 Mbit/s, loss: 1 % } }";
    let scenario = loaded(topology, &[("lab.clab.yml", lab)]).unwrap();
    let links: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["a-b", "a-b_2", "b-sw_1"], "what leaves the lab is none of its links");
    assert_eq!(config(&scenario, 1).forward.mtu, 9000);
    assert_eq!(config(&scenario, 2).forward.rate.unwrap().to_string(), "10 Mbit/s");
}

#[test]
fn what_is_written_as_graphml_is_read_as_the_same_network() {
    let every = "  nodes: [{ name: a, position: [0.5, -1] }, b, c]\n  links:\n    \
        - { between: [a, b], rate: 300 Mbit/s, delay: 1.5ms, loss: 5 %, jitter: { normal: 1ms }, reorder: true, mtu: 9000 }\n    \
        - { name: other, between: [a, b], prefix: [\"fd07::/64\", 10.8.0.0/31], loss: { gilbert-elliott: { p: 1 %, r: 10 %, h: 20 % } }, duplex: half }\n    \
        - { between: [b, c], rate: 1 Mbit/s, backward: { rate: unlimited, delay: 20ms, queue: { codel: { target: 5ms } } } }\n    \
        - { name: air, medium: [a, b, c], rate: 12 Mbit/s, queue: 64 KiB, loss: { four-state: { p13: 2 %, p31: 98 % } }, corrupt: 1 % }\n    \
        - { name: radio, medium: [a, b], rate: 12 Mbit/s, mac: { csma: { retries: 3 } }, pairs: [{ from: a, to: b, loss: 10 % }] }\n    \
        - { name: partly, medium: [a, b, c], rate: 12 Mbit/s, mac: { csma: { rts: 500 B, cts-time: 50us } }, hears: [[a, b], { from: b, to: c }] }\n    \
        - { name: plain, switch: [a, c], prefix: 10.7.0.0/24 }\n    \
        - { name: yard, switch: [a, b, c], rate: 1 Gbit/s, loss: 20 %, pairs: [{ from: c, to: a, loss: none }], \
            stations: { b: { rate: 1 Mbit/s, mtu: 9000 }, c: { delay: 1ms } } }";
    for topology in [
        every,
        "  chain: { hops: 3, link: { delay: 500us } }\n  nodes: [a, b]\n  links: [{ between: [a, b], rate: 1 Mbit/s }, { between: [b, n0] }]",
        "  full: { nodes: 5 }\n  nodes: [a, b]\n  links: [{ between: [a, b] }]",
    ] {
        let scenario = loaded(topology, &[]).unwrap();
        let written = to_graphml(&scenario);
        let again = loaded("  graphml: out.graphml", &[("out.graphml", &written)]).unwrap();
        assert_eq!(again.nodes, scenario.nodes, "{written}");
        assert_eq!(again.links, scenario.links, "{written}");
    }
}

#[test]
fn a_mistake_in_an_imported_file_is_shown_where_it_stands() {
    let graph = |inside: &str| {
        format!(
            "<graphml>\n<key id=\"d0\" attr.name=\"rate\" for=\"edge\"/>\n<graph>\n  <node id=\"a\"/><node id=\"b\"/>\n{inside}\n</graph></graphml>"
        )
    };
    let edge = |data: &str| graph(&format!("  <edge source=\"a\" target=\"b\">{data}</edge>"));
    for (file, contents, expected) in [
        (
            "net.graphml",
            graph("  <edge source=\"a\" target=\"c\"/>"),
            "net.graphml:5:3: `target`: there is no node `c`",
        ),
        ("net.graphml", graph("  <edge source=\"a\"/>"), "net.graphml:5:3: `<edge>` needs a `target`"),
        ("net.graphml", edge("<data key=\"d0\">300 Mbps</data>"), "net.graphml:5:31: `rate`: "),
        ("net.graphml", edge("<data key=\"loss\">{ gilbert: 1 }</data>"), "net.graphml:5:31: `loss`: "),
        (
            "net.graphml",
            edge("<data key=\"loss\">{ gilbert</data>"),
            "net.graphml:5:31: this is not valid YAML",
        ),
        ("net.graphml", "<graphml>\n<graph></node>".to_owned(), "net.graphml:2:8: this is not valid XML"),
        ("net.graphml", "<svg/>".to_owned(), "net.graphml:1:1: expected a GraphML file"),
        ("lab.yml", "name: x".to_owned(), "lab.yml:1:1: a containerlab file needs `topology`"),
        (
            "lab.yml",
            "topology:\n  nodes: { a: {}, b: {} }\n  links:\n    - endpoints: [\"a:e1\", \"bb:e1\"]"
                .to_owned(),
            "lab.yml:4:27: `endpoints`: there is no node `bb`: did you mean `b`?",
        ),
        (
            "lab.yml",
            "topology:\n  nodes: { a: {}, b: {} }\n  links:\n    - endpoints: [a, b]".to_owned(),
            "lab.yml:4:19: `endpoints`: expected `node:interface`, found `a`",
        ),
    ] {
        let format = if file.ends_with("yml") { "containerlab" } else { "graphml" };
        let error = loaded(&format!("  {format}: {file}"), &[(file, &contents)]).unwrap_err();
        assert!(error.starts_with(expected), "{error}\nexpected: {expected}");
    }
    let error = loaded("  graphml: { file: none.graphml, lnk: 1 }", &[]).unwrap_err();
    assert!(error.contains("did you mean `link`?"), "{error}");
    let error = loaded("  graphml: none.graphml", &[]).unwrap_err();
    assert!(error.contains("cannot read"), "{error}");
}

#[test]
fn a_directed_graph_has_defaults_comments_and_both_directions_of_a_link() {
    let graph = r#"<graphml><key id="r" for="edge" attr.name="rate"><default>10 Mbit/s</default></key>
<graph edgedefault="directed"><node id="a"/><node id="b"/><node id="b-c"/><node id="a-b"/><node id="c"/>
<edge source="a" target="b"><data key="r"><!-- slow -->1 <!-- still --> Mbit/s</data></edge><edge source="b" target="a"/>
<edge source="a" target="b-c"/><edge source="a-b" target="c"/><edge source="b" target="c"><data key="name">a link</data></edge>
</graph></graphml>"#;
    let scenario = loaded("  graphml: g.graphml", &[("g.graphml", graph)]).unwrap();
    let links: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["a-b", "a-b-c", "a-b-c_2", "a_link"]);
    let both = config(&scenario, 0);
    let rates = [&both.forward, &both.backward].map(|direction| direction.rate.unwrap().to_string());
    assert_eq!(rates, ["1 Mbit/s", "10 Mbit/s"]);
    let nested = "<graphml><graph><node id=\"a\"><graph/></node></graph></graphml>";
    let error = loaded("  graphml: g.graphml", &[("g.graphml", nested)]).unwrap_err();
    assert!(error.starts_with("g.graphml:1:30: expected one `<graph>`"), "{error}");
}

#[test]
fn an_edge_from_a_node_to_itself_is_left_out_with_a_note() {
    for graph in ["undirected", "directed"] {
        let graph = format!(
            "<graphml><graph edgedefault=\"{graph}\"><node id=\"a\"/><node id=\"b\"/>\n\
             <edge source=\"a\" target=\"a\"/><edge source=\"a\" target=\"b\"/>\n\
             <edge source=\"b\" target=\"b\"/></graph></graphml>"
        );
        let (scenario, notes) = loaded_with_notes("  graphml: g.graphml", &[("g.graphml", &graph)]).unwrap();
        let links: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(links, ["a-b"]);
        let left_out = ["2:1: an edge from `a`", "3:1: an edge from `b`"];
        assert_eq!(notes, left_out.map(|what| format!("g.graphml:{what} to itself is left out")));
    }
    let lab = "topology:\n  nodes: { a: {}, b: {} }\n  links:\n    - endpoints: [\"a:e1\", \"b:e1\"]\n    \
               - endpoints: [\"a:e2\", \"a:e3\"]";
    let (scenario, notes) = loaded_with_notes("  containerlab: lab.yml", &[("lab.yml", lab)]).unwrap();
    assert_eq!((scenario.links.len(), notes.len()), (1, 1), "{notes:?}");
    assert!(notes[0].starts_with("lab.yml:5:7: an edge from `a` to itself"), "{notes:?}");
}

#[test]
fn a_large_file_in_one_line_is_read_quickly() {
    let nodes: String =
        (0..20_000).map(|n| format!("<node id=\"n{n}\"><data key=\"label\">switch</data></node>")).collect();
    let graph = format!(
        "<graphml><graph>{nodes}<node id=\"a\"/><node id=\"b\"/><edge source=\"a\" target=\"b\"/></graph></graphml>"
    );
    let scenario = loaded("  graphml: g.graphml", &[("g.graphml", &graph)]).unwrap();
    assert_eq!((scenario.nodes.len(), scenario.nodes[19_999].name.as_str()), (20_002, "switch_20000"));
}

#[test]
fn an_entity_bomb_is_refused() {
    let bomb =
        "<!DOCTYPE l [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]><graphml>&b;</graphml>";
    let error = loaded("  graphml: bomb.graphml", &[("bomb.graphml", bomb)]).unwrap_err();
    assert!(error.contains("not valid XML"), "{error}");
}

#[test]
fn mermaid_shows_nodes_links_and_media() {
    let topology = "  nodes: [a, b, end]\n  links:\n    - { between: [a, b], rate: 1 Mbit/s, loss: 5 % }\n    \
        - { between: [b, end] }\n    - { name: air, medium: [a, b], rate: 12 Mbit/s, loss: { four-state: { p13: 2 % } } }";
    let drawing = to_mermaid(&loaded(topology, &[]).unwrap());
    let expected = [
        "flowchart LR",
        "  n0[\"a\"]",
        "  n1[\"b\"]",
        "  n2[\"end\"]",
        "  n0 ---|\"1 Mbit/s<br/>loss 5 %\"| n1",
        "  n1 --- n2",
        "  m2((\"air<br/>12 Mbit/s<br/>bursty loss\"))",
        "  n0 -.- m2",
        "  n1 -.- m2",
        "",
    ];
    assert_eq!(drawing, expected.join("\n"));
}

#[test]
fn the_examples_can_be_exported_and_read_again() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut seen = 0;
    for name in ["six-hops", "medium", "asymmetric", "bursty-loss", "reroute"] {
        let plan = load(&dir.join(format!("{name}.yaml")), &Overrides::default()).unwrap();
        let scenario = &plan.cases[0].scenario;
        let text = format!("{}{}", to_graphml(scenario), to_mermaid(scenario));
        assert!(text.contains("flowchart"));
        seen += scenario.links.len();
    }
    assert!(seen > 10);
}
