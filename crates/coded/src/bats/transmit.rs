//! The node as sender, in either mode: which datagram is next, and what is put into it.

use hopcast_core::{Buffer, Datagram, Instant, Item};

use super::age::Age;
use super::batch::{Batch, Kind, Mix};
use super::branch::waited_for;
use super::bursts::BURSTY;
use super::hop::OverHop as _;
use super::mode::{Mode, Place, Said};
use super::node::{Neighbour, Node};
use super::packet::{Cause, Content, Packet};
use super::wire::{self, Coding, Data, EndToEndReport, Info, Report, Writer};

/// Packets that a relay lets its parent be ahead of what it can pass on, besides those of a round trip. Chosen: fewer,
/// and a link that is served by turns falls idle between grants; more, and a queue stands at a relay instead of at the
/// source.
const ALLOWANCE: u64 = 128;
/// Upper bound of what is allowed for bursts of losses, in seconds of what the child takes. Chosen: a hop that is cut
/// off for a while must not leave the next one idle, and more would be a queue that delays everything by as much.
const BURST_ALLOWANCE_SECONDS: f64 = 0.04;
/// Packets that a parent may still send below which it receives new grants at once, if it could be granted half as many
/// more. Chosen: a quarter of the allowance, so that it does not run out while the report is on its way.
const SHORT: u64 = 32;
/// Packets that may wait for a child before a source makes nothing new. Chosen: fewer, and a child whose link is paced
/// in bursts falls idle; more, and the source's queue is where the application cannot see it.
pub(super) const MAX_BACKLOG: u64 = 64;

impl<M: Mode> Node<M> {
    /// The next datagram for a neighbour, if there is any now.
    pub(super) fn transmit(&mut self, now: Instant, to: usize) -> Option<Item> {
        M::make(self, now, to);
        let Neighbour { out, sender, receiver, branch, .. } = &mut self.neighbours[to];
        let out = *out;
        let (mut packet, mut info, mut is_dead) = (None, None, false);
        if let Some(direction) = &self.directions[out] {
            let probing = sender.hop().probe_is_due(now);
            packet = if branch.given_up { None } else { M::choose(sender, now, direction) };
            if (probing || packet.is_some()) && sender.hop().info_is_due(now) {
                info = Some(describe::<M>(direction, sender, probing));
            }
            if probing && packet.is_none() {
                sender.probed(now);
            }
            is_dead = probing && self.config.split && sender.hop().is_silent();
        }
        let due = receiver.due().is_some_and(|due| due <= now);
        let wants_report = due || packet.is_some() && receiver.is_welcome(now);
        if is_dead {
            M::go_round(self, to);
        }
        if packet.is_none() && info.is_none() && !wants_report {
            M::arm(self, now, to);
            return None;
        }
        let mut list = core::mem::take(&mut self.list);
        let report = if wants_report { self.report(now, to, &mut list) } else { None };
        let end_to_end = report.and_then(|_| M::end_to_end(self, now, to));
        let datagram = self.assemble(now, to, &Control { report, end_to_end, info }, packet);
        self.list = list;
        self.grant_more(now, out);
        let remote = self.neighbours[to].address;
        Some(Item::Datagram(Datagram::new(self.local, remote, datagram?)))
    }

    /// Makes the report for a parent.
    fn report<'a>(&mut self, now: Instant, to: usize, list: &'a mut Vec<u8>) -> Option<Report<'a>> {
        let direction = self.directions[self.neighbours[to].into].as_ref()?;
        let granted = self.grant(to, direction);
        let receiver = &mut self.neighbours[to].receiver;
        M::report(&self.config, direction, receiver, granted, list).and_then(|said| {
            let report = receiver.report(now, M::session(direction).0.mark)?;
            let Said { floor, grant, base, complete } = said;
            let rest = M::age(direction).and_then(Age::rest);
            let rest = rest.map(|rest| rest.as_micros().min(u64::from(u32::MAX)) as u32);
            Some(Report { floor, grant, base, complete, rest, list, ..report })
        })
    }

    /// Up to which packet, or symbol, a parent may send.
    pub(super) fn grant(&self, parent: usize, direction: &M::Direction) -> u64 {
        let Neighbour { into, receiver, .. } = &self.neighbours[parent];
        let limit = M::limit(direction, receiver);
        if !M::is_relay(direction) {
            return limit;
        }
        let horizon = (receiver.round_trip() + receiver.interval() * 2).as_secs_f64();
        let len = M::packet_len(direction);
        let ahead = waited_for(&self.neighbours, *into, M::age(direction).is_some()).map(|child| {
            let rate = &child.sender.hop().rate;
            let drain = packets(rate.rate().bits_per_sec() as f64, len);
            let bursts =
                M::BURST_ALLOWANCE * (rate.mean_burst().max(receiver.mean_burst()) - BURSTY).max(0.0);
            allowance(drain, horizon, bursts).saturating_sub(child.sender.backlog())
        });
        (M::position(direction, receiver).unwrap_or(0) + ahead.min().unwrap_or(0)).min(limit)
    }

    /// Something of a direction was passed on: a parent that has run short of grants receives new ones.
    pub(super) fn grant_more(&mut self, now: Instant, direction: usize) {
        let Some(passed) = self.directions[direction].as_ref().filter(|direction| M::is_relay(direction))
        else {
            return;
        };
        for parent in 0..self.neighbours.len() {
            let Neighbour { into, receiver, .. } = &self.neighbours[parent];
            let Some(position) = M::position(passed, receiver) else { continue };
            if *into == direction
                && receiver.granted < position + SHORT
                && self.grant(parent, passed) >= receiver.granted + SHORT / 2
            {
                self.neighbours[parent].receiver.report_at(now);
            }
        }
    }

    /// Puts a datagram together. A packet that does not fit beside the rest is left for the next one.
    fn assemble(
        &mut self,
        now: Instant,
        to: usize,
        control: &Control<'_>,
        packet: Option<Packet>,
    ) -> Option<Buffer> {
        let mut mix = Mix::default();
        let Neighbour { out, sender, .. } = &self.neighbours[to];
        let direction = self.directions[*out].as_ref();
        let chosen = direction.zip(packet);
        let chosen = chosen
            .and_then(|(direction, packet)| Some((direction, packet, M::place(direction, packet.batch)?)));
        if let Some((_, Packet { content: Content::Mix(first), .. }, place)) = &chosen {
            mix = place.batch.mix(*first, &mut self.coefficients);
        }
        let frame =
            chosen.map(|(direction, packet, place)| Frame::new::<M>(direction, sender, packet, place, &mix));
        let (limit, len) = (usize::from(self.config.datagram), control.len());
        let frame = frame.as_ref().filter(|frame| len == 1 || len + frame.len() <= limit);
        let total = len + frame.map_or(0, Frame::len);
        if total == 1 {
            return None;
        }
        let mut datagram = Buffer::zeroed(total);
        let mut writer = Writer::new(&mut datagram);
        control.write(&mut writer);
        self.counters.control(control.report_len(), control.info.as_ref());
        if control.info.is_some() {
            self.neighbours[to].sender.hop_mut().informed(now);
        }
        if let Some(frame) = frame {
            frame.write(writer);
            self.counters.sent(frame.packet.cause, &frame.data, frame.payload_len);
            let packet = frame.packet;
            M::on_sent(self, now, to, &packet, total);
        }
        Some(datagram)
    }
}

/// The frames of a datagram in front of DATA.
struct Control<'a> {
    report: Option<Report<'a>>,
    end_to_end: Option<EndToEndReport>,
    info: Option<Info>,
}

impl Control<'_> {
    /// The length in bytes, with that which names the protocol.
    fn len(&self) -> usize {
        1 + self.report_len() + self.info.as_ref().map_or(0, Info::len)
    }

    /// The length of REPORT and of the messages behind it.
    fn report_len(&self) -> usize {
        self.report.as_ref().map_or(0, Report::len) + self.end_to_end.as_ref().map_or(0, EndToEndReport::len)
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u8(wire::MAGIC);
        if let Some(report) = &self.report {
            report.write(out);
        }
        if let Some(end_to_end) = &self.end_to_end {
            end_to_end.write(out);
        }
        if let Some(info) = &self.info {
            info.write(out);
        }
    }
}

/// A DATA frame.
struct Frame<'a> {
    packet: Packet,
    data: Data<'a>,
    payload: Payload<'a>,
    payload_len: usize,
}

enum Payload<'a> {
    /// A packet as it came.
    AsIs(&'a [u8]),
    Mix(&'a Batch, &'a Mix),
}

impl<'a> Frame<'a> {
    /// `mix`: the combination, if the packet is one.
    fn new<M: Mode>(
        direction: &M::Direction,
        sender: &M::Sender,
        packet: Packet,
        place: Place<'a>,
        mix: &'a Mix,
    ) -> Self {
        let (session, shape) = M::session(direction);
        let (hop, symbols) = (sender.hop(), shape.batch.symbols());
        let (coding, payload) = match packet.content {
            Content::Symbol(index) => {
                (Coding::Symbol(index), Payload::AsIs(place.batch.symbol(index).unwrap_or_default()))
            }
            Content::Row(number) => match place.batch.row(number) {
                Some((Kind::Symbol(index), payload)) => (Coding::Symbol(*index), Payload::AsIs(payload)),
                Some((Kind::Coded(vector), payload)) => {
                    (Coding::trimmed(&vector[..symbols]), Payload::AsIs(payload))
                }
                None => (Coding::Symbol(0), Payload::AsIs(&[])),
            },
            Content::Mix(_) => (Coding::trimmed(&mix.vector[..symbols]), Payload::Mix(place.batch, mix)),
        };
        let len = match payload {
            Payload::AsIs(payload) => payload.len(),
            Payload::Mix(_, mix) => mix.len,
        };
        let (trimmed, payload_len) = wire::trim(len, usize::from(shape.symbol));
        let data = Data {
            session: session.mark,
            epoch: hop.epoch() as u8,
            sequence: hop.next() as u32 & 0xFF_FFFF,
            block: place.block,
            header: place.header,
            coding,
            ask: M::PROBES_ASK && packet.cause == Cause::Probe || hop.is_asking(),
            trimmed,
            payload: &[],
        };
        Self { packet, data, payload, payload_len }
    }

    fn len(&self) -> usize {
        self.data.header_len() + self.payload_len
    }

    fn write(&self, mut out: Writer<'_>) {
        self.data.write_header(self.payload_len, &mut out);
        match self.payload {
            Payload::AsIs(payload) => out.put(payload),
            Payload::Mix(batch, mix) => batch.write(mix, out.rest()),
        }
    }
}

/// Rate in bits per second, as a number of packets of `len` bytes per second.
fn packets(rate: f64, len: u64) -> f64 {
    rate / (len * 8) as f64
}

/// Number of packets that a parent may be ahead of a child that takes `drain` of them in a second and reports them
/// after `horizon` seconds, with `bursts` more for bursts of losses.
fn allowance(drain: f64, horizon: f64, bursts: f64) -> u64 {
    (drain * horizon + bursts.min(BURST_ALLOWANCE_SECONDS * drain)) as u64 + ALLOWANCE
}

/// INFO about a direction, for the child of a sender; `ask`: a report is wanted now.
pub(super) fn describe<M: Mode>(direction: &M::Direction, sender: &M::Sender, ask: bool) -> Info {
    let ((session, shape), hop) = (M::session(direction), sender.hop());
    let round_trip = hop.rate.srtt().map_or(0, |srtt| srtt.as_micros().clamp(1, u64::from(u32::MAX)));
    let info = Info {
        session,
        echo: None,
        batch: shape.batch,
        block: shape.block,
        symbol: shape.symbol,
        epoch: hop.epoch(),
        round_trip: round_trip as u32,
        deadline: None,
        fixed: false,
        elapsed: 0,
        budget: M::budget(direction),
        ask,
        floor: M::floor(direction),
    };
    info.timed(M::age(direction), hop.rate.min_rtt())
}

#[cfg(test)]
mod tests {
    use super::super::ranks::Ranks;
    use super::super::strict::Strict;
    use super::*;

    /// For bursts of losses of this mean length.
    fn bursts<M: Mode>(burst: f64) -> f64 {
        M::BURST_ALLOWANCE * (burst - BURSTY).max(0.0)
    }

    #[test]
    fn a_parent_may_be_ahead_by_what_passes_until_it_hears_and_128_packets() {
        // 10,000 in a second, in 20 ms.
        for burst in [1.0, 1.25, 1.5] {
            assert_eq!(allowance(1e4, 0.02, bursts::<Ranks>(burst)), 200 + 128, "{burst}");
        }
        assert_eq!(allowance(0.0, 0.02, 0.0), 128);
        // 1000 full frames in a second, of which 20.5 pass in 20.5 ms, whatever the bursts.
        let drain = packets(1514.0 * 8.0 * 1000.0, 1514);
        assert_eq!(allowance(drain, 0.0205, bursts::<Strict>(8.0)), 20 + 128);
    }

    #[test]
    fn where_losses_come_in_bursts_it_may_be_ahead_by_128_more_for_each_packet_of_one_but_by_no_more_than_40_ms()
     {
        for (drain, burst, allowed) in
            [(1e6, 1.75, 32), (1e6, 2.5, 128), (1e6, 8.0, 832), (1e4, 8.0, 400), (1e6, 1e6, 40_000)]
        {
            assert_eq!(allowance(drain, 0.0, bursts::<Ranks>(burst)), 128 + allowed, "{burst}");
        }
    }
}
