//! Whether the transport below takes a datagram now.

use hopcast_core::Item;

/// The admission of datagrams by the transport below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// It takes or refuses each datagram as it comes.
    Open,
    /// It has granted this number of datagrams, and refuses none of them.
    Granted(u64),
}

impl Door {
    pub(crate) const fn is_open(self) -> bool {
        !matches!(self, Self::Granted(0))
    }

    /// A datagram is handed over.
    pub(crate) const fn pass(&mut self) {
        if let Self::Granted(left) = self {
            *left = left.saturating_sub(1);
        }
    }

    /// Takes a grant. Whether the door had been closed and is open now.
    pub(crate) fn take(&mut self, item: &Item) -> bool {
        let (Self::Granted(left), Item::Credit(more)) = (&mut *self, item) else { return false };
        let opened = *left == 0 && *more > 0;
        *left = left.saturating_add(*more);
        opened
    }
}
