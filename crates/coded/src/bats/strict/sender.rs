//! The sending end of a hop: how much of each batch one child has been sent, and what it gets next.

use core::ops::Range;
use std::collections::VecDeque;

use hopcast_core::{Duration, Instant, Stream, earliest};

use super::super::child::{Losses as _, Refused};
use super::super::hop::{FIRST_GRANT, HopSender, OverHop};
use super::super::packet::{Cause, Content, Packet};
use super::super::wire::{EndToEndReport, HopQuality, Report};
use super::losses::HopLosses;
use super::meter::Meter;
use super::node::FULL_PACKET;
use super::plan::{Basis, Recoding};
use super::ring::Ring;

/// Share of a hop's rate below which it is nearly idle, and has capacity to spare for repairs ahead of need. Chosen:
/// such repairs are up to two for each packet, so that the hop is still used by less than its rate with them; a smaller
/// share would leave out messages that have room for them, a larger one would take the room of data that comes next.
const NEARLY_IDLE: f64 = 0.25;

/// Bytes of a packet on the link below UDP's payload: Ethernet (14), IPv4 (20, RFC 791) and UDP (8, RFC 768).
const LOWER_HEADERS: u64 = 42;
/// Delay, besides an eighth of the round trip, below which a queue is none. Chosen: late wake-ups and jitter make as
/// much.
const MIN_QUEUE_DELAY: Duration = Duration::from_millis(1);

/// The sending end of a hop, and the packets due to its child.
#[derive(Debug)]
pub(in super::super) struct Sender {
    pub(super) hop: HopSender<HopLosses>,
    /// Up to which sequence number the child takes packets.
    credit: u64,
    /// The newest end-to-end report of the sink behind it.
    end_to_end: Option<EndToEndReport>,
    /// The batches that the ring has, from this serial number on.
    shares: VecDeque<Share>,
    first: u64,
    /// No batch before this one is due.
    head: u64,
    /// The batch that was served last.
    turn: u64,
    /// Number of packets that are due.
    backlog: u64,
    recoding: Recoding,
    meter: Meter,
    /// Whether spare capacity is used.
    spare: bool,
}

/// A child's share of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// Number of the packets here that were sent as they came.
    forwarded: u8,
    sent: u16,
    due: u16,
}

impl OverHop for Sender {
    type Losses = HopLosses;

    fn hop(&self) -> &HopSender<HopLosses> {
        &self.hop
    }

    fn hop_mut(&mut self) -> &mut HopSender<HopLosses> {
        &mut self.hop
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    fn probed(&mut self, now: Instant) {
        self.hop.probed(now, Duration::ZERO);
    }
}

impl Sender {
    pub(super) fn new(spare: bool, slack: Duration, random: Stream) -> Self {
        Self {
            hop: HopSender::new(slack, true, random),
            credit: FIRST_GRANT,
            end_to_end: None,
            shares: VecDeque::new(),
            first: 0,
            head: 0,
            turn: 0,
            backlog: 0,
            recoding: Recoding::default(),
            meter: Meter::default(),
            spare,
        }
    }

    /// Begins with what is in a ring.
    pub(super) fn start(&mut self, ring: &Ring) {
        self.shares.clear();
        (self.first, self.head, self.turn, self.backlog) = (ring.first(), ring.first(), ring.first(), 0);
        self.credit = self.hop.next() + FIRST_GRANT;
        self.end_to_end = None;
        self.hop.start();
        self.hop.forget_silence();
    }

    /// Whether packets of a batch wait.
    pub(super) fn is_due(&self, serial: u64) -> bool {
        let share = serial.checked_sub(self.first).and_then(|at| self.shares.get(at as usize));
        share.is_some_and(|share| share.due > 0)
    }

    /// The measured losses of the hop.
    pub(super) fn quality(&self) -> HopQuality {
        let known = self.hop.losses();
        known.map_or_else(
            || HopQuality::new(0.0, 1.0),
            |losses| HopQuality::new(losses.share(), losses.mean_burst()),
        )
    }

    /// The mean size of the packets that are sent, headers of lower layers included.
    pub(super) fn packet_size(&self) -> f64 {
        self.meter.measured().map_or(FULL_PACKET as f64, |measured| measured.size)
    }

    /// A batch has begun: the plan is brought up to date. `budget`: the bytes to spend on it.
    pub(super) fn begin(&mut self, ring: &Ring, symbols: usize, budget: f64) {
        let Some(losses) = self.hop.losses() else { return };
        let last = ring.end().saturating_sub(1);
        let depth = ring.get(last).map_or(0, |slot| slot.depth);
        let budget = (budget / self.packet_size()).clamp(1.0, 8.0 * symbols as f64);
        let basis = Basis { loss: losses.share(), burst: losses.mean_burst(), depth: 1 << depth, budget };
        self.recoding.update(&basis, &ring.ranks()[..=symbols], last);
    }

    /// Batches have changed: finds out anew what is due of them.
    pub(super) fn refresh(&mut self, ring: &Ring, serials: Range<u64>) {
        while self.first < ring.first() {
            let share = self.shares.pop_front().unwrap_or_default();
            self.backlog -= u64::from(share.due);
            self.first += 1;
        }
        self.shares.resize((ring.end() - self.first) as usize, Share::default());
        let idle = self.spare && self.is_idle();
        for serial in serials.start.max(self.first)..serials.end {
            let (Some(slot), Some(share)) =
                (ring.get(serial), self.shares.get_mut((serial - self.first) as usize))
            else {
                break;
            };
            let rank = slot.batch.rank();
            let new = u16::from(rank.saturating_sub(share.forwarded));
            let planned = if ring.is_over(serial) { self.recoding.packets(serial, rank, idle) } else { 0 };
            let due = new.max(planned.saturating_sub(share.sent));
            self.backlog = self.backlog + u64::from(due) - u64::from(share.due);
            share.due = due;
            if due > 0 {
                self.head = self.head.min(serial);
            }
        }
    }

    /// Whether little of the link is used.
    fn is_idle(&self) -> bool {
        let Some(measured) = self.meter.measured() else { return true };
        measured.bits < NEARLY_IDLE * self.hop.rate.rate().bits_per_sec() as f64
    }

    /// Takes a report.
    ///
    /// # Errors
    ///
    /// It is old or makes no sense; nothing has changed.
    pub(super) fn on_report(&mut self, now: Instant, report: &Report<'_>) -> Result<(), Refused> {
        let heard = self.hop.hear(report)?;
        if heard.restarted {
            // It grants what it has room for, and knows nothing of the session.
            self.credit = self.hop.next() + FIRST_GRANT;
            self.hop.inform_again();
        }
        if let Some(hop) = &heard.hop {
            self.credit = self.credit.max(hop.highest + 1 + u64::from(report.grant));
        }
        self.hop.take(now, &heard);
        Ok(())
    }

    /// Takes an end-to-end report that has come with a report. Whether it is news.
    pub(super) fn on_end_to_end(&mut self, end_to_end: &EndToEndReport) -> bool {
        let news = self.end_to_end.is_none_or(|old| end_to_end.is_newer(&old));
        if news {
            self.end_to_end = Some(*end_to_end);
        }
        news
    }

    /// The newest end-to-end report of the sink behind the child.
    pub(super) const fn end_to_end(&self) -> Option<EndToEndReport> {
        self.end_to_end
    }

    /// Whether the link and the child would take a packet now.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.hop.next() < self.credit && self.hop.rate.may_send(now)
    }

    /// The packet to send now, if there is any.
    pub(super) fn choose(&mut self, now: Instant, ring: &Ring) -> Option<Packet> {
        if self.hop.probe_is_due(now) {
            return self.choose_probe(ring);
        }
        if self.backlog == 0 || !self.is_ready(now) {
            return None;
        }
        let due = |serial: u64| {
            self.shares.get(serial.checked_sub(self.first)? as usize).filter(|share| share.due > 0)
        };
        let end = ring.end();
        let head = (self.head.max(self.first)..end).find(|&serial| due(serial).is_some())?;
        // The batches that are interleaved take turns.
        let among = (head + (1 << ring.get(head)?.depth)).min(end);
        let serial = (head.max(self.turn + 1)..among).find(|&serial| due(serial).is_some()).unwrap_or(head);
        let share = due(serial)?;
        let new = share.forwarded < ring.get(serial)?.batch.rank();
        self.head = head;
        let (content, cause) = if new {
            (Content::Row(share.forwarded), Cause::First)
        } else {
            (Content::Mix(0), Cause::Repair)
        };
        Some(Packet { batch: serial, content, cause })
    }

    /// A packet that is of some use, whatever the child has.
    fn choose_probe(&self, ring: &Ring) -> Option<Packet> {
        let last = ring.end().checked_sub(1).filter(|&last| last >= ring.first())?;
        let serial = self.head.clamp(ring.first(), last);
        let packet = Packet { batch: serial, content: Content::Mix(0), cause: Cause::Probe };
        (ring.get(serial)?.batch.rank() > 0).then_some(packet)
    }

    /// Notes that a packet is sent, in a datagram of `bytes` bytes; `more`: another could follow.
    pub(super) fn on_sent(&mut self, now: Instant, packet: &Packet, ring: &Ring, bytes: usize, more: bool) {
        self.hop.number();
        self.turn = packet.batch;
        if let Some(share) = self.shares.get_mut(packet.batch.saturating_sub(self.first) as usize) {
            share.sent = share.sent.saturating_add(1);
            share.forwarded += u8::from(matches!(packet.content, Content::Row(_)));
        }
        self.refresh(ring, packet.batch..packet.batch + 1);
        // Where a queue stands, the link is not idle for want of data, even if there is none.
        let standing = self.hop.rate.srtt().zip(self.hop.rate.min_rtt());
        let full = standing.is_some_and(|(round_trip, min_rtt)| is_queued(round_trip, min_rtt));
        self.hop.sent(now, bytes, !more && self.backlog == 0 && !full);
        self.meter.packet(now, bytes as u64 + LOWER_HEADERS);
        if packet.cause == Cause::Probe {
            self.probed(now);
        }
    }

    /// Sees to it that a probe is sent if something waits, `wants`, and no report comes.
    pub(super) fn arm(&mut self, now: Instant, wants: bool) {
        let unheard = !self.hop.is_heard() && self.hop.next() > 0;
        if !wants && !unheard && self.backlog == 0 {
            self.hop.set_probe(None);
        } else if self.hop.probe().is_none() {
            self.hop.set_probe(Some(now + self.hop.rate.probe_timeout()));
        }
    }

    /// The state, for the message of a test that fails.
    #[cfg(test)]
    pub(super) fn state(&self) -> String {
        format!(
            "next {} credit {} head {} in flight {} idle {} measured {:?}",
            self.hop.next(),
            self.credit,
            self.head,
            self.hop.rate.in_flight(),
            self.is_idle(),
            self.meter.measured(),
        )
    }

    /// Time at which there is something to do next; `something`: the source could make a packet.
    pub(super) fn deadline(&self, something: bool) -> Option<Instant> {
        let open = (self.backlog > 0 || something) && self.hop.next() < self.credit;
        let send = if open { self.hop.rate.next_send() } else { None };
        earliest(send, self.hop.probe())
    }
}

/// Whether a round trip of this length, of which this is the minimum, has a queue in it.
fn is_queued(round_trip: Duration, min_rtt: Duration) -> bool {
    round_trip > min_rtt + min_rtt / 8 + MIN_QUEUE_DELAY
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;
    use crate::bats::rate::HopReport;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn begun() -> Sender {
        let mut sender = Sender::new(true, Duration::ZERO, Seed::new(1, 0).stream(&["hop"], 0));
        sender.start(&Ring::new(64, 0));
        sender
    }

    #[test]
    fn before_a_child_has_granted_anything_it_is_sent_128_packets() {
        let mut sender = begun();
        for (next, ready) in [(0, true), (127, true), (128, false)] {
            sender.hop.skip_to(next);
            assert_eq!(sender.is_ready(at(0)), ready, "{next}");
        }
        sender.start(&Ring::new(64, 0));
        sender.hop.skip_to(255);
        assert!(sender.is_ready(at(0)), "so in another session");
        sender.hop.skip_to(256);
        assert!(!sender.is_ready(at(0)));
    }

    #[test]
    fn a_hop_is_nearly_idle_below_a_quarter_of_its_rate() {
        for (share, idle) in [(0.1, true), (0.24, true), (0.26, false), (0.4, false)] {
            let mut sender = begun();
            assert!(sender.is_idle());
            // Ten packets in 10 ms, again and again.
            for round in 0..10 {
                let now = |millis| at(20 * round + millis);
                for packet in 0..10 {
                    sender.hop.rate.on_sent(now(packet), 10 * round + packet, 1000, false);
                }
                let report = HopReport {
                    highest: 10 * round + 9,
                    arrival_ns: (20 * round + 10) * 1_000_000,
                    hold: Duration::ZERO,
                    received_packets: 10 * (round + 1),
                    received_bytes: 10_000 * (round + 1),
                    mean_burst: 1.0,
                };
                assert_eq!(sender.hop.rate.on_report(now(11), &report), Ok(()));
            }
            assert!(sender.hop.rate.rate().bits_per_sec() > 100_000, "{:?}", sender.hop.rate.rate());
            let bytes = share * sender.hop.rate.rate().bits_per_sec() as f64 * 0.02 / 8.0;
            sender.meter.packet(at(1000), bytes as u64);
            sender.meter.packet(at(1020), 0);
            assert_eq!(sender.is_idle(), idle, "{share}");
        }
    }

    #[test]
    fn a_packet_is_a_full_frame_until_some_are_measured_with_their_headers() {
        let mut sender = begun();
        assert_eq!(sender.packet_size(), 1514.0);
        let packet = Packet { batch: 0, content: Content::Mix(0), cause: Cause::Repair };
        for millis in [0, 10, 20] {
            sender.on_sent(at(millis), &packet, &Ring::new(64, 0), 1000, false);
        }
        // Ethernet, IPv4 and UDP.
        assert_eq!(sender.packet_size(), 1000.0 + 14.0 + 20.0 + 8.0);
    }

    #[test]
    fn a_queue_is_what_delays_by_a_millisecond_and_an_eighth_of_the_round_trip() {
        let micros = Duration::from_micros;
        for (round_trip, min_rtt, queued) in [
            (8000, 8000, false),
            (10_000, 8000, false),
            (10_001, 8000, true),
            (1800, 800, false),
            (1901, 800, true),
        ] {
            assert_eq!(is_queued(micros(round_trip), micros(min_rtt)), queued, "{round_trip} of {min_rtt}");
        }
    }

    #[test]
    fn spare_capacity_is_used_where_that_is_wanted_and_the_hop_is_nearly_idle() {
        let backlog = |spare, busy| {
            let mut ring = Ring::new(64, 0);
            let header =
                crate::bats::wire::BatchHeader { block: 256, batch: crate::bats::BatchSize::M16, id: 0 };
            let (serial, _) = ring.admit(0, header, 0);
            for index in 0..16 {
                ring.grow(serial, |batch| batch.push_symbol(index, hopcast_core::Buffer::copy_from(&[7; 9])));
            }
            ring.close(serial);
            let mut sender = Sender { spare, ..begun() };
            let mut ranks = [0.0; 17];
            ranks[16] = 1.0;
            sender.recoding.update(&Basis { loss: 0.2, burst: 1.0, depth: 1, budget: 20.0 }, &ranks, 0);
            if busy {
                sender.meter.packet(at(0), 1 << 30);
                sender.meter.packet(at(20), 0);
            }
            sender.refresh(&ring, 0..1);
            sender.backlog()
        };
        let planned = backlog(false, true);
        assert_eq!((backlog(false, false), backlog(true, true)), (planned, planned));
        assert!(
            (19..=21).contains(&planned) && backlog(true, false) > 22,
            "20 packets of which 16 arrive on average"
        );
    }
}
