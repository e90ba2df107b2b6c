//! What media and switches have in common as links.

use hopcast_core::{Buffer, Instant, earliest};

use crate::air::Air;
use crate::{Attachment, Backlog, Change, Counters, Event, Link, Quality};

/// A link of several stations, which says when each of them sends; all else is its [`Air`].
pub(crate) trait Multipoint {
    fn air(&self) -> &Air;

    fn air_mut(&mut self) -> &mut Air;

    /// Sends all that is sent by `now`.
    fn advance(&mut self, now: Instant);

    /// Takes a frame, after it has caught up with `now`.
    fn admit(&mut self, now: Instant, from: Attachment, frame: Buffer);

    /// Goes on after a change of its stations, which have caught up with `now`.
    fn resume(&mut self, now: Instant, from: Option<Attachment>, change: &Change);

    /// When somebody sends next, or may.
    fn next(&self) -> Option<Instant>;

    /// Whether frames are acknowledged.
    fn acknowledges(&self) -> bool;
}

impl<M: Multipoint> Link for M {
    fn attachments(&self) -> usize {
        self.air().len()
    }

    fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer) {
        self.advance(now);
        self.admit(now, from, frame);
    }

    fn wake(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        self.advance(now);
        self.air_mut().poll(now)
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.air().next(), self.next())
    }

    fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change) {
        self.advance(now);
        self.air_mut().change(now, from, change);
        self.resume(now, from, change);
        self.advance(now);
    }

    fn report_sent(&mut self, report: bool) {
        self.air_mut().reports.turn(report);
    }

    fn report_status(&mut self, from: Attachment) {
        if self.acknowledges() && from < self.air().len() {
            self.air_mut().reports.ask(from);
        }
    }

    fn quality(&self, from: Attachment, to: Attachment) -> Option<Quality> {
        self.air().quality(from, to)
    }

    fn sender_counters(&mut self, now: Instant, from: Attachment) -> Counters {
        self.advance(now);
        self.air().senders.get(from).map_or_else(Counters::default, |sender| sender.counters(now))
    }

    fn counters(&mut self, now: Instant, from: Attachment, to: Attachment) -> Counters {
        self.advance(now);
        self.air().counters(now, from, to)
    }

    fn backlog(&mut self, now: Instant, from: Attachment) -> Backlog {
        self.advance(now);
        self.air().backlog(from)
    }
}
