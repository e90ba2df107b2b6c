//! Packets that no member sent: what they cost is bounded, and the others are served.

use super::views::quick;
use super::*;
use crate::nakack::wire::{Between, Control, Flags, Packet, Sent, Together, ViewId};
use crate::testing::contents;

/// Three members, and a file from the first.
fn busy(seed: u64) -> (Net, Vec<u8>) {
    let mut net = network(seed, &quick(), &[lossy(0.05); 3]);
    let sent = contents(500_000, 1);
    run_for(&mut net, Duration::from_millis(10));
    give_message(&mut net, 0, &sent);
    run_for(&mut net, Duration::from_millis(200));
    (net, sent)
}

fn sent_by(net: &Net, rank: u16, transmission: u32) -> Sent {
    Sent { tag: net.members[0].session.view().id.tag(), rank, transmission }
}

/// Both receivers get the file by a time, in seconds, and the view stays.
fn arrives(net: &mut Net, sent: &[u8], seconds: u64) {
    assert!(
        net.run(Duration::from_secs(seconds), |net| (1..3).all(|member| messages(net, member).len() == 1))
    );
    assert!((1..3).all(|member| messages(net, member)[0] == sent));
    assert_eq!(net.members[0].session.view().members.len(), 3);
}

#[test]
fn a_storm_of_requests_costs_the_sender_no_more_than_its_rate_and_the_receivers_a_part_of_it() {
    let (mut net, sent) = busy(1);
    for _ in 0..1000 {
        let request = Packet::Request {
            from: sent_by(&net, 1, net.counter(0, "data_packets_sent") as u32),
            origin: 0,
            first: 1,
            runs: vec![(0, 1 << 31); 100],
        };
        net.forge(0, 1, &request.emit());
        run_for(&mut net, Duration::from_millis(2));
    }
    // 4 Mbit/s; 500 kB take a second alone.
    assert!(net.members[0].sent <= 4_000_000 / 8 * 3, "{}", net.members[0].sent);
    arrives(&mut net, &sent, 10);
}

#[test]
fn numbers_that_do_not_exist_are_asked_for_ever_less_often_and_take_no_memory() {
    let (mut net, sent) = busy(2);
    let before = net.members[1].packets;
    let last = net.counter(0, "data_packets_sent") as u32;
    let digest = |entries| Packet::Digest {
        from: sent_by(&net, 0, last),
        asks: false,
        is_idle: true,
        stable: Some(1 << 30),
        entries,
    };
    let forged: Vec<_> = [vec![(0, 60_000)], vec![(0, u32::MAX)], vec![(2, 1 << 31), (999, 5)]]
        .map(|entries| digest(entries).emit())
        .into();
    forged.iter().for_each(|digest| net.forge(1, 0, digest));
    let far = Packet::Data {
        from: sent_by(&net, 0, u32::MAX),
        sequence: 1 << 31,
        flags: Flags(3),
        payload: &[0; 100],
    };
    net.forge(1, 0, &far.emit());
    arrives(&mut net, &sent, 10);
    run_for(&mut net, Duration::from_secs(20));
    assert!(net.members[1].packets - before < 400, "{}", net.members[1].packets - before);
    assert!(net.members[1].session.held() < 100_000);
}

#[test]
fn forged_views_and_members_that_do_not_exist_change_nothing() {
    let (mut net, sent) = busy(3);
    let nobody = |node: u32| (MemberId { node, run: 1 }, address(100 + node as usize));
    let id = ViewId { number: 50, leader: MemberId { node: 90, run: 1 } };
    let view = View { id, members: (90..120).map(nobody).collect() };
    let between = Between { from: MemberId { node: 90, run: 1 }, to: id_of(0), connection: 3 };
    let controls = [
        Control::Commit { view: view.clone(), together: Together::default() },
        Control::Join,
        Control::Ready(id),
        Control::Fetch { proposal: id, targets: vec![(0, id_of(0)); 3] },
        Control::Flushed { proposal: id, view: id, have: vec![0; 64] },
        Control::Refused { proposal: id, promised: u32::MAX },
        Control::Suspect { member: id_of(1), is_stalled: true },
        Control::Suspect { member: id_of(2), is_stalled: false },
        Control::Leave,
        Control::Prepare(ViewId { number: u32::MAX, ..id }),
        Control::Credit { tag: view.id.tag(), bytes: u64::MAX },
    ];
    for (number, control) in controls.into_iter().enumerate() {
        let packet = Packet::Unicast { between, number: number as u32, control };
        net.forge(0, 90, &packet.emit());
    }
    for _ in 0..20 {
        net.forge(0, 90, &Packet::Found(view.clone()).emit());
        net.forge(1, 0, &Packet::Found(view.clone()).emit());
        run_for(&mut net, Duration::from_millis(100));
    }
    arrives(&mut net, &sent, 10);
    assert_eq!(net.members[0].session.view().id.number, 1);
}

#[test]
fn many_that_want_to_talk_are_bounded() {
    let (mut net, sent) = busy(4);
    for node in 0..2000 {
        let between =
            Between { from: MemberId { node: 1000 + node, run: 1 }, to: id_of(0), connection: node };
        for (number, control) in [(0, Control::Join), (5, Control::AreYouAlive), (1 << 30, Control::Leave)] {
            net.forge(0, 100, &Packet::Unicast { between, number, control }.emit());
        }
        net.forge(0, 100, &Packet::Ack { between, number: 3 }.emit());
        net.forge(0, 100, &Packet::Discover(between.from).emit());
    }
    arrives(&mut net, &sent, 30);
}

#[test]
fn a_view_that_nobody_leads_is_given_up() {
    let mut net = network(5, &quick(), &[Link::default(); 3]);
    run_for(&mut net, Duration::from_millis(10));
    let leader = MemberId { node: 90, run: 1 };
    let between = |to| Between { from: leader, to, connection: 3 };
    for member in 0..3 {
        let prepare = Control::Prepare(ViewId { number: 7, leader });
        net.forge(
            member,
            90,
            &Packet::Unicast { between: between(id_of(member)), number: 0, control: prepare }.emit(),
        );
    }
    give_datagram(&mut net, 0, b"after it");
    assert!(net.run(Duration::from_secs(120), |net| (1..3).all(|member| datagrams(net, member).len() == 1)));
}

fn id_of(member: usize) -> MemberId {
    id(member)
}
