//! An exchange of frames: what is received, what answers it, and how it ends.

use hopcast_core::{FrameOutcome, Instant};

use super::contender::{Head, Reply};
use super::transmission::{Kind, ReceptionState, Transmission};
use super::{Attachment, Dcf};
use crate::address::is_group;
use crate::config::DropReason;
use crate::stations::Stations;

impl Dcf {
    /// A transmission has ended, and is received or not.
    pub(super) fn finish(&mut self, transmission: &Transmission, stations: &mut Stations) {
        let &Transmission { from, end, kind, .. } = transmission;
        if kind == Kind::Data {
            self.hear_data(transmission, stations);
        }
        for station in 0..self.contenders.len() {
            match transmission.receptions[station] {
                ReceptionState::Unheard | ReceptionState::Deaf => {}
                ReceptionState::Collided => self.contenders[station].received(true),
                // Of data, the channel's loss has been judged.
                ReceptionState::Clean if kind == Kind::Data => {}
                ReceptionState::Clean => {
                    self.contenders[station].received(false);
                    self.receive(station, transmission, stations);
                }
            }
        }
        let waits = match kind {
            Kind::Rts => self.config.rts.map(|rts| self.config.sifs + rts.cts),
            Kind::Data => {
                let alone = self.contenders[from].head.as_ref().is_some_and(|head| !is_group(&head.frame));
                alone.then_some(self.config.sifs + self.config.ack)
            }
            Kind::Cts | Kind::Ack => return,
        };
        if transmission.collided() {
            stations.senders[from].collided();
        }
        match waits {
            Some(wait) => self.contenders[from].awaits = Some(end + wait),
            None => self.succeed(end, from, stations),
        }
    }

    /// Delivers a data frame to the stations at which nothing overlapped it and the channel does not lose it.
    fn hear_data(&mut self, transmission: &Transmission, stations: &mut Stations) {
        let &Transmission { from, to, end, reserved, .. } = transmission;
        // Taken out meanwhile, so that its listeners can be looked at.
        let Some(mut head) = self.contenders[from].head.take() else { return };
        for station in 0..self.contenders.len() {
            let reception = transmission.receptions[station];
            let Some(path) = stations.path_mut(from, station) else { continue };
            if reception == ReceptionState::Unheard {
                continue;
            }
            let lost = path.channel_lost();
            let missed = match reception {
                ReceptionState::Collided => Some(DropReason::Collision),
                ReceptionState::Deaf => Some(DropReason::HalfDuplex),
                ReceptionState::Unheard | ReceptionState::Clean => lost.then_some(DropReason::RetryLimit),
            };
            if reception == ReceptionState::Clean {
                self.contenders[station].received(lost);
            }
            match missed {
                Some(reason) if head.heard[station].is_err() => head.heard[station] = Err(reason),
                Some(_) => {}
                None => {
                    let (wanted, addressed) = stations.wants(station, &head.frame);
                    if to == Some(station) {
                        let at = end + self.config.sifs;
                        let reply = Reply { at, kind: Kind::Ack, to: from, reserved: at + self.config.ack };
                        self.contenders[station].reply = Some(reply);
                    } else {
                        self.contenders[station].nav.reserve(reserved, None);
                    }
                    if wanted && head.heard[station].is_err() {
                        head.heard[station] = Ok(());
                        if addressed {
                            count(end, from, &mut head, stations);
                        }
                        stations.listen(end, from, station, &head.frame, addressed);
                    }
                }
            }
        }
        if is_group(&head.frame) {
            count(end, from, &mut head, stations);
        }
        self.contenders[from].head = Some(head);
    }

    /// A station has received an RTS, a CTS or an acknowledgement without errors.
    fn receive(&mut self, station: Attachment, transmission: &Transmission, stations: &mut Stations) {
        let &Transmission { from, to, kind, end, reserved, .. } = transmission;
        let own = &mut self.contenders[station];
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
            Kind::Ack if own.awaits.take().is_some() => self.succeed(end, station, stations),
            Kind::Rts | Kind::Cts | Kind::Data | Kind::Ack => {}
        }
    }

    /// A station's exchange has come to its end: the frame was acknowledged, or was for a group.
    fn succeed(&mut self, now: Instant, station: Attachment, stations: &mut Stations) {
        self.contenders[station].set_window(false, &self.config);
        if let Some(head) = self.contenders[station].head.take() {
            let outcome = FrameOutcome::Acknowledged;
            stations.reports.status(now, station, &head.frame, outcome, head.retries + 1);
            self.settle(now, station, head, None, stations);
        }
        self.next_head(now, station, stations);
    }

    /// A station's exchange has failed: it tries again, or gives the frame up.
    pub(super) fn fail(&mut self, now: Instant, station: Attachment, stations: &mut Stations) {
        let retries = self.config.retries;
        match self.contenders[station].head.take() {
            Some(mut head) if head.retries < retries => {
                head.retries += 1;
                stations.senders[station].retried();
                self.contenders[station].head = Some(head);
                self.contenders[station].set_window(true, &self.config);
            }
            Some(head) => {
                let outcome = FrameOutcome::Unacknowledged;
                stations.reports.status(now, station, &head.frame, outcome, head.retries + 1);
                self.settle(now, station, head, None, stations);
                self.contenders[station].set_window(false, &self.config);
            }
            None => {}
        }
        self.next_head(now, station, stations);
    }

    /// A station draws a back-off, as after each exchange, and contends with what has waited longest in its queue if it
    /// has nothing else to contend with.
    fn next_head(&mut self, now: Instant, station: Attachment, stations: &mut Stations) {
        self.contenders[station].back_off();
        if self.contenders[station].head.is_none()
            && let Some(frame) = stations.senders[station].pull(now, &mut stations.reports)
        {
            self.contenders[station].head = Some(self.head(station, frame, stations));
        }
    }

    /// The sender is done with a frame: the stations that have not heard it have missed it, for `reason` if there is
    /// one.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        from: Attachment,
        mut head: Head,
        reason: Option<DropReason>,
        stations: &mut Stations,
    ) {
        count(now, from, &mut head, stations);
        for station in 0..stations.len() {
            let (wanted, addressed) = stations.wants(station, &head.frame);
            let reaches = stations.hears(from, station) || (addressed && !is_group(&head.frame));
            if let Err(missed) = head.heard[station]
                && wanted
                && reaches
            {
                stations.miss(now, from, station, &head.frame, reason.unwrap_or(missed));
            }
        }
        stations.echo(now, from, &head.frame);
        head.frame.recycle();
        self.spare.heard.push(head.heard);
    }
}

/// Counts a frame as sent, once, at each station that it was for.
fn count(end: Instant, from: Attachment, head: &mut Head, stations: &mut Stations) {
    if std::mem::replace(&mut head.counted, true) {
        return;
    }
    stations.senders[from].sent(end, &head.frame, &mut stations.reports);
    for station in 0..stations.len() {
        let (wanted, addressed) = stations.wants(station, &head.frame);
        let reaches = stations.hears(from, station) || (addressed && !is_group(&head.frame));
        let Some(path) = stations.path_mut(from, station).filter(|_| reaches) else { continue };
        if addressed {
            path.sent(&head.frame);
        }
        if !wanted {
            path.pass();
        }
    }
}
