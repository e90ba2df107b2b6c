//! Members that meet and part in virtual time, with disks that are played, and stores that are real.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use hopcast_config::yaml::{Source, parse};
use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Message, Port, Rate, Seed};
use hopcast_stack::site::{GroupLayer, GroupMember, GroupService, StoringMember};

use super::machine::{FILES, MESSAGES};
use super::{Other, StoreForward, StoringConfig};
use crate::group::disk::{Command, Disk, Event};
use crate::group::wire::{Refusal, number};
use crate::store::{Store, wall_clock};
use crate::test_network::TestNetwork;

const NAMES: [&str; 3] = ["shore", "ferry", "island"];
const QUOTA: u64 = 1 << 20;
/// Bytes that a site holds of files, and of messages.
const ROOM: u64 = 4 << 20;

/// The role of a site.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Takes,
    Holds,
}

/// A site with the disk that the test plays.
struct Site {
    role: Role,
    member: StoreForward,
    commands: Receiver<Command>,
    events: Sender<Event>,
    own: BTreeMap<u64, Vec<u8>>,
    stored: BTreeMap<(usize, String), Vec<u8>>,
    known: BTreeSet<(usize, u64)>,
    is_full: bool,
    programs: Vec<String>,
    lines: Vec<String>,
    state: tempfile::TempDir,
    runs: u64,
}

struct Net {
    now: Instant,
    over: GroupLayer,
    sites: Vec<Site>,
    network: TestNetwork,
    /// Pairs of sites that hear each other.
    met: BTreeSet<(usize, usize)>,
}

fn address(site: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + site as u8], 7))
}

fn layer(over: &str) -> GroupLayer {
    let source = Source { name: "test".to_owned(), dir: PathBuf::new(), lines: true };
    GroupLayer::read(&parse(over, &Arc::new(source)).unwrap()).unwrap()
}

fn others(site: usize) -> Vec<usize> {
    (0..NAMES.len()).filter(|&other| other != site).collect()
}

/// A member as after a start, with its disk and what its store has.
fn begin(
    over: &GroupLayer,
    site: usize,
    run: u64,
    role: Role,
    (now, wall): (Instant, u64),
    state: &std::path::Path,
) -> (StoreForward, Receiver<Command>, Sender<Event>) {
    let GroupService::StoreAndForward(service) = over.transport() else { panic!("{over}") };
    let mut random = Seed::new(site as u64, run).stream(&["member"], 0);
    let mut holder = |in_order| {
        let member = GroupMember {
            datagram: 1400,
            overhead: 30,
            slack: Duration::ZERO,
            memory: ROOM,
            local: "[100::]:7".parse().unwrap(),
            group: "239.0.0.1:7".parse().unwrap(),
            number: number(NAMES[site]),
            others: Vec::new(),
            message: u64::MAX,
            rate: Some(Rate::from_mbit(20)),
            random: random.fork(),
        };
        let subscribes = role == Role::Takes;
        service.member(StoringMember { member, group: 7, subscribes, in_order, number_of: number })
    };
    let (files, messages) = (holder(false), holder(true));
    let other = |other: usize| Other {
        name: NAMES[other].to_owned(),
        number: number(NAMES[other]),
        address: Some(address(other)),
    };
    let config = StoringConfig {
        name: "charts".to_owned(),
        number: number(NAMES[site]),
        group: "239.0.0.1:7".parse().unwrap(),
        members: others(site).into_iter().map(other).collect(),
        is_multicast: false,
        rates: [None; 2],
        receives: role == Role::Takes,
        quota: QUOTA,
        rooms: [service.room(ROOM), service.room(ROOM)],
    };
    let (orders, commands) = channel();
    let (events, told) = channel();
    let mut member = StoreForward::new(config, files, messages);
    let (store, found) = Store::open(state, 3 * ROOM).unwrap();
    member.keep(now, wall, store, found);
    if role == Role::Takes {
        member.connect(Disk { commands: orders, events: told });
    }
    (member, commands, events)
}

impl Net {
    fn new(over: &str, loss: f64, roles: [Role; 3]) -> Self {
        let over = layer(over);
        let sites = roles.into_iter().enumerate().map(|(site, role)| {
            let state = tempfile::tempdir().unwrap();
            let (member, commands, events) =
                begin(&over, site, 1, role, (Instant::ZERO, wall_clock()), state.path());
            let _ = events.send(Event::Ready);
            let (own, stored, known) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
            let (programs, lines) = (Vec::new(), Vec::new());
            let (is_full, runs) = (false, 1);
            Site { role, member, commands, events, own, stored, known, is_full, programs, lines, state, runs }
        });
        let sites = sites.collect();
        let network = TestNetwork::new(3, Duration::from_millis(10), loss);
        Self { now: Instant::ZERO, over, sites, network, met: BTreeSet::new() }
    }

    /// These sites hear each other from now on, and no others do.
    fn meet(&mut self, pairs: &[(usize, usize)]) {
        self.met = pairs.iter().flat_map(|&(one, other)| [(one, other), (other, one)]).collect();
        for site in 0..NAMES.len() {
            let up: Vec<bool> =
                others(site).into_iter().map(|other| self.met.contains(&(site, other))).collect();
            self.sites[site].member.note_up(&up);
        }
    }

    /// A site is started anew, and finds its store, and the files that it has written.
    fn restart(&mut self, site: usize) {
        self.restart_at(site, wall_clock());
    }

    /// The same where the host's clock shows this time.
    fn restart_at(&mut self, site: usize, wall: u64) {
        let it = &mut self.sites[site];
        it.runs += 1;
        // The store is closed before it is opened again.
        it.member.store = None;
        let (member, commands, events) =
            begin(&self.over, site, it.runs, it.role, (self.now, wall), it.state.path());
        for (place, _) in others(site).into_iter().enumerate() {
            let ids = it.known.iter().filter(|(from, _)| *from == place).map(|&(_, id)| id).collect();
            let _ = events.send(Event::Known { from: place, ids });
        }
        let _ = events.send(Event::Ready);
        (it.member, it.commands, it.events) = (member, commands, events);
        for (&id, bytes) in &it.own {
            let _ = it.events.send(Event::Found {
                id,
                name: format!("{id}.bin").into(),
                size: bytes.len() as u64,
            });
        }
        let met: Vec<_> = self.met.iter().copied().collect();
        self.meet(&met);
    }

    fn put(&mut self, site: usize, id: u64, len: usize) -> Vec<u8> {
        let bytes: Vec<u8> = (0..len).map(|i| (i as u64).wrapping_mul(id * 2 + 1).to_be_bytes()[6]).collect();
        let site = &mut self.sites[site];
        site.own.insert(id, bytes.clone());
        site.events.send(Event::Found { id, name: format!("{id}.bin").into(), size: len as u64 }).unwrap();
        bytes
    }

    fn say(&mut self, site: usize, text: &str) {
        let message = Message::new(0, Buffer::copy_from(text.as_bytes()));
        self.sites[site].member.handle(self.now, Port::Above(0), Item::Message(message));
        self.drain(site);
    }

    fn drain(&mut self, site: usize) {
        let Site { member, programs, .. } = &mut self.sites[site];
        while let Some((port, item)) = member.poll(self.now) {
            match (port, item) {
                (Port::Below(_), Item::Datagram(datagram)) => {
                    let to = (0..NAMES.len()).find(|&to| address(to) == datagram.remote).unwrap();
                    if self.met.contains(&(site, to)) {
                        self.network.send(self.now, address(site), datagram);
                    }
                }
                (Port::Above(_), Item::Message(message)) => {
                    programs.push(String::from_utf8(message.payload.to_vec()).unwrap());
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Carries out the orders to a site's disk.
    fn serve(&mut self, site: usize) {
        let Site { commands, events, own, stored, known, is_full, .. } = &mut self.sites[site];
        while let Ok(command) = commands.try_recv() {
            let event = match command {
                Command::ReadWhole(id) => Event::ReadWhole { id, changed: id, bytes: own[&id].clone() },
                Command::Deliver { from, id, .. } if *is_full => {
                    Event::Failed { from, id, piece: None, why: Refusal::NoRoom }
                }
                Command::Deliver { from, id, name, bytes, .. } => {
                    assert!(known.insert((from, id)), "{name} from {from} is written twice");
                    stored.insert((from, name.to_string()), bytes.to_vec());
                    Event::Stored { from, id, name }
                }
                other => panic!("{other:?}"),
            };
            let _ = events.send(event);
        }
    }

    fn run(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end {
            while let Some(datagram) = self.network.arrived(self.now) {
                let to = (0..NAMES.len()).find(|&to| address(to) == datagram.local).unwrap();
                self.sites[to].member.handle(self.now, Port::Below(0), Item::Datagram(datagram));
                self.drain(to);
            }
            for site in 0..NAMES.len() {
                if self.sites[site].member.deadline().is_some_and(|at| at <= self.now) {
                    self.sites[site].member.wake(self.now);
                    self.drain(site);
                    self.serve(site);
                }
                let it = &mut self.sites[site];
                it.lines.extend(std::iter::from_fn(|| it.member.line()).map(|(_, line)| line));
            }
            self.now += Duration::from_millis(1);
        }
    }

    /// Whether a site has written a file of another, whose place among the others is `from`.
    fn has(&self, site: usize, from: usize, id: u64, bytes: &[u8]) -> bool {
        self.sites[site].stored.get(&(from, format!("{id}.bin"))).is_some_and(|found| found == bytes)
    }

    fn count(&self, site: usize, name: &str) -> u64 {
        self.sites[site].member.status(self.now).counters[name]
    }
}

#[test]
fn what_a_site_publishes_reaches_all_others_once_over_links_that_lose() {
    let mut net = Net::new("disservice", 0.1, [Role::Takes; 3]);
    net.meet(&[(0, 1), (1, 2), (0, 2)]);
    let (chart, empty, note) = (net.put(0, 1, 300_000), net.put(0, 2, 0), net.put(2, 3, 1));
    (0..10).for_each(|number| net.say(0, &format!("position {number}")));
    net.run(10);
    for (site, from) in [(1, 0), (2, 0)] {
        assert!(net.has(site, from, 1, &chart) && net.has(site, from, 2, &empty), "{site}");
        let mut heard = net.sites[site].programs.clone();
        heard.sort();
        assert_eq!(heard, (0..10).map(|number| format!("shore position {number}")).collect::<Vec<_>>());
    }
    assert!(net.has(0, 1, 3, &note) && net.has(1, 1, 3, &note));
    assert_eq!(net.sites[0].programs, [""; 0], "its own");
    assert!(net.sites[1].lines.iter().any(|line| line == "group `charts`: `1.bin` from `shore` is here"));
    let status = net.sites[0].member.status(net.now);
    let held = status.held.unwrap();
    assert_eq!((held.files_published, held.files_due, held.messages, held.unsent_bytes), (2, 0, 13, 0));
    assert!(held.bytes > 300_000 && held.disk_bytes > Some(300_000), "{held:?}");
    assert_eq!((status.members[1].files_received, status.messages_sent), (1, 10));
}

#[test]
fn in_the_order_that_is_asked_for_messages_come_as_they_were_sent() {
    let mut net = Net::new("{ disservice: { order: sender } }", 0.2, [Role::Takes; 3]);
    net.meet(&[(0, 1), (1, 2), (0, 2)]);
    (0..50).for_each(|number| net.say(0, &format!("{number}")));
    net.run(10);
    let expected: Vec<_> = (0..50).map(|number| format!("shore {number}")).collect();
    assert!(net.sites[1].programs == expected && net.sites[2].programs == expected);
}

#[test]
fn a_site_that_only_holds_carries_on_what_it_heard_also_after_a_restart_and_when_its_publisher_is_gone() {
    let mut net = Net::new("disservice", 0.05, [Role::Takes, Role::Holds, Role::Takes]);
    let chart = net.put(0, 1, 200_000);
    net.say(0, "gone to lunch");
    // Nobody is there when it is published.
    net.run(5);
    net.meet(&[(0, 1)]);
    net.run(20);
    net.meet(&[]);
    assert_eq!(net.sites[1].member.holders[FILES].holding().messages, 1);
    net.restart(1);
    assert_eq!(net.sites[1].member.holders.each_ref().map(|holder| holder.holding().messages), [1, 1]);
    net.run(40);
    net.meet(&[(1, 2)]);
    net.run(20);
    assert!(net.has(2, 0, 1, &chart));
    assert_eq!(net.sites[2].programs, ["shore gone to lunch"]);
    // What the one who took it has had does not come again when it is started anew.
    net.restart(2);
    net.meet(&[(0, 2), (1, 2)]);
    net.run(20);
    assert_eq!(net.sites[2].programs.len(), 1);
    assert_eq!((net.count(2, "files_repeated"), net.count(2, "messages_received")), (0, 0));
}

#[test]
fn a_site_that_is_started_anew_publishes_nothing_twice_and_still_serves_what_nobody_has() {
    let mut net = Net::new("disservice", 0.0, [Role::Takes; 3]);
    let chart = net.put(0, 1, 100_000);
    net.say(0, "first");
    net.run(3);
    net.restart(0);
    net.say(0, "second");
    net.meet(&[(0, 1), (1, 2), (0, 2)]);
    net.run(20);
    for site in [1, 2] {
        assert!(net.has(site, 0, 1, &chart));
        let heard: BTreeSet<_> = net.sites[site].programs.iter().map(String::as_str).collect();
        assert_eq!(
            (heard, net.sites[site].programs.len()),
            (BTreeSet::from(["shore first", "shore second"]), 2)
        );
        assert_eq!(net.count(site, "files_repeated"), 0);
    }
    assert_eq!(net.count(0, "files_published"), 0, "in this run");
    assert_eq!(net.sites[0].programs, [""; 0]);
    // A file that has changed is another one.
    net.sites[0].own.remove(&1);
    net.sites[0].events.send(Event::Gone(1)).unwrap();
    let newer = net.put(0, 5, 10);
    net.run(5);
    assert!(net.has(1, 0, 5, &newer) && net.has(2, 0, 5, &newer));
}

#[test]
fn a_file_for_which_there_is_no_room_waits_over_a_restart_and_is_written_once_there_is() {
    let mut net = Net::new("disservice", 0.0, [Role::Takes; 3]);
    net.meet(&[(0, 1)]);
    net.sites[1].is_full = true;
    let chart = net.put(0, 1, 10_000);
    net.run(5);
    net.meet(&[]);
    assert_eq!(
        (net.sites[1].stored.len(), net.sites[1].member.status(net.now).held.unwrap().files_waiting),
        (0, 1)
    );
    net.restart(1);
    net.run(2);
    net.sites[1].is_full = false;
    net.run(40);
    assert!(net.has(1, 0, 1, &chart));
    assert_eq!(net.sites[1].member.status(net.now).held.unwrap().files_waiting, 0);
    // It does not wait for ever, and is not remembered as waiting.
    net.restart(1);
    net.run(40);
    assert_eq!(net.sites[1].member.status(net.now).held.unwrap().files_waiting, 0);
}

#[test]
fn what_is_too_long_or_has_no_room_is_worth_a_line() {
    let mut net = Net::new("{ disservice: { cache: 256 KiB } }", 0.0, [Role::Takes; 3]);
    net.meet(&[(0, 1)]);
    net.put(0, 1, 200_000);
    (2..8).for_each(|id| _ = net.put(0, id, 100_000));
    net.run(20);
    let told = |words: &str| net.sites[0].lines.iter().filter(|line| line.contains(words)).count();
    assert_eq!(
        told("`1.bin` is not sent: it has 200000 bytes, and a file may have"),
        1,
        "{:?}",
        net.sites[0].lines
    );
    assert_eq!(told("were dropped for want of room"), 1, "{:?}", net.sites[0].lines);
    let held = net.sites[0].member.status(net.now).held.unwrap();
    assert!(held.dropped >= 4 && held.bytes <= 256 << 10, "{held:?}");
    assert_eq!(net.sites[1].stored.len(), 6, "who was there has them all");
    assert_eq!(net.count(0, "files_refused"), 1);
    // A program that is faster than the rate for long.
    (0..3000).for_each(|_| net.say(0, &"x".repeat(1000)));
    assert!(net.count(0, "messages_refused") > 1000);
    assert!(net.sites[0].member.holders[MESSAGES].holding().unsent < 2 << 20);
}

#[test]
fn what_has_expired_while_the_site_was_off_is_not_taken_back() {
    let mut net = Net::new("{ disservice: { lifetime: 1 s } }", 0.0, [Role::Takes; 3]);
    net.put(0, 1, 1000);
    net.run(1);
    assert_eq!(net.sites[0].member.holders[FILES].holding().messages, 1);
    net.sites[0].member.store = None;
    std::thread::park_timeout(std::time::Duration::from_millis(1200));
    net.restart(0);
    assert_eq!(net.sites[0].member.holders[FILES].holding().messages, 0);
}

/// A host whose clock has no battery begins with another time at each start. What does not expire is held whatever it
/// shows, and what does is there for no longer than its time after a start.
#[test]
fn a_clock_that_steps_while_the_site_is_off_loses_nothing_and_keeps_nothing_for_ever() {
    const HOUR: u64 = 3_600_000;
    for (over, held_after_step_ahead) in [("disservice", 1), ("{ disservice: { lifetime: 60 s } }", 0)] {
        let mut net = Net::new(over, 0.0, [Role::Takes; 3]);
        let chart = net.put(0, 1, 1000);
        net.run(1);
        let held = |net: &Net| net.sites[0].member.holders[FILES].holding().messages;
        // It has gone back by a day, and to its zero.
        for wall in [wall_clock() - 24 * HOUR, 0] {
            net.restart_at(0, wall);
            assert_eq!(held(&net), 1, "{over}");
            net.run(30);
            assert_eq!(held(&net), 1, "{over}");
        }
        net.meet(&[(0, 1)]);
        net.run(20);
        assert!(net.has(1, 0, 1, &chart), "{over}");
        net.run(20);
        assert_eq!(held(&net), held_after_step_ahead, "{over}: its time is over, if it has one");
        net.meet(&[]);
        net.put(0, 2, 1000);
        net.run(1);
        let before = held(&net);
        net.restart_at(0, wall_clock() + HOUR);
        assert_eq!((before, held(&net)), (1 + held_after_step_ahead, 2 * held_after_step_ahead), "{over}");
        // What comes then lasts as long as anything.
        net.put(0, 3, 1000);
        net.run(40);
        assert_eq!(held(&net), 1 + 2 * held_after_step_ahead, "{over}");
    }
}

#[test]
fn strangers_garbage_and_the_messages_of_sites_that_are_no_members_are_counted() {
    let mut net = Net::new("disservice", 0.0, [Role::Takes; 3]);
    let give = |net: &mut Net, from: SocketAddr, bytes: &[u8]| {
        let local = "[100::]:7".parse().unwrap();
        let datagram = hopcast_core::Datagram::new(local, from, Buffer::copy_from(bytes));
        net.sites[0].member.handle(net.now, Port::Below(0), Item::Datagram(datagram));
        net.drain(0);
    };
    give(&mut net, "10.9.9.9:7".parse().unwrap(), &[1, 2, 3]);
    give(&mut net, address(1), &[]);
    assert_eq!(net.count(0, "statements_foreign"), 2);
    for bytes in [&[0][..], &[9, 9], &[1], &[2, 0, 0]] {
        give(&mut net, address(1), bytes);
    }
    assert_eq!((net.count(0, "statements_malformed"), net.count(0, "malformed")), (2, 2));
}

#[test]
fn the_rate_is_shared_by_those_that_are_up() {
    // A file of 1 MB at 4 Mbit/s, for one and for two.
    for (met, is_there) in [(&[(0, 1)][..], true), (&[(0, 1), (0, 2)], false)] {
        let mut net = Net::new("disservice", 0.0, [Role::Takes; 3]);
        net.sites[0].member.config.rates = [Some(Rate::from_mbit(4)); 2];
        net.meet(met);
        net.put(0, 1, 1_000_000);
        net.run(3);
        let stored = net.sites[1].stored.len();
        assert_eq!(stored == 1, is_there, "{met:?}");
        net.run(3);
        assert_eq!(net.sites[1].stored.len(), 1, "{met:?}");
    }
}
