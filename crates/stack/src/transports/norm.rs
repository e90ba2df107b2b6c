//! `norm`: NORM, from one sender to a receiver or to the members of a group.

use hopcast_config::decode::{choice, duration, rate, whole};
use hopcast_core::{Duration, Machine, Rate};
use hopcast_reliable::Subscription;
use hopcast_reliable::norm::wire::{Data, Fec, NodeId, StreamHeader};
use hopcast_reliable::norm::{
    Config, Framing, Join, Proactive, RateControl, ReceiverConfig, SenderConfig, Session,
};

use super::shown;
use super::subscription::{self, Subscribes};
use crate::error::BuildError;
use crate::platform::LowerPort;
use crate::table::{Form, Opt, Options};
use crate::transport::{End, Feedback, GroupMember, GroupTransport, PortKind, Ports, Row, Transport};

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

/// The settings of all members.
#[derive(Clone, Debug, Default)]
struct Norm {
    sender: SenderConfig,
    /// The rate, if it is fixed.
    rate: Option<Rate>,
    /// Whether the sender estimates the number of receivers, which it is told otherwise.
    estimates_group: bool,
    subscription: Subscription,
}

impl Subscribes for Norm {
    fn subscription(&self) -> Subscription {
        self.subscription
    }

    fn subscription_mut(&mut self) -> &mut Subscription {
        &mut self.subscription
    }
}

/// Rates of congestion control. Chosen: a start that libnorm's users know, at which a probe takes some milliseconds; a
/// minimum at which a segment takes a second; and more than any link has.
const START: Rate = Rate::from_bits_per_sec(256_000);
const MIN: Rate = Rate::from_bits_per_sec(12_000);
const MAX: Rate = Rate::from_mbit(100_000);

/// Bytes of the length that is before each message in its stream.
const LENGTH: usize = 2;

static OPTIONS: Options<Norm> = Options(&[
    Opt {
        key: "rate",
        about: "The rate at which it sends, headers of all layers included; unless it is set, what a TCP to the receiver with the \
                worst path would have (RFC 5740 section 5.5.2). Too high, and the excess is lost in queues and repaired.",
        form: Form::Rate,
        set: |norm, node, key| rate(node, key).map(|found| norm.rate = Some(found)),
        show: |norm| norm.rate.map_or_else(|| "a TCP's".to_owned(), |rate| shown(&rate)),
    },
    Opt {
        key: "block",
        about: "Source symbols of a block, 1 to 254. Large blocks need fewer repairs, small ones less arithmetic and less delay.",
        form: Form::Count,
        set: |norm, node, key| whole(node, key, 1..=254).map(|found| norm.sender.source = found as u16),
        show: |norm| shown(&norm.sender.source),
    },
    Opt {
        key: "parity",
        about: "Parity symbols that a block can have, with its source symbols at most 255. None: lost symbols are repeated.",
        form: Form::Count,
        set: |norm, node, key| whole(node, key, 0..=254).map(|found| norm.sender.parity = found as u16),
        show: |norm| shown(&norm.sender.parity),
    },
    Opt {
        key: "proactive",
        about: "Parity that is sent before anybody asks: `adaptive`, as much as the group asks for in any case, or `none`: every \
                repair waits for a request.",
        form: Form::OneOf(&["adaptive", "none"]),
        set: |norm, node, key| {
            norm.sender.proactive = match choice(node, key, &["adaptive", "none"])?.0 {
                "none" => Proactive::Fixed(0),
                _ => Proactive::Adaptive,
            };
            Ok(())
        },
        show: |norm| {
            if norm.sender.proactive == Proactive::Adaptive { "adaptive" } else { "none" }.to_owned()
        },
    },
    Opt {
        key: "group-size",
        about: "The number of receivers that their back-off is made for: `told`, that of the flow, or `estimated` from their requests. \
                Too small a number, and their requests come at once; too large, and they wait without cause.",
        form: Form::OneOf(&["told", "estimated"]),
        set: |norm, node, key| {
            norm.estimates_group = choice(node, key, &["told", "estimated"])?.0 == "estimated";
            Ok(())
        },
        show: |norm| if norm.estimates_group { "estimated" } else { "told" }.to_owned(),
    },
    Opt {
        key: "grtt",
        about: "Round-trip time of the group until a receiver has answered. Too short costs a few requests, too long delays the \
                first repairs.",
        form: Form::Duration,
        set: |norm, node, key| {
            duration(node, key).map(|found| norm.sender.grtt = found.max(Duration::from_millis(1)))
        },
        show: |norm| shown(&norm.sender.grtt),
    },
    subscription::order(),
    subscription::join(),
    subscription::reliable(),
]);

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
            ..self.sender.clone()
        };
        let receiver = ReceiverConfig {
            unicast_feedback: true,
            framing: Framing::Detect,
            ..ReceiverConfig::from(self.subscription)
        };
        let config = Config {
            node: NodeId(end.node as u32 + 1),
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

    fn among_members(&self) -> Option<&dyn GroupTransport> {
        Some(self)
    }
}

impl GroupTransport for Norm {
    fn member(&self, member: GroupMember) -> Box<dyn Machine> {
        let GroupMember { memory, message, others, mut random, .. } = member;
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
