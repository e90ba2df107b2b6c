//! Requests for what is missing: when they are made, confirmed, suppressed and answered.
//!
//! A request for parity names a transmission group and how many packets it lacks, once the source has gone on to the
//! next one. Without parity, or where it does not reach, requests name packets. What becomes missing while more data
//! comes is gathered for a moment, so that one request names several.

use hopcast_core::{Duration, Instant};

use super::asks::{Key, MAX_ASKS, State, doubled};
use super::remote::Remote;
use super::{Output, Shared};
use crate::backoff;
use crate::pgm::wire::{AsOf, Body, MAX_NAK_LIST, Nak, Packet};

/// Sequence numbers of a request: one in its header, others in the list.
const MAX_NUMBERS: usize = 1 + MAX_NAK_LIST;
/// Time for which a receiver that sends nothing waits for what others ask for. Chosen: some rounds of theirs.
const SILENT: Duration = Duration::from_secs(2);
/// Intervals between packets of data for which what is lost is gathered, unless it is said how long. Chosen: at a loss
/// of a fifth a request then names two packets, and repairs come a few packets later.
const GATHERED: u64 = 8;
/// Longest time for which it is gathered then. Chosen: applications feel more.
const MAX_GATHER: Duration = Duration::from_millis(100);
/// Requests that a network element does not confirm after which the source is asked for an SPM. Chosen: fewer are lost
/// now and then, and more take time.
const UNHEARD: u16 = 4;
/// Shortest time in which an answer is awaited, where the source does not show that it is over.
const MIN_ANSWER: Duration = Duration::from_millis(100);

impl Remote {
    /// Notes what is missing of what the source has sent.
    pub(super) fn look_for_missing(&mut self, now: Instant, shared: &mut Shared) {
        let lead = self.lead();
        while self.scan <= lead && self.asks.len() < MAX_ASKS && self.window.bytes() <= shared.config.window {
            let group = self.window.groups.first(self.scan);
            let full = self.window.groups.full() as u64;
            if self.is_selective(group) {
                if self.window.is_missing(self.scan) {
                    let due = self.first_due(now, true, shared);
                    self.asks.begin(Key::Packet(self.scan), due);
                }
                self.scan += 1;
                continue;
            }
            let last = group + self.window.groups.size(group) as u64 - 1;
            let is_over = lead > last
                || self.window.groups.is_short(group)
                || lead == last && (!self.window.groups.proactive || self.spm_lead == lead);
            if !is_over {
                break;
            }
            if self.window.missing_of(group) > 0 {
                let due = self.first_due(now, false, shared);
                self.asks.begin(Key::Group(group), due);
            }
            self.scan = group + full;
        }
    }

    /// Whether packets of a group are asked for by themselves.
    fn is_selective(&self, group: u64) -> bool {
        // Others leave their last group open, and repair it by no parity.
        let is_left_open = !self.repairs_first
            && self.spm_lead >= self.data_lead.unwrap_or(0)
            && self.window.groups.first(self.spm_lead) == group;
        !self.on_demand || group < self.window.base() || is_left_open
    }

    /// When something that is missing is asked for first.
    fn first_due(&self, now: Instant, gathered: bool, shared: &mut Shared) -> Instant {
        if shared.config.silent {
            return now + SILENT;
        }
        let backoff = self.draw(shared);
        let is_last = self.spm_lead >= self.lead();
        let gather = shared.config.gather.unwrap_or((self.interval * GATHERED).min(MAX_GATHER));
        now + if gathered && !is_last { backoff.max(gather) } else { backoff }
    }

    /// A back-off at random.
    fn draw(&self, shared: &mut Shared) -> Duration {
        let receivers = shared.config.group_size;
        let factor = shared.config.backoff.unwrap_or(match receivers {
            0..=1 => 0,
            2..=10 => 1,
            11..=50 => 2,
            _ => 4,
        });
        let max = self.round_trip.mean() * u64::from(factor);
        backoff::truncated_exponential(&mut shared.random, max, receivers as f64)
    }

    /// Time in which an answer is awaited.
    pub(super) fn answer_time(&self) -> Duration {
        let measured = self.repair_time.limit().filter(|_| self.is_behind_element);
        let time = measured.unwrap_or(self.round_trip.timeout() * 4 + self.interval * 4);
        time.max(MIN_ANSWER)
    }

    /// The source sends something that follows all repairs it was asked for: what is still missing was lost again.
    pub(super) fn over(&mut self, now: Instant, is_spm: bool, shared: &mut Shared) {
        if shared.config.silent {
            return;
        }
        if self.repairs_first && !self.is_behind_element {
            for key in self.asks.in_state(State::WaitData) {
                let due = self.first_due(now, matches!(key, Key::Packet(_)), shared);
                self.asks.set(key, State::BackOff, due, |_| {});
            }
        }
        // A source that has nothing else to send is not waited for.
        if is_spm {
            for key in self.asks.in_state(State::BackOff) {
                let due = now + self.draw(shared);
                if self.asks.get(key).is_some_and(|ask| ask.due > due) {
                    self.asks.set(key, State::BackOff, due, |_| {});
                }
            }
        }
    }

    /// Makes the requests whose back-off is over, repeats those that nobody has confirmed or answered, and gives up
    /// what was asked for too often.
    pub(super) fn make_requests(&mut self, now: Instant, shared: &mut Shared, output: &mut Output) {
        let mut is_due = false;
        let mut is_lost = false;
        for (key, ask) in self.asks.due(now) {
            if shared.config.silent {
                self.give_up(key);
                continue;
            }
            match ask.state {
                State::BackOff => is_due = true,
                State::WaitNcf if ask.unconfirmed < shared.config.retries => {
                    is_lost |= self.is_behind_element && ask.unconfirmed.is_multiple_of(UNHEARD);
                    let due = now + self.draw(shared);
                    self.asks.set(key, State::BackOff, due, |_| {});
                    is_due |= due <= now;
                }
                State::WaitData if !self.is_behind_element && now < self.last_repair + self.answer_time() => {
                    // The source is busy with repairs. An element holds back what is asked for too early.
                    let due = self.last_repair + self.answer_time();
                    self.asks.set(key, State::WaitData, due, |_| {});
                }
                State::WaitData if ask.unanswered < shared.config.retries => {
                    let due = now + self.draw(shared);
                    self.asks.set(key, State::BackOff, due, |ask| {
                        ask.unanswered += 1;
                        ask.confirmed = None;
                    });
                    is_due |= due <= now;
                }
                State::WaitNcf => {
                    shared.counts.unconfirmed += 1;
                    self.give_up(key);
                }
                State::WaitData => {
                    shared.counts.unanswered += 1;
                    self.give_up(key);
                }
            }
        }
        if is_lost {
            // The element may be gone, or have forgotten the session: an SPM names who is there.
            let request = Packet::new(self.session, self.port, Body::SpmRequest);
            output.packets.push((shared.upstream(self.address.ip(), self.address), request.emit()));
        }
        if is_due {
            let (packets, groups): (Vec<Key>, Vec<Key>) =
                self.asks.in_state(State::BackOff).into_iter().partition(|key| matches!(key, Key::Packet(_)));
            self.request(now, &packets, shared, output);
            self.request(now, &groups, shared, output);
        }
    }

    fn give_up(&mut self, key: Key) {
        self.asks.end(key);
        match key {
            Key::Packet(sequence) => self.window.give_up(sequence),
            Key::Group(first) => self.window.give_up_group(first),
        }
    }

    fn request(&mut self, now: Instant, keys: &[Key], shared: &mut Shared, output: &mut Output) {
        let Some(path) = self.path else { return };
        let mut numbers = Vec::new();
        for &key in keys {
            match key {
                Key::Packet(sequence) => numbers.push((key, sequence)),
                Key::Group(first) => match self.window.lacks(first) {
                    0 => self.asks.end(key),
                    lacks => numbers.push((key, first + lacks as u64 - 1)),
                },
            }
        }
        let is_parity = matches!(keys.first(), Some(Key::Group(_)));
        for list in numbers.chunks(MAX_NUMBERS) {
            let Some((&(_, first), rest)) = list.split_first() else { continue };
            let nak = Nak { sequence: first as u32, source: self.address.ip(), group: shared.group.ip() };
            let mut packet = Packet::new(self.session, self.port, Body::Nak(nak));
            packet.is_parity = is_parity;
            packet.options.nak_list = rest.iter().map(|&(_, number)| number as u32).collect();
            // Sources that do not keep repairs first do not read it either.
            packet.options.as_of =
                self.repairs_first.then(|| AsOf { lead: self.as_of_lead() as u32, spm: self.spm as u32 });
            packet.options.congestion_feedback = self.acks.feedback(now, shared);
            let bytes = packet.emit();
            shared.requests.sent += 1;
            self.last_request = list.iter().map(|&(_, number)| number as u32).collect();
            if shared.config.multicast_naks {
                output.packets.push((shared.group, bytes.clone()));
            }
            output.packets.push((shared.upstream(path, self.address), bytes));
        }
        let timeout = self.round_trip.timeout();
        for (key, _) in numbers {
            let times = self.asks.get(key).map_or(0, |ask| ask.unconfirmed);
            self.asks.set(key, State::WaitNcf, now + doubled(timeout, times), |ask| {
                ask.asked = Some(now);
                ask.made = (ask.unconfirmed == 0).then_some(now);
                ask.unconfirmed += 1;
            });
        }
    }

    /// Highest sequence number of new data that was heard.
    fn as_of_lead(&self) -> u64 {
        self.data_lead.unwrap_or(self.spm_lead)
    }

    /// A request has been confirmed, this receiver's or another's.
    pub(super) fn confirmed(&mut self, now: Instant, packet: &Packet<'_>, nak: &Nak, shared: &mut Shared) {
        let due = now + self.answer_time();
        let is_own = self.is_of_last_request(packet, nak);
        for number in numbers(packet, nak) {
            let number = self.number(number);
            let key = self.asked_for(packet, number);
            if let (Key::Group(first), Some(size)) = (key, packet.options.group_size) {
                self.window.groups.ended_early(first, size);
                self.ended = Some(first);
            }
            let Some(&ask) = self.asks.get(key) else { continue };
            if !self.is_enough(key, number) {
                continue;
            }
            if ask.state == State::BackOff {
                shared.requests.suppressed += 1;
            }
            if let Some(made) = ask.made.filter(|_| is_own) {
                self.round_trip.sample(now.since(made));
            }
            // Of one that is confirmed again it is not known which request is answered.
            let is_first = ask.state != State::WaitData && ask.confirmed.is_none();
            self.asks.set(key, State::WaitData, due, |ask| {
                ask.made = None;
                ask.confirmed = is_first.then_some(now);
                ask.unconfirmed = 0;
            });
        }
    }

    /// A repair has come: the request for it has been heard, and so has what else it named, whose confirmation is lost.
    pub(super) fn confirmed_by_repair(&mut self, now: Instant, key: Key) {
        let Some(asked) =
            self.asks.get(key).filter(|ask| ask.state == State::WaitNcf).and_then(|ask| ask.asked)
        else {
            return;
        };
        // One that comes earlier answers somebody else.
        if now < asked + self.round_trip.mean() {
            return;
        }
        let due = now + self.answer_time();
        for other in self.asks.in_state(State::WaitNcf) {
            if self.asks.get(other).is_some_and(|ask| ask.asked == Some(asked)) {
                self.asks.set(other, State::WaitData, due, |ask| (ask.made, ask.unconfirmed) = (None, 0));
            }
        }
    }

    /// Whether a confirmation is that of the last request: one that names something else answers another's, or one of
    /// before. Groups that were ended early have confirmations of their own.
    fn is_of_last_request(&self, packet: &Packet<'_>, nak: &Nak) -> bool {
        let is_short = |number: u32| {
            packet.is_parity && self.window.groups.is_short(self.window.groups.first(self.number(number)))
        };
        let own = self.last_request.iter().copied();
        if packet.options.group_size.is_some() {
            return self.last_request.contains(&nak.sequence);
        }
        numbers(packet, nak).into_iter().eq(own.filter(|&number| !is_short(number)))
    }

    /// Another receiver has asked: what is on its way need not be asked for.
    pub(super) fn asked_by_others(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        nak: &Nak,
        shared: &mut Shared,
    ) {
        for number in numbers(packet, nak) {
            let number = self.number(number);
            let key = self.asked_for(packet, number);
            let waits = self.asks.get(key).is_some_and(|ask| ask.state == State::BackOff);
            if waits && self.is_enough(key, number) {
                shared.requests.suppressed += 1;
                let due = now + self.round_trip.timeout();
                self.asks.set(key, State::WaitNcf, due, |ask| {
                    ask.made = None;
                    ask.unconfirmed += 1;
                });
            }
        }
    }

    fn asked_for(&self, packet: &Packet<'_>, number: u64) -> Key {
        if packet.is_parity { Key::Group(self.window.groups.first(number)) } else { Key::Packet(number) }
    }

    /// Whether what is asked for by a number is as much as this receiver lacks.
    fn is_enough(&self, key: Key, number: u64) -> bool {
        match key {
            Key::Packet(_) => true,
            Key::Group(first) => self.window.lacks(first) as u64 <= number - first + 1,
        }
    }
}

/// The sequence numbers of a request or confirmation.
fn numbers(packet: &Packet<'_>, nak: &Nak) -> Vec<u32> {
    std::iter::once(nak.sequence).chain(packet.options.nak_list.iter().copied()).collect()
}
