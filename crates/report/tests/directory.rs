//! A run directory is written once and read back as it was.

#![allow(clippy::unwrap_used)] // in what the tests share

mod fixture;

use std::fs;

use hopcast_report::{Topology, TopologyLink, html, read_run_directory, write_run_directory};
use hopcast_twin::results::{Document, Figures, Receiver, Video};
use serde_json::json;

#[test]
fn what_was_written_is_read_back() {
    for (document, topology) in [fixture::six_hops(), fixture::mesh()] {
        let dir = tempfile::tempdir().unwrap();
        let manifest = json!({ "seed": 1 });
        write_run_directory(dir.path(), &document, &topology, manifest.clone()).unwrap();
        let read = read_run_directory(dir.path()).unwrap();
        assert_eq!(read.manifest, manifest);
        assert_eq!(read.topology, topology);
        for (ours, theirs) in document.runs.iter().zip(&read.document.runs) {
            assert_eq!(ours.latency, theirs.latency);
            assert_eq!(ours.series.flows, theirs.series.flows);
        }
        let again = html::render(&read.document, &read.topology, &read.manifest);
        assert_eq!(again, fs::read_to_string(dir.path().join("report.html")).unwrap());
    }
}

#[test]
fn the_same_document_is_the_same_bytes() {
    let (document, topology) = fixture::six_hops();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for dir in &dirs {
        write_run_directory(dir.path(), &document, &topology, json!({})).unwrap();
    }
    let tables = ["flows", "receivers", "counters", "links", "timeseries", "latency"];
    let names = tables.map(|name| format!("{name}.csv"));
    let others = ["summary.json", "topology.json"];
    for name in
        names.iter().map(String::as_str).chain(others).chain(["report.html", "plots/001-throughput-bulk.svg"])
    {
        let [one, two] = dirs.each_ref().map(|dir| fs::read(dir.path().join(name)).unwrap());
        assert!(one == two, "{name}");
    }
}

#[test]
fn flows_have_a_row_for_each_run_with_the_swept_values() {
    let (document, topology) = fixture::six_hops();
    let dir = tempfile::tempdir().unwrap();
    write_run_directory(dir.path(), &document, &topology, json!({})).unwrap();
    let flows = fs::read_to_string(dir.path().join("flows.csv")).unwrap();
    assert_eq!(flows.lines().count(), 1 + document.runs.len());
    let heading = flows.lines().next().unwrap();
    assert!(heading.starts_with(
        "run,repeat,events.loss.loss_percent,flows.bulk.over,flow,protocol,from,to,goodput_mbps"
    ));
    assert!(flows.lines().nth(1).unwrap().starts_with("0,0,0,udp,bulk,udp,n0,n6,"));
}

/// The heading and the rows of a file.
fn table(document: &Document, topology: &Topology, name: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let dir = tempfile::tempdir().unwrap();
    write_run_directory(dir.path(), document, topology, json!({})).unwrap();
    let text = fs::read_to_string(dir.path().join(name)).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').map(str::to_owned).collect());
    (rows.next().unwrap(), rows.collect())
}

#[test]
fn the_columns_of_flows_do_not_depend_on_what_was_run() {
    let (mut other, topology) = fixture::mesh();
    let plain = table(&other, &topology, "flows.csv").0;
    let flow = &mut other.runs[0].flows[0];
    flow.counters.insert("repairs".into(), 7);
    flow.figures.video = Some(Video { frames_sent: 25, in_time_ratio: Some(0.5), ..Video::default() });
    let (columns, rows) = table(&other, &topology, "flows.csv");
    assert_eq!(columns, plain);
    let cell = |column: &str| &*rows[0][columns.iter().position(|name| name == column).unwrap()];
    assert_eq!((cell("video.frames_sent"), cell("video.in_time_ratio")), ("25", "0.5"));
    let (columns, rows) = table(&other, &topology, "counters.csv");
    assert_eq!(columns, ["run", "repeat", "flow", "counter", "value"]);
    let name = other.runs[0].flows[0].name.clone();
    assert!(rows.iter().any(|row| row[2..] == [name.as_str(), "repairs", "7"]), "{rows:?}");
}

#[test]
fn what_hosts_did_is_counted_without_a_flow() {
    let (mut document, topology) = fixture::mesh();
    document.runs[0].hosts.insert("no_route".into(), 3);
    let (_, rows) = table(&document, &topology, "counters.csv");
    assert_eq!(rows.last().unwrap()[..], ["0", "0", "", "no_route", "3"]);
}

#[test]
fn each_receiver_of_a_flow_has_a_row() {
    let (mut document, topology) = fixture::mesh();
    let flow = &mut document.runs[0].flows[0];
    let receiver = |node: &str, completed, reliability| {
        let (completed_s, reliability) = (Some(completed), Some(reliability));
        let figures = Figures { delivered_units: 9, completed_s, reliability, ..Figures::default() };
        Receiver { node: node.into(), figures }
    };
    flow.receivers = vec![receiver("n1", 1.25, 1.0), receiver("n2", 2.75, 0.875)];
    let name = flow.name.clone();
    let (columns, rows) = table(&document, &topology, "receivers.csv");
    assert_eq!(columns[2..6], ["flow", "protocol", "from", "node"]);
    let of_flow: Vec<_> = rows.iter().filter(|row| row[2] == name).collect();
    let place = |column: &str| columns.iter().position(|name| name == column).unwrap();
    let shown = ["node", "delivered_units", "completed_s", "reliability"].map(place);
    let nodes: Vec<_> = of_flow.iter().map(|row| shown.map(|place| &*row[place])).collect();
    assert_eq!(nodes, [["n1", "9", "1.25", "1"], ["n2", "9", "2.75", "0.875"]]);
    // And on the page: when it was complete, and how much of it arrived.
    let page = html::render(&document, &topology, &json!({}));
    for (node, completed, reliability) in [("n1", "1.25", "100.0"), ("n2", "2.75", "87.5")] {
        let row = page.lines().find(|line| line.contains(&format!("<td>{node}</td><td class=\"number\">")));
        let row = row.unwrap_or_else(|| panic!("no row of {node}"));
        let has = |value: &str| row.contains(&format!("<td class=\"number\">{value}</td>"));
        assert!(has(completed) && has(reliability), "{row}");
    }
}

#[test]
fn a_direction_of_a_link_has_the_links_name() {
    let (document, topology) = fixture::six_hops();
    let (columns, rows) = table(&document, &topology, "links.csv");
    assert_eq!(columns[4..7], ["link", "from", "to"]);
    assert_eq!(rows[0][4..7], ["n0-n1", "n0", "n1"]);
    assert_eq!(rows[1][4..7], ["n0-n1", "n1", "n0"]);
}

#[test]
fn times_have_the_digits_of_their_step() {
    let (mut document, topology) = fixture::six_hops();
    for run in &mut document.runs {
        run.series.step_s = 0.1;
    }
    let (columns, rows) = table(&document, &topology, "timeseries.csv");
    let time = columns.iter().position(|name| name == "time_s").unwrap();
    let times: Vec<&str> = rows.iter().take(13).map(|row| &*row[time]).collect();
    let expected = ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1", "1.1", "1.2"];
    assert_eq!(times, expected);
}

#[test]
fn a_flow_without_a_window_has_an_empty_cell_for_its_goodput() {
    let (mut document, topology) = fixture::mesh();
    document.runs[0].flows[1].figures.goodput_mbps = None;
    let dir = tempfile::tempdir().unwrap();
    write_run_directory(dir.path(), &document, &topology, json!({})).unwrap();
    let flows = fs::read_to_string(dir.path().join("flows.csv")).unwrap();
    let image = flows.lines().find(|line| line.contains(",image,")).unwrap();
    assert!(image.starts_with("0,0,image,norm,n0,n6,,"), "{image}");
    assert_eq!(read_run_directory(dir.path()).unwrap().document.runs[0].flows[1].figures.goodput_mbps, None);
}

#[test]
fn errors_name_the_file_and_what_was_wrong() {
    let (document, topology) = fixture::mesh();
    let dir = tempfile::tempdir().unwrap();
    write_run_directory(dir.path(), &document, &topology, json!({})).unwrap();
    let spoil = |name: &str, text: &str| {
        let path = dir.path().join(name);
        let kept = fs::read(&path).unwrap();
        fs::write(&path, text).unwrap();
        let error = read_run_directory(dir.path()).unwrap_err().to_string();
        fs::write(&path, kept).unwrap();
        assert!(error.contains(name), "{error}");
        error
    };
    assert!(spoil("summary.json", "{").contains("line 1"));
    assert!(spoil("topology.json", r#"{"nodes":[],"links":[{"name":"a-b","ends":[0,1]}]}"#).contains("a-b"));
    let heading = "run,repeat,flow,kind,ms,share\n";
    assert!(spoil("latency.csv", &format!("{heading}7,0,f,latency,1,1\n")).contains("line 2: run \"7\""));
    assert!(spoil("latency.csv", &format!("{heading}0,0,f,latency,x,1\n")).contains("\"x\" is not a number"));
    assert!(spoil("timeseries.csv", "run,mbps\n").contains("the last columns should be kind,"));
    fs::remove_file(dir.path().join("manifest.json")).unwrap();
    assert!(read_run_directory(dir.path()).unwrap_err().to_string().contains("manifest.json"));
}

#[test]
fn a_topology_with_a_link_to_nowhere_is_not_written() {
    let link = TopologyLink { name: "a-b".into(), ends: vec![0], rate_mbps: None };
    let topology = Topology { nodes: Vec::new(), links: vec![link] };
    let dir = tempfile::tempdir().unwrap();
    let error = write_run_directory(dir.path(), &fixture::mesh().0, &topology, json!({})).unwrap_err();
    assert!(error.to_string().contains("topology.json"));
}
