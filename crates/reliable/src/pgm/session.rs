//! A member of a group: what it sends, what it receives, and its ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use hopcast_core::{
    Attributes, Buffer, Datagram, Instant, Item, Machine, Message as Unit, Outbox, Port, Stream,
};

use super::config::{ReceiverConfig, SourceConfig};
use super::receiver::{Delivered, Delivery, Output, Receiver};
use super::source::Source;
use super::wire::{Body, Packet, Tsi, alerts_routers};
use crate::down_streams::{DownStreams, WINDOW};
use crate::unit_credit::UnitCredit;
use crate::up_streams::Streams;

/// Settings of a member.
#[derive(Clone, Debug)]
pub struct Config {
    /// The session in which it sends: unlike that of any other member, and of the run of it before.
    pub session: Tsi,
    /// Data-destination port, which all members have.
    pub port: u16,
    /// Its address.
    pub local: SocketAddr,
    /// The group's address, or that of the only other member.
    pub group: SocketAddr,
    /// Its number in the group, not 0 and unlike any other's, if the others do not know it by [`local`](Self::local),
    /// but each by an address of its own: SPMs then name no path, so that requests go to where they come from, and
    /// reports on its path bear the number in place of an address.
    pub number: Option<u32>,
    /// The source; `None` if it sends nothing.
    pub source: Option<SourceConfig>,
    /// The receiver; `None` if it receives nothing.
    pub receiver: Option<ReceiverConfig>,
    /// Whether it grants datagrams to the application above, and takes none beyond that.
    pub unit_credit: bool,
}

impl Config {
    /// The path in its SPMs.
    fn path(&self) -> IpAddr {
        match (self.number, self.group) {
            (None, _) => self.local.ip(),
            (Some(_), SocketAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
            (Some(_), SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// The address by which it is the acker.
    fn name(&self) -> IpAddr {
        match (self.number, self.group) {
            (None, _) => self.local.ip(),
            (Some(number), SocketAddr::V4(_)) => Ipv4Addr::from_bits(number).into(),
            (Some(number), SocketAddr::V6(_)) => Ipv6Addr::from_bits(number.into()).into(),
        }
    }
}

/// A member of a group, as a machine: an application above, datagrams below, of which each is a packet of PGM.
///
/// Down come [`Item::Datagram`], [`Item::Message`], which is a file if it has a name, and [`Item::Stream`]. All of them
/// share the sequence of one session. Up go the same, datagrams and messages with the address of their sender; streams
/// and datagrams in the order of their source.
///
/// A stream goes from its writer to all others. Its writer is granted credit as it is sent. A receiver that lacks
/// something that its source's window has moved past gives it up, and counts that; its streams are reset, and go on as
/// new ones with what comes next.
#[derive(Debug)]
pub struct Session {
    config: Config,
    source: Option<Source>,
    receiver: Option<Receiver>,
    out: Outbox,
    now: Instant,
    /// Whether it has sent its first grant, and its first SPM.
    begun: bool,
    down: DownStreams,
    credit: UnitCredit,
    up: Streams<(Tsi, u16)>,
    messages: u64,
    /// Units of the application that were too much, or that a member without a source was given.
    refused: u64,
    malformed: u64,
    foreign: u64,
}

/// Bytes of datagrams and messages that wait to be sent; more are refused. One is always taken. Chosen: a few of the
/// longest messages of an application that is not granted them.
const MAX_WAITING: u64 = 64 << 20;

impl Session {
    /// A member; its back-off is drawn from `random`.
    pub fn new(config: Config, mut random: Stream) -> Self {
        let addresses = (config.path(), config.group.ip());
        let first = random.bits() as u32;
        let source = config
            .source
            .clone()
            .map(|source| Source::new(source, config.session, config.port, addresses, first));
        let receiver = config
            .receiver
            .clone()
            .map(|receiver| Receiver::new(receiver, config.name(), config.group, random));
        Self {
            credit: UnitCredit::new(config.unit_credit),
            config,
            source,
            receiver,
            out: Outbox::new(),
            now: Instant::ZERO,
            begun: false,
            down: DownStreams::default(),
            up: Streams::default(),
            messages: 0,
            refused: 0,
            malformed: 0,
            foreign: 0,
        }
    }

    /// Says to the group that this member's session ends, once all has been sent.
    pub fn leave(&mut self, now: Instant) {
        if let Some(source) = &mut self.source {
            source.leave(now);
        }
        self.run(now);
    }

    /// Bytes that it holds of others.
    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        self.receiver.as_ref().map_or(0, Receiver::held)
    }

    fn on_above(&mut self, now: Instant, item: Item) {
        match item {
            Item::Stream(id, item) if id.0.is_multiple_of(2) => {
                let is_taken = self.down.handle(now, id, item, self.source.as_mut(), &mut self.out);
                self.refused += u64::from(!is_taken);
            }
            Item::Stream(id, item) => self.up.handle(id, &item, &mut self.out),
            Item::Datagram(datagram) => self.unit(|source| {
                source.datagram(&datagram.payload);
                true
            }),
            Item::Message(unit) => self.unit(|source| source.message(unit.name.as_deref(), &unit.payload)),
            _ => self.refused += 1,
        }
    }

    /// Takes a unit of the application's, if not too much waits.
    fn unit(&mut self, take: impl FnOnce(&mut Source) -> bool) {
        self.credit.spend();
        let is_taken =
            self.source.as_mut().is_some_and(|source| source.unit_bytes() < MAX_WAITING && take(source));
        self.refused += u64::from(!is_taken);
    }

    /// Sends all packets that may be sent, and grants space that has become free.
    fn run(&mut self, now: Instant) {
        self.now = now;
        self.begun = true;
        let Some(source) = &mut self.source else { return };
        while let Some(packet) = source.next(now) {
            send(&mut self.out, self.config.local, self.config.group, packet);
        }
        self.down.grant(source, &mut self.out);
        self.credit.grant(WINDOW, source.unit_bytes(), source.unit(), &mut self.out);
    }

    fn on_below(&mut self, now: Instant, datagram: &Datagram) {
        let Ok(packet) = Packet::parse(&datagram.payload) else {
            self.malformed += 1;
            return;
        };
        if packet.port != self.config.port {
            self.foreign += 1;
            return;
        }
        let is_own = packet.session == self.config.session;
        if packet.is_upstream() {
            match (&mut self.source, &mut self.receiver) {
                (Some(source), _) if is_own => upstream(now, source, &packet),
                (_, Some(receiver)) if !is_own => receiver.nak_of_others(now, &packet),
                _ => {}
            }
        } else if let Some(receiver) = self.receiver.as_mut().filter(|_| !is_own) {
            let mut output = Output::default();
            receiver.heard(now, datagram.remote, &packet, &mut output);
            // Without a back-off, what is missing is asked for at once.
            receiver.wake(now, &mut output);
            self.put_out(output);
        }
    }

    fn put_out(&mut self, output: Output) {
        let Some(receiver) = &mut self.receiver else { return };
        for (to, packet) in output.packets {
            receiver.sent(packet.len());
            send(&mut self.out, self.config.local, to, packet);
        }
        output.delivered.into_iter().for_each(|delivery| self.deliver(delivery));
    }

    fn deliver(&mut self, Delivery { session, address, what }: Delivery) {
        let ends = (self.config.local, address);
        match what {
            Delivered::Datagram(bytes) => {
                let datagram = Datagram::new(ends.0, ends.1, Buffer::copy_from(&bytes));
                self.out.up(Item::Datagram(datagram));
            }
            Delivered::Message { name, bytes } => {
                let unit = Unit::new(self.messages, Buffer::copy_from(&bytes));
                self.messages += 1;
                let name = name.map(Arc::from);
                self.out.up(Item::Message(Unit { name, sender: Some(address), ..unit }));
            }
            Delivered::Stream { number, bytes, is_end } => {
                let key = (session, number);
                if !bytes.is_empty() {
                    self.up.bytes(key, ends, &bytes, &mut self.out);
                }
                if is_end {
                    self.up.end(key, ends, &mut self.out);
                }
            }
            Delivered::Missing(number) => self.up.missing((session, number), &mut self.out),
        }
    }
}

/// A packet for the source.
fn upstream(now: Instant, source: &mut Source, packet: &Packet<'_>) {
    match &packet.body {
        Body::Nak(nak) => source.nak(now, packet, nak),
        Body::NullNak(_) => source.null_nak(packet),
        Body::SpmRequest => source.spm_request(now),
        Body::PollResponse(_) => source.poll_response(),
        Body::Ack(ack) => source.ack(now, packet, ack),
        Body::Spm(_) | Body::Original(_) | Body::Repair(_) | Body::Confirmation(_) | Body::Poll(_) => {}
    }
}

fn send(out: &mut Outbox, local: SocketAddr, remote: SocketAddr, payload: Buffer) {
    let attributes = Attributes { router_alert: alerts_routers(&payload), ..Attributes::CHOICE };
    out.down(Item::Datagram(Datagram { local, remote, payload, attributes }));
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
        let source = self.source.as_ref().map(|source| source.deadline(self.now));
        let receiver = self.receiver.as_ref().and_then(Receiver::deadline);
        source.into_iter().chain(receiver).min()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let mut nacks = 0;
        if let Some(source) = &self.source {
            source.counters(report);
            nacks = source.nacks();
        }
        match &self.receiver {
            Some(receiver) => receiver.counters(nacks, report),
            None => {
                let requests = crate::statistics::Requests { received: nacks, ..Default::default() };
                requests.counters(report);
            }
        }
        report("streams_reset", self.up.reset);
        report("units_refused", self.refused);
        report("malformed", self.malformed);
        report("foreign", self.foreign);
    }
}
