//! Recoding held against theory: the published shape of adaptive recoding, and what six hops make of it.

use super::*;
use crate::bats::ranks::{Channel, Outlook, Ranks, Scheme, horizon};

const HOPS: usize = 6;

fn losing(loss: f64) -> Channel {
    Channel::independent(loss, 256).expect("a channel")
}

fn six(loss: f64) -> [Channel; HOPS] {
    [losing(loss); HOPS]
}

/// The fraction of 1 - loss that six hops carry, with the best budget.
fn fraction(batch: usize, loss: f64, phases: usize) -> f64 {
    Path::best(&six(loss), batch, Scheme::Random, phases, 40).efficiency() / (1.0 - loss)
}

/// The same if every batch gets t packets, with the best t.
fn fixed_fraction(batch: usize, loss: f64) -> f64 {
    let channel = losing(loss);
    let with = |sent: usize| {
        let mut ranks = Ranks::full(batch);
        for _ in 0..HOPS {
            ranks = ranks.after(&channel, Scheme::Random, |_| sent);
        }
        ranks.mean() / sent as f64 / (1.0 - loss)
    };
    (batch / 2..3 * batch).map(with).fold(0.0, f64::max)
}

fn hold(name: &str, expected: [[f64; 3]; 3], fraction: impl Fn(usize, f64) -> f64) {
    for (loss, expected) in [0.05, 0.1, 0.2].into_iter().zip(expected) {
        for (batch, expected) in [8, 16, 32].into_iter().zip(expected) {
            let found = fraction(batch, loss);
            assert!((found - expected).abs() < 0.002, "{name}, M {batch}, loss {loss}: {found:.4}");
        }
    }
}

#[test]
fn the_same_number_for_every_batch_carries_what_is_known() {
    let known = [[0.887, 0.923, 0.946], [0.848, 0.894, 0.925], [0.795, 0.854, 0.897]];
    hold("fixed", known, fixed_fraction);
}

#[test]
fn adaptive_recoding_carries_what_is_known() {
    let known = [[0.912, 0.937, 0.957], [0.875, 0.913, 0.939], [0.825, 0.878, 0.915]];
    hold("adaptive", known, |batch, loss| fraction(batch, loss, 1));
}

#[test]
fn one_feedback_carries_what_is_known() {
    let known = [[0.990, 0.991, 0.992], [0.971, 0.979, 0.985], [0.942, 0.961, 0.975]];
    hold("one feedback", known, |batch, loss| fraction(batch, loss, 2));
}

#[test]
fn two_feedbacks_carry_what_is_known() {
    let known = [[0.999, 0.999, 0.999], [0.996, 0.996, 0.996], [0.980, 0.985, 0.990]];
    hold("two feedbacks", known, |batch, loss| fraction(batch, loss, 3));
}

#[test]
fn the_slope_is_the_probability_that_a_packet_arrives_and_is_wanted() {
    // Over so large a field nothing but loss keeps a packet from being innovative.
    let channel = Channel::independent(0.2, u32::MAX).expect("a channel");
    let rank = 6;
    for sent in 0..14 {
        let slope = channel.expected_innovative(rank, sent + 1) - channel.expected_innovative(rank, sent);
        let wanted: f64 = (0..rank).map(|arrive| binomial(sent, arrive, 0.8)).sum();
        assert!((slope - 0.8 * wanted).abs() < 1e-6, "after {sent}: {slope}");
    }
}

#[test]
fn the_chain_run_backwards_and_forwards_tell_the_same() {
    let bursty = Channel::bursty([0.01, 0.6], [0.05, 0.3], 2).expect("a channel");
    for channel in [losing(0.2), bursty, bursty.interleaved(3)] {
        for scheme in [Scheme::Random, Scheme::Systematic] {
            let lacking: Vec<f64> = (0..=9).map(f64::from).collect();
            let mut visited = 0;
            Outlook::new(&channel, &lacking).each(scheme, 20, |rank, sent, mean| {
                let received = channel.received(rank, sent, scheme);
                let gained: f64 = received.iter().enumerate().map(|(rank, share)| rank as f64 * share).sum();
                assert!((mean - (rank as f64 - gained)).abs() < 1e-12, "{scheme:?} {rank} {sent}: {mean}");
                visited += 1;
            });
            assert_eq!(visited, 10 * 21, "{scheme:?}");
        }
    }
}

#[test]
fn a_plan_meets_its_budget_and_foretells_the_next_ranks() {
    let ranks = Ranks::full(16).after(&losing(0.1), Scheme::Random, |_| 18);
    for phases in 1..=3 {
        for budget in [0.5, 9.3, 16.0, 17.7] {
            let plan = Plan::new(&ranks, &losing(0.1), Scheme::Random, phases, budget);
            assert!((plan.after().mean() - plan.rank()).abs() < 1e-9);
            assert!((plan.after().as_slice().iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert!((plan.budget() - budget).abs() < 1e-6, "{phases} phases, {budget}: {}", plan.budget());
        }
    }
}

#[test]
fn the_draws_that_are_advised_meet_the_budget_over_a_short_stretch() {
    let ranks = Ranks::full(16);
    let plan = Plan::new(&ranks, &losing(0.1), Scheme::Random, 1, 17.3);
    let sent: usize = (0..100u32).map(|n| plan.policy(n.wrapping_mul(0x9E37_79B9)).packets(0, 16)).sum();
    assert!((1729..=1731).contains(&sent), "{sent}");
}

#[test]
fn no_other_way_of_spending_the_budget_is_better() {
    // All ways for a small batch, by brute force.
    let channel = losing(0.25);
    let ranks = Ranks::new(&[0.1, 0.2, 0.3, 0.4]).expect("weights");
    let mut ways = Vec::new();
    for one in 0..5 {
        for two in 0..7 {
            for three in 0..9 {
                let sent = [0, one, two, three];
                let cost: f64 = ranks.as_slice().iter().zip(sent).map(|(share, t)| share * t as f64).sum();
                let after = ranks.after(&channel, Scheme::Random, |rank| sent[rank]);
                ways.push((cost, after.mean()));
            }
        }
    }
    for (cost, mean) in ways {
        let plan = Plan::new(&ranks, &channel, Scheme::Random, 1, cost);
        assert!(plan.rank() >= mean - 1e-9, "{mean} for {cost}, planned {}", plan.rank());
    }
}

#[test]
fn a_budget_that_is_of_no_use_is_not_spent() {
    let plan = Plan::new(&Ranks::full(4), &losing(0.0), Scheme::Systematic, 1, 1e9);
    assert_eq!(plan.policy(0).packets(0, 4), 4);
    assert!((plan.budget() - 4.0).abs() < 1e-9);
    let nothing = Plan::new(&Ranks::full(4), &losing(0.0), Scheme::Random, 1, 0.0);
    assert_eq!(nothing.policy(7).packets(0, 4), 0);
}

#[test]
fn over_gf2_systematic_recoding_needs_fewer_packets() {
    let channel = Channel::independent(0.1, 2).expect("a channel");
    let rank = |scheme| Plan::new(&Ranks::full(16), &channel, scheme, 1, 18.0).rank();
    let (random, systematic) = (rank(Scheme::Random), rank(Scheme::Systematic));
    assert!(systematic > random + 0.15, "{systematic} against {random}");
}

#[test]
fn bursts_call_for_other_numbers_and_interleaving_takes_them_back() {
    // 10 % in bursts of 5 packets on average.
    let bursty = Channel::bursty([0.0, 1.0], [0.2 / 9.0, 0.2], 256).expect("a channel");
    assert!((bursty.loss() - 0.1).abs() < 1e-12);
    let rank = |channel: &Channel| Plan::new(&Ranks::full(16), channel, Scheme::Random, 1, 18.0).rank();
    let (alone, burst) = (rank(&losing(0.1)), rank(&bursty));
    let (shallow, deep) = (rank(&bursty.interleaved(4)), rank(&bursty.interleaved(32)));
    assert!(burst < shallow - 0.2 && shallow < deep - 0.1, "{burst} {shallow} {deep}");
    assert!((deep - alone).abs() < 0.01, "{deep} {alone}");
}

#[test]
fn a_block_gets_what_its_plan_would_give() {
    let channel = losing(0.1);
    let mut blockwise = Blockwise::new(&channel, Scheme::Random, 16);
    let ranks = [16, 14, 0, 16, 9, 40];
    let mut counts = [0; 6];
    blockwise.assign(&ranks, 90, &mut counts);
    assert_eq!(counts.iter().sum::<usize>(), 90);
    assert_eq!(counts[2], 0, "a batch of rank 0 has nothing to send");
    assert!(counts[0] == counts[5], "a rank beyond the batch counts as the batch: {counts:?}");
    assert!(counts[0] > counts[1] && counts[1] > counts[4], "{counts:?}");

    // Moving one packet from any batch to any other must not help.
    let total = |counts: &[usize]| -> f64 {
        ranks.iter().zip(counts).map(|(rank, t)| channel.expected_innovative((*rank).min(16), *t)).sum()
    };
    let best = total(&counts);
    for from in 0..6 {
        for to in 0..6 {
            let mut other = counts;
            if other[from] > 0 {
                other[from] -= 1;
                other[to] += 1;
                assert!(total(&other) <= best + 1e-9, "from {from} to {to}");
            }
        }
    }
}

#[test]
fn a_block_that_needs_less_gets_less() {
    let mut blockwise = Blockwise::new(&losing(0.0), Scheme::Systematic, 4);
    let mut counts = [7; 3];
    blockwise.assign(&[4, 0, 2], 1_000_000, &mut counts);
    assert_eq!(counts, [4, 0, 2]);
    blockwise.assign(&[], 10, &mut counts);
    assert_eq!(counts, [4, 0, 2]);
}

#[test]
fn repairs_are_the_least_that_suffice() {
    let repairs = Repairs::new(&Channel::independent(0.2, u32::MAX).expect("a channel"), 16, 0.99);
    for deficit in 0..=16 {
        let sent = repairs.packets(deficit);
        let enough = |sent: usize| 1.0 - (0..deficit).map(|k| binomial(sent, k, 0.8)).sum::<f64>();
        assert!(enough(sent) >= 0.99, "{deficit}: {sent}");
        assert!(sent == 0 || enough(sent - 1) < 0.99, "{deficit}: {sent}");
    }
    assert_eq!(repairs.packets(0), 0);
    assert_eq!(repairs.packets(99), repairs.packets(16));
}

#[test]
fn an_unreachable_certainty_ends_at_the_horizon() {
    let channel = losing(0.5);
    assert_eq!(Repairs::new(&channel, 8, 2.0).packets(3), horizon(&channel, 8));
}

#[test]
fn beyond_the_horizon_a_packet_adds_next_to_nothing() {
    let bursty = Channel::bursty([0.0, 1.0], [0.02, 0.1], 256).expect("a channel").interleaved(4);
    for (channel, left) in [(losing(0.2), 1e-9), (losing(0.6), 1e-6), (bursty, 0.02)] {
        for batch in [4, 16, 64] {
            let lacking = batch as f64 - channel.expected_innovative(batch, horizon(&channel, batch));
            assert!(lacking < left, "{batch}: {lacking}");
        }
    }
}

#[test]
fn systematic_recoding_adds_what_is_missing() {
    assert_eq!(systematic_repairs(20, 16), 4);
    assert_eq!(systematic_repairs(10, 16), 0);
}

/// Pr[Bin(n, p) = k].
fn binomial(n: usize, k: usize, p: f64) -> f64 {
    if k > n {
        return 0.0;
    }
    let ways: f64 = (0..k).map(|i| (n - i) as f64 / (k - i) as f64).product();
    ways * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)
}
