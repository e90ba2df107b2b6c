//! Admission of datagrams by the transport below.

use hopcast_core::Item;

/// The admission of datagrams by the transport below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It takes or refuses each datagram as it comes.
    Ungranted,
    /// It has granted this number of datagrams, and refuses none of them.
    Granted(u64),
}

impl Admission {
    /// Whether a datagram may be handed over now.
    pub(crate) const fn is_open(self) -> bool {
        !matches!(self, Self::Granted(0))
    }

    /// Notes that a datagram is handed over.
    pub(crate) const fn use_one(&mut self) {
        if let Self::Granted(left) = self {
            *left = left.saturating_sub(1);
        }
    }

    /// Takes a grant; true if none was left before, and some are now.
    pub(crate) fn grant(&mut self, item: &Item) -> bool {
        let (Self::Granted(left), Item::Credit(more)) = (&mut *self, item) else { return false };
        let opened = *left == 0 && *more > 0;
        *left = left.saturating_add(*more);
        opened
    }
}
