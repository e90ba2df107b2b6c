//! Frames over each link alone.

use std::collections::BTreeMap;

use hopcast_core::{Buffer, Instant, Seed};
use hopcast_link::{Attachment, Change, Event, Link};
use hopcast_stack::network::{LinkId, NetworkPlan};
use hopcast_wire::ethernet::{self, Header};

use super::{Check, Stage, TRIES};
use crate::scenario::model::{Action, Scenario};

/// The type of the frames: one that is there for local experiments (IEEE 802, clause 9.2.3).
const ETHER_TYPE: u16 = 0x88b5;
/// Payload of a small frame, in bytes: Ethernet's least (IEEE 802.3 section 3.2.7).
const SMALL: usize = 46;

/// Checks each direction of each link, as it is at `at`.
pub(super) fn check(scenario: &Scenario, at: Instant) -> Vec<Check> {
    let plan = NetworkPlan::of(scenario.network());
    let mut checks = Vec::new();
    for (number, spec) in scenario.links.iter().enumerate() {
        // One model for all: an idle link does with a frame what a new one does.
        let (mut model, mut now) = (model(scenario, &plan, number), at);
        for from in 0..spec.ends.len() {
            let to = nearest(&*model, from);
            for size in [SMALL, mtu(scenario, number, from) as usize] {
                let mut check = Check {
                    stage: Stage::Links,
                    from: scenario.nodes[spec.ends[from]].name.clone(),
                    to: scenario.nodes[spec.ends[to]].name.clone(),
                    over: format!("{}, frames of {} bytes", spec.name, size + ethernet::HEADER),
                    passed: false,
                    sent: 0,
                    answered_ms: None,
                    reasons: Vec::new(),
                };
                offer(&mut *model, &mut now, frame(number, (from, to), size), (from, to), &mut check);
                let failed = !check.passed;
                checks.push(check);
                if failed {
                    break;
                }
            }
        }
    }
    checks
}

/// The model of a link as the events have made it.
fn model(scenario: &Scenario, plan: &NetworkPlan, number: LinkId) -> Box<dyn Link + Send> {
    let mut model = plan.model(scenario.network(), number, false, Seed::new(scenario.seed, 0));
    model.report_sent(true);
    for event in &scenario.events {
        if let Action::Link { link, from, change } = &event.action
            && *link == number
        {
            model.change(event.at, *from, change);
        }
    }
    model
}

/// Maximum length of a packet that an end of a link sends after these events, in bytes.
pub(super) fn mtu(scenario: &Scenario, number: LinkId, end: Attachment) -> u32 {
    let changed = scenario.events.iter().rev().find_map(|event| match &event.action {
        Action::Link { link, from, change: Change::Mtu(mtu) }
            if *link == number && from.is_none_or(|from| from == end) =>
        {
            Some(*mtu)
        }
        _ => None,
    });
    changed.unwrap_or_else(|| scenario.links[number].direction(end).mtu)
}

/// The end that frames of `from` are checked at: the next one that it reaches, or else the next.
fn nearest(model: &dyn Link, from: Attachment) -> Attachment {
    let ends = model.attachments();
    let others = (1..ends).map(|step| (from + step) % ends);
    others.clone().find(|&to| model.quality(from, to).is_some()).or(others.clone().next()).unwrap_or(from)
}

fn frame(link: LinkId, (from, to): (Attachment, Attachment), size: usize) -> Buffer {
    let mut frame = Buffer::copy_from(&vec![0; size]);
    let (destination, source) = (NetworkPlan::mac(link, to), NetworkPlan::mac(link, from));
    ethernet::prepend(&mut frame, Header { destination, source, ether_type: ETHER_TYPE });
    frame
}

/// Offers a frame again and again, one at a time, until one arrives.
fn offer(
    model: &mut dyn Link,
    now: &mut Instant,
    frame: Buffer,
    (from, to): (Attachment, Attachment),
    check: &mut Check,
) {
    let mut reasons = BTreeMap::new();
    while check.sent < TRIES && !check.passed {
        check.sent += 1;
        model.offer(*now, from, frame.clone());
        loop {
            while let Some(event) = model.poll(*now) {
                match event {
                    Event::Delivered { to: at, overheard: false, .. } if at == to => check.passed = true,
                    Event::Dropped { to: missed, reason, .. } if missed.is_none_or(|missed| missed == to) => {
                        *reasons.entry(reason.to_string()).or_insert(0_u64) += 1;
                    }
                    _ => {}
                }
            }
            let Some(next) = model.deadline() else { break };
            *now = (*now).max(next);
            model.wake(*now);
        }
    }
    if !check.passed {
        let mut counted: Vec<(u64, String)> =
            reasons.into_iter().map(|(reason, count)| (count, reason)).collect();
        counted.sort_by(|one, other| other.cmp(one));
        check.reasons = counted.into_iter().map(|(count, reason)| format!("{count} {reason}")).collect();
        if check.reasons.is_empty() {
            check.reasons.push("nothing leaves: the rate is 0".to_owned());
        }
    }
}
