//! `pgm`: PGM, from one source to a receiver or to the members of a group.

mod options;

use hopcast_core::{Machine, Rate, Stream};
use hopcast_reliable::pgm::wire::Tsi;
use hopcast_reliable::pgm::{Config, Framing, Join, RateControl, ReceiverConfig, Session, SourceConfig};

use self::options::{OPTIONS, Pgm};
use crate::error::BuildError;
use crate::platform::LowerPort;
use crate::transport::{
    End, Feedback, GroupMember, GroupService, GroupTransport, PortKind, Ports, Row, Transport,
};

pub(super) static PGM: Row = Row {
    name: "pgm",
    about: "streams, datagrams, whole messages, to one or a group, repaired on request by repetition or parity (PGM, RFC 3208)",
    offers: Ports(&[PortKind::Stream, PortKind::Datagram, PortKind::Message]),
    groups: true,
    feedback: Feedback::EndToEnd,
    coded: true,
    two_way_streams: false,
    options: || OPTIONS.docs(&Pgm::default()),
    read: |row, options| OPTIONS.layer(row, options, Pgm::default()),
    ..Row::BASE
};

/// Maximum rate of congestion control: more than any link has.
const MAX: Rate = Rate::from_mbit(100_000);
/// Data-destination port of all members: OpenPGM's default.
const PORT: u16 = 7500;
/// Length of IPv4's header.
const IPV4: u64 = 20;

impl Pgm {
    /// The settings of a source, wherever it is.
    fn source(&self) -> SourceConfig {
        SourceConfig {
            rate: self.rate.map_or(RateControl::Pgmcc { max: MAX }, RateControl::Fixed),
            framing: if self.is_plain { Framing::Plain } else { Framing::Ours },
            ..self.source.clone()
        }
    }
}

impl Transport for Pgm {
    fn overhead(&self, ip: u64) -> u64 {
        let (data, parity) = self.source().overhead(ip > IPV4);
        u64::from(data + parity)
    }

    fn repair_overhead(&self) -> u64 {
        self.source().overhead(false).1.into()
    }

    fn repeats(&self) -> bool {
        self.source.parity == 0
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let flow = end.flow();
        let mut random = end.random();
        // Of two members each sends to the other; a group has one source.
        let is_pair = flow.spec.group.is_none();
        let source = SourceConfig {
            packet: end.room(),
            overhead: flow.overhead(end.depth + 1) as u16,
            slack: flow.slack,
            ..self.source()
        };
        let receiver = ReceiverConfig {
            group_size: flow.spec.to.len() as u64,
            window: self.receiver.window,
            backoff: self.receiver.backoff,
            gather: self.receiver.gather,
            retries: self.receiver.retries,
            ..ReceiverConfig::from(self.subscription)
        };
        let config = Config {
            session: session(end.node, &mut random),
            port: PORT,
            local: end.ends.local,
            // Requests name the group, by which network elements know whom to confirm and repair.
            group: if is_pair { end.ends.remote } else { flow.source().remote },
            number: None,
            source: (is_pair || end.is_sender()).then_some(source),
            receiver: (is_pair || !end.is_sender()).then_some(receiver),
            unit_credit: end.depth == 0 && flow.is_granted(),
        };
        end.attach("pgm", Box::new(Session::new(config, random))).map(Some)
    }

    fn grants_datagrams(&self) -> bool {
        true
    }

    fn among_members(&self) -> Option<GroupService<'_>> {
        Some(GroupService::Direct(self))
    }
}

impl GroupTransport for Pgm {
    fn member(&self, member: GroupMember) -> Box<dyn Machine> {
        let GroupMember { memory, message, others, mut random, .. } = member;
        let (others, half) = (others.len(), memory / 2);
        let sources = others.max(1);
        let own = self.source();
        let source = SourceConfig {
            packet: member.datagram,
            overhead: member.overhead,
            slack: member.slack,
            window: half,
            // A member's files and messages have names.
            framing: Framing::Ours,
            rate: member.rate.map_or(own.rate, RateControl::Fixed),
            ..own
        };
        let receiver = ReceiverConfig {
            group_size: others as u64,
            sources,
            window: half / sources as u64,
            max_unit: message,
            backoff: self.receiver.backoff,
            gather: self.receiver.gather,
            retries: self.receiver.retries,
            // A member that is back asks for what it lacks by itself: what is older is of no use to it.
            join: Join::Now,
            ..ReceiverConfig::default()
        };
        let config = Config {
            session: session(member.number as usize, &mut random),
            port: PORT,
            local: member.local,
            group: member.group,
            number: Some(member.number),
            source: Some(source),
            receiver: Some(receiver),
            unit_credit: false,
        };
        Box::new(Session::new(config, random))
    }
}

/// The session of a member on a node, unlike that of the run before.
fn session(node: usize, random: &mut Stream) -> Tsi {
    let [.., a, b] = (node as u16 + 1).to_be_bytes();
    let number = random.bits().to_be_bytes();
    Tsi { gsi: [number[0], number[1], number[2], number[3], a, b], port: random.bits() as u16 }
}
