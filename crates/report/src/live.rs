//! Remarks on live runs: whether the machine kept up, and reasons why figures differ from those beside them.

use hopcast_twin::results::{Document, Live};

use crate::figure::figure;
use crate::grid::whose;
use crate::number::{number, percent};
use crate::study::{Study, value};

/// Maximum number of failures of programs that are named. Chosen: more make the remark too long to read.
const MAX_NAMED: usize = 6;
/// Maximum relative difference from the figures beside ours that needs no reason. Chosen: smaller ones are within the
/// variation of live runs; with a larger one, real differences stay unexplained.
const MAX_UNEXPLAINED: f64 = 0.10;

/// Remarks on the machine, and on the figures left out because it did not keep up; none for runs in virtual time.
pub(crate) fn machine(document: &Document) -> Vec<String> {
    let lives: Vec<&Live> = document.runs.iter().filter_map(|run| run.live.as_ref()).collect();
    let Some(worst) = lives.iter().map(|live| live.lateness_us[1]).max_by(f64::total_cmp) else {
        return Vec::new();
    };
    let (frames, late) =
        lives.iter().fold((0, 0), |(frames, late), live| (frames + live.frames, late + live.late_frames));
    let mut notes = vec![format!(
        "live, on this machine's kernel: in the worst run 99 % of frames came at most {} ms late; {} % of all more than 1 ms",
        number(worst / 1e3),
        percent(late as f64 / (frames as f64).max(1.0) * 100.0),
    )];
    let invalid: Vec<&str> = lives.iter().filter_map(|live| live.invalid.as_deref()).collect();
    if let Some(first) = invalid.first() {
        let (count, all) = (invalid.len(), lives.len());
        notes.push(format!("{count} of {all} runs are invalid and left out of the means: {first}"));
    }
    let again: u64 = lives.iter().map(|live| live.retries).sum();
    if again > 0 {
        notes.push(format!("runs made again because the machine had been too busy: {again}"));
    }
    let routes = lives.iter().map(|live| live.routes_late_ms).fold(0.0, f64::max);
    if routes > 0.0 {
        notes.push(format!("routes were changed at most {} ms after their time", number(routes)));
    }
    let links: f64 = lives.iter().map(|live| live.emulator_cpu_s).sum();
    let nodes: f64 = lives.iter().flat_map(|live| live.node_cpu_s.values()).sum();
    notes.push(format!(
        "processor time of all runs: {} s for the links, {} s for the nodes",
        number(links),
        number(nodes)
    ));
    // Runs in which something failed come first.
    let (failed, well): (Vec<&Live>, Vec<&Live>) = lives.iter().partition(|live| live.failed_programs > 0);
    let programs: Vec<_> = failed.iter().chain(&well).flat_map(|live| &live.programs).collect();
    notes.extend(programs.iter().take(MAX_NAMED).map(|(name, outcome)| format!("{name}: {outcome}")));
    if programs.len() > MAX_NAMED {
        notes.push(format!(
            "{} more programs had something to say: see summary.json",
            programs.len() - MAX_NAMED
        ));
    }
    notes
}

/// Reasons why figures of transports differ from those beside them, as far as the scenario gives them; and the
/// transports that differ without a stated reason.
pub(crate) fn reasons(study: &Study<'_>) -> Vec<String> {
    let document = study.document;
    if document.beside.is_none() {
        return document.notes.iter().map(|(name, note)| format!("{name}: {note}")).collect();
    }
    let (whose, _) = whose(document);
    let mut reasons: Vec<String> = Vec::new();
    let mut unexplained = Vec::new();
    for row in &document.summary {
        let (Some(ours), Some(&theirs)) = (figure(row, "goodput_mbps"), row.published.get("goodput_mbps"))
        else {
            continue;
        };
        // Below 1 Mbit/s both carry next to nothing.
        if ours.mean.max(theirs) < 1.0 || (ours.mean / theirs - 1.0).abs() <= MAX_UNEXPLAINED {
            continue;
        }
        match document.notes.get(&row.protocol) {
            Some(note) => {
                let reason = format!("{} differs from {whose}: {note}", row.protocol);
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
            None => {
                let case: Vec<String> =
                    study.varying.iter().map(|path| value(&row.parameters, path)).collect();
                unexplained.push(format!("{} ({} times)", case.join(" "), number(ours.mean / theirs)));
            }
        }
    }
    if !unexplained.is_empty() {
        reasons
            .push(format!("more than 10 % from {whose}, and no reason is known: {}", unexplained.join(", ")));
    }
    reasons
}
