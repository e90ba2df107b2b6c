//! The output of an edge to its interface.

use hopcast_code::field::Field;
use hopcast_core::{Buffer, Duration, Frame, Instant, Item};

use super::Edge;
use crate::franc::config::Plan;
use crate::franc::encoder::{State, Surroundings, What};
use crate::franc::lengths::{ENC, bitmap_len};
use crate::franc::wire::{self, Ack, Coding, Common, Enc, Packet};

/// Time that the head of an input waits from which on the input is behind: then the input, not what is missing at the
/// decoder, is the longest wait. Chosen; shorter, and a burst makes it behind; longer, and acknowledgements cost
/// airtime that the input lacks.
const BEHIND_AFTER: Duration = Duration::from_millis(25);
/// Wait of the head below which it has caught up. Chosen: well below [`BEHIND_AFTER`], so that it does not change back
/// and forth.
const CAUGHT_UP: Duration = Duration::from_millis(8);

impl<F: Field> Edge<F> {
    /// Hands the interface the frames to send.
    pub(super) fn send(&mut self, now: Instant) {
        let unmet = self.session.association().is_none() && !self.input.is_empty();
        if unmet || (self.session.is_new() && self.encoder.state() != State::Idle) {
            self.session.ask();
        }
        while self.gate.is_open(now) {
            let frame = match self.session.poll(now) {
                Some(hello) => {
                    self.counters.hellos_sent += 1;
                    Some(self.emit(false, 0, &Packet::Hello(hello)))
                }
                None => self.next_frame(now),
            };
            let Some(frame) = frame else { return };
            self.hand_over(now, frame);
        }
    }

    fn next_frame(&mut self, now: Instant) -> Option<Buffer> {
        let association = self.session.association()?;
        let ack_wanted = self.decoder.has_begun() && self.acks.is_wanted(now);
        let piggybacks = self.config.plan == Plan::Deficit;
        let ack = self.decoder.has_begun().then(|| self.decoder.acknowledgement(self.acks.number()));
        let ack_len = ack.as_ref().map_or(0, |ack| ack.len(self.config.block));
        let longest = self.config.longest_frame();
        // A new symbol leaves room for an acknowledgement that is wanted.
        let reserved = if ack_wanted && piggybacks { ack_len } else { 0 };
        let waited = self.input.waited(now);
        self.behind = is_behind(self.behind, waited);
        let held = self.input.since().is_some_and(|since| now.since(since) < self.config.gather);
        let around = Surroundings {
            losses: self.losses(),
            helped: self.is_helped(now),
            partial: self.gate.is_idle() && !held,
            room: usize::from(self.config.symbol).min(longest.saturating_sub(ENC + 1 + reserved)),
        };
        let Some(made) = self.encoder.next(now, &mut self.input, &around) else {
            if !self.acks.is_due(now) {
                return None;
            }
            return self.acknowledge(now, association, ack?);
        };
        let symbol = self.encoder.symbol();
        let (coding, coding_len) = match made.what {
            What::Symbol(index) => (Coding::Symbol(index), 1),
            What::Sum(among) => (Coding::Sum(among), bitmap_len(self.config.block)),
        };
        let used = symbol.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let fits = ENC + coding_len + used + ack_len <= longest;
        let due = self.acks.is_due(now);
        let ack = ack.filter(|_| due || ack_wanted || self.acks.has_news());
        let (along, alone) = if fits && piggybacks { (ack, None) } else { (None, ack.filter(|_| due)) };
        let acknowledges = along.is_some();
        let enc = Enc {
            block: made.block,
            sequence: made.sequence,
            added: made.added,
            coding,
            behind: self.behind,
            ack: along,
            report: None,
            symbol,
        };
        let frame = self.emit(self.is_up(), association, &Packet::Enc(enc));
        if acknowledges {
            self.acks.sent(now, self.decoder.is_missing());
        } else if let Some(ack) = alone
            && let Some(ack) = self.acknowledge(now, association, ack)
        {
            self.hand_over(now, ack);
        }
        Some(frame)
    }

    fn acknowledge(&mut self, now: Instant, association: u32, ack: Ack) -> Option<Buffer> {
        self.counters.acks_sent += 1;
        self.acks.sent(now, self.decoder.is_missing());
        // About the data of the other direction.
        Some(self.emit(!self.is_up(), association, &Packet::Ack(ack)))
    }

    fn emit(&self, up: bool, association: u32, packet: &Packet<'_>) -> Buffer {
        wire::emit((self.local, self.peer), Common { association, up }, packet, &self.config)
    }

    fn hand_over(&mut self, now: Instant, bytes: Buffer) {
        self.counters.frames_sent += 1;
        self.gate.handed(now);
        self.out.down(Item::Frame(Frame::new(bytes)));
    }
}

/// Whether an input is behind that was, or was not, before.
fn is_behind(before: bool, waited: Duration) -> bool {
    waited > if before { CAUGHT_UP } else { BEHIND_AFTER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_behind_from_25_ms_on_until_it_is_down_to_8() {
        let mut behind = false;
        let found = [0, 8, 25, 26, 24, 9, 8, 25, 26, 7].map(|millis| {
            behind = is_behind(behind, Duration::from_millis(millis));
            behind
        });
        assert_eq!(found, [false, false, false, true, true, true, false, false, true, false]);
    }
}
