//! A node's receiver of one neighbour: which transmissions have arrived, and which chunks.

use std::collections::{BTreeSet, VecDeque};

use hopcast_core::bytes::complete;
use hopcast_core::{Duration, Instant};

use super::config::MAX_AHEAD;
use super::wire::{Acknowledgement, MAX_RUNS, Packet};

/// Number of packets that are acknowledged together. Chosen, as TCP's delayed acknowledgements (RFC 1122 section
/// 4.2.3.2): one costs twice the acknowledgements, more make the sender's window move in lumps.
const TOGETHER: u32 = 2;
/// Time that an acknowledgement of a single packet waits for the next. Chosen: longer, the sender learns later of what
/// has arrived; shorter, more acknowledgements cross the link.
const HOLD: Duration = Duration::from_millis(1);

/// The verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// A chunk that had not arrived before.
    New,
    Duplicate,
    /// Too far ahead of the first missing packet.
    OutOfWindow,
    /// Of a session that is not known here.
    Unknown,
}

/// The verdict on a packet that may begin a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// It did not begin any.
    Not,
    First,
    /// The neighbour's session before is over.
    Instead,
    /// The neighbour had a session with this node before this node was started anew.
    AfterOurRestart,
}

/// The receiving half of a hop.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    session: Option<u16>,
    former: u16,
    received: u64,
    next_index: u64,
    /// Indices beyond that have arrived.
    ahead: BTreeSet<u64>,
    /// The numbers that have arrived: from and to, the newest first.
    runs: VecDeque<(u64, u64)>,
    unacknowledged: u32,
    due: Option<Instant>,
}

impl Incoming {
    /// One that has forgotten all but the neighbour's last session.
    pub(super) fn anew(&self) -> Self {
        Self { former: self.session(), ..Self::default() }
    }

    /// The neighbour's session, or the last that was known; 0 if there was none.
    pub(super) fn session(&self) -> u16 {
        self.session.unwrap_or(self.former)
    }

    /// Begins the session of a packet that may; `own` is that of the opposite direction.
    pub(super) fn begin(&mut self, packet: &Packet<'_>, own: u16) -> Begun {
        let Some(knows) = packet.first.filter(|_| self.session != Some(packet.session)) else {
            return Begun::Not;
        };
        let (before, former) = (self.session, self.former);
        *self = Self { session: Some(packet.session), ..Self::default() };
        match before {
            Some(_) => Begun::Instead,
            // Whom the neighbour knew here was none that this one remembers.
            None if knows != 0 && knows != own && former == 0 => Begun::AfterOurRestart,
            None => Begun::First,
        }
    }

    pub(super) fn take(&mut self, now: Instant, packet: &Packet<'_>) -> Taken {
        if self.session != Some(packet.session) {
            return Taken::Unknown;
        }
        let index = complete(packet.index, 32, self.next_index);
        if index >= self.next_index + MAX_AHEAD {
            return Taken::OutOfWindow;
        }
        let highest = self.runs.front().map_or(0, |&(_, to)| to);
        let number = complete(packet.number, 32, highest);
        self.received += 1;
        self.unacknowledged += 1;
        let in_order = number == highest;
        self.note(number);
        let at_once = packet.urgent || !in_order || self.unacknowledged >= TOGETHER;
        self.due = Some(if at_once { now } else { self.due.unwrap_or(now + HOLD) });
        if index < self.next_index || !self.ahead.insert(index) {
            return Taken::Duplicate;
        }
        while self.ahead.remove(&self.next_index) {
            self.next_index += 1;
        }
        Taken::New
    }

    fn note(&mut self, number: u64) {
        // Nearly always the newest run grows.
        let place = self.runs.iter().position(|&(from, _)| from <= number + 1).unwrap_or(self.runs.len());
        match self.runs.get_mut(place) {
            Some((from, to)) if *from <= number && number < *to => return,
            Some((_, to)) if *to == number => *to += 1,
            Some((from, _)) if *from == number + 1 => *from = number,
            _ => self.runs.insert(place, (number, number + 1)),
        }
        // Two may have grown together.
        for upper in [place, place.saturating_sub(1)] {
            let pair = (self.runs.get(upper).copied(), self.runs.get(upper + 1).copied());
            if let (Some((from, to)), Some((below, end))) = pair
                && from == end
            {
                self.runs[upper] = (below, to);
                self.runs.remove(upper + 1);
            }
        }
        self.runs.truncate(MAX_RUNS / 2);
    }

    /// Time at which an acknowledgement is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Makes one due: something else that it says has changed.
    pub(super) fn hurry(&mut self, now: Instant) {
        if !self.runs.is_empty() {
            self.due = Some(now);
        }
    }

    /// The acknowledgement that is due.
    pub(super) fn acknowledge(&mut self, now: Instant, pause: bool) -> Option<Acknowledgement> {
        self.due.take_if(|due| *due <= now)?;
        self.unacknowledged = 0;
        let (session, &(_, end)) = (self.session?, self.runs.front()?);
        let mut runs = Vec::with_capacity(2 * self.runs.len());
        let mut above = None;
        for &(from, to) in &self.runs {
            runs.extend(above.map(|above: u64| above - to));
            runs.push(to - from);
            above = Some(from);
        }
        // A run that 16 bits do not hold ends the list: it is old.
        let runs: Vec<u16> = runs.into_iter().map_while(|run| u16::try_from(run).ok()).collect();
        let runs = if runs.is_empty() { vec![u16::MAX] } else { runs };
        Some(Acknowledgement {
            session,
            pause,
            received: self.received as u32,
            next_index: self.next_index as u32,
            highest: (end - 1) as u32,
            runs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hop_arq::wire::Message;

    fn packet(number: u32, index: u32) -> Packet<'static> {
        Packet { session: 1, first: Some(0), urgent: false, number, index, chunk: b"" }
    }

    fn take(incoming: &mut Incoming, number: u32, index: u32) -> Taken {
        let packet = packet(number, index);
        incoming.begin(&packet, 1);
        incoming.take(Instant::ZERO, &packet)
    }

    #[test]
    fn runs_of_numbers_are_told_from_the_newest_downwards() {
        let mut incoming = Incoming::default();
        for number in [0, 1, 4, 7, 8, 3] {
            assert_eq!(take(&mut incoming, number, number), Taken::New);
        }
        let ack = incoming.acknowledge(Instant::ZERO, false).unwrap();
        assert_eq!((ack.highest, ack.runs, ack.next_index), (8, vec![2, 2, 2, 1, 2], 2));
        take(&mut incoming, 2, 2);
        let ack = incoming.acknowledge(Instant::ZERO, true).unwrap();
        assert_eq!((ack.runs, ack.next_index, ack.pause), (vec![2, 2, 5], 5, true));
    }

    #[test]
    fn a_chunk_is_new_once_and_not_too_far_ahead() {
        let mut incoming = Incoming::default();
        assert_eq!(take(&mut incoming, 0, 0), Taken::New);
        assert_eq!(take(&mut incoming, 1, 0), Taken::Duplicate);
        assert_eq!(take(&mut incoming, 2, 2), Taken::New);
        assert_eq!(take(&mut incoming, 3, 2), Taken::Duplicate);
        assert_eq!(take(&mut incoming, 4, 131_072), Taken::New);
        assert_eq!(take(&mut incoming, 5, 131_073), Taken::OutOfWindow);
    }

    #[test]
    fn only_a_first_packet_begins_a_session_and_ends_the_one_before() {
        let mut incoming = Incoming::default();
        let stray = Packet { first: None, ..packet(5, 5) };
        assert_eq!(incoming.begin(&stray, 1), Begun::Not);
        assert_eq!(incoming.take(Instant::ZERO, &stray), Taken::Unknown);
        assert_eq!(incoming.begin(&packet(0, 0), 1), Begun::First);
        assert_eq!(incoming.begin(&Packet { session: 2, ..packet(0, 0) }, 1), Begun::Instead);
        let mut fresh = Incoming::default();
        assert_eq!(fresh.begin(&Packet { first: Some(9), ..packet(0, 0) }, 1), Begun::AfterOurRestart);
        assert_eq!(incoming.anew().session(), 2);
    }

    #[test]
    fn two_packets_are_acknowledged_together_and_one_that_is_alone_after_a_millisecond() {
        let mut incoming = Incoming::default();
        take(&mut incoming, 0, 0);
        assert_eq!(incoming.due(), Some(Instant::ZERO + Duration::from_millis(1)));
        assert_eq!(incoming.acknowledge(Instant::ZERO, false), None);
        take(&mut incoming, 1, 1);
        assert_eq!(incoming.acknowledge(Instant::ZERO, false).unwrap().runs, [2]);
        assert_eq!(incoming.due(), None);
    }

    #[test]
    fn an_acknowledgement_names_the_newest_32_runs_and_no_message_more_than_64() {
        let mut incoming = Incoming::default();
        for number in (0..200).step_by(2) {
            take(&mut incoming, number, number);
        }
        let ack = incoming.acknowledge(Instant::ZERO, false).unwrap();
        assert_eq!((ack.highest, ack.runs.len()), (198, 63), "32 that arrived, and 31 gaps between them");
        let told =
            |runs| Message::Acknowledgement(Acknowledgement { runs: vec![1; runs], ..ack.clone() }).emit();
        assert!(Message::parse(&told(64)).is_ok() && Message::parse(&told(65)).is_err());
    }
}
