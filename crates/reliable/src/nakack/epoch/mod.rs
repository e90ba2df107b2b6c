//! The work of members within one view: they send, repair, order and acknowledge messages whose numbers begin anew with
//! each view. What happens at its end is GMS's business: the view is frozen, what is missing is fetched up to a number
//! for each member, and everything up to there is delivered.

mod deliver;
mod receive;
mod send;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use hopcast_core::{Duration, Instant, Stream};

use super::assembly::{Assembly, Unit};
use super::config::{Config, Ordering, Stack};
use super::credit::Credits;
use super::order::Order;
use super::requests::{Heard, Requests};
use super::stability::Stability;
use super::window::Window;
use super::wire::{MemberId, View};
use crate::round_trip::RoundTrip;
use crate::statistics;

pub(super) use deliver::Delivery;
pub(super) use send::ToSend;

/// The state of a view at one of its members.
#[derive(Debug)]
pub(super) struct Epoch {
    stack: Stack,
    view: View,
    tag: u32,
    own: u16,
    hears_itself: bool,
    /// Whether new messages are held back, as members are still missing.
    holds_back: bool,
    /// Number of each member's first message.
    first: u64,
    windows: Vec<Window>,
    assemblies: Vec<Assembly>,
    heard: Vec<Heard>,
    requests: Vec<Requests>,
    stability: Stability,
    credits: Credits,
    order: Order,
    /// Of the coordinator's stream, the number up to which its order was read.
    ordered: u64,
    /// The number of this member's last transmission.
    transmission: u64,
    /// Messages that others have asked for: ranks and numbers.
    asked: BTreeSet<(u16, u64)>,
    /// Repairs since the last new message.
    repairs_in_row: u32,
    end: Option<End>,
    announcing: Announcing,
    /// When to say what this member has, because that was asked for or is worth it.
    digest_due: Option<Instant>,
    /// Whether others are to be asked for their digests now.
    must_ask: bool,
    /// Bytes that have come since this member's last digest, and when that was.
    unsaid: u64,
    said: Instant,
    last_sent: Instant,
    random: Stream,
}

/// The end of a view.
#[derive(Debug)]
struct End {
    /// For each member, the number up to which its messages are delivered, and the rank of one that has them.
    targets: Vec<(u64, u16)>,
    /// Whether the targets are those of the leader, and not just what this member had when the view was frozen.
    is_fetching: bool,
}

/// Announcements of a sender that has nothing to send: how far it has come, until all have acknowledged.
#[derive(Debug)]
struct Announcing {
    due: Option<Instant>,
    /// Announcements since something was sent.
    step: u32,
    /// The last one, and when it was sent, until it was answered.
    last: Option<(u64, Instant)>,
    round_trip: RoundTrip,
}

/// Counters of an epoch.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) traffic: statistics::Traffic,
    pub(super) requests: statistics::Requests,
    pub(super) deliveries: statistics::Deliveries,
    /// Repairs of other members' messages.
    pub(super) repaired_for_others: u64,
    /// Messages that came twice.
    pub(super) duplicates: u64,
    /// Packets of a view that is not this one, or that say what cannot be.
    pub(super) strange: u64,
}

impl Epoch {
    /// A view, in which nothing was sent.
    pub(super) fn new(now: Instant, view: View, config: &Config, first: u64, random: Stream) -> Self {
        let (members, stack) = (view.members.len(), &config.stack);
        Self {
            stack: stack.clone(),
            tag: view.id.tag(),
            own: view.rank(config.member).unwrap_or(0),
            hears_itself: config.hears_itself,
            holds_back: false,
            first,
            windows: (0..members).map(|_| Window::new(first)).collect(),
            assemblies: (0..members).map(|_| Assembly::new(config.limits.message)).collect(),
            heard: (0..members).map(|_| Heard::default()).collect(),
            requests: (0..members).map(|_| Requests::new()).collect(),
            stability: Stability::new(members, first, now),
            credits: Credits::new(members, stack.credits),
            order: Order::new(members, first),
            ordered: first,
            transmission: 0,
            asked: BTreeSet::new(),
            repairs_in_row: 0,
            end: None,
            announcing: Announcing {
                due: None,
                step: 0,
                last: None,
                round_trip: RoundTrip::new(FIRST_ANNOUNCED),
            },
            digest_due: None,
            must_ask: false,
            unsaid: 0,
            said: now,
            last_sent: now,
            view,
            random,
        }
    }

    pub(super) const fn view(&self) -> &View {
        &self.view
    }

    pub(super) const fn tag(&self) -> u32 {
        self.tag
    }

    /// Holds back new messages, or does no longer.
    pub(super) const fn hold_back(&mut self, is_held: bool) {
        self.holds_back = is_held;
    }

    /// Freezes the view: what is there now is all that will be, but for what the leader has members fetch.
    pub(super) fn freeze(&mut self) {
        let targets = (0..self.windows.len()).map(|rank| (self.has(rank), self.own)).collect();
        self.end = Some(End { targets, is_fetching: false });
        self.asked.clear();
    }

    /// Whether the view is at its end.
    pub(super) const fn is_frozen(&self) -> bool {
        self.end.is_some()
    }

    /// Numbers up to which this member has all messages of each, for the leader; their lowest 32 bits.
    pub(super) fn digest(&self) -> Vec<u32> {
        (0..self.windows.len()).map(|rank| self.has(rank) as u32).collect()
    }

    fn has(&self, rank: usize) -> u64 {
        self.windows[rank].contiguous().min(self.limit(rank))
    }

    /// The number up to which messages of a member are delivered.
    fn limit(&self, rank: usize) -> u64 {
        self.end.as_ref().map_or(u64::MAX, |end| end.targets[rank].0)
    }

    /// The leader says up to where messages are to be fetched, and from whom. False if that makes no sense here.
    pub(super) fn fetch(&mut self, now: Instant, targets: &[(u32, MemberId)]) -> bool {
        let members = self.windows.len();
        if self.end.is_none() || targets.len() != members {
            return false;
        }
        let in_full = |(rank, &(low, holder)): (usize, &(u32, MemberId))| {
            let number = self.windows[rank].in_full(low);
            // What was said to be there before stays there.
            let number = number.max(self.has(rank)).min(self.windows[rank].base() + super::window::SPAN);
            self.view.rank(holder).map(|holder| (number, holder))
        };
        let Some(targets) = targets.iter().enumerate().map(in_full).collect::<Option<Vec<_>>>() else {
            return false;
        };
        for (rank, &(number, _)) in targets.iter().enumerate() {
            self.windows[rank].learn(number);
            if self.windows[rank].contiguous() < number {
                self.requests[rank].complete();
                self.requests[rank].missing(now, &self.heard[rank], true);
            }
        }
        self.end = Some(End { targets, is_fetching: true });
        true
    }

    /// Whether all is there that is to be fetched.
    pub(super) fn is_ready(&self) -> bool {
        self.end.as_ref().is_some_and(|end| {
            let has = |(window, target): (&Window, &(u64, u16))| window.contiguous() >= target.0;
            end.is_fetching && self.windows.iter().zip(&end.targets).all(has)
        })
    }

    /// A receiver gives credit.
    pub(super) fn credit(&mut self, from: MemberId, bytes: u64) {
        if let Some(rank) = self.view.rank(from) {
            self.credits.given(rank, bytes);
        }
    }

    /// Members that have acknowledged nothing for too long of what this one has sent.
    pub(super) fn stalled(&mut self, now: Instant) -> Vec<MemberId> {
        let sent = self.windows[usize::from(self.own)].known();
        let (own, after) = (self.own, self.stack.stalled_after);
        // Before that they are asked again and again: at a loss of a third, three answers in a row are lost by chance.
        self.must_ask = self.stability.stalled(now, own, sent, after / 2).iter().any(|&rank| rank != own);
        let stalled = self.stability.stalled(now, own, sent, after);
        let others = stalled.into_iter().filter(|&rank| rank != own);
        others.map(|rank| self.view.members[usize::from(rank)].0).collect()
    }

    /// Whether a member lacks messages of another that this one has, as far as it has said.
    pub(super) fn lags(&self, member: MemberId, of: MemberId) -> bool {
        let (Some(member), Some(of)) = (self.view.rank(member), self.view.rank(of)) else { return false };
        self.stability.has(member, of) < self.windows[usize::from(of)].contiguous()
    }

    /// Bytes that are held of all members' messages.
    pub(super) fn held(&self) -> u64 {
        self.windows.iter().map(Window::bytes).sum::<u64>()
            + self.assemblies.iter().map(Assembly::bytes).sum::<u64>()
    }

    /// Number up to which all of this member's own messages are at all members.
    pub(super) fn is_stable(&self) -> bool {
        self.stability.stable(self.own) >= self.windows[usize::from(self.own)].known()
    }

    const fn is_total(&self) -> bool {
        matches!(self.stack.order, Ordering::Total)
    }

    /// Whether this member says the order.
    const fn is_sequencer(&self) -> bool {
        self.is_total() && self.own == 0
    }

    #[cfg(test)]
    pub(super) fn state(&self) -> String {
        let Self { windows, stability, order, ordered, announcing, end, credits, requests, .. } = self;
        let numbers =
            |window: &Window| (window.base(), window.contiguous(), window.known(), window.delivered());
        let windows: Vec<_> = windows.iter().map(numbers).collect();
        format!(
            "{windows:?} {stability:?} {order:?} {ordered} {announcing:?} {end:?} {credits:?} {requests:?}"
        )
    }

    /// Of each member, the first number that is held, that up to which all is there, and that which was sent. For
    /// tests.
    #[cfg(test)]
    pub(super) fn numbers(&self, rank: u16) -> (u64, u64) {
        let window = &self.windows[usize::from(rank)];
        (window.base(), window.contiguous())
    }
}

/// Time from the last packet to the first announcement before a round trip was measured. Chosen: a local network's
/// round trip, or two.
const FIRST_ANNOUNCED: Duration = Duration::from_millis(10);

/// A whole unit and its sender's rank.
type Whole = (u16, Unit);
