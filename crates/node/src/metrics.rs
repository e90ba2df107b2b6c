//! A status in the text format of Prometheus.

use std::fmt::Write;

use crate::status::{CarrierStatus, GroupMemberStatus, HeldStatus, PeerStatus, Status};

/// A metric of each peer: name, kind, help, and the value if there is one.
type PeerMetric = (&'static str, &'static str, &'static str, fn(&PeerStatus) -> Option<f64>);

const PEER: [PeerMetric; 13] = [
    ("up", "gauge", "Whether the peer is up.", |peer| Some(f64::from(u8::from(peer.state == "up")))),
    ("round_trip_seconds", "gauge", "Round trip to the peer, smoothed.", |peer| {
        peer.round_trip_ms.map(|millis| millis / 1000.0)
    }),
    ("loss_in_ratio", "gauge", "Share of the peer's datagrams that did not arrive here lately.", |peer| {
        peer.loss_in
    }),
    ("loss_out_ratio", "gauge", "Share of datagrams to the peer that did not arrive there lately.", |peer| {
        peer.loss_out
    }),
    ("silent_seconds", "gauge", "Time since anything was heard of the peer.", |peer| peer.silent_s),
    ("received_datagrams_total", "counter", "Datagrams from the peer.", |peer| {
        Some(peer.datagrams_in as f64)
    }),
    ("received_bytes_total", "counter", "Bytes of UDP payload from the peer.", |peer| {
        Some(peer.bytes_in as f64)
    }),
    ("sent_datagrams_total", "counter", "Datagrams to the peer.", |peer| Some(peer.datagrams_out as f64)),
    ("sent_bytes_total", "counter", "Bytes of UDP payload to the peer.", |peer| Some(peer.bytes_out as f64)),
    ("restarts_total", "counter", "How often the peer was started anew.", |peer| Some(peer.restarts as f64)),
    ("moves_total", "counter", "How often the peer's address changed.", |peer| Some(peer.moves as f64)),
    ("disbelieved_hellos_total", "counter", "Hellos in the peer's name that were not believed.", |peer| {
        Some(peer.disbelieved as f64)
    }),
    (
        "path_mtu_bytes",
        "gauge",
        "Longest IP packet that gets to the peer whole, where a full one does not.",
        |peer| peer.path_mtu.map(f64::from),
    ),
];

/// Metrics of each carrier: name, the machines' counter, help.
const CARRIER: [(&str, &str, &str); 33] = [
    ("packets_sent", "units_sent", "Packets of the host that were taken to be carried."),
    ("packets_received", "units_received", "Packets that were given to the host."),
    ("packets_refused", "units_refused", "Packets of the host that were dropped since too much was waiting."),
    ("packets_too_big", "too_big", "Packets of the host that did not fit."),
    ("connections_taken", "connections_taken", "TCP connections that were taken over."),
    ("connections_reached", "connections_reached", "TCP connections that went on from here."),
    ("connections_refused", "connections_refused", "TCP connections whose destination is not in `reach`."),
    (
        "connections_reset_damaged",
        "streams_damaged",
        "TCP connections that were reset because something of what they carry came damaged or not at all.",
    ),
    (
        "connections_reset_damaged_there",
        "streams_damaged_there",
        "TCP connections that were reset because something was damaged in transit to the far site.",
    ),
    (
        "connections_reset_broken",
        "streams_broken",
        "TCP connections that were reset because a site broke the protocol.",
    ),
    (
        "connections_reset_restarted",
        "streams_restarted",
        "TCP connections that were reset because the far site was started anew.",
    ),
    (
        "connections_reset_timed_out",
        "streams_timed_out",
        "TCP connections that were reset because nothing came from the far site for too long.",
    ),
    ("symbols_damaged", "symbols_damaged", "Symbols that were dropped because of a wrong checksum."),
    (
        "connections_refused_source",
        "connections_refused_source",
        "TCP connections refused since their source had as many as `per-source` allows.",
    ),
    (
        "connections_refused_unanswered",
        "connections_refused_unanswered",
        "TCP connections refused since too many waited for a server that did not answer.",
    ),
    (
        "streams_refused",
        "streams_refused",
        "TCP connections refused since there were as many as `streams` allows.",
    ),
    (
        "connections_spoofed",
        "connections_spoofed",
        "TCP connections of the far site refused since their client's address is not in `from`.",
    ),
    (
        "packets_spoofed",
        "packets_spoofed",
        "Packets of the far site dropped since their source is neither in `routes` nor in `from`.",
    ),
    ("coded_stale", "received_stale", "Datagrams of the carrier of a session that is over, or of none."),
    ("coded_foreign", "foreign", "Datagrams of the carrier from somebody who is no neighbour."),
    ("challenges_sent", "challenges_sent", "Challenges sent before a session replaced another one."),
    ("symbols_malformed", "symbols_malformed", "Symbols received that made no sense."),
    ("coded_first", "packets_first", "Coded packets sent for the first time."),
    ("coded_repair", "packets_repair", "Coded packets sent to make up for losses."),
    ("coded_ahead", "packets_ahead", "Coded packets sent ahead of need."),
    ("coded_recoded", "packets_recoded", "Coded packets sent that were combinations."),
    ("coded_innovative", "received_innovative", "Coded packets received that raised a rank."),
    ("coded_redundant", "received_redundant", "Coded packets received that raised none."),
    ("coded_malformed", "malformed", "Datagrams of the carrier that made no sense."),
    ("batches_given_up", "batches_given_up", "Batches given up since they were not through in time."),
    ("payload_bytes", "bytes_payload", "Bytes of coded payload sent."),
    ("header_bytes", "bytes_headers", "Bytes of headers sent."),
    ("report_bytes", "bytes_reports", "Bytes of reports sent."),
];

/// A metric of each member of each group: name, kind, help, and the value if there is one.
type MemberMetric = (&'static str, &'static str, &'static str, fn(&GroupMemberStatus) -> Option<f64>);

const MEMBER: [MemberMetric; 11] = [
    ("up", "gauge", "Whether the member is up.", |member| Some(f64::from(u8::from(member.up)))),
    ("silent_seconds", "gauge", "Time since the member said what it has, or asked.", |member| {
        member.silent_s
    }),
    ("files_has", "gauge", "Files of this site that the member has.", |member| Some(member.files_has as f64)),
    ("files_lacks", "gauge", "Files of this site of which the member lacks something.", |member| {
        Some(member.files_lacks as f64)
    }),
    ("files_refuses", "gauge", "Files of this site that the member does not take.", |member| {
        Some(member.files_refuses as f64)
    }),
    (
        "files_unknown",
        "gauge",
        "Files of this site of which the member has not said what it has.",
        |member| Some(member.files_unknown as f64),
    ),
    ("messages_has", "gauge", "Messages of this site since its start that the member has.", |member| {
        Some(member.messages_has as f64)
    }),
    ("messages_last", "gauge", "Number of the last message of this site that the member has.", |member| {
        Some(member.messages_last as f64)
    }),
    ("files_received_total", "counter", "Files of the member that have come.", |member| {
        Some(member.files_received as f64)
    }),
    ("received_bytes_total", "counter", "Bytes of the files of the member that have come.", |member| {
        Some(member.bytes_received as f64)
    }),
    (
        "messages_received_total",
        "counter",
        "Messages of the member that have come, where members hold them for each other.",
        |member| Some(member.messages_received as f64),
    ),
];

/// A metric of each group whose members hold messages for each other: name, kind, help, and the value if there is one.
type HeldMetric = (&'static str, &'static str, &'static str, fn(&HeldStatus) -> Option<f64>);

const HELD: [HeldMetric; 10] = [
    ("files_published", "gauge", "Files of the directory that have been published.", |held| {
        Some(held.files_published as f64)
    }),
    ("files_due", "gauge", "Files of the directory that have not been published yet.", |held| {
        Some(held.files_due as f64)
    }),
    ("files_waiting", "gauge", "Files of others that wait to be written.", |held| {
        Some(held.files_waiting as f64)
    }),
    ("held_messages", "gauge", "Files and messages that the site holds.", |held| Some(held.messages as f64)),
    ("held_bytes", "gauge", "Bytes of memory that they take.", |held| Some(held.bytes as f64)),
    ("held_max_bytes", "gauge", "Bytes of memory that they may take.", |held| Some(held.max_bytes as f64)),
    ("unsent_bytes", "gauge", "Bytes published and not sent yet.", |held| Some(held.unsent_bytes as f64)),
    ("disk_bytes", "gauge", "Bytes of the store on disk.", |held| held.disk_bytes.map(|bytes| bytes as f64)),
    ("dropped_total", "counter", "Files and messages dropped for want of room.", |held| {
        Some(held.dropped as f64)
    }),
    ("expired_total", "counter", "Files and messages dropped because their time was over.", |held| {
        Some(held.expired as f64)
    }),
];

/// Metrics of each group: name, the machines' counter, help.
const GROUP: [(&str, &str, &str); 24] = [
    (
        "data_bytes",
        "data_bytes_sent",
        "Bytes of data sent for the first time, without copies to several members.",
    ),
    ("repair_bytes", "repair_bytes_sent", "Bytes of repairs sent, without copies to several members."),
    ("control_bytes", "control_bytes_sent", "Bytes of control sent, without copies to several members."),
    ("feedback_bytes", "feedback_bytes_sent", "Bytes of requests and acknowledgements sent."),
    ("nacks_received", "nacks_received", "Requests for repairs that came."),
    ("nacks_sent", "nacks_sent", "Requests for repairs that were sent."),
    ("nacks_suppressed", "nacks_suppressed", "Requests for repairs that others had spared."),
    (
        "repairs_given_up",
        "repairs_given_up",
        "Messages of the transport given up while somebody asked for them.",
    ),
    (
        "file_rounds",
        "file_rounds",
        "Rounds in which files were sent; one is enough where nobody falls behind.",
    ),
    ("pieces_sent", "pieces_sent", "Pieces of files sent."),
    ("pieces_received", "pieces_received", "Pieces of files that came."),
    ("pieces_dropped", "pieces_dropped", "Pieces of files dropped since too many waited for the disk."),
    ("offers_sent", "offers_sent", "Questions to members what they have."),
    ("receipts_sent", "receipts_sent", "Answers to members what is here."),
    ("messages_sent", "messages_sent", "Messages taken of programs."),
    ("messages_refused", "messages_refused", "Messages of programs dropped since too many waited."),
    ("messages_received", "messages_received", "Messages of members that were given to programs."),
    ("malformed", "statements_malformed", "What came of members and made no sense."),
    (
        "files_received",
        "files_received",
        "Files of members that were written, where members hold them for each other.",
    ),
    ("files_repeated", "files_repeated", "Files that came and had been written before."),
    ("files_overtaken", "files_overtaken", "Files that came when a newer one of their name was there."),
    ("files_given_up", "files_given_up", "Files that came and could not be written."),
    ("records_damaged", "records_damaged", "Damaged places of the store that were passed over at the start."),
    ("records_lost", "records_lost", "Records that the store could not write."),
];

/// Values of the sockets that are gauges, not counters: bytes that wait for readers, and the maximum lateness.
const HELD_BYTES: &str = "streams_held_bytes";
const GAUGES: [&str; 2] = [HELD_BYTES, "latest_wake_ns"];

/// The whole page.
pub(crate) fn text(status: &Status) -> String {
    let mut page = Page(String::new());
    page.family("hopcast_up_seconds", "gauge", "Time since the node was started.");
    page.value("hopcast_up_seconds", &[("node", &status.node)], status.uptime_s);
    for (name, kind, help, value) in PEER {
        let name = format!("hopcast_peer_{name}");
        page.family(&name, kind, help);
        for peer in &status.peers {
            if let Some(value) = value(peer) {
                page.value(&name, &[("peer", &peer.name)], value);
            }
        }
    }
    page.family("hopcast_carrier_connections", "gauge", "TCP connections at this moment.");
    for carrier in &status.carriers {
        page.of_carrier("hopcast_carrier_connections", carrier, carrier.connections as f64);
    }
    page.family("hopcast_carrier_mean_rank", "gauge", "Mean rank of the batches that are over.");
    for carrier in &status.carriers {
        if let Some(rank) = carrier.mean_rank() {
            page.of_carrier("hopcast_carrier_mean_rank", carrier, rank);
        }
    }
    for (name, counter, help) in CARRIER {
        let name = format!("hopcast_carrier_{name}_total");
        page.family(&name, "counter", help);
        for carrier in &status.carriers {
            if let Some(&count) = carrier.counters.get(counter) {
                page.of_carrier(&name, carrier, count as f64);
            }
        }
    }
    page.groups(status);
    let name = "hopcast_askers_turned_away_total";
    page.family(name, "counter", "Who asked for metrics or the status while too many others did.");
    page.value(name, &[("node", &status.node)], status.turned_away as f64);
    let name = "hopcast_dropped_datagrams_total";
    page.family(name, "counter", "Datagrams that were dropped, by cause.");
    for (cause, &count) in &status.dropped {
        page.value(name, &[("cause", cause)], count as f64);
    }
    let name = "hopcast_host_total";
    page.family(name, "counter", "What services and senders for the host did.");
    for part in &status.host {
        for (what, &count) in &part.counters {
            page.value(name, &[("name", &part.name), ("role", &part.role), ("what", what)], count as f64);
        }
    }
    let name = "hopcast_socket_total";
    page.family(name, "counter", "What the sockets and devices did, summed over them.");
    for (what, &count) in status.sockets.iter().filter(|(what, _)| !GAUGES.contains(&what.as_str())) {
        page.value(name, &[("what", what)], count as f64);
    }
    let name = "hopcast_socket_streams_held_bytes";
    page.family(name, "gauge", "Bytes of TCP connections that wait for slow readers at this moment.");
    if let Some(&held) = status.sockets.get(HELD_BYTES) {
        page.value(name, &[("node", &status.node)], held as f64);
    }
    page.0
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<_> =
            labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escaped(text))).collect();
        let _ = writeln!(self.0, "{name}{{{}}} {value}", labels.join(","));
    }

    fn groups(&mut self, status: &Status) {
        for (name, kind, help, value) in MEMBER {
            let name = format!("hopcast_group_member_{name}");
            self.family(&name, kind, help);
            for group in &status.groups {
                for member in &group.members {
                    if let Some(value) = value(member) {
                        self.value(&name, &[("group", &group.name), ("member", &member.name)], value);
                    }
                }
            }
        }
        for (name, counter, help) in GROUP {
            let name = format!("hopcast_group_{name}_total");
            self.family(&name, "counter", help);
            for group in &status.groups {
                if let Some(&count) = group.counters.get(counter) {
                    self.value(&name, &[("group", &group.name)], count as f64);
                }
            }
        }
        for (name, kind, help, value) in HELD {
            let name = format!("hopcast_group_{name}");
            self.family(&name, kind, help);
            for group in &status.groups {
                if let Some(value) = group.held.as_ref().and_then(value) {
                    self.value(&name, &[("group", &group.name)], value);
                }
            }
        }
        let name = "hopcast_group_file_has";
        self.family(
            name,
            "gauge",
            "Whether a member has a file of this site, of the files that were found last.",
        );
        for group in &status.groups {
            for file in &group.files {
                for (member, standing) in &file.members {
                    let labels = [("group", group.name.as_str()), ("file", &file.name), ("member", member)];
                    self.value(name, &labels, f64::from(u8::from(standing == "has")));
                }
            }
        }
    }

    fn of_carrier(&mut self, name: &str, carrier: &CarrierStatus, value: f64) {
        let channel = carrier.channel.to_string();
        let labels = [
            ("carrier", carrier.name.as_str()),
            ("via", &carrier.via),
            ("carries", &carrier.carries),
            ("role", &carrier.role),
            ("channel", &channel),
        ];
        self.value(name, &labels, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{GroupFile, GroupStatus};

    #[test]
    fn every_family_has_help_and_a_type_and_every_value_a_family() {
        let peer = PeerStatus { name: "a\"b".into(), state: "up".into(), ..PeerStatus::default() };
        let mut carrier = CarrierStatus { name: "island".into(), ..CarrierStatus::default() };
        carrier.counters.extend([("packets_first".into(), 7), ("rank_16".into(), 2)]);
        let member = GroupMemberStatus { name: "shore".into(), files_has: 3, ..GroupMemberStatus::default() };
        let standings = [("shore".to_owned(), "has".to_owned())].into();
        let file = GroupFile { name: "a \"b\"".into(), bytes: 1, members: standings };
        let mut group = GroupStatus { name: "charts".into(), ..GroupStatus::default() };
        (group.members, group.files) = (vec![member], vec![file]);
        group.counters.insert("nacks_received".into(), 4);
        group.held = Some(HeldStatus { messages: 9, dropped: 2, ..HeldStatus::default() });
        let mut status =
            Status { peers: vec![peer], carriers: vec![carrier], groups: vec![group], ..Status::default() };
        status.sockets.extend([("streams_held_bytes".into(), 5), ("wakes".into(), 6)]);
        let text = text(&status);
        let mut families = std::collections::BTreeMap::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# ") {
                let (kind, rest) = rest.split_once(' ').unwrap();
                let name = rest.split(' ').next().unwrap();
                families.entry(name.to_owned()).or_insert_with(Vec::new).push(kind.to_owned());
            } else {
                let name = line.split('{').next().unwrap();
                assert_eq!(families[name], ["HELP", "TYPE"], "{line}");
                line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap();
            }
        }
        assert!(text.contains("hopcast_socket_total{what=\"wakes\"} 6\n"), "{text}");
        assert!(text.contains("hopcast_socket_streams_held_bytes gauge\n"), "{text}");
        assert!(text.contains("hopcast_socket_streams_held_bytes{node=\"\"} 5\n"), "{text}");
        assert!(!text.contains("what=\"streams_held_bytes\""), "what falls is no counter: {text}");
        assert!(
            text.contains("hopcast_group_member_files_has{group=\"charts\",member=\"shore\"} 3\n"),
            "{text}"
        );
        assert!(text.contains("hopcast_group_nacks_received_total{group=\"charts\"} 4\n"), "{text}");
        assert!(text.contains("hopcast_group_held_messages{group=\"charts\"} 9\n"), "{text}");
        assert!(text.contains("hopcast_group_dropped_total{group=\"charts\"} 2\n"), "{text}");
        assert!(!text.contains("hopcast_group_disk_bytes{"), "there is no store: {text}");
        let has = "hopcast_group_file_has{group=\"charts\",file=\"a \\\"b\\\"\",member=\"shore\"} 1\n";
        assert!(text.contains(has), "{text}");
        assert!(text.contains("hopcast_peer_up{peer=\"a\\\"b\"} 1\n"), "{text}");
        assert!(text.contains(
            "hopcast_carrier_mean_rank{carrier=\"island\",via=\"\",carries=\"\",role=\"\",channel=\"0\"} 16\n"
        ));
    }
}
