//! Entries of the table of originators, as B.A.T.M.A.N. V has them.

use hopcast_core::{Instant, Rate};

use super::throughput::Average;
use crate::routing::Algorithm;

/// The algorithm.
pub(crate) struct V;

impl Algorithm for V {
    type Neighbour = Neighbour;
    type Out = Out;
    type Path = Path;

    fn metric(path: &Path) -> Option<u32> {
        path.newest.map(|_| path.throughput)
    }

    fn keep<'a>(_: &mut Out, _: impl Iterator<Item = &'a Path>) {}
}

/// State of a neighbour, by its probes and the link to it.
#[derive(Debug, Default)]
pub(crate) struct Neighbour {
    /// Number of its last probe.
    pub(super) last_probe: Option<u32>,
    /// Rate at which it has sent to this node last.
    pub(super) rate: Option<Rate>,
    /// Time of the last packet that was sent to it alone.
    pub(super) last_unicast: Option<Instant>,
    /// Throughput of the link to it.
    pub(super) throughput: Average,
}

/// State of an originator for packets that leave by one interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Out {
    /// Whether there was a message at all.
    pub(super) heard: bool,
    /// Number of the last message that was forwarded.
    pub(super) forwarded: Option<u32>,
}

/// The path by a neighbour.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    /// Number of the last message that came by it.
    pub(super) newest: Option<u32>,
    /// Its throughput, by that message and the link to the neighbour.
    pub(super) throughput: u32,
}
