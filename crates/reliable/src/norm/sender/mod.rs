//! The sending side of a member.
//!
//! The data to send is a list of objects. [`Sender::next`] picks, whenever the rate allows a packet: repairs
//! first, then new data, and where there is neither, the end of what was sent. Each concern has a state of its own:
//! [`object`] and [`stream`] are the contents, [`block`] the symbols of a block that receivers lack, [`proactive`] the
//! parity that is sent ahead of requests, [`flush`] the end, [`probe`] the round trips, [`feedback`] the reports of
//! receivers.

mod block;
mod feedback;
mod flush;
mod object;
mod pending;
mod proactive;
mod probe;
mod source;
mod stream;

use std::collections::BTreeMap;

use hopcast_core::{Buffer, Duration, Instant, Pacer, Rate};

use self::block::Block;
use self::flush::Flush;
use self::object::Object;
use self::pending::{Pending, Place};
use self::proactive::Need;
use self::probe::Probe;
pub(super) use self::source::Refusal;
use self::source::Source;
use super::config::{RateControl, SenderConfig};
use super::congestion::Congestion;
use super::fec::Codec;
use super::wire::{
    Body, CcFeedback, Command, Data, Fti, Header, Info, Message, NodeId, PayloadId, Position, quantise,
};
use crate::group_size::GroupSize;
use crate::grtt::Grtt;
use crate::statistics::{Kind, Requests, Traffic};

/// The sending side of a member.
#[derive(Debug)]
pub(super) struct Sender {
    config: SenderConfig,
    node: NodeId,
    instance: u16,
    codec: Codec,
    /// The objects held, by their number; its low 16 bits are the object transport id.
    objects: BTreeMap<u64, Object>,
    /// Bytes of those that are no streams.
    object_bytes: u64,
    source: Source,
    pending: Pending,
    need: Need,
    grtt: Grtt,
    group: GroupSize,
    flush: Flush,
    probe: Probe,
    congestion: Option<Congestion>,
    pacer: Pacer,
    /// Requests for data that is no longer held: when to answer them.
    squelch: Option<Instant>,
    squelched: Option<Instant>,
    /// When to tell the group of requests that came and were answered by unicast, and when it was told last.
    advertise: Option<Instant>,
    advertised: Option<Instant>,
    /// Packets of data sent: every few of them bear the FTI.
    data_packets: u64,
    /// Repairs since the last new data.
    repairs: u32,
    pub(super) traffic: Traffic,
    pub(super) counts: Counts,
}

/// Counters of a sender, beside its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) nacks_received: u64,
    /// Blocks that were asked for, once for each NACK that did.
    pub(super) blocks_requested: u64,
    /// Feedback that names data that was never sent, or a time that never was.
    pub(super) refused: u64,
    /// Objects, and blocks of streams, that were dropped while somebody asked for them.
    pub(super) given_up: u64,
    pub(super) squelches: u64,
    pub(super) acknowledged: u64,
    /// Rounds of repairs of blocks.
    pub(super) rounds: u64,
}

/// A packet to be sent.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) kind: Kind,
    /// The message, but for the sequence number.
    pub(super) bytes: Buffer,
}

/// Packets of data of which one bears the object's FTI; the first ones all do. Chosen: twelve bytes of each packet are
/// nearly a percent, and a receiver that comes late waits for eight packets at most.
const FTI_EVERY: u64 = 8;
/// First packets of an object that all bear it. Chosen: at 50 % loss one of 65,536 receivers hears none of them.
const FTI_FIRST: u16 = 16;
/// Repairs and parity that are sent in a row while there are new data: a receiver that never has enough, or
/// somebody who forges requests, slows the others down by a factor of three. Chosen: a loss of two thirds is
/// served.
const MAX_REPAIRS: u32 = 2;

impl Sender {
    pub(super) fn new(config: SenderConfig, node: NodeId, instance: u16) -> Self {
        let config = config.bounded();
        let codec =
            Codec::new(config.source, config.parity).expect("the settings are within the code's limits");
        let congestion = match config.rate {
            RateControl::Fixed(_) => None,
            RateControl::Tcp { initial, min, max } => {
                Some(Congestion::new(initial, min, max, config.segment.into()))
            }
        };
        Self {
            node,
            instance,
            codec,
            objects: BTreeMap::new(),
            object_bytes: 0,
            source: Source::new(instance),
            pending: Pending::default(),
            need: Need::new(config.proactive),
            grtt: Grtt::new(config.grtt, config.max_grtt),
            group: GroupSize::new(
                config.group_size,
                ASSUMED_GROUP,
                delay(&config, backoff(&config, f64::INFINITY)),
            ),
            flush: Flush::new(config.robust, &config.ackers),
            probe: Probe::default(),
            congestion,
            pacer: Pacer::new(config.slack),
            squelch: None,
            squelched: None,
            advertise: None,
            advertised: None,
            data_packets: 0,
            repairs: 0,
            traffic: Traffic::default(),
            counts: Counts::default(),
            config,
        }
    }

    /// The rate at present.
    pub(super) fn rate(&self) -> Rate {
        match (&self.congestion, self.config.rate) {
            (Some(congestion), _) => congestion.rate(),
            (None, RateControl::Fixed(rate) | RateControl::Tcp { initial: rate, .. }) => rate,
        }
    }

    /// Group round-trip time, never less than a segment takes (RFC 5740, section 5.5.1).
    pub(super) fn grtt(&self) -> Duration {
        let segment = self.counted(self.config.segment.into());
        self.grtt.get().max(self.rate().time_for(segment)).min(self.config.max_grtt)
    }

    fn backoff(&self) -> u8 {
        backoff(&self.config, self.group.get())
    }

    /// Time until a NACK is heard by others, as a share of the longest back-off of a group of this size.
    fn delay(&self, size: f64) -> f64 {
        delay(&self.config, backoff(&self.config, size))
    }

    /// Whether it is a large group, in which a round of requests takes long.
    fn is_large(&self) -> bool {
        self.backoff() >= LONG_BACKOFF
    }

    /// Longest time from a request to the last one of its round, as receivers are told to draw it.
    fn round(&self) -> Duration {
        self.grtt() * (u64::from(self.backoff()) + 1)
    }

    fn header(&self) -> Header {
        Header {
            instance: self.instance,
            grtt: quantise::from_rtt(self.grtt()),
            backoff: self.backoff(),
            group_size: quantise::from_group_size(self.group.get() as u32),
        }
    }

    /// When the sender has something to do next.
    pub(super) fn deadline(&self, now_or_before: Instant) -> Option<Instant> {
        let due = self.next_due(now_or_before)?;
        Some(due.max(self.pacer.departure()))
    }

    /// The earliest time at which there is a packet to send, whatever the rate.
    fn next_due(&self, last: Instant) -> Option<Instant> {
        if self.source.is_ready(&self.objects) && !self.is_stalled(last) {
            return Some(Instant::ZERO);
        }
        let stalled = self.source.is_ready(&self.objects).then(|| self.release_time()).flatten();
        let repairs = (!self.pending.is_empty()).then_some(Instant::ZERO);
        let flush = self.flush.due();
        let probe = self.probe.due(self.probe_interval());
        [repairs, stalled, flush, probe, self.squelch, self.advertise].into_iter().flatten().min()
    }

    /// The next packet, if the rate allows one and there is something to send.
    pub(super) fn next(&mut self, now: Instant) -> Option<Packet> {
        let departure = self.pacer.departure();
        if departure > now {
            if self.congestion.is_some() && self.has_data(now) {
                let grtt = self.grtt();
                self.congestion.as_mut()?.held_back(now, departure, grtt);
            }
            return None;
        }
        let packet = self.choose(now)?;
        let bytes = packet.bytes.len();
        self.traffic.add(packet.kind, bytes);
        if let (Some(congestion), Kind::Data | Kind::Repair) = (&mut self.congestion, packet.kind) {
            congestion.sent(now);
        }
        self.pacer.sent(now, self.rate(), self.counted(bytes as u64));
        Some(packet)
    }

    /// Bytes of a packet that the rate counts. With congestion control they are those that receivers hear, who name
    /// twice what arrives in slow start: where lower layers add more than there is in a packet, as long lists of
    /// addresses do, that would be less than was sent.
    fn counted(&self, bytes: u64) -> u64 {
        match self.config.rate {
            RateControl::Fixed(_) => bytes + u64::from(self.config.overhead),
            RateControl::Tcp { .. } => bytes,
        }
    }

    /// Whether there are data that could be sent at once.
    fn has_data(&self, now: Instant) -> bool {
        !self.pending.is_empty() || self.source.has_more(&self.objects) && !self.is_stalled(now)
    }

    /// Whether there are data to send, now or once others are no longer held.
    fn is_busy(&self) -> bool {
        self.source.is_ready(&self.objects) || !self.pending.is_empty()
    }

    fn choose(&mut self, now: Instant) -> Option<Packet> {
        self.settle(now);
        if let Some(command) = self.command(now, self.is_busy()) {
            return Some(self.emit(Kind::Control, Body::Command(self.header(), command), Buffer::default()));
        }
        // Twice, since an object that seemed to go on may turn out to be finished.
        for _ in 0..2 {
            let may_send_new = self.source.is_ready(&self.objects) && !self.is_stalled(now);
            // A repair of what is gone meanwhile is struck off the list.
            while let Some((object, block)) = self.due_repair(now, may_send_new) {
                if let Some(packet) = self.repair(now, object, block) {
                    return Some(packet);
                }
            }
            if !may_send_new {
                break;
            }
            if let Some(packet) = self.next_new(now) {
                return Some(packet);
            }
            self.repairs = 0;
        }
        let last = self.last();
        let command = self.flush.next(now, last, self.grtt(), self.hold())?;
        Some(self.emit(Kind::Control, Body::Command(self.header(), command), Buffer::default()))
    }

    /// A command that goes before data.
    fn command(&mut self, now: Instant, is_active: bool) -> Option<Command<'static>> {
        if self.squelch.is_some_and(|at| at <= now) {
            self.squelch = None;
            self.squelched = Some(now);
            self.counts.squelches += 1;
            return self.squelch_command();
        }
        if self.advertise.is_some_and(|at| at <= now) {
            self.advertise = None;
            if let Some(command) = self.advertisement(now) {
                self.advertised = Some(now);
                return Some(command);
            }
        }
        let interval = self.probe_interval();
        let sent = self.probe.next(now, is_active || self.flush.is_active(), interval)?;
        self.grtt.probed();
        self.group.expire(now, GROUP_MEMORY);
        let (sequence, grtt) = (self.probe.sequence(), self.grtt());
        let (rate, nodes) = match &mut self.congestion {
            Some(congestion) => {
                congestion.probed(now, sequence, grtt);
                (Some(quantise::from_rate(congestion.rate().bits_per_sec() as f64 / 8.0)), congestion.nodes())
            }
            None => (None, Vec::new()),
        };
        Some(Command::CongestionControl { sequence, sent, rate, syn: false, nodes })
    }

    fn probe_interval(&self) -> Duration {
        match &self.congestion {
            // RFC 5740, section 5.5.2: once a GRTT, while there are data whose rate is controlled.
            Some(_) if self.is_busy() => self.grtt().max(MIN_CC_PROBE),
            _ => (self.grtt() * 4).clamp(MIN_PROBE, MAX_PROBE),
        }
    }

    /// The block to repair now; where there are new data to send meanwhile, repairs have their share.
    fn due_repair(&mut self, now: Instant, may_send_new: bool) -> Option<Place> {
        if self.pending.is_empty() || may_send_new && self.repairs >= MAX_REPAIRS {
            return None;
        }
        let wait = may_send_new.then(|| self.grtt());
        let objects = &self.objects;
        self.pending.next(now, wait, |(number, block)| {
            let state = objects.get(&number).and_then(|object| object.blocks.get(&block));
            state.map_or(1, Block::pending)
        })
    }

    fn block(&self, (object, block): Place) -> Option<&Block> {
        self.objects.get(&object)?.blocks.get(&block)
    }

    /// A repair of a block.
    fn repair(&mut self, now: Instant, number: u64, block: u32) -> Option<Packet> {
        let object = self.objects.get_mut(&number);
        let Some(object) = object else {
            self.pending.remove((number, block));
            return None;
        };
        if std::mem::take(&mut object.info_wanted) {
            if object.blocks.get(&block).is_none_or(|state| !state.is_pending()) {
                self.pending.remove((number, block));
            }
            return self.info(number, Kind::Repair);
        }
        let source = object.source(block);
        let Some(state) = object.blocks.get_mut(&block) else {
            self.pending.remove((number, block));
            return None;
        };
        let symbol = state.next(now, source);
        object.sent = Some(now);
        self.repairs += 1;
        if !state.is_pending() {
            self.counts.rounds += 1;
            self.pending.remove((number, block));
        }
        self.flush.reset(now);
        self.data(number, block, symbol?, Kind::Repair)
    }

    fn info(&self, number: u64, kind: Kind) -> Option<Packet> {
        let object = self.objects.get(&number)?;
        let payload = Buffer::copy_from(object.info.as_deref()?);
        let flags =
            if kind == Kind::Repair { object.flags.with(super::wire::Flags::REPAIR) } else { object.flags };
        let (fec, fti) = (Object::FEC, Some(object.fti));
        let info = Info { header: self.header(), flags, fec, object: number as u16, fti, payload: &[] };
        Some(self.emit(kind, Body::Info(info), payload))
    }

    /// A symbol of a block.
    fn data(&mut self, number: u64, block: u32, symbol: u16, kind: Kind) -> Option<Packet> {
        let object = self.objects.get(&number)?;
        let payload = object.symbol(block, symbol, &self.codec)?;
        let flags =
            if kind == Kind::Repair { object.flags.with(super::wire::Flags::REPAIR) } else { object.flags };
        // A repair of the beginning is for those that may have nothing else of the object.
        // Of a stream libnorm takes no symbol without it.
        let bears = object.flags.contains(super::wire::Flags::STREAM)
            || block == object.first_block() && (symbol < FTI_FIRST || kind == Kind::Repair)
            || self.data_packets.is_multiple_of(FTI_EVERY);
        self.data_packets += 1;
        let data = Data {
            header: self.header(),
            flags,
            fec: Object::FEC,
            object: number as u16,
            id: PayloadId { block: block & MAX_BLOCK, symbol, block_len: 0 },
            fti: bears.then_some(object.fti),
            payload: &[],
        };
        Some(self.emit(kind, Body::Data(data), payload))
    }

    fn emit(&self, kind: Kind, body: Body<'_>, payload: Buffer) -> Packet {
        let message = Message { sequence: 0, source: self.node, body };
        Packet { kind, bytes: message.emit_before(payload) }
    }

    fn position(number: u64, block: u32, symbol: u16) -> Position {
        let id = PayloadId { block: block & MAX_BLOCK, symbol, block_len: 0 };
        Position { fec: Object::FEC, object: number as u16, id }
    }

    /// The last source symbol that was sent.
    fn last(&self) -> Option<Position> {
        let (number, block, symbol) = self.source.last(&self.objects)?;
        Some(Self::position(number, block, symbol))
    }

    /// Reports the sender's counters.
    pub(super) fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.traffic.counters(report);
        Requests { received: self.counts.nacks_received, ..Requests::default() }.counters(report);
        report("blocks_requested", self.counts.blocks_requested);
        report("feedback_refused", self.counts.refused);
        report("repairs_given_up", self.counts.given_up);
        report("repair_rounds", self.counts.rounds);
        report("squelches_sent", self.counts.squelches);
        report("receivers_acknowledged", self.counts.acknowledged);
    }

    /// FTI of the objects of this sender.
    fn fti(&self, object_size: u64) -> Fti {
        Fti {
            fec: Object::FEC,
            object_size,
            segment: self.config.segment,
            source: self.config.source,
            parity: self.config.parity,
            field: 0,
            group: 0,
            instance: 0,
        }
    }

    /// Takes congestion control feedback of a receiver.
    fn congestion_feedback(
        &mut self,
        now: Instant,
        from: NodeId,
        cc: CcFeedback,
        round_trip: Option<Duration>,
    ) {
        let grtt = self.grtt();
        let Some(congestion) = &mut self.congestion else { return };
        if congestion.feedback(now, from, cc, round_trip, grtt) && self.config.unicast_feedback {
            self.advertise(now);
        }
    }
}

/// Back-off factor for a group of this size: with few receivers their NACKs cost little, and time more. For large ones
/// it is what RFC 5401, section 3.2.2, expects to leave [`MAX_EXPECTED`] NACKs of each round, at least 4, which it has
/// for any group. Where a NACK goes to the sender alone, so that the others hear of it a round trip later, 4 is kept
/// until feedback shows a large group, since a few receivers that lose half would wait minutes.
fn backoff(config: &SenderConfig, size: f64) -> u8 {
    let follows = match size {
        size if size <= 1.0 => 0,
        size if size <= 10.0 => 1,
        size if size <= 50.0 => 2,
        size if config.unicast_feedback && config.group_size.is_none() && size <= ASSUMED_GROUP as f64 => 4,
        size => (1.2 * (size.ln() + 1.0) * until_heard(config) / MAX_EXPECTED.ln()).ceil().max(4.0) as u8,
    };
    config.backoff.unwrap_or(follows).min(15)
}

/// Round trips until a NACK is heard by others.
fn until_heard(config: &SenderConfig) -> f64 {
    if config.unicast_feedback { 1.0 } else { 0.5 }
}

/// Time until a NACK is heard by others, as a share of the longest back-off of this factor.
fn delay(config: &SenderConfig, backoff: u8) -> f64 {
    until_heard(config) / f64::from(backoff)
}

/// Block numbers are of 24 bits (RFC 5510, section 5.1).
const MAX_BLOCK: u32 = 0xFF_FFFF;
/// Group that is assumed until feedback shows its size: libnorm's. With 100, of ten thousand receivers 68 ask for each
/// block and round of a short transfer, and a few wait hardly less: the longest back-off is the same.
const ASSUMED_GROUP: u64 = 1000;
/// Back-off factor of a group whose first round of requests takes long.
const LONG_BACKOFF: u8 = 4;
/// NACKs of a round for which the back-off of a large group is made. Chosen: those that lack more than others ask for
/// ask nonetheless, so that there are about twice as many.
const MAX_EXPECTED: f64 = 4.0;
/// For how long a receiver that is silent counts to the group. Chosen: without loss none of them has anything to say.
const GROUP_MEMORY: Duration = Duration::from_secs(60);
/// Time between probes at a fixed rate, and while no data are sent. They only measure the round trips of those that
/// answer in any case. Chosen: below 1 % of 64 kbit/s.
const MIN_PROBE: Duration = Duration::from_millis(250);
const MAX_PROBE: Duration = Duration::from_secs(2);
/// Time between probes with congestion control. Chosen: RFC 5740's once a GRTT, but no flood where there is no delay.
const MIN_CC_PROBE: Duration = Duration::from_millis(20);
