//! `norm`: NORM, from one sender to a receiver or to the members of a group.

mod options;

use hopcast_core::{Machine, Rate};
use hopcast_reliable::norm::wire::{Data, Fec, NodeId, StreamHeader};
use hopcast_reliable::norm::{Config, Framing, Join, RateControl, ReceiverConfig, SenderConfig, Session};

use self::options::{Norm, OPTIONS};
use crate::error::BuildError;
use crate::platform::LowerPort;
use crate::transport::{
    End, Feedback, GroupMember, GroupService, GroupTransport, PortKind, Ports, Row, Transport,
};

pub(super) static NORM: Row = Row {
    name: "norm",
    about: "streams, datagrams in order and whole messages, to one or a group, repaired on request by parity (NORM, RFC 5740)",
    offers: Ports(&[PortKind::Stream, PortKind::Datagram, PortKind::Message]),
    groups: true,
    feedback: Feedback::EndToEnd,
    coded: true,
    two_way_streams: false,
    options: || OPTIONS.docs(&Norm::default()),
    read: |row, options| OPTIONS.layer(row, options, Norm::default()),
    ..Row::BASE
};

/// Rates of congestion control. Chosen: a start that libnorm's users know, at which a probe takes some milliseconds; a
/// minimum at which a segment takes a second; and more than any link has.
const START: Rate = Rate::from_bits_per_sec(256_000);
const MIN: Rate = Rate::from_bits_per_sec(12_000);
const MAX: Rate = Rate::from_mbit(100_000);

/// Bytes of the length that is before each message in its stream.
const LENGTH: usize = 2;

impl Transport for Norm {
    fn overhead(&self, _: u64) -> u64 {
        (Data::overhead(Fec::ReedSolomon8, true) + StreamHeader::LEN + LENGTH) as u64
    }

    fn repair_overhead(&self) -> u64 {
        // Symbols of a file or message begin with no header of a stream, and few bear the layout of their object.
        self.overhead(0) - Data::overhead(Fec::ReedSolomon8, false) as u64
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let flow = end.flow();
        let mut random = end.random();
        let (segment, rate) = (segment(end.room()), rate_control(self.rate));
        // Of two members each sends to the other; a group has one sender.
        let is_pair = flow.spec.group.is_none();
        let sender = SenderConfig {
            segment,
            rate,
            overhead: flow.overhead(end.depth + 1) as u16,
            group_size: (!self.estimates_group).then_some(flow.spec.to.len() as u64),
            unicast_feedback: flow.spec.to.len() > 1,
            slack: flow.slack,
            ackers: match (self.acknowledged, end.is_sender()) {
                (false, _) => Vec::new(),
                (true, true) => flow.spec.to.iter().copied().map(member).collect(),
                (true, false) => vec![member(flow.spec.from)],
            },
            ..self.sender.clone()
        };
        let usual = ReceiverConfig::from(self.subscription);
        let receiver = ReceiverConfig {
            unicast_feedback: true,
            framing: Framing::Detect,
            robust: self.sender.robust,
            buffer: self.receive_buffer.unwrap_or(usual.buffer),
            ..usual
        };
        let config = Config {
            node: member(end.node),
            instance: random.bits() as u16,
            local: end.ends.local,
            group: end.ends.remote,
            sender: (is_pair || end.is_sender()).then_some(sender),
            receiver: (is_pair || !end.is_sender()).then_some(receiver),
            unit_credit: end.depth == 0 && flow.is_granted(),
        };
        end.attach("norm", Box::new(Session::new(config, random))).map(Some)
    }

    fn grants_datagrams(&self) -> bool {
        true
    }

    fn among_members(&self) -> Option<GroupService<'_>> {
        Some(GroupService::Direct(self))
    }
}

impl GroupTransport for Norm {
    fn member(&self, member: GroupMember) -> Box<dyn Machine> {
        let GroupMember { memory, message, ref others, mut random, .. } = member;
        let others = others.len();
        let (senders, half) = (others.max(1), memory / 2);
        let sender = SenderConfig {
            segment: segment(member.datagram),
            rate: rate_control(member.rate.or(self.rate)),
            overhead: member.overhead,
            group_size: Some(others as u64),
            unicast_feedback: others > 1,
            slack: member.slack,
            buffer: half,
            objects: usize::try_from(half / message.max(1))
                .unwrap_or(usize::MAX)
                .clamp(MIN_OBJECTS, MAX_OBJECTS),
            ..self.sender.clone()
        };
        let receiver = ReceiverConfig {
            unicast_feedback: true,
            framing: Framing::Detect,
            // A member that is back asks for what it lacks by itself: what is older is of no use to it.
            join: Join::Now,
            senders,
            buffer: half / senders as u64,
            max_object: message,
            ..ReceiverConfig::default()
        };
        let config = Config {
            node: NodeId(member.number),
            instance: random.bits() as u16,
            local: member.local,
            group: member.group,
            sender: Some(sender),
            receiver: Some(receiver),
            unit_credit: false,
        };
        Box::new(Session::new(config, random))
    }
}

/// Objects of a member of a group that are held for repairs, however long they are. Chosen: fewer are no use on a path
/// with delay, more are memory.
const MIN_OBJECTS: usize = 4;
const MAX_OBJECTS: usize = 1024;

/// The identity of the member on a node.
fn member(node: usize) -> NodeId {
    NodeId(node as u32 + 1)
}

/// Bytes of a symbol in a datagram of `room` bytes.
fn segment(room: u16) -> u16 {
    room - (Data::overhead(Fec::ReedSolomon8, true) + StreamHeader::LEN) as u16
}

/// How a sender's rate is set, where the file has this one.
fn rate_control(rate: Option<Rate>) -> RateControl {
    match rate {
        Some(rate) => RateControl::Fixed(rate),
        None => RateControl::Tcp { initial: START, min: MIN, max: MAX },
    }
}
