//! The study of MEADcast with members that come and go: what they miss, and what their coming and going costs.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::document;
use crate::common::studies::{parameter, study};
use hopcast_runner::load_text;
use hopcast_twin::results::Run;
use hopcast_twin::scenario::Overrides;

/// Datagrams in a second.
const RATE: f64 = 50.0;
/// Links of the longest path.
const LINKS: f64 = 9.0;

fn counter(run: &Run, name: &str) -> u64 {
    run.flows[0].counters.get(name).copied().unwrap_or(0)
}

#[test]
fn a_member_misses_what_is_sent_while_its_join_is_on_the_way() {
    let document = study("meadcast-churn", &[]);
    let mut savings = Vec::new();
    for run in &document.runs {
        let [delay, rate] =
            ["events.paths.delay", "groups.clients.churn.rate"].map(|path| parameter(run, path));
        let form = parameter(run, "groups.clients.delivery");
        let case = format!("{delay} {rate} {form}");
        let figures = &run.flows[0].figures;
        let missed = figures.sent_units - figures.delivered_units;
        let joins = counter(run, "directory_joins");
        if matches!(form, "unicast" | "list") {
            assert_eq!((missed, joins), (0, 0), "{case}");
        } else {
            // A request, a challenge and another request; those of the beginning are before the stream.
            let way = LINKS * if delay == "10ms" { 0.010 } else { 0.0002 };
            let most = (joins - 42) as f64 * (3.0 * way * RATE + 1.0);
            assert!(missed as f64 <= most, "{case}: {missed} of at most {most}");
            assert_eq!(missed > 0, joins > 42 && (delay == "10ms" || rate == "10 /s"), "{case}: {missed}");
            assert_eq!(counter(run, "directory_refused_forged"), 0, "{case}");
            // Requests and answers, with their headers, on each link of the longest path.
            let requests = counter(run, "directory_member_requests") + counter(run, "directory_challenges");
            let bytes = 2.0 * requests as f64 * (88.0 + 38.0) * LINKS;
            assert!(bytes < 0.03 * figures.network_bytes.unwrap() as f64, "{case}: {bytes}");
        }
        savings.push((case, figures.network_saving.unwrap_or(0.0)));
    }
    let saving = |case: &str| savings.iter().find(|(found, _)| found == case).unwrap().1;
    for delay in ["100us", "10ms"] {
        for rate in ["0.01 /s", "0.1 /s", "1 /s", "10 /s"] {
            let [list, directory, asking, revision] = ["list", "directory", "asking", "revision"]
                .map(|form| saving(&format!("{delay} {rate} {form}")));
            // The messages are not to be seen in the load.
            assert!((list - directory).abs() < 0.01, "{delay} {rate}: {list} {directory}");
            assert!(asking >= directory && revision > asking + 0.1, "{delay} {rate}: {asking} {revision}");
        }
        // Of those that have just joined each has packets of its own for some seconds.
        assert!(saving(&format!("{delay} 10 /s directory")) < 0.36);
        assert!(saving(&format!("{delay} 10 /s asking")) > 0.37);
        assert!(saving(&format!("{delay} 0.01 /s directory")) > 0.61);
    }
    assert_eq!(document.runs.len(), 2 * 4 * 5);
}

fn group(delivery: &str, over: &str, churn: &str) -> String {
    format!(
        "
duration: 30 s
topology: {{ star: {{ leaves: 5, link: {{ rate: 10 Mbit/s, delay: 2 ms }} }} }}
groups: [{{ name: g, members: [n1, n2], delivery: {delivery}{churn} }}]
services: [{{ name: mead, run: meadcast-router, on: hub }}]
flows: [{{ name: f, from: n0, to: g, ip: 6, over: {over}, app: {{ cbr: {{ rate: 400 kbit/s, size: 1000 B, start: 1 s }} }} }}]
"
    )
}

#[test]
fn a_sender_has_one_flow_to_a_group_whose_members_join_by_a_directory() {
    let second =
        "{ name: h, from: n0, to: g, ip: 6, over: udp, app: { cbr: { rate: 1 kbit/s, size: 100 B } } }";
    for (delivery, refused) in [("{ meadcast: { directory: on } }", true), ("meadcast", false)] {
        let text = group(delivery, "udp", "");
        let text = format!("{}, {second}]\n", text.trim_end().strip_suffix(']').unwrap());
        let found = load_text(Path::new("bad.yaml"), &text, &Overrides::default());
        let error = found.err().map(|error| error.to_string()).unwrap_or_default();
        let expected = "members of `g` join by a `directory`, and `n0` has a flow to it already";
        assert_eq!(error.contains(expected), refused, "{error}");
        assert_eq!(error.is_empty(), !refused, "{error}");
    }
}

/// By the next hop, since there is no route to a list whose first receiver is cut off.
#[test]
fn one_that_is_cut_off_is_sent_to_no_longer_than_it_holds() {
    let delivery =
        "{ meadcast: { delay: 1 s, min-leaves: 1, next-hop: on, directory: on, directory-hold: 3 s } }";
    let text = group(delivery, "udp", "") + "events: [{ at: 10 s, links: hub-n1, down: true }]\n";
    let run = document(&text).runs.remove(0);
    assert_eq!(counter(&run, "directory_joins"), 2);
    assert_eq!(counter(&run, "directory_ended"), 1);
    // One of two has all, the other those of the first 9 s of 29.
    let share = run.flows[0].figures.reliability.unwrap();
    assert!((share - (1.0 + 9.0 / 29.0) / 2.0).abs() < 0.01, "{share}");
}

#[test]
fn churn_is_drawn_from_the_seed_at_its_rate() {
    let churn = ", churn: { among: [n1, n2, n3, n4], rate: 2 /s, from: 5 s, until: 25 s }";
    let changes = |text: &str, overrides: &Overrides| {
        let case = load_text(Path::new("t.yaml"), text, overrides).unwrap().cases.remove(0);
        let members = &case.scenario.groups[0].members;
        let spans: Vec<_> = members.iter().map(|member| member.spans.clone()).collect();
        let joins: usize = spans.iter().map(Vec::len).sum();
        let leaves = spans.iter().flatten().filter(|(_, until)| until.is_some()).count();
        // Those of the beginning have joined without a change.
        (spans, joins - 2 + leaves)
    };
    let text = group("unicast", "udp", churn);
    let (spans, number) = changes(&text, &Overrides::default());
    assert!((25..=55).contains(&number), "{number}");
    assert_eq!(changes(&text, &Overrides::default()).0, spans);
    assert_ne!(changes(&text, &Overrides { seed: Some(7), ..Overrides::default() }).0, spans);
    let run = document(&text).runs.remove(0);
    assert_eq!(run.flows[0].figures.reliability, Some(1.0));
}

#[test]
fn what_cannot_churn_or_be_joined_is_refused_in_one_line() {
    let by_directory = "{ meadcast: { directory: on } }";
    for (delivery, over, churn, message) in [
        ("unicast", "udp", ", churn: { among: [], rate: 1 /s }", "`among`: expected at least one node"),
        ("unicast", "udp", ", churn: { among: n1 }", "`rate`"),
        (
            by_directory,
            "disservice",
            "",
            "members join the `directory` of one sender, and this transport's all send",
        ),
        (
            "{ meadcast: { directory: on, directory-hold: 500 ms } }",
            "udp",
            "",
            "`directory-hold`: expected whole seconds from 1 s to 18 h, found `500 ms`",
        ),
        (
            "unicast",
            "udp",
            ", churn: { among: n1, rate: 1 /s, from: 9 s, until: 9 s }",
            "`churn`: nothing is from 9s to 9s",
        ),
    ] {
        let text = group(delivery, over, churn);
        let error = load_text(Path::new("bad.yaml"), &text, &Overrides::default()).unwrap_err().to_string();
        assert!(error.contains(message) && error.lines().count() == 1, "{error}");
    }
}
