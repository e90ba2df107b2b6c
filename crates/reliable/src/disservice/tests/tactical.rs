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

pub(super) struct Found {
    /// Share of messages that subscribers were handed.
    pub(super) success: f64,
    /// Bytes of all members but the publisher, for each message.
    pub(super) overhead: f64,
    /// Packets with repairs, and bytes of requests and of summaries.
    pub(super) repairs: f64,
    pub(super) feedback: f64,
    pub(super) control: f64,
    pub(super) requests: f64,
    pub(super) passed: f64,
    pub(super) redundant: f64,
    /// Share of messages that all members but the publisher hold together.
    pub(super) held: f64,
}

/// A minute of messages of `len` bytes, of which members lose a share of what the publisher sends.
pub(super) fn tactical(seed: u64, len: usize, loss: f64, policy: &Policy) -> Found {
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
    let mut sent = net.run(Duration::from_secs(90), |net| net.members[0].session.is_sent());
    let at = net.now;
    sent &= !net.run(at.since(Instant::ZERO) + Duration::from_secs(30), |net| {
        (1..=SUBSCRIBERS).all(|member| net.members[member].up.len() == messages)
    }) || true;
    assert!(sent);
    let received: usize = (1..=SUBSCRIBERS).map(|member| net.members[member].up.len()).sum();
    let of = |name| (1..=PEERS).map(|member| net.counter(member, name)).sum::<u64>() as f64 / messages as f64;
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
        repairs: of("repair_packets_sent"),
        feedback: of("feedback_bytes_sent"),
        control: of("control_bytes_sent"),
        requests: of("nacks_sent"),
        passed: of("requests_passed_on"),
        redundant: of("repairs_redundant"),
        held: held as f64 / messages as f64,
    }
}

/// Fragments of a message that have to be sent again at least, on average, if each is sent by somebody who has it until
/// all subscribers have it: for `missing` of them as often as the unluckiest needs.
pub(super) fn fewest(fragments: f64, loss: f64) -> f64 {
    let binomial = [1.0, 3.0, 3.0, 1.0];
    let mut mean = 0.0;
    for missing in 1..=SUBSCRIBERS {
        let share =
            binomial[missing] * loss.powi(missing as i32) * (1.0 - loss).powi((SUBSCRIBERS - missing) as i32);
        // The mean of the largest of some geometric numbers.
        let times: f64 = (0..200).map(|sent| 1.0 - (1.0 - PEER_LOSS.powi(sent)).powi(missing as i32)).sum();
        mean += share * times;
    }
    // What nobody has is not sent again.
    fragments * (mean - binomial[3] * loss.powi(PEERS as i32))
}

/// The same where any combination of what is missing serves all: until the subscriber that lacks most has enough.
pub(super) fn fewest_coded(fragments: u32, loss: f64) -> f64 {
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

#[test]
fn peers_bring_what_a_publisher_that_hears_nothing_has_sent() {
    for loss in [0.1, 0.2, 0.3, 0.5] {
        for (len, fragments) in [(1024, 1.0), (7168, 6.0), (15_360, 11.0), (35_840, 26.0)] {
            for is_coded in [false, true] {
                let found = tactical(1, len, loss, &Policy { is_coded, fragment: 1400, ..policy() });
                let fewest =
                    if is_coded { fewest_coded(fragments as u32, loss) } else { fewest(fragments, loss) };
                let bound = (1.0 - loss.powi(9)).powi(fragments as i32);
                eprintln!(
                    "{loss} {len:6} coded {is_coded:5} success {:.4} held {:.4} (bound {bound:.4}) overhead {:7.0} repairs {:.2} fewest {fewest:.2} ratio {:.2} bytes ratio {:.2} feedback {:.0} control {:.0} requests {:.2} passed {:.2} redundant {:.2}",
                    found.success,
                    found.held,
                    found.overhead,
                    found.repairs,
                    found.repairs / fewest,
                    found.overhead / (fewest * (len as f64 / fragments + 85.0)),
                    found.feedback,
                    found.control,
                    found.requests,
                    found.passed,
                    found.redundant
                );
            }
        }
    }
}
