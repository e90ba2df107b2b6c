//! Items that an edge hands up.

use hopcast_core::{Buffer, StreamId, StreamItem};

/// An item for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Up {
    Unit(Buffer),
    Stream(StreamId, StreamItem),
}
