//! This site as a member of a group that stores and forwards: a machine with the lane to the other members below, and
//! programs above.

use std::collections::VecDeque;
use std::net::SocketAddr;

use hopcast_core::{
    Buffer, Datagram, Duration, Instant, Item, Machine, Message, Outbox, Port, Rate, earliest,
};
use hopcast_stack::site::Holder;
use log::Level;

use super::arrivals::Arrivals;
use super::outgoing::Outgoing;
use super::wire::{read_message, write_message};
use crate::group::disk::{Command, Disk};
use crate::group::lane;
use crate::group::machine::{Line, MAX_LINES, TURN, count};
use crate::group::wire::Kind;
use crate::store::Store;

/// Bytes of messages that wait to be sent beyond which a program's message is refused. Chosen: a second at 10 Mbit/s;
/// more are memory of a program that is too fast for the rate.
const MAX_UNSENT: u64 = 1 << 20;
/// Time after which a line that was said is said again. Chosen: what lasts for hours is seen, and fills no log.
const REPEATED_AFTER: Duration = Duration::from_secs(600);

/// Settings of a member.
pub(crate) struct StoringConfig {
    /// The group's name.
    pub(crate) name: String,
    /// Number of this site.
    pub(crate) number: u32,
    /// The address of all others together on the lane.
    pub(crate) group: SocketAddr,
    /// The others; the peers among them first.
    pub(crate) members: Vec<Other>,
    /// Whether one datagram to the group's address reaches all, so that no copies are made.
    pub(crate) is_multicast: bool,
    /// The rates at which files and messages are sent, all copies together; `None` for the transport's own choice.
    pub(crate) rates: [Option<Rate>; 2],
    /// Whether files of others are written.
    pub(crate) receives: bool,
    /// Maximum number of bytes that files of others take.
    pub(crate) quota: u64,
    /// Bytes of files and of messages that it holds at most, and the maximum length of one of each.
    pub(crate) rooms: [(u64, u64); 2],
}

/// Another member.
pub(crate) struct Other {
    pub(crate) name: String,
    pub(crate) number: u32,
    /// Its address on the lane, if it is a peer.
    pub(crate) address: Option<SocketAddr>,
}

/// This site as a member of a group that stores and forwards.
pub(crate) struct StoreForward {
    pub(super) config: StoringConfig,
    /// The transport's machines of files and of messages.
    pub(super) holders: [Box<dyn Holder>; 2],
    pub(super) disk: Option<Disk>,
    pub(super) store: Option<Store>,
    /// Whether the disk has said what was received in earlier runs.
    pub(super) is_ready: bool,
    /// Of each member: whether it is up, when it was heard, and what came of it.
    pub(super) up: Vec<bool>,
    pub(super) heard: Vec<Option<Instant>>,
    pub(super) came: Vec<Came>,
    pub(super) outgoing: Outgoing,
    pub(super) arrivals: Arrivals,
    /// Bytes that files of others take.
    pub(super) used: u64,
    next_turn: Instant,
    /// Messages that had been dropped when a line said so last, and when that was.
    dropped: (u64, Option<Instant>),
    pub(super) is_full: bool,
    /// Lines that were said of late.
    troubles: Vec<(Instant, String)>,
    out: Outbox,
    lines: VecDeque<Line>,
    pub(super) counts: Counts,
}

/// Numbers of files and messages that came of a member and were given to this site.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) messages: u64,
}

/// Counters of a member, beside its transport's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Units that made no sense, and those that were published by nobody of the group.
    pub(super) malformed: u64,
    pub(super) foreign: u64,
    pub(super) files_published: u64,
    /// Files that were not published, since they are too long.
    pub(super) files_refused: u64,
    /// Files that came when a newer one of their name was there.
    pub(super) files_overtaken: u64,
    pub(super) messages_sent: u64,
    pub(super) messages_refused: u64,
    pub(super) messages_received: u64,
    /// Records of earlier runs that were passed over.
    pub(super) records_damaged: u64,
}

/// Places of the transport's machines.
pub(super) const FILES: usize = 0;
pub(super) const MESSAGES: usize = 1;

impl StoreForward {
    pub(crate) fn new(config: StoringConfig, files: Box<dyn Holder>, messages: Box<dyn Holder>) -> Self {
        let members = config.members.len();
        let room = config.rooms[FILES].0;
        Self {
            holders: [files, messages],
            disk: None,
            store: None,
            is_ready: false,
            up: vec![false; members],
            heard: vec![None; members],
            came: vec![Came::default(); members],
            outgoing: Outgoing::default(),
            arrivals: Arrivals::new(members, room),
            used: 0,
            next_turn: Instant::ZERO,
            dropped: (0, None),
            is_full: false,
            troubles: Vec::new(),
            out: Outbox::new(),
            lines: VecDeque::new(),
            counts: Counts::default(),
            config,
        }
    }

    /// Connects it with the disk of its files.
    pub(crate) fn connect(&mut self, disk: Disk) {
        self.disk = Some(disk);
    }

    /// The next line for the log.
    pub(crate) fn line(&mut self) -> Option<Line> {
        self.lines.pop_front()
    }

    /// Takes which of the peers among the members are up.
    pub(crate) fn note_up(&mut self, up: &[bool]) {
        if self.up == up {
            return;
        }
        self.up.iter_mut().zip(up).for_each(|(was_up, &is_up)| *was_up = is_up);
        // Copies are made for those that are up.
        let up = self.up.iter().zip(&self.config.members);
        let copies = up.filter(|(is_up, member)| **is_up && member.address.is_some()).count().max(1) as u64;
        let copies = if self.config.is_multicast { 1 } else { copies };
        for (holder, rate) in self.holders.iter_mut().zip(self.config.rates) {
            if let Some(rate) = rate {
                holder.set_rate(Rate::from_bits_per_sec((rate.bits_per_sec() / copies).max(1)));
            }
        }
    }

    /// Takes what the disk says, and does what is due.
    fn turn(&mut self, now: Instant) {
        self.next_turn = now + TURN;
        while let Some(Ok(event)) = self.disk.as_ref().map(|disk| disk.events.try_recv()) {
            self.on_disk(now, event);
        }
        for id in self.outgoing.prune(now) {
            self.keep_published(id, false);
        }
        // A file that waits behind another one would only take the place of what was sent.
        if self.holders[FILES].holding().unsent == 0
            && let Some(id) = self.outgoing.next()
        {
            self.order(Command::ReadWhole(id));
        }
        self.write_next(now);
        self.complain(now);
    }

    /// Gives a machine of the transport a message to publish; whether it has taken it.
    pub(super) fn is_taken(&mut self, now: Instant, place: usize, payload: Buffer) -> bool {
        let holder = &mut self.holders[place];
        let before = count(&**holder, "units_refused");
        holder.handle(now, Port::Above(0), Item::Message(Message::new(0, payload)));
        let is_taken = count(&**holder, "units_refused") == before;
        self.pump(now);
        is_taken
    }

    /// A program's message.
    fn on_program(&mut self, now: Instant, message: Message) {
        let has_room = self.holders[MESSAGES].holding().unsent < MAX_UNSENT;
        let payload = write_message(self.config.number, message.payload);
        if has_room && self.is_taken(now, MESSAGES, payload) {
            self.counts.messages_sent += 1;
        } else {
            self.counts.messages_refused += 1;
        }
    }

    /// A message of a member's program, for the programs here: behind its site's name and a space.
    fn on_message(&mut self, payload: &[u8]) {
        let Ok((publisher, message)) = read_message(payload) else {
            self.counts.malformed += 1;
            return;
        };
        let Some(from) = self.member_of(publisher) else {
            self.counts.foreign += 1;
            return;
        };
        let mut payload = Buffer::copy_from(format!("{} ", self.config.members[from].name).as_bytes());
        payload.append(message);
        self.came[from].messages += 1;
        self.counts.messages_received += 1;
        self.out.up(Item::Message(Message::new(0, payload)));
    }

    fn on_lane(&mut self, now: Instant, mut datagram: Datagram) {
        let from = self.config.members.iter().position(|member| member.address == Some(datagram.remote));
        let (Some(from), Some(&kind)) = (from, datagram.payload.first()) else {
            self.counts.foreign += 1;
            return;
        };
        self.heard[from] = Some(now);
        datagram.payload.advance(1);
        let place = match Kind::of(kind) {
            Some(Kind::Files) => FILES,
            Some(Kind::Messages) => MESSAGES,
            Some(Kind::Statement) | None => {
                self.counts.malformed += 1;
                return;
            }
        };
        self.holders[place].handle(now, Port::Below(0), Item::Datagram(datagram));
    }

    /// Hands on the items of the transport's machines.
    fn pump(&mut self, now: Instant) {
        for (place, kind) in [(FILES, Kind::Files), (MESSAGES, Kind::Messages)] {
            while let Some((port, item)) = self.holders[place].poll(now) {
                match (port, item) {
                    (Port::Below(_), Item::Datagram(datagram)) => self.send(kind, datagram),
                    (Port::Above(1), Item::Message(Message { name: Some(key), payload, .. })) => {
                        self.put([&[place as u8], &key[..]].concat(), payload);
                    }
                    (Port::Above(0), Item::Message(message)) if place == FILES => {
                        self.on_file(now, message.payload);
                    }
                    (Port::Above(0), Item::Message(message)) => self.on_message(&message.payload),
                    _ => {}
                }
            }
        }
    }

    fn send(&mut self, kind: Kind, datagram: Datagram) {
        let copied = (!self.config.is_multicast).then_some(self.config.group);
        let members = self.up.iter().zip(&self.config.members);
        let up = members.filter(|(is_up, _)| **is_up).filter_map(|(_, member)| member.address);
        lane::send(&mut self.out, kind, datagram, copied, up);
    }

    /// The place of the member that has published something.
    pub(super) fn member_of(&self, publisher: u32) -> Option<usize> {
        self.config.members.iter().position(|member| member.number == publisher)
    }

    /// Says what was dropped for want of room, and what the store has to say.
    fn complain(&mut self, now: Instant) {
        while let Some(line) = self.store.as_ref().and_then(Store::trouble) {
            self.say(Level::Warn, line);
        }
        let dropped: u64 = self.holders.iter().map(|holder| count(&**holder, "cache_dropped")).sum();
        let (before, said) = self.dropped;
        if dropped > before && said.is_none_or(|at| now >= at + REPEATED_AFTER) {
            self.dropped = (dropped, Some(now));
            let more = dropped - before;
            let line = format!(
                "{more} messages and files were dropped for want of room: whoever lacks them may get them from nobody; `memory` \
                 and the option `cache` say how much is held"
            );
            self.say(Level::Warn, line);
        }
    }

    /// Says something that may happen again and again.
    pub(super) fn trouble(&mut self, now: Instant, line: String) {
        let is_known = self.troubles.iter().any(|(at, said)| *said == line && now < *at + REPEATED_AFTER);
        if !is_known {
            self.troubles.retain(|(at, _)| now < *at + REPEATED_AFTER);
            self.troubles.truncate(MAX_LINES);
            self.troubles.push((now, line.clone()));
            self.say(Level::Warn, line);
        }
    }

    pub(super) fn say(&mut self, level: Level, line: String) {
        if self.lines.len() < MAX_LINES {
            self.lines.push_back((level, format!("group `{}`: {line}", self.config.name)));
        }
    }
}

impl Machine for StoreForward {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(_), Item::Datagram(datagram)) => self.on_lane(now, datagram),
            (Port::Above(_), Item::Message(message)) => self.on_program(now, message),
            (Port::Below(_) | Port::Above(_), _) => self.counts.malformed += 1,
        }
        self.pump(now);
    }

    fn wake(&mut self, now: Instant) {
        if self.next_turn <= now {
            self.turn(now);
        }
        for holder in &mut self.holders {
            if holder.deadline().is_some_and(|at| at <= now) {
                holder.wake(now);
            }
        }
        self.pump(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        let [files, messages] = &self.holders;
        earliest(Some(self.next_turn), earliest(files.deadline(), messages.deadline()))
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.report_counters(report);
    }
}
