//! Frames over each link alone.

use std::collections::BTreeMap;

use hopcast_core::{Buffer, Instant, Seed};
use hopcast_link::{Attachment, Change, Event, Link};
use hopcast_stack::network::{LinkId, NetworkPlan};
use hopcast_wire::ethernet::{self, Header, Mac};

use super::{Check, Findings, Stage, TRIES, bounded};
use crate::scenario::model::{Action, Scenario};

/// The type of the frames: one that is there for local experiments (IEEE 802, clause 9.2.3).
const ETHER_TYPE: u16 = 0x88b5;
/// Payload of a small frame, in bytes: Ethernet's least (IEEE 802.3 section 3.2.7).
const SMALL: usize = 46;

/// Maximum number of directions of links that are checked. Chosen: those of networks of thousands of hosts are, in
/// seconds; with more, the report takes hundreds of megabytes.
const MAX_DIRECTIONS: usize = 50_000;

/// Checks each direction of each link, as it is at `at`.
pub(super) fn check(scenario: &Scenario, at: Instant, findings: &mut Findings) {
    let plan = NetworkPlan::of(scenario.network());
    let changes = Changes::of(scenario);
    for of_link in chosen(scenario, findings).chunk_by(|one, other| one.0 == other.0) {
        let number = of_link[0].0;
        // One model for all: an idle link does with a frame what a new one does.
        let (mut model, mut now) = (changes.model(scenario, &plan, number), at);
        for &(_, from) in of_link {
            let to = nearest(&mut *model, now, from);
            let mtu = changes.mtu(scenario, number, from);
            let direction = LinkDirection { link: number, from, to, mtu };
            for size in direction.sizes() {
                let mut check = direction.check(scenario, size);
                offer(&mut *model, &mut now, direction.frame(size), (from, to), &mut check);
                let failed = !check.passed;
                findings.checks.push(check);
                if failed {
                    break;
                }
            }
        }
    }
}

/// The directions of links to check, each by its link and the end that sends.
fn chosen(scenario: &Scenario, findings: &mut Findings) -> Vec<(LinkId, Attachment)> {
    let links = scenario.links.iter().enumerate();
    let all: Vec<(LinkId, Attachment)> =
        links.flat_map(|(number, spec)| (0..spec.ends.len()).map(move |from| (number, from))).collect();
    let count = all.len();
    bounded(all, (count, MAX_DIRECTIONS), Stage::Links, findings)
}

/// The directions of links to check, as they are after all events.
pub(super) fn directions(scenario: &Scenario, findings: &mut Findings) -> Vec<LinkDirection> {
    let plan = NetworkPlan::of(scenario.network());
    let changes = Changes::of(scenario);
    let direction = |(link, from): (LinkId, Attachment)| {
        let now = changes.of_link(link).last().map_or(Instant::ZERO, |&(at, ..)| at);
        let to = nearest(&mut *changes.model(scenario, &plan, link), now, from);
        LinkDirection { link, from, to, mtu: changes.mtu(scenario, link, from) }
    };
    chosen(scenario, findings).into_iter().map(direction).collect()
}

/// A direction of a link, from one of its ends to the next.
#[derive(Clone, Copy, Debug)]
pub struct LinkDirection {
    /// The link.
    pub link: LinkId,
    /// The end that sends.
    pub from: Attachment,
    /// The end that is to receive.
    pub to: Attachment,
    /// Maximum length of a packet, in bytes.
    pub mtu: u32,
}

impl LinkDirection {
    /// The payloads of the frames to send, in bytes: of a small one, and of one that fills the MTU.
    pub fn sizes(&self) -> [usize; 2] {
        [SMALL, self.mtu as usize]
    }

    /// The check by frames with this payload, of which none has been sent.
    pub fn check(&self, scenario: &Scenario, size: usize) -> Check {
        let spec = &scenario.links[self.link];
        Check {
            stage: Stage::Links,
            from: scenario.nodes[spec.ends[self.from]].name.clone(),
            to: scenario.nodes[spec.ends[self.to]].name.clone(),
            over: format!("{}, frames of {} bytes", spec.name, size + ethernet::HEADER),
            passed: false,
            sent: 0,
            answered_ms: None,
            reasons: Vec::new(),
        }
    }

    /// A frame with this payload.
    pub fn frame(&self, size: usize) -> Buffer {
        let mut frame = Buffer::copy_from(&vec![0; size]);
        let [destination, source] = self.macs();
        ethernet::prepend(&mut frame, Header { destination, source, ether_type: ETHER_TYPE });
        frame
    }

    /// The Ethernet addresses of the end that is to receive, and of the one that sends.
    pub fn macs(&self) -> [Mac; 2] {
        [self.to, self.from].map(|end| NetworkPlan::mac(self.link, end))
    }
}

/// The changes of each link by the events of a scenario, in their order.
pub(super) struct Changes<'s>(BTreeMap<LinkId, Vec<Changed<'s>>>);

/// A change at an instant, of what one end sends or of all.
type Changed<'s> = (Instant, Option<Attachment>, &'s Change);

impl<'s> Changes<'s> {
    pub(super) fn of(scenario: &'s Scenario) -> Self {
        let mut changes: BTreeMap<LinkId, Vec<Changed<'_>>> = BTreeMap::new();
        for event in &scenario.events {
            if let Action::Link { link, from, change } = &event.action {
                changes.entry(*link).or_default().push((event.at, *from, change));
            }
        }
        Self(changes)
    }

    fn of_link(&self, link: LinkId) -> &[Changed<'s>] {
        self.0.get(&link).map_or(&[], |changes| changes)
    }

    /// The model of a link as the events have made it.
    fn model(&self, scenario: &Scenario, plan: &NetworkPlan, link: LinkId) -> Box<dyn Link + Send> {
        let mut model = plan.model(scenario.network(), link, false, Seed::new(scenario.seed, 0));
        model.report_sent(true);
        for &(at, from, change) in self.of_link(link) {
            model.change(at, from, change);
        }
        model
    }

    /// Maximum length of a packet that an end of a link sends after these events, in bytes.
    pub(super) fn mtu(&self, scenario: &Scenario, link: LinkId, end: Attachment) -> u32 {
        let changed = self.of_link(link).iter().rev().find_map(|&(_, from, change)| match change {
            Change::Mtu(mtu) if from.is_none_or(|from| from == end) => Some(*mtu),
            _ => None,
        });
        changed.unwrap_or_else(|| scenario.links[link].direction(end).mtu)
    }
}

/// The end that frames of `from` are checked at: the next one that it reaches, or else the next.
fn nearest(model: &mut dyn Link, now: Instant, from: Attachment) -> Attachment {
    let ends = model.attachments();
    let others = (1..ends).map(|step| (from + step) % ends);
    others
        .clone()
        .find(|&to| model.quality(now, from, to).is_some())
        .or(others.clone().next())
        .unwrap_or(from)
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
