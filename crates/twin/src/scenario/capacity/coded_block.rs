//! The minimum number of bytes of a file to a group with any code over blocks of packets, or by repetition, and their
//! time.

use hopcast_link::{Attachment, Loss};

use super::timeline::loss_between;
use crate::scenario::model::{Action, ETHERNET_HEADER, Flow, LinkModel, Scenario};

/// Number of source packets of a block. Chosen: that of NORM's senders, as in the published experiments. With fewer the
/// bound is higher, since losses vary more from block to block; with more it is lower than such senders can reach.
const BLOCK: u64 = 64;

/// Probability that a receiver still lacks a packet, below which the sum ends. Chosen: the rest of the sum is less than
/// a millionth of a packet; a smaller one costs time.
const NEGLIGIBLE: f64 = 1e-12;

/// Mean minimum for a file to a group on one switch, if the sender repairs blocks of 64 packets with an ideal code: any
/// 64 packets of a block suffice for a receiver, and the sender stops as soon as all receivers have them. Requests cost
/// nothing.
///
/// Of a transport that [repeats](hopcast_stack::transport::Transport::repeats) what is lost, a block is one packet: it
/// is sent until all receivers have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockBound {
    /// Bytes of Ethernet frames, sent once each for all receivers.
    pub bytes: f64,
    /// Time in seconds to send them; `None` at a sender without a rate.
    pub seconds: Option<f64>,
}

impl BlockBound {
    /// The bound of a flow of bounded size, with frames of at most `frame` bytes. `None` unless all receivers are on
    /// one switch with the sender, lose frames independently, and nothing changes there.
    pub fn of(scenario: &Scenario, flow: &Flow, frame: u64) -> Option<Self> {
        let bytes = flow.transfer()?;
        let (number, link, from) = scenario.links.iter().enumerate().find_map(|(number, link)| {
            let end = |node| link.ends.iter().position(|&end| end == node);
            let is_switch = matches!(link.model, LinkModel::Switch(_));
            let reaches_all = flow.to.iter().all(|&to| end(to).is_some());
            let from = end(flow.from).filter(|_| is_switch && reaches_all)?;
            Some((number, link, from))
        })?;
        let is_changed = |action: &Action| matches!(action, Action::Link { link, .. } if *link == number);
        if scenario.events.iter().any(|event| is_changed(&event.action)) {
            return None;
        }
        let attachments = link.ends.iter().enumerate().filter(|(_, node)| flow.to.contains(node));
        let losses: Option<Vec<f64>> =
            attachments.map(|(to, _)| independent(loss_between(link, from, to))).collect();
        let headers = flow.full_overhead();
        // A program fills the packets of its first link; it has no machine that would say so.
        let mtu = link.direction(from as Attachment).mtu;
        let frame = if flow.is_program() { u64::from(mtu) + ETHERNET_HEADER } else { frame };
        let payload = frame.checked_sub(headers).filter(|&payload| payload > 0)?;
        let packets = bytes.div_ceil(payload);
        let repeats = flow.over.iter().any(|layer| layer.settings().repeats());
        let block = if repeats { 1 } else { BLOCK };
        let repairs = transmissions(packets, block, &losses?) - packets as f64;
        let bytes = (bytes + packets * headers) as f64 + repairs * (payload + headers) as f64;
        let rate = link.direction(from as Attachment).rate;
        Some(Self { bytes, seconds: rate.map(|rate| bytes * 8.0 / rate.bits_per_sec() as f64) })
    }
}

/// The probability that a frame is lost, if losses are independent of each other and the probability is less than 1.
fn independent(loss: &Loss) -> Option<f64> {
    match loss {
        Loss::None => Some(0.0),
        Loss::Independent(share) => Some(share.get()).filter(|&loss| loss < 1.0),
        _ => None,
    }
}

/// Mean number of transmissions of `packets` in blocks of at most `block`, of nearly equal length (RFC 5052, section
/// 9.1).
fn transmissions(packets: u64, block: u64, losses: &[f64]) -> f64 {
    let blocks = packets.div_ceil(block).max(1);
    let (small, larger) = (packets / blocks, packets % blocks);
    larger as f64 * of_block(small + 1, losses) + (blocks - larger) as f64 * of_block(small, losses)
}

/// Mean number of transmissions until each receiver has `packets` of them: the mean of the maximum of their negative
/// binomial distributions, as the sum over n of the probability that a receiver lacks one after n.
fn of_block(packets: u64, losses: &[f64]) -> f64 {
    if packets == 0 {
        return 0.0;
    }
    // For each receiver, the probability that it is complete with exactly n, and with at most n transmissions.
    let mut receivers: Vec<(f64, f64, f64)> = losses
        .iter()
        .map(|&loss| {
            let first = (1.0 - loss).powi(i32::try_from(packets).unwrap_or(i32::MAX));
            (loss, first, first)
        })
        .collect();
    let mut mean = packets as f64;
    let mut sent = packets as f64;
    loop {
        let all = receivers.iter().map(|&(_, _, within)| within).product::<f64>();
        if 1.0 - all < NEGLIGIBLE {
            return mean;
        }
        mean += 1.0 - all;
        for (loss, exactly, within) in &mut receivers {
            *exactly *= *loss * sent / (sent + 1.0 - packets as f64);
            *within += *exactly;
        }
        sent += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of an independent computation, for 800 KB in packets of 1,400 bytes at a loss of a fifth.
    #[test]
    fn blocks_to_one_and_to_three_receivers_take_what_was_computed_elsewhere() {
        assert!((transmissions(586, BLOCK, &[0.2]) - 732.5).abs() < 1e-6);
        assert_eq!(transmissions(586, BLOCK, &[0.2; 3]).round(), 769.0);
        assert_eq!(transmissions(586, 1, &[0.2; 3]).round(), 957.0);
    }

    #[test]
    fn one_receiver_takes_the_packets_over_the_share_that_arrives() {
        for loss in [0.0, 0.01, 0.2, 0.5, 0.9] {
            let expected = 64.0 / (1.0 - loss);
            let found = of_block(64, &[loss]);
            assert!((found - expected).abs() < 1e-6 * expected, "{loss}: {found} {expected}");
        }
        assert_eq!(transmissions(0, BLOCK, &[0.2]), 0.0);
    }

    /// One packet to many is the coupon bound: the sum over n of 1 - (1 - p^n)^R.
    #[test]
    fn one_packet_to_many_is_repeated_until_the_last_has_it() {
        let expected: f64 = (0..200).map(|n| 1.0 - (1.0 - 0.3_f64.powi(n)).powi(1000)).sum();
        assert!((of_block(1, &[0.3; 1000]) - expected).abs() < 1e-9);
    }

    #[test]
    fn more_receivers_and_more_loss_take_more() {
        assert!(of_block(64, &[0.1, 0.1]) > of_block(64, &[0.1]));
        assert!(of_block(64, &[0.1, 0.2]) > of_block(64, &[0.2]));
        // Whom nothing is lost to costs nothing.
        assert_eq!(of_block(64, &[0.2, 0.0]), of_block(64, &[0.2]));
    }
}
