//! This site as a member of a group: a machine with the lane to the other members below, and programs above.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Message, Outbox, Port, earliest};
use log::Level;

use super::catalogue::Catalogue;
use super::disk::{Command, Disk, Event};
use super::incoming::{Incoming, Progress, Verdict};
use super::lane;
use super::statements::Statements;
use super::talk::Talk;
use super::transfer::Transfer;
use super::wire::{Kind, Piece, Refusal, pieces};

/// Pieces that wait for the disk. Chosen: 16 MiB; more are memory while a disk stalls, and what is dropped comes again.
const MAX_WRITES: usize = 256;
/// Lines that wait to be logged. Chosen: they are read ten times a second.
pub(super) const MAX_LINES: usize = 64;
/// Time after which members that had no room for a file are asked again. Chosen; shorter costs datagrams while a disk
/// is full, longer delays the file once there is room.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// Time between two turns, in which what the disk says is taken. Chosen; shorter takes processor time where nothing
/// happens, longer delays files of a few pieces.
pub(super) const TURN: Duration = Duration::from_millis(100);

/// A machine of the transport.
pub(crate) type Session = Box<dyn Machine>;

/// Settings of a member.
pub(crate) struct MemberConfig {
    /// The group's name.
    pub(crate) name: String,
    /// The address of this site on the lane, and of all others together.
    pub(crate) local: SocketAddr,
    pub(crate) group: SocketAddr,
    /// The others: their names, and their addresses on the lane.
    pub(crate) members: Vec<(String, SocketAddr)>,
    /// Whether one datagram to the group's address reaches all, so that no copies are made.
    pub(crate) is_multicast: bool,
    /// Whether files of others are taken.
    pub(crate) receives: bool,
    /// Maximum number of bytes that files of others take.
    pub(crate) quota: u64,
    /// Maximum length of a datagram with its kind, in bytes.
    pub(crate) datagram: u16,
    /// Number of this run.
    pub(crate) instance: u32,
}

/// A line for the log.
pub(crate) type Line = (Level, String);

/// This site as a member of a group.
pub(crate) struct LocalMember {
    pub(super) config: MemberConfig,
    pub(super) files: Session,
    pub(super) messages: Option<Session>,
    pub(super) disk: Option<Disk>,
    /// Whether the disk has said what was received in earlier runs.
    is_ready: bool,
    /// Whether each member is up.
    pub(super) up: Vec<bool>,
    pub(super) statements: Statements,
    pub(super) catalogue: Catalogue,
    transfer: Option<Transfer>,
    pub(super) incoming: Vec<Incoming>,
    pub(super) talk: Talk,
    /// Bytes that files of others take.
    pub(super) used: u64,
    writes: usize,
    next_turn: Instant,
    next_look: Instant,
    out: Outbox,
    lines: VecDeque<Line>,
    pub(super) counts: Counts,
}

/// Counters of a member, beside its transport's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Datagrams and messages that made no sense, or are of another group; below, of nobody here.
    pub(super) malformed: u64,
    pub(super) foreign: u64,
    pub(super) other_group: u64,
    /// Pieces that were sent, sent again, and that came.
    pub(super) pieces_sent: u64,
    pub(super) pieces_received: u64,
    /// Pieces that came while too many waited for the disk.
    pub(super) pieces_dropped: u64,
    pub(super) offers_sent: u64,
    pub(super) receipts_sent: u64,
    pub(super) rounds: u64,
    /// Messages: taken of programs, refused since too many wait, given to programs.
    pub(super) messages_sent: u64,
    pub(super) messages_refused: u64,
    pub(super) messages_received: u64,
}

impl LocalMember {
    pub(crate) fn new(config: MemberConfig, files: Session, messages: Option<Session>) -> Self {
        let members = config.members.len();
        Self {
            is_ready: false,
            up: vec![false; members],
            statements: Statements::new(members),
            catalogue: Catalogue::default(),
            transfer: None,
            incoming: (0..members).map(|_| Incoming::default()).collect(),
            talk: Talk::new(config.instance, members),
            used: 0,
            writes: 0,
            next_turn: Instant::ZERO,
            next_look: Instant::ZERO,
            out: Outbox::new(),
            lines: VecDeque::new(),
            counts: Counts::default(),
            files,
            messages,
            disk: None,
            config,
        }
    }

    /// Connects it with its disk.
    pub(crate) fn connect(&mut self, disk: Disk) {
        self.disk = Some(disk);
    }

    /// The next line for the log.
    pub(crate) fn line(&mut self) -> Option<Line> {
        self.lines.pop_front()
    }

    /// Takes who is up; `up` is of each member.
    pub(crate) fn note_up(&mut self, now: Instant, up: &[bool]) {
        for (member, (&is_up, was_up)) in up.iter().zip(&mut self.up).enumerate() {
            if is_up && !*was_up {
                self.catalogue.forget_standings(member, false);
                self.statements.is_back(member, now);
            }
            *was_up = is_up;
        }
    }

    /// Takes what the disk says, and does what is due.
    fn turn(&mut self, now: Instant) {
        self.next_turn = now + TURN;
        while let Some(Ok(event)) = self.disk.as_ref().map(|disk| disk.events.try_recv()) {
            self.on_disk(now, event);
        }
        // Without a disk there is nothing to remember.
        self.is_ready |= self.disk.is_none();
        if now >= self.next_look {
            self.next_look = now + LOOK_INTERVAL;
            self.catalogue.forget_refusals();
            for from in 0..self.incoming.len() {
                let mut gone = Vec::new();
                self.incoming[from].look(now, &mut gone);
                self.discard(from, gone);
            }
        }
        self.work(now);
    }

    fn on_disk(&mut self, now: Instant, event: Event) {
        match event {
            Event::Known { from, ids } => self.incoming[from].remember(ids),
            Event::Ready => self.is_ready = true,
            Event::Found { id, name, size } => {
                if let Some(count) = pieces(size) {
                    self.catalogue.add((id, name, size), count, self.config.members.len());
                    self.statements.has_file(now);
                }
            }
            Event::Gone(id) => {
                self.catalogue.remove(id);
                self.transfer.take_if(|transfer| transfer.id == id);
            }
            Event::Read { id, piece, bytes } => {
                if let Some(transfer) = self.transfer.as_mut().filter(|transfer| transfer.id == id) {
                    transfer.was_read(piece, bytes);
                }
            }
            Event::Written { from, id, piece } => {
                self.writes = self.writes.saturating_sub(1);
                match self.incoming[from].written(now, id, piece) {
                    Progress::Complete(name) => self.order(Command::Finish { from, id, name }),
                    Progress::Goes => self.statements.tell(from, id),
                    Progress::Gone => self.order(Command::Discard { from, id }),
                }
            }
            Event::Stored { from, id, name } => {
                self.used += self.incoming[from].stored(id);
                self.statements.tell(from, id);
                let (group, sender) = (&self.config.name, &self.config.members[from].0);
                let line = format!("group `{group}`: `{name}` from `{sender}` is here");
                self.say(Level::Info, line);
            }
            Event::Failed { from, id, piece, why } => {
                self.writes = self.writes.saturating_sub(usize::from(piece.is_some()));
                self.refuse(now, from, id, why);
            }
            // Of whole files, which this machine does not order.
            Event::ReadWhole { .. } | Event::Overtaken { .. } => {}
            Event::Used(bytes) => self.used = bytes,
            Event::Trouble(line) => self.say(Level::Warn, format!("group `{}`: {line}", self.config.name)),
        }
    }

    /// Does the work that is due: makes statements, and sends pieces.
    fn work(&mut self, now: Instant) {
        self.send_files(now);
        self.speak(now);
    }

    /// The members that are up.
    pub(super) fn members_up(&self) -> Vec<usize> {
        (0..self.up.len()).filter(|&member| self.up[member]).collect()
    }

    fn send_files(&mut self, now: Instant) {
        let up = self.members_up();
        let packets = self.packets();
        if self.transfer.is_none()
            && let Some(id) = self.catalogue.due(now, &up)
        {
            self.transfer = Some(Transfer::new(id, now, self.up.len(), packets));
        }
        let Some(mut transfer) = self.transfer.take() else { return };
        let Some(file) = self.catalogue.get(transfer.id) else { return };
        while let Some(piece) = transfer.next(file, &up) {
            self.order(Command::Read { id: transfer.id, piece });
        }
        let (id, size, name) = (file.id, file.size, Arc::clone(&file.name));
        while let Some((piece, bytes)) = transfer.to_send() {
            let payload = Piece { id, size, piece: *piece, name: &name, bytes }.emit();
            if !self.is_taken(now, payload) {
                break;
            }
            self.counts.pieces_sent += 1;
            transfer.was_sent(now);
        }
        let Some(file) = self.catalogue.get_mut(id) else { return };
        if transfer.settle(now, file, &up, packets) {
            self.counts.rounds += 1;
            let lack = file.end_round(now);
            self.statements.round_ends(now, lack);
        } else {
            self.transfer = Some(transfer);
        }
    }

    /// Gives the transport a piece; whether it has taken it.
    fn is_taken(&mut self, now: Instant, payload: Buffer) -> bool {
        let before = count(&*self.files, "units_refused");
        self.files.handle(now, Port::Above(0), Item::Message(Message::new(0, payload)));
        self.pump(now);
        count(&*self.files, "units_refused") == before
    }

    /// Packets of data and repairs that the transport of files has sent.
    fn packets(&self) -> u64 {
        count(&*self.files, "data_packets_sent") + count(&*self.files, "repair_packets_sent")
    }

    /// The file that is being sent, once all of it was: whoever lacks it is asked.
    pub(super) fn waiting_for(&self) -> Option<u64> {
        let transfer = self.transfer.as_ref()?;
        let file = self.catalogue.get(transfer.id)?;
        transfer.waits(file, &self.members_up()).then_some(transfer.id)
    }

    /// A member has more of a file than before.
    pub(super) fn progressed(&mut self, now: Instant, member: usize, id: u64) {
        if let Some(transfer) = self.transfer.as_mut().filter(|transfer| transfer.id == id) {
            transfer.progressed(now, member);
        }
        let Some(file) = self.catalogue.get_mut(id) else { return };
        if file.is_everywhere() && !std::mem::replace(&mut file.is_said, true) {
            let line = format!("group `{}`: all members have `{}`", self.config.name, file.name);
            self.say(Level::Info, line);
        }
    }

    /// The pieces that this site has of a member's file; `None` while it does not know.
    pub(super) fn standing(&self, member: usize, id: u64) -> Option<super::wire::Standing> {
        if !self.config.receives {
            return Some(super::wire::Standing::Refused(Refusal::NoFiles));
        }
        self.is_ready.then(|| self.incoming[member].standing(id))
    }

    fn on_piece(&mut self, now: Instant, from: usize, message: &Message) {
        if !self.config.receives || !self.is_ready {
            return;
        }
        let Ok(piece) = Piece::parse(&message.payload) else {
            self.counts.malformed += 1;
            return;
        };
        self.counts.pieces_received += 1;
        if self.writes >= MAX_WRITES {
            self.counts.pieces_dropped += 1;
            return;
        }
        let quota = self.config.quota;
        let reserved: u64 = self.incoming.iter().map(Incoming::reserved).sum();
        let room = quota.saturating_sub(self.used).saturating_sub(reserved);
        let mut gone = Vec::new();
        match self.incoming[from].piece(now, &piece, (room, quota), &mut gone) {
            Verdict::Write => {
                self.writes += 1;
                let (id, piece, bytes) = (piece.id, piece.piece, Buffer::copy_from(piece.bytes));
                self.order(Command::Write { from, id, piece, bytes });
            }
            Verdict::Nothing => {}
            Verdict::Refuse(why) => self.refuse(now, from, piece.id, why),
        }
        self.discard(from, gone);
    }

    fn refuse(&mut self, now: Instant, from: usize, id: u64, why: Refusal) {
        self.incoming[from].refuse(now, id, why);
        self.statements.tell(from, id);
        let (group, sender) = (&self.config.name, &self.config.members[from].0);
        let line = format!("group `{group}`: a file of `{sender}` is not taken: {}", why.words());
        self.say(Level::Warn, line);
    }

    fn discard(&self, from: usize, ids: Vec<u64>) {
        ids.into_iter().for_each(|id| self.order(Command::Discard { from, id }));
    }

    fn order(&self, command: Command) {
        if let Some(disk) = &self.disk {
            // Its thread ends with this one.
            let _ = disk.commands.send(command);
        }
    }

    fn say(&mut self, level: Level, line: String) {
        if self.lines.len() < MAX_LINES {
            self.lines.push_back((level, line));
        }
    }

    /// The member at an address of the lane.
    fn member_at(&self, address: SocketAddr) -> Option<usize> {
        self.config.members.iter().position(|(_, at)| *at == address)
    }

    fn on_lane(&mut self, now: Instant, mut datagram: Datagram) {
        let (Some(from), Some(&kind)) = (self.member_at(datagram.remote), datagram.payload.first()) else {
            self.counts.foreign += 1;
            return;
        };
        datagram.payload.advance(1);
        match Kind::of(kind) {
            Some(Kind::Statement) => self.on_statement(now, from, &datagram.payload),
            Some(Kind::Files) => self.files.handle(now, Port::Below(0), Item::Datagram(datagram)),
            Some(Kind::Messages) => {
                if let Some(messages) = &mut self.messages {
                    messages.handle(now, Port::Below(0), Item::Datagram(datagram));
                }
            }
            None => self.counts.malformed += 1,
        }
    }

    /// A program's message.
    fn on_program(&mut self, now: Instant, message: Message) {
        let Some(messages) = &mut self.messages else { return };
        let before = count(&**messages, "units_refused");
        let payload = self.talk.number(message.payload);
        let datagram = Datagram::new(self.config.local, self.config.group, payload);
        messages.handle(now, Port::Above(0), Item::Datagram(datagram));
        if count(&**messages, "units_refused") == before {
            self.counts.messages_sent += 1;
            self.statements.has_message(now);
        } else {
            self.talk.take_back();
            self.counts.messages_refused += 1;
        }
    }

    /// Hands on the items of the transport's machines.
    fn pump(&mut self, now: Instant) {
        while let Some((port, item)) = self.files.poll(now) {
            match (port, item) {
                (Port::Below(_), Item::Datagram(datagram)) => self.send(Kind::Files, datagram),
                (Port::Above(_), Item::Message(message)) => {
                    match message.sender.and_then(|at| self.member_at(at)) {
                        Some(from) => self.on_piece(now, from, &message),
                        None => self.counts.foreign += 1,
                    }
                }
                _ => {}
            }
        }
        while let Some((port, item)) = self.messages.as_mut().and_then(|messages| messages.poll(now)) {
            match (port, item) {
                (Port::Below(_), Item::Datagram(datagram)) => self.send(Kind::Messages, datagram),
                (Port::Above(_), Item::Datagram(datagram)) => self.on_message(now, &datagram),
                _ => {}
            }
        }
    }

    /// Gives a member's message to the programs, behind its name and a space.
    fn on_message(&mut self, now: Instant, datagram: &Datagram) {
        let Some(from) = self.member_at(datagram.remote) else {
            self.counts.foreign += 1;
            return;
        };
        let Some(message) = self.talk.came(now, from, &datagram.payload) else { return };
        let mut payload = Buffer::copy_from(format!("{} ", self.config.members[from].0).as_bytes());
        payload.append(message);
        self.counts.messages_received += 1;
        self.out.up(Item::Message(Message::new(0, payload)));
    }

    /// Sends a datagram to a member, or to all.
    pub(super) fn send(&mut self, kind: Kind, datagram: Datagram) {
        let copied = (!self.config.is_multicast).then_some(self.config.group);
        let members = self.up.iter().zip(&self.config.members);
        let up = members.filter(|(is_up, _)| **is_up).map(|(_, &(_, address))| address);
        lane::send(&mut self.out, kind, datagram, copied, up);
    }
}

/// A counter of a machine, by its name.
pub(super) fn count(machine: &dyn Machine, name: &str) -> u64 {
    let mut sum = 0;
    machine.counters(&mut |counter, value| sum += value * u64::from(counter == name));
    sum
}

impl Machine for LocalMember {
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
        let due = |machine: &Session| machine.deadline().is_some_and(|at| at <= now);
        if due(&self.files) {
            self.files.wake(now);
        }
        if let Some(messages) = self.messages.as_mut().filter(|messages| due(messages)) {
            messages.wake(now);
        }
        self.pump(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        let transports =
            earliest(self.files.deadline(), self.messages.as_ref().and_then(|messages| messages.deadline()));
        earliest(Some(self.next_turn), transports)
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.report_counters(report);
    }
}
