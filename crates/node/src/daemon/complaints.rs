//! Warnings about a node's counters: refused packets and connections, carriers whose data is damaged or whose
//! connections are reset, and carriers that are stuck.

use hopcast_core::{Duration, Instant};

use crate::status::{CarrierStatus, Status};

/// Minimum time between two lines of one kind. Chosen; shorter floods the log, longer hides that something goes on.
const MIN_INTERVAL: Duration = Duration::from_secs(60);
/// Time for which a carrier receives only stale data from a peer that is up, before that is logged. Chosen; shorter
/// logs a mere restart, longer delays the warning.
const STALE_TIME: Duration = Duration::from_secs(5);

/// Refusals: the owner of the counter, the counter, and the message.
const REFUSALS: [(Counted, &str, &str); 8] = [
    (
        Counted::OfCarriers,
        "connections_refused",
        "TCP connections from far sites were refused: their destination is not in `reach`",
    ),
    (
        Counted::OfCarriers,
        "connections_refused_source",
        "TCP connections were refused: their source has as many as `per-source` allows",
    ),
    (
        Counted::OfCarriers,
        "connections_refused_unanswered",
        "TCP connections were refused: too many wait for a server that does not answer",
    ),
    (
        Counted::OfCarriers,
        "streams_refused",
        "TCP connections were refused: a carrier has as many as `streams` allows, here or at the far site",
    ),
    (
        Counted::OfCarriers,
        "connections_spoofed",
        "TCP connections from far sites were refused: their client's address is not in `from`, or there is no `from` and it \
         is one of this host's (all are, where `net.ipv4.ip_nonlocal_bind` is set: give `from`)",
    ),
    (
        Counted::OfCarriers,
        "packets_spoofed",
        "packets from far sites were dropped: their source is neither in `routes` nor in `from`",
    ),
    (
        Counted::OfSockets,
        "socket_streams_timed_out",
        "connections were reset: their server did not answer within `connect-timeout`",
    ),
    (
        Counted::OfSockets,
        "socket_streams_without_memory",
        "TCP connections were refused: readers that are slow have taken the share of `memory`",
    ),
];

/// Mishaps of a carrier: the counter, and the message.
const MISHAPS: [(&str, &str); 6] = [
    ("symbols_damaged", "symbols were damaged in transit, and dropped"),
    ("symbols_malformed", "symbols made no sense, and were dropped"),
    ("streams_damaged", "connections were reset: something of what they carry came damaged, or not at all"),
    ("streams_damaged_there", "connections were reset: something that they carry was damaged in transit"),
    ("streams_restarted", "connections were reset: the far site was started anew"),
    ("streams_timed_out", "connections were reset: nothing has come from the far site for too long"),
];

/// The owner of a counter.
#[derive(Clone, Copy, Debug)]
enum Counted {
    OfCarriers,
    OfSockets,
}

/// The state of all warnings.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    /// The last report of each of [`REFUSALS`].
    refusals: [Reported; REFUSALS.len()],
    carriers: Vec<CarrierState>,
}

/// The count that was last logged, and its time.
#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    count: u64,
    said: Option<Instant>,
}

/// The state of a carrier when it was last examined.
#[derive(Debug, Default)]
struct CarrierState {
    /// The last report of each of [`MISHAPS`].
    mishaps: [Reported; MISHAPS.len()],
    /// Totals of stale and of accepted data.
    stale: u64,
    taken: u64,
    /// While only stale data arrives: the times of its first and last arrival, and the total before.
    since: Option<(Instant, Instant, u64)>,
    said: Option<Instant>,
}

impl Complaints {
    /// The lines that are due. `up` has for each carrier whether one of its peers is up.
    pub(super) fn look(&mut self, now: Instant, status: &Status, up: &[bool]) -> Vec<String> {
        let mut lines = Vec::new();
        for ((counted, name, meaning), told) in REFUSALS.into_iter().zip(&mut self.refusals) {
            let count: u64 = match counted {
                Counted::OfCarriers => status.carriers.iter().map(|carrier| carrier.count(name)).sum(),
                Counted::OfSockets => status.sockets.get(name).copied().unwrap_or(0),
            };
            lines.extend(told.more(now, count).map(|more| format!("{more} {meaning}")));
        }
        self.carriers.resize_with(status.carriers.len(), CarrierState::default);
        for ((carrier, before), &up) in status.carriers.iter().zip(&mut self.carriers).zip(up) {
            let CarrierStatus { name, carries, .. } = carrier;
            for ((counter, meaning), told) in MISHAPS.into_iter().zip(&mut before.mishaps) {
                let more = told.more(now, carrier.count(counter));
                lines.extend(more.map(|more| format!("site `{name}`, {carries}: {more} {meaning}")));
            }
            lines.extend(before.look(now, carrier, up));
        }
        lines
    }
}

impl Reported {
    /// The increase, if it is to be logged now.
    fn more(&mut self, now: Instant, count: u64) -> Option<u64> {
        let more = count.checked_sub(self.count).filter(|&more| more > 0)?;
        may_say(now, &mut self.said).then(|| {
            self.count = count;
            more
        })
    }
}

impl CarrierState {
    fn look(&mut self, now: Instant, carrier: &CarrierStatus, up: bool) -> Option<String> {
        let stale = carrier.count("received_stale");
        let taken = carrier.count("received_innovative") + carrier.count("received_redundant");
        let only_stale = up && stale > self.stale && taken == self.taken;
        // In between no other data may arrive; an idle carrier may receive late data occasionally.
        let nothing = up && stale == self.stale && taken == self.taken;
        let rests = self.since.is_none_or(|(_, last, _)| now >= last + STALE_TIME);
        let before = self.stale;
        (self.stale, self.taken) = (stale, taken);
        if only_stale {
            let (since, _, before) = self.since.filter(|_| !rests).unwrap_or((now, now, before));
            self.since = Some((since, now, before));
        } else if !nothing {
            self.since = None;
        }
        let (since, _, before) = self.since?;
        if !only_stale || now < since + STALE_TIME || !may_say(now, &mut self.said) {
            return None;
        }
        let CarrierStatus { name, carries, channel, .. } = carrier;
        Some(format!(
            "carrier of {carries} on channel {channel} for `{name}` hears only stale data, {} datagrams in {:.0} s, though a peer \
             is up: a node of the route has lost the session, or somebody else sends in the peer's name",
            stale - before,
            now.since(since).as_secs_f64()
        ))
    }
}

/// Whether a line is due; then its time is noted.
pub(crate) fn may_say(now: Instant, said: &mut Option<Instant>) -> bool {
    let may = said.is_none_or(|at| now >= at + MIN_INTERVAL);
    if may {
        *said = Some(now);
    }
    may
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(complaints: &mut Complaints, at: u64, counts: &[(&str, u64)], up: bool) -> Vec<String> {
        let mut carrier =
            CarrierStatus { name: "island".into(), carries: "tcp".into(), ..CarrierStatus::default() };
        carrier.counters.extend(counts.iter().map(|&(name, count)| (name.to_owned(), count)));
        let status = Status { carriers: vec![carrier], ..Status::default() };
        complaints.look(Instant::ZERO + Duration::from_secs(at), &status, &[up])
    }

    #[test]
    fn a_carrier_that_hears_only_stale_data_from_a_peer_that_is_up_is_worth_a_line_a_minute() {
        let mut complaints = Complaints::default();
        let mut said = Vec::new();
        for at in 0..100 {
            let found =
                lines(&mut complaints, at, &[("received_innovative", 50), ("received_stale", 10 * at)], true);
            said.extend(found.iter().map(|_| at));
            let is_about = |line: &String| line.contains("`island` hears only stale data");
            assert!(found.iter().all(is_about), "{found:?}");
        }
        assert_eq!(said, [6, 66]);
        let mut complaints = Complaints::default();
        for at in 0..100 {
            let healthy = [("received_innovative", at), ("received_stale", 10 * at)];
            assert!(lines(&mut complaints, at, &healthy, true).is_empty());
        }
        let mut complaints = Complaints::default();
        for at in 0..100 {
            assert!(lines(&mut complaints, at, &[("received_stale", 10 * at)], false).is_empty());
        }
    }

    #[test]
    fn a_carrier_that_rests_and_hears_something_late_now_and_then_is_not_complained_of() {
        let mut complaints = Complaints::default();
        for at in 0..100 {
            let rests = [("received_innovative", 50), ("received_stale", at / 6)];
            assert_eq!(lines(&mut complaints, at, &rests, true), [""; 0], "at {at} s");
        }
    }

    #[test]
    fn servers_that_do_not_answer_are_told_of_by_their_connections() {
        let mut status = Status::default();
        status.sockets.insert("socket_streams_timed_out".into(), 3);
        let found = Complaints::default().look(Instant::ZERO, &status, &[]);
        assert_eq!(found, ["3 connections were reset: their server did not answer within `connect-timeout`"]);
    }

    #[test]
    fn what_happens_to_a_carrier_is_said_at_once_with_its_site_and_then_once_a_minute() {
        let mut complaints = Complaints::default();
        let found: Vec<_> =
            (0..70).flat_map(|at| lines(&mut complaints, at, &[("streams_restarted", at)], true)).collect();
        let meaning = "connections were reset: the far site was started anew";
        assert_eq!(found, [1, 60].map(|count| format!("site `island`, tcp: {count} {meaning}")));
    }

    #[test]
    fn what_was_refused_is_counted_in_one_line_a_minute() {
        let mut complaints = Complaints::default();
        let found: Vec<_> = (0..70)
            .flat_map(|at| lines(&mut complaints, at, &[("connections_refused_source", 2 * at)], true))
            .collect();
        let meaning = "TCP connections were refused: their source has as many as `per-source` allows";
        assert_eq!(found, [format!("2 {meaning}"), format!("120 {meaning}")]);
    }
}
