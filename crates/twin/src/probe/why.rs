//! What became of the packets of a check that did not pass: the same once more, recorded, and followed.

use hopcast_trace::verdict::{Finding, Verdict, verdicts};
use hopcast_trace::{Log, MemoryLog, Query, follow};

use crate::world::World;

/// Maximum size of a log, in bytes. Chosen: it bounds memory, and holds a check in a network of thousands of nodes.
pub(super) const MAX_LOG: u64 = 64 << 20;

/// What happens to packets while `send` runs the world, as a log; `None` if it cannot be read.
pub(super) fn recorded(world: &mut World, send: impl FnOnce(&mut World)) -> Option<Log> {
    recorded_within(MAX_LOG, world, |world, _| send(world))
}

/// The same with a log of at most about `max_log` bytes, which `send` is given too.
pub(super) fn recorded_within(
    max_log: u64,
    world: &mut World,
    send: impl FnOnce(&mut World, &MemoryLog),
) -> Option<Log> {
    let memory = MemoryLog::default();
    world.record(memory.recorder(max_log));
    send(world, &memory);
    world.finish_recording().ok()?;
    Log::read(memory.take()).ok()
}

/// What became of packets that did not arrive.
#[derive(Default)]
pub(super) struct Followed {
    /// A line for each kind of packet.
    pub(super) lines: Vec<String>,
    /// Whether one of them names the place at which packets died, and not only that nobody answered.
    pub(super) names_a_place: bool,
}

/// What became of packets of a query that did not arrive: its first verdict. Where a next hop did not answer, what
/// became of the requests for its address comes before it.
pub(super) fn followed(log: &Log, query: &str) -> Followed {
    let Some(verdict) = first_verdict(log, query) else { return Followed::default() };
    let of_requests: &[&str] = if is_unanswered(&verdict) { &["arp", "nd"] } else { &[] };
    let of_requests = of_requests.iter().filter_map(|query| first_verdict(log, query));
    let all: Vec<Verdict> = of_requests.chain([verdict]).collect();
    let names_a_place =
        |verdict: &Verdict| matches!(verdict.finding, Finding::Died { .. }) && !is_unanswered(verdict);
    Followed {
        lines: all.iter().map(ToString::to_string).collect(),
        names_a_place: all.iter().any(names_a_place),
    }
}

/// Whether packets died because nobody answered who has their next hop's address.
fn is_unanswered(verdict: &Verdict) -> bool {
    matches!(&verdict.finding, Finding::Died { counter: Some(counter), .. } if UNANSWERED.contains(&&**counter))
}

/// The counters of packets whose next hop did not answer, and of those for which there was no room while it was asked.
const UNANSWERED: [&str; 2] = ["neighbour_queue_dropped", "unresolved"];

/// The verdict of most interest on the packets of a query, if they did not all arrive.
fn first_verdict(log: &Log, query: &str) -> Option<Verdict> {
    let query = Query::parse(query, log).ok()?;
    let first = verdicts(&follow(log, &query)).into_iter().next()?;
    (first.note.is_some() || !matches!(first.finding, Finding::Arrived { .. })).then_some(first)
}
