//! Tables of a service's state, for people and for checks.

use hopcast_core::{Instant, Shared};

use super::Restartable;
use crate::network::MacAddress;

/// The table of a mesh whose rows begin with the address of a node that it knows a way to, and the time of its last
/// message.
pub const ORIGINATORS: &str = "originators";

/// A table of what a service knows at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusTable {
    /// Its name.
    pub name: &'static str,
    /// The names of its columns.
    pub columns: &'static [&'static str],
    /// Its rows, each with a cell for each column.
    pub rows: Vec<Vec<StatusCell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusCell {
    /// An Ethernet address.
    Address(MacAddress),
    /// A time of the run.
    Time(Instant),
    /// Anything else, as people read it.
    Text(String),
}

/// Reads the tables of a machine that runs.
pub type StatusReader = Box<dyn Fn() -> Vec<StatusTable>>;

/// The state of a service at a node.
pub struct ServiceStatus(Shared<Restartable>);

impl ServiceStatus {
    pub(crate) const fn new(machine: Shared<Restartable>) -> Self {
        Self(machine)
    }

    /// Its tables; none while it is stopped, and of a service that has none.
    pub fn tables(&self) -> Vec<StatusTable> {
        self.0.get().tables()
    }
}
