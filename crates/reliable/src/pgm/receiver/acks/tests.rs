//! Loss reports and acknowledgements of a receiver.

use std::net::{IpAddr, SocketAddr};

use hopcast_core::{Duration, Instant, Seed};

use super::super::{Receiver, Shared};
use super::{Acks, MAX_BACK_OFF};
use crate::pgm::ReceiverConfig;
use crate::pgm::wire::{Ack, CongestionData};

fn shared() -> Shared {
    let (name, group) = (IpAddr::from([10, 0, 0, 2]), SocketAddr::from(([224, 1, 2, 3], 3056)));
    Receiver::new(ReceiverConfig::default(), name, group, Seed::new(1, 0).stream(&["member"], 0)).shared
}

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// Says at a time that this receiver is the acker, by a clock of 700 ms; what it acknowledges at another.
fn acknowledged(acks: &mut Acks, heard: u64, now: u64) -> Option<(Ack, u32, u16)> {
    let shared = &mut shared();
    let data = CongestionData { timestamp: 700, acker: shared.name };
    acks.data(at(heard), &data, Duration::ZERO, shared);
    acks.due(at(now), shared).map(|(ack, feedback)| (ack, feedback.timestamp, feedback.loss))
}

#[test]
fn a_lost_packet_counts_500_of_65536_and_those_that_arrive_wear_it_away() {
    let mut acks = Acks::default();
    [10, 12].into_iter().for_each(|number| acks.heard(number));
    // 500, and of that again a packet's part less.
    let (ack, clock, loss) = acknowledged(&mut acks, 1_000, 1_000).unwrap();
    assert_eq!((ack, clock, loss), (Ack { highest: 12, bitmap: !0b10 }, 700, 496));
    (13..13 + 500).for_each(|number| acks.heard(number));
    let (_, clock, loss) = acknowledged(&mut acks, 2_000, 2_000).unwrap();
    assert!(clock == 700 && (5..15).contains(&loss), "{loss}");
    // A gap beyond the bitmap counts as 64, and one that comes late is acknowledged.
    acks.heard(5_000);
    let (ack, _, loss) = acknowledged(&mut acks, 3_000, 3_000).unwrap();
    assert!(ack.bitmap == 1 && (24_000..28_000).contains(&loss), "{ack:?} {loss}");
    acks.heard(4_998);
    assert_eq!(acknowledged(&mut acks, 4_000, 4_000).unwrap().0, Ack { highest: 5_000, bitmap: 0b101 });
}

#[test]
fn the_acker_acknowledges_at_once_and_an_election_within_its_back_off_unless_another_wins() {
    let shared = &mut shared();
    let mut acks = Acks::default();
    acks.heard(10);
    let nobody = CongestionData { timestamp: 700, acker: IpAddr::from([0, 0, 0, 0]) };
    acks.data(at(1_000), &nobody, Duration::from_millis(30), shared);
    let due = acks.deadline().unwrap();
    assert!((at(1_000)..=at(1_030)).contains(&due));
    // It is not put off by the next packet.
    acks.data(at(1_001), &nobody, Duration::from_millis(30), shared);
    assert_eq!(acks.deadline(), Some(due));
    let other = CongestionData { acker: IpAddr::from([10, 0, 0, 9]), ..nobody };
    acks.data(at(1_002), &other, Duration::ZERO, shared);
    assert_eq!((acks.deadline(), acks.due(at(9_000), shared)), (None, None));
    // The clock goes on while it waits.
    acks.data(at(2_000), &nobody, Duration::from_millis(30), shared);
    let (_, feedback) = acks.due(at(2_040), shared).unwrap();
    assert_eq!((feedback.timestamp, feedback.receiver), (740, shared.name));
    assert_eq!(acks.due(at(2_050), shared), None, "once");
}

#[test]
fn elections_are_answered_after_times_that_are_drawn_and_no_longer_than_the_longest() {
    let nobody = CongestionData { timestamp: 700, acker: IpAddr::from([0, 0, 0, 0]) };
    let shared = &mut shared();
    let mut waits = Vec::new();
    for _ in 0..20 {
        let mut acks = Acks::default();
        acks.data(at(1_000), &nobody, Duration::from_secs(9), shared);
        waits.push(acks.deadline().unwrap().since(at(1_000)));
    }
    assert!(waits.iter().all(|&wait| wait <= MAX_BACK_OFF), "{waits:?}");
    assert!(waits.iter().any(|&wait| wait > MAX_BACK_OFF / 2), "{waits:?}");
    assert!(waits.iter().any(|&wait| wait < MAX_BACK_OFF / 2), "{waits:?}");
    // One that sends nothing takes no part, and has heard the clock.
    shared.config.silent = true;
    let mut acks = Acks::default();
    acks.data(at(1_000), &nobody, Duration::ZERO, shared);
    acks.data(at(1_000), &CongestionData { acker: shared.name, ..nobody }, Duration::ZERO, shared);
    assert_eq!(acks.deadline(), None);
}
