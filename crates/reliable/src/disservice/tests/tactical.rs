//! The paper's tactical network: a publisher on a bad link of 230 kbit/s that hears nothing, three subscribers and six
//! members that only listen, among whom 10 % is lost at 1 Mbit/s.

use hopcast_core::{Duration, Instant, Rate};

use super::super::object::tag;
use super::super::wire::MessageId;
use super::*;
use crate::testing::contents;

const SUBSCRIBERS: usize = 3;
const PEERS: usize = 9;
const PEER_LOSS: f64 = 0.1;

struct Found {
    /// Share of messages that subscribers were handed.
    success: f64,
    /// Bytes of all members but the publisher, for each message.
    overhead: f64,
    /// Share of messages that all members but the publisher hold together.
    held: f64,
}

/// A minute of messages of `len` bytes, of which members lose a share of what the publisher sends.
fn tactical(seed: u64, len: usize, loss: f64, policy: &Policy) -> Found {
    let slow = Policy { rate: Rate::from_bits_per_sec(230_000), ..policy.clone() };
    let mut net = Network::new(seed);
    join(&mut net, config(0, None, &slow), Link { rate: slow.rate, ..link(0.0) });
    for member in 1..=PEERS {
        let subscription = (member <= SUBSCRIBERS).then(everything);
        join(&mut net, config(member, subscription, policy), link(PEER_LOSS));
        net.unheard.insert((member, 0));
        net.loss_between.insert((0, member), loss);
    }
    let messages = 1_650_000 / len;
    let payloads: Vec<_> = (0..messages).map(|at| contents(len, at as u64)).collect();
    payloads.iter().for_each(|payload| publish(&mut net, 0, payload));
    let sent = net.run(Duration::from_secs(90), |net| net.members[0].session.is_sent());
    assert!(sent);
    let until = net.now.since(Instant::ZERO) + Duration::from_secs(30);
    net.run(until, |net| (1..=SUBSCRIBERS).all(|member| net.members[member].up.len() == messages));
    let received: usize = (1..=SUBSCRIBERS).map(|member| net.members[member].up.len()).sum();
    let is_held = |sequence: &usize| {
        let id = MessageId {
            group: tag(&topic()),
            publisher: MemberId { node: 1, run: 1 },
            sequence: *sequence as u32,
        };
        let fragments = (len + 20).div_ceil(usize::from(policy.fragment)) as u32;
        (0..fragments).all(|index| (1..=PEERS).any(|member| net.members[member].session.has(id, index)))
    };
    let held = (0..messages).filter(is_held).count();
    let bytes: u64 = (1..=PEERS).map(|member| net.members[member].sent).sum();
    Found {
        success: received as f64 / (messages * SUBSCRIBERS) as f64,
        overhead: bytes as f64 / messages as f64,
        held: held as f64 / messages as f64,
    }
}

/// Fragments of a message that have to be sent again at least, on average, if each is sent by somebody who has it until
/// all subscribers have it: for `missing` of them as often as the unluckiest needs.
fn fewest(fragments: u32, loss: f64) -> f64 {
    let binomial = [1.0, 3.0, 3.0, 1.0];
    let mut mean = 0.0;
    for (missing, choices) in binomial.into_iter().enumerate().skip(1) {
        let share = choices * loss.powi(missing as i32) * (1.0 - loss).powi((SUBSCRIBERS - missing) as i32);
        // The mean of the largest of some geometric numbers.
        let times: f64 = (0..200).map(|sent| 1.0 - (1.0 - PEER_LOSS.powi(sent)).powi(missing as i32)).sum();
        mean += share * times;
    }
    // What nobody has is not sent again.
    f64::from(fragments) * (mean - binomial[3] * loss.powi(PEERS as i32))
}

/// The same where any combination of what is missing serves all: until the subscriber that lacks most has enough.
fn fewest_coded(fragments: u32, loss: f64) -> f64 {
    let binomial = |n: u32, k: u32, p: f64| {
        let choose: f64 = (0..k).map(|at| f64::from(n - at) / f64::from(at + 1)).product();
        choose * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)
    };
    let enough = |sent: u32, lacks: u32| -> f64 {
        (lacks..=sent).map(|got| binomial(sent, got, 1.0 - PEER_LOSS)).sum()
    };
    let done = |sent: u32| -> f64 {
        (0..=fragments).map(|lacks| binomial(fragments, lacks, loss) * enough(sent, lacks)).sum()
    };
    (0..fragments * 3).map(|sent| 1.0 - done(sent).powi(SUBSCRIBERS as i32)).sum()
}

/// The paper's message sizes with the number of their fragments, by reliability of the publisher's link, and the bytes
/// of peers for each message in its table 3.
const PUBLISHED: [(f64, [f64; 4]); 4] = [
    (0.1, [558.2, 4050.9, 7765.0, 36_798.0]),
    (0.2, [909.8, 6990.5, 13_373.9, 32_581.4]),
    (0.3, [1286.9, 8553.7, 18_423.7, 41_625.2]),
    (0.5, [1634.0, 11_020.9, 22_086.6, 53_386.5]),
];
const LENGTHS: [(usize, u32); 4] = [(1024, 1), (7168, 6), (15_360, 11), (35_840, 26)];
/// Bytes of all headers of a data packet here, those of Ethernet, IP and UDP included.
const OVERHEAD: f64 = 85.0;

/// Calls for each cell of the paper's table: loss, length, the fewest bytes of repairs by `fewest`, what was found and
/// what is published.
fn each_cell(
    is_coded: bool,
    fewest: fn(u32, f64) -> f64,
    mut check: impl FnMut(f64, usize, f64, &Found, f64),
) {
    let policy = Policy { is_coded, fragment: 1400, ..policy() };
    for (loss, published) in PUBLISHED {
        for ((len, fragments), published) in LENGTHS.into_iter().zip(published) {
            let found = tactical(1, len, loss, &policy);
            let packet = len as f64 / f64::from(fragments) + OVERHEAD;
            check(loss, len, fewest(fragments, loss) * packet, &found, published);
        }
    }
}

#[test]
fn peers_bring_all_that_they_hold_together_for_little_more_than_it_takes() {
    each_cell(false, fewest, |loss, len, fewest, found, published| {
        let cell =
            format!("{len} bytes at {loss}: {:.0} bytes of peers, at least {fewest:.0}", found.overhead);
        // What nobody has heard of a publisher that hears nothing is lost.
        assert!(found.success >= found.held - 1e-9, "{cell}: {} of {}", found.success, found.held);
        // Chosen: three standard deviations of what is lost so, in a minute of messages.
        let bound = (1.0 - loss.powi(PEERS as i32)).powi(len.div_ceil(1400) as i32);
        let spread = 3.0 * (bound * (1.0 - bound) * len as f64 / 1_650_000.0).sqrt();
        assert!(found.success >= bound - 0.005 - spread, "{cell}: {} of {bound}", found.success);
        assert!(found.overhead <= fewest * 1.3, "{cell}");
        assert!(found.overhead < published, "{cell}, published {published}");
    });
}

#[test]
fn combinations_halve_what_peers_send_where_that_can_be() {
    let mut halved = Vec::new();
    each_cell(true, fewest_coded, |loss, len, fewest, found, published| {
        let cell =
            format!("{len} bytes at {loss}: {:.0} bytes of peers, at least {fewest:.0}", found.overhead);
        assert!(found.success >= found.held - 1e-9, "{cell}: {} of {}", found.success, found.held);
        assert!(found.overhead <= fewest * 1.5, "{cell}");
        if fewest < published / 2.0 && found.overhead <= published / 2.0 {
            halved.push((loss, len));
        }
    });
    // Ten cells have their bound below the half. In the others of them members that lost a fifth and more themselves
    // serve: what one of them combines is new to each subscriber only as far as it holds what that one lacks.
    for cell in [(0.1, 7168), (0.1, 15_360), (0.1, 35_840), (0.2, 7168), (0.2, 35_840), (0.3, 35_840)] {
        assert!(halved.contains(&cell), "{cell:?}: {halved:?}");
    }
}
