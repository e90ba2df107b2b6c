//! A peer that moves or restarts, and others that use its name.

use super::*;

#[test]
fn one_that_moves_is_followed_and_one_that_is_heard_cannot_be_displaced() {
    let mut pair = Pair::new();
    pair.run(Duration::from_secs(3));
    pair.notices(1);
    pair.ends[0].at = address(77);
    pair.run(Duration::from_secs(6));
    let (from, to) = (address(1), address(77));
    let notices = pair.notices(1);
    assert_eq!(notices[0], Notice::Moved { peer: "harbour".to_owned(), from, to });
    assert_eq!(pair.ends[1].peer.address(), Some(to));

    // Another one with its name, who even answers.
    let mut rival = end("harbour", "island", 9, Some(2), 33);
    for _ in 0..40 {
        let (now, at) = (pair.now, rival.at);
        rival.peer.wake(now, &mut rival.myself);
        let mut said = std::mem::take(&mut rival.myself.hellos);
        // It answers what it is answered.
        for _ in 0..2 {
            for (_, bytes) in std::mem::take(&mut said) {
                let answers = pair.ends[1].hear(now, at, &bytes);
                for (_, answer) in answers.into_iter().filter(|(to, _)| *to == at) {
                    said.extend(rival.hear(now, address(2), &answer));
                }
            }
        }
        pair.run(Duration::from_millis(250));
    }
    assert_eq!(pair.ends[1].peer.address(), Some(to));
    let notices = pair.notices(1);
    assert!(notices.iter().all(|it| matches!(it, Notice::NameInUse { .. })), "{notices:?}");
    assert_eq!(notices.len(), 1, "said once");
}

#[test]
fn one_that_moves_again_after_an_outage_is_followed_whoever_else_says_its_name() {
    let mut pair = Pair::new();
    pair.run(Duration::from_secs(3));
    // The file says where the island was to begin with.
    pair.ends[1].at = address(77);
    pair.run(Duration::from_secs(6));
    assert_eq!(pair.ends[0].peer.address(), Some(address(77)));
    pair.up = false;
    pair.run(Duration::from_secs(30));
    assert!(!pair.ends[0].peer.is_up());
    pair.up = true;
    pair.ends[1].at = address(88);
    let stranger = {
        let mut stranger = end("island", "harbour", 9, Some(1), 33);
        stranger.peer.wake(pair.now, &mut stranger.myself);
        stranger.myself.hellos.remove(0).1
    };
    for from in 0..100 {
        let now = pair.now;
        pair.ends[0].hear(now, address(100 + from), &stranger);
        pair.run(Duration::from_millis(50));
    }
    assert!(pair.ends[0].peer.is_up());
    assert_eq!(pair.ends[0].peer.address(), Some(address(88)));
    assert_eq!(pair.ends[0].peer.moves, 2);
}

#[test]
fn one_that_is_started_anew_is_known_and_its_old_hellos_are_nothing() {
    let mut pair = Pair::new();
    pair.run(Duration::from_secs(2));
    pair.notices(1);
    let old = {
        let End { myself, peer, .. } = &mut pair.ends[0];
        peer.wake(pair.now + Duration::from_secs(1), myself);
        myself.hellos.remove(0).1
    };
    pair.ends[0] = end("harbour", "island", 1, Some(2), 44);
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.notices(1), [Notice::Restarted { peer: "harbour".to_owned() }]);
    let now = pair.now;
    pair.ends[1].hear(now, address(1), &old);
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.notices(1), []);
    assert_eq!(pair.ends[1].peer.restarts, 1);
}

#[test]
fn nobody_elsewhere_is_a_peer_whose_address_the_file_fixes() {
    let mut pair = Pair::new();
    let End { myself, .. } = &mut pair.ends[1];
    let lanes = vec![Tag::packets(0)];
    let place = (Some(address(1)), Follow::File);
    pair.ends[1].peer = Peer::new("harbour".to_owned(), place, lanes.clone(), lanes, myself);
    pair.run(Duration::from_secs(3));
    pair.notices(1);
    // The peer is gone, and somebody else has its name, and answers whatever he is sent.
    pair.up = false;
    let mut rival = end("harbour", "island", 9, Some(2), 33);
    for _ in 0..400 {
        let (now, at) = (pair.now, rival.at);
        if rival.peer.deadline(&rival.myself.timing).is_some_and(|at| at <= now) {
            rival.peer.wake(now, &mut rival.myself);
        }
        for (_, bytes) in std::mem::take(&mut rival.myself.hellos) {
            let answers = pair.ends[1].hear(now, at, &bytes);
            assert!(answers.iter().all(|(to, _)| *to != at), "he is told nothing");
        }
        pair.run(Duration::from_millis(100));
    }
    assert_eq!(pair.ends[1].peer.address(), Some(address(1)));
    assert!(!pair.ends[1].peer.is_up());
    let is_about = |it: &Notice| matches!(it, Notice::NameInUse { fixed: true, .. } | Notice::Down { .. });
    let notices = pair.notices(1);
    assert!(notices.len() == 2 && notices.iter().all(is_about), "{notices:?}");
    pair.up = true;
    pair.run(Duration::from_secs(3));
    assert!(pair.ends[1].peer.is_up());
}

#[test]
fn what_others_say_with_a_peers_address_does_not_make_it_silent() {
    let mut pair = Pair::new();
    pair.run(Duration::from_secs(2));
    pair.notices(0);
    pair.notices(1);
    let mut forger = end("harbour", "island", 1, Some(2), 33);
    for _ in 0..3000 {
        let now = pair.now;
        forger.peer.wake(now + Duration::from_secs(3600), &mut forger.myself);
        for (_, bytes) in std::mem::take(&mut forger.myself.hellos) {
            pair.ends[1].hear(now, address(1), &bytes);
        }
        pair.run(STEP);
    }
    assert_eq!((pair.notices(0), pair.notices(1)), (vec![], vec![]));
    assert!(pair.ends.iter().all(|end| end.peer.is_up() && end.peer.restarts == 0));
    // Nor does it keep one out that is started anew.
    pair.ends[0] = end("harbour", "island", 1, Some(2), 44);
    for _ in 0..300 {
        let now = pair.now;
        forger.peer.wake(now + Duration::from_secs(3600), &mut forger.myself);
        for (_, bytes) in std::mem::take(&mut forger.myself.hellos) {
            pair.ends[1].hear(now, address(1), &bytes);
        }
        pair.run(STEP);
    }
    assert!(pair.ends.iter().all(|end| end.peer.is_up()));
    assert_eq!(pair.ends[1].peer.restarts, 1);
}
