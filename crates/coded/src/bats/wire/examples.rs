//! One example of each frame, from which tests begin.

use super::{BatchHeader, Coding, Data, Info, Report, Session};
use crate::bats::config::BatchSize;

impl Report<'_> {
    /// The first one of a child that has got nothing.
    pub(in super::super) const fn example(epoch: u32) -> Self {
        Self {
            session: 1,
            epoch: epoch as u8,
            instance: 1,
            number: 1,
            arrivals: None,
            floor: 0,
            grant: 0,
            base: 0,
            complete: true,
            rest: None,
            list: &[],
        }
    }
}

impl Data<'_> {
    /// The first symbol of a session, which is empty.
    pub(in super::super) const fn example() -> Self {
        Self {
            session: 1,
            epoch: 1,
            sequence: 0,
            block: 0,
            header: BatchHeader { block: 256, batch: BatchSize::M16, id: 0 },
            coding: Coding::Symbol(0),
            ask: false,
            trimmed: false,
            payload: &[],
        }
    }
}

impl Info {
    /// INFO of a reliable session with rank feedback that has just begun.
    pub(in super::super) const fn example() -> Self {
        Self {
            session: Session { mark: 1 },
            echo: None,
            batch: BatchSize::M16,
            block: 256,
            symbol: 1000,
            epoch: 1,
            round_trip: 0,
            deadline: None,
            fixed: false,
            elapsed: 0,
            budget: None,
            ask: false,
            floor: 0,
        }
    }
}
