//! Shards are joined to what the sweep would have been in one piece, or it is said what is missing.

#![allow(clippy::unwrap_used)] // in what the tests share

mod fixture;

use hopcast_report::{RunDirectory, Shard, join};
use hopcast_twin::results::{Document, Publication};
use hopcast_twin::stats::summarise;
use serde_json::json;

const OF: usize = 4;

/// The document in one piece, and as shards with the names of their directories.
fn dealt() -> (Document, Vec<RunDirectory>, Vec<String>) {
    let (mut document, topology) = fixture::six_hops();
    document.beside = Some("measured".into());
    document.source = Some(Publication { title: "Six hops".into(), year: 2024, ..Publication::default() });
    document.axis = Some("topology.chain.hops".into());
    document.remarks = vec!["`--quick` shortens its runs".into()];
    let published = document.summary.clone();
    let summary = |document: &Document| {
        let mut summary = summarise(&document.runs, &[]);
        for row in &mut summary {
            let same = published.iter().find(|other| other.parameters == row.parameters).unwrap();
            row.published = same.published.clone();
        }
        summary
    };
    document.summary = summary(&document);
    let shard = |number: usize| {
        let runs = document.runs.iter().skip(number).step_by(OF).cloned().collect();
        let mut part = Document { runs, ..document.clone() };
        part.summary = summary(&part);
        let shard = Shard { number: number as u64 + 1, of: OF as u64, sweep: "abc".into() };
        let command = format!("hopcast run x.yaml --shard {}/4 --seed 1", number + 1);
        let manifest = json!({ "shard": shard.to_json(), "command": command, "took_s": 1.5 });
        RunDirectory { document: part, topology: topology.clone(), manifest }
    };
    let shards = (0..OF).map(shard).collect();
    (document, shards, (1..=OF).map(|number| format!("part{number}")).collect())
}

#[test]
fn all_shards_in_any_order_are_the_whole() {
    let (whole, mut shards, mut names) = dealt();
    shards.rotate_left(3);
    names.rotate_left(3);
    let joined = join(shards, &names).unwrap();
    assert_eq!(joined.document, whole);
    assert_eq!(joined.shard(), None);
    assert_eq!(joined.manifest["command"], "hopcast run x.yaml --seed 1");
    assert_eq!((&joined.manifest["shards"], &joined.manifest["took_s"]), (&json!(4), &json!(6.0)));
}

#[test]
fn a_missing_shard_is_named() {
    let (_, mut shards, mut names) = dealt();
    for list in [2, 0] {
        shards.remove(list);
        names.remove(list);
    }
    assert_eq!(join(shards, &names).unwrap_err().to_string(), "missing: shard 1/4, 3/4");
}

#[test]
fn shards_that_do_not_belong_together_are_named() {
    let (_, mut shards, names) = dealt();
    let mut twice = shards.clone();
    twice[3] = twice[2].clone();
    assert_eq!(join(twice, &names).unwrap_err().to_string(), "part3 and part4 are both shard 3 of 4");
    let mut cut = shards.clone();
    cut[1].document.interrupted = true;
    assert!(join(cut, &names).unwrap_err().to_string().starts_with("part2: this shard was cut short"));
    shards[2].manifest["shard"]["sweep"] = json!("other");
    assert!(
        join(shards.clone(), &names)
            .unwrap_err()
            .to_string()
            .starts_with("part3: expected a shard of the same sweep as part1")
    );
    shards[2].manifest = json!({});
    assert!(
        join(shards, &names).unwrap_err().to_string().contains("part3: expected a shard, found a whole run")
    );
}
