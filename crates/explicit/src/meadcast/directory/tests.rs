//! Members and a directory over a path that takes 20 ms each way.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port, Seed, Stream, Transit};
use proptest::prelude::*;

use super::*;
use crate::meadcast::sender::{self, Sender};
use crate::testing::{at, counter};

const OWN: &str = "fd14::1";
const GROUP: &str = "ff18::1";
const DELAY: Duration = Duration::from_millis(20);

fn stream(name: &str) -> Stream {
    Seed::new(1, 0).stream(&[name], 0)
}

fn seconds(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn sender(config: Config) -> DirectorySender {
    let (own, group) = (at(OWN), at(GROUP));
    let settings = sender::Config { interval: Duration::ZERO, ..sender::Config::default() };
    let below = Sender::new(settings, own, IpAddr::V6(group), [], stream("sender"));
    DirectorySender::new(config, below, [own, group], Cookies::draw(&mut stream("directory")))
}

fn member(address: &str, changes: &[(u64, bool)]) -> Member {
    let changes: Vec<_> = changes.iter().map(|&(at, joins)| (seconds(at), joins)).collect();
    Member::new(at(address), at(OWN), at(GROUP), changes, stream(address))
}

/// The receivers of the sender at the moment, by a datagram.
fn receivers(sender: &mut DirectorySender, now: Instant) -> Vec<Ipv6Addr> {
    let datagram = Datagram::new((at(OWN), 7).into(), (at(GROUP), 7).into(), Buffer::copy_from(b"film"));
    // A discovery may begin now.
    sender.wake(now);
    while sender.poll(now).is_some() {}
    sender.handle(now, Port::Above(0), Item::Datagram(datagram));
    let mut found = Vec::new();
    while let Some((_, item)) = sender.poll(now) {
        let Item::Packet(packet) = item else { panic!("{item:?}") };
        let IpAddr::V6(to) = hopcast_wire::ip::parse(&packet).unwrap().destination else { panic!() };
        found.push(to);
    }
    found.sort();
    found
}

/// Members, the sender and what is under way between them.
struct Net {
    sender: DirectorySender,
    members: BTreeMap<Ipv6Addr, Member>,
    /// By the time of its arrival and its number.
    under_way: BTreeMap<(Instant, u64), Buffer>,
    sent: u64,
    /// Whether a message, by its number, is lost.
    is_lost: fn(u64) -> bool,
}

impl Net {
    fn new(config: Config, members: Vec<Member>) -> Self {
        let members = members.into_iter().enumerate();
        let members =
            members.map(|(number, member)| (at(&format!("fd14::2:{}", number + 1)), member)).collect();
        Self { sender: sender(config), members, under_way: BTreeMap::new(), sent: 0, is_lost: |_| false }
    }

    /// One that has a number of members with the same changes.
    fn of(count: usize, changes: &[(u64, bool)]) -> Self {
        let members = (0..count).map(|number| member(&format!("fd14::2:{}", number + 1), changes));
        Self::new(Config::default(), members.collect())
    }

    fn run(&mut self, until: Instant) {
        loop {
            let deadlines = self.members.values().map(|member| member.deadline());
            let next =
                deadlines.chain([self.sender.deadline(), self.under_way.keys().next().map(|key| key.0)]);
            let Some(now) = next.flatten().min().filter(|at| *at <= until) else { return };
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= now) {
                let packet = entry.remove();
                let IpAddr::V6(to) = hopcast_wire::ip::parse(&packet).unwrap().destination else { panic!() };
                let item = Item::Transit(Transit::arrived(packet, 1));
                match self.members.get_mut(&to) {
                    Some(member) => member.handle(now, Port::Below(1), item),
                    None if to == at(OWN) => self.sender.handle(now, Port::Below(1), item),
                    None => {}
                }
            }
            self.members.values_mut().for_each(|member| member.wake(now));
            self.sender.wake(now);
            let all = self.members.values_mut().map(|member| member as &mut dyn Machine);
            let mut packets = Vec::new();
            for machine in all.chain([&mut self.sender as &mut dyn Machine]) {
                while let Some((_, item)) = machine.poll(now) {
                    if let Item::Packet(packet) = item
                        && Message::parse(&packet).is_some()
                    {
                        packets.push(packet);
                    }
                }
            }
            for packet in packets {
                self.sent += 1;
                if !(self.is_lost)(self.sent) {
                    self.under_way.insert((now + DELAY, self.sent), packet);
                }
            }
        }
    }

    fn receivers(&mut self, now: Instant) -> usize {
        receivers(&mut self.sender, now).len()
    }

    fn counter(&self, name: &str) -> u64 {
        counter(&self.sender, name)
    }
}

#[test]
fn a_member_is_one_two_round_trips_after_it_says_so_and_until_it_leaves() {
    let mut net = Net::of(3, &[(1, true), (9, false)]);
    net.run(seconds(1) + DELAY * 3 - Duration::from_nanos(1));
    assert_eq!(net.receivers(seconds(1)), 0);
    net.run(seconds(1) + DELAY * 3);
    assert_eq!(net.receivers(seconds(2)), 3);
    assert_eq!(net.sent, 3 * 4, "request, challenge, request, acceptance");
    net.run(seconds(9) + DELAY);
    assert_eq!(net.receivers(seconds(9) + DELAY), 0);
    net.run(seconds(200));
    assert_eq!(net.sent, 3 * 6, "and the leave needs no challenge");
    assert_eq!(net.counter("directory_leaves"), 3);
}

#[test]
fn members_stay_and_are_challenged_no_more() {
    let mut net = Net::of(2, &[(0, true)]);
    net.run(seconds(600));
    assert_eq!(net.receivers(seconds(600)), 2);
    assert_eq!(net.counter("directory_ended"), 0);
    assert_eq!(net.counter("directory_challenges"), 2);
    // Each 20 s.
    let refreshes = net.counter("directory_refreshes");
    assert!((56..=60).contains(&refreshes), "{refreshes}");
}

#[test]
fn one_that_is_gone_without_a_word_is_taken_out_after_the_time_of_holding() {
    let mut net = Net::of(2, &[(0, true)]);
    net.run(seconds(10));
    net.members.pop_first();
    net.run(seconds(59));
    assert_eq!(net.receivers(seconds(59)), 2);
    net.run(seconds(61));
    assert_eq!(net.receivers(seconds(61)), 1);
    assert_eq!(net.counter("directory_ended"), 1);
}

#[test]
fn lost_messages_are_repeated() {
    let mut net = Net::of(1, &[(0, true), (30, false)]);
    net.is_lost = |number| number % 3 == 1;
    net.run(seconds(8));
    assert_eq!(net.receivers(seconds(8)), 1);
    net.run(seconds(40));
    assert_eq!(net.receivers(seconds(40)), 0);
    assert!(net.members.values().all(|member| counter(member, "directory_member_repeated") >= 2));
}

#[test]
fn a_leave_that_nobody_answers_is_given_up() {
    let mut net = Net::of(1, &[(0, true), (30, false)]);
    net.run(seconds(29));
    net.is_lost = |_| true;
    let before = net.sent;
    net.run(seconds(300));
    // Five leaves, and before them a refresh of the membership that began with the last answer.
    assert!((5..=6).contains(&(net.sent - before)), "{}", net.sent - before);
    assert_eq!((net.receivers(seconds(300)), net.counter("directory_ended")), (0, 1));
}

#[test]
fn a_sender_that_has_forgotten_its_members_has_them_again_within_a_third_of_the_time_of_holding() {
    let mut net = Net::of(3, &[(0, true)]);
    net.run(seconds(30));
    net.sender = {
        let (own, group) = (at(OWN), at(GROUP));
        let below = Sender::new(sender::Config::default(), own, group.into(), [], stream("sender"));
        DirectorySender::new(
            Config::default(),
            below,
            [own, group],
            Cookies::draw(&mut stream("another secret")),
        )
    };
    net.run(seconds(52));
    assert_eq!(net.receivers(seconds(52)), 3);
    assert_eq!(net.counter("directory_refused_forged"), 3, "the cookies were those of before");
}

/// A message in the name of `source`, and the answers to it.
fn say(sender: &mut DirectorySender, now: Instant, message: Message) -> Vec<Message> {
    while sender.poll(now).is_some() {}
    sender.handle(now, Port::Below(1), Item::Transit(Transit::arrived(message.emit(), 1)));
    let mut answers = Vec::new();
    while let Some((_, item)) = sender.poll(now) {
        if let Item::Packet(packet) = item {
            answers.extend(Message::parse(&packet));
        }
    }
    answers
}

fn request(source: &str, kind: Kind, cookie: u64) -> Message {
    Message { source: at(source), destination: at(OWN), kind, nonce: 1, cookie, group: at(GROUP) }
}

#[test]
fn nobody_joins_or_leaves_for_another() {
    let mut sender = sender(Config::default());
    let now = seconds(1);
    let own = say(&mut sender, now, request("fd14::66", Kind::Join, 0))[0];
    assert_eq!((own.kind, own.destination), (Kind::Challenge, at("fd14::66")));
    // The cookie of another, none, or one that is guessed: the answer goes to the victim, and is no longer.
    for cookie in [own.cookie, 0, 7] {
        for kind in [Kind::Join, Kind::Leave] {
            let answers = say(&mut sender, now, request("fd14::2", kind, cookie));
            assert_eq!(answers.len(), 1);
            assert_eq!((answers[0].kind, answers[0].destination), (Kind::Challenge, at("fd14::2")));
            assert_ne!(answers[0].cookie, own.cookie);
        }
    }
    assert!(receivers(&mut sender, now).is_empty());
    assert_eq!(counter(&sender, "directory_refused_forged"), 4);
    // Its own is good, and not for ever.
    say(&mut sender, now, request("fd14::66", Kind::Join, own.cookie));
    assert_eq!(receivers(&mut sender, now), [at("fd14::66")]);
    let later = say(&mut sender, seconds(121), request("fd14::66", Kind::Join, own.cookie))[0];
    assert_eq!(later.kind, Kind::Challenge);
}

#[test]
fn answers_that_do_not_repeat_the_last_nonce_are_refused() {
    let mut member = member("fd14::2", &[(0, true)]);
    member.wake(Instant::ZERO);
    let Some((_, Item::Packet(packet))) = member.poll(Instant::ZERO) else { panic!() };
    let asked = Message::parse(&packet).unwrap();
    for (kind, nonce) in [(Kind::Accepted { hold: 60 }, asked.nonce ^ 1), (Kind::Challenge, 0)] {
        let (source, destination) = (at(OWN), at("fd14::2"));
        let answer = Message { source, destination, kind, nonce, cookie: 3, group: at(GROUP) };
        member.handle(Instant::ZERO, Port::Below(1), Item::Transit(Transit::arrived(answer.emit(), 1)));
        assert_eq!(member.poll(Instant::ZERO), None);
    }
    assert!(!member.is_accepted());
    assert_eq!(counter(&member, "directory_member_refused"), 2);
}

#[test]
fn a_directory_is_full_at_its_maximum_and_answers_at_its_rate() {
    let config = Config { max_members: 2, requests_per_second: 100, ..Config::default() };
    let mut sender = sender(config);
    for number in 0..5 {
        let source = format!("fd14::2:{number}");
        let challenge = say(&mut sender, seconds(number), request(&source, Kind::Join, 0))[0];
        say(&mut sender, seconds(number), request(&source, Kind::Join, challenge.cookie));
    }
    assert_eq!(receivers(&mut sender, seconds(9)).len(), 2);
    assert_eq!(counter(&sender, "directory_refused_full"), 3);
    let answered = (0..1000).map(|_| say(&mut sender, seconds(9), request("fd14::3", Kind::Join, 0)).len());
    assert_eq!(answered.sum::<usize>(), 10);
    assert_eq!(counter(&sender, "directory_refused_rate"), 990);
}

#[test]
fn a_flood_of_requests_without_a_cookie_keeps_no_member_out_that_is_known() {
    let mut sender = sender(Config { requests_per_second: 100, ..Config::default() });
    let challenge = say(&mut sender, seconds(0), request("fd14::2", Kind::Join, 0))[0];
    for number in 0..1000 {
        say(&mut sender, seconds(1), request(&format!("fd14::3:{number}"), Kind::Join, number));
    }
    let accepted = say(&mut sender, seconds(1), request("fd14::2", Kind::Join, challenge.cookie));
    assert_eq!(accepted.len(), 1);
    assert_eq!(receivers(&mut sender, seconds(1)), [at("fd14::2")]);
    // Nor does one who is known answer for more than the rate.
    let answered = (0..1000)
        .map(|_| say(&mut sender, seconds(1), request("fd14::2", Kind::Join, challenge.cookie)).len());
    assert_eq!(answered.sum::<usize>(), 9);
}

#[test]
fn messages_of_other_groups_and_other_packets_are_handed_back() {
    let mut sender = sender(Config::default());
    let other = Message { group: at("ff18::2"), ..request("fd14::2", Kind::Join, 0) };
    let transit = Transit::arrived(other.emit(), 1);
    sender.handle(Instant::ZERO, Port::Below(1), Item::Transit(transit.clone()));
    assert_eq!(sender.poll(Instant::ZERO), Some((Port::Below(1), Item::Transit(transit))));
}

proptest! {
    #[test]
    fn what_is_read_is_what_was_written_and_nothing_else_makes_a_member(
        changes in proptest::collection::vec((0_usize..88, any::<u8>()), 0..4),
        kind in 0_usize..4,
    ) {
        let kind = [Kind::Join, Kind::Leave, Kind::Challenge, Kind::Accepted { hold: 9 }][kind];
        let message = Message { kind, cookie: 5, ..request("fd14::2", Kind::Join, 5) };
        prop_assert_eq!(Message::parse(&message.emit()), Some(message));
        let mut bytes = message.emit();
        for (place, to) in changes {
            bytes[place] = to;
        }
        if let Some(read) = Message::parse(&bytes) {
            prop_assert_eq!(Message::parse(&read.emit()), Some(read));
        }
        let (mut sender, mut member) = (sender(Config::default()), member("fd14::2", &[(0, true)]));
        for machine in [&mut sender as &mut dyn Machine, &mut member] {
            machine.handle(Instant::ZERO, Port::Below(1), Item::Transit(Transit::arrived(bytes.clone(), 1)));
        }
        prop_assert!(receivers(&mut sender, Instant::ZERO).is_empty());
        prop_assert!(!member.is_accepted());
    }
}

#[test]
fn a_member_may_lose_two_requests_however_short_its_time_is() {
    for hold in [1, 3, 60] {
        let config = Config { hold: Duration::from_secs(hold), ..Config::default() };
        let mut net = Net::new(config, vec![member("fd14::2:1", &[(0, true)])]);
        net.run(seconds(0) + Duration::from_millis(200));
        assert_eq!(net.receivers(seconds(0) + Duration::from_millis(200)), 1);
        // The next two messages are lost: a request and its repetition.
        assert_eq!(net.sent, 4);
        net.is_lost = |number| [5, 6].contains(&number);
        net.run(seconds(10 + 2 * hold));
        assert_eq!(
            (net.receivers(seconds(10 + 2 * hold)), net.counter("directory_ended")),
            (1, 0),
            "{hold} s"
        );
    }
}

#[test]
fn one_that_a_late_request_has_made_a_member_after_it_left_leaves_again() {
    let mut net = Net::of(1, &[(0, true), (5, false)]);
    net.run(seconds(6));
    assert_eq!(net.receivers(seconds(6)), 0);
    let cookie = say(&mut net.sender, seconds(6), request("fd14::2:1", Kind::Join, 0))[0].cookie;
    let accepted = say(&mut net.sender, seconds(6), request("fd14::2:1", Kind::Join, cookie));
    assert_eq!(net.receivers(seconds(6)), 1);
    let member = net.members.values_mut().next().unwrap();
    let packet = Transit::arrived(accepted[0].emit(), 1);
    member.handle(seconds(6), Port::Below(1), Item::Transit(packet));
    net.run(seconds(8));
    assert_eq!(net.receivers(seconds(8)), 0);
}

#[test]
fn a_message_that_is_cut_short_is_counted() {
    let mut sender = sender(Config::default());
    let mut packet = Buffer::copy_from(b"MD");
    hopcast_wire::udp::prepend(&mut packet, (at("fd14::2"), PORT).into(), (at(OWN), PORT).into());
    let udp = hopcast_wire::ip::UDP;
    hopcast_wire::ip::prepend(&mut packet, at("fd14::2").into(), at(OWN).into(), udp, 64, 0);
    sender.handle(Instant::ZERO, Port::Below(1), Item::Transit(Transit::arrived(packet, 1)));
    assert_eq!(sender.poll(Instant::ZERO), None);
    assert_eq!(counter(&sender, "directory_refused_malformed"), 1);
}
