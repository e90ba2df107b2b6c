//! MFC: flow control by credits. A member sends no further ahead than what the slowest receiver has delivered, and its
//! credit on top.

/// Credits of a member in a view: what it may send, and what it has to give back to others.
#[derive(Debug)]
pub(super) struct Credits {
    max: u64,
    /// Bytes that may still be sent, by the rank of the receiver.
    left: Vec<u64>,
    /// Bytes that were delivered and not given back, by the rank of the sender.
    owed: Vec<u64>,
}

impl Credits {
    /// Full credit between all members.
    pub(super) fn new(members: usize, max: u64) -> Self {
        Self { max, left: vec![max; members], owed: vec![0; members] }
    }

    /// Whether all others have room for `bytes`.
    pub(super) fn allows(&self, own: u16, bytes: u64) -> bool {
        self.left.iter().enumerate().all(|(rank, &left)| rank == usize::from(own) || left >= bytes)
    }

    /// Notes that bytes were sent to all.
    pub(super) fn sent(&mut self, bytes: u64) {
        self.left.iter_mut().for_each(|left| *left = left.saturating_sub(bytes));
    }

    /// A receiver gives credit, never more than it began with.
    pub(super) fn given(&mut self, rank: u16, bytes: u64) {
        let left = &mut self.left[usize::from(rank)];
        *left = left.saturating_add(bytes).min(self.max);
    }

    /// Notes that bytes of a member's were delivered: the credit to give back, once that is worth a packet.
    pub(super) fn delivered(&mut self, rank: u16, bytes: u64) -> Option<u64> {
        let owed = &mut self.owed[usize::from(rank)];
        *owed += bytes;
        (*owed >= self.max - self.max / 10 * MIN_TENTHS).then(|| core::mem::take(owed))
    }
}

/// Tenths of the credit below which it is given back: the min_threshold of 0.4 in JGroups 2.12's udp.xml.
const MIN_TENTHS: u64 = 4;

/// Bytes that a message counts, so that empty ones count too.
pub(super) const fn cost(payload: usize) -> u64 {
    (payload + super::wire::DATA_OVERHEAD) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_receiver_holds_the_sender_back_until_it_gives_credit() {
        let mut credits = Credits::new(3, 1000);
        credits.sent(600);
        assert!(credits.allows(0, 400) && !credits.allows(0, 401));
        credits.given(1, 600);
        assert!(!credits.allows(0, 401), "of member 2");
        credits.given(2, u64::MAX);
        assert!(credits.allows(0, 1000) && !credits.allows(0, 1001));
    }

    #[test]
    fn credit_is_given_back_in_lots() {
        let mut credits = Credits::new(2, 1000);
        assert_eq!(credits.delivered(1, 599), None);
        assert_eq!(credits.delivered(1, 1), Some(600));
        assert_eq!(credits.delivered(1, 1), None);
    }
}
