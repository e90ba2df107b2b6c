//! What became of the packets of a check that did not pass: the same once more, recorded, and followed.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use hopcast_trace::verdict::{Finding, Verdict, verdicts};
use hopcast_trace::{Log, Query, Recorder, follow};

use crate::world::World;

/// Maximum size of a log, in bytes. Chosen: it bounds memory, and holds a check in a network of thousands of nodes.
const MAX_LOG: u64 = 64 << 20;

/// What happens to packets while `send` runs the world, as a log; `None` if it cannot be read.
pub(super) fn recorded(world: &mut World, send: impl FnOnce(&mut World)) -> Option<Log> {
    let memory = Memory::default();
    world.record(Recorder::new(Box::new(memory.clone()), MAX_LOG));
    send(world);
    world.finish_recording().ok()?;
    Log::read(memory.0.take()).ok()
}

/// What became of packets that did not arrive: the first verdict of each query that has one. Where a next hop did not
/// answer, what became of the requests for its address comes first.
pub(super) fn lines(log: &Log, queries: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for verdict in queries.iter().filter_map(|query| first_verdict(log, query)) {
        let asked = matches!(&verdict.finding, Finding::Died { counter: Some(counter), .. } if UNANSWERED.contains(&&**counter));
        let of_requests = ["arp", "nd"].into_iter().filter(|_| asked);
        let of_requests = of_requests.filter_map(|query| first_verdict(log, query));
        lines.extend(of_requests.map(|verdict| verdict.to_string()));
        lines.push(verdict.to_string());
    }
    lines
}

/// The counters of packets whose next hop did not answer, and of those for which there was no room while it was asked.
const UNANSWERED: [&str; 2] = ["neighbour_queue_dropped", "unresolved"];

/// The verdict of most interest on the packets of a query, if they did not all arrive.
fn first_verdict(log: &Log, query: &str) -> Option<Verdict> {
    let query = Query::parse(query, log).ok()?;
    let first = verdicts(&follow(log, &query)).into_iter().next()?;
    (first.note.is_some() || !matches!(first.finding, Finding::Arrived { .. })).then_some(first)
}

/// A log in memory.
#[derive(Clone, Default)]
struct Memory(Rc<RefCell<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
