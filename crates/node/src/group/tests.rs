//! Members of a group in virtual time, on a network that loses, with disks that are played.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use hopcast_config::yaml::{Source, parse};
use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Message, Port, Rate, Seed};
use hopcast_stack::site::{GroupLayer, GroupMember, GroupService};

use super::disk::{Command, Disk, Event};
use super::transfer::WINDOW;
use super::wire::{MAX_PIECE, PIECE, Refusal, piece_len};
use super::{LocalMember, MemberConfig};
use crate::test_network::TestNetwork;

const NAMES: [&str; 3] = ["shore", "ship1", "ship2"];
/// Bytes that a member's files may take.
const QUOTA: u64 = 16 << 20;

/// A member with the disk that the test plays.
struct Site {
    member: LocalMember,
    at: SocketAddr,
    commands: Receiver<Command>,
    events: Sender<Event>,
    /// The files that it sends.
    own: BTreeMap<u64, Vec<u8>>,
    /// Files of others that are incomplete, and those that are complete, by sender and name.
    partial: BTreeMap<(usize, u64), Vec<u8>>,
    stored: BTreeMap<(usize, String), Vec<u8>>,
    is_full: bool,
    heard: Vec<String>,
    is_up: bool,
    runs: u64,
}

struct Net {
    over: GroupLayer,
    now: Instant,
    sites: Vec<Site>,
    network: TestNetwork,
}

fn address(site: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + site as u8], 7))
}

/// The address by which each site knows itself, and no other does.
fn own() -> SocketAddr {
    "[100::]:7".parse().unwrap()
}

fn group() -> SocketAddr {
    "239.0.0.1:7".parse().unwrap()
}

/// The transports of the tests that run over more than one, and how often each sends a window of pieces in vain when a
/// member is back: it may take longer than the group to find it. Who is gone is found before the group takes the
/// transport to have given up.
const LAYERS: [(&str, u64); 2] = [("norm", 0), ("{ nakack: { merge-every: 2 s } }", 1)];

fn layer(over: &str) -> GroupLayer {
    GroupLayer::read(
        &parse(over, &Arc::new(Source { name: "test".to_owned(), dir: PathBuf::new(), lines: true }))
            .unwrap(),
    )
    .unwrap()
}

/// Disks and machines of a site, as after a start.
fn member(over: &GroupLayer, site: usize, run: u64) -> (LocalMember, Receiver<Command>, Sender<Event>) {
    let (orders, commands) = channel();
    let (events, told) = channel();
    let others: Vec<usize> = (0..NAMES.len()).filter(|&other| other != site).collect();
    let GroupService::Direct(service) = over.transport() else { panic!("{over}") };
    let transport = |random| {
        service.member(GroupMember {
            datagram: 1400,
            overhead: 30,
            slack: Duration::ZERO,
            memory: 16 << 20,
            local: own(),
            group: group(),
            number: site as u32 + 1,
            others: others.iter().map(|&other| (other as u32 + 1, address(other))).collect(),
            message: MAX_PIECE,
            rate: Some(Rate::from_mbit(20)),
            random,
        })
    };
    let mut random = Seed::new(site as u64, run).stream(&["member"], 0);
    let config = MemberConfig {
        name: "charts".to_owned(),
        local: own(),
        group: group(),
        members: others.iter().map(|&other| (NAMES[other].to_owned(), address(other))).collect(),
        is_multicast: false,
        receives: true,
        quota: QUOTA,
        datagram: 1400,
        instance: random.bits() as u32 | 1,
    };
    let (files, messages) = (transport(random.fork()), transport(random.fork()));
    let mut member = LocalMember::new(config, files, Some(messages));
    member.connect(Disk { commands: orders, events: told });
    events.send(Event::Ready).unwrap();
    (member, commands, events)
}

impl Site {
    /// Carries out the orders to the disk.
    fn serve(&mut self) {
        let commands: Vec<Command> = self.commands.try_iter().collect();
        for command in commands {
            let event = match command {
                Command::Read { id, piece } => match self.own.get(&id) {
                    Some(file) => {
                        let start = (u64::from(piece) * PIECE) as usize;
                        let len = piece_len(file.len() as u64, piece) as usize;
                        Event::Read { id, piece, bytes: file[start..start + len].to_vec() }
                    }
                    None => Event::Gone(id),
                },
                Command::Write { from, id, piece, .. } if self.is_full => {
                    Event::Failed { from, id, piece: Some(piece), why: Refusal::NoRoom }
                }
                Command::Write { from, id, piece, bytes } => {
                    let file = self.partial.entry((from, id)).or_default();
                    let start = (u64::from(piece) * PIECE) as usize;
                    file.resize(file.len().max(start + bytes.len()), 0);
                    file[start..start + bytes.len()].copy_from_slice(&bytes);
                    Event::Written { from, id, piece }
                }
                Command::Finish { from, id, name } => {
                    let file = self.partial.remove(&(from, id)).unwrap_or_default();
                    self.stored.insert((from, name.to_string()), file);
                    Event::Stored { from, id, name }
                }
                Command::Discard { from, id } => {
                    self.partial.remove(&(from, id));
                    continue;
                }
                Command::ReadWhole(_) | Command::Deliver { .. } => panic!("{command:?}"),
            };
            self.events.send(event).unwrap();
        }
    }
}

impl Net {
    fn new(loss: f64) -> Self {
        Self::over(GroupLayer::default(), loss)
    }

    fn over(over: GroupLayer, loss: f64) -> Self {
        Self::with(over, TestNetwork::new(3, Duration::from_millis(10), loss))
    }

    fn with(over: GroupLayer, network: TestNetwork) -> Self {
        let sites = (0..NAMES.len()).map(|site| {
            let (member, commands, events) = member(&over, site, 1);
            let none = || (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
            let (own, partial, stored) = none();
            let (at, heard) = (address(site), Vec::new());
            Site {
                member,
                at,
                commands,
                events,
                own,
                partial,
                stored,
                is_full: false,
                heard,
                is_up: true,
                runs: 1,
            }
        });
        Self { sites: sites.collect(), over, now: Instant::ZERO, network }
    }

    /// A file appears at a site.
    fn put(&mut self, site: usize, id: u64, len: usize) {
        let bytes: Vec<u8> = (0..len).map(|i| (i as u64).wrapping_mul(id * 2 + 1).to_be_bytes()[6]).collect();
        let site = &mut self.sites[site];
        site.own.insert(id, bytes);
        site.events.send(Event::Found { id, name: format!("{id}.bin").into(), size: len as u64 }).unwrap();
    }

    /// A program at a site sends a message.
    fn say(&mut self, site: usize, text: &str) {
        let message = Message::new(0, Buffer::copy_from(text.as_bytes()));
        self.sites[site].member.handle(self.now, Port::Above(0), Item::Message(message));
        self.drain(site);
    }

    /// A site is started anew with nothing on its disk, as a certain run.
    fn restart_as(&mut self, site: usize, run: u64) {
        self.sites[site].runs = run;
        self.restart(site, &[]);
    }

    /// A site is started anew: its disk has what it had.
    fn restart(&mut self, site: usize, known: &[(usize, u64)]) {
        let it = &mut self.sites[site];
        it.runs += 1;
        it.partial.clear();
        (it.member, it.commands, it.events) = member(&self.over, site, it.runs);
        for &(from, id) in known {
            it.events.send(Event::Known { from, ids: vec![id] }).unwrap();
        }
        for (&id, file) in &it.own {
            let (name, size) = (format!("{id}.bin").into(), file.len() as u64);
            it.events.send(Event::Found { id, name, size }).unwrap();
        }
    }

    fn drain(&mut self, site: usize) {
        while let Some((port, item)) = self.sites[site].member.poll(self.now) {
            match (port, item) {
                (Port::Below(_), Item::Datagram(datagram)) => {
                    self.network.send(self.now, self.sites[site].at, datagram);
                }
                (Port::Above(_), Item::Message(message)) => {
                    self.sites[site].heard.push(String::from_utf8(message.payload.to_vec()).unwrap());
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn step(&mut self) {
        while let Some(datagram) = self.network.arrived(self.now) {
            let to = (0..NAMES.len()).find(|&to| address(to) == datagram.local).expect("a member");
            if self.sites[to].is_up {
                self.sites[to].member.handle(self.now, Port::Below(0), Item::Datagram(datagram));
                self.drain(to);
            }
        }
        let exchange = self.now.as_nanos().is_multiple_of(100_000_000);
        for site in 0..NAMES.len() {
            if self.sites[site].is_up {
                if exchange {
                    self.sites[site].serve();
                    let others = (0..NAMES.len()).filter(|&other| other != site);
                    let up: Vec<bool> = others.map(|other| self.sites[other].is_up).collect();
                    self.sites[site].member.note_up(self.now, &up);
                }
                if self.sites[site].member.deadline().is_some_and(|at| at <= self.now) {
                    self.sites[site].member.wake(self.now);
                }
                self.drain(site);
            }
        }
        self.now += Duration::from_millis(1);
    }

    fn run(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        while self.now < until {
            self.step();
        }
    }

    /// Whether all but the sender have a file of it, within a time.
    fn arrives(&mut self, from: usize, id: u64, seconds: u64) -> bool {
        let until = self.now + Duration::from_secs(seconds);
        loop {
            let all = (0..NAMES.len()).filter(|&site| site != from).all(|site| self.has(site, from, id));
            if all || self.now >= until {
                return all;
            }
            self.step();
        }
    }

    fn has(&self, site: usize, from: usize, id: u64) -> bool {
        // Members are numbered without the site itself.
        let place = if from < site { from } else { from - 1 };
        let found = self.sites[site].stored.get(&(place, format!("{id}.bin")));
        found.is_some() && found == self.sites[from].own.get(&id)
    }

    /// The words of a site's status about a file.
    fn standings(&self, site: usize, id: u64) -> Vec<String> {
        let status = self.sites[site].member.status(self.now);
        let file = status.files.into_iter().find(|file| file.name == format!("{id}.bin")).expect("the file");
        file.members.into_values().collect()
    }

    fn counter(&self, site: usize, name: &str) -> u64 {
        let mut sum = 0;
        self.sites[site].member.counters(&mut |counter, value| sum += value * u64::from(counter == name));
        sum
    }
}

#[test]
fn files_of_all_sizes_reach_every_member_over_a_path_that_loses() {
    LAYERS.iter().for_each(|(over, _)| files_of_all_sizes(over));
}

#[test]
fn pgm_can_carry_a_group_too() {
    files_of_all_sizes("{ pgm: { block: 16 } }");
}

fn files_of_all_sizes(over: &str) {
    let mut net = Net::over(layer(over), 0.1);
    let sizes = [0, 1, PIECE as usize, PIECE as usize + 1, 3_000_000];
    for (id, size) in sizes.into_iter().enumerate() {
        net.put(0, id as u64 + 1, size);
    }
    net.put(2, 9, 500_000);
    for id in 1..=5 {
        assert!(net.arrives(0, id, 30), "{id} at {}", net.now);
    }
    assert!(net.arrives(2, 9, 10), "{over}");
    net.run(3);
    assert_eq!(net.standings(0, 5), ["has", "has"]);
    let pieces: u64 = sizes.iter().map(|&size| (size as u64).div_ceil(PIECE).max(1)).sum();
    assert_eq!(net.counter(0, "pieces_sent"), pieces, "the transport repairs what is lost");
    let lines: Vec<String> =
        std::iter::from_fn(|| net.sites[0].member.line()).map(|(_, line)| line).collect();
    assert!(lines.contains(&"group `charts`: all members have `5.bin`".to_owned()), "{lines:?}");
}

#[test]
fn a_member_that_was_away_gets_what_it_lacks_and_a_sender_that_is_started_anew_sends_nothing_twice() {
    LAYERS.iter().for_each(|(over, vain)| a_member_that_was_away(over, *vain));
}

fn a_member_that_was_away(over: &str, vain: u64) {
    let mut net = Net::over(layer(over), 0.05);
    net.put(0, 1, 200_000);
    assert!(net.arrives(0, 1, 10));
    net.sites[2].is_up = false;
    net.put(0, 2, 1_000_000);
    net.run(5);
    assert!(net.has(1, 0, 2));
    assert_eq!(net.standings(0, 2), ["has", "down"]);
    net.sites[2].is_up = true;
    net.restart(2, &[(0, 1)]);
    assert!(net.arrives(0, 2, 20), "{:?}", net.standings(0, 2));
    net.run(2);
    let sent = net.counter(0, "pieces_sent");
    assert!(sent <= 4 + (2 + vain) * 16, "what both had is not sent again: {sent} pieces");

    net.restart(0, &[]);
    net.run(5);
    assert_eq!((net.standings(0, 1), net.standings(0, 2)), (vec!["has".into(); 2], vec!["has".into(); 2]));
    assert_eq!(net.counter(0, "pieces_sent"), 0);
}

#[test]
fn an_outage_in_the_middle_of_a_file_costs_no_more_than_what_was_under_way() {
    LAYERS.iter().for_each(|(over, vain)| an_outage_in_the_middle(over, *vain));
}

fn an_outage_in_the_middle(over: &str, vain: u64) {
    let mut net = Net::over(layer(over), 0.0);
    net.put(0, 1, 10_000_000);
    net.run(3);
    net.sites[2].is_up = false;
    net.run(20);
    assert!(net.has(1, 0, 1), "the others go on");
    net.sites[2].is_up = true;
    assert!(net.arrives(0, 1, 20));
    let sent = net.counter(0, "pieces_sent");
    let count = 10_000_000_u64.div_ceil(PIECE);
    assert!((count..2 * count + vain * WINDOW as u64).contains(&sent), "{sent} of {count}");
}

/// A round of a file goes to nobody while its transport has yet to find the member that lacks it, and answers are lost.
#[test]
fn a_member_that_comes_late_over_a_path_that_loses_is_soon_asked_what_it_lacks_after_a_round_in_vain() {
    let over = layer("{ nakack: { heartbeat: 500 ms, suspect-after: 10 s, verify: 3 s, merge-every: 2 s } }");
    for seed in 0..20 {
        let mut net = Net::with(over.clone(), TestNetwork::new(seed, Duration::from_millis(1), 0.4));
        net.sites[2].is_up = false;
        (0..3).for_each(|site| net.restart_as(site, 10 * seed));
        net.put(0, 1, 1);
        while !net.has(1, 0, 1) {
            net.step();
        }
        net.restart_as(2, 10 * seed);
        net.sites[2].is_up = true;
        // 24 s at most; once the answers to an offer or two were lost it took up to four minutes.
        assert!(net.arrives(0, 1, 40), "{seed}: {:?}", net.standings(0, 1));
    }
}

#[test]
fn a_member_without_room_is_told_of_and_gets_the_file_when_it_has_some() {
    let mut net = Net::new(0.0);
    net.sites[1].is_full = true;
    net.put(0, 1, 100_000);
    net.put(0, 2, QUOTA as usize + 1);
    net.run(5);
    assert_eq!(net.standings(0, 1), ["no room", "has"]);
    assert_eq!(net.standings(0, 2), ["too large for its quota"; 2]);
    net.sites[1].is_full = false;
    assert!(net.arrives(0, 1, 120));
}

#[test]
fn messages_come_in_order_with_their_senders_name_and_it_is_known_who_has_them() {
    LAYERS.iter().for_each(|(over, _)| messages_come_in_order(over));
}

fn messages_come_in_order(over: &str) {
    let mut net = Net::over(layer(over), 0.1);
    net.run(1);
    for number in 0..50 {
        net.say(0, &format!("course {number}"));
        net.say(1, &format!("report {number}"));
        net.run_for_millis(20);
    }
    net.run(5);
    let of = |name: &str, word: &str| (0..50).map(|i| format!("{name} {word} {i}")).collect::<Vec<_>>();
    let heard = |site: usize, name: &str| {
        let lines = net.sites[site].heard.iter().filter(|line| line.starts_with(&format!("{name} ")));
        lines.cloned().collect::<Vec<_>>()
    };
    for (site, name, word) in [(1, "shore", "course"), (2, "shore", "course"), (0, "ship1", "report")] {
        assert_eq!(heard(site, name), of(name, word), "at {}", NAMES[site]);
    }
    let status = net.sites[0].member.status(net.now);
    let has: Vec<_> = status.members.iter().map(|it| (it.messages_has, it.messages_last)).collect();
    assert_eq!((status.messages_sent, has), (50, vec![(50, 50); 2]));
}

#[test]
fn a_group_that_has_nothing_to_do_is_silent() {
    let mut net = Net::new(0.1);
    net.put(0, 1, 100_000);
    net.say(1, "hello");
    assert!(net.arrives(0, 1, 10));
    net.run(60);
    let count = |net: &Net| {
        (0..3).map(|site| net.counter(site, "offers_sent") + net.counter(site, "receipts_sent")).sum::<u64>()
    };
    let before = count(&net);
    net.run(60);
    assert_eq!(count(&net), before);
}

impl Net {
    fn run_for_millis(&mut self, millis: u64) {
        (0..millis).for_each(|_| self.step());
    }
}
