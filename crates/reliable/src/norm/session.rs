//! A member of a session: what it sends, what it receives, and its ports.

use std::net::SocketAddr;
use std::sync::Arc;

use hopcast_core::{
    Attributes, Buffer, Datagram, Instant, Item, Machine, Message as Unit, Outbox, Port, Stream,
};

use super::backlog::Backlog;
use super::config::{RateControl, ReceiverConfig, SenderConfig};
use super::receiver::{Delivered, Delivery, Heard, Output, Receiver, length_prefix};
use super::sender::{Refusal, Sender};
use super::wire::{Body, Flags, Message, NodeId};
use crate::down_streams::{DownStreams, WINDOW};
use crate::statistics::Kind;
use crate::unit_credit::UnitCredit;
use crate::up_streams::Streams;

/// Settings of a member.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its identifier, unlike that of any other member.
    pub node: NodeId,
    /// Number of this run of it, unlike that of the one before.
    pub instance: u16,
    /// Its address.
    pub local: SocketAddr,
    /// The group's address, or that of the only other member.
    pub group: SocketAddr,
    /// The sender; `None` if it sends nothing.
    pub sender: Option<SenderConfig>,
    /// The receiver; `None` if it receives nothing.
    pub receiver: Option<ReceiverConfig>,
    /// Whether it grants datagrams to the application above, and takes none beyond that.
    pub unit_credit: bool,
}

/// A member of a session, as a machine: an application above, datagrams below.
///
/// Down come [`Item::Stream`] (each a stream of its own), [`Item::Datagram`] (messages in one stream) and
/// [`Item::Message`] (each an object, which is a file if it has a name). Up go the same, datagrams and messages with
/// the address of their sender. Streams and datagrams keep the order of their sender; objects come as they are
/// complete, unless [`Order::BySender`](crate::Order::BySender) was asked for.
///
/// A stream goes from its writer to all others. Its writer is granted credit as it is sent, and the rate of sending is
/// that of the slowest receiver if it is a TCP's. A receiver that still asks for a block that the sender's buffer has
/// no more room for stops the stream for a while, which is shorter each time, and is then given up: its stream is
/// reset, and goes on as a new one with what comes next. The application of a receiver that leaves too much waiting
/// loses its stream, and slows down nobody.
#[derive(Debug)]
pub struct Session {
    config: Config,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    /// Number of the next message of the sender. Receivers find what they lost by it, so that feedback has numbers of
    /// its own (RFC 5740, section 4.1): not all who hear the one hear the other.
    sequence: u16,
    feedback_sequence: u16,
    out: Outbox,
    now: Instant,
    /// Whether it has sent its first grant.
    begun: bool,
    down: DownStreams,
    /// The stream of messages.
    messages: Option<u64>,
    credit: UnitCredit,
    up: Streams<(NodeId, u16)>,
    /// Whole messages that wait for room.
    backlog: Backlog,
    /// Whether the member leaves once they are sent.
    leaves: bool,
    /// Units of the application that did not fit, or that a member without a sender was given.
    refused: u64,
    malformed: u64,
}

/// ECN: a packet that a queue may mark, and one that was marked (RFC 3168, section 5).
const ECN_CAPABLE: u8 = 0b10;
const ECN_MARKED: u8 = 0b11;

impl Session {
    /// A member; its back-off is drawn from `random`.
    pub fn new(config: Config, random: Stream) -> Self {
        let begun = !config.unit_credit;
        let sender = config.sender.clone().map(|sender| Sender::new(sender, config.node, config.instance));
        let receiver = config.receiver.clone().map(|receiver| Receiver::new(receiver, config.node, random));
        Self {
            credit: UnitCredit::new(config.unit_credit),
            config,
            sender,
            receiver,
            sequence: 0,
            feedback_sequence: 0,
            out: Outbox::new(),
            now: Instant::ZERO,
            begun,
            down: DownStreams::default(),
            messages: None,
            up: Streams::default(),
            backlog: Backlog::default(),
            leaves: false,
            refused: 0,
            malformed: 0,
        }
    }

    /// Sends an object: its object transport id, or `None` if it is too large or as many as may be are held.
    pub fn send(
        &mut self,
        now: Instant,
        bytes: Arc<[u8]>,
        info: Option<Arc<[u8]>>,
        file: bool,
    ) -> Option<u16> {
        self.now = now;
        let flags = if file { Flags::FILE } else { Flags::default() };
        let number = self.sender.as_mut()?.push(now, bytes, info, flags);
        self.run(now);
        match number {
            Ok(number) => Some(number as u16),
            Err(Refusal::Full | Refusal::TooLarge) => {
                self.refused += 1;
                None
            }
        }
    }

    /// The rate at which it sends.
    #[cfg(test)]
    pub(super) fn rate(&self) -> Option<hopcast_core::Rate> {
        self.sender.as_ref().map(Sender::rate)
    }

    /// Its estimate of the group round-trip time.
    #[cfg(test)]
    pub(super) fn grtt(&self) -> hopcast_core::Duration {
        self.sender.as_ref().map_or(hopcast_core::Duration::ZERO, Sender::grtt)
    }

    /// Says to the group that this member leaves, once all has been sent.
    pub fn leave(&mut self, now: Instant) {
        self.leaves = true;
        self.run(now);
    }

    /// Whether each receiver that was to acknowledge has, all that was sent.
    pub fn is_acknowledged(&self) -> bool {
        self.backlog.is_empty() && self.sender.as_ref().is_some_and(Sender::is_acknowledged)
    }

    /// Number of objects that it holds for repairs.
    #[cfg(test)]
    pub(super) fn held_objects(&self) -> usize {
        self.sender.as_ref().map_or(0, Sender::held_objects)
    }

    /// Bytes that it holds of others: of what is incomplete, and of what was decoded.
    #[cfg(test)]
    pub(super) fn held(&self) -> (u64, u64) {
        self.receiver.as_ref().map_or((0, 0), Receiver::held)
    }

    fn on_above(&mut self, now: Instant, item: Item) {
        match item {
            Item::Stream(id, item) if id.0.is_multiple_of(2) => {
                let is_taken = self.down.handle(now, id, item, self.sender.as_mut(), &mut self.out);
                self.refused += u64::from(!is_taken);
            }
            Item::Stream(id, item) => self.up.handle(id, &item, &mut self.out),
            Item::Datagram(datagram) => self.message(now, &datagram.payload),
            Item::Message(unit) => self.whole_message(now, unit),
            _ => self.refused += 1,
        }
    }

    /// Sends a message as an object; one for which there is no room waits for it.
    fn whole_message(&mut self, now: Instant, unit: Unit) {
        self.credit.spend();
        let sender = self.sender.as_mut();
        if !sender.is_some_and(|sender| self.backlog.take(now, unit, sender)) {
            self.refused += 1;
        }
    }

    /// Appends a message to the stream of messages.
    fn message(&mut self, now: Instant, payload: &[u8]) {
        let Some(sender) = &mut self.sender else {
            self.refused += 1;
            return;
        };
        self.credit.spend();
        if self.messages.is_none() {
            self.messages = sender.open_stream(now).ok();
        }
        let length = u16::try_from(payload.len()).ok();
        let (Some(number), Some(length)) = (self.messages, length) else {
            self.refused += 1;
            return;
        };
        if sender.waiting(number) > sender.buffer() {
            self.refused += 1;
            return;
        }
        if let Some(stream) = sender.stream(number) {
            stream.write(&length_prefix(length), true);
            stream.write(payload, false);
        }
    }

    /// Sends all packets that may be sent, and grants space that has become free.
    fn run(&mut self, now: Instant) {
        self.now = now;
        self.begun = true;
        let Some(sender) = &mut self.sender else { return };
        self.backlog.send(now, sender);
        if self.leaves && self.backlog.is_empty() {
            sender.leave(now);
        }
        while let Some(packet) = sender.next(now) {
            let ecn = matches!(sender.rate_control(), RateControl::Tcp { .. });
            let attributes =
                Attributes { traffic_class: if ecn { ECN_CAPABLE } else { 0 }, ..Attributes::CHOICE };
            send(
                &mut self.out,
                &mut self.sequence,
                &self.config,
                self.config.group,
                packet.bytes,
                attributes,
            );
        }
        self.down.grant(sender, &mut self.out);
        let waiting = self.messages.map_or(0, |number| sender.waiting(number)) + self.backlog.bytes();
        self.credit.grant(WINDOW, waiting, sender.symbol_payload(), &mut self.out);
    }

    fn on_below(&mut self, now: Instant, datagram: &Datagram) {
        let Ok(message) = Message::parse(&datagram.payload) else {
            self.malformed += 1;
            return;
        };
        if message.source == self.config.node {
            return;
        }
        let mut output = Output::default();
        match &message.body {
            Body::Nack(nack) => {
                if let Some(sender) = &mut self.sender {
                    sender.nack(now, message.source, nack);
                }
                if let Some(receiver) = &mut self.receiver {
                    receiver.nack(now, nack);
                }
            }
            Body::Ack(ack) => {
                if let Some(sender) = &mut self.sender {
                    sender.ack(now, message.source, ack);
                }
                if let Some(receiver) = &mut self.receiver {
                    receiver.ack(now, ack);
                }
            }
            Body::Info(_) | Body::Data(_) | Body::Command(..) => {
                if let Some(receiver) = &mut self.receiver {
                    let marked = datagram.attributes.traffic_class & ECN_MARKED == ECN_MARKED;
                    let bytes = datagram.payload.len();
                    let heard = Heard { from: datagram.remote, marked, bytes, message: &message };
                    receiver.heard(now, &heard, &mut output);
                }
            }
        }
        // Without a back-off, what is missing is asked for at once.
        if let Some(receiver) = &mut self.receiver {
            receiver.wake(now, &mut output);
        }
        self.put_out(output);
    }

    fn put_out(&mut self, output: Output) {
        let Some(receiver) = &mut self.receiver else { return };
        for feedback in output.feedback {
            let unicast = self.config.receiver.as_ref().is_some_and(|receiver| receiver.unicast_feedback);
            let to = if unicast { feedback.to } else { self.config.group };
            let message = Message { sequence: 0, source: self.config.node, body: feedback.body };
            let bytes = message.emit();
            receiver.traffic.add(Kind::Feedback, bytes.len());
            let sequence = &mut self.feedback_sequence;
            send(&mut self.out, sequence, &self.config, to, bytes, Attributes::CHOICE);
        }
        output.delivered.into_iter().for_each(|delivery| self.deliver(delivery));
    }

    fn deliver(&mut self, delivery: Delivery) {
        let (key, ends) = ((delivery.from, delivery.object as u16), (self.config.local, delivery.address));
        match delivery.what {
            Delivered::Object { info, bytes, .. } => {
                let unit = Unit::new(u64::from(delivery.object as u16), Buffer::copy_from(&bytes));
                // An object without bytes has info in any case.
                let name = info.filter(|info| !info.is_empty()).map(Arc::from);
                let sender = Some(delivery.address);
                self.out.up(Item::Message(Unit { name, sender, ..unit }));
            }
            Delivered::Message(bytes) => {
                let datagram = Datagram::new(ends.0, ends.1, Buffer::copy_from(&bytes));
                self.out.up(Item::Datagram(datagram));
            }
            Delivered::Bytes(bytes) => self.up.bytes(key, ends, &bytes, &mut self.out),
            Delivered::End => self.up.end(key, ends, &mut self.out),
            Delivered::Missing => self.up.missing(key, &mut self.out),
        }
    }
}

/// Numbers a datagram and hands it down.
fn send(
    out: &mut Outbox,
    sequence: &mut u16,
    config: &Config,
    remote: SocketAddr,
    mut payload: Buffer,
    attributes: Attributes,
) {
    payload[2..4].copy_from_slice(&sequence.to_be_bytes());
    *sequence = sequence.wrapping_add(1);
    out.down(Item::Datagram(Datagram { local: config.local, remote, payload, attributes }));
}

impl Machine for Session {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(_), item) => self.on_above(now, item),
            (Port::Below(_), Item::Datagram(datagram)) => {
                self.on_below(now, &datagram);
                datagram.payload.recycle();
            }
            (Port::Below(_), _) => {}
        }
        self.run(now);
    }

    fn wake(&mut self, now: Instant) {
        if let Some(receiver) = &mut self.receiver {
            let mut output = Output::default();
            receiver.wake(now, &mut output);
            self.put_out(output);
        }
        self.run(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        if !self.begun {
            return Some(Instant::ZERO);
        }
        let sender = self.sender.as_ref().and_then(|sender| sender.deadline(self.now));
        // One whose time is past is dropped when something has been sent.
        let room = self.sender.as_ref().filter(|_| !self.backlog.is_empty()).and_then(Sender::room_due);
        let receiver = self.receiver.as_ref().and_then(Receiver::deadline);
        sender.into_iter().chain(room.filter(|&at| at > self.now)).chain(receiver).min()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        if let Some(sender) = &self.sender {
            sender.counters(report);
        }
        if let Some(receiver) = &self.receiver {
            receiver.counters(report);
        }
        report("streams_reset", self.up.reset);
        report("units_refused", self.refused);
        report("malformed", self.malformed);
    }
}
