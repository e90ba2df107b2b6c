//! The table says what a person looks for, at any width.

mod fixture;

use hopcast_report::table::{TableOptions, render};
use hopcast_twin::results::Document;

fn plain(width: Option<u16>) -> TableOptions {
    TableOptions { width, color: false }
}

fn line<'t>(table: &'t str, parts: &[&str]) -> &'t str {
    table.lines().find(|line| parts.iter().all(|part| line.contains(part))).unwrap_or_default()
}

#[test]
fn headings_are_short_and_have_units() {
    let table = render(&fixture::six_hops().0, plain(None));
    let heading: Vec<&str> = table.lines().take(2).collect();
    for title in
        ["loss", "over", "goodput", "of min-cut", "reliability", "latency p99", "published", "ours ÷"]
    {
        assert!(heading[0].contains(title), "{title}");
    }
    assert!(heading[1].contains("[Mbit/s]") && heading[1].contains("[%]") && heading[1].contains("[ms]"));
    assert!(!table.contains("flow") && !table.contains("completed"), "columns that say nothing are left out");
}

#[test]
fn the_best_of_each_loss_is_marked_and_the_mark_explained() {
    let table = render(&fixture::six_hops().0, plain(None));
    let twenty: Vec<&str> = table.lines().skip_while(|line| !line.starts_with(" 20 %")).take(3).collect();
    assert!(twenty[0].contains("udp") && twenty[0].contains('*'));
    assert!(table.contains("* best for each loss; ± 95 % confidence interval over repeats"));
}

#[test]
fn published_figures_stand_beside_ours_with_their_ratio() {
    let table = render(&fixture::six_hops().0, plain(None));
    assert!(line(&table, &["tcp-cubic", " 0.05 "]).contains("1.04"));
    assert!(line(&table, &["214.4"]).ends_with("1.01"));
    assert!(line(&table, &["tcp-bbr"]).ends_with("–           –"));
}

#[test]
fn eighty_columns_hold_the_important_ones_and_name_the_rest() {
    let table = render(&fixture::six_hops().0, plain(Some(80)));
    assert!(table.lines().all(|line| line.chars().count() <= 80));
    assert!(table.contains("goodput") && table.contains("published"));
    assert!(table.contains("left out for want of width: of min-cut, latency p50"));
}

#[test]
fn thirty_columns_still_hold_names_and_goodput() {
    let table = render(&fixture::six_hops().0, plain(Some(34)));
    assert!(table.lines().all(|line| line.chars().count() <= 34), "{table}");
    assert!(table.contains("goodput") && table.contains("udp"));
}

#[test]
fn points_stand_below_each_other() {
    let table = render(&fixture::six_hops().0, plain(None));
    let rows = table.lines().skip(3).take(15);
    let points: Vec<Option<usize>> = rows.map(|row| row.chars().position(|c| c == '.')).collect();
    assert!(points.iter().all(|point| *point == points[0]), "{table}");
}

#[test]
fn colours_change_nothing_but_the_colours() {
    let document = fixture::six_hops().0;
    let colourful = render(&document, TableOptions { width: Some(100), color: true });
    let mut bare = String::new();
    let mut rest = colourful.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        bare.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    bare.push_str(rest);
    assert!(colourful.contains("\u{1b}[1;32m"));
    assert_eq!(bare, render(&document, plain(Some(100))));
}

#[test]
fn several_flows_are_named_and_a_file_says_whether_it_is_intact() {
    let table = render(&fixture::mesh().0, plain(None));
    let image = line(&table, &["image"]);
    assert!(image.contains("norm") && image.contains("17.2") && image.contains("yes"), "{table}");
    assert!(!table.contains('±'), "one repeat has no interval");
    assert!(!table.contains('*'), "flows with tasks of their own are not rivals");
    assert!(table.contains("interrupted"));
}

#[test]
fn names_cannot_command_the_terminal() {
    let (mut document, _) = fixture::mesh();
    document.summary[0].flow = "a\u{1b}[31m\u{2060}b".into();
    let table = render(&document, plain(None));
    assert!(table.contains("a[31mb") && !table.contains('\u{1b}'));
}

#[test]
fn nothing_run_is_said_so() {
    assert_eq!(render(&Document::default(), plain(Some(80))), "no results\n");
}
