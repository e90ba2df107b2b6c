//! Neighbours that find, lose and follow each other, in virtual time.

use std::net::SocketAddr;

use hopcast_core::{Duration, Instant, Seed};
use proptest::prelude::*;

use super::peer::{Follow, Myself, Peer, State};
use super::wire::{self, Counts, Heard, Hello, Longest, Stamp, Tag};
use crate::config::Timing;
use crate::daemon::notice::{Notice, Notices};

const STEP: Duration = Duration::from_millis(10);

/// A node with one peer.
struct End {
    myself: Myself,
    peer: Peer,
    at: SocketAddr,
}

/// Two nodes and the way between them, which takes 20 ms.
struct Pair {
    now: Instant,
    ends: [End; 2],
    /// What arrives when, at which address, from which.
    under_way: Vec<(Instant, SocketAddr, SocketAddr, Vec<u8>)>,
    up: bool,
    /// Of so many datagrams one gets through.
    loss: u64,
    /// What is longer never does.
    longest: usize,
    random: hopcast_core::Stream,
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 7400))
}

fn end(name: &str, other: &str, at: u8, to: Option<u8>, instance: u64) -> End {
    let random = Seed::new(instance, 0).stream(&[name], 0);
    let mut myself = Myself {
        name: name.to_owned(),
        instance,
        sequence: 0,
        datagram: 1471,
        headers: 28,
        fragments: false,
        timing: Timing::default(),
        random,
        hellos: Vec::new(),
        notices: Notices::default(),
    };
    let lanes = vec![Tag::packets(0)];
    let place = (to.map(address), Follow::Roams);
    let peer = Peer::new(other.to_owned(), place, lanes.clone(), lanes, &mut myself);
    End { myself, peer, at: address(at) }
}

impl Pair {
    fn new() -> Self {
        let ends = [end("harbour", "island", 1, Some(2), 11), end("island", "harbour", 2, None, 22)];
        let random = Seed::new(5, 0).stream(&["loss"], 0);
        Self {
            now: Instant::ZERO,
            ends,
            under_way: Vec::new(),
            up: true,
            loss: 1,
            longest: usize::MAX,
            random,
        }
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            let (now, mut out) = (self.now, Vec::new());
            for end in &mut self.ends {
                if end.peer.deadline(&end.myself.timing).is_some_and(|at| at <= now) {
                    end.peer.wake(now, &mut end.myself);
                }
                out.extend(end.myself.hellos.drain(..).map(|(to, bytes)| (to, end.at, bytes)));
            }
            let (due, later): (Vec<_>, Vec<_>) = self.under_way.drain(..).partition(|&(at, ..)| at <= now);
            self.under_way = later;
            for (_, to, from, bytes) in due {
                let Some(end) = self.ends.iter_mut().find(|end| end.at == to) else { continue };
                let sent = end.hear(now, from, &bytes);
                out.extend(sent.into_iter().map(|(to, bytes)| (to, end.at, bytes)));
            }
            let (up, loss) = (self.up, self.loss);
            for (to, from, bytes) in out {
                if up && bytes.len() <= self.longest && self.random.below(loss) == 0 {
                    self.under_way.push((now + Duration::from_millis(20), to, from, bytes));
                }
            }
            self.now += STEP;
        }
    }

    fn notices(&mut self, end: usize) -> Vec<Notice> {
        std::iter::from_fn(|| self.ends[end].myself.notices.pop()).collect()
    }
}

impl End {
    /// A datagram has come; what is said to it.
    fn hear(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) -> Vec<(SocketAddr, Vec<u8>)> {
        match wire::parse(bytes) {
            Ok(Heard::Hello(hello)) => {
                self.peer.on_hello(now, from, &hello, bytes.len(), &mut self.myself);
            }
            Ok(Heard::Other { version, .. }) => {
                self.peer.on_other_version(now, from, version, &mut self.myself);
            }
            Err(_) => {}
        }
        std::mem::take(&mut self.myself.hellos)
    }
}

#[test]
fn two_find_each_other_though_only_one_knows_where_the_other_is() {
    let mut pair = Pair::new();
    pair.run(Duration::from_millis(200));
    for (end, other) in [(0, 2), (1, 1)] {
        let (peer, address) = (pair.ends[1 - end].myself.name.clone(), Some(address(other)));
        let round_trip = pair.ends[end].peer.round_trip.unwrap();
        assert!((40.0..=60.0).contains(&round_trip.as_millis_f64()), "{round_trip}");
        let notices = pair.notices(end);
        assert_eq!(notices, [Notice::Up { peer, address, round_trip }]);
    }
    pair.run(Duration::from_secs(30));
    let shares =
        [0, 1].map(|end| (pair.ends[end].peer.loss_in.share(), pair.ends[end].peer.loss_out.share()));
    assert_eq!(shares, [(Some(0.0), Some(0.0)); 2]);
}

#[test]
fn a_link_that_loses_half_is_up_and_one_that_is_gone_is_down() {
    let mut pair = Pair::new();
    pair.loss = 2;
    pair.run(Duration::from_secs(10));
    assert!(pair.ends.iter().all(|end| end.peer.is_up()));
    pair.notices(0);
    pair.run(Duration::from_secs(600));
    assert_eq!(pair.notices(0), [], "in ten minutes it is not once taken for gone");
    let loss = pair.ends[0].peer.loss_in.share().unwrap();
    assert!((0.1..0.9).contains(&loss), "{loss}");

    pair.up = false;
    pair.run(Duration::from_secs(7));
    assert!(matches!(pair.notices(0)[..], [Notice::Down { .. }]));
    pair.up = true;
    pair.run(Duration::from_secs(3));
    assert!(matches!(pair.notices(0)[..], [Notice::Up { .. }]));
}

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
    assert!(notices.iter().all(|it| matches!(it, Notice::Rival { .. })), "{notices:?}");
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
    let is_about = |it: &Notice| matches!(it, Notice::Rival { fixed: true, .. } | Notice::Down { .. });
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

    // A way that passes 1,400 bytes is found out within seconds of the start.
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
        // Some other peer's way has made it so; fragments get through here.
        pair.longest = usize::MAX;
        let (now, End { myself, peer, .. }) = (pair.now, &mut pair.ends[0]);
        myself.fragments = true;
        peer.allow_fragments(now);
        pair.run(Duration::from_secs(200));
        let is_false = |notice: &Notice| matches!(notice, Notice::Full { fragments: true, .. });
        assert!(!pair.notices(0).iter().any(is_false), "allowed after {tenths} tenths of a second");
    }
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
    assert!(matches!(pair.notices(0)[..], [Notice::Rival { .. }]));
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

fn hello() -> impl Strategy<Value = Hello> {
    let words = any::<[u32; 9]>();
    let lanes = proptest::collection::vec((0..64u8, any::<bool>()), 0..8);
    let probes = (0..9000_u16, any::<(u8, u8, u16)>());
    ("[a-zäø0-9_-]{1,32}", any::<([bool; 2], u64, u16)>(), words, probes, lanes).prop_map(
        |(name, ([ask, bye], instance, datagram), words, (padded, (round, heard, longest)), lanes)| Hello {
            name,
            ask,
            bye,
            instance,
            round,
            padded,
            longest: Longest { round: heard, bytes: longest },
            sequence: words[0],
            stamp: Stamp { nonce: words[1], micros: words[2] },
            echo: Stamp { nonce: words[3], micros: words[4] },
            held: words[5],
            sent: words[6],
            heard: Counts { sent: words[7], received: words[8] },
            datagram,
            lanes: lanes
                .into_iter()
                .map(|(n, tcp)| if tcp { Tag::tcp(n) } else { Tag::packets(n) })
                .collect(),
        },
    )
}

proptest! {
    #[test]
    fn a_hello_comes_out_as_it_went_in(hello in hello()) {
        prop_assert_eq!(wire::parse(&hello.emit()), Ok(Heard::Hello(hello)));
    }

    #[test]
    fn a_hello_cut_short_or_prolonged_is_none(hello in hello(), at in any::<proptest::sample::Index>()) {
        let mut bytes = hello.emit();
        let cut = at.index(bytes.len());
        prop_assert!(wire::parse(&bytes[..cut]).is_err());
        bytes.push(0);
        prop_assert!(wire::parse(&bytes).is_err());
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(start in 0..=5usize, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut all = b"hop\x02\x05"[..start].to_vec();
        all.extend(bytes);
        if let Ok(Heard::Hello(hello)) = wire::parse(&all) {
            prop_assert_eq!(hello.emit(), all);
        }
    }
}
