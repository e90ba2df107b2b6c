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

impl StatusTable {
    /// The rows as text, of which there are `room` at most, and the number of those that are left out. `name` says what
    /// stands for an Ethernet address, and `time` for a time of the run.
    pub fn text(
        &self,
        room: usize,
        name: impl Fn(MacAddress) -> String,
        time: impl Fn(Instant) -> String,
    ) -> (Vec<Vec<String>>, usize) {
        let cell = |cell: &StatusCell| match cell {
            StatusCell::Address(address) => name(*address),
            StatusCell::Time(at) => time(*at),
            StatusCell::Text(text) => text.clone(),
        };
        let rows: Vec<_> = self.rows.iter().take(room).map(|row| row.iter().map(cell).collect()).collect();
        let left_out = self.rows.len() - rows.len();
        (rows, left_out)
    }
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
