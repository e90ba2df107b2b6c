//! Chains of nodes over lossy links.

mod anything;
mod apps;
mod branches;
mod chain;
mod damage;
mod deadlines;
mod graphs;
mod measure;
mod regressions;
mod restarts;
mod sessions;
mod stalls;
mod streams;
mod strict;

use hopcast_core::{Buffer, Duration, Fraction, Instant, Rate, Seed};
use hopcast_link::{Change, Config as Cable, Direction, Jitter, Loss, Queue, QueueLimit};

use super::{BatchSize, Config, Delivery};
use crate::bats;
use chain::Chain;

/// A link of `mbit` Mbit/s that delays by `delay` and loses packets in both directions.
fn cable(mbit: u64, delay: Duration, loss: Loss, queue: u32) -> Cable {
    let direction = Direction {
        rate: Some(Rate::from_mbit(mbit)),
        delay,
        loss,
        queue: Queue::DropTail { limit: QueueLimit::Packets(queue) },
        ..Direction::default()
    };
    Cable { forward: direction.clone(), backward: direction, ..Cable::default() }
}

fn independent(percent: f64) -> Loss {
    if percent == 0.0 { Loss::None } else { Loss::Independent(Fraction::from_percent(percent).unwrap()) }
}

/// Mean `percent`, in bursts of `burst` packets on average: simple Gilbert.
fn bursts(percent: f64, burst: f64) -> Loss {
    let (loss, r) = (percent / 100.0, 1.0 / burst);
    Loss::GilbertElliott {
        p: Fraction::new(r * loss / (1.0 - loss)).unwrap(),
        r: Fraction::new(r).unwrap(),
        k: Fraction::new(1.0).unwrap(),
        h: Fraction::new(0.0).unwrap(),
    }
}

/// Offers units of `size` bytes at `mbit` of payload for `span`: what arrived of them at the far edge, in Mbit/s after
/// `warm`, and the share of those offered.
fn saturate(chain: &mut Chain, size: usize, mbit: f64, warm: Duration, span: Duration) -> (f64, f64) {
    let gap = Duration::from_secs_f64(size as f64 * 8.0 / (mbit * 1e6));
    let (mut next, mut number) = (chain.now, 0_u64);
    let (begin, end) = (chain.now + warm, chain.now + span);
    let mut last = None;
    let (mut bytes, mut count) = (0, 0_u64);
    let mut unit = vec![0; size];
    let mut step = |chain: &mut Chain| {
        let far = chain.last();
        for (at, edge, payload) in chain.arrived.drain(..) {
            assert_eq!(edge, far);
            let id = u64::from_be_bytes(payload[..8].try_into().unwrap());
            assert!(last.is_none_or(|last| id > last), "{id} after {last:?}");
            assert!(payload.len() == size && payload[8..].iter().all(|&byte| byte == id as u8), "unit {id}");
            last = Some(id);
            count += 1;
            if at >= begin && at < end {
                bytes += payload.len();
            }
        }
    };
    while next < end {
        chain.run(next);
        unit[..8].copy_from_slice(&number.to_be_bytes());
        unit[8..].fill(number as u8);
        chain.give(0, &unit);
        number += 1;
        next += gap;
        if number.is_multiple_of(64) {
            step(chain);
        }
    }
    chain.run(end + Duration::from_secs(1));
    step(chain);
    (bytes as f64 * 8.0 / 1e6 / span.saturating_sub(warm).as_secs_f64(), count as f64 / number as f64)
}

#[test]
fn two_edges_carry_units_over_a_clean_link() {
    let cables = [cable(100, Duration::from_millis(1), Loss::None, 64)];
    let mut chain = Chain::new(&Config::default(), &cables, 1);
    let (_, share) = saturate(&mut chain, 1000, 10.0, Duration::ZERO, Duration::from_secs(1));
    assert_eq!(share, 1.0);
}

#[test]
fn a_relay_repairs_what_two_lossy_links_lose() {
    let cables = [
        cable(100, Duration::from_millis(1), independent(20.0), 64),
        cable(100, Duration::from_millis(1), independent(20.0), 64),
    ];
    let mut chain = Chain::new(&Config::default(), &cables, 1);
    let (_, share) = saturate(&mut chain, 1000, 10.0, Duration::ZERO, Duration::from_secs(1));
    assert_eq!(share, 1.0);
    assert_eq!(chain.now, Instant::ZERO + Duration::from_secs(2));
}

#[test]
fn what_is_delivered_is_forgotten_and_what_is_held_is_bounded() {
    let config = Config { window: 16, ..Config::default() };
    let cables = vec![cable(50, Duration::from_millis(5), independent(10.0), 64); 3];
    let mut chain = Chain::new(&config, &cables, 1);
    for _ in 0..200 {
        for _ in 0..20 {
            chain.give(0, &[1; 1000]);
        }
        chain.run_for(Duration::from_millis(2));
        assert!(chain.nodes.iter().all(|node| node.ranked().held() <= 16));
    }
    chain.run_for(Duration::from_secs(2));
    let held: Vec<_> = chain.nodes.iter().map(|node| node.ranked().held()).collect();
    assert!(held.iter().all(|&held| held <= 1), "but for a batch that may be filled on: {held:?}");
}

#[test]
fn one_round_of_repair_with_a_margin_is_all_but_enough() {
    // One round of repair, in which a margin makes up for what may be lost of it.
    let delivery = Delivery::Deadline { after: Duration::from_millis(200), fixed: true, rounds: 1 };
    let cables = vec![cable(100, Duration::from_millis(1), independent(20.0), 64); 2];
    let mut chain = Chain::new(&Config { delivery, ..Config::default() }, &cables, 1);
    let (_, share) = saturate(&mut chain, 1000, 40.0, Duration::ZERO, Duration::from_secs(2));
    assert!(share > 0.995, "{share}");
}

#[test]
fn six_hops_that_lose_a_fifth_deliver_all_but_nothing_in_time() {
    let cables = vec![cable(300, Duration::from_micros(20), independent(20.0), 64); 6];
    let mut chain = Chain::new(&Config { delivery: Delivery::DEADLINE, ..Config::default() }, &cables, 1);
    let (_, share) = saturate(&mut chain, 1400, 100.0, Duration::ZERO, Duration::from_secs(1));
    assert!(share > 0.9995, "{share}");
}
