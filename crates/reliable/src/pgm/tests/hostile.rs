//! Forged packets, storms of requests, and numbers at the end of their range.

use hopcast_core::{Duration, Seed};

use super::net::{Link, Net, address, contents, group, tsi};
use super::transfers::{datagrams, file, files, lossy, source, without_parity};
use crate::pgm::wire::{AsOf, Body, Data, Member, Nak, Options, Packet, Parity, Spm};
use crate::pgm::{ReceiverConfig, SourceConfig};

/// A packet of the source, which is member 0.
fn forged(body: Body, options: Options) -> Vec<u8> {
    let packet = Packet { options, ..Packet::new(tsi(0, 1), 7500, body) };
    packet.emit().to_vec()
}

fn spm(sequence: u32, trail: u32, lead: u32) -> Vec<u8> {
    let path = address(0).ip();
    let member = Some(Member { is_framed: true, repairs_first: true });
    let parity = Some(Parity { proactive: true, on_demand: true, group: 64 });
    forged(Body::Spm(Spm { sequence, trail, lead, path }), Options { member, parity, ..Options::default() })
}

fn nak(sequence: u32) -> Nak {
    Nak { sequence, source: address(0).ip(), group: group().ip() }
}

#[test]
fn sequence_numbers_wrap_within_a_file() {
    for config in [source(), without_parity()] {
        for first in [u32::MAX - 70, u32::MAX, 0] {
            let config = SourceConfig { first: Some(first), ..config.clone() };
            let links = [Link::default(), lossy(0.2), lossy(0.2)];
            let mut net = Net::star(1, config, &ReceiverConfig::default(), &links);
            let sent = contents(300_000, 1);
            file(&mut net, 0, &sent);
            let all = |net: &Net| (1..=2).all(|member| files(net, member) == [sent.clone()]);
            assert!(net.run(Duration::from_secs(30), all), "{first}");
        }
    }
}

#[test]
fn a_storm_of_requests_costs_confirmations_and_each_repair_once() {
    let mut net = Net::star(2, without_parity(), &ReceiverConfig::default(), &[Link::default(); 2]);
    net.members[0].session =
        net.session(0, Some(SourceConfig { first: Some(0), ..without_parity() }), None, 1);
    let sent = contents(30_000, 2);
    file(&mut net, 0, &sent);
    net.run(Duration::from_secs(1), |net| files(net, 1) == [sent.clone()]);
    let before = net.members[0].sent;
    let as_of = Some(AsOf { lead: 21, spm: 0 });
    for number in 0..10_000_u32 {
        let list = (0..62).collect();
        let options = Options { nak_list: list, as_of, ..Options::default() };
        net.forge(0, 1, &forged(Body::Nak(nak(number % 22)), options));
    }
    net.run(Duration::from_secs(3), |_| false);
    // Twenty packets again, and no more than its rate.
    assert!(net.counter(0, "repair_packets_sent") <= 2 * 22, "{}", net.counter(0, "repair_packets_sent"));
    assert!(net.members[0].sent - before <= 2_000_000, "{}", net.members[0].sent - before);
    let confirmed = net.counter(0, "ncfs_sent");
    assert!(confirmed < 2_000, "{confirmed}");
}

#[test]
fn a_forged_confirmation_delays_a_repair_and_does_not_prevent_it() {
    let mut net = Net::star(3, source(), &ReceiverConfig::default(), &[Link::default(), lossy(0.3)]);
    let sent = contents(500_000, 3);
    file(&mut net, 0, &sent);
    for step in 0..200_u32 {
        let at = Duration::from_millis(5 * u64::from(step));
        net.run(at, |_| false);
        for is_parity in [false, true] {
            let mut packet = Packet::new(tsi(0, 1), 7500, Body::Confirmation(nak(step * 64 + 63)));
            packet.is_parity = is_parity;
            net.forge(1, 0, &packet.emit());
        }
    }
    assert!(net.run(Duration::from_secs(30), |net| files(net, 1) == [sent.clone()]));
}

#[test]
fn a_forged_spm_far_ahead_costs_what_was_missing_and_the_session_goes_on() {
    for (trail, lead) in [(1 << 30, 1 << 30), (0, 1 << 30), (1 << 30, 0), (u32::MAX, u32::MAX - 1)] {
        let config = SourceConfig { first: Some(0), ..source() };
        let mut net = Net::star(4, config, &ReceiverConfig::default(), &[Link::default(), lossy(0.1)]);
        for number in 0..20 {
            net.datagram(0, &contents(300, number));
        }
        net.run(Duration::from_secs(1), |_| false);
        net.forge(1, 0, &spm(5_000, trail, lead));
        net.run(Duration::from_secs(2), |_| false);
        // SPMs of the source are older than the lie, until it has sent as many; those of a restart are not.
        net.forge(1, 0, &spm(1, 0, 19));
        let last = contents(300, 99);
        let until = |net: &Net| datagrams(net, 1).contains(&last);
        let mut came = false;
        for second in 3..60 {
            net.datagram(0, &last);
            came |= net.run(Duration::from_secs(second), until);
        }
        assert!(came, "{trail} {lead}");
        assert!(net.members[1].session.held() < 1 << 20);
        assert!(net.counter(1, "nacks_sent") < 20_000, "{}", net.counter(1, "nacks_sent"));
    }
}

#[test]
fn forged_data_far_ahead_and_of_many_sessions_is_bounded() {
    let receiver = ReceiverConfig { window: 100_000, ..ReceiverConfig::default() };
    let mut net = Net::star(5, source(), &receiver, &[Link::default(), Link::default()]);
    let mut random = Seed::new(5, 0).stream(&["forged"], 0);
    for number in 0..5_000_u32 {
        let sequence = random.bits() as u32;
        let body = Body::Original(Data { sequence, trail: random.bits() as u32 });
        let payload = [7; 1000];
        let session = tsi((number % 200) as usize, 1);
        let packet = Packet { payload: &payload, ..Packet::new(session, 7500, body) };
        net.forge(1, 0, &packet.emit());
        if number % 7 == 0 {
            net.forge(1, 0, &spm(number, sequence, sequence.wrapping_add(random.bits() as u32)));
        }
    }
    assert!(net.members[1].session.held() < 16 * 300_000, "{}", net.members[1].session.held());
    net.run(Duration::from_secs(5), |_| false);
}

#[test]
fn a_receiver_gives_up_what_nobody_confirms_and_says_so() {
    let receiver = ReceiverConfig { retries: 3, ..ReceiverConfig::default() };
    let mut net = Net::star(6, without_parity(), &receiver, &[Link::default(), Link::default()]);
    net.members[0].is_cut = true;
    net.forge(1, 0, &spm(1, 100, 99));
    let body = |sequence| Body::Original(Data { sequence, trail: 100 });
    for sequence in [100, 102] {
        let packet = Packet { payload: b"\0abc", ..Packet::new(tsi(0, 1), 7500, body(sequence)) };
        net.forge(1, 0, &packet.emit());
    }
    net.forge(1, 0, &spm(2, 100, 102));
    net.run(Duration::from_secs(60), |_| false);
    assert_eq!(datagrams(&net, 1), [b"abc", b"abc"]);
    assert_eq!((net.counter(1, "objects_given_up"), net.counter(1, "nacks_unconfirmed")), (1, 1));
}

/// Packets of all types with numbers near what is being sent, as whoever hears it could forge them.
#[test]
fn whatever_is_forged_a_member_sends_no_more_than_its_rate_and_goes_on() {
    for seed in 0..20 {
        let config = SourceConfig { first: Some(0), window: 60_000, ..source() };
        let mut net = Net::new(seed);
        net.add(Some(config), Some(ReceiverConfig::default()), Link::default(), 1);
        net.add(None, Some(ReceiverConfig::default()), lossy(0.1), 1);
        let mut random = Seed::new(seed, 0).stream(&["forged"], 0);
        file(&mut net, 0, &contents(200_000, seed));
        for step in 0..400_u64 {
            let near = |random: &mut hopcast_core::Stream| (random.below(400) as u32).wrapping_sub(100);
            let (a, b, c) = (near(&mut random), near(&mut random), near(&mut random));
            let data = Data { sequence: a, trail: b };
            let body = match random.below(7) {
                0 => Body::Spm(Spm { sequence: c, trail: a, lead: b, path: address(0).ip() }),
                1 => Body::Original(data),
                2 => Body::Repair(data),
                3 => Body::Nak(nak(a)),
                4 => Body::Confirmation(nak(a)),
                5 => Body::Ack(crate::pgm::wire::Ack { highest: a, bitmap: b }),
                _ => Body::SpmRequest,
            };
            let mut packet = Packet::new(tsi(0, 1), 7500, body);
            packet.is_parity = random.chance(0.5);
            packet.is_variable = random.chance(0.3);
            packet.options.parity_group = random.chance(0.2).then_some(c);
            packet.options.group_size = random.chance(0.2).then_some(1 + c % 70);
            packet.options.nak_list = (0..random.below(63)).map(|_| near(&mut random)).collect();
            packet.options.as_of = random.chance(0.3).then_some(AsOf { lead: b, spm: c });
            packet.options.member =
                random.chance(0.5).then_some(Member { is_framed: true, repairs_first: true });
            packet.options.parity =
                random.chance(0.5).then_some(Parity { proactive: false, on_demand: true, group: 64 });
            let payload = vec![1; random.below(1400) as usize];
            packet.payload = if matches!(body, Body::Original(_) | Body::Repair(_)) { &payload } else { &[] };
            let bytes = packet.emit();
            net.forge(0, 1, &bytes);
            net.forge(1, 0, &bytes);
            net.run(Duration::from_millis(5 * step), |_| false);
        }
        net.run(Duration::from_secs(20), |_| false);
        // 8 Mbit/s for as long, and what confirmations may take ahead.
        assert!(net.members[0].sent <= 20_000_000 + 200_000, "{}", net.members[0].sent);
        assert!(net.members[1].session.held() < 1 << 20);
        assert!(net.counter(1, "nacks_sent") < 20_000, "{}", net.counter(1, "nacks_sent"));
    }
}
