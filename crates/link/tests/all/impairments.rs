//! Duplication, corruption, and that no impairment shifts another's draws.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use crate::common::*;
use hopcast_core::{Duration, Rate};
use hopcast_link::{Direction, Event, Jitter, Link, Loss};

const N: u64 = 20_000;

/// Whether `seen` of [`N`] is a share of `share`, within five standard errors.
fn is_share(seen: u64, share: f64) -> bool {
    (seen as f64 / N as f64 - share).abs() < 5.0 * (share * (1.0 - share) / N as f64).sqrt()
}

fn frames(said: Said) -> impl Iterator<Item = hopcast_core::Buffer> {
    said.into_iter().filter_map(|(_, event)| match event {
        Event::Delivered { frame, .. } => Some(frame),
        _ => None,
    })
}

#[test]
fn a_duplicate_comes_right_behind_the_frame_and_at_its_time() {
    let mut link = both_ways(
        &Direction {
            duplicate: percent(10.0),
            rate: Some(Rate::from_mbit(100)),
            jitter: Jitter::Uniform(Duration::from_micros(3)),
            delay: Duration::from_micros(5),
            ..Direction::default()
        },
        1,
    );
    let said = run(&mut link, &row(N, 100, Duration::from_micros(8)), END);
    let arrived = deliveries(&said, 1);
    let mut seen = 0;
    for group in arrived.chunk_by(|a, b| a.1 == b.1) {
        assert!(group.len() <= 2 && group.iter().all(|arrival| *arrival == group[0]));
        seen += group.len() as u64 - 1;
    }
    assert!(is_share(seen, 0.1), "{seen}");
    let counters = link.counters(END, 0, 1);
    assert_eq!((counters.duplicated_packets, counters.delivered_packets), (seen, N + seen));
    assert_eq!(counters.delivered_bytes, (N + seen) * 100);
}

#[test]
fn a_corrupted_frame_has_one_bit_flipped_and_every_bit_has_its_turn() {
    let mut link = both_ways(&Direction { corrupt: percent(30.0), ..Direction::default() }, 1);
    let said = run(&mut link, &row(N, 14, Duration::from_micros(1)), END);
    let (mut corrupted, mut bits) = (0, [0u32; 14 * 8]);
    for (i, received) in frames(said).enumerate() {
        let flipped: Vec<u8> = received.iter().zip(frame(i as u64, 14).iter()).map(|(a, b)| a ^ b).collect();
        let ones: u32 = flipped.iter().map(|byte| byte.count_ones()).sum();
        assert!(ones <= 1);
        if ones == 1 {
            corrupted += 1;
            let byte = flipped.iter().position(|&byte| byte != 0).unwrap();
            bits[byte * 8 + flipped[byte].trailing_zeros() as usize] += 1;
        }
    }
    assert!(is_share(corrupted, 0.3), "{corrupted}");
    assert_eq!(link.counters(END, 0, 1).corrupted_packets, corrupted);
    // 6,000 over 112 bits: 54 each, with a deviation of 7.
    assert!(bits.iter().all(|&n| (15..95).contains(&n)), "{bits:?}");
}

#[test]
fn turning_on_one_impairment_changes_nothing_about_the_others() {
    let base = Direction {
        loss: Loss::GilbertElliott { p: percent(5.0), r: percent(30.0), k: percent(99.0), h: percent(20.0) },
        delay: Duration::from_micros(20),
        ..Direction::default()
    };
    // The numbers of the frames that arrive; corruption is looked for elsewhere, so it hits past the number.
    let arrived = |direction: &Direction| {
        let said = run(&mut both_ways(direction, 3), &row(2_000, 100, Duration::from_micros(100)), END);
        let mut ids: Vec<_> = deliveries(&said, 1).into_iter().map(|(_, id)| id).collect();
        ids.dedup();
        ids
    };
    let expected = arrived(&base);
    assert!(expected.len() < 1_900);
    for jitter in [Jitter::Uniform(Duration::from_micros(9)), Jitter::Normal(Duration::from_micros(9))] {
        assert_eq!(expected, arrived(&Direction { jitter, ..base.clone() }));
    }
    assert_eq!(expected, arrived(&Direction { duplicate: percent(30.0), ..base.clone() }));
    assert_eq!(expected, arrived(&Direction { rate: Some(Rate::from_mbit(100)), ..base.clone() }));
    let corrupting = Direction { corrupt: percent(30.0), ..base.clone() };
    let said = run(&mut both_ways(&corrupting, 3), &row(2_000, 100, Duration::from_micros(100)), END);
    assert_eq!(expected.len(), said.len());

    // Nor does loss change the jitter of those that arrive.
    let jitter = Jitter::Normal(Duration::from_micros(9));
    let times = |direction: &Direction| {
        let said = run(&mut both_ways(direction, 3), &row(2_000, 100, Duration::from_millis(1)), END);
        deliveries(&said, 1)
    };
    let lossy = times(&Direction { jitter, ..base.clone() });
    let lossless = times(&Direction { jitter, loss: Loss::None, ..base });
    assert!(lossy.iter().all(|arrival| lossless.contains(arrival)));
}

#[test]
fn what_is_lost_at_a_low_rate_is_lost_at_a_higher_one_too() {
    let [few, many] = [5.0, 20.0].map(|share| losses(&Loss::Independent(percent(share)), N, 9));
    assert!(few.iter().zip(&many).all(|(few, many)| many >= few));
}
