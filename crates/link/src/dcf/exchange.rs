//! An exchange of frames: what is received, what answers it, and how it ends.

use hopcast_core::{FrameOutcome, Instant};

use super::station::{Head, Reply};
use super::transmission::{Kind, Reception, Transmission};
use super::{Attachment, Dcf};
use crate::air::{Air, is_group};
use crate::config::DropReason;

impl Dcf {
    /// A transmission has ended, and is received or not.
    pub(super) fn finish(&mut self, transmission: &Transmission, air: &mut Air) {
        let &Transmission { from, end, kind, .. } = transmission;
        if kind == Kind::Data {
            self.hear_data(transmission, air);
        }
        for station in 0..self.stations.len() {
            match transmission.receptions[station] {
                Reception::Unheard | Reception::Deaf => {}
                Reception::Collided => self.stations[station].received(true),
                // Of data, the channel's loss has been judged.
                Reception::Clean if kind == Kind::Data => {}
                Reception::Clean => {
                    self.stations[station].received(false);
                    self.receive(station, transmission, air);
                }
            }
        }
        let waits = match kind {
            Kind::Rts => self.config.rts.map(|rts| self.config.sifs + rts.cts),
            Kind::Data => {
                let alone = self.stations[from].head.as_ref().is_some_and(|head| !is_group(&head.frame));
                alone.then_some(self.config.sifs + self.config.ack)
            }
            Kind::Cts | Kind::Ack => return,
        };
        if transmission.collided() {
            air.senders[from].collided();
        }
        match waits {
            Some(wait) => self.stations[from].awaits = Some(end + wait),
            None => self.succeed(end, from, air),
        }
    }

    /// Those hear a frame whom nothing disturbed and to whom the channel carries it.
    fn hear_data(&mut self, transmission: &Transmission, air: &mut Air) {
        let &Transmission { from, to, end, reserved, .. } = transmission;
        // Taken out meanwhile, so that its listeners can be looked at.
        let Some(mut head) = self.stations[from].head.take() else { return };
        for station in 0..self.stations.len() {
            let reception = transmission.receptions[station];
            let Some(path) = air.path_mut(from, station) else { continue };
            if reception == Reception::Unheard {
                continue;
            }
            let lost = path.channel_lost();
            let missed = match reception {
                Reception::Collided => Some(DropReason::Collision),
                Reception::Deaf => Some(DropReason::HalfDuplex),
                Reception::Unheard | Reception::Clean => lost.then_some(DropReason::RetryLimit),
            };
            if reception == Reception::Clean {
                self.stations[station].received(lost);
            }
            match missed {
                Some(reason) if head.heard[station].is_err() => head.heard[station] = Err(reason),
                Some(_) => {}
                None => {
                    let (wanted, addressed) = air.wants(station, &head.frame);
                    if to == Some(station) {
                        let at = end + self.config.sifs;
                        let reply = Reply { at, kind: Kind::Ack, to: from, reserved: at + self.config.ack };
                        self.stations[station].reply = Some(reply);
                    } else {
                        self.stations[station].nav.reserve(reserved, None);
                    }
                    if wanted && head.heard[station].is_err() {
                        head.heard[station] = Ok(());
                        if addressed {
                            count(end, from, &mut head, air);
                        }
                        air.listen(end, from, station, &head.frame, addressed);
                    }
                }
            }
        }
        if is_group(&head.frame) {
            count(end, from, &mut head, air);
        }
        self.stations[from].head = Some(head);
    }

    /// A station has received an RTS, a CTS or an acknowledgement without errors.
    fn receive(&mut self, station: Attachment, transmission: &Transmission, air: &mut Air) {
        let &Transmission { from, to, kind, end, reserved, .. } = transmission;
        let own = &mut self.stations[station];
        if to != Some(station) {
            // A reservation lapses if no data follow the CTS (section 10.3.2.4).
            let lapses = self
                .config
                .rts
                .filter(|_| kind == Kind::Rts)
                .map(|rts| end + self.config.sifs * 2 + rts.cts + self.config.slot * 2);
            return own.nav.reserve(reserved, lapses);
        }
        let at = end + self.config.sifs;
        match kind {
            // Who knows the medium to be reserved stays silent.
            Kind::Rts if own.nav.end() <= end => {
                own.reply = Some(Reply { at, kind: Kind::Cts, to: from, reserved });
            }
            Kind::Cts if own.awaits.take().is_some() => {
                own.reply = Some(Reply { at, kind: Kind::Data, to: from, reserved });
            }
            Kind::Ack if own.awaits.take().is_some() => self.succeed(end, station, air),
            Kind::Rts | Kind::Cts | Kind::Data | Kind::Ack => {}
        }
    }

    /// A station's exchange has come to its end: the frame was acknowledged, or was for a group.
    fn succeed(&mut self, now: Instant, station: Attachment, air: &mut Air) {
        self.stations[station].set_window(false, &self.config);
        if let Some(head) = self.stations[station].head.take() {
            let outcome = FrameOutcome::Acknowledged;
            air.reports.status(now, station, &head.frame, outcome, head.retries + 1);
            self.settle(now, station, head, None, air);
        }
        self.next_head(now, station, air);
    }

    /// A station's exchange has failed: it tries again, or gives the frame up.
    pub(super) fn fail(&mut self, now: Instant, station: Attachment, air: &mut Air) {
        let retries = self.config.retries;
        match self.stations[station].head.take() {
            Some(mut head) if head.retries < retries => {
                head.retries += 1;
                air.senders[station].retried();
                self.stations[station].head = Some(head);
                self.stations[station].set_window(true, &self.config);
            }
            Some(head) => {
                let outcome = FrameOutcome::Unacknowledged;
                air.reports.status(now, station, &head.frame, outcome, head.retries + 1);
                self.settle(now, station, head, None, air);
                self.stations[station].set_window(false, &self.config);
            }
            None => {}
        }
        self.next_head(now, station, air);
    }

    /// A station draws a back-off, as after each exchange, and contends with what has waited longest in its queue if it
    /// has nothing else to contend with.
    fn next_head(&mut self, now: Instant, station: Attachment, air: &mut Air) {
        self.stations[station].back_off();
        if self.stations[station].head.is_none()
            && let Some(frame) = air.senders[station].pull(now, &mut air.reports)
        {
            self.stations[station].head = Some(self.head(station, frame, air));
        }
    }

    /// The sender is done with a frame; who has not heard it has missed it, for `reason` if there is one.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        from: Attachment,
        mut head: Head,
        reason: Option<DropReason>,
        air: &mut Air,
    ) {
        count(now, from, &mut head, air);
        for station in 0..air.len() {
            let (wanted, addressed) = air.wants(station, &head.frame);
            let reaches = air.hears(from, station) || (addressed && !is_group(&head.frame));
            if let Err(missed) = head.heard[station]
                && wanted
                && reaches
            {
                air.miss(now, from, station, &head.frame, reason.unwrap_or(missed));
            }
        }
        air.echo(now, from, &head.frame);
        head.frame.recycle();
        self.spare.heard.push(head.heard);
    }
}

/// Counts a frame as sent, once, at each station that it was for.
fn count(end: Instant, from: Attachment, head: &mut Head, air: &mut Air) {
    if std::mem::replace(&mut head.counted, true) {
        return;
    }
    air.senders[from].sent(end, &head.frame, &mut air.reports);
    for station in 0..air.len() {
        let (wanted, addressed) = air.wants(station, &head.frame);
        let reaches = air.hears(from, station) || (addressed && !is_group(&head.frame));
        let Some(path) = air.path_mut(from, station).filter(|_| reaches) else { continue };
        if addressed {
            path.sent(&head.frame);
        }
        if !wanted {
            path.pass();
        }
    }
}
