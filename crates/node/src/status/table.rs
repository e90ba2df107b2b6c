//! A status, for a person.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::{CarrierStatus, GroupFile, GroupStatus, HeldStatus, HostStatus, PeerStatus, Status, TableStatus};

/// The status as a few aligned lines.
pub fn table(status: &Status) -> String {
    let Status { node, listen, program, .. } = status;
    let uptime = span(status.uptime_s);
    let mut text = format!("{node} at {listen}, up {uptime}, hopcast {program}, not encrypted\n\n");
    let head =
        ["peer", "state", "for", "address", "rtt ms", "loss in", "loss out", "in Mbit/s", "out Mbit/s"];
    if !status.peers.is_empty() {
        text.push_str(&aligned(&head, 4, status.peers.iter().map(peer)));
        text.push('\n');
    }
    status.host.iter().for_each(|part| text.push_str(&of_host(part)));
    status.groups.iter().for_each(|group| text.push_str(&of_group(group)));
    if status.carriers.is_empty() && !(status.groups.is_empty() && status.host.is_empty()) {
        text.push_str(&dropped(status));
        return text;
    }
    let head = [
        "carries",
        "what",
        "open",
        "in",
        "out",
        "first",
        "repair",
        "ahead",
        "recoded",
        "rank",
        "redundant",
        "given up",
    ];
    text.push_str(&aligned(&head, 2, status.carriers.iter().map(carrier)));
    text.push_str(&dropped(status));
    text
}

/// A service with what it did, or a sender with how it serves the members.
fn of_host(part: &HostStatus) -> String {
    let HostStatus { name, role, over, tap, shown, tables, counters } = part;
    let tables: String = tables.iter().map(of_table).collect();
    let head = match (role.as_str(), tap) {
        ("sender", _) => format!("sending to {name} over {over}\n{shown}"),
        (_, Some(tap)) => format!("running {over} at {tap}\n{tables}"),
        (_, None) => format!("running {over}\n{tables}"),
    };
    let counted = counters.iter().filter(|(_, count)| **count > 0);
    let counted: String = counted.map(|(what, count)| format!("  {count} {what}\n")).collect();
    format!("{head}{counted}\n")
}

/// A table of a service under its name.
fn of_table(found: &TableStatus) -> String {
    let TableStatus { table, columns, rows, left_out } = found;
    let head: Vec<&str> = columns.iter().map(String::as_str).collect();
    let rows = aligned(&head, head.len(), rows.iter().cloned());
    let more = if *left_out > 0 { format!("and {left_out} more\n") } else { String::new() };
    format!("{table}\n{rows}{more}\n")
}

fn dropped(status: &Status) -> String {
    let dropped: Vec<_> = status
        .dropped
        .iter()
        .filter(|&(_, &count)| count > 0)
        .map(|(cause, count)| format!("{count} {cause}"))
        .collect();
    if dropped.is_empty() { String::new() } else { format!("\ndropped: {}\n", dropped.join(", ")) }
}

/// Bytes that a group's transport has sent, by kind, and its requests.
fn sent(group: &GroupStatus) -> String {
    let count = |name: &str| group.counters.get(name).copied().unwrap_or(0);
    let bytes = ["data", "repair", "control", "feedback"].map(|kind| count(&format!("{kind}_bytes_sent")));
    format!(
        "sent {} B of data, {} of repairs, {} of control, {} of feedback; {} NACKs received, {} sent\n",
        bytes[0],
        bytes[1],
        bytes[2],
        bytes[3],
        count("nacks_received"),
        count("nacks_sent")
    )
}

/// Lines of the amounts that a site holds of a group whose members hold messages for each other, and of what came of
/// each member.
fn of_holder(group: &GroupStatus, held: &HeldStatus) -> String {
    let GroupStatus { name, over, members, .. } = group;
    let count = |name: &str| group.counters.get(name).copied().unwrap_or(0);
    let mut text = format!(
        "group {name} over {over}: {} files published, {} due, {} received, {} waiting; {} messages published, {} received\n",
        held.files_published,
        held.files_due,
        count("files_received"),
        held.files_waiting,
        group.messages_sent,
        count("messages_received")
    );
    let disk = held.disk_bytes.map_or("no store on disk".to_owned(), |bytes| format!("{bytes} B on disk"));
    text.push_str(&format!(
        "holds {}, {} of {} B, {disk}; {} dropped for want of room, {} expired\n",
        held.messages, held.bytes, held.max_bytes, held.dropped, held.expired
    ));
    text.push_str(&sent(group));
    let rows = members.iter().map(|member| {
        let state = match (member.afar, member.up) {
            (true, _) => "no peer",
            (false, true) => "up",
            (false, false) => "down",
        };
        vec![
            member.name.clone(),
            state.to_owned(),
            member.silent_s.map_or("-".to_owned(), span),
            member.files_received.to_string(),
            member.bytes_received.to_string(),
            member.messages_received.to_string(),
        ]
    });
    text.push_str(&aligned(&["member", "state", "heard", "files", "bytes", "messages"], 2, rows));
    text.push('\n');
    text
}

/// Members of a group with what each has of this site's files and messages, and the files that were found last.
fn of_group(group: &GroupStatus) -> String {
    let GroupStatus { name, over, members, .. } = group;
    let count = |name: &str| group.counters.get(name).copied().unwrap_or(0);
    if let Some(held) = &group.held {
        return of_holder(group, held);
    }
    let mut text = format!(
        "group {name} over {over}: {} files offered, {} at all members; {} messages sent, {} received\n",
        group.files_offered,
        group.files_everywhere,
        group.messages_sent,
        count("messages_received")
    );
    text.push_str(&sent(group));
    let head =
        ["member", "state", "heard", "has", "lacks", "refuses", "unknown", "messages", "sent us", "bytes"];
    let rows = members.iter().map(|member| {
        vec![
            member.name.clone(),
            if member.up { "up" } else { "down" }.to_owned(),
            member.silent_s.map_or("-".to_owned(), span),
            member.files_has.to_string(),
            member.files_lacks.to_string(),
            member.files_refuses.to_string(),
            member.files_unknown.to_string(),
            member.messages_has.to_string(),
            member.files_received.to_string(),
            member.bytes_received.to_string(),
        ]
    });
    text.push_str(&aligned(&head, 2, rows));
    if !group.files.is_empty() {
        let names = members.iter().map(|member| member.name.as_str());
        let head: Vec<&str> = ["file", "bytes"].into_iter().chain(names).collect();
        let row = |file: &GroupFile| {
            let standings = members.iter().map(|member| file.members.get(&member.name).cloned());
            let standings = standings.map(|found| found.unwrap_or_else(|| "-".to_owned()));
            [file.name.clone(), file.bytes.to_string()].into_iter().chain(standings).collect()
        };
        text.push_str(&aligned(&head, 1, group.files.iter().map(row)));
    }
    text.push('\n');
    text
}

fn peer(peer: &PeerStatus) -> Vec<String> {
    let share = |loss: Option<f64>| loss.map_or("-".to_owned(), |loss| format!("{:.1} %", loss * 100.0));
    vec![
        peer.name.clone(),
        peer.state.clone(),
        peer.since_s.map_or("-".to_owned(), span),
        peer.address.clone().unwrap_or_else(|| "-".to_owned()),
        peer.round_trip_ms.map_or("-".to_owned(), |millis| format!("{millis:.1}")),
        share(peer.loss_in),
        share(peer.loss_out),
        format!("{:.2}", peer.rate_in_mbps),
        format!("{:.2}", peer.rate_out_mbps),
    ]
}

fn carrier(carrier: &CarrierStatus) -> Vec<String> {
    let count = |name: &str| carrier.count(name).to_string();
    let is_site = carrier.role == "site";
    let (open, [into, out]) = match (is_site, carrier.carries.as_str()) {
        (true, "tcp") => (
            carrier.connections.to_string(),
            ["connections_reached", "connections_taken"].map(|name| format!("{} conn", carrier.count(name))),
        ),
        (true, _) => ("-".to_owned(), ["units_received", "units_sent"].map(count)),
        (false, _) => ("-".to_owned(), ["-".to_owned(), "-".to_owned()]),
    };
    vec![
        match (is_site, carrier.via == carrier.name) {
            (true, true) => format!("to {}", carrier.name),
            (true, false) => format!("to {} via {}", carrier.name, carrier.via),
            (false, _) => carrier.name.clone(),
        },
        match carrier.channel {
            0 => carrier.carries.clone(),
            channel => format!("{} ({channel})", carrier.carries),
        },
        open,
        into,
        out,
        count("packets_first"),
        count("packets_repair"),
        count("packets_ahead"),
        count("packets_recoded"),
        carrier.mean_rank().map_or("-".to_owned(), |rank| format!("{rank:.1}")),
        count("received_redundant"),
        count("batches_given_up"),
    ]
}

/// Columns up to `left` are aligned left, the others right.
fn aligned(head: &[&str], left: usize, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(head.iter().copied());
    rows.for_each(|row| {
        table.add_row(row);
    });
    for (place, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if place >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// `42 s`, `3 min`, `5 h`, `2 d`.
fn span(seconds: f64) -> String {
    let (unit, name) = match seconds {
        s if s < 120.0 => (1.0, "s"),
        s if s < 7200.0 => (60.0, "min"),
        s if s < 172_800.0 => (3600.0, "h"),
        _ => (86_400.0, "d"),
    };
    format!("{:.0} {name}", (seconds / unit).floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_with_a_device_shows_it_with_and_without_tables() {
        let mut part = HostStatus {
            name: "bat0".to_owned(),
            role: "service".to_owned(),
            over: "batman-iv".to_owned(),
            tap: Some("bat0".to_owned()),
            ..HostStatus::default()
        };
        assert_eq!(of_host(&part), "running batman-iv at bat0\n\n");
        let rows = vec![vec!["02:00:00:00:00:01".to_owned()]];
        let columns = vec!["client".to_owned()];
        part.tables = vec![TableStatus { table: "local clients".to_owned(), columns, rows, left_out: 0 }];
        assert!(
            of_host(&part).starts_with("running batman-iv at bat0\nlocal clients\n"),
            "{}",
            of_host(&part)
        );
        let router = HostStatus { over: "meadcast-router".to_owned(), ..HostStatus::default() };
        assert_eq!(of_host(&router), "running meadcast-router\n\n");
    }
}
