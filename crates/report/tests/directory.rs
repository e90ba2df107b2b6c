//! A run directory is written once and read back as it was.

mod fixture;

use std::fs;

use hopcast_report::{Topology, TopologyLink, html, read_run_directory, write_run_directory};
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
    let names = ["flows.csv", "links.csv", "timeseries.csv", "latency.csv", "summary.json", "topology.json"];
    for name in names.into_iter().chain(["report.html", "plots/001-throughput-bulk.svg"]) {
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
    assert!(
        heading.starts_with("run,repeat,events.loss.loss,flows.bulk.over,flow,protocol,from,to,goodput_mbps")
    );
    assert!(heading.ends_with("round_trip_ms.max,counters.retransmissions"));
    assert!(flows.lines().nth(1).unwrap().starts_with("0,0,0 %,udp,bulk,udp,n0,n6,"));
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
        let error = read_run_directory(dir.path()).unwrap_err();
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
    assert!(read_run_directory(dir.path()).unwrap_err().contains("manifest.json"));
}

#[test]
fn a_topology_with_a_link_to_nowhere_is_not_written() {
    let link = TopologyLink { name: "a-b".into(), ends: vec![0], rate_mbps: None };
    let topology = Topology { nodes: Vec::new(), links: vec![link] };
    let dir = tempfile::tempdir().unwrap();
    let error = write_run_directory(dir.path(), &fixture::mesh().0, &topology, json!({})).unwrap_err();
    assert!(error.to_string().contains("topology.json"));
}
