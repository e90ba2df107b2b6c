use hopcast_core::Duration;

use super::*;
use crate::Refusal;
use crate::meadcast::wire::MAX_HOPS;

const NOW: Instant = Instant::ZERO;

/// Whether the router sends nothing for a packet, and counts it for this reason alone.
fn refuses(router: &mut Router, now: Instant, packet: Buffer, reason: Refusal) -> bool {
    let before = (router.refused(reason), router.counters.refusals.total());
    let none = answers(router, now, packet) == (vec![], vec![]);
    none && (router.refused(reason), router.counters.refusals.total()) == (before.0 + 1, before.1 + 1)
}

#[test]
fn what_is_at_the_end_of_its_hops_is_dropped() {
    let mut router = router(Config::default(), "fd14::5:1");
    let addresses = list(&["fd14::5:1", "fd14::2", "fd14::3"]);
    let full = |hops: u8, hop_limit: u8| {
        let mut packet = data(&addresses, &[0], None);
        packet[45] = hops;
        packet[7] = hop_limit;
        packet
    };
    assert!(refuses(&mut router, NOW, full(MAX_HOPS, 64), Refusal::Hops));
    assert!(refuses(&mut router, NOW, request("fd14::2", MAX_HOPS, 64), Refusal::Hops));
    assert!(refuses(&mut router, NOW, full(0, 1), Refusal::HopLimit));
    assert!(refuses(&mut router, NOW, request("fd14::2", 0, 1), Refusal::HopLimit));
    assert_eq!(answers(&mut router, NOW, full(MAX_HOPS - 1, 2)).0.len(), 2);
    let (back, own) = answers(&mut router, NOW, request("fd14::2", MAX_HOPS - 1, 2));
    assert_eq!(Packet::parse(&own[0]).unwrap().hops, MAX_HOPS);
    assert!(refuses(&mut router, NOW, back[0].clone(), Refusal::Hops));
}

#[test]
fn what_is_malformed_is_dropped_by_its_reason_and_what_is_not_meadcasts_passes() {
    let mut router = router(Config::default(), "fd14::5:1");
    let addresses = list(&["fd14::5:1", "fd14::2", "fd14::3"]);
    for (place, to, reason) in [
        (44, 0, Refusal::EmptyList),
        (48, 0, Refusal::Delivered),
        (51, 1, Refusal::PastList),
        (40, 43, Refusal::NestedRouting),
        (72, 0xff, Refusal::Listed),
    ] {
        let mut packet = data(&addresses, &[0], None);
        packet[place] = to;
        assert!(refuses(&mut router, NOW, packet, reason), "{reason}");
    }
    for (place, to) in [(6, 60), (42, 254)] {
        let mut packet = data(&addresses, &[0], None);
        packet[place] = to;
        assert_eq!(answers(&mut router, NOW, packet.clone()), (vec![packet], vec![]));
    }
    assert_eq!(counter(&router, "meadcast_passed"), 2);
    router.handle(NOW, Port::Below(0), Item::Credit(1));
    router.handle(NOW, Port::Above(0), Item::Packet(Buffer::copy_from(b"x")));
    assert_eq!(counter(&router, "meadcast_wrong_items"), 2);
}

#[test]
fn requests_about_the_router_itself_pass_and_those_in_its_name_do_not() {
    let mut own = router(Config::default(), "fd14::2");
    let about = request("fd14::2", 0, 64);
    assert_eq!(answers(&mut own, NOW, about.clone()), (vec![about], vec![]));
    let mut named = router(Config::default(), "fd14::1");
    assert!(refuses(&mut named, NOW, request("fd14::2", 0, 64), Refusal::Source));
}

#[test]
fn the_rate_of_copies_is_bounded_whatever_arrives() {
    let config = Config { copies_per_second: 1000, ..Config::default() };
    let mut router = router(config, "fd14::5:1");
    let addresses: Vec<[u8; 16]> =
        (0..32_u16).map(|number| at(&format!("fd14::5:{:x}", number + 1)).octets()).collect();
    let mut sent = 0;
    // 10,000 packets a second, each of which would become 31.
    for micros in (0..2_000_000).step_by(100) {
        let now = NOW + Duration::from_micros(micros);
        sent += answers(&mut router, now, data(&addresses, &[0], None)).0.len();
    }
    assert!((2000..2000 + 100 + 31).contains(&sent), "{sent}");
    assert!(router.refused(Refusal::Rate) > 19_000);
}

#[test]
fn the_rate_of_responses_is_bounded_and_requests_go_on() {
    let config = Config { responses_per_second: 100, ..Config::default() };
    let mut router = router(config, "fd14::5:1");
    let (mut responses, mut forwarded) = (0, 0);
    for millis in 0..1000 {
        let now = NOW + Duration::from_millis(millis);
        let (back, own) = answers(&mut router, now, request("fd14::2", 0, 64));
        responses += own.len();
        forwarded += back.len();
    }
    assert!((100..=110).contains(&responses), "{responses}");
    assert_eq!(forwarded, 1000);
    assert_eq!(router.refused(Refusal::Rate), 1000 - responses as u64);
}
