//! The bounds of flows, and the share of the delivered bytes that counts as goodput.

use std::sync::OnceLock;

use hopcast_core::{Duration, Instant};

use crate::meter::{Meter, SLICES};
use crate::scenario::Capacities;
use crate::scenario::model::{Action, Event, FlowId, Measure, Scenario};

/// Number of times in a window at which the bound is computed, where links change within it. Chosen: each costs a
/// min-cut of all flows; with fewer, a burst that is shorter than the time between two counts.
const PARTS: usize = 16;

/// The min-cut towards each receiver of each flow, in bit/s.
type Cuts = Vec<Vec<Option<f64>>>;

/// The min-cut of each flow of a case, computed once for all repeats.
#[derive(Default)]
pub struct Bounds {
    /// Whether events change links.
    links_change: OnceLock<bool>,
    whole: OnceLock<Cuts>,
    /// Min-cuts of the measurement window without random loss, which no run can exceed.
    lossless: OnceLock<Cuts>,
    /// Min-cuts from the window's start to the end of each of its parts, without random loss.
    parts: OnceLock<Vec<Cuts>>,
}

impl Bounds {
    /// The min-cut towards each receiver of a flow over the measurement window, in bit/s.
    pub(crate) fn of_flow(&self, scenario: &Scenario, number: FlowId) -> &[Option<f64>] {
        let Measure { from, to, .. } = scenario.measure;
        &self.whole.get_or_init(|| all(scenario, Capacities::over(scenario, from, to)))[number]
    }

    /// The min-cut over a span towards some of the receivers, given by their indices.
    pub(crate) fn over(
        &self,
        scenario: &Scenario,
        (number, receivers): (FlowId, &[usize]),
        (from, to): (Instant, Instant),
    ) -> Vec<Option<f64>> {
        if self.is_like_whole(scenario, (from, to)) {
            let whole = self.of_flow(scenario, number);
            return receivers.iter().map(|&receiver| whole[receiver]).collect();
        }
        let (mut capacities, flow) = (Capacities::over(scenario, from, to), &scenario.flows[number]);
        receivers.iter().map(|&receiver| capacities.of_flow(flow, flow.to[receiver])).collect()
    }

    /// The min-cut over a span towards one receiver, without random loss.
    fn lossless_over(
        &self,
        scenario: &Scenario,
        (number, receiver): (FlowId, usize),
        (from, to): (Instant, Instant),
    ) -> Option<f64> {
        let over = |from, to| Capacities::without_loss(scenario, from, to);
        if self.is_like_whole(scenario, (from, to)) {
            let Measure { from, to, .. } = scenario.measure;
            return self.lossless.get_or_init(|| all(scenario, over(from, to)))[number][receiver];
        }
        let flow = &scenario.flows[number];
        over(from, to).of_flow(flow, flow.to[receiver])
    }

    /// Whether the min-cuts over a span equal those over the measurement window.
    fn is_like_whole(&self, scenario: &Scenario, span: (Instant, Instant)) -> bool {
        let is_of_link = |event: &Event| matches!(event.action, Action::Link { .. });
        let links_change = || scenario.events.iter().any(is_of_link);
        span == (scenario.measure.from, scenario.measure.to) || !*self.links_change.get_or_init(links_change)
    }

    /// Payload bytes of a span that count as goodput, if `share` of the min-cut towards this receiver can be payload.
    ///
    /// In-order delivery releases bursts, and the first burst of a span may contain bytes that had crossed the network
    /// before it. From the start of the span to any later time no more bytes can have crossed than the links' rates
    /// permit: bytes beyond that had crossed before, and do not count. Likewise, of bytes that are released after the
    /// end of the span, those that cannot all have crossed since had crossed by its end: they count, as otherwise each
    /// window would lack the bytes that are held back at its end. At most `share` of the `arrived` bytes of frames that
    /// links delivered to the receiver in the measurement window are known to have crossed in the span and not before.
    ///
    /// The bound is without loss, since random losses may be fewer than the mean.
    pub(crate) fn counted(
        &self,
        scenario: &Scenario,
        (number, receiver): (FlowId, usize),
        span: (Instant, Instant),
        share: f64,
        (meter, arrived): (&Meter, u64),
    ) -> f64 {
        let delivered = |at| if at < span.1 { meter.delivered_by(at) } else { meter.payload_bytes } as f64;
        // No byte of a flow that begins in the span can have crossed before.
        let begins = meter.started.is_some_and(|started| started >= span.0);
        if begins && meter.completed.is_some_and(|completed| completed <= span.1) {
            return meter.payload_bytes as f64;
        }
        let before = |(at, bound): (Instant, f64)| delivered(at) - bound * share / 8.0;
        let crossed = self.crossed(scenario, number, receiver, span);
        let whole = crossed.last().filter(|(at, _)| *at == span.1);
        let limit = whole.map_or(f64::INFINITY, |(_, bound)| bound * share / 8.0);
        let before = if begins { 0.0 } else { crossed.into_iter().map(before).fold(0.0, f64::max) };
        let released = delivered(span.1) - before;
        let held_back = self.held_back(scenario, (number, receiver), span, share, meter);
        let limit = limit.min(arrived as f64 * share);
        released + held_back.min((limit - released).max(0.0))
    }

    /// Payload bytes that had crossed the network towards a receiver by the end of a span, and were released later;
    /// zero where links change after the start of the span, or if it ends before the measurement window does.
    fn held_back(
        &self,
        scenario: &Scenario,
        (number, receiver): (FlowId, usize),
        span: (Instant, Instant),
        share: f64,
        meter: &Meter,
    ) -> f64 {
        let Measure { from, to, .. } = scenario.measure;
        if span.1 != to || changes(scenario, span.0, Instant::from_nanos(u64::MAX)) {
            return 0.0;
        }
        let Some(rate) = self.lossless_over(scenario, (number, receiver), span) else { return 0.0 };
        let released = (SLICES + 1..=2 * SLICES).map(|slice| {
            let at = from + share_of(to.since(from), slice, SLICES);
            let crossed = rate * share / 8.0 * at.since(to).as_secs_f64();
            meter.delivered_by(at).saturating_sub(meter.payload_bytes) as f64 - crossed
        });
        released.fold(0.0, f64::max)
    }

    /// Bits that can have crossed the network towards a receiver between the start of a span and each of several times
    /// in it, without random loss; empty where the min-cut is unbounded.
    fn crossed(
        &self,
        scenario: &Scenario,
        number: FlowId,
        receiver: usize,
        span: (Instant, Instant),
    ) -> Vec<(Instant, f64)> {
        let Measure { from, to, .. } = scenario.measure;
        let since_start = |at: Instant| at.since(span.0).as_secs_f64();
        let ends = |parts: usize| {
            let end = |part| (from + share_of(to.since(from), part, parts)).min(span.1);
            let mut ends: Vec<Instant> = (1..=parts).map(end).filter(|at| *at > span.0).collect();
            ends.dedup();
            ends.into_iter()
        };
        if !changes(scenario, span.0, span.1) {
            let rate = self.lossless_over(scenario, (number, receiver), span);
            let Some(rate) = rate else { return Vec::new() };
            return ends(SLICES).map(|at| (at, rate * since_start(at))).collect();
        }
        if span != (from, to) {
            let cut = |at| {
                let cut = self.lossless_over(scenario, (number, receiver), (span.0, at))?;
                Some((at, cut * since_start(at)))
            };
            return ends(PARTS).filter_map(cut).collect();
        }
        let cuts = |at| all(scenario, Capacities::without_loss(scenario, from, at));
        let parts = self.parts.get_or_init(|| ends(PARTS).map(cuts).collect());
        let cut = |(at, cuts): (Instant, &Cuts)| Some((at, cuts[number][receiver]? * since_start(at)));
        ends(PARTS).zip(parts).filter_map(cut).collect()
    }
}

/// Whether links change between two times.
fn changes(scenario: &Scenario, from: Instant, to: Instant) -> bool {
    let of_links = scenario.events.iter().filter(|event| matches!(event.action, Action::Link { .. }));
    of_links.map(|event| event.at).any(|at| at > from && at < to)
}

/// Length of the first `part` parts of a duration, of `parts` equal ones.
fn share_of(duration: Duration, part: usize, parts: usize) -> Duration {
    Duration::from_nanos((u128::from(duration.as_nanos()) * part as u128 / parts as u128) as u64)
}

fn all(scenario: &Scenario, mut capacities: Capacities<'_>) -> Cuts {
    (0..scenario.flows.len()).map(|number| of_flow(&mut capacities, scenario, number)).collect()
}

fn of_flow(capacities: &mut Capacities<'_>, scenario: &Scenario, number: FlowId) -> Vec<Option<f64>> {
    let flow = &scenario.flows[number];
    flow.to.iter().map(|&to| capacities.of_flow(flow, to)).collect()
}
