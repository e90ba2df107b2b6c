//! One member's work in a view, a packet at a time.

use hopcast_core::{Duration, Instant, Seed};

use super::{Counted, Delivery, Epoch, FIRST_ANNOUNCED};
use crate::nakack::assembly::Unit;
use crate::nakack::credit;
use crate::nakack::outgoing::Outgoing;
use crate::nakack::tests::{config, id, told};
use crate::nakack::window::SPAN;
use crate::nakack::wire::{Flags, MemberId, Packet, Sent, View, ViewId};
use crate::nakack::{Ordering, Repairs, Stack, Start};

const ALONE: Flags = Flags(Flags::FIRST | Flags::LAST);

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A member of a view of three, with what waits to be sent.
struct Member {
    epoch: Epoch,
    outgoing: Outgoing,
    counted: Counted,
}

/// Whether a digest asks, what is stable, its entries, and whether it is for all.
type DueDigest = (bool, Option<u32>, Vec<(u16, u32)>, bool);

impl Member {
    fn new(rank: usize, stack: &Stack) -> Self {
        let Start::Told(members) = told(3) else { panic!() };
        let view = View { id: ViewId { number: 1, leader: id(0) }, members };
        let config = config(rank, told(3), stack);
        let random = Seed::new(1, 0).stream(&["member"], rank as u64);
        let epoch = Epoch::new(at(0), view, &config, 1, random);
        Self { epoch, outgoing: Outgoing::new(1 << 20), counted: Counted::default() }
    }

    /// Waits with a datagram to be sent.
    fn give(&mut self, count: usize) {
        (0..count).for_each(|_| assert!(self.outgoing.datagram(&[7; 100])));
    }

    /// Sends all that may be sent now: the letters of what that is.
    fn send(&mut self, now: u64) -> String {
        let next = std::iter::from_fn(|| self.epoch.next(at(now), &mut self.outgoing, &mut self.counted));
        let letter = |packet: super::ToSend| match Packet::parse(&packet.bytes).unwrap() {
            Packet::Data { .. } => 'D',
            Packet::Repair { .. } => 'R',
            Packet::Digest { asks: true, .. } => 'A',
            Packet::Digest { .. } => 'a',
            other => panic!("{other:?}"),
        };
        next.take(100).map(letter).collect()
    }

    /// A digest that is due.
    fn digest(&mut self, now: u64) -> Option<DueDigest> {
        let packet = self.epoch.next_digest(at(now), &mut self.counted)?;
        match Packet::parse(&packet.bytes).unwrap() {
            Packet::Digest { asks, stable, entries, .. } => Some((asks, stable, entries, packet.to_all)),
            other => panic!("{other:?}"),
        }
    }

    fn hear(&mut self, origin: u16, sequence: u32) {
        self.hear_payload(origin, sequence, ALONE, &[sequence as u8; 100]);
    }

    fn hear_payload(&mut self, origin: u16, sequence: u32, flags: Flags, payload: &[u8]) {
        self.epoch.message(at(10), origin, sequence, (flags, payload), &mut self.counted);
    }

    /// A member has messages up to these numbers.
    fn digest_of(&mut self, from: u16, stable: Option<u32>, entries: &[(u16, u32)]) {
        self.epoch.digest_of(at(20), from, (false, false), (stable, entries));
    }

    fn request(&mut self, from: u16, transmission: u32, asked: (u16, u32), length: u64) {
        let from = Sent { tag: self.epoch.tag(), rank: from, transmission };
        self.epoch.request(at(30), from, asked, &[(0, length)], &mut self.counted);
    }

    /// The first byte and the sender of each datagram that is delivered.
    fn delivered(&mut self) -> Vec<(u16, u8)> {
        let mut out = Delivery::default();
        self.epoch.deliver(&mut self.counted, &mut out);
        let unit = |(rank, unit): (u16, Unit)| match unit {
            Unit::Datagram(bytes) => (rank, bytes[0]),
            other => panic!("{other:?}"),
        };
        out.units.into_iter().map(unit).collect()
    }

    fn known(&self, rank: usize) -> u64 {
        self.epoch.windows[rank].known()
    }
}

fn targets(numbers: [u32; 3], holder: usize) -> Vec<(u32, MemberId)> {
    numbers.into_iter().map(|number| (number, id(holder))).collect()
}

#[test]
fn a_frozen_view_takes_nothing_new_and_delivers_up_to_where_its_leader_says() {
    for order in [Ordering::Fifo, Ordering::Total] {
        let mut member = Member::new(2, &Stack { order, ..Stack::default() });
        // The coordinator's messages, of which the third is missing, and the sixth.
        [1, 2, 4, 5].into_iter().for_each(|number| member.hear(0, number));
        assert!(!member.epoch.fetch(at(10), &targets([5, 1, 1], 0)), "it is not frozen");
        member.epoch.freeze();
        assert!(member.epoch.is_frozen() && !member.epoch.is_ready());
        member.hear(0, 3);
        member.digest_of(0, None, &[(0, 9)]);
        assert_eq!((member.epoch.digest(), member.known(0)), (vec![3, 1, 1], 6));
        assert!(!member.epoch.fetch(at(10), &[(5, id(0)), (1, id(0))]), "a member is missing");
        assert!(!member.epoch.fetch(at(10), &targets([5, 1, 1], 7)), "nobody has that name");
        assert!(member.epoch.fetch(at(10), &targets([5, 1, 1], 0)) && !member.epoch.is_ready());
        member.hear(0, 3);
        assert!(member.epoch.is_ready());
        assert_eq!(member.epoch.digest(), [5, 1, 1], "though the fifth is here");
        assert_eq!(member.delivered(), [(0, 1), (0, 2), (0, 3), (0, 4)], "{order:?}");
    }
}

#[test]
fn what_a_member_has_said_that_it_has_stays_in_the_view_that_ends() {
    let mut member = Member::new(1, &Stack::default());
    [1, 2].into_iter().for_each(|number| member.hear(0, number));
    member.epoch.freeze();
    assert!(member.epoch.fetch(at(10), &targets([2, 1, 1], 2)) && member.epoch.is_ready());
    assert_eq!((member.epoch.digest(), member.delivered()), (vec![3, 1, 1], vec![(0, 1), (0, 2)]));
}

#[test]
fn a_target_beyond_what_a_window_holds_is_fetched_as_far_as_that() {
    let mut member = Member::new(1, &Stack::default());
    member.epoch.freeze();
    assert!(member.epoch.fetch(at(10), &targets([1 << 20, 1, 1], 2)));
    assert_eq!(member.known(0), 1 + SPAN);
    let (to, _) = member.epoch.next_request(at(10), &mut member.counted).unwrap();
    assert_eq!(to, member.epoch.view().members[2].1, "whom the leader says");
}

#[test]
fn a_frozen_view_repairs_no_more_of_what_was_asked_for_before() {
    for is_frozen in [false, true] {
        let mut member = Member::new(0, &Stack::default());
        member.give(3);
        assert_eq!(member.send(10), "DDD");
        member.request(1, 3, (0, 1), 2);
        if is_frozen {
            member.epoch.freeze();
        }
        assert_eq!(member.send(10), if is_frozen { "" } else { "RR" });
    }
}

#[test]
fn a_new_message_comes_after_eight_repairs() {
    let mut member = Member::new(0, &Stack::default());
    member.give(20);
    assert_eq!(member.send(10).len(), 20);
    member.request(1, 20, (0, 1), 20);
    member.give(4);
    assert_eq!(member.send(10), "RRRRRRRRDRRRRRRRRDRRRRDD");
    assert_eq!((member.counted.requests.received, member.counted.repaired_for_others), (1, 0));
}

#[test]
fn requests_are_for_what_was_sent_before_them_and_repairs_of_others_are_counted() {
    let mut member = Member::new(2, &Stack::default());
    member.give(2);
    member.send(10);
    [1, 2].into_iter().for_each(|number| member.hear(1, number));
    member.request(0, 3, (2, 1), 2);
    assert_eq!(member.counted.strange, 1, "nobody can have heard a third transmission");
    member.request(2, 2, (2, 1), 2);
    assert_eq!(member.counted.strange, 2, "it is this member's own name");
    assert_eq!(member.send(10), "");
    member.request(0, 2, (1, 1), 2);
    assert_eq!((member.send(10).as_str(), member.counted.repaired_for_others), ("RR", 2));
    // Both were sent again since the member that asks heard of this one.
    member.request(0, 3, (1, 1), 2);
    assert_eq!(member.send(10), "R", "the first of them had arrived");
    // What is before the first that a member lacks, it has.
    assert!(member.epoch.lags(id(0), id(1)));
    member.request(0, 5, (1, 3), 1);
    assert!(!member.epoch.lags(id(0), id(1)));
}

#[test]
fn what_all_have_is_forgotten_once_it_is_delivered() {
    for order in [Ordering::Fifo, Ordering::Total] {
        let mut member = Member::new(2, &Stack { order, ..Stack::default() });
        // The others have it before it comes here, and say so.
        member.digest_of(0, None, &[(0, 2)]);
        member.digest_of(1, None, &[(0, 2)]);
        member.hear(0, 1);
        assert_eq!(member.epoch.numbers(0), (1, 2));
        assert_eq!(member.delivered(), [(0, 1)]);
        assert_eq!(member.epoch.numbers(0), (2, 2), "{order:?}");
        // That all have it, its sender says too.
        member.hear(0, 2);
        assert_eq!(member.delivered().len(), 1);
        assert_eq!(member.epoch.numbers(0), (2, 3));
        member.digest_of(0, Some(3), &[]);
        assert_eq!((member.epoch.numbers(0), member.epoch.held()), ((3, 3), 0));
    }
}

#[test]
fn the_coordinators_records_are_forgotten_with_its_messages() {
    let mut member = Member::new(2, &Stack { order: Ordering::Total, ..Stack::default() });
    member.hear(1, 1);
    assert_eq!(member.delivered(), [], "it has no place yet");
    member.digest_of(0, None, &[(0, 2)]);
    member.digest_of(1, None, &[(0, 2)]);
    member.hear_payload(0, 1, Flags(ALONE.0 | Flags::ORDER), &[0, 1, 0, 1]);
    assert_eq!(member.delivered(), [(1, 1)]);
    assert_eq!(member.epoch.numbers(0), (2, 2));
    member.hear_payload(0, 2, Flags(ALONE.0 | Flags::ORDER), &[0, 9, 0, 1]);
    assert_eq!((member.delivered(), member.counted.strange), (vec![], 1));
}

#[test]
fn nobody_says_for_this_member_what_it_has_or_has_sent() {
    let mut member = Member::new(2, &Stack::default());
    member.digest_of(0, None, &[(2, 9), (7, 9)]);
    assert_eq!(member.known(2), 1, "its own messages");
    assert!(member.epoch.windows[1].learn(3));
    member.digest_of(0, None, &[(1, 1 << 20)]);
    assert_eq!((member.known(1), member.epoch.stability.has(0, 1)), (3, 1), "beyond any window");
    // A sender says that all have what is not here.
    member.hear(1, 1);
    member.digest_of(1, Some(9), &[]);
    member.hear(1, 2);
    assert_eq!(member.delivered().len(), 2);
    assert_eq!(member.epoch.numbers(1).0, 2, "the second may be missing elsewhere");
    assert_eq!(member.epoch.heard(at(20), Sent { tag: member.epoch.tag(), rank: 2, transmission: 1 }), None);
    assert_eq!(
        member.epoch.heard(at(20), Sent { tag: member.epoch.tag(), rank: 1, transmission: 1 }),
        Some(1)
    );
}

#[test]
fn messages_that_come_twice_are_counted() {
    let mut member = Member::new(2, &Stack::default());
    [1, 1, 1].into_iter().for_each(|number| member.hear(0, number));
    assert_eq!(member.counted.duplicates, 2);
    assert_eq!(member.delivered().len(), 1);
    member.hear_payload(0, 2, Flags(Flags::FIRST), b"begins");
    member.hear(0, 3);
    assert_eq!((member.delivered().len(), member.counted.deliveries.given_up), (1, 1));
}

#[test]
fn a_member_says_what_it_has_after_so_many_bytes_and_after_a_time() {
    let stack = Stack { stable_bytes: 202, ..Stack::default() };
    let mut member = Member::new(2, &stack);
    member.hear(0, 1);
    assert_eq!(member.digest(10), None);
    member.hear(0, 2);
    assert_eq!(member.epoch.deadline(at(10), &member.outgoing), Some(at(10)));
    assert_eq!(member.digest(10), Some((false, None, vec![(0, 3)], false)), "for who sends");
    assert_eq!(member.digest(10), None);
    // It still holds them, and asks what the others have.
    let later = stack.stable_every.as_millis() + 10;
    let heartbeat = stack.heartbeat.as_millis() + 10;
    assert_eq!(member.epoch.deadline(at(10), &member.outgoing), Some(at(later.min(heartbeat))));
    assert!(member.digest(later).is_some_and(|(asks, ..)| asks));
    // Its own count too, and then all are told.
    let mut sender = Member::new(1, &stack);
    sender.give(2);
    assert_eq!(sender.send(10), "DD");
    assert!(sender.digest(10).is_some_and(|(_, _, entries, to_all)| entries == [(1, 3)] && to_all));
    let mut coordinator = Member::new(0, &stack);
    [1, 2].into_iter().for_each(|number| coordinator.hear(1, number));
    assert!(coordinator.digest(10).is_some_and(|(.., to_all)| to_all));
}

#[test]
fn answers_to_a_question_are_spread_and_not_put_off_by_another() {
    let mut dues = Vec::new();
    for rank in 0..3 {
        let mut member = Member::new(rank, &Stack::default());
        member.epoch.digest_of(at(20), (rank as u16 + 1) % 3, (true, false), (None, &[]));
        let due = member.epoch.digest_due.unwrap();
        assert!((at(20)..at(23)).contains(&due), "{due:?}");
        member.epoch.digest_of(due, (rank as u16 + 1) % 3, (true, false), (None, &[]));
        assert_eq!(member.epoch.digest_due, Some(due));
        assert_eq!(member.epoch.deadline(at(20), &member.outgoing), Some(due));
        dues.push(due);
    }
    dues.dedup();
    assert_eq!(dues.len(), 3);
}

#[test]
fn who_has_nothing_more_to_send_says_so_ever_less_often_and_asks_the_third_time() {
    let mut member = Member::new(1, &Stack::default());
    member.give(1);
    assert_eq!(member.send(0), "D");
    let first = FIRST_ANNOUNCED.as_millis();
    let mut now = 0;
    assert_eq!(member.send(now), "");
    for (wait, letter) in [(first, "a"), (2 * first, "a"), (4 * first, "A"), (8 * first, "A")] {
        assert_eq!(member.epoch.deadline(at(now), &member.outgoing), Some(at(now + wait)));
        assert_eq!(member.send(now + wait - 1), "");
        now += wait;
        assert_eq!(member.send(now), letter);
    }
    // The last was the fifth transmission: who asks for something after it has heard that one.
    assert_eq!(member.epoch.announcing.round_trip.mean(), None);
    member.request(0, 4, (1, 1), 1);
    assert_eq!(member.epoch.announcing.round_trip.mean(), None, "an earlier one");
    let sent = member.epoch.announcing.last.unwrap().1;
    let from = Sent { tag: member.epoch.tag(), rank: 0, transmission: 5 };
    let later = sent + Duration::from_millis(40);
    member.epoch.request(later, from, (1, 1), &[(0, 1)], &mut member.counted);
    assert_eq!(member.epoch.announcing.round_trip.mean(), Some(Duration::from_millis(40)));
    // Whatever is sent ends that.
    assert_eq!((member.send(now).as_str(), member.epoch.announcing.step), ("R", 0));
    assert_eq!(member.send(now + 40), "a");
    member.give(1);
    assert_eq!((member.send(now + 41).as_str(), member.epoch.announcing.step), ("D", 0));
    assert_eq!(member.send(now + 81), "a");
    // All have it: that is said once more.
    member.digest_of(0, None, &[(1, 3)]);
    assert_eq!(member.digest(now + 81), None);
    member.digest_of(2, None, &[(1, 3)]);
    assert_eq!(member.digest(now + 81), Some((false, Some(3), vec![(1, 3)], true)));
    assert_eq!(member.send(now + 2_000), "");
}

#[test]
fn who_is_held_back_by_what_others_have_not_acknowledged_asks_at_once() {
    let buffer = 2 * (100 + 64) + credit::cost(100);
    let mut member = Member::new(1, &Stack { buffer, ..Stack::default() });
    member.give(4);
    assert_eq!(member.send(0), "DDD", "as many as its buffer has room for");
    let first = FIRST_ANNOUNCED.as_millis();
    assert_eq!(member.send(first), "A");
    let mut member = Member::new(1, &Stack { credits: 3 * credit::cost(100) - 1, ..Stack::default() });
    member.give(4);
    assert_eq!(member.send(0), "DD", "as much as its credit");
    let mut member = Member::new(1, &Stack::default());
    member.give(1);
    assert!(member.epoch.windows[1].learn(1 + SPAN));
    assert_eq!(member.send(0), "", "a window has no more");
    let mut member = Member::new(1, &Stack::default());
    member.give(1);
    member.epoch.hold_back(true);
    assert_eq!(member.send(0), "");
    member.epoch.hold_back(false);
    assert_eq!(member.send(0), "D");
}

#[test]
fn the_coordinator_and_those_that_send_are_interested_in_what_a_member_has() {
    let mut member = Member::new(2, &Stack::default());
    let [first, second] = [0, 1].map(|rank| member.epoch.view().members[rank].1);
    assert_eq!(member.epoch.interested(), [first]);
    member.hear(1, 1);
    assert_eq!(member.epoch.interested(), [first, second]);
    let mut coordinator = Member::new(0, &Stack::default());
    coordinator.give(1);
    coordinator.send(0);
    assert_eq!(coordinator.epoch.interested(), [], "not this one itself");
}

#[test]
fn who_acknowledges_nothing_is_asked_in_the_second_half_of_the_time_that_it_has() {
    let stack = Stack { stable_every: Duration::from_secs(100), ..Stack::default() };
    let mut member = Member::new(1, &stack);
    member.give(1);
    member.send(0);
    let half = stack.stalled_after.as_millis() / 2;
    let mut is_asking = |now: u64| {
        let stalled = member.epoch.stalled(at(now));
        (stalled.len(), member.digest(now).is_some_and(|(asks, ..)| asks))
    };
    assert_eq!(is_asking(half - 1), (0, false));
    assert_eq!(is_asking(half), (0, true));
    assert_eq!(is_asking(2 * half), (2, true));
    assert_eq!(member.digest(2 * half).map(|(asks, ..)| asks), None, "once");
}

#[test]
fn a_loss_of_what_one_member_sends_may_be_of_a_repair_of_any() {
    let mut member = Member::new(2, &Stack::default());
    member.digest_of(0, None, &[(0, 2)]);
    assert!(member.epoch.next_request(at(20), &mut member.counted).is_some());
    assert_eq!(member.epoch.requests[0].due(), Some(at(320)));
    let tag = member.epoch.tag();
    for (now, transmission) in [(30, 1), (40, 3)] {
        member.epoch.heard(at(now), Sent { tag, rank: 1, transmission });
    }
    assert_eq!(member.epoch.requests[0].due(), Some(at(120)), "when losses have been gathered");
    // It comes: nothing is due any more.
    member.hear(0, 1);
    assert_eq!(member.epoch.requests[0].due(), None);
}

#[test]
fn what_is_fetched_is_asked_for_anew_however_often_it_was_in_vain() {
    let mut member = Member::new(2, &Stack::default());
    [1, 2, 4].into_iter().for_each(|number| member.hear(0, number));
    for now in [10, 310, 910] {
        assert!(member.epoch.next_request(at(now), &mut member.counted).is_some(), "{now}");
    }
    assert_eq!(member.epoch.requests[0].due(), Some(at(2110)));
    member.epoch.freeze();
    assert!(member.epoch.fetch(at(1000), &targets([5, 1, 1], 1)));
    assert!(member.epoch.next_request(at(1000), &mut member.counted).is_some());
    assert_eq!(member.epoch.requests[0].due(), Some(at(1300)));
}

#[test]
fn of_the_order_only_what_is_within_the_views_end_counts() {
    let mut member = Member::new(2, &Stack { order: Ordering::Total, ..Stack::default() });
    let record = Flags(ALONE.0 | Flags::ORDER);
    [1, 2].into_iter().for_each(|number| member.hear(1, number));
    // The second of the coordinator's is missing, and others may lack the third.
    [1, 3].into_iter().for_each(|number| member.hear_payload(0, number, record, &[0, 1, 0, 1]));
    member.epoch.freeze();
    assert!(member.epoch.fetch(at(10), &targets([3, 3, 1], 0)));
    member.hear(0, 2);
    assert_eq!(member.epoch.windows[0].contiguous(), 4);
    assert_eq!(member.delivered(), [(1, 1), (0, 2)]);
    let mut rest = Delivery::default();
    member.epoch.finish(&mut member.counted, &mut rest);
    assert_eq!(rest.units.len(), 1, "it has no place in the order, and comes last");
}

#[test]
fn what_all_have_is_forgotten_once_its_place_in_the_order_has_come() {
    let mut member = Member::new(2, &Stack { order: Ordering::Total, ..Stack::default() });
    [0, 1].into_iter().for_each(|from| member.digest_of(from, None, &[(1, 2)]));
    member.hear(1, 1);
    member.hear_payload(0, 1, Flags(ALONE.0 | Flags::ORDER), &[0, 1, 0, 1]);
    assert_eq!(member.epoch.numbers(1), (1, 2));
    assert_eq!(member.delivered(), [(1, 1)]);
    assert_eq!(member.epoch.numbers(1), (2, 2));
}

#[test]
fn whoever_asks_any_member_asks_the_sender_after_one_request_in_vain() {
    let mut member = Member::new(2, &Stack { repairs: Repairs::Anyone, ..Stack::default() });
    [1, 2, 4].into_iter().for_each(|number| member.hear(1, number));
    let sender = member.epoch.view().members[1].1;
    let asked = |member: &mut Member| {
        let due = member.epoch.requests[1].due().unwrap();
        member.epoch.next_request(due, &mut member.counted).unwrap().0
    };
    asked(&mut member);
    asked(&mut member);
    assert!((0..20).all(|_| asked(&mut member) == sender));
}

#[test]
fn who_holds_something_says_what_it_has_when_it_is_time_also_between_signs_of_life() {
    let stack = Stack { heartbeat: Duration::from_secs(60), ..Stack::default() };
    let mut member = Member::new(2, &stack);
    member.hear(0, 1);
    assert_eq!(member.epoch.deadline(at(10), &member.outgoing), Some(at(stack.stable_every.as_millis())));
}

#[test]
fn an_announcement_that_asks_names_each_sender_once() {
    let mut member = Member::new(1, &Stack::default());
    member.hear(0, 1);
    member.give(1);
    assert_eq!(member.send(0), "D");
    let mut digests = Vec::new();
    for now in 0..100 {
        let packet = member.epoch.next(at(now), &mut member.outgoing, &mut member.counted);
        let Some(packet) = packet else { continue };
        match Packet::parse(&packet.bytes).unwrap() {
            Packet::Digest { asks, entries, .. } => digests.push((asks, entries)),
            other => panic!("{other:?}"),
        }
    }
    let all = vec![(0, 2), (1, 2)];
    assert_eq!(digests, [(false, vec![(1, 2)]), (false, vec![(1, 2)]), (true, all)]);
}
