//! Paths of all kinds at the rate of a TCP: as fast as the path and losses allow, wherever it starts; and receivers
//! that restart, are slow or go.

use std::sync::Arc;

use hopcast_core::{Duration, Instant, Rate};

use super::net::{Link, Net, contents};
use super::senders::tcp_friendly;
use super::transfers::{lossy, objects, sender};
use crate::equation::tcp_rate;
use crate::norm::{RateControl, ReceiverConfig, SenderConfig};

/// A path from a sender to each of its receivers, which loses there.
#[derive(Clone, Copy, Debug)]
struct Path {
    kbit: u64,
    /// Round trip in microseconds.
    round_trip: u64,
    loss: f64,
    receivers: usize,
}

/// The rate that [`tcp_friendly`] starts at, and its minimum.
const START: f64 = 256e3;
const MIN: f64 = 12e3;

impl Path {
    fn rate(self) -> Rate {
        Rate::from_bits_per_sec(self.kbit * 1000)
    }

    /// Round trip of a probe behind a segment, in seconds.
    fn round_trip(self) -> f64 {
        self.round_trip as f64 * 1e-6 + self.rate().time_for(1500).as_secs_f64()
    }

    /// Bits per second that arrive: what the link carries, or a TCP would have at these losses, if that is less.
    fn expected(self) -> f64 {
        let tcp = tcp_rate(1400.0, Duration::from_secs_f64(self.round_trip()), self.loss) * 8.0;
        tcp.min(self.kbit as f64 * 1e3).max(MIN) * (1.0 - self.loss)
    }

    /// Seconds that a file takes, and those that it may take.
    fn transfer(self, seed: u64) -> (f64, f64) {
        let bytes = (self.expected() * 20.0 / 8.0).clamp(50e3, 5e6);
        let quarter = Duration::from_micros(self.round_trip / 4);
        let each = Link { rate: self.rate(), delay: quarter, loss: self.loss, ..Link::default() };
        // A queue of a round trip, or of thirty packets.
        let queue = Duration::from_micros(self.round_trip).max(self.rate().time_for(30 * 1500));
        let mut links = vec![each; self.receivers + 1];
        links[0] = Link { loss: 0.0, queue, ..each };
        let unicast_feedback = self.receivers > 1;
        let group_size = Some(self.receivers as u64);
        let config = SenderConfig { group_size, unicast_feedback, ..tcp_friendly(Rate::from_mbit(100_000)) };
        let receiver = ReceiverConfig { unicast_feedback, ..ReceiverConfig::default() };
        let mut net = Net::star(seed, config, &receiver, &links);
        let file = contents(bytes as usize, seed);
        send(&mut net, &file);
        let mut left = 1..=self.receivers;
        let mut waiting = left.next();
        let all = |net: &Net| {
            while waiting.is_some_and(|member| !net.members[member].up.is_empty()) {
                waiting = left.next();
            }
            waiting.is_none()
        };
        assert!(net.run(Duration::from_secs(1000), all), "{self:?}");
        for member in 1..=self.receivers {
            assert!(objects(&net, member) == [file.clone()], "{self:?}: {member}");
        }
        // Slow start doubles every few round trips; a queue that it fills takes as long again to be seen. Later the
        // rate of drop-tail queues swings, and the unluckiest of ten receivers sets it.
        let start = (self.expected() / START).log2().max(0.0) * 4.0 * self.round_trip().max(0.05);
        let filled = 3.0 * queue.as_secs_f64();
        let unlucky = if self.receivers > 1 { 1.5 } else { 1.0 };
        let ideal = bytes * 8.0 / self.expected();
        (net.now.as_secs_f64(), SWING * unlucky * ideal + start + filled + 10.0 * self.round_trip())
    }
}

/// Times of the ideal that a transfer may take, by swings of its rate. Chosen: what was seen, and a third.
const SWING: f64 = 2.0;

fn send(net: &mut Net, file: &[u8]) {
    let now = net.now;
    assert!(net.members[0].session.send(now, Arc::from(file), None, true).is_some());
}

#[test]
fn at_a_tcps_rate_a_file_takes_what_path_and_losses_allow_wherever_that_is() {
    let mut slow = Vec::new();
    for kbit in [100, 1_000, 10_000, 100_000] {
        for round_trip in [200, 10_000, 100_000, 600_000, 1_200_000] {
            for (loss, receivers) in
                [(0.0, 1), (0.0, 10), (0.01, 1), (0.01, 10), (0.1, 1), (0.1, 10), (0.5, 1)]
            {
                let path = Path { kbit, round_trip, loss, receivers };
                let (seconds, allowed) = path.transfer(1);
                if seconds > allowed {
                    slow.push(format!("{path:?}: {seconds:.1} s of {allowed:.1}"));
                }
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

#[test]
fn a_receiver_that_restarts_in_the_middle_gets_the_object_and_what_follows() {
    let mut net =
        Net::star(2, sender(), &ReceiverConfig::default(), &[Link::default(), lossy(0.1), lossy(0.1)]);
    let files: Vec<_> = (0..3).map(|number| contents(1_000_000, number)).collect();
    files.iter().for_each(|file| send(&mut net, file));
    // In the middle of the second object: nothing is left of what came before.
    net.run(Duration::from_secs(3), |_| false);
    net.members[2].session = net.session(2, None, Some(ReceiverConfig::default()), 2);
    net.members[2].up.clear();
    let all = |net: &Net| objects(net, 1).len() == 3 && objects(net, 2).len() >= 2;
    assert!(net.run(Duration::from_secs(30), all), "{}", objects(&net, 2).len());
    assert_eq!(objects(&net, 2)[..2], files[1..]);
    // The other one is hardly slower for it: three objects and half of one again.
    assert!(net.now.as_secs_f64() < 12.0, "{:?}", net.now);
}

#[test]
fn a_receiver_that_goes_in_the_middle_leaves_the_rate_to_the_others() {
    // The one that goes has the worst path by far, and so the lead.
    let bad = Link { loss: 0.1, delay: Duration::from_millis(100), ..Link::default() };
    let config = SenderConfig { group_size: Some(3), ..tcp_friendly(Rate::from_mbit(5)) };
    let queue = Duration::from_millis(60);
    let links = [Link { queue, ..Link::default() }, Link::default(), Link::default(), bad];
    let mut net = Net::star(3, config, &ReceiverConfig::default(), &links);
    let file = contents(5_000_000, 3);
    send(&mut net, &file);
    net.run(Duration::from_secs(20), |_| false);
    let held_back = net.members[0].session.rate().unwrap_or_default();
    assert!(held_back < Rate::from_mbit(1), "{held_back}");
    net.members[3].is_cut = true;
    let both = |net: &Net| (1..=2).all(|member| objects(net, member) == [file.clone()]);
    assert!(net.run(Duration::from_secs(50), both), "{:?}", net.members[0].session.rate());
}

#[test]
fn after_an_hour_of_silence_the_next_object_comes_as_the_first_did_and_the_hour_cost_little() {
    let path = Link { queue: Duration::from_millis(60), ..Link::default() };
    for config in [sender(), tcp_friendly(Rate::from_mbit(5))] {
        let mut net = Net::star(4, config, &ReceiverConfig::default(), &[path, lossy(0.05), lossy(0.05)]);
        let mut times = Vec::new();
        for number in 0..3 {
            let (began, file) = (net.now, contents(500_000, number));
            send(&mut net, &file);
            let last = |net: &Net| (1..=2).all(|member| objects(net, member).last() == Some(&file));
            let until = net.now.since(Instant::ZERO) + Duration::from_secs(60);
            assert!(net.run(until, last), "{number}");
            times.push(net.now.since(began).as_secs_f64());
            let before = net.bytes();
            let until = net.now.since(Instant::ZERO) + Duration::from_secs(3600);
            net.run(until, |_| false);
            let idle = net.bytes() - before;
            assert!(idle < 20_000, "{idle} bytes in an hour");
        }
        assert!(times.iter().all(|&time| time < 1.5 * times[0] + 0.5), "{times:?}");
    }
}

/// Ends when all receivers of a file have it, where each loses half of what comes, and the sender half of the requests.
#[track_caller]
fn half_is_lost(seed: u64, receivers: usize, within: Duration) {
    let link = Link { delay: Duration::from_millis(50), loss: 0.5, ..Link::default() };
    let config = SenderConfig {
        rate: RateControl::Fixed(Rate::from_mbit(10)),
        group_size: Some(receivers as u64),
        unicast_feedback: receivers > 1,
        ..SenderConfig::default()
    };
    let receiver = ReceiverConfig { unicast_feedback: true, ..ReceiverConfig::default() };
    let mut net = Net::star(seed, config, &receiver, &vec![link; receivers + 1]);
    let file = contents(200_000, seed);
    send(&mut net, &file);
    let all = |net: &Net| (1..=receivers).all(|member| objects(net, member) == [file.clone()]);
    assert!(net.run(within, all), "{receivers} receivers, seed {seed}");
}

#[test]
fn where_half_of_requests_and_of_answers_are_lost_the_unluckiest_of_sixty_has_its_file_in_seconds() {
    // A round of a request and its answer takes two round trips of 0.2 s, and one of four comes to something.
    (0..60).for_each(|seed| half_is_lost(seed, 1, Duration::from_secs(15)));
}

#[test]
fn where_half_is_lost_and_no_parity_is_left_the_last_of_thirty_is_served_too() {
    // A round takes four round trips or more. Of a single symbol for each request the unluckiest waits for 54 s.
    (0..12).for_each(|seed| half_is_lost(seed, 30, Duration::from_secs(25)));
}
