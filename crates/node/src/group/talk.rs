//! Messages of programs: their numbers, and who has how many.

use hopcast_core::{Buffer, Duration, Instant};

use super::wire::{Heard, read_message, write_message};

/// Time between two receipts for messages. Chosen; shorter costs datagrams, longer shows later who has them.
const RECEIPT_INTERVAL: Duration = Duration::from_millis(500);

/// The messages of this site, and of the other members.
#[derive(Debug)]
pub(crate) struct Talk {
    /// Number of this run of this site, unlike that of the one before.
    session: u32,
    pub(crate) sent: u32,
    /// Of each member: what it has of ours.
    pub(crate) told: Vec<Heard>,
    /// Of each member: what came of its own, and when to tell it.
    heard: Vec<Heard>,
    due: Vec<Option<Instant>>,
    pub(crate) malformed: u64,
    pub(crate) repeated: u64,
}

impl Talk {
    pub(crate) fn new(session: u32, members: usize) -> Self {
        let none = vec![Heard::default(); members];
        let due = vec![None; members];
        Self { session, sent: 0, told: none.clone(), heard: none, due, malformed: 0, repeated: 0 }
    }

    /// Numbers a message of this site.
    pub(crate) fn number(&mut self, message: Buffer) -> Buffer {
        // After 2^32 messages numbers stay at their last, and no count is right any more.
        self.sent = self.sent.saturating_add(1);
        write_message(self.session, self.sent, message)
    }

    /// The last message was not taken.
    pub(crate) fn take_back(&mut self) {
        self.sent -= 1;
    }

    /// A message of a member has come; its bytes, unless it came before.
    pub(crate) fn came<'a>(&mut self, now: Instant, member: usize, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let Ok((session, number, message)) = read_message(bytes) else {
            self.malformed += 1;
            return None;
        };
        let heard = &mut self.heard[member];
        if heard.session != session {
            *heard = Heard { session, ..Heard::default() };
        }
        if number <= heard.last {
            self.repeated += 1;
            return None;
        }
        (heard.last, heard.came) = (number, heard.came + 1);
        self.due[member].get_or_insert(now + RECEIPT_INTERVAL);
        Some(message)
    }

    /// The receipt for a member's messages.
    pub(crate) fn heard(&mut self, member: usize) -> Heard {
        self.due[member] = None;
        self.heard[member]
    }

    /// Whether a member is to be told.
    pub(crate) fn is_due(&self, now: Instant, member: usize) -> bool {
        self.due[member].is_some_and(|at| at <= now)
    }

    /// A member reports the messages that it has received. True if that is news.
    pub(crate) fn told(&mut self, member: usize, heard: Heard) -> bool {
        let is_ours = heard.session == self.session && heard.last <= self.sent && heard.came <= heard.last;
        let news = is_ours && self.told[member] != heard;
        if news {
            self.told[member] = heard;
        }
        news
    }

    /// Whether a member may not know of our last message, or has not said that it does.
    pub(crate) fn is_behind(&self, member: usize) -> bool {
        self.told[member].last < self.sent
    }

    pub(crate) const fn session(&self) -> u32 {
        self.session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_learns_who_has_how_many_of_its_messages() {
        let (mut ship, mut shore) = (Talk::new(5, 1), Talk::new(6, 1));
        let mut cross = |now, lost: bool| {
            let message = ship.number(Buffer::copy_from(b"hello"));
            if !lost {
                let came = shore.came(now, 0, &message).map(<[u8]>::to_vec);
                assert_eq!(came.as_deref(), Some(&b"hello"[..]));
                assert_eq!(shore.came(now, 0, &message), None, "it has come before");
            }
        };
        let now = Instant::ZERO;
        [false, true, false, true].into_iter().for_each(|lost| cross(now, lost));
        assert!(!shore.is_due(now, 0) && shore.is_due(now + RECEIPT_INTERVAL, 0) && ship.is_behind(0));
        let heard = shore.heard(0);
        assert!(ship.told(0, heard) && !ship.told(0, heard) && ship.is_behind(0));
        assert_eq!(ship.told[0], Heard { session: 5, last: 3, came: 2 });
        // Of another run, and of what was never sent.
        assert!(!ship.told(0, Heard { session: 4, last: 1, came: 1 }));
        assert!(!ship.told(0, Heard { session: 5, last: 5, came: 1 }));
        // The sender is started anew.
        let mut again = Talk::new(9, 1);
        let message = again.number(Buffer::copy_from(b"1"));
        assert!(shore.came(now, 0, &message).is_some());
        assert_eq!(shore.heard(0), Heard { session: 9, last: 1, came: 1 });
    }
}
