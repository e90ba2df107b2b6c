//! Two parts of a network that meet after a long time.

use hopcast_core::{Duration, Instant};

use super::*;
use crate::testing::contents;

/// Members of each part.
const HALF: usize = 100;
/// Bytes of a message, of the first meetings, and of the headers of a packet.
const LEN: usize = 10_000;
const ON_LINK: u64 = 85;

/// How the parts meet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meet {
    /// All hear all, and share one rate.
    Segment,
    /// One member hears both parts, and both hear it.
    Bridge,
}

/// Time from when the parts meet until all have all, and the time that the bottleneck needs for what crosses it. Two
/// members of each part have published; one of them goes before, and one member of each part begins again.
fn meet(how: Meet, messages: (u64, usize), loss: f64) -> (Duration, Duration) {
    let (took, bottleneck, _) = meet_and_count(how, messages, loss);
    (took, bottleneck)
}

/// As [`meet`], and the packets that the member sends by which the parts meet.
fn meet_and_count(how: Meet, (messages, len): (u64, usize), loss: f64) -> (Duration, Duration, u64) {
    let policy = policy();
    let mut net = Network::new(1);
    let bridge = 2 * HALF;
    let of = |member: usize| Config {
        has_store: member % HALF == 7,
        ..config(member, Some(everything()), &policy)
    };
    for member in 0..=bridge {
        join(&mut net, of(member), link(loss));
        net.members[member].part = (member / HALF) as u8;
    }
    if how == Meet::Segment {
        net.shared = Some(MBIT);
        net.members.iter_mut().for_each(|member| member.link.queue = Duration::from_secs(2));
        net.members[bridge].is_cut = true;
    }
    for at in 0..messages {
        for part in 0..2 {
            publish(&mut net, part * HALF + (at % 2) as usize, &contents(len, at * 2 + part as u64));
        }
    }
    let have = |net: &Network, count: u64| {
        let own = |member: usize| if member % HALF < 2 { messages / 2 } else { 0 };
        let has = |member: usize| net.members[member].up.len() as u64 + own(member) >= count;
        (0..2 * HALF).all(|member| net.members[member].is_cut || has(member))
    };
    assert!(net.run(Duration::from_secs(100), |net| have(net, messages)), "each part has its own");
    // The intervals of summaries are at their longest.
    let until = net.now.since(Instant::ZERO) + Duration::from_secs(120);
    net.run(until, |_| false);
    net.members[0].is_cut = true;
    [7, HALF + 7].into_iter().for_each(|member| restart(&mut net, member, of(member)));
    net.members.iter_mut().for_each(|member| member.part = 0);
    if how == Meet::Bridge {
        for (here, there) in (0..HALF).flat_map(|here| (HALF..bridge).map(move |there| (here, there))) {
            net.unheard.extend([(here, there), (there, here)]);
        }
    }
    let (met, before) = (net.now, net.members[bridge].packets);
    let until = met.since(Instant::ZERO) + Duration::from_secs(200);
    assert!(net.run(until, |net| have(net, 2 * messages)), "{how:?}: all have all");
    let bytes = 2 * messages * (len as u64 + ON_LINK * (len as u64).div_ceil(1400));
    (net.now.since(met), MBIT.time_for(bytes), net.members[bridge].packets - before)
}

#[test]
fn parts_that_meet_by_one_member_have_all_in_little_more_than_the_time_that_it_needs() {
    for messages in [4, 20] {
        let (took, bottleneck) = meet(Meet::Bridge, (messages, LEN), 0.0);
        // Until the first summary of the other part they do not know of each other.
        let discovery = policy().summaries.1;
        assert!(took < (bottleneck + discovery).mul_f64(1.5), "{messages}: {took}, at least {bottleneck}");
    }
}

/// A share of what is sent is sent twice there, since a request is not heard before what waits for the segment.
#[test]
fn parts_that_meet_on_one_segment_have_all_without_a_storm_of_requests() {
    let (took, bottleneck) = meet(Meet::Segment, (20, LEN), 0.0);
    assert!(took < (bottleneck + policy().summaries.1).mul_f64(1.5), "{took}, at least {bottleneck}");
}

/// Each member loses others of what the bridge brings: they have them of each other, and the bridge sends little twice.
#[test]
fn what_one_of_many_has_lost_another_brings_beside_the_one_that_has_the_next() {
    let (took, bottleneck, sent) = meet_and_count(Meet::Bridge, (500, 1000), 0.01);
    // Of 100 members somebody has lost two of three: sent again by the bridge alone, these would be 1630.
    assert!(sent < 1250, "{sent} packets in {took}, at least {bottleneck}");
    // The bridge was silent since others of each half had said the same, whom the other half does not hear: what it got
    // last was asked for of those that lack it too, for 16 s.
    assert!(took < bottleneck.mul_f64(1.5), "{sent} packets in {took}, at least {bottleneck}");
}
