//! Remarks on uncoded transports that are better than the coded ones.

use hopcast_twin::results::Summary;

use crate::figure::{Better, Measure, figure, measure_of};
use crate::number::percent;
use crate::study::{CARRIED, Study};

/// The figures by which transports are compared.
const COMPARED: [&str; 4] = ["goodput_mbps", "round_trip_ms.p50", "round_trip_ms.p99", "video.in_time_ratio"];
/// Ratio up to which two figures are level: 2 %. Chosen: a smaller lead is not worth naming.
const LEVEL_RATIO: f64 = 1.02;
/// Minimum reliability, relative to the other transport's, for comparing round trips. Chosen: with less, a transport
/// seems fast because its late packets were lost; with more, round trips are hardly ever compared.
const MIN_RELIABILITY_RATIO: f64 = 0.99;
/// Maximum number of cases that are named. Chosen: more make the sentence too long to read.
const MAX_NAMED: usize = 6;

/// A sentence for each figure in which another transport is more than 2 % better than every coded one in the same case.
pub(crate) fn rivals_ahead(study: &Study<'_>) -> Vec<String> {
    COMPARED.iter().filter_map(|name| ahead_in(study, measure_of(name)?)).collect()
}

fn ahead_in(study: &Study<'_>, measure: &Measure) -> Option<String> {
    let (mut ahead, mut compared, mut alone) = (Vec::new(), 0, 0);
    for group in 0..study.groups.len() {
        for (case, rows) in study.group_members(group) {
            let rows: Vec<&Summary> = rows.map(|row| row.summary).collect();
            // One of several flows may have its figure at the expense of the others.
            if CARRIED.contains(&measure.name) && rows.iter().any(|row| study.is_crowded(row)) {
                continue;
            }
            let (Some((theirs, rival)), ours) = (best(&rows, measure, false), best(&rows, measure, true))
            else {
                continue;
            };
            let Some((ours, _)) = ours else {
                let has_figures = |row: &&Summary| COMPARED.iter().any(|name| figure(row, name).is_some());
                let coded: Vec<_> = rows.iter().copied().filter(|row| row.coded).collect();
                alone += usize::from(!coded.is_empty() && !coded.iter().any(has_figures));
                continue;
            };
            compared += 1;
            let by = if measure.better == Better::Low { ours / theirs } else { theirs / ours };
            if by > LEVEL_RATIO {
                let at = study.case_label(&study.cases[case]);
                let at = if at.is_empty() { at } else { format!(" at {at}") };
                ahead.push(match by.is_finite() {
                    true => format!("{rival}{at} by {} %", percent((by - 1.0) * 100.0)),
                    false => format!("{rival}{at}, where no coded transport has any"),
                });
            }
        }
    }
    let title = measure.title;
    let left_out = match alone {
        0 => String::new(),
        1 => " One case has no valid run of a coded transport.".to_owned(),
        cases => format!(" {cases} cases have no valid run of a coded transport."),
    };
    match (compared, ahead.len()) {
        (0, _) => (alone > 0).then(|| left_out.trim_start().to_owned()),
        (_, 0) => Some(format!(
            "By {title}, nothing else is more than 2 % ahead of the best coded transport in any of {compared} cases.{left_out}"
        )),
        (_, all) => {
            let named = ahead[..all.min(MAX_NAMED)].join(", ");
            let more = all.saturating_sub(MAX_NAMED);
            let more = if more > 0 { format!(", and in {more} more cases") } else { String::new() };
            Some(format!("Ahead of every coded transport by {title}: {named}{more}.{left_out}"))
        }
    }
}

/// The best figure of the coded transports or of the others, and its transport.
fn best<'d>(rows: &[&'d Summary], measure: &Measure, coded: bool) -> Option<(f64, &'d str)> {
    let reliability = |row: &Summary| figure(row, "reliability").map_or(1.0, |share| share.mean);
    let ours = rows.iter().filter(|row| row.coded).map(|row| reliability(row)).fold(0.0, f64::max);
    let of = rows.iter().filter(|row| row.coded == coded);
    let of =
        of.filter(|row| measure.better == Better::High || reliability(row) >= MIN_RELIABILITY_RATIO * ours);
    let figures = of.filter_map(|row| Some((figure(row, measure.name)?.mean, row.protocol.as_str())));
    match measure.better {
        Better::Low => figures.min_by(|a, b| a.0.total_cmp(&b.0)),
        Better::High | Better::Neither => figures.max_by(|a, b| a.0.total_cmp(&b.0)),
    }
}
