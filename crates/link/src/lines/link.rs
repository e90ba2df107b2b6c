//! Stations with a line for each pair, as a link.

use std::cmp::Reverse;

use hopcast_core::{Buffer, Fraction, Instant, earliest};

use super::Lines;
use crate::address::is_group;
use crate::config::DropReason;
use crate::flight::{Due, Fate};
use crate::sender::ETHERNET_HEADER;
use crate::{Attachment, Change, Counters, Event, Hearing, Link, Quality, QueueSnapshot};

impl Link for Lines {
    fn attachments(&self) -> usize {
        self.stations.len()
    }

    fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer) {
        self.advance(now);
        let own = &self.stations[from];
        if own.down {
            return self.drop(now, from, frame, DropReason::Down);
        }
        if frame.len() as u64 > u64::from(own.direction.mtu) + ETHERNET_HEADER {
            return self.drop(now, from, frame, DropReason::TooBig);
        }
        if let Some(to) = self.addresses.addressee(from, &frame) {
            let rate = self.radios.hearing(now, from, to).filter(Hearing::reads).map(|hearing| hearing.rate);
            return self.enqueue(now, from, to, frame, rate);
        }
        let group = is_group(&frame);
        if !self.flood(now, from, &frame, |station| group || station.promiscuous) && !group {
            return self.drop(now, from, frame, DropReason::Unheard);
        }
        let own = &mut self.stations[from];
        own.counters.sent_packets += 1;
        own.counters.sent_bytes += frame.len() as u64;
        self.reports.sent(now, from, &frame);
        if own.config.echo {
            self.flight.launch(Fate { at: now, twice: false, flip: None }, frame, from, from, true, None);
        } else {
            frame.recycle();
        }
    }

    fn wake(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        self.advance(now);
        let frame = match self.flight.take_due(&mut self.reports, now)? {
            Due::Report(event) => return Some(event),
            Due::Arrival(frame) => frame,
        };
        if let Some(index) = self.index(frame.from(), frame.to())
            && let Some(line) = &mut self.lines[index]
        {
            line.path.delivered(&frame);
        }
        Some(frame.into_event())
    }

    fn deadline(&self) -> Option<Instant> {
        let left = self.ends.peek().map(|&Reverse((end, _))| end);
        // Nobody notices that a frame has left before it can arrive, unless that is reported.
        let noticed = if self.reports.on() { left } else { left.map(|left| left + self.min_delay) };
        earliest(earliest(self.reports.next(), self.flight.next()), noticed)
    }

    fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change) {
        self.advance(now);
        if change.is_by_radio() {
            return;
        }
        let n = self.stations.len();
        for (index, own) in self.stations.iter_mut().enumerate() {
            if from.is_some_and(|from| from != index) {
                continue;
            }
            own.direction.apply(change);
            match change {
                Change::Down => own.down = true,
                Change::Up => own.down = false,
                _ => {}
            }
            for line in self.lines[index * n..(index + 1) * n].iter_mut().flatten() {
                line.sender.change(now, change, &mut self.reports);
                line.path.change(change);
            }
        }
        self.measure_min_delay();
    }

    fn report_sent(&mut self, report: bool) {
        self.reports.turn(report);
    }

    fn keep_drops(&mut self) {
        self.reports.keep_drops();
    }

    fn take_drop(&mut self) -> Option<(Instant, Event)> {
        self.reports.take_drop()
    }

    fn quality(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Quality> {
        self.advance(now);
        self.index(from, to)?;
        if self.stations[from].down {
            return None;
        }
        let Hearing { rate, loss, signal, .. } = self.radios.peek(now, from, to).filter(Hearing::reads)?;
        Some(Quality::new(Fraction::ZERO, loss, 0, Some(rate)).at(signal))
    }

    fn sender_counters(&mut self, now: Instant, from: Attachment) -> Counters {
        self.advance(now);
        let Some(own) = self.stations.get(from) else { return Counters::default() };
        self.lines_of(from).fold(own.counters, |sum, line| sum + line.sender.counters(now))
    }

    fn counters(&mut self, now: Instant, from: Attachment, to: Attachment) -> Counters {
        self.advance(now);
        let Some(line) = self.line(from, to) else { return Counters::default() };
        let due = self.flight.due(now).filter(|frame| (frame.from(), frame.to()) == (from, to));
        let sender = Counters { sent_bytes: 0, sent_packets: 0, ..line.sender.counters(now) };
        sender + line.path.counters(due)
    }

    fn backlog(&mut self, now: Instant, from: Attachment) -> QueueSnapshot {
        self.advance(now);
        let Some(own) = self.stations.get(from) else { return QueueSnapshot::default() };
        let none = QueueSnapshot { down: own.down, ..QueueSnapshot::default() };
        self.lines_of(from).map(|line| line.sender.backlog()).fold(none, |sum, line| QueueSnapshot {
            frames: sum.frames + line.frames,
            bytes: sum.bytes + line.bytes,
            ..sum
        })
    }
}
