//! The result of a study, in one sentence for each group of flows.

use hopcast_twin::results::{Mean, Summary};

use crate::figure::{figure, interval};
use crate::grid::whose;
use crate::live;
use crate::number::{number, plain};
use crate::rivals::rivals_ahead;
use crate::study::{Study, value};

/// Maximum number of groups of flows with a sentence. Chosen: for more, the table is easier to read.
const MAX_FINDINGS: usize = 6;

/// One sentence for each group of flows that has a goodput, for the first few groups.
pub(crate) fn findings(study: &Study<'_>) -> Vec<String> {
    let mut findings: Vec<String> =
        (0..study.groups.len()).filter_map(|group| finding(study, group)).take(MAX_FINDINGS).collect();
    if findings.len() == MAX_FINDINGS && study.groups.len() > MAX_FINDINGS {
        let more = plain((study.groups.len() - MAX_FINDINGS) as f64);
        findings.push(format!("There are {more} more flows: see the summary."));
    }
    if study.document.runs.iter().any(|run| run.live.is_some()) {
        findings.extend(rivals_ahead(study));
    }
    findings.extend(study.document.remarks.iter().cloned().map(sentence));
    findings.extend(live::machine(study.document).into_iter().map(sentence));
    findings.extend(live::reasons(study).into_iter().map(sentence));
    findings
}

/// A note as a sentence.
fn sentence(note: String) -> String {
    let mut letters = note.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// The line, the goodput and the row.
type Rank<'d> = (&'d str, Mean, &'d Summary);

fn finding(study: &Study<'_>, group: usize) -> Option<String> {
    let cases: Vec<(&Vec<String>, Vec<Rank<'_>>)> = study
        .group_members(group)
        .map(|(case, rows)| {
            let rank =
                |line: usize, row| Some((study.lines[line].as_str(), figure(row, "goodput_mbps")?, row));
            let mut ranked: Vec<Rank<'_>> = rows.filter_map(|row| rank(row.line, row.summary)).collect();
            ranked.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
            if ranked.iter().any(|(_, _, row)| !is_partial(row)) {
                ranked.retain(|(_, _, row)| !is_partial(row));
            }
            (&study.cases[case], ranked)
        })
        .filter(|(_, ranked)| !ranked.is_empty())
        .collect();
    let partial = study.group_members(group).any(|(_, mut rows)| rows.any(|row| is_partial(row.summary)));
    let (hardest, last) = cases.iter().min_by(|a, b| top(&a.1).total_cmp(&top(&b.1)))?;
    let (easiest, first) = cases.iter().max_by(|a, b| top(&a.1).total_cmp(&top(&b.1)))?;
    let of = if study.groups.len() > 1 { format!("{}: ", study.groups[group]) } else { String::new() };
    let at = |case: &[String]| study.case_label(case);
    let (best, goodput, row) = last[0];
    let sentence = match last.get(1) {
        Some(_) if !study.compares_flows() && cases.iter().any(|(_, ranked)| crowded(study, ranked)) => {
            let rows =
                || cases.iter().flat_map(|(case, ranked)| ranked.iter().map(move |rank| (*case, rank)));
            let told = |(case, (line, goodput, _)): (&Vec<String>, &Rank<'_>)| {
                let case = at(case);
                let case = if case.is_empty() { case } else { format!(" at {case}") };
                format!("{} Mbit/s ({line}{case})", with_interval(*goodput))
            };
            let by = |a: &(&Vec<String>, &Rank<'_>), b: &(&Vec<String>, &Rank<'_>)| {
                a.1.1.mean.total_cmp(&b.1.1.mean)
            };
            let (least, most) = (rows().min_by(by)?, rows().max_by(by)?);
            format!("{of}beside other flows, from {} to {}.", told(least), told(most))
        }
        Some(second) if cases.len() > 1 && !study.compares_flows() => {
            let led = cases.iter().filter(|(_, ranked)| ranked[0].0 == best).count();
            let led = if led == cases.len() { "all".into() } else { format!("{led} of {}", cases.len()) };
            let whole = if partial { ", of those whose file arrives whole," } else { "" };
            format!(
                "{of}Where least gets through, at {}, {} The goodput of {best}{whole} is the highest in {led} cases.",
                at(hardest),
                comparison(best, goodput, second)
            )
        }
        None if partial && !is_partial(row) && study.lines.len() > 1 && cases.len() > 1 => format!(
            "{of}Where least gets through, at {}, the file arrives whole over {best} only, at {} Mbit/s.",
            at(hardest),
            with_interval(goodput)
        ),
        Some(_) if study.compares_flows() => {
            let carries = |(line, goodput, _): &Rank<'_>| format!("{line} {}", with_interval(*goodput));
            let shown: Vec<String> = last.iter().take(4).map(carries).collect();
            let rest = last.len() - shown.len();
            let rest = if rest > 0 { format!(", and {rest} more flows less") } else { String::new() };
            let at = at(hardest);
            let at = if at.is_empty() { at } else { format!("Where least gets through, at {at}: ") };
            format!("{at}{} Mbit/s{rest}.", shown.join(", "))
        }
        Some(second) => format!("{of}{}", comparison(best, goodput, second)),
        None if cases.len() > 1 => format!(
            "{of}{best} carries {} Mbit/s at {} and {} Mbit/s at {}.",
            with_interval(first[0].1),
            at(easiest),
            with_interval(goodput),
            at(hardest)
        ),
        None => {
            let cut = figure(row, "min_cut_fraction");
            let cut =
                cut.map(|cut| format!(", {} % of the min-cut", crate::number::percent(cut.mean * 100.0)));
            format!("{of}{best} carries {} Mbit/s{}.", with_interval(goodput), cut.unwrap_or_default())
        }
    };
    Some(sentence + &against_published(study, group))
}

/// Whether the flow carries a file that did not arrive whole in each repeat.
fn is_partial(row: &Summary) -> bool {
    figure(row, "hash_ok").is_some_and(|intact| intact.mean < 1.0)
}

/// Whether the runs have other flows, at whose expense the best may have its goodput.
fn crowded(study: &Study<'_>, ranked: &[Rank<'_>]) -> bool {
    ranked.iter().any(|(_, _, row)| study.is_crowded(row))
}

fn top(ranked: &[Rank<'_>]) -> f64 {
    ranked.first().map_or(0.0, |(_, goodput, _)| goodput.mean)
}

/// The best beside the second, and whether their intervals overlap.
fn comparison(best: &str, goodput: Mean, second: &Rank<'_>) -> String {
    let (second, other, _) = second;
    let ours = with_interval(goodput);
    let apart = match (goodput.ci95, other.ci95) {
        (Some(a), Some(b)) => goodput.mean - a > other.mean + b,
        _ => goodput.mean > other.mean,
    };
    if !apart {
        return format!(
            "{best} ({ours} Mbit/s) and {second} ({}) are not told apart.",
            with_interval(*other)
        );
    }
    let ratio = goodput.mean / other.mean;
    let times = if other.mean <= 0.0 || ratio > 1000.0 {
        "against".into()
    } else if ratio < 1.1 {
        format!("{} % more than", number((ratio - 1.0) * 100.0))
    } else {
        format!("{} times", number(ratio))
    };
    format!("{best} carries {ours} Mbit/s, {times} {second} ({}).", with_interval(*other))
}

pub(crate) fn with_interval(mean: Mean) -> String {
    let text = number(mean.mean);
    match interval(mean) {
        Some(ci95) => format!("{text} ± {}", crate::number::interval(&text, ci95)),
        None => text,
    }
}

/// The deviation of our goodput from the published one.
fn against_published<'d>(study: &Study<'d>, group: usize) -> String {
    let rows = study.group_members(group).flat_map(|(_, rows)| rows).map(|row| row.summary);
    let ratio = |row: &'d Summary| {
        let published = *row.published.get("goodput_mbps")?;
        // A ratio of hundredths of a Mbit/s is not significant, since published figures are rounded.
        (published >= 1.0).then_some((figure(row, "goodput_mbps")?.mean / published, row))
    };
    let ratios: Vec<(f64, &Summary)> = rows.filter_map(ratio).collect();
    let far = |(ratio, _): &(f64, &Summary)| ratio.max(1e-9).ln().abs();
    let Some((farthest, row)) = ratios.iter().max_by(|a, b| far(a).total_cmp(&far(b))) else {
        return String::new();
    };
    let share = if study.document.beside.is_some() { 10 } else { 5 };
    let within = ratios.iter().filter(|(ratio, _)| (ratio - 1.0).abs() <= f64::from(share) / 100.0).count();
    let case = study.varying.iter().map(|path| value(&row.parameters, path)).collect::<Vec<_>>().join(", ");
    let case = if case.is_empty() { String::new() } else { format!(" ({case})") };
    let (count, whose) = (ratios.len(), whose(study.document).0);
    let met = match (within == count, count) {
        (true, 1) => format!("The {whose} figure is met within {share} %"),
        (true, _) => format!("All {count} {whose} figures of 1 Mbit/s or more are met within {share} %"),
        (false, _) => {
            format!("Of {count} {whose} figures of 1 Mbit/s or more, {within} are met within {share} %")
        }
    };
    format!(" {met}; the farthest from its figure is {} times it{case}.", number(*farthest))
}
