//! The table has the main figures at any width.

mod fixture;

use hopcast_report::table::{TableOptions, render};
use hopcast_twin::results::{Document, Summary};

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
    let words: Vec<&str> = line(&table, &["214.4"]).split_whitespace().collect();
    let published = words.iter().position(|word| *word == "214.4").unwrap();
    assert_eq!(words[published + 1], "1.01");
    let cubic: Vec<&str> = line(&table, &["tcp-bbr"]).split_whitespace().collect();
    assert_eq!(&cubic[4..6], ["–", "–"], "nothing was published of BBR");
}

#[test]
fn published_reliability_stands_behind_ours_where_there_is_room_for_it() {
    let mut document = fixture::six_hops().0;
    for row in &mut document.summary {
        row.published.insert("reliability".into(), 1.0);
    }
    let heading = |width| {
        render(&document, plain(width)).lines().next().unwrap().split("  ").fold(
            String::new(),
            |mut out, part| {
                if !part.trim().is_empty() {
                    out.push_str(&format!("{}|", part.trim()));
                }
                out
            },
        )
    };
    assert!(heading(None).contains(
        "|goodput|published|ours ÷|of min-cut|of payload bound|reliability|published|ours ÷|latency"
    ));
    assert!(heading(Some(139)).contains("|goodput|published|ours ÷|of min-cut|reliability|latency"));
    let narrow = render(&document, plain(Some(139)));
    assert!(narrow.contains(
        "left out for want of width: of payload bound, published reliability, ours ÷ published reliability"
    ));
}

#[test]
fn an_interval_is_shown_however_wide_it_is() {
    let mut document = fixture::six_hops().0;
    let figures = &mut document.summary[0].figures;
    figures.insert("goodput_mbps".into(), leaf(2590.0, 14995.0));
    figures.insert("reliability".into(), leaf(0.917, 1.059));
    let table = render(&document, plain(None));
    let row = line(&table, &["2,590"]);
    assert!(row.contains("± 14,995") && row.contains("91.7 ± 105.9"), "{table}");
    assert!(!table.contains("too few repeats"));
}

#[test]
fn where_nothing_is_random_there_is_no_interval() {
    let mut document = fixture::six_hops().0;
    document.summary[0].figures.insert("goodput_mbps".into(), leaf(287.25, 0.0));
    let table = render(&document, plain(None));
    let row = line(&table, &["287.2"]);
    let words: Vec<&str> = row.split_whitespace().skip_while(|word| !word.starts_with("287.2")).collect();
    assert_ne!(words[1], "±", "{table}");
    assert!(!row.contains("± 0 ") && table.contains("without ±: all repeats gave the same"), "{table}");
    for row in &mut document.summary {
        row.figures.clear();
        row.figures.insert("goodput_mbps".into(), leaf(287.25, 0.0));
    }
    let table = render(&document, plain(None));
    assert_eq!(table.matches('±').count(), 1, "{table}");
    assert!(table.contains("without ±: all repeats gave the same"), "{table}");
}

fn leaf(mean: f64, ci95: f64) -> serde_json::Value {
    serde_json::json!({ "mean": mean, "ci95": ci95, "n": 5 })
}

/// Whether the figure of this text, the last but its interval, is marked as the best.
fn is_best(table: &str, text: &str) -> bool {
    let row = line(table, &[&format!(" {text} ")]);
    row.split_once(text).is_some_and(|(_, rest)| rest.contains('*'))
}

#[test]
fn the_best_latency_is_of_who_carries_something() {
    let mut document = fixture::six_hops().0;
    document.summary.truncate(3);
    // Of the first case: one that carries next to nothing at once, one that carries half of the most, one that is slow.
    for (row, (goodput, reliability, latency)) in
        document.summary.iter_mut().zip([(0.01, 1.0, 1.25), (51.0, 1.0, 7.5), (100.0, 1.0, 33.5)])
    {
        row.figures.insert("goodput_mbps".into(), leaf(goodput, 0.001));
        row.figures.insert("reliability".into(), leaf(reliability, 0.0));
        row.figures.insert("latency_ms".into(), serde_json::json!({ "p99": leaf(latency, 0.001) }));
    }
    let table = render(&document, plain(None));
    assert!(!is_best(&table, "1.25") && is_best(&table, "7.50") && !is_best(&table, "33.5"), "{table}");
    // Where links go down it is of who delivers nearly all of what others do.
    document.summary[1].figures.insert("reliability".into(), leaf(0.9, 0.001));
    let table = render(&document, plain(None));
    assert!(is_best(&table, "7.50"), "{table}");
    for row in &mut document.summary {
        row.figures.insert("reliability_bound".into(), leaf(1.0, 0.0));
        row.figures.insert("goodput_mbps".into(), leaf(100.0, 0.001));
    }
    let table = render(&document, plain(None));
    assert!(is_best(&table, "1.25") && !is_best(&table, "7.50"), "{table}");
    for row in &mut document.summary {
        row.figures.remove("reliability_bound");
    }
    document.summary[0].figures.insert("goodput_mbps".into(), leaf(0.01, 0.001));
    // Nor is it of who delivers less than half of what it was given.
    document.summary[1].figures.insert("reliability".into(), leaf(0.4, 0.001));
    let table = render(&document, plain(None));
    assert!(!is_best(&table, "1.25") && !is_best(&table, "7.50") && is_best(&table, "33.5"), "{table}");
}

#[test]
fn nobody_is_the_best_by_what_it_took_from_another_flow() {
    let (mut document, _) = fixture::six_hops();
    let alone = render(&document, plain(None));
    assert!(alone.contains('*') && alone.contains("* best"));
    // Beside each flow another one in the same run.
    let others: Vec<_> =
        document.summary.iter().cloned().map(|row| Summary { flow: "other".into(), ..row }).collect();
    document.summary.extend(others);
    for row in &mut document.summary {
        row.figures.retain(|name, _| {
            ["goodput_mbps", "min_cut_fraction", "payload_bound_fraction"].contains(&&**name)
        });
    }
    let crowded = render(&document, plain(None));
    assert!(crowded.contains("other") && !crowded.contains('*'), "{crowded}");
}

#[test]
fn what_is_said_of_published_figures_stands_below_the_table() {
    let mut document = fixture::six_hops().0;
    document.remarks = vec!["published figures are left out: the command line set `duration`".into()];
    assert!(render(&document, plain(None)).contains("left out: the command line set `duration`\n"));
}

#[test]
fn a_flow_without_a_window_has_no_goodput_in_the_table() {
    let mut document = fixture::mesh().0;
    document.summary[1].figures.insert("goodput_mbps".into(), serde_json::Value::Null);
    let table = render(&document, plain(None));
    assert!(line(&table, &["image"]).contains('–') && !table.contains('†'), "{table}");
}

#[test]
fn eighty_columns_hold_the_important_ones_and_name_the_rest() {
    let table = render(&fixture::six_hops().0, plain(Some(80)));
    assert!(table.lines().all(|line| line.chars().count() <= 80));
    assert!(table.contains("goodput") && table.contains("published"));
    assert!(table.contains("left out for want of width: of min-cut, of payload bound, latency p50"));
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
