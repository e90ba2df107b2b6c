//! The table of originators: who makes room for others, and when who is silent is forgotten.

use super::*;

struct Nothing;

impl Algorithm for Nothing {
    type Neighbour = ();
    type Out = ();
    type Path = ();

    fn metric((): &()) -> Option<u32> {
        Some(1)
    }

    fn keep<'a>((): &mut (), _: impl Iterator<Item = &'a ()>) {}
}

const fn node(last: u8) -> Mac {
    [2, 0, 0, 0, 0, last]
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

const VIA: Via = Via::new(0, node(1));

/// Gives an originator a route by a neighbour, as a message that comes now does.
fn route(originators: &mut Originators<Nothing>, now: Instant, address: Mac) {
    originators.path(now, address, VIA).unwrap().seen(now);
    let entry = originators.get_mut(address).unwrap();
    entry.last_seen = now;
    entry.outs[1].router = Some(VIA);
}

/// Whether an originator is known now, and who was forgotten for it.
fn ensure(originators: &mut Originators<Nothing>, now: Instant, address: Mac) -> (bool, Option<Mac>) {
    let (slot, forgotten) = originators.ensure(now, address);
    assert_eq!(slot, originators.find(address));
    (slot.is_some(), forgotten)
}

#[test]
fn the_originator_without_a_route_for_longest_makes_room_for_another() {
    let mut originators = Originators::<Nothing>::new(2, 4);
    for last in 1..=4 {
        assert_eq!(ensure(&mut originators, at(0), node(last)), (true, None));
    }
    for last in [1, 2] {
        route(&mut originators, at(100 * u64::from(last)), node(last));
    }
    assert_eq!(ensure(&mut originators, at(100), node(3)), (true, None), "it is known");
    assert_eq!(ensure(&mut originators, at(100), node(5)), (true, Some(node(3))));
    assert_eq!(ensure(&mut originators, at(200), node(6)), (true, Some(node(4))));
    // The first has lost its route, after the two that came last.
    let mut removed = Vec::new();
    originators.purge(at(300), |removal| removed.push(removal));
    assert_eq!(removed, [Removal::Route(node(1))]);
    for (last, oldest) in [(7, 5), (8, 6), (9, 1), (10, 7)] {
        assert_eq!(ensure(&mut originators, at(300), node(last)), (true, Some(node(oldest))));
    }
    // With routes to all, nobody makes room.
    for last in 8..=10 {
        route(&mut originators, at(310), node(last));
    }
    assert_eq!(ensure(&mut originators, at(320), node(11)), (false, None));
    assert_eq!(originators.len(), 4);
}

#[test]
fn neighbours_are_forgotten_after_200_seconds_and_originators_after_400_to_the_second() {
    let mut originators = Originators::<Nothing>::new(2, 9);
    for (last, seen) in [(1, 0), (2, 50)] {
        originators.ensure(at(seen), node(last));
        route(&mut originators, at(seen), node(last));
    }
    let mut removed = Vec::new();
    for second in 1..=450 {
        if second == 100 {
            // Another message of 2 comes.
            route(&mut originators, at(second), node(2));
        }
        originators.purge(at(second), |removal| removed.push((second, removal)));
    }
    use Removal::{Originator, Route};
    assert_eq!(removed, [(200, Route(node(1))), (300, Route(node(2))), (400, Originator(node(1)))]);
    assert_eq!(originators.neighbours_on(0).count(), 0);
}
