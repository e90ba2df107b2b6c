//! The page and its pictures stand alone and trust no name.

mod fixture;

use hopcast_report::{Plot, Topology, TopologyNode, html, plots};
use hopcast_twin::results::{Document, Link, Live, Publication, Run, ScheduledEvent, ServiceTable, Summary};
use serde_json::{Value, json};

const EVIL: &str = "</text><script>alert(1)</script>\"'&{{manifest}}";

#[test]
fn names_from_users_files_are_only_ever_text() {
    let (document, mut topology) = fixture::six_hops();
    let text = serde_json::to_string(&document).unwrap();
    let evil = serde_json::to_string(EVIL).unwrap();
    let text = text.replace("\"tcp-bbr\"", &evil).replace("\"bulk\"", &evil).replace("\"n3\"", &evil);
    let mut evil: Document = serde_json::from_str(&text).unwrap();
    evil.scenario = EVIL.into();
    for (run, kept) in evil.runs.iter_mut().zip(&document.runs) {
        run.series = kept.series.clone();
        run.series.flows[0].0 = EVIL.into();
        run.latency = kept.latency.clone();
        run.latency[0].flow = EVIL.into();
    }
    topology.nodes[3].name = EVIL.into();
    let page = html::render(&evil, &topology, &json!({ EVIL: EVIL }));
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert!(page.contains("{{manifest}}"), "braces in a name are no place in the template");
    for plot in plots(&evil, &topology) {
        assert!(!plot.standalone().contains("<script"), "{}", plot.file_stem);
        assert!(plot.file_stem.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
    }
}

#[test]
fn the_page_shows_how_a_flow_is_delivered() {
    let (mut document, topology) = fixture::six_hops();
    assert!(!html::render(&document, &topology, &Value::Null).contains("is delivered in the end"));
    document.runs[0].flows[0].delivery = vec!["sender".into(), "  fd00::2 <1>".into()];
    let page = html::render(&document, &topology, &Value::Null);
    assert!(page.contains(
        "<h3>How bulk is delivered in the end, in repeat 0</h3>\n<pre>sender\n  fd00::2 &lt;1&gt;</pre>"
    ));
}

#[test]
fn the_page_shows_the_tables_of_services() {
    let (mut document, topology) = fixture::six_hops();
    let table = |node: &str, rows: usize, left_out: usize| ServiceTable {
        node: node.into(),
        service: "mesh".into(),
        table: "originators".into(),
        columns: vec!["originator".into(), "tq".into()],
        rows: (0..rows).map(|row| vec![format!("<{row}> eth0"), "255".into()]).collect(),
        left_out,
    };
    document.runs[0].tables = vec![table("n0", 2, 0), table("n1", 1, 0)];
    let page = html::render(&document, &topology, &Value::Null);
    assert!(page.contains("<h3>mesh: originators, at the end of repeat 0</h3>"));
    for row in ["n0</td><td>&lt;1&gt; eth0</td><td>255", "n1</td><td>&lt;0&gt; eth0</td><td>255"] {
        assert_eq!(page.matches(&format!("<td>{row}</td>")).count(), 1, "{row}");
    }
    assert!(!page.contains("rows the first"));
    document.runs[0].tables = vec![table("n0", 150, 0), table("n1", 60, 40)];
    let page = html::render(&document, &topology, &Value::Null);
    assert!(page.contains("Of 250 rows the first 200 are shown; <code>summary.json</code> has more."));
    assert_eq!(page.matches("eth0</td><td>255</td>").count(), 200);
}

#[test]
fn control_characters_leave_a_picture_well_formed() {
    let (document, mut topology) = fixture::mesh();
    topology.nodes[0].name = "a\u{0}\u{8}b".into();
    assert!(plots(&document, &topology).iter().all(|plot| !plot.standalone().contains(['\u{0}', '\u{8}'])));
}

#[test]
fn the_page_asks_for_nothing_from_elsewhere() {
    let (document, topology) = fixture::six_hops();
    let page = html::render(&document, &topology, &Value::Null);
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_live_study_says_first_where_something_else_is_ahead_of_the_coded_transports() {
    let (mut document, topology) = fixture::six_hops();
    document.runs[0].live = Some(Live::default());
    let mut page_where = |coded: &str, round_trip: f64| {
        for row in &mut document.summary {
            row.coded = row.protocol == coded;
            let millis = if row.coded { 20.0 } else { round_trip };
            row.figures.insert("round_trip_ms".to_owned(), json!({ "p99": { "mean": millis, "n": 1 } }));
        }
        html::render(&document, &topology, &Value::Null).replace('\u{a0}', " ")
    };
    let behind = page_where("tcp-bbr", 10.0);
    assert!(behind.contains("Ahead of every coded transport by goodput: udp at loss"), "{behind}");
    assert!(behind.contains("Ahead of every coded transport by round trip p99: udp at loss"));
    // A flow that delivers less has no round trips for its losses.
    assert!(behind.contains("udp at loss 0 % by 100.0 %, tcp-cubic at loss 5 % by 100.0 %"));
    let ahead = page_where("udp", 20.1);
    assert!(ahead.contains("By goodput, nothing else is more than 2 % ahead of the best coded transport"));
    assert!(ahead.contains("By round trip p99, nothing else"));
}

#[test]
fn the_finding_names_the_best_and_how_far_it_is_ahead() {
    let (document, topology) = fixture::six_hops();
    let page = html::render(&document, &topology, &Value::Null).replace('\u{a0}', " ");
    assert!(page.contains("at loss 20 %, udp carries 76.5 ± 0.7 Mbit/s, 6.71 times tcp-bbr (11.4 ± 0.1)."));
}

#[test]
fn a_file_that_does_not_arrive_whole_is_not_the_best() {
    let (mut document, topology) = fixture::six_hops();
    for row in &mut document.summary {
        let share = if row.parameters["flows.bulk.over"] == "udp" { 0.8 } else { 1.0 };
        row.figures.insert("hash_ok".to_owned(), json!({ "mean": share, "n": 5 }));
    }
    let page = html::render(&document, &topology, &Value::Null).replace('\u{a0}', " ");
    assert!(page.contains("at loss 20 %, tcp-bbr carries 11.4 ± 0.1 Mbit/s"), "{page}");
    assert!(page.contains("The goodput of tcp-bbr, of those whose file arrives whole, is the highest in"));
    document.summary.retain(|row| row.parameters["flows.bulk.over"] != "tcp-cubic");
    let page = html::render(&document, &topology, &Value::Null).replace('\u{a0}', " ");
    assert!(page.contains("at loss 20 %, the file arrives whole over tcp-bbr only, at 11.4 ± 0.1 Mbit/s."));
}

#[test]
fn every_case_has_its_pictures() {
    let (document, topology) = fixture::six_hops();
    let stems: Vec<String> = plots(&document, &topology).into_iter().map(|plot| plot.file_stem).collect();
    let count = |kind: &str| stems.iter().filter(|stem| stem.contains(kind)).count();
    assert_eq!((count("throughput"), count("latency"), count("series"), count("network")), (1, 5, 5, 15));
}

#[test]
fn of_a_thousand_flows_the_first_have_pictures_and_the_page_says_so() {
    let (mut document, topology) = fixture::six_hops();
    document.runs.truncate(1);
    document.summary.truncate(1);
    let (run, row) = (document.runs[0].clone(), document.summary.remove(0));
    let run = &run;
    document.runs[0].flows = (0..1000)
        .map(|n| hopcast_twin::results::Flow { name: format!("flow{n}"), ..run.flows[0].clone() })
        .collect();
    document.runs[0].series.flows =
        (0..1000).map(|n| (format!("flow{n}"), run.series.flows[0].1.clone())).collect();
    document.runs[0].latency = (0..1000)
        .map(|n| hopcast_twin::results::LatencyCurve { flow: format!("flow{n}"), ..run.latency[0].clone() })
        .collect();
    document.summary = (0..1000).map(|n| Summary { flow: format!("flow{n}"), ..row.clone() }).collect();
    assert_eq!(plots(&document, &topology).len(), 3 * 24 + 1);
    let page = html::render(&document, &topology, &Value::Null);
    assert_eq!(page.matches("Of 1,000 pictures of this kind, 24 are drawn").count(), 3);
    assert!(page.contains("The numbers of the other 976 are in <code>latency.csv</code>."));
    assert_eq!(page.matches("<option").count(), 3 * 24, "a selector offers what there is");
}

#[test]
fn ten_thousand_cases_are_one_line_with_few_marks_and_a_table_that_a_browser_can_lay_out() {
    let (mut document, topology) = fixture::six_hops();
    let (run, row) = (document.runs[0].clone(), document.summary[0].clone());
    let delay = |n: usize| json!({ "delay": format!("{n} us") }).as_object().cloned().unwrap();
    document.runs = (0..10_000).map(|n| Run { parameters: delay(n), ..run.clone() }).collect();
    document.summary = (0..10_000).map(|n| Summary { parameters: delay(n), ..row.clone() }).collect();
    for run in &mut document.runs {
        run.latency[0].points.truncate(5);
    }
    let plots = plots(&document, &topology);
    assert_eq!(plots.len(), 1 + 3 * 24);
    assert!(plots[0].caption.contains("of a line, every 100th mark is drawn"), "{}", plots[0].caption);
    assert!(plots[0].standalone().len() < 100_000);
    let page = html::render(&document, &topology, &Value::Null);
    assert!(page.contains("Here are the first 1,000 of 10,000 rows"));
    assert!(page.len() < 3_000_000, "{}", page.len());
}

#[test]
fn a_picture_brings_its_themes_and_no_placeholder_is_left() {
    let (document, topology) = fixture::six_hops();
    for plot in plots(&document, &topology) {
        let svg = plot.standalone();
        assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("<title>"));
        assert!(!svg.contains("\"#0"), "{}", plot.file_stem);
        assert!(svg.len() < 60_000, "{} has {} bytes", plot.file_stem, svg.len());
    }
}

#[test]
fn links_say_what_they_carried_and_lost() {
    let (document, topology) = fixture::mesh();
    let network = network(&document, &topology);
    let svg = network.standalone();
    assert!(
        svg.contains("93 %")
            && svg.contains("lost 0.30 %")
            && svg.contains("\n90 %\n")
            && svg.contains("lost 1.2 %")
    );
}

#[test]
fn ten_thousand_nodes_draw_only_those_that_were_used() {
    let (mut document, _) = fixture::mesh();
    let node = |n: usize| TopologyNode { name: format!("n{n}"), position: None };
    let link = |n: usize| hopcast_report::TopologyLink {
        name: format!("l{n}"),
        ends: vec![n, n + 1],
        rate_mbps: None,
    };
    let topology = Topology { nodes: (0..10_000).map(node).collect(), links: (0..9_999).map(link).collect() };
    let used = |n: usize| Link {
        from: format!("n{n}"),
        to: format!("n{}", n + 1),
        sent_packets: 9,
        ..Link::default()
    };
    document.runs[0].links = (0..5).map(used).collect();
    assert!(network(&document, &topology).caption.contains("the 6 of 10000 nodes on links"));
    document.runs[0].links = (0..9_999).map(used).collect();
    assert!(!network(&document, &topology).standalone().is_empty());
}

#[test]
fn nothing_run_is_a_page_too() {
    let page = html::render(&Document::default(), &Topology::default(), &Value::Null);
    assert!(page.contains("There are no results."));
}

fn network(document: &Document, topology: &Topology) -> Plot {
    plots(document, topology)
        .into_iter()
        .find(|plot| plot.file_stem.contains("network"))
        .expect("there is one")
}

#[test]
fn a_sentence_to_cite_says_what_was_compared_over_what_and_by_how_much() {
    let (document, topology) = fixture::six_hops();
    let page = html::render(&document, &topology, &json!({ "hopcast": "1.2.3" })).replace('\u{a0}', " ");
    let cited =
        page.split("aria-label=\"Citation\">").nth(1).and_then(|rest| rest.split("</blockquote>").next());
    let cited = cited.expect("there is a citation");
    assert!(cited.starts_with(
        "In “Six lossy hops” (hopcast 1.2.3, seed 1, 5 repeats), udp, tcp-cubic and tcp-bbr were compared over \
         loss 0 %, 5 %, 10 %, 15 % and 20 %; the highest goodput was that of udp at loss 0 % ("
    ));
    let last = "that of udp at loss 20 % (76.5 ± 0.7 Mbit/s, 65.1 ± 0.7 more than tcp-bbr; 26.2 % of its units arrived, \
                all of those of tcp-bbr (11.4 ± 0.1))";
    assert!(cited.contains(last), "{cited}");
}

#[test]
fn what_was_taken_from_another_flow_is_not_cited_as_the_highest_goodput() {
    let (mut document, topology) = fixture::six_hops();
    let others: Vec<_> =
        document.summary.iter().cloned().map(|row| Summary { flow: "other".into(), ..row }).collect();
    document.summary.extend(others);
    let page = html::render(&document, &topology, &Value::Null).replace('\u{a0}', " ");
    assert!(!page.contains("aria-label=\"Citation\"") && !page.contains("highest goodput"));
    let carries = "bulk: beside other flows, from 0.001 ± &lt;0.001 Mbit/s (tcp-cubic at loss 20 %) to 291";
    assert!(page.contains(carries), "{:?}", page.find("beside").map(|at| &page[at - 20..at + 200]));
}

#[test]
fn what_the_command_line_changed_is_said_among_the_findings() {
    let (mut document, topology) = fixture::six_hops();
    document.remarks = vec!["published figures are left out: the command line set `duration`".into()];
    let page = html::render(&document, &topology, &Value::Null).replace('\u{a0}', " ");
    assert!(page.contains("Published figures are left out: the command line set `duration`."));
}

#[test]
fn every_case_has_its_flows_links_and_counters_in_tables_that_sort() {
    let (mut document, topology) = fixture::six_hops();
    let names = [
        "retransmissions",
        "rank_15",
        "rank_16",
        "n1.bytes_payload",
        "n1.bytes_headers",
        "n10.sent",
        "n2.sent",
    ];
    for run in &mut document.runs {
        run.flows[0].counters = names
            .iter()
            .zip([0, 1, 3, 900, 100, 1, 1])
            .map(|(name, count)| ((*name).to_owned(), count))
            .collect();
    }
    let page = html::render(&document, &topology, &Value::Null);
    assert_eq!(page.matches("<details>").count(), 15);
    let case = page.split("<summary>loss 5 % · over tcp-bbr</summary>").nth(1).unwrap();
    let case = case.split("</details>").next().unwrap();
    assert_eq!(case.matches("<table class=\"sortable\">").count(), 4);
    for row in [
        "<td>n0</td><td>n1</td>",
        "<th scope=\"col\" class=\"number\">n1</th><th scope=\"col\" class=\"number\">n2</th><th scope=\"col\" class=\"number\">n10</th>",
        "<td>bytes payload</td><td class=\"number\">900 (90.0 %)</td>",
        "<td>rank: mean</td><td class=\"number\">15.8</td>",
        "<td>rank 16</td><td class=\"number\">75.0</td>",
    ] {
        assert!(case.contains(row), "{row}\n{case}");
    }
    assert!(!case.contains("retransmissions"), "what is zero is left out");
}

#[test]
fn other_published_figures_have_a_plot_of_their_own() {
    let (mut document, topology) = fixture::six_hops();
    for row in &mut document.summary {
        row.published.insert("latency_ms.p99".into(), 25.0);
    }
    let plots = plots(&document, &topology);
    let plot =
        plots.iter().find(|plot| plot.file_stem.contains("figure-bulk-latency-p99")).expect("it is drawn");
    assert!(plot.caption.starts_with("Latency p99 of bulk over loss"), "{}", plot.caption);
    assert!(plot.caption.contains("hollow marks: published figures"));
    assert!(plot.standalone().contains("latency p99 [ms]"));
}

#[test]
fn figures_that_stand_beside_others_come_before_goodput_if_that_does_not() {
    let (mut document, topology) = fixture::six_hops();
    let first = |document: &Document| {
        let page = html::render(document, &topology, &Value::Null);
        let heading = page.split("<section id=\"goodput\">").nth(1).and_then(|rest| rest.split("h2>").nth(1));
        let title = plots(document, &topology)[0].caption.split(" of ").next().unwrap_or_default().to_owned();
        (title, heading.unwrap_or_default().trim_end_matches("</").to_owned())
    };
    let told = |title: &str, heading: &str| (title.to_owned(), heading.to_owned());
    assert_eq!(first(&document), told("Goodput", "Goodput"));
    document.summary.iter_mut().for_each(|row| _ = row.published.insert("latency_ms.p99".into(), 25.0));
    assert_eq!(first(&document), told("Goodput", "Goodput, and other figures beside published ones"));
    document.summary.iter_mut().for_each(|row| _ = row.published.remove("goodput_mbps"));
    document.beside = Some("expected".into());
    assert_eq!(first(&document), told("Latency p99", "Figures beside expected ones, and goodput"));
}

#[test]
fn what_the_scenario_schedules_is_marked_in_the_pictures_over_time() {
    let (mut document, topology) = fixture::six_hops();
    let series = |document: &Document| {
        let plots = plots(document, &topology);
        let plot = plots.into_iter().find(|plot| plot.file_stem.contains("series")).expect("there is one");
        (plot.caption.clone(), plot.standalone())
    };
    let (caption, _) = series(&document);
    assert!(!caption.contains("scheduled events"), "{caption}");
    for run in &mut document.runs {
        run.events = vec![ScheduledEvent { at_s: 6.0, what: "down on n2-n3".into() }];
    }
    let (caption, picture) = series(&document);
    assert!(caption.ends_with("; vertical lines: scheduled events."), "{caption}");
    assert!(picture.contains("down on n2-n3"));
}

#[test]
fn latency_and_time_plots_have_a_mark_for_each_line_in_the_legend_too() {
    let (document, topology) = fixture::six_hops();
    for kind in ["latency", "series"] {
        let plots = plots(&document, &topology);
        let picture =
            plots.iter().find(|plot| plot.file_stem.contains(kind)).expect("there is one").standalone();
        // The second line's mark is a square, the third's a triangle: one in the legend and six on the line.
        for line in ["f-s1", "f-s2"] {
            let marks = picture.matches(&format!("<polygon class=\"{line}\"")).count();
            assert!(marks >= 7, "{kind}: {marks} marks of {line}");
        }
    }
}

#[test]
fn a_page_names_the_publication_that_it_repeats_and_has_it_as_bibtex() {
    let (mut document, topology) = fixture::six_hops();
    document.source = Some(Publication {
        authors: vec!["Ann <Author>".into()],
        title: "Lossy hops".into(),
        year: 2024,
        section: Some("section 9".into()),
        ..Publication::default()
    });
    let page = html::render(&document, &topology, &Value::Null);
    assert!(page.contains("After Ann &lt;Author&gt;, “Lossy hops”, 2024, section 9."), "the reference");
    assert!(page.contains("@misc{author2024,\n  author = {Ann &lt;Author&gt;},"), "the entry");
    assert!(page.contains("@software{hopcast,"));
}

#[test]
fn figures_that_nobody_published_are_called_measured() {
    let (mut document, topology) = fixture::six_hops();
    let page = html::render(&document, &topology, &Value::Null);
    assert!(page.contains(">published<") && !page.contains(">measured<"));
    document.beside = Some("measured".into());
    let page = html::render(&document, &topology, &Value::Null);
    assert!(page.contains(">measured<") && !page.contains(">published<"));
}

#[test]
fn what_is_not_told_apart_ends_its_sentence_with_one_full_stop() {
    let (mut document, topology) = fixture::six_hops();
    document
        .runs
        .retain(|run| run.parameters["events.loss.loss"] == "0 %" && run.flows[0].protocol != "tcp-bbr");
    document.summary.retain(|row| row.parameters["events.loss.loss"] == "0 %" && row.protocol != "tcp-bbr");
    for row in &mut document.summary {
        row.figures["goodput_mbps"] = json!({ "mean": 100.0, "ci95": 10.0, "n": 5 });
    }
    let page = html::render(&document, &topology, &Value::Null).replace('\u{a0}', " ");
    assert!(page.contains("), not told apart. ±: 95 % confidence interval."), "{page}");
}
