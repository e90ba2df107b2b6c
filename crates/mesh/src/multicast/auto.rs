//! The mode `auto`: whether a frame is flooded, or sent to each receiver by its route.
//!
//! Both have a weakness. By routes (in multicast packets or copies) a frame has one path to each receiver, and a route
//! is changed only some messages after it has broken. Flooded, it goes by all paths, and every node transmits it. So a
//! flow is flooded if that is expected to deliver more, and if it costs less; the view is the node's own.
//!
//! # Expected delivery
//!
//! The quality (TQ) of a path is the product of its links' shares of delivered broadcasts, of hop penalties, and of a
//! factor that is small while few messages were heard. Without the last two it is the share `p` that a frame has which
//! is sent once on each hop; over `h` hops, a hop loses about `(1 - p) / h`. A radio sends a frame to one station up to
//! eight times, and a broadcast three times; other links send either once. That gives the share by the route, and by
//! flooding over the router and every other neighbour by which the receiver's messages come: the paths fail
//! independently, as far as a node can tell. The difference is the gain of flooding for that receiver.
//!
//! - A gain counts only beyond what 64 messages can tell (`NOISE` of each hop).
//! - It is that of the time when the flow began, or the receiver joined: loss that comes with the flow is its own, and
//!   flooding would add to it.
//! - A receiver whose messages come by others but no longer by its router has lost its route: half of its frames, and
//!   for a minute after a route that was lost for three messages, since one that moves does so again. One that is not
//!   heard at all gains nothing.
//!
//! A flow is flooded if the mean gain of its receivers is more than `MIN_GAIN`. On a radio it must also keep to
//! `MAX_AIRTIME` of the rate at which broadcasts are heard, counting this node and its neighbours.
//!
//! # Cost
//!
//! Without a gain the cheaper way is taken. By routes, a frame costs on each hop depth as many transmissions as there
//! are receivers at it, and one where there are none but some beyond; as copies, one for each hop of each receiver.
//! Flooded, it costs one for each node, three on radios. On links that are not shared the first that is full decides:
//! flooding is cheaper if copies would go by one next hop more than once, and it takes at most twice the transmissions.
//!
//! Settings that others have of their own (interval, hop penalty) are taken to be the node's. B.A.T.M.A.N. V
//! measures no loss: with it, all flows go by routes.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant, Rate};
use hopcast_wire::ethernet::Mac;

use crate::routing::{PathStatus, Via};
use crate::translation::Key;

/// Least mean gain for which a flow is flooded. Chosen: below what a run of a minute shows, and above what one late
/// message of many receivers makes.
const MIN_GAIN: f64 = 0.02;
/// Share of frames by which a link's quality is off, with 64 messages: one and a half of them.
const NOISE: f64 = 1.5 / 64.0;
/// Gain of a receiver whose route is lost. Chosen: a route is lost for half of the time that it takes to notice.
const ROUTE_LOST: f64 = 0.5;
/// Time for which a receiver whose route was lost is taken to move. Chosen: longer, a mesh that has changed once is
/// flooded for nothing; shorter, each of a mover's handovers costs frames again.
const UNSETTLED: Duration = Duration::from_secs(60);
/// Time for which a decision holds. Chosen: a fifth of a message's interval.
const DECISION: Duration = Duration::from_millis(200);
/// Time without frames after which a flow begins anew.
const IDLE: Duration = Duration::from_secs(10);
/// Maximum number of flows that are remembered; beyond, the one that was idle longest is forgotten.
const MAX_FLOWS: usize = 256;
/// Time that a message may wait at each node that forwards it.
const FORWARDING: Duration = Duration::from_millis(110);
/// Share of a radio's time that a flooded flow may take. Chosen: the rest is for messages, gaps and other flows.
const MAX_AIRTIME: f64 = 0.7;
/// Transmissions on a radio of a frame to one station, and of a broadcast.
const RADIO: (i32, i32) = (8, 3);
/// Messages of which a quality is made.
const WINDOW: f64 = 64.0;

/// A node's knowledge of the mesh beside the paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    pub(crate) interval: Duration,
    pub(crate) hop_penalty: u8,
    /// Number of nodes, this one included.
    pub(crate) nodes: usize,
    /// Number of neighbours.
    pub(crate) neighbours: usize,
    pub(crate) wireless: bool,
    /// Whether several receivers may share a multicast packet.
    pub(crate) packets: bool,
}

/// A receiver, with its path if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub(crate) node: Mac,
    pub(crate) path: Option<PathStatus>,
}

#[derive(Debug)]
struct Flow {
    last: Instant,
    decided: Instant,
    floods: bool,
    /// Gain of each receiver when it was first seen.
    gains: BTreeMap<Mac, f64>,
    /// Bytes since the last decision.
    bytes: usize,
}

/// The state of the mode.
#[derive(Debug, Default)]
pub(crate) struct Auto {
    /// Nodes whose route was lost, and the time until which they are taken to move.
    unsettled: BTreeMap<Mac, Instant>,
    flows: BTreeMap<Key, Flow>,
    /// Rate at which a broadcast was heard last, where that is known.
    pub(crate) broadcast_rate: Option<Rate>,
}

impl Auto {
    /// Counts a frame. Returns whether it is flooded, if that is decided already.
    pub(crate) fn remembered(&mut self, now: Instant, group: Key, len: usize) -> Option<bool> {
        if self.flows.get(&group).is_some_and(|flow| flow.last + IDLE <= now) {
            self.flows.remove(&group);
        }
        let flow = self.flows.get_mut(&group)?;
        flow.last = now;
        flow.bytes += len;
        (now < flow.decided + DECISION).then_some(flow.floods)
    }

    /// Decides whether a flow is flooded.
    pub(crate) fn decide(
        &mut self,
        now: Instant,
        group: Key,
        receivers: &[Receiver],
        around: &Surroundings,
    ) -> bool {
        let dynamic: Vec<Option<f64>> = receivers
            .iter()
            .map(|receiver| self.observe(now, receiver.node, receiver.path.as_ref(), around))
            .collect();
        if !self.flows.contains_key(&group) && self.flows.len() >= MAX_FLOWS {
            let oldest = self.flows.iter().min_by_key(|(_, flow)| flow.last).map(|(&group, _)| group);
            oldest.map(|group| self.flows.remove(&group));
        }
        let new = || Flow { last: now, decided: now, floods: false, gains: BTreeMap::new(), bytes: 0 };
        let flow = self.flows.entry(group).or_insert_with(new);
        let before = std::mem::take(&mut flow.gains);
        for Receiver { node, path } in receivers {
            let of_now = || path.as_ref().map_or(0.0, |path| gain(path, now, around));
            flow.gains.insert(*node, before.get(node).copied().unwrap_or_else(of_now));
        }
        let gains = receivers.iter().zip(dynamic);
        let total: f64 =
            gains.map(|(receiver, dynamic)| dynamic.unwrap_or_else(|| flow.gains[&receiver.node])).sum();
        let elapsed = now.since(flow.decided);
        let rate = if elapsed.is_zero() { 0.0 } else { 8.0 * flow.bytes as f64 / elapsed.as_secs_f64() };
        let airtime = |medium: Rate| {
            rate * f64::from(RADIO.1) * (1 + around.neighbours) as f64 / medium.bits_per_sec().max(1) as f64
        };
        let fits =
            !around.wireless || self.broadcast_rate.is_none_or(|medium| airtime(medium) <= MAX_AIRTIME);
        let gains = total > MIN_GAIN * receivers.len() as f64;
        flow.floods = fits && (gains || is_cheaper(receivers, around));
        (flow.decided, flow.bytes) = (now, 0);
        flow.floods
    }

    /// Looks at a node's route. Returns the gain of flooding for it if that follows from when its messages came.
    pub(crate) fn observe(
        &mut self,
        now: Instant,
        node: Mac,
        path: Option<&PathStatus>,
        around: &Surroundings,
    ) -> Option<f64> {
        self.unsettled.retain(|_, until| *until > now);
        let path = path?;
        let waiting = FORWARDING * u64::from(path.hops);
        let silence = now.since(path.last_seen);
        if silence > around.interval * 10 + waiting {
            return Some(0.0);
        }
        let by_router = path.router.map_or(Duration::MAX, |(_, _, seen)| now.since(seen));
        if by_router > around.interval * 7 / 2 + waiting && silence <= around.interval * 7 / 2 + waiting {
            self.unsettled.insert(node, now + UNSETTLED);
        }
        let late = by_router > around.interval * 3 / 2 + waiting;
        (late || self.unsettled.contains_key(&node)).then_some(ROUTE_LOST)
    }
}

/// Gain of flooding for a receiver: by how much the share of frames that reaches it grows; 0 if that is not certain.
fn gain(path: &PathStatus, now: Instant, around: &Surroundings) -> f64 {
    let Some((_, quality, _)) = path.router else { return 1.0 };
    let (to_one, to_all) = if around.wireless { RADIO } else { (1, 1) };
    let hops = i32::from(path.hops.max(1));
    let by_route = delivered(path, quality, now, around, to_one);
    let recent = |seen: Instant| now.since(seen) <= around.interval * 3;
    let others = path.others.iter().filter(|(_, seen)| recent(*seen)).map(|&(quality, _)| quality);
    let none = others
        .chain([quality])
        .map(|quality| 1.0 - delivered(path, quality, now, around, to_all))
        .product::<f64>();
    let gain = 1.0 - none - by_route;
    if gain > NOISE * f64::from(hops) { gain } else { 0.0 }
}

/// Share of frames that a path of this quality delivers, if each hop sends them so often.
fn delivered(path: &PathStatus, quality: u8, now: Instant, around: &Surroundings, times: i32) -> f64 {
    let hops = i32::from(path.hops.max(1));
    let penalty = f64::from(255 - around.hop_penalty.min(254)) / 255.0;
    // A radio that sends on what it receives takes the penalty twice.
    let penalties = (hops - 1) * if around.wireless { 2 } else { 1 };
    // While fewer messages than the window holds have been sent, those that are missing make every link worse.
    let age = now.since(path.first_seen).as_secs_f64() / around.interval.as_secs_f64();
    let missing = (WINDOW - age).clamp(0.0, WINDOW - 1.0) / WINDOW;
    let young = 1.0 - missing.powi(3);
    let factor = penalty.powi(penalties) * young.powi(hops);
    let once = (f64::from(quality) / 255.0 / factor).min(1.0);
    let loss = (1.0 - once) / f64::from(hops);
    (1.0 - loss.powi(times)).powi(hops)
}

/// Whether flooding takes less of the links than routes.
fn is_cheaper(receivers: &[Receiver], around: &Surroundings) -> bool {
    let mut groups: BTreeMap<Via, Vec<u8>> = BTreeMap::new();
    for path in receivers.iter().filter_map(|receiver| receiver.path.as_ref()) {
        if let Some((via, ..)) = path.router {
            groups.entry(via).or_default().push(path.hops.max(1));
        }
    }
    let of_copies: usize = groups.values().flatten().map(|&hops| usize::from(hops)).sum();
    if around.wireless {
        let by_routes = if around.packets { groups.values().map(|hops| tree(hops)).sum() } else { of_copies };
        return around.nodes * (RADIO.1 as usize) < by_routes;
    }
    !around.packets
        && groups.values().any(|receivers| receivers.len() > 1)
        && around.nodes.saturating_sub(1) <= 2 * of_copies
}

/// Number of transmissions that reach receivers at these hops by one next hop.
fn tree(hops: &[u8]) -> usize {
    let deepest = hops.iter().copied().max().unwrap_or(0);
    (1..=deepest).map(|depth| hops.iter().filter(|&&hops| hops == depth).count().max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::ZERO;
    const NODE: Mac = [2, 0, 0, 0, 0, 9];
    const GROUP: Key = Key { vlan: 0, address: [1, 0, 0x5e, 1, 2, 3] };

    fn at(millis: u64) -> Instant {
        START + Duration::from_millis(millis)
    }

    fn around(wireless: bool, packets: bool) -> Surroundings {
        let interval = Duration::from_secs(1);
        Surroundings { interval, hop_penalty: 30, nodes: 9, neighbours: 2, wireless, packets }
    }

    fn via(number: u8) -> Via {
        Via::new(0, [2, 0, 0, 0, 1, number])
    }

    /// A path of this quality, and others, of all of which the last message came at `seen`.
    fn path(hops: u8, quality: u8, others: &[u8], seen: Instant) -> PathStatus {
        let router = Some((via(1), quality, seen));
        let others = others.iter().map(|&quality| (quality, seen)).collect();
        PathStatus { router, hops, first_seen: START, last_seen: seen, others }
    }

    fn receiver(path: PathStatus) -> Vec<Receiver> {
        vec![Receiver { node: NODE, path: Some(path) }]
    }

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 0.006
    }

    #[test]
    fn shares_are_those_of_the_links_without_penalties_and_youth() {
        let now = at(100_000);
        let of_path = |hops, quality, now, wireless, times| {
            delivered(&path(hops, quality, &[], now), quality, now, &around(wireless, true), times)
        };
        assert!(close(of_path(1, 255, now, false, 1), 1.0));
        assert!(close(of_path(1, 204, now, false, 1), 0.8));
        // Two hops of 0.9, one penalty: 255 x 0.81 x 225/255.
        assert!(close(of_path(2, 182, now, false, 1), 0.816));
        // The same by radios takes the penalty twice, and eight transmissions lose nothing.
        assert!(close(of_path(2, 160, now, true, 1), 0.811));
        assert!(of_path(2, 160, now, true, 8) > 0.999);
        // After 16 of 64 messages a link without loss has 1 - (48/64)^3.
        assert!(close(of_path(1, 147, at(16_000), false, 1), 1.0));
    }

    #[test]
    fn steady_loss_is_worth_flooding_only_where_there_are_other_paths() {
        let now = at(100_000);
        let wires = around(false, true);
        assert!(close(gain(&path(1, 204, &[], now), now, &wires), 0.0));
        assert!(close(gain(&path(1, 204, &[204], now), now, &wires), 0.16));
        assert!(close(gain(&path(1, 252, &[252], now), now, &wires), 0.0));
        // Radios repeat.
        assert!(close(gain(&path(1, 204, &[204], now), now, &around(true, true)), 0.0));
        // One that is not heard any more is no path.
        let mut old = path(1, 204, &[204], now);
        old.others[0].1 = at(90_000);
        assert!(close(gain(&old, now, &wires), 0.0));
    }

    #[test]
    fn loss_that_comes_with_the_flow_changes_nothing() {
        let mut auto = Auto::default();
        let good = receiver(path(2, 225, &[225], at(100_000)));
        let poor = receiver(path(2, 130, &[130], at(101_000)));
        let wires = around(false, true);
        assert!(!auto.decide(at(100_000), GROUP, &good, &wires));
        assert_eq!(auto.remembered(at(100_100), GROUP, 1000), Some(false));
        assert_eq!(auto.remembered(at(100_300), GROUP, 1000), None);
        assert!(!auto.decide(at(101_000), GROUP, &poor, &wires));
        // A flow that begins now sees it.
        assert!(auto.decide(at(101_000), Key { vlan: 1, ..GROUP }, &poor, &wires));
        assert_eq!(auto.remembered(at(112_000), GROUP, 1000), None);
        let later = receiver(path(2, 130, &[130], at(112_000)));
        assert!(auto.decide(at(112_000), GROUP, &later, &wires));
    }

    #[test]
    fn a_receiver_that_has_lost_its_route_is_flooded_to_and_for_a_minute_if_it_was_long() {
        let wires = around(false, true);
        let (mut auto, seen) = (Auto::default(), at(100_000));
        let mut lost = path(1, 255, &[255], seen);
        let mut decide =
            |now: u64, lost: &PathStatus| auto.decide(at(now), GROUP, &receiver(lost.clone()), &wires);
        assert!(!decide(101_500, &lost));
        lost.last_seen = at(101_500);
        assert!(decide(101_700, &lost));
        // Back in time.
        let back = path(1, 255, &[255], at(102_000));
        assert!(!decide(102_100, &back));
        // Three messages by others.
        lost.last_seen = at(103_600);
        assert!(decide(103_700, &lost));
        assert!(decide(110_000, &path(1, 255, &[255], at(110_000))));
        assert!(!decide(164_000, &path(1, 255, &[255], at(164_000))));
        // Nobody hears it.
        assert!(decide(166_000, &path(1, 255, &[255], at(164_000))));
        assert!(!decide(175_000, &path(1, 255, &[255], at(164_000))));
    }

    #[test]
    fn a_radio_that_has_no_time_for_it_does_not_flood() {
        let mut auto = Auto { broadcast_rate: Some(Rate::from_mbit(1)), ..Auto::default() };
        let radio = around(true, true);
        let late = |now| receiver(PathStatus { last_seen: at(now), ..path(1, 255, &[255], at(now - 3000)) });
        assert!(auto.decide(at(100_000), GROUP, &late(100_000), &radio));
        // Three nodes, three times: 9 x 100 kbit/s of 1 Mbit/s.
        auto.remembered(at(101_000), GROUP, 12_500);
        assert!(!auto.decide(at(101_000), GROUP, &late(101_000), &radio));
        auto.remembered(at(102_000), GROUP, 9_000);
        assert!(auto.decide(at(102_000), GROUP, &late(102_000), &radio));
    }

    #[test]
    fn without_a_gain_the_cheaper_way_is_taken() {
        let now = at(100_000);
        let receivers = |hops: &[u8]| -> Vec<Receiver> {
            let each = hops.iter().zip(1..);
            each.map(|(&hops, last)| Receiver {
                node: [2, 0, 0, 0, 2, last],
                path: Some(path(hops, 255, &[], now)),
            })
            .collect()
        };
        assert_eq!([tree(&[2, 2, 2]), tree(&[3]), tree(&[1, 2, 3]), tree(&[4, 2])], [4, 3, 3, 4]);
        // Nine nodes: copies of three receivers at two hops are 6, of two 4.
        assert!(is_cheaper(&receivers(&[2, 2, 2]), &around(false, false)));
        assert!(!is_cheaper(&receivers(&[2, 1]), &around(false, false)));
        assert!(!is_cheaper(&receivers(&[9]), &around(false, false)));
        assert!(!is_cheaper(&receivers(&[2, 2, 2]), &around(false, true)));
        // On radios flooding takes 27.
        assert!(!is_cheaper(&receivers(&[9, 9, 9]), &around(true, false)));
        assert!(is_cheaper(&receivers(&[9, 9, 10]), &around(true, false)));
        assert!(!is_cheaper(&receivers(&[9, 9, 10]), &around(true, true)));
    }

    #[test]
    fn flows_are_bounded() {
        let mut auto = Auto::default();
        for number in 0..300_u16 {
            let group = Key { vlan: number, ..GROUP };
            auto.decide(at(u64::from(number)), group, &[], &around(false, true));
        }
        assert_eq!(
            (auto.flows.len(), auto.flows.keys().next().map(|group| group.vlan)),
            (MAX_FLOWS, Some(44))
        );
    }
}
