//! Commands of a sender (NORM_CMD): its end, what it no longer has, probes, requests for acknowledgement.

use hopcast_core::Instant;

use super::remote::{MAX_AHEAD, Remote};
use super::{Ask, Feedback, Output};
use crate::norm::wire::{Ack, Acknowledged, Body, Command, Position, Timestamp, serial};

impl Remote {
    /// Takes a NORM_CMD.
    pub(super) fn command(
        &mut self,
        now: Instant,
        command: &Command<'_>,
        ask: &mut Ask<'_>,
        out: &mut Output,
    ) {
        match command {
            Command::Flush { last, acknowledge } => {
                self.numbering.note(last.fec, None);
                let Some(read) = self.numbering.read_position(last) else {
                    ask.counts.refused += 1;
                    return;
                };
                self.flushed(now, &read, ask);
                if acknowledge.contains(&ask.node) && self.has_all(&read) && self.acknowledge.is_none() {
                    // Spread over half a GRTT, so that those that are asked do not answer at once.
                    let at = now + self.grtt.mul_f64(ask.random.uniform() / 2.0);
                    self.acknowledge = Some((at, *last));
                }
            }
            Command::Squelch { first, invalid } => {
                self.numbering.note(first.fec, None);
                match self.numbering.read_position(first) {
                    Some(first) => self.squelched(&first, invalid, ask, out),
                    None => ask.counts.refused += 1,
                }
            }
            Command::CongestionControl { sequence, sent, rate, nodes, .. } => {
                self.probe = Some((*sent, now));
                self.congestion.probe(
                    now,
                    (*sequence, *rate),
                    nodes,
                    ask.node,
                    (self.grtt, self.backoff, self.group_size),
                    ask.random,
                );
            }
            Command::RepairAdvertisement { repairs, cc, .. } => {
                self.heard_requests(now, repairs);
                if let Some(cc) = cc {
                    self.heard_congestion(now, *cc);
                }
            }
            Command::AcknowledgementRequest { kind, id, acknowledge } => {
                if acknowledge.contains(&ask.node) && *kind >= Acknowledged::APPLICATION && !ask.config.silent
                {
                    let what = Acknowledged::Other { kind: *kind, payload: &[] };
                    ask.counts.acks_sent += 1;
                    self.say_ack(now, *id, what, out);
                }
            }
            Command::EndOfTransmission => {
                // It answers no requests any more. What it sent before may still be under way.
                self.leaves.get_or_insert(now + self.grtt * 2);
                self.requests.stop();
            }
            Command::Application(_) => {}
        }
    }

    /// The sender has nothing after a symbol.
    fn flushed(&mut self, now: Instant, last: &Position, ask: &mut Ask<'_>) {
        let Some(number) = self.place(last.object, ask) else { return };
        let block = self.block_number(number, last.id.block);
        let known = self.objects.get(number).and_then(super::object::Object::count);
        if known.is_some_and(|count| block >= count) {
            ask.counts.refused += 1;
            return;
        }
        self.objects.open_or_change(number, |object| {
            object.heard = Some(object.heard.map_or(block, |heard| heard.max(block)));
        });
        if let Some(place) = self.progress.flushed((number, block), last.id.symbol) {
            self.answer_is_over(place);
        }
        self.look(now, ask);
    }

    /// Whether everything up to a position is here, and nothing was given up.
    fn has_all(&self, position: &Position) -> bool {
        let Some((last, _)) = self.progress.last.filter(|_| !self.gave_up) else { return false };
        let number = last.wrapping_add_signed(i64::from(serial::distance16(position.object, last as u16)));
        let block = self.block_number(number, position.id.block);
        self.objects.wanted(number).all(|at| {
            at == number
                && self.objects.get(at).is_some_and(|object| {
                    // All of a stream that was sent, which may go on.
                    object.layout.is_some()
                        && (object.next() > block
                            || object.next() == block
                                && object.missing_until(block, position.id.symbol).is_empty())
                })
        })
    }

    /// The sender no longer holds anything before a position.
    fn squelched(&mut self, first: &Position, invalid: &[u16], ask: &mut Ask<'_>, out: &mut Output) {
        let Some((last, _)) = self.progress.last else { return };
        let numbered = |id| last.wrapping_add_signed(i64::from(serial::distance16(id, last as u16)));
        let number = numbered(first.object);
        if number > last + 1 || number.saturating_sub(self.objects.first()) > MAX_AHEAD {
            ask.counts.refused += 1;
            return;
        }
        let named = invalid.iter().map(|&id| numbered(id)).filter(|&at| at <= last);
        let gone: Vec<u64> = self.objects.wanted(number.saturating_sub(1)).chain(named).collect();
        for at in gone.into_iter().filter(|&at| at != number || invalid.contains(&first.object)) {
            self.is_gone(at, ask, out);
        }
        let block = self.block_number(number, first.id.block);
        if self.objects.change(number, |object| object.skip_to(block)) == Some(true) {
            self.missing_for_good(number, ask, out);
            self.hand_up(number, ask, out);
        }
    }

    fn say_ack(&self, now: Instant, id: u8, what: Acknowledged<'static>, out: &mut Output) {
        let ack = Ack {
            sender: self.node,
            instance: self.instance,
            id,
            grtt_response: self.response(now),
            cc: self.congestion.feedback(self.grtt),
            what,
        };
        out.feedback.push(Feedback { to: self.address, body: Body::Ack(ack) });
    }

    /// The sender's clock now, as far as its last probe shows.
    pub(super) fn response(&self, now: Instant) -> Timestamp {
        self.probe.map_or(Timestamp::default(), |(sent, came)| sent.after(now.since(came)))
    }

    pub(super) fn wake_acknowledgements(&mut self, now: Instant, ask: &mut Ask<'_>, out: &mut Output) {
        if let Some((_, position)) = self.acknowledge.take_if(|&mut (at, _)| at <= now)
            && !ask.config.silent
        {
            ask.counts.acks_sent += 1;
            self.say_ack(now, 0, Acknowledged::Flush(position), out);
        }
        if self.congestion.is_due(now) {
            if !ask.config.silent {
                ask.counts.acks_sent += 1;
                self.say_ack(now, 0, Acknowledged::CongestionControl, out);
            }
            self.congestion.said();
        }
    }
}
