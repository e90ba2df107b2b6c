//! A member of a group: its layers put together, and its ports.

mod send;

use std::collections::VecDeque;
use std::net::SocketAddr;

use hopcast_core::{Buffer, Datagram, Instant, Item, Machine, Message, Outbox, Pacer, Port, Stream};

use super::assembly::{Piece, Unit};
use super::config::{Config, Start};
use super::epoch::{Counted, Delivery, Epoch};
use super::gms::{Action, Membership};
use super::outgoing::Outgoing;
use super::unicast::Unicast;
use super::wire::{Control, MemberId, Packet, Together, View};
use crate::down_streams::DownStreams;
use crate::unit_credit::UnitCredit;
use crate::up_streams::Streams;

/// A member of a group, as a machine: an application above, datagrams below.
///
/// Down come [`Item::Datagram`], [`Item::Message`], which is a file if it has a name, and [`Item::Stream`]; each goes
/// to all other members of the view in which it is sent. Up go the same, with the address of their sender, in the order
/// of each sender or in one order for all. A member that is not in a view yet holds back what it is given.
///
/// A stream goes on from one view to the next at all that come to it together with its writer. Whoever else is in the
/// next view has it from there on, as a new stream; where its writer is not, it is reset.
#[derive(Debug)]
pub struct Member {
    config: Config,
    membership: Membership,
    epoch: Epoch,
    unicast: Unicast,
    outgoing: Outgoing,
    down: DownStreams,
    up: Streams<(MemberId, u16)>,
    pacer: Pacer,
    random: Stream,
    out: Outbox,
    now: Instant,
    begun: bool,
    credit: UnitCredit,
    /// Messages that were handed up.
    delivered: u64,
    counted: Counted,
    refused: u64,
    malformed: u64,
    /// Whether it is a member by its times, and when that changes next.
    is_present: bool,
    changes: VecDeque<(Instant, bool)>,
    /// Number of each view's first message: 1, but in tests.
    first: u64,
    /// Events that the application saw, in their order: for tests.
    #[cfg(test)]
    pub(super) log: Vec<super::tests::Event>,
}

/// Rounds of a membership's actions, of which each is the answer to the one before. Chosen: the longest row, a change
/// at a leader that is alone, has five.
const MAX_ROUNDS: usize = 16;

impl Member {
    /// A member, which draws from `random`.
    pub fn new(config: Config, random: Stream) -> Self {
        Self::beginning(config, random, 1)
    }

    /// The same, whose views' messages begin with a number.
    pub(super) fn beginning(config: Config, mut random: Stream, first: u64) -> Self {
        let config = Config { stack: config.stack.clone().bounded(), ..config };
        let mut changes = changes(&config.presence);
        let is_present = changes.pop_front_if(|&mut (at, _)| at == Instant::ZERO).is_some();
        let start = if is_present { config.start.clone() } else { Start::Discovered };
        let own = (config.member, config.local);
        let mut membership = Membership::new(own, &start, &config.stack, Instant::ZERO, random.fork());
        membership.expect(Instant::ZERO, config.expects);
        let view = membership.view().clone();
        let epoch = Epoch::new(Instant::ZERO, view, &config, first, random.fork());
        Self {
            membership,
            epoch,
            unicast: Unicast::new(config.member, random.fork()),
            outgoing: Outgoing::new(config.limits.waiting),
            down: DownStreams::default(),
            up: Streams::default(),
            pacer: Pacer::new(config.slack),
            random,
            out: Outbox::new(),
            now: Instant::ZERO,
            begun: false,
            credit: UnitCredit::new(config.unit_credit),
            delivered: 0,
            counted: Counted::default(),
            refused: 0,
            malformed: 0,
            is_present,
            changes,
            first,
            #[cfg(test)]
            log: Vec::new(),
            config,
        }
    }

    /// The view that it has.
    pub const fn view(&self) -> &View {
        self.membership.view()
    }

    /// Whether all other members of the view have acknowledged all that this one was given.
    pub fn is_stable(&self) -> bool {
        self.outgoing.is_empty() && self.epoch.is_stable()
    }

    /// Bytes that it holds of what was sent and is not stable, its own and others'.
    pub fn held(&self) -> u64 {
        self.epoch.held()
    }

    /// Leaves the group. What it sent in this view still reaches the others; what waits is not sent any more.
    pub fn leave(&mut self, now: Instant) {
        self.outgoing = Outgoing::new(self.config.limits.waiting);
        self.down.reset_all(&mut self.out);
        let mut actions = Vec::new();
        self.membership.leave(now, &self.epoch, &mut actions);
        self.act(now, actions);
        self.run(now);
    }

    /// Whether it has left.
    pub fn has_left(&self) -> bool {
        self.membership.has_left()
    }

    /// Its state in words, for a test that fails.
    #[cfg(test)]
    pub(super) fn state(&self) -> String {
        let stable = self.epoch.is_stable();
        let (membership, epoch) = (self.membership.state(), self.epoch.state());
        format!("{membership:.700}\n   stable {stable}, {} waiting, {epoch}", self.outgoing.bytes())
    }

    #[cfg(test)]
    pub(super) const fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// Comes or goes, if it is time.
    fn change(&mut self, now: Instant) {
        while let Some((_, comes)) = self.changes.pop_front_if(|&mut (at, _)| at <= now) {
            self.is_present = comes;
            if !comes {
                self.leave(now);
                continue;
            }
            // Another run of it: what others knew of the one before is not of this one.
            self.config.member.run = self.config.member.run.wrapping_add(1);
            let (own, stack) = ((self.config.member, self.config.local), &self.config.stack);
            self.membership = Membership::new(own, &Start::Discovered, stack, now, self.random.fork());
            self.unicast = Unicast::new(self.config.member, self.random.fork());
            let view = self.membership.view().clone();
            let random = self.random.fork();
            self.epoch = Epoch::new(now, view, &self.config, self.first, random);
        }
    }

    fn on_above(&mut self, now: Instant, item: Item) {
        let is_in = !self.membership.is_leaving();
        let is_taken = match item {
            Item::Stream(id, item) if id.0.is_multiple_of(2) => {
                let sender = is_in.then_some(&mut self.outgoing);
                self.down.handle(now, id, item, sender, &mut self.out)
            }
            Item::Stream(id, item) => {
                self.up.handle(id, &item, &mut self.out);
                true
            }
            Item::Datagram(datagram) => {
                self.credit.spend();
                is_in && self.outgoing.datagram(&datagram.payload)
            }
            Item::Message(unit) => {
                self.credit.spend();
                is_in && self.outgoing.message(&unit.payload, unit.name.as_deref())
            }
            _ => false,
        };
        self.refused += u64::from(!is_taken);
    }

    fn on_below(&mut self, now: Instant, datagram: &Datagram) {
        let Ok(packet) = Packet::parse(&datagram.payload) else {
            self.malformed += 1;
            return;
        };
        if !self.is_present && !self.has_left() && matches!(packet, Packet::Discover(_) | Packet::Found(_)) {
            return;
        }
        if self.has_left() {
            return self.after_leaving(now, packet, datagram.remote);
        }
        let from = datagram.remote;
        let is_here = packet.tag() == Some(self.epoch.tag());
        self.heard(now, from, is_here);
        let (mut actions, mut packets) = (Vec::new(), Vec::new());
        match packet {
            Packet::Data { from, sequence, flags, payload } => match self.epoch.heard(now, from) {
                Some(rank) => self.epoch.message(now, rank, sequence, (flags, payload), &mut self.counted),
                None => self.counted.strange += 1,
            },
            Packet::Repair { from, origin, sequence, flags, payload } => {
                if self.epoch.heard(now, from).is_some() {
                    self.epoch.message(now, origin, sequence, (flags, payload), &mut self.counted);
                }
            }
            Packet::Digest { from, asks, is_idle, stable, entries } => {
                if let Some(rank) = self.epoch.heard(now, from) {
                    self.epoch.digest_of(now, rank, (asks, is_idle), (stable, &entries));
                }
            }
            Packet::Request { from, origin, first, runs } => {
                self.epoch.request(now, from, (origin, first), &runs, &mut self.counted);
            }
            Packet::Discover(member) => {
                if member != self.config.member {
                    self.membership.sought(from, &mut actions);
                }
            }
            Packet::Found(view) => {
                let view = self.config.localised(view);
                self.membership.found(now, from, &view, &mut actions);
            }
            Packet::Unicast { between, number, control } => {
                let taken = self.unicast.receive(now, (between, from), number, control, &mut packets);
                for control in taken {
                    if let Control::Credit { tag, bytes } = control {
                        if tag == self.epoch.tag() {
                            self.epoch.credit(between.from, bytes);
                        }
                    } else {
                        let control = self.localised(control);
                        let mut answers = Vec::new();
                        let from = (between.from, from);
                        self.membership.control(now, from, control, &self.epoch, &mut answers);
                        self.act(now, answers);
                    }
                }
            }
            Packet::Ack { between, number } => {
                self.unicast.acknowledged(now, between, number);
                self.membership.answered(now, &self.unicast);
            }
        }
        self.put_out(packets);
        self.act(now, actions);
        self.deliver(now);
    }

    fn localised(&self, control: Control) -> Control {
        match control {
            Control::Commit { view, together } => {
                Control::Commit { view: self.config.localised(view), together }
            }
            other => other,
        }
    }

    /// Whoever sends from an address of the view is alive, in the view or in another.
    fn heard(&mut self, now: Instant, from: SocketAddr, is_here: bool) {
        let of = self.membership.view().members.iter().find(|&&(_, address)| address == from);
        if let Some(&(member, _)) = of {
            self.membership.heard(now, member, is_here);
        }
    }

    /// One that has left still acknowledges, and is acknowledged, so that others' connections to it end.
    fn after_leaving(&mut self, now: Instant, packet: Packet<'_>, from: SocketAddr) {
        let mut packets = Vec::new();
        match packet {
            Packet::Unicast { between, number, control } => {
                self.unicast.receive(now, (between, from), number, control, &mut packets);
            }
            Packet::Ack { between, number } => self.unicast.acknowledged(now, between, number),
            _ => {}
        }
        self.put_out(packets);
    }

    /// Carries out what the membership wants, and what follows from that.
    fn act(&mut self, now: Instant, mut actions: Vec<Action>) {
        for _ in 0..MAX_ROUNDS {
            if actions.is_empty() {
                return;
            }
            for action in std::mem::take(&mut actions) {
                self.carry_out(now, action);
            }
            self.membership.settle(now, &self.epoch, &mut actions);
        }
    }

    fn carry_out(&mut self, now: Instant, action: Action) {
        match action {
            Action::Tell(to, control) => {
                let mut packets = Vec::new();
                self.unicast.send(now, to, control, &mut packets);
                self.put_out(packets);
            }
            Action::Seek => self.put(self.config.group, &Packet::Discover(self.config.member)),
            Action::Announce => self.put(self.config.group, &Packet::Found(self.view().clone())),
            Action::Answer(to) => self.put(to, &Packet::Found(self.view().clone())),
            Action::Freeze => self.epoch.freeze(),
            Action::Fetch(targets) => {
                if !self.epoch.fetch(now, &targets) {
                    self.counted.strange += 1;
                }
            }
            Action::Install(next) => self.install(now, next),
        }
    }

    /// Brings the view to its end, and goes over to the next.
    fn install(&mut self, now: Instant, next: Option<(View, Together)>) {
        let mut delivery = Delivery::default();
        self.epoch.finish(&mut self.counted, &mut delivery);
        self.hand_up(delivery);
        #[cfg(test)]
        self.log.push(super::tests::Event::View(next.as_ref().map(|(view, _)| view.clone())));
        // Of those that do not come along from the view before, something may be missing in between.
        let comes_along = |member: MemberId| {
            next.as_ref()
                .is_some_and(|(view, together)| view.rank(member).is_some_and(|rank| together.has(rank)))
        };
        self.up.lose(|&(member, _)| !comes_along(member), &mut self.out);
        let Some((view, _)) = next else { return };
        self.epoch = Epoch::new(now, view, &self.config, self.first, self.random.fork());
        self.outgoing.restart();
        let membership = &self.membership;
        self.unicast.forget(|member| membership.keeps(member));
    }

    fn deliver(&mut self, now: Instant) {
        let mut delivery = Delivery::default();
        self.epoch.deliver(&mut self.counted, &mut delivery);
        let tag = self.epoch.tag();
        let mut packets = Vec::new();
        for (to, bytes) in std::mem::take(&mut delivery.credits) {
            let address = self.view().members.iter().find(|&&(member, _)| member == to);
            if let Some(&to) = address {
                self.unicast.send(now, to, Control::Credit { tag, bytes }, &mut packets);
            }
        }
        self.put_out(packets);
        self.hand_up(delivery);
    }

    fn hand_up(&mut self, delivery: Delivery) {
        for (rank, unit) in delivery.units {
            let (sender, address) = self.epoch.view().members[usize::from(rank)];
            #[cfg(test)]
            self.log.push(super::tests::Event::unit(sender, &unit));
            let ends = (self.config.local, address);
            let item = match unit {
                Unit::Piece(piece) => {
                    self.hand_up_piece((sender, piece.number), ends, &piece);
                    continue;
                }
                Unit::Datagram(bytes) => {
                    Item::Datagram(Datagram::new(ends.0, ends.1, Buffer::copy_from(&bytes)))
                }
                Unit::Message(name, bytes) => {
                    self.delivered += 1;
                    let message = Message::new(self.delivered, Buffer::copy_from(&bytes));
                    Item::Message(Message { name, sender: Some(address), ..message })
                }
            };
            self.out.up(item);
        }
    }

    fn hand_up_piece(&mut self, key: (MemberId, u16), ends: (SocketAddr, SocketAddr), piece: &Piece) {
        let is_known = piece.is_first || self.up.knows(&key);
        if piece.is_first {
            self.up.missing(key, &mut self.out);
        }
        if !piece.bytes.is_empty() {
            self.up.bytes(key, ends, &piece.bytes, &mut self.out);
        }
        // The end alone is no stream for one that came behind all of its bytes.
        if piece.is_last && (is_known || !piece.bytes.is_empty()) {
            self.up.end(key, ends, &mut self.out);
        }
    }
}

/// The times at which a member comes and goes.
fn changes(presence: &[(Instant, Option<Instant>)]) -> VecDeque<(Instant, bool)> {
    let both = |&(from, to): &(Instant, Option<Instant>)| [Some((from, true)), to.map(|to| (to, false))];
    presence.iter().flat_map(both).flatten().collect()
}

impl Machine for Member {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.now = now;
        self.change(now);
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
        self.change(now);
        self.run(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        if !self.begun {
            return Some(Instant::ZERO);
        }
        let epoch =
            self.membership.is_member().then(|| self.epoch.deadline(self.pacer.departure(), &self.outgoing));
        let change = self.changes.front().map(|&(at, _)| at);
        if !self.is_present && self.membership.is_seeking() {
            return change;
        }
        let all = [epoch.flatten(), self.membership.deadline(), self.unicast.deadline(), change];
        all.into_iter().flatten().min()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let counted = &self.counted;
        counted.traffic.counters(report);
        counted.requests.counters(report);
        counted.deliveries.counters(report);
        let views = &self.membership.counted;
        report("views_installed", views.views);
        report("views_merged", views.merges);
        report("members_suspected", views.suspected);
        report("members_expelled", views.expelled);
        report("left_behind", views.left_behind);
        report("joins_refused", views.joins_refused);
        report("repaired_for_others", counted.repaired_for_others);
        report("duplicate_messages", counted.duplicates);
        report("packets_of_no_use", counted.strange);
        report("streams_reset", self.up.reset);
        report("units_refused", self.refused);
        report("malformed", self.malformed);
    }
}
