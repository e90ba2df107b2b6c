//! Packets and bytes of a reliable group by what they are for.

use std::collections::BTreeMap;

use super::sheet::{Column, Sheet};
use crate::number::{count, percent};

/// The kinds of packets, as counters begin with them.
const KINDS: [&str; 4] = ["data", "repair", "control", "feedback"];
/// How their counters end.
const SENT: [&str; 2] = ["packets_sent", "bytes_sent"];

/// Whether a counter is shown here.
pub(super) fn is_of_kind(counter: &str) -> bool {
    let kind = SENT.iter().find_map(|sent| counter.strip_suffix(sent)?.strip_suffix('_'));
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

/// The counters by counter and place, as one table; without rows if there are none.
pub(super) fn kinds(
    caption: String,
    places: &[String],
    counts: &BTreeMap<(String, String), f64>,
    ends: &str,
) -> Sheet {
    let share = || Column::number("of all", "%");
    let columns = vec![
        Column::name("kind"),
        Column::number("packets", ""),
        share(),
        Column::number("bytes", ""),
        share(),
    ];
    let mut rows = Vec::new();
    for place in places {
        let of = |kind: &str, sent: &str| counts.get(&(format!("{kind}_{sent}"), place.clone())).copied();
        let sums = SENT.map(|sent| KINDS.iter().filter_map(|kind| of(kind, sent)).sum::<f64>());
        let mut is_first = !rows.is_empty();
        for kind in KINDS.iter().filter(|kind| SENT.iter().any(|sent| of(kind, sent).is_some())) {
            let name = if place == ends { (*kind).to_owned() } else { format!("{kind} of {place}") };
            let cells = SENT.iter().zip(sums).flat_map(|(sent, sum)| {
                let value = of(kind, sent);
                [value.map(count), value.map(|value| percent(value * 100.0 / sum))]
            });
            rows.push((std::mem::take(&mut is_first), std::iter::once(Some(name)).chain(cells).collect()));
        }
    }
    Sheet { caption, columns, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_packets_and_bytes_with_their_shares() {
        let counts: BTreeMap<(String, String), f64> = [
            ("data_packets_sent", 3.0),
            ("data_bytes_sent", 75.0),
            ("feedback_packets_sent", 1.0),
            ("feedback_bytes_sent", 25.0),
        ]
        .map(|(name, value)| ((name.to_owned(), "ends".to_owned()), value))
        .into();
        let sheet = kinds("by kind".to_owned(), &["ends".to_owned()], &counts, "ends");
        let rows: Vec<Vec<String>> =
            sheet.rows.into_iter().map(|(_, cells)| cells.into_iter().flatten().collect()).collect();
        assert_eq!(rows, [["data", "3", "75.0", "75", "75.0"], ["feedback", "1", "25.0", "25", "25.0"]]);
        assert!(
            is_of_kind("repair_bytes_sent") && !is_of_kind("acks_sent") && !is_of_kind("payload_bytes_sent")
        );
    }
}
