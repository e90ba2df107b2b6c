//! The part of a link that media and switches share.

use hopcast_core::{Buffer, Instant, earliest};

use crate::stations::Stations;
use crate::{Attachment, Change, Counters, Event, Link, Quality, QueueSnapshot};

/// A link of several stations, which says when each of them sends; the rest is in its [`Stations`].
pub(crate) trait Multipoint {
    fn stations(&self) -> &Stations;

    fn stations_mut(&mut self) -> &mut Stations;

    /// Sends all that is sent by `now`.
    fn advance(&mut self, now: Instant);

    /// Takes a frame, after it has caught up with `now`.
    fn admit(&mut self, now: Instant, from: Attachment, frame: Buffer);

    /// Continues after a change of its stations, which have caught up with `now`.
    fn resume(&mut self, now: Instant, from: Option<Attachment>, change: &Change);

    /// The time at which a station sends next, or may.
    fn next(&self) -> Option<Instant>;

    /// Whether frames are acknowledged.
    fn acknowledges(&self) -> bool;
}

impl<M: Multipoint> Link for M {
    fn attachments(&self) -> usize {
        self.stations().len()
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
        self.stations_mut().poll(now)
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.stations().next(), self.next())
    }

    fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change) {
        self.advance(now);
        self.stations_mut().change(now, from, change);
        self.resume(now, from, change);
        self.advance(now);
    }

    fn report_sent(&mut self, report: bool) {
        self.stations_mut().reports.turn(report);
    }

    fn keep_drops(&mut self) {
        self.stations_mut().reports.keep_drops();
    }

    fn take_drop(&mut self) -> Option<(Instant, Event)> {
        self.stations_mut().reports.take_drop()
    }

    fn report_status(&mut self, from: Attachment) {
        if self.acknowledges() && from < self.stations().len() {
            self.stations_mut().reports.ask(from);
        }
    }

    fn quality(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Quality> {
        self.advance(now);
        self.stations_mut().quality(now, from, to)
    }

    fn sender_counters(&mut self, now: Instant, from: Attachment) -> Counters {
        self.advance(now);
        self.stations().senders.get(from).map_or_else(Counters::default, |sender| sender.counters(now))
    }

    fn counters(&mut self, now: Instant, from: Attachment, to: Attachment) -> Counters {
        self.advance(now);
        self.stations().counters(now, from, to)
    }

    fn backlog(&mut self, now: Instant, from: Attachment) -> QueueSnapshot {
        self.advance(now);
        self.stations().backlog(from)
    }
}
