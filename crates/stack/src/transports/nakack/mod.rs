//! `nakack`: the stack of JGroups 2.12 around `pbcast.NAKACK`, from one sender to a receiver or to the members of a
//! group.

mod options;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hopcast_core::{Duration, Instant, Machine};
use hopcast_reliable::nakack::wire::{
    DATA_OVERHEAD, MAX_MEMBERS, MAX_MEMBERS_IPV6, MemberId, REPAIR_OVERHEAD,
};
use hopcast_reliable::nakack::{Config, Limits, Member, Stack, Start};

use self::options::{Nakack, OPTIONS};
use crate::error::BuildError;
use crate::network::NodeId;
use crate::platform::LowerPort;
use crate::transport::{
    End, Feedback, FlowPlan, GroupMember, GroupService, GroupTransport, PortKind, Ports, Row, Transport,
};

pub(super) static NAKACK: Row = Row {
    name: "nakack",
    about: "streams, datagrams and whole messages in order, to at most 64 with views, repeated on request (NAKACK of JGroups 2.12)",
    offers: Ports(&[PortKind::Stream, PortKind::Datagram, PortKind::Message]),
    groups: true,
    feedback: Feedback::EndToEnd,
    two_way_streams: false,
    options: || OPTIONS.docs(&Nakack::default()),
    read: |row, options| OPTIONS.layer(row, options, Nakack::default()),
    ..Row::BASE
};

impl Transport for Nakack {
    fn overhead(&self, _: u64) -> u64 {
        REPAIR_OVERHEAD as u64
    }

    fn repeats(&self) -> bool {
        true
    }

    fn repair_overhead(&self) -> u64 {
        (REPAIR_OVERHEAD - DATA_OVERHEAD) as u64
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let flow = end.flow();
        let random = end.random();
        let fragment = end.room().saturating_sub(REPAIR_OVERHEAD as u16);
        let config = Config {
            member: member(end.node),
            local: end.ends.local,
            group: end.ends.remote,
            addresses: BTreeMap::new(),
            // Only the flow's sender has the group's address.
            multicasts: flow.spec.group.is_none() || end.is_sender(),
            presence: presence(flow, end.node),
            start: if self.is_told { Start::Told(first_members(flow)) } else { Start::Discovered },
            expects: first_members(flow).len(),
            hears_itself: false,
            unit_credit: end.depth == 0 && flow.is_granted(),
            slack: flow.slack,
            overhead: flow.overhead(end.depth + 1) as u16,
            limits: Limits::default(),
            stack: Stack {
                fragment: self.fragment.map_or(fragment, |asked| asked.min(fragment)),
                ..self.stack.clone()
            },
        };
        end.attach("nakack", Box::new(Member::new(config, random))).map(Some)
    }

    fn grants_datagrams(&self) -> bool {
        true
    }

    fn max_members(&self, ipv6: bool) -> Option<usize> {
        Some(if ipv6 { MAX_MEMBERS_IPV6 } else { MAX_MEMBERS })
    }

    fn among_members(&self) -> Option<GroupService<'_>> {
        Some(GroupService::Direct(self))
    }
}

impl GroupTransport for Nakack {
    fn member(&self, member: GroupMember) -> Box<dyn Machine> {
        let GroupMember { memory, ref others, mut random, .. } = member;
        // What each member sent and not all have acknowledged is held by all of them.
        let share = memory / 2 / (others.len() as u64 + 1);
        let fragment = member.datagram.saturating_sub(REPAIR_OVERHEAD as u16);
        let config = Config {
            member: MemberId { node: member.number, run: random.bits() as u16 },
            local: member.local,
            group: member.group,
            addresses: others.iter().copied().collect(),
            multicasts: true,
            presence: vec![(Instant::ZERO, None)],
            start: Start::Discovered,
            // A member that comes later asks for what it lacks by itself.
            expects: 2,
            hears_itself: false,
            unit_credit: false,
            slack: member.slack,
            overhead: member.overhead,
            limits: Limits { waiting: memory / 2, message: member.message },
            stack: Stack {
                rate: member.rate.unwrap_or(self.stack.rate),
                fragment: self.fragment.map_or(fragment, |asked| asked.min(fragment)),
                credits: self.stack.credits.min(share),
                buffer: self.stack.buffer.min(share),
                heartbeat: self.stack.heartbeat.min(HEARTBEAT),
                suspect_after: self.stack.suspect_after.min(SUSPECT_AFTER),
                verify: self.stack.verify.min(VERIFY),
                ..self.stack.clone()
            },
        };
        Box::new(Member::new(config, random))
    }
}

/// Maximum times of a member among sites, whatever its options: pieces that a site that is gone holds up are sent again
/// after 5 s. Chosen: of six heartbeats in a row, at a loss of 30 %, all are lost once in 1,400 times, and then it is
/// asked.
const HEARTBEAT: Duration = Duration::from_millis(500);
const SUSPECT_AFTER: Duration = Duration::from_secs(3);
const VERIFY: Duration = Duration::from_millis(1500);

/// The members of the first view: the sender and those that receive from the start on.
fn first_members(flow: &FlowPlan<'_>) -> Vec<(MemberId, SocketAddr)> {
    let is_there =
        |&&node: &&NodeId| presence(flow, node).first().is_some_and(|&(from, _)| from == Instant::ZERO);
    let receivers = flow.spec.to.iter().filter(is_there);
    let receivers = receivers.map(|&node| (member(node), flow.sink(node).local));
    let sender: (MemberId, SocketAddr) = (member(flow.spec.from), flow.source().local);
    std::iter::once(sender).chain(receivers).collect()
}

/// When a node is a member, from and until: always, but for one that joins or leaves the group by the file's events.
fn presence(flow: &FlowPlan<'_>, node: NodeId) -> Vec<(Instant, Option<Instant>)> {
    let member = flow.spec.group.and_then(|group| group.member(node)).filter(|_| node != flow.spec.from);
    member.map_or_else(|| vec![(Instant::ZERO, None)], |member| member.spans.clone())
}

/// The identity of the member on a node.
fn member(node: NodeId) -> MemberId {
    MemberId { node: node as u32 + 1, run: 1 }
}
