//! Maximum lengths of datagrams.

use super::*;

#[test]
fn a_way_that_swallows_full_datagrams_is_said_and_a_lossy_one_is_not_taken_for_it() {
    let mut pair = Pair::new();
    pair.loss = 2;
    pair.run(Duration::from_secs(120));
    let is_full = |notice: &Notice| matches!(notice, Notice::Full { .. });
    assert!(!pair.notices(0).iter().any(is_full));
    (pair.loss, pair.longest) = (1, 1471);
    pair.run(Duration::from_secs(120));
    let full = |passes, fragments| Notice::Full {
        peer: "island".to_owned(),
        bytes: 1472,
        passes: Some(passes),
        fragments,
    };
    assert_eq!(pair.notices(0).into_iter().filter(is_full).collect::<Vec<_>>(), [full(1492, false)]);
    assert!(pair.ends.iter().all(|end| end.peer.is_up()));

    // A path that passes 1,400 bytes is found out within seconds of the start.
    let mut pair = Pair::new();
    pair.longest = 1400 - 28;
    pair.run(Duration::from_secs(6));
    let said = |pair: &mut Pair| pair.notices(0).into_iter().filter(is_full).collect::<Vec<_>>();
    assert_eq!(said(&mut pair), [full(1400, false)]);
    assert_eq!(pair.ends[0].peer.probe.passes, Some(1372));
    // It is said once, and once more where fragments are of no use.
    pair.run(Duration::from_secs(200));
    assert_eq!(said(&mut pair), []);
    pair.ends[0].myself.fragments = true;
    pair.run(Duration::from_secs(200));
    assert_eq!(said(&mut pair), [full(1400, true)]);
    // One that gets wider is found out too.
    pair.ends[0].myself.fragments = false;
    pair.longest = usize::MAX;
    pair.run(Duration::from_secs(70));
    assert_eq!((said(&mut pair), pair.ends[0].peer.probe.passes), (vec![], None));
}

#[test]
fn a_round_in_which_fragments_are_allowed_says_nothing_of_them() {
    for tenths in 1..60 {
        let mut pair = Pair::new();
        pair.longest = 1400 - 28;
        pair.run(Duration::from_millis(100 * tenths));
        // Some other peer's path has made it so; fragments get through here.
        pair.longest = usize::MAX;
        let (now, End { myself, peer, .. }) = (pair.now, &mut pair.ends[0]);
        myself.fragments = true;
        peer.allow_fragments(now);
        pair.run(Duration::from_secs(200));
        let is_false = |notice: &Notice| matches!(notice, Notice::Full { fragments: true, .. });
        assert!(!pair.notices(0).iter().any(is_false), "allowed after {tenths} tenths of a second");
    }
}
