//! STABLE: up to where each member has the messages of each, and so what all have.

use hopcast_core::{Duration, Instant};

/// The digests of all members of a view.
#[derive(Debug)]
pub(super) struct Stability {
    /// By rank of the member that has them, and of that whose they are: the number up to which all are there.
    have: Vec<Vec<u64>>,
    /// When each member has last acknowledged more, or had nothing more to acknowledge.
    advanced: Vec<Instant>,
}

impl Stability {
    /// Nothing has been sent in a view.
    pub(super) fn new(members: usize, first: u64, now: Instant) -> Self {
        Self { have: vec![vec![first; members]; members], advanced: vec![now; members] }
    }

    /// A member says that it has all messages of another up to a number. True if that is news.
    pub(super) fn note(&mut self, now: Instant, member: u16, of: u16, number: u64) -> bool {
        let have = &mut self.have[usize::from(member)][usize::from(of)];
        let is_news = number > *have;
        if is_news {
            *have = number;
            self.advanced[usize::from(member)] = now;
        }
        is_news
    }

    /// A member says that all have its messages up to a number.
    pub(super) fn note_stable(&mut self, of: u16, number: u64) {
        for have in &mut self.have {
            let have = &mut have[usize::from(of)];
            *have = number.max(*have);
        }
    }

    /// The number up to which a member has the messages of another, as far as it has said so.
    pub(super) fn has(&self, member: u16, of: u16) -> u64 {
        self.have[usize::from(member)][usize::from(of)]
    }

    /// The number up to which all members have the messages of one.
    pub(super) fn stable(&self, of: u16) -> u64 {
        self.have.iter().map(|have| have[usize::from(of)]).min().unwrap_or(0)
    }

    /// Members that have acknowledged nothing for a time, while something of `of` up to `sent` was there to be
    /// acknowledged; those that have all of it start anew.
    pub(super) fn stalled(&mut self, now: Instant, of: u16, sent: u64, after: Duration) -> Vec<u16> {
        let mut found = Vec::new();
        for (rank, have) in self.have.iter().enumerate() {
            if have[usize::from(of)] >= sent {
                self.advanced[rank] = now;
            } else if now.since(self.advanced[rank]) >= after {
                found.push(rank as u16);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_is_what_all_have_and_numbers_never_fall() {
        let mut stability = Stability::new(3, 5, Instant::ZERO);
        let note =
            |stability: &mut Stability, member, number| stability.note(Instant::ZERO, member, 1, number);
        assert!(note(&mut stability, 0, 9) && note(&mut stability, 1, 9));
        assert_eq!(stability.stable(1), 5);
        assert!(note(&mut stability, 2, 7) && !note(&mut stability, 2, 6));
        assert_eq!((stability.stable(1), stability.stable(0)), (7, 5));
    }

    #[test]
    fn who_acknowledges_nothing_of_what_there_is_stalls() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut stability = Stability::new(2, 0, at(0));
        let after = Duration::from_secs(10);
        assert_eq!(stability.stalled(at(50), 0, 0, after), [0; 0], "nothing was sent");
        stability.note(at(51), 0, 0, 4);
        assert_eq!(stability.stalled(at(59), 0, 4, after), [0; 0]);
        assert_eq!(stability.stalled(at(60), 0, 4, after), [1]);
        stability.note(at(60), 1, 0, 1);
        assert_eq!(stability.stalled(at(65), 0, 4, after), [0; 0]);
    }

    #[test]
    fn what_its_sender_says_that_all_have_is_stable() {
        let mut stability = Stability::new(2, 5, Instant::ZERO);
        stability.note(Instant::ZERO, 0, 1, 9);
        stability.note_stable(1, 7);
        assert_eq!((stability.has(0, 1), stability.has(1, 1), stability.stable(1)), (9, 7, 7));
        stability.note_stable(1, 6);
        assert_eq!((stability.stable(1), stability.stable(0)), (7, 5));
        assert!(!stability.note(Instant::ZERO, 1, 1, 7), "that is known");
    }
}
