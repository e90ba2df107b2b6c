//! The sending end of a hop: what is the same whether or not the hops tell each other ranks.
//!
//! It numbers packets, has the rate of the link, decides when INFO is sent and when to ask for a report, and takes from
//! a report what that says of the hop. What of a batch a child gets is the mode's: [`ranks`](super::ranks) with rank
//! feedback, [`strict`](super::strict) without.

use hopcast_core::{Duration, Instant, Stream};

use super::child::{Child, Heard, Losses, Refused};
use super::rate::{self, LinkRate};
use super::wire::Report;

/// Interval at which INFO is repeated while data is sent. Chosen: a child that missed it, or a relay that was
/// restarted, waits this long before it can take anything; INFO of 32 bytes four times a second costs 1 kbit/s.
const INFO_EVERY: Duration = Duration::from_millis(250);
/// The same while INFO tells something new: its round trip has changed, or it carries the budget of a batch, which
/// without rank feedback follows the losses of the path. Chosen: longer, and a child reports at an interval that is
/// wrong, or spends what the path no longer has; shorter gains nothing, as both are averages of several round trips.
const INFO_CHANGED: Duration = Duration::from_millis(50);
/// Change of the round trip that counts, as one over a share of it. Chosen: reports come four times in a round trip
/// (`receiver`), so that a quarter is as much as one more or less of them.
const CHANGED: u64 = 4;
/// Datagrams that INFO goes with before a report comes: the first four, and then every eighth. Chosen: at a
/// loss of 20 % all four are lost once in 600 times; INFO with all of them would take the place of data.
const UNHEARD: u64 = 4;
/// Probes without a report after which a child is silent: a second or two. Chosen: fewer, and a burst of losses takes a
/// live child out of those that are waited for; more, and the others wait for one that is gone.
pub(super) const SILENT: u32 = 6;

/// Longest time from a child to the ends behind it that is believed. Chosen: no path is that long; without a bound, a
/// child that lies would have its parent keep everything.
const MAX_REST: Duration = Duration::from_secs(10);

/// Packets that a child may be sent before it has granted any. Chosen: a relay that has passed nothing on yet grants as
/// many (`ALLOWANCE` in `transmit`); fewer would stop a window that starts with 10 packets, more would queue there.
pub(super) const FIRST_GRANT: u64 = 128;

/// The sender of a mode, which has such an end.
pub(super) trait OverHop {
    /// The record of losses.
    type Losses: Losses;

    fn hop(&self) -> &HopSender<Self::Losses>;

    fn hop_mut(&mut self) -> &mut HopSender<Self::Losses>;

    /// Packets that wait for the child.
    fn backlog(&self) -> u64;

    /// The probe timeout has gone off, and a probe is sent, if only to ask.
    fn probed(&mut self, now: Instant);
}

/// The sending end of a hop.
#[derive(Debug)]
pub(super) struct HopSender<L> {
    pub(super) rate: LinkRate,
    /// Drawn when this node started.
    epoch: u32,
    /// The sequence number of the next packet.
    next: u64,
    child: Option<Child<L>>,
    /// Whether INFO carries the budget of a batch.
    budgeted: bool,
    /// Time at which INFO was sent last, and the round trip in it; `again`: it is due now.
    info: Instant,
    told: Duration,
    again: bool,
    /// Packets sent without any report, and that number when INFO was sent last.
    unheard: u64,
    informed: Option<u64>,
    /// Time at which a probe is due.
    probe: Option<Instant>,
    /// INFO has gone with the probe that is due.
    asked: bool,
    /// A probe has been sent, and no report has come since: every packet asks for one.
    asking: bool,
    /// Probes since the last report.
    probes: u32,
    /// Minimum time from the child to the furthest end behind it, if it has told it.
    rest: Option<Duration>,
    /// Bytes sent, and packets that were lost in transit, for the statistics.
    pub(super) bytes: u64,
    pub(super) lost: u64,
}

impl<L: Losses> HopSender<L> {
    /// `slack`: how late this node may come to send; `budgeted`: INFO carries the budget of a batch.
    pub(super) fn new(slack: Duration, budgeted: bool, mut random: Stream) -> Self {
        let epoch = random.bits() as u32;
        Self {
            rate: LinkRate::new(rate::Config { slack, ..rate::Config::default() }, random),
            epoch,
            next: 0,
            child: None,
            budgeted,
            info: Instant::ZERO,
            told: Duration::ZERO,
            again: true,
            unheard: 0,
            informed: None,
            probe: None,
            asked: false,
            asking: false,
            probes: 0,
            rest: None,
            bytes: 0,
            lost: 0,
        }
    }

    /// Begins with another session.
    pub(super) fn start(&mut self) {
        (self.child, self.probe, self.rest) = (None, None, None);
        (self.unheard, self.informed, self.asked) = (0, None, false);
    }

    pub(super) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The sequence number of the next packet.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Whether the child has reported.
    pub(super) const fn is_heard(&self) -> bool {
        self.child.is_some()
    }

    /// Minimum time to the furthest end behind the child, as far as it is known: at least to the child itself.
    pub(super) fn ahead(&self) -> Option<Duration> {
        Some(self.rate.min_rtt()? / 2 + self.rest.unwrap_or_default())
    }

    /// Minimum times to the child, and from there to the furthest end behind it, if it has told that.
    pub(super) fn to_end(&self) -> Option<(Duration, Duration)> {
        self.rate.min_rtt().zip(self.rest).map(|(trip, rest)| (trip / 2, rest))
    }

    /// Losses that the child has reported.
    pub(super) fn losses(&self) -> Option<&L> {
        self.child.as_ref().map(|child| &child.losses)
    }

    /// Makes sense of a report; nothing changes.
    ///
    /// # Errors
    ///
    /// It is old or makes no sense.
    pub(super) fn hear(&self, report: &Report<'_>) -> Result<Heard<L>, Refused> {
        Child::hear(self.child, report, self.epoch, self.next)
    }

    /// Takes what a report says of the hop. Nobody waits for it any more.
    pub(super) fn take(&mut self, now: Instant, heard: &Heard<L>) {
        if let Some(hop) = &heard.hop {
            self.lost += heard.lost;
            // A report that the rate refuses is impossible or known, and changes nothing there.
            _ = self.rate.on_report(now, hop);
        }
        self.child = Some(heard.child);
        self.rest = heard.rest.map(|rest| Duration::from_micros(u64::from(rest)).min(MAX_REST));
        self.unheard = 0;
        (self.probe, self.asking, self.probes) = (None, false, 0);
    }

    /// Gives the next packet its sequence number. [`sent`](Self::sent) is to be called for it next.
    pub(super) const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Notes that the packet that was numbered last is sent, in a datagram of `bytes` bytes; `app_limited`: none waits
    /// to follow it.
    pub(super) fn sent(&mut self, now: Instant, bytes: usize, app_limited: bool) {
        self.rate.on_sent(now, self.next - 1, bytes as u64, app_limited);
        self.bytes += bytes as u64;
        self.unheard += u64::from(self.child.is_none());
    }

    /// Time at which a probe is due.
    pub(super) const fn probe(&self) -> Option<Instant> {
        self.probe
    }

    pub(super) const fn set_probe(&mut self, at: Option<Instant>) {
        self.probe = at;
    }

    pub(super) fn probe_is_due(&self, now: Instant) -> bool {
        self.probe.is_some_and(|at| at <= now)
    }

    /// The probe timeout has gone off, and a probe is sent, if only to ask. `held`: how much longer than usual the
    /// answer may be held back.
    pub(super) fn probed(&mut self, now: Instant, held: Duration) {
        self.rate.on_probe(now);
        self.probes += 1;
        (self.asked, self.asking) = (false, true);
        self.probe = Some(now + self.rate.probe_timeout() + held);
    }

    /// Whether each packet asks for a report.
    pub(super) const fn is_asking(&self) -> bool {
        self.asking
    }

    /// Whether nothing has been heard for so long that the child does not count.
    pub(super) const fn is_silent(&self) -> bool {
        self.probes >= SILENT
    }

    /// Forgets that the other end was silent, so that it is tried anew.
    pub(super) const fn forget_silence(&mut self) {
        self.probes = 0;
    }

    /// Whether INFO is to go with what is sent now.
    pub(super) fn info_is_due(&self, now: Instant) -> bool {
        if self.probe_is_due(now) {
            !self.asked
        } else if self.is_heard() {
            let round_trip = self.rate.srtt().unwrap_or_default();
            let changed = self.budgeted || round_trip.abs_diff(self.told) > self.told / CHANGED;
            self.again || now >= self.info + if changed { INFO_CHANGED } else { INFO_EVERY }
        } else {
            let often = self.unheard < UNHEARD || self.unheard.is_multiple_of(2 * UNHEARD);
            often && self.informed != Some(self.unheard)
        }
    }

    /// INFO is sent.
    pub(super) fn informed(&mut self, now: Instant) {
        (self.info, self.told, self.again) = (now, self.rate.srtt().unwrap_or_default(), false);
        self.informed = Some(self.unheard);
        self.asked = self.probe_is_due(now);
    }

    /// The child needs INFO now.
    pub(super) const fn inform_again(&mut self) {
        self.again = true;
    }

    /// Goes on with another sequence number, for tests.
    #[cfg(test)]
    pub(super) const fn skip_to(&mut self, next: u64) {
        self.next = next;
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::super::bursts::Bursts;
    use super::super::rate::HopReport;
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn begun(budgeted: bool) -> HopSender<Bursts> {
        HopSender::new(Duration::ZERO, budgeted, Seed::new(1, 0).stream(&["hop"], 0))
    }

    /// The same, whose child has been heard.
    fn heard(budgeted: bool) -> HopSender<Bursts> {
        let mut hop = begun(budgeted);
        let heard = hop.hear(&Report::example(hop.epoch())).unwrap();
        hop.take(at(0), &heard);
        hop
    }

    #[test]
    fn info_goes_with_the_first_four_datagrams_and_then_with_every_eighth_until_a_report_comes() {
        for budgeted in [false, true] {
            let mut hop = begun(budgeted);
            let mut told = Vec::new();
            for unheard in 0..30 {
                hop.unheard = unheard;
                if hop.info_is_due(at(0)) {
                    told.push(unheard);
                    hop.informed(at(0));
                    assert!(!hop.info_is_due(at(0)), "once with each");
                }
            }
            assert_eq!(told, [0, 1, 2, 3, 8, 16, 24]);
        }
    }

    #[test]
    fn info_is_repeated_every_quarter_of_a_second_and_every_50_ms_if_it_carries_a_budget() {
        for (budgeted, millis) in [(false, 250), (true, 50)] {
            let mut hop = heard(budgeted);
            hop.informed(at(1000));
            assert!(!hop.info_is_due(at(999 + millis)) && hop.info_is_due(at(1000 + millis)));
        }
    }

    #[test]
    fn a_child_that_needs_info_is_sent_it_at_once() {
        let mut hop = heard(true);
        hop.informed(at(1000));
        hop.inform_again();
        assert!(hop.info_is_due(at(1000)));
        hop.informed(at(1000));
        assert!(!hop.info_is_due(at(1049)) && hop.info_is_due(at(1050)));
    }

    #[test]
    fn info_is_repeated_every_50_ms_while_the_round_trip_is_a_quarter_off_what_it_told() {
        let mut hop = heard(false);
        hop.rate.on_sent(at(0), 0, 1000, true);
        assert_eq!(hop.rate.on_report(at(100), &HopReport::example()), Ok(()));
        assert_eq!(hop.rate.srtt(), Some(Duration::from_millis(100)));
        hop.informed(at(1000));
        assert_eq!(hop.told, Duration::from_millis(100));
        for (told, changed) in [(50, true), (79, true), (81, false), (100, false), (133, false), (134, true)]
        {
            hop.told = Duration::from_millis(told);
            assert_eq!(hop.info_is_due(at(1050)), changed, "{told}");
            assert!(!hop.info_is_due(at(1049)));
        }
    }

    #[test]
    fn after_six_probes_without_a_report_a_child_is_silent() {
        let mut hop = begun(false);
        for probes in 1..=6 {
            assert!(!hop.is_silent());
            hop.probed(at(probes * 1000), Duration::ZERO);
        }
        assert!(hop.is_silent() && hop.is_asking());
    }
}
