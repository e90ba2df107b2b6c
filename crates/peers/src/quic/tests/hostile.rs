//! Whatever arrives: nothing panics, and what is kept stays within bounds.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::pair::{BBR, CLIENT, CUBIC, Hop, Pair, SERVER, ms, with};

/// The change of a datagram of the other end's.
#[derive(Clone, Debug)]
enum Change {
    Again,
    Flip(usize, u8),
    Cut(usize),
    Grow(Vec<u8>),
    Instead(Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Again),
        (any::<usize>(), any::<u8>()).prop_map(|(at, bits)| Change::Flip(at, bits)),
        // The headers are at the front.
        (0usize..60, any::<u8>()).prop_map(|(at, bits)| Change::Flip(at, bits)),
        any::<usize>().prop_map(Change::Cut),
        proptest::collection::vec(any::<u8>(), 1..40).prop_map(Change::Grow),
        proptest::collection::vec(any::<u8>(), 0..2000).prop_map(Change::Instead),
    ]
}

fn apply(change: &Change, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match change {
        Change::Again => {}
        Change::Flip(at, bits) => {
            let at = at % bytes.len();
            bytes[at] ^= bits;
        }
        Change::Cut(len) => bytes.truncate(len % bytes.len()),
        Change::Grow(more) => bytes.extend(more),
        Change::Instead(other) => return other.clone(),
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, rng_seed: RngSeed::Fixed(2), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_datagram_is_taken_or_refused(
        bbr: bool,
        changes in proptest::collection::vec((change(), any::<usize>(), 0u64..30), 1..60),
    ) {
        let mut pair = Pair::new(3, &with(if bbr { BBR } else { CUBIC }), &[Hop::default()]);
        let seen = Rc::new(RefCell::new(Vec::new()));
        let note = Rc::clone(&seen);
        pair.lose = Some(Box::new(move |from, bytes| {
            note.borrow_mut().push((from, bytes.to_vec()));
            false
        }));
        pair.accept = (20_000, false);
        pair.open(50_000, false);
        pair.run(ms(5));
        for (change, which, wait) in changes {
            let (from, bytes) = {
                let seen = seen.borrow();
                let (from, bytes) = &seen[which % seen.len()];
                (*from, apply(&change, bytes))
            };
            pair.inject(1 - from, &bytes);
            pair.run(ms(wait));
        }
        pair.run(ms(5_000));
        // An attacker off the path can end nothing.
        prop_assert_eq!((pair.client().read, pair.server().read), (20_000, 50_000));
    }
}

#[test]
fn connections_are_bounded() {
    let mut pair = Pair::new(1, &with(CUBIC), &[Hop::default()]);
    for seed in 0..100 {
        let mut other = Pair::new(100 + seed, &with(CUBIC), &[Hop::default()]);
        let first = Rc::new(RefCell::new(None));
        let note = Rc::clone(&first);
        other.lose = Some(Box::new(move |_, bytes| {
            note.borrow_mut().get_or_insert(bytes.to_vec());
            true
        }));
        other.open(1, false);
        pair.inject(SERVER, &first.take().unwrap());
    }
    assert_eq!(pair.counter(SERVER, "connections_accepted"), 16);
    assert_eq!(pair.counter(SERVER, "connections_refused"), 84);
    pair.run(ms(400_000));
    assert!(!pair.is_busy(), "what nobody goes on with is given up");
}

#[test]
fn a_datagram_from_elsewhere_is_none_of_ours() {
    let mut pair = Pair::new(1, &with(CUBIC), &[Hop::default()]);
    pair.open(1000, false);
    pair.run(ms(100));
    pair.inject_from(SERVER, "10.9.9.9:1".parse().unwrap(), &[0xC0; 1200]);
    assert_eq!(pair.counter(SERVER, "foreign"), 1);
    assert_eq!(pair.counter(CLIENT, "foreign"), 0);
}
