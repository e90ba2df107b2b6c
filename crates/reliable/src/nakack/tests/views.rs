//! Views: who comes, goes, dies, and finds the others again.

use super::*;
use crate::nakack::wire::{Control, MAX_MEMBERS};
use crate::testing::contents;

/// Timers that make a test of minutes one of seconds.
pub(super) fn quick() -> Stack {
    let millis = Duration::from_millis;
    Stack {
        heartbeat: millis(200),
        suspect_after: millis(2000),
        verify: millis(300),
        stalled_after: millis(5000),
        merge_every: millis(1000),
        discovery: millis(300),
        stable_every: millis(1000),
        ..stack()
    }
}

fn view(net: &Net, member: usize) -> Vec<u32> {
    net.members[member].session.view().members.iter().map(|&(member, _)| member.node).collect()
}

/// Whether these members have one view, of just them.
pub(super) fn agree(net: &Net, members: &[usize]) -> bool {
    let first = net.members[members[0]].session.view();
    let has = |member: &usize| net.members[*member].session.view() == first && first.has(id(*member));
    first.members.len() == members.len() && members.iter().all(has)
}

fn until(net: &mut Net, seconds: u64, done: impl FnMut(&Net) -> bool) -> bool {
    let until = net.now.since(Instant::ZERO) + Duration::from_secs(seconds);
    net.run(until, done)
}

#[test]
fn members_find_each_other_and_the_first_data_wait_for_them() {
    let mut net = Net::new(1);
    for _ in 0..4 {
        let member = add(&mut net, Start::Discovered, &quick(), lossy(0.1));
        give_datagram(&mut net, member, &[member as u8]);
        run_for(&mut net, Duration::from_secs(2));
    }
    assert!(until(&mut net, 20, |net| agree(net, &[0, 1, 2, 3])), "{:?}", view(&net, 0));
    give_datagram(&mut net, 3, b"all");
    assert!(until(&mut net, 5, |net| (0..3)
        .all(|member| datagrams(net, member).iter().any(|(_, bytes)| bytes == b"all"))));
}

#[test]
fn members_that_begin_at_one_time_become_one_view() {
    let mut net = Net::new(2);
    for _ in 0..5 {
        add(&mut net, Start::Discovered, &quick(), lossy(0.05));
    }
    assert!(until(&mut net, 30, |net| agree(net, &[0, 1, 2, 3, 4])), "{:?}", view(&net, 0));
}

#[test]
fn one_that_leaves_is_missed_by_nobody_and_what_it_sent_arrives() {
    for leaver in 0..3 {
        let mut net = network(3, &quick(), &[lossy(0.2); 3]);
        run_for(&mut net, Duration::from_millis(10));
        let sent = contents(20_000, 1);
        give_message(&mut net, leaver, &sent);
        run_for(&mut net, Duration::from_millis(100));
        let now = net.now;
        net.members[leaver].session.leave(now);
        let others: Vec<usize> = (0..3).filter(|&member| member != leaver).collect();
        assert!(until(&mut net, 20, |net| agree(net, &others) && net.members[leaver].session.has_left()));
        assert!(others.iter().all(|&other| messages(&net, other) == [sent.clone()]), "{leaver}");
        assert_eq!(net.counter(others[0], "members_expelled"), 0);
    }
}

#[test]
fn a_dead_member_is_expelled_and_the_sender_goes_on() {
    for dead in 0..3 {
        let mut net = network(4, &quick(), &[lossy(0.1); 4]);
        run_for(&mut net, Duration::from_millis(10));
        net.members[dead].is_cut = true;
        let others: Vec<usize> = (0..4).filter(|&member| member != dead).collect();
        let sent = contents(3_000_000, 1);
        give_message(&mut net, others[0], &sent);
        assert!(until(&mut net, 20, |net| agree(net, &others)), "{dead}: {:?}", view(&net, others[0]));
        assert!(until(&mut net, 60, |net| others[1..].iter().all(|&other| messages(net, other).len() == 1)));
        assert_eq!(messages(&net, others[1]), [sent]);
    }
}

#[test]
fn the_parts_of_a_partition_go_on_and_merge() {
    let mut net = network(5, &quick(), &[lossy(0.05); 5]);
    run_for(&mut net, Duration::from_millis(10));
    net.members[3].part = 1;
    net.members[4].part = 1;
    assert!(until(&mut net, 20, |net| agree(net, &[0, 1, 2]) && agree(net, &[3, 4])));
    give_datagram(&mut net, 3, b"in one part");
    run_for(&mut net, Duration::from_secs(1));
    assert_eq!(datagrams(&net, 4).len(), 1);
    net.members.iter_mut().for_each(|member| member.part = 0);
    assert!(
        until(&mut net, 20, |net| agree(net, &[0, 1, 2, 3, 4])),
        "{:?} {:?}",
        view(&net, 0),
        view(&net, 3)
    );
    assert!((0..5).any(|member| net.counter(member, "views_merged") > 0), "by whoever led it");
    give_datagram(&mut net, 4, b"in both");
    run_for(&mut net, Duration::from_secs(1));
    assert!(
        (0..4).all(|member| datagrams(&net, member).last().is_some_and(|(_, bytes)| bytes == b"in both"))
    );
    assert_eq!(datagrams(&net, 0).len(), 1, "what was sent in another part is that part's");
}

#[test]
fn a_silent_member_that_answers_stays() {
    let mut net = network(6, &quick(), &[Link::default(); 3]);
    run_for(&mut net, Duration::from_millis(10));
    // The coordinator is told that a member is dead that is not.
    let mut actions = net.counter(0, "members_suspected");
    let forged = crate::nakack::wire::Packet::Unicast {
        between: crate::nakack::wire::Between { from: id(1), to: id(0), connection: 77 },
        number: 0,
        control: Control::Suspect { member: id(2), is_stalled: false },
    };
    net.forge(0, 1, &forged.emit());
    let stalled = crate::nakack::wire::Packet::Unicast {
        between: crate::nakack::wire::Between { from: id(1), to: id(0), connection: 77 },
        number: 1,
        control: Control::Suspect { member: id(2), is_stalled: true },
    };
    net.forge(0, 1, &stalled.emit());
    run_for(&mut net, Duration::from_secs(10));
    actions = net.counter(0, "members_suspected") - actions;
    assert!(agree(&net, &[0, 1, 2]) && actions == 0, "{:?}", view(&net, 0));
}

/// Found in the study `multicast-baseline` at 128 kbit/s and a loss of 30 %: a receiver was expelled since its digests,
/// one in 20 s, were lost three times in a row.
#[test]
fn a_receiver_whose_digests_are_lost_by_chance_stays() {
    for seed in 0..20 {
        let rate = Rate::from_bits_per_sec(128_000);
        let stack = Stack {
            rate,
            stable_every: Duration::from_millis(1700),
            suspect_after: Duration::from_secs(60),
            stalled_after: Duration::from_secs(10),
            ..quick()
        };
        let link = Link { rate, ..lossy(0.4) };
        let mut net = network(seed, &stack, &[link; 2]);
        give_message(&mut net, 0, &contents(150_000, 1));
        let arrives = until(&mut net, 60, |net| messages(net, 1).len() == 1);
        let states = || (0..2).map(|member| net.members[member].session.state()).collect::<Vec<_>>();
        assert!(arrives, "{seed}: {}", states().join("\n"));
        assert_eq!(net.members[0].session.view().id.number, 1, "{seed}");
    }
}

#[test]
fn a_member_that_never_acknowledges_is_expelled_and_the_others_go_on() {
    let mut net = network(7, &quick(), &[lossy(0.05); 4]);
    run_for(&mut net, Duration::from_millis(10));
    // It hears nothing, and is heard.
    net.members[3].link.loss = 1.0;
    let sent = contents(6_000_000, 1);
    give_message(&mut net, 0, &sent);
    assert!(until(&mut net, 60, |net| (1..3).all(|member| messages(net, member).len() == 1)));
    assert!(agree(&net, &[0, 1, 2]), "{:?}", view(&net, 0));
}

#[test]
fn one_more_than_a_view_may_have_is_refused_until_another_leaves() {
    let mut net = network(8, &quick(), &[Link::default(); MAX_MEMBERS + 1]);
    let last = MAX_MEMBERS;
    // It waits, and what it is given waits with it.
    give_datagram(&mut net, last, b"patient");
    run_for(&mut net, Duration::from_secs(3));
    assert_eq!(view(&net, 0).len(), MAX_MEMBERS);
    assert_eq!(view(&net, last).len(), 1);
    assert!(net.counter(last, "joins_refused") > 0);
    let now = net.now;
    net.members[5].session.leave(now);
    assert!(until(&mut net, 20, |net| view(net, last).len() == MAX_MEMBERS), "{:?}", view(&net, 0));
    let before = net.counter(last, "joins_refused");
    run_for(&mut net, Duration::from_secs(2));
    assert_eq!(net.counter(last, "joins_refused"), before, "it is in");
    assert_eq!(datagrams(&net, 1), [(address(last), b"patient".to_vec())]);
}

#[test]
fn of_several_that_ask_at_one_time_no_more_are_let_in_than_there_is_room_for() {
    let told = MAX_MEMBERS - 1;
    let mut net = Net::new(12);
    let members: Vec<_> = (0..told).map(|member| (id(member), address(member))).collect();
    for _ in 0..told {
        add(&mut net, Start::Told(members.clone()), &quick(), Link::default());
    }
    let asks: Vec<usize> =
        (0..3).map(|_| add(&mut net, Start::Discovered, &quick(), Link::default())).collect();
    for _ in 0..10 {
        run_for(&mut net, Duration::from_secs(1));
        let in_view = net.members[0].session.view();
        assert!(in_view.members.len() <= MAX_MEMBERS);
    }
    assert_eq!(asks.iter().filter(|&&member| net.members[0].session.view().has(id(member))).count(), 1);
    assert!(net.counter(0, "joins_refused") >= 2, "at the coordinator, which had room for one");
    assert_eq!(net.counter(0, "views_installed"), 1, "a change for those that there is no room for is none");
}

#[test]
fn two_views_that_are_too_large_together_stay_two_and_work_until_enough_have_left() {
    let half = 36;
    let mut net = Net::new(10);
    for side in [0..half, half..2 * half] {
        let told: Vec<_> = side.clone().map(|member| (id(member), address(member))).collect();
        for _ in side {
            add(&mut net, Start::Told(told.clone()), &quick(), lossy(0.02));
        }
    }
    let sides: [Vec<usize>; 2] = [(0..half).collect(), (half..2 * half).collect()];
    assert!(2 * half > MAX_MEMBERS);
    run_for(&mut net, Duration::from_secs(10));
    give_datagram(&mut net, 1, b"here");
    give_datagram(&mut net, half + 1, b"there");
    run_for(&mut net, Duration::from_secs(2));
    for side in &sides {
        assert!(agree(&net, side), "{:?}", view(&net, side[0]));
        assert_eq!(net.members[side[0]].session.view().id.number, 1, "nothing has changed");
        assert!(side.iter().all(|&member| net.counter(member, "left_behind") == 0));
    }
    let refused = |net: &Net| net.counter(0, "joins_refused") + net.counter(half, "joins_refused");
    assert!(refused(&net) > 0);
    let heard =
        |member: usize| datagrams(&net, member).into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>();
    assert_eq!((heard(2), heard(half + 2)), (vec![b"here".to_vec()], vec![b"there".to_vec()]));
    let leavers = 2 * half - MAX_MEMBERS;
    let now = net.now;
    (0..leavers).for_each(|leaver| net.members[half + 1 + leaver].session.leave(now));
    let stay: Vec<usize> = (0..2 * half).filter(|&at| at <= half || at > half + leavers).collect();
    assert_eq!(stay.len(), MAX_MEMBERS);
    assert!(until(&mut net, 60, |net| agree(net, &stay)), "{:?}", view(&net, 0));
    let before = refused(&net);
    run_for(&mut net, Duration::from_secs(5));
    assert_eq!(refused(&net), before, "there is room");
}

/// A member that was taken into another view, of which its leader learns nothing, as those two are too large together,
/// took a place in both for ever.
#[test]
fn of_three_views_two_that_fit_together_merge_and_the_third_stays_as_it_is() {
    let mut net = Net::new(11);
    let mut sides = Vec::new();
    for size in [MAX_MEMBERS - 4, 3, 6] {
        let first = net.members.len();
        let side: Vec<usize> = (first..first + size).collect();
        let told: Vec<_> = side.iter().map(|&member| (id(member), address(member))).collect();
        side.iter().for_each(|_| _ = add(&mut net, Start::Told(told.clone()), &quick(), lossy(0.02)));
        sides.push(side);
    }
    // The large one takes in the small one, or the other two are one.
    let merged = |net: &Net| {
        let [large, small, medium] = &sides[..] else { panic!() };
        (agree(net, &[&large[..], small].concat()) && agree(net, medium))
            || (agree(net, &[&small[..], medium].concat()) && agree(net, large))
    };
    run_for(&mut net, Duration::from_secs(40));
    for _ in 0..20 {
        assert!(merged(&net), "{:?}", view(&net, 0));
        run_for(&mut net, Duration::from_secs(1));
    }
}

#[test]
fn who_hears_that_the_others_have_gone_on_is_a_view_of_its_own_and_does_not_wait_until_they_are_silent() {
    // The coordinator does not hear the last for longer than it takes to be suspected.
    let stack = Stack { suspect_after: Duration::from_secs(20), ..quick() };
    let mut net = network(13, &stack, &[Link::default(); 4]);
    run_for(&mut net, Duration::from_millis(10));
    net.unheard.insert((3, 0));
    assert!(until(&mut net, 25, |net| agree(net, &[0, 1, 2])), "{:?}", view(&net, 0));
    assert!(until(&mut net, 35, |net| agree(net, &[3])), "{:?}", view(&net, 3));
    assert_eq!(net.counter(3, "left_behind"), 1);
    net.unheard.clear();
    assert!(until(&mut net, 60, |net| agree(net, &[0, 1, 2, 3])), "{:?}", view(&net, 0));
}

#[test]
fn a_member_that_has_another_view_is_asked_back_as_soon_as_its_coordinator_hears_of_that() {
    let stack = Stack { suspect_after: Duration::from_secs(20), ..quick() };
    let mut net = network(14, &stack, &[Link::default(); 4]);
    run_for(&mut net, Duration::from_millis(10));
    // The last hears nobody, takes one after the other for dead, and is heard all the time.
    net.unheard.extend([(0, 3), (1, 3), (2, 3)]);
    assert!(until(&mut net, 80, |net| agree(net, &[3])), "{:?}", view(&net, 3));
    assert_eq!(view(&net, 0), [1, 2, 3, 4]);
    net.unheard.clear();
    let soon = net.now.since(Instant::ZERO) + Duration::from_secs(10);
    assert!(net.run(soon, |net| agree(net, &[0, 1, 2, 3])), "{:?} {:?}", view(&net, 0), view(&net, 3));
}

#[test]
fn members_of_which_one_hears_the_other_and_not_the_reverse_are_one_view_again_after_it() {
    let unheard: [&[(usize, usize)]; 5] =
        [&[(0, 3)], &[(3, 0)], &[(1, 2)], &[(0, 3), (2, 1)], &[(1, 0), (0, 2)]];
    for (seed, pairs) in unheard.into_iter().enumerate() {
        let mut net = network(seed as u64, &quick(), &[lossy(0.05); 4]);
        run_for(&mut net, Duration::from_millis(10));
        net.unheard.extend(pairs);
        for number in 0..40 {
            give_datagram(&mut net, usize::from(number) % 4, &[number]);
            run_for(&mut net, Duration::from_millis(300));
        }
        net.unheard.clear();
        assert!(until(&mut net, 40, |net| agree(net, &[0, 1, 2, 3])), "{pairs:?}: {:?}", view(&net, 0));
        for number in 40..44 {
            give_datagram(&mut net, usize::from(number) % 4, &[number]);
        }
        run_for(&mut net, Duration::from_secs(3));
        for member in 0..4 {
            for sender in (0..4).filter(|&sender| sender != member) {
                let all = datagrams(&net, member).into_iter();
                let of = all.filter(|(from, _)| *from == address(sender)).map(|(_, bytes)| bytes[0]);
                let of: Vec<u8> = of.collect();
                assert!(of.is_sorted_by(|one, next| one < next), "{pairs:?}, {member} of {sender}: {of:?}");
                assert_eq!(of.last(), Some(&(40 + sender as u8)), "{pairs:?}, {member} of {sender}");
            }
        }
    }
}
