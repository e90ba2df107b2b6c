//! Neighbours that find, lose and follow each other, in virtual time.

mod moving;
mod noticing;
mod probing;
mod wire;

use std::net::SocketAddr;

use hopcast_core::{Duration, Instant, Seed};

use super::peer::{Follow, Myself, Peer, State};
use super::wire::{Heard, Tag, parse};
use crate::config::Timing;
use crate::daemon::notice::{Notice, Notices};

const STEP: Duration = Duration::from_millis(10);

/// A node with one peer.
struct End {
    myself: Myself,
    peer: Peer,
    at: SocketAddr,
}

/// Two nodes and the path between them, which takes 20 ms.
struct Pair {
    now: Instant,
    ends: [End; 2],
    /// Datagrams under way: time of arrival, destination, source and bytes.
    under_way: Vec<(Instant, SocketAddr, SocketAddr, Vec<u8>)>,
    up: bool,
    /// One of this number of datagrams gets through.
    loss: u64,
    /// Maximum length of a datagram that gets through.
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
        match parse(bytes) {
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
