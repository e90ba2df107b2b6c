//! Rank distributions held against chance itself and against what is known of small cases.

use super::*;
use crate::field::{Field, Gf2, Gf256};
use crate::rlnc::{Coding, Coefficients, Decoder, Outcome, Packet, Recoder, Shape};

#[test]
fn a_square_random_matrix_over_gf2_has_the_rank_it_is_known_to_have() {
    // Without loss, 4 packets of rank 4: full rank with (1 - 1/2)(1 - 1/4)(1 - 1/8)(1 - 1/16).
    let channel = Channel::independent(0.0, 2).expect("a channel");
    let received = channel.received(4, 4, Scheme::Random);
    assert!((received[4] - 0.5 * 0.75 * 0.875 * 0.9375).abs() < 1e-12, "{received:?}");
    assert!((received[0] - 0.5f64.powi(16)).abs() < 1e-12, "{received:?}");
    assert_eq!(channel.received(4, 4, Scheme::Systematic)[4], 1.0);
}

#[test]
fn packets_that_are_really_recoded_have_the_ranks_that_were_calculated() {
    compare::<Gf256>(256, Scheme::Random);
    compare::<Gf2>(2, Scheme::Random);
}

/// Three hops of real packets with 20 % loss, 4,000 batches of 8.
fn compare<F: Field>(q: u32, scheme: Scheme) {
    const BATCH: usize = 8;
    const SENT: usize = 10;
    const TRIALS: usize = 4_000;
    let channel = Channel::independent(0.2, q).expect("a channel");
    let mut expected = Ranks::full(BATCH);
    for _ in 0..3 {
        expected = expected.after(&channel, scheme, |rank| if rank > 0 { SENT } else { 0 });
    }

    let shape = Shape::new(BATCH, 1).expect("a shape");
    let mut losses = Coefficients::new(1);
    let mut seen = [0.0; BATCH + 1];
    for trial in 0..TRIALS as u64 {
        let mut nodes: [Recoder<F>; 3] =
            core::array::from_fn(|node| Recoder::new(shape, 0, BATCH, trial * 3 + node as u64));
        for index in 0..BATCH {
            let packet = Packet { generation: 0, coding: Coding::Symbol(index), payload: &[0] };
            nodes[0].push(&packet).expect("a packet");
        }
        let mut end: Decoder<F> = Decoder::new(shape, 0);
        for node in 0..3 {
            for _ in 0..if nodes[node].rank() > 0 { SENT } else { 0 } {
                let (mut vector, mut payload) = ([0; BATCH], [0]);
                nodes[node].recode(&mut vector, &mut payload).expect("something to send");
                if losses.bits().is_multiple_of(5) {
                    continue;
                }
                let packet = Packet { generation: 0, coding: Coding::Vector(&vector), payload: &payload };
                let outcome = match nodes.get_mut(node + 1) {
                    Some(next) => next.push(&packet),
                    None => end.push(&packet),
                };
                assert!(matches!(outcome, Ok(Outcome::Innovative | Outcome::Redundant)));
            }
        }
        seen[end.rank()] += 1.0;
    }
    for (rank, share) in expected.as_slice().iter().enumerate() {
        let (mean, found) = (share * TRIALS as f64, seen[rank]);
        assert!((found - mean).abs() < 5.0 * mean.sqrt() + 3.0, "q {q}, rank {rank}: {found}, not {mean:.1}");
    }
}

#[test]
fn ranks_are_drawn_as_often_as_they_are_probable() {
    let ranks = Ranks::new(&[0.0, 1.0, 0.0, 3.0, 0.0]).expect("weights");
    assert_eq!((ranks.batch(), ranks.mean()), (4, 2.5));
    assert_eq!(ranks.sample(0), 1);
    assert_eq!(ranks.sample((1 << 30) - 1), 1);
    assert_eq!(ranks.sample(1 << 30), 3);
    assert_eq!(ranks.sample(u32::MAX), 3);
}

#[test]
fn an_interleaved_channel_is_as_lossy_and_forgets_sooner() {
    let bursty = Channel::bursty([0.0, 0.9], [0.05, 0.25], 256).expect("a channel");
    let deep = bursty.interleaved(1000);
    assert!((bursty.loss() - deep.loss()).abs() < 1e-12);
    // With nothing remembered, the number that arrives is binomial.
    let none = deep.received(8, 8, Scheme::Systematic)[0];
    assert!((none - bursty.loss().powi(8)).abs() < 1e-12, "{none}");
    let one_step = bursty.interleaved(1).received(8, 8, Scheme::Random);
    let as_it_is = bursty.received(8, 8, Scheme::Random);
    assert!(one_step.iter().zip(&as_it_is).all(|(one, other)| (one - other).abs() < 1e-12));
    let two_steps = bursty.interleaved(2).interleaved(3).received(8, 8, Scheme::Random);
    let six_steps = bursty.interleaved(6).received(8, 8, Scheme::Random);
    assert!(two_steps.iter().zip(&six_steps).all(|(one, other)| (one - other).abs() < 1e-12));
}

#[test]
fn what_is_no_distribution_is_refused() {
    assert_eq!(Ranks::new(&[]), Err(Error::Empty));
    assert_eq!(Ranks::new(&[0.0]), Err(Error::Empty));
    assert_eq!(Ranks::new(&[1.0, -0.5]), Err(Error::Probability { index: 1, found: -0.5 }));
    assert!(matches!(Ranks::new(&[f64::NAN]), Err(Error::Probability { index: 0, .. })));
    assert_eq!(Ranks::new(&[f64::MAX, f64::MAX]), Err(Error::Empty));
}

#[test]
fn what_is_no_channel_is_refused() {
    assert_eq!(Channel::independent(1.0, 256), Err(Error::Loss(1.0)));
    assert_eq!(Channel::independent(-0.1, 256), Err(Error::Loss(-0.1)));
    assert!(matches!(Channel::independent(f64::NAN, 256), Err(Error::Loss(_))));
    assert_eq!(Channel::independent(0.1, 1), Err(Error::FieldSize(1)));
    assert!(Channel::bursty([0.0, 1.0], [1.0, 0.0], 256).is_err(), "it ends in the bad state for good");
    assert!(Channel::bursty([0.0, 1.0], [0.0, 0.0], 256).is_ok(), "it stays in the good state");
}
