//! Differences between two ends, and the lines in the log about them.

use super::*;

#[test]
fn another_version_is_said_once_and_a_farewell_is_believed() {
    let mut pair = Pair::new();
    pair.run(Duration::from_secs(2));
    pair.notices(1);
    let now = pair.now;
    let End { peer, myself, .. } = &mut pair.ends[0];
    peer.say_bye(now, myself);
    let bye = myself.hellos.remove(0).1;
    pair.ends[1].hear(now, address(1), &bye);
    assert_eq!(pair.notices(1), [Notice::Left { peer: "harbour".to_owned() }]);

    let other = b"hop\x07\x07harbour and whatever";
    for _ in 0..3 {
        pair.ends[1].hear(now, address(1), other);
    }
    assert_eq!(pair.notices(1), [Notice::Version { peer: "harbour".to_owned(), version: 7 }]);
    assert_eq!(pair.ends[1].peer.state, State::Version(7));
}

#[test]
fn nothing_is_believed_of_the_version_of_a_peer_that_is_up() {
    let mut pair = Pair::new();
    pair.run(Duration::from_secs(2));
    pair.notices(1);
    for _ in 0..50 {
        let now = pair.now;
        for from in [address(1), address(9)] {
            pair.ends[1].hear(now, from, b"hop\x07\x07harbour");
        }
        pair.run(Duration::from_millis(100));
        assert!(pair.ends[1].peer.is_up());
    }
    assert_eq!(pair.notices(1), []);
    assert_eq!(pair.ends[1].peer.disbelieved, 100);
    // One that really speaks another version falls silent first.
    pair.ends[0].at = address(1);
    pair.up = false;
    pair.run(Duration::from_secs(6));
    let now = pair.now;
    pair.ends[1].hear(now, address(1), b"hop\x07\x07harbour");
    assert_eq!(pair.ends[1].peer.state, State::Version(7));
}

#[test]
fn another_version_is_said_whatever_else_was_and_later_if_not_at_once() {
    let mut pair = Pair::new();
    let lanes = vec![Tag::packets(0)];
    let place = (Some(address(2)), Follow::File);
    let End { myself, .. } = &mut pair.ends[0];
    pair.ends[0].peer = Peer::new("island".to_owned(), place, lanes.clone(), lanes, myself);
    // Somebody elsewhere says that he is the peer.
    let mut rival = end("island", "harbour", 9, Some(1), 33);
    rival.peer.wake(pair.now, &mut rival.myself);
    for (_, bytes) in std::mem::take(&mut rival.myself.hellos) {
        pair.ends[0].hear(Instant::ZERO, address(9), &bytes);
    }
    assert!(matches!(pair.notices(0)[..], [Notice::NameInUse { .. }]));
    let other = |pair: &mut Pair, seconds: u64| {
        for _ in 0..seconds {
            pair.now += Duration::from_secs(1);
            let (now, End { myself, peer, .. }) = (pair.now, &mut pair.ends[0]);
            peer.on_other_version(now, address(2), 9, myself);
        }
        let is_version = |notice: &Notice| matches!(notice, Notice::Version { .. });
        pair.notices(0).into_iter().filter(is_version).count()
    };
    assert_eq!(other(&mut pair, 3), 1);
    // It is up and down again within the minute.
    pair.run(Duration::from_secs(5));
    assert!(pair.ends[0].peer.is_up());
    pair.up = false;
    pair.run(Duration::from_secs(10));
    assert!(!pair.ends[0].peer.is_up());
    assert_eq!(other(&mut pair, 3), 0);
    assert_eq!(other(&mut pair, 60), 1);
    assert_eq!(other(&mut pair, 200), 0);
}

#[test]
fn what_only_one_end_carries_is_said() {
    let mut pair = Pair::new();
    let End { myself, .. } = &mut pair.ends[0];
    myself.datagram = 1451;
    let lanes = vec![Tag::packets(0), Tag::tcp(3)];
    let place = (Some(address(2)), Follow::File);
    pair.ends[0].peer = Peer::new("island".to_owned(), place, lanes.clone(), lanes, myself);
    pair.run(Duration::from_secs(1));
    let notices = pair.notices(0);
    let peer = || "island".to_owned();
    assert_eq!(
        notices[1..],
        [
            Notice::Lane { peer: peer(), tag: Tag::tcp(3) },
            Notice::Datagram { peer: peer(), theirs: 1471, ours: 1451 },
        ]
    );
}
