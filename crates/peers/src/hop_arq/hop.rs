//! One neighbour: both directions of a hop.

use std::net::SocketAddr;

use hopcast_core::bytes::Malformed;
use hopcast_core::{Instant, Stream, earliest};

use super::config::Config;
use super::counters::Counters;
use super::incoming::{Begun, Incoming, Taken};
use super::outgoing::Outgoing;
use super::wire::Message;

/// The result of a datagram, or of its absence.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    Nothing,
    /// A chunk arrived.
    Chunk(&'a [u8]),
    /// The packets on their way to the neighbour, or from there, are lost.
    Lost,
    /// This node was started anew, and has lost what it had not passed on.
    LostHere,
}

/// A neighbour.
#[derive(Debug)]
pub(super) struct Hop {
    pub neighbour: SocketAddr,
    pub outgoing: Outgoing,
    incoming: Incoming,
    /// The neighbour was asked to send nothing new.
    pausing: bool,
    /// A session of the neighbour's that is not known here, which the neighbour has yet to hear.
    unknown: Option<u16>,
}

impl Hop {
    pub(super) fn new(config: &Config, neighbour: SocketAddr, random: Stream) -> Self {
        Self {
            neighbour,
            outgoing: Outgoing::new(Instant::ZERO, config.datagram, config.slack, random),
            incoming: Incoming::default(),
            pausing: false,
            unknown: None,
        }
    }

    /// Takes a datagram; where `full`, nothing new, which will then come again.
    pub(super) fn on_datagram<'a>(
        &mut self,
        now: Instant,
        bytes: &'a [u8],
        full: bool,
        counters: &mut Counters,
    ) -> Result<Event<'a>, Malformed> {
        match Message::parse(bytes)? {
            Message::Packet(_) if full => counters.out_of_window += 1,
            Message::Packet(packet) => {
                counters.packets_received += 1;
                let own = self.outgoing.session();
                // Where something is lost the packet is dropped, too; it will come again.
                match self.incoming.begin(&packet, own) {
                    Begun::Not | Begun::First => {}
                    Begun::AfterOurRestart => return Ok(Event::LostHere),
                    Begun::Instead => {
                        // Chunks that the neighbour has not passed on went with its old session, and perhaps its
                        // knowledge of ours.
                        if packet.first != Some(own) {
                            self.outgoing.restart(now);
                        }
                        counters.sessions_lost += 1;
                        return Ok(Event::Lost);
                    }
                }
                match self.incoming.take(now, &packet) {
                    Taken::New => return Ok(Event::Chunk(packet.chunk)),
                    Taken::Duplicate => counters.duplicates_received += 1,
                    Taken::OutOfWindow => counters.out_of_window += 1,
                    Taken::Unknown => self.unknown = Some(packet.session),
                }
            }
            Message::Acknowledgement(ack) => {
                counters.acks_received += 1;
                if ack.session == self.outgoing.session() {
                    self.outgoing.on_acknowledgement(now, &ack, counters)?;
                }
            }
            Message::Unknown { session } if session == self.outgoing.session() => {
                self.begin_anew(now, counters);
                return Ok(Event::Lost);
            }
            Message::Unknown { .. } => {}
        }
        Ok(Event::Nothing)
    }

    /// Does the work that is due.
    pub(super) fn wake(&mut self, now: Instant, config: &Config, counters: &mut Counters) -> Event<'static> {
        self.outgoing.wake(now, counters);
        if self.outgoing.gives_up(config.silence).is_some_and(|at| at <= now) {
            self.begin_anew(now, counters);
            return Event::Lost;
        }
        Event::Nothing
    }

    /// Forgets everything that the two have exchanged.
    fn begin_anew(&mut self, now: Instant, counters: &mut Counters) {
        self.outgoing.restart(now);
        self.incoming = self.incoming.anew();
        counters.sessions_lost += 1;
    }

    /// Asks the neighbour to send nothing new, or to go on.
    pub(super) fn pause(&mut self, now: Instant, pausing: bool, counters: &mut Counters) {
        if self.pausing != pausing {
            self.pausing = pausing;
            counters.pauses += u64::from(pausing);
            self.incoming.hurry(now);
        }
    }

    pub(super) fn is_pausing(&self) -> bool {
        self.pausing
    }

    /// The next datagram to leave.
    pub(super) fn pop(&mut self, now: Instant, counters: &mut Counters) -> Option<Vec<u8>> {
        if let Some(session) = self.unknown.take() {
            return Some(Message::Unknown { session }.emit());
        }
        if let Some(ack) = self.incoming.acknowledge(now, self.pausing) {
            counters.acks_sent += 1;
            return Some(Message::Acknowledgement(ack).emit());
        }
        self.outgoing.pop(now, self.incoming.session(), counters)
    }

    /// Time at which something is due; with `more`, there is more to send than has been given.
    pub(super) fn deadline(&self, config: &Config, more: bool) -> Option<Instant> {
        let due = earliest(self.incoming.due(), self.outgoing.gives_up(config.silence));
        earliest(due, self.outgoing.deadline(more))
    }
}
