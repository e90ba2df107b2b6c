//! Two runs are distinguished where they differ, and only there.

#![allow(clippy::unwrap_used)] // in what the tests share

mod fixture;

use hopcast_report::comparison::{Comparison, page, table};
use hopcast_report::table::TableOptions;
use hopcast_twin::results::Document;
use serde_json::{Value, json};

fn compare(a: &Document, b: &Document) -> Comparison {
    Comparison::new([a, b], ["before".into(), "after".into()])
}

/// Sets the goodput of one row of the summary.
fn plant(document: &mut Document, row: usize, mean: f64, ci95: f64) {
    document.summary[row]
        .figures
        .insert("goodput_mbps".into(), json!({ "mean": mean, "ci95": ci95, "n": 5 }));
}

#[test]
fn a_planted_difference_is_found_and_no_other() {
    let (a, _) = fixture::six_hops();
    let mut b = a.clone();
    let goodput = a.summary[4].figures["goodput_mbps"]["mean"].as_f64().unwrap();
    let ci95 = a.summary[4].figures["goodput_mbps"]["ci95"].as_f64().unwrap();
    plant(&mut b, 4, goodput + 3.0 * ci95, ci95);
    let comparison = compare(&a, &b);
    let differ: Vec<_> = comparison
        .figures
        .iter()
        .filter(|compared| compared.difference.significant == Some(true))
        .map(|compared| (&compared.case.parameters, compared.figure.as_str()))
        .collect();
    assert_eq!(differ, [(&a.summary[4].parameters, "goodput_mbps")]);
    assert!(comparison.only_a.is_empty() && comparison.only_b.is_empty());
    let text = table(&comparison, TableOptions::default());
    assert_eq!(text.matches("better").count(), 1, "{text}");
    assert!(text.contains("A: before; B: after"), "{text}");
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let (document, _) = fixture::six_hops();
    let comparison = compare(&document, &document);
    assert!(comparison.figures.len() > 100);
    assert!(comparison.figures.iter().all(|compared| compared.difference.significant != Some(true)));
    assert!(table(&comparison, TableOptions::default()).contains("differs by more than chance"));
}

#[test]
fn less_is_worse_and_of_latency_better() {
    let (a, _) = fixture::six_hops();
    let mut b = a.clone();
    plant(&mut b, 0, 100.0, 1.0);
    let latency = b.summary[0].figures["latency_ms"].as_object_mut().unwrap();
    latency.insert("p99".into(), json!({ "mean": 1.0, "ci95": 0.1, "n": 5 }));
    let text = table(&compare(&a, &b), TableOptions::default());
    let verdict = |figure: &str| {
        let line = text.lines().find(|line| line.contains(figure)).unwrap_or_default();
        line.split_whitespace().last().unwrap_or_default().to_owned()
    };
    assert_eq!((verdict("goodput").as_str(), verdict("latency p99").as_str()), ("worse", "better"), "{text}");
}

#[test]
fn what_only_one_has_is_named() {
    let (a, _) = fixture::six_hops();
    let mut b = a.clone();
    let gone = b.summary.remove(7);
    let comparison = compare(&a, &b);
    assert_eq!((comparison.only_a.len(), comparison.only_b.len()), (1, 0));
    assert_eq!(comparison.only_a[0].parameters, gone.parameters);
    assert!(table(&comparison, TableOptions::default()).contains("only in before: 10 % tcp-cubic\n"));
}

#[test]
fn single_repeats_are_compared_without_a_verdict() {
    let (document, _) = fixture::mesh();
    let comparison = compare(&document, &document);
    assert!(comparison.figures.iter().all(|compared| compared.difference.significant.is_none()));
    assert!(table(&comparison, TableOptions::default()).contains("too few repeats to tell"));
}

#[test]
fn the_page_holds_each_figure_and_trusts_no_name() {
    let (a, _) = fixture::six_hops();
    let text = serde_json::to_string(&a).unwrap().replace("tcp-bbr", "<script>alert(1)</script>");
    let evil: Document = serde_json::from_str(&text).unwrap();
    let page = page(&compare(&evil, &evil), [&json!({ "command": "hopcast run <x>" }), &Value::Null]);
    assert!(!page.contains("<script>alert") && page.contains("hopcast run &lt;x&gt;"));
    assert!(!page.contains("{{"));
    // A heading, and five figures of each of fifteen flows.
    assert!(page.matches("<tr").count() > 60, "{}", page.matches("<tr").count());
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn scripts_read_the_comparison_as_json() {
    let (document, _) = fixture::six_hops();
    let json = serde_json::to_value(compare(&document, &document)).unwrap();
    let figure = &json["figures"][0];
    for key in ["parameters", "flow", "protocol", "figure", "a", "b", "difference", "ci95", "significant"] {
        assert!(figure.get(key).is_some(), "figures have `{key}`");
    }
    assert_eq!((&json["a"], &json["b"]), (&json!("before"), &json!("after")));
}
