//! Shards of a sweep, and joining them.

use std::mem::take;

use hopcast_twin::results::{Document, Run, Summary};
use hopcast_twin::saving::relate;
use hopcast_twin::stats::summarise;
use serde_json::{Value, json};

use crate::RunDirectory;
use crate::error::JoinError;

/// The shard of a sweep that a directory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its number, from 1.
    pub number: u64,
    /// Number of shards.
    pub of: u64,
    /// Identity of the sweep.
    pub sweep: String,
}

impl Shard {
    /// Its entry in `manifest.json`.
    pub fn to_json(&self) -> Value {
        json!({ "number": self.number, "of": self.of, "sweep": self.sweep })
    }

    fn of(manifest: &Value) -> Option<Self> {
        let shard = manifest.get("shard")?;
        let number = |key| shard.get(key).and_then(Value::as_u64);
        let sweep = shard.get("sweep").and_then(Value::as_str)?.to_owned();
        let shard = Self { number: number("number")?, of: number("of")?, sweep };
        (1..=shard.of).contains(&shard.number).then_some(shard)
    }
}

impl RunDirectory {
    /// The shard in this directory; `None` for a whole sweep.
    pub fn shard(&self) -> Option<Shard> {
        Shard::of(&self.manifest)
    }
}

/// Joins all shards of a sweep, with `names` for messages. The document equals that of the sweep run in one piece.
///
/// # Errors
/// Shards that are missing, cut short, given twice or of another sweep.
pub fn join(shards: Vec<RunDirectory>, names: &[String]) -> Result<RunDirectory, JoinError> {
    let mut found: Vec<(Shard, RunDirectory, &str)> = Vec::new();
    for (directory, name) in shards.into_iter().zip(names) {
        let shard = directory.shard().ok_or_else(|| JoinError::NotAShard(name.clone()))?;
        if directory.document.interrupted {
            return Err(JoinError::CutShort(name.clone()));
        }
        found.push((shard, directory, name));
    }
    found.sort_by_key(|(shard, ..)| shard.number);
    let Some((first, directory, name)) = found.first() else {
        return Err(JoinError::Nothing);
    };
    for (shard, _, other) in &found {
        if (&shard.sweep, shard.of) != (&first.sweep, first.of) {
            return Err(JoinError::OtherSweep { first: (*name).to_owned(), other: (*other).to_owned() });
        }
    }
    if let Some(pair) = found.windows(2).find(|pair| pair[0].0.number == pair[1].0.number) {
        let names = [pair[0].2.to_owned(), pair[1].2.to_owned()];
        return Err(JoinError::Twice { names, number: pair[0].0.number, of: first.of });
    }
    let there = |number: &u64| found.iter().any(|(shard, ..)| shard.number == *number);
    // With fewer runs than shards, the last shards have no runs and need not be given.
    let number = |key| directory.manifest.get(key).and_then(Value::as_u64);
    let runs = number("cases").zip(number("repeats")).map(|(cases, repeats)| cases.saturating_mul(repeats));
    let missing: Vec<String> = (1..=first.of.min(runs.unwrap_or(u64::MAX)))
        .filter(|number| !there(number))
        .map(|number| format!("{number}/{}", first.of))
        .collect();
    if !missing.is_empty() {
        return Err(JoinError::Missing(missing));
    }
    Ok(joined(found.into_iter().map(|(_, directory, _)| directory).collect()))
}

/// Joins shards in order, taking a run of each in turn, as the runs were distributed.
fn joined(shards: Vec<RunDirectory>) -> RunDirectory {
    let took: f64 = shards.iter().filter_map(|shard| shard.manifest.get("took_s")?.as_f64()).sum();
    let mut manifest = shards[0].manifest.clone();
    if let Some(entries) = manifest.as_object_mut() {
        entries.remove("shard");
        entries.insert("shards".into(), shards.len().into());
        entries.insert("took_s".into(), took.into());
        if let Some(command) = entries.get("command").and_then(Value::as_str) {
            entries.insert("command".into(), without_shard(command).into());
        }
    }
    let topology = shards[0].topology.clone();
    let mut documents: Vec<Document> = shards.into_iter().map(|shard| shard.document).collect();
    let published: Vec<Summary> =
        documents.iter_mut().flat_map(|document| take(&mut document.summary)).collect();
    let mut dealt: Vec<_> =
        documents.iter_mut().map(|document| take(&mut document.runs).into_iter()).collect();
    let mut runs: Vec<Run> = Vec::new();
    for turn in (0..dealt.len()).cycle() {
        match dealt[turn].next() {
            Some(run) => runs.push(run),
            None => break,
        }
    }
    // In its shard a run may have been without the one that it is compared with.
    relate(&mut runs, &documents[0].reference);
    let mut summary = summarise(&runs, &[]);
    let key = |row: &Summary| (serde_json::to_string(&row.parameters).unwrap_or_default(), row.flow.clone());
    let figures: std::collections::BTreeMap<_, _> = published
        .iter()
        .filter(|row| !row.published.is_empty())
        .map(|row| (key(row), &row.published))
        .collect();
    for row in &mut summary {
        row.published = figures.get(&key(row)).map(|figures| (*figures).clone()).unwrap_or_default();
    }
    // All else is that of the scenario, and so of each shard.
    let document = Document { runs, summary, ..documents.swap_remove(0) };
    RunDirectory { document, topology, manifest }
}

/// The command that runs the whole sweep of a shard's command.
fn without_shard(command: &str) -> String {
    // A quoted space separates no words.
    let mut quoted = false;
    let mut words = command.split(|c: char| {
        quoted ^= c == '\'';
        c == ' ' && !quoted
    });
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "--shard" | "--out" => drop(words.next()),
            _ if word.starts_with("--shard=") || word.starts_with("--out=") => {}
            _ => kept.push(word),
        }
    }
    kept.join(" ")
}
