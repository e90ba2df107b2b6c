//! An exchange of frames: what is received, what answers it, and how it ends.

use hopcast_core::{Fraction, FrameOutcome, Instant};

use super::contender::{Head, Reply};
use super::transmission::{Kind, Listener, ReceptionState, Transmission};
use super::{Attachment, Dcf};
use crate::Hearing;
use crate::address::is_group;
use crate::config::DropReason;
use crate::stations::Stations;

impl Dcf {
    /// A transmission has ended, and is received or not.
    pub(super) fn finish(&mut self, transmission: &Transmission, stations: &mut Stations) {
        let &Transmission { from, to, end, kind, .. } = transmission;
        if kind == Kind::Data {
            self.hear_data(transmission, stations);
        }
        for listener in &transmission.listeners {
            let station = listener.station;
            match self.contenders[station].reception(&listener.mark) {
                ReceptionState::Deaf => {}
                ReceptionState::Collided => self.contenders.touch(station).received(true),
                ReceptionState::Clean if !listener.reads => self.contenders.touch(station).received(true),
                // Of data, the channel's loss has been judged.
                ReceptionState::Clean if kind == Kind::Data => {}
                ReceptionState::Clean => {
                    self.contenders.touch(station).received(false);
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
        if stations.radios.is_some()
            && let Some(to) =
                to.filter(|&to| !transmission.listener(to).is_some_and(|listener| listener.reads))
            && let Some(head) = &mut self.contenders.touch(from).head
            && head.heard[to].is_err()
        {
            head.heard[to] = Err(DropReason::Unheard);
        }
        if self.collided(transmission) {
            stations.senders[from].collided();
        }
        match waits {
            Some(wait) => self.contenders.touch(from).awaits = Some(end + wait),
            None => self.succeed(end, from, stations),
        }
    }

    /// Whether a transmission was disturbed at the station that it is for, or, without one, at any.
    fn collided(&self, transmission: &Transmission) -> bool {
        let disturbed = |listener: &Listener| {
            self.contenders[listener.station].reception(&listener.mark) != ReceptionState::Clean
        };
        match transmission.to {
            Some(to) => transmission.listener(to).is_some_and(disturbed),
            None => transmission.listeners.iter().any(disturbed),
        }
    }

    /// Delivers a data frame to the stations at which nothing overlapped it and the channel does not lose it.
    fn hear_data(&mut self, transmission: &Transmission, stations: &mut Stations) {
        let &Transmission { from, to, end, reserved, .. } = transmission;
        // Taken out meanwhile, so that its listeners can be looked at.
        let Some(mut head) = self.contenders.touch(from).head.take() else { return };
        if stations.radios.is_some() {
            reach(&transmission.listeners, &mut head, stations);
        }
        for listener in &transmission.listeners {
            let station = listener.station;
            let reception = self.contenders[station].reception(&listener.mark);
            let clean = reception == ReceptionState::Clean && listener.reads;
            // Noise and collisions are lost whatever the radios say.
            let hearing = match &mut stations.radios {
                Some(radios) if clean => radios.hearing(end, from, station).filter(Hearing::reads),
                Some(_) | None => None,
            };
            let by_radio = stations.radios.is_some();
            let Some(path) = stations.path_mut(from, station) else { continue };
            let lost = match hearing {
                None if by_radio => true,
                None => path.channel_lost(),
                Some(hearing) => path.channel_lost() | path.radio_lost(hearing.loss),
            };
            // A frame to others is not retried for this station's sake.
            let loss = match to {
                _ if !by_radio => DropReason::RetryLimit,
                Some(to) if to == station => DropReason::RetryLimit,
                _ => DropReason::Lost,
            };
            let missed = match reception {
                ReceptionState::Collided => Some(DropReason::Collision),
                ReceptionState::Deaf => Some(DropReason::HalfDuplex),
                ReceptionState::Clean => lost.then_some(loss),
            };
            if clean {
                self.contenders.touch(station).received(lost);
            }
            match missed {
                Some(reason) if head.heard[station].is_err() => head.heard[station] = Err(reason),
                Some(_) => {}
                None => {
                    let (wanted, addressed) = stations.wants(station, &head.frame);
                    if to == Some(station) {
                        let at = end + self.config.sifs;
                        let reply = Reply { at, kind: Kind::Ack, to: from, reserved: at + self.config.ack };
                        self.contenders.touch(station).reply = Some(reply);
                    } else {
                        self.contenders.touch(station).nav.reserve(reserved, None);
                    }
                    if wanted && head.heard[station].is_err() {
                        head.heard[station] = Ok(());
                        if addressed {
                            self.count(end, from, &mut head, stations);
                        }
                        // Its loss has been judged.
                        let hearing = hearing.map(|hearing| Hearing { loss: Fraction::ZERO, ..hearing });
                        stations.listen(end, from, station, &head.frame, addressed, hearing);
                    }
                }
            }
        }
        if is_group(&head.frame) {
            self.count(end, from, &mut head, stations);
        }
        self.contenders.touch(from).head = Some(head);
    }

    /// A station has received an RTS, a CTS or an acknowledgement without errors.
    fn receive(&mut self, station: Attachment, transmission: &Transmission, stations: &mut Stations) {
        let &Transmission { from, to, kind, end, reserved, .. } = transmission;
        let own = self.contenders.touch(station);
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
        self.contenders.touch(station).set_window(false, &self.config);
        if let Some(head) = self.contenders.touch(station).head.take() {
            let outcome = FrameOutcome::Acknowledged;
            stations.reports.status(now, station, &head.frame, outcome, head.retries + 1);
            self.settle(now, station, head, None, stations);
        }
        self.next_head(now, station, stations);
    }

    /// A station's exchange has failed: it tries again, or gives the frame up.
    pub(super) fn fail(&mut self, now: Instant, station: Attachment, stations: &mut Stations) {
        let retries = self.config.retries;
        match self.contenders.touch(station).head.take() {
            Some(mut head) if head.retries < retries => {
                head.retries += 1;
                stations.senders[station].retried();
                self.contenders.touch(station).head = Some(head);
                self.contenders.touch(station).set_window(true, &self.config);
            }
            Some(head) => {
                let outcome = FrameOutcome::Unacknowledged;
                stations.reports.status(now, station, &head.frame, outcome, head.retries + 1);
                self.settle(now, station, head, None, stations);
                self.contenders.touch(station).set_window(false, &self.config);
            }
            None => {}
        }
        self.next_head(now, station, stations);
    }

    /// A station draws a back-off, as after each exchange, and contends with what has waited longest in its queue if it
    /// has nothing else to contend with.
    fn next_head(&mut self, now: Instant, station: Attachment, stations: &mut Stations) {
        self.contenders.touch(station).back_off();
        if self.contenders[station].head.is_none()
            && let Some(frame) = stations.senders[station].pull(now, &mut stations.reports)
        {
            self.contenders.touch(station).head = Some(self.head(station, frame, stations));
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
        self.count(now, from, &mut head, stations);
        let reached = self.reached(from, &head);
        for &station in &reached {
            let (wanted, _) = stations.wants(station, &head.frame);
            if let Err(missed) = head.heard[station]
                && wanted
            {
                stations.miss(now, from, station, &head.frame, reason.unwrap_or(missed));
            }
        }
        self.spare.reached = reached;
        stations.echo(now, from, &head.frame);
        head.frame.recycle();
        self.spare.heard.push(head.heard);
        self.spare.audience.push(head.audience);
    }

    /// Counts a frame as sent, once, at each station that it was for.
    fn count(&mut self, end: Instant, from: Attachment, head: &mut Head, stations: &mut Stations) {
        if std::mem::replace(&mut head.counted, true) {
            return;
        }
        stations.senders[from].sent(end, &head.frame, &mut stations.reports);
        let reached = self.reached(from, head);
        let radios = stations.radios.is_some();
        for &station in &reached {
            let (wanted, addressed) = stations.wants(station, &head.frame);
            let Some(path) = stations.path_mut(from, station) else { continue };
            if addressed {
                path.sent(&head.frame);
            }
            // A radio's losses have no memory.
            if !wanted && !radios {
                path.pass();
            }
        }
        self.spare.reached = reached;
    }

    /// The stations that a frame reaches, and the one that it is for whether it does or not, in their order.
    fn reached(&mut self, from: Attachment, head: &Head) -> Vec<Attachment> {
        let mut reached = std::mem::take(&mut self.spare.reached);
        reached.clear();
        reached.extend(self.hearers.get(from).unwrap_or(&head.audience));
        if let Some(to) = head.to
            && let Err(place) = reached.binary_search(&to)
        {
            reached.insert(place, to);
        }
        reached
    }
}

/// Notes the stations that want a frame and are reached by an attempt for the first time.
fn reach(listeners: &[Listener], head: &mut Head, stations: &Stations) {
    for &Listener { station, reads, .. } in listeners {
        let (wanted, _) = stations.wants(station, &head.frame);
        if wanted
            && reads
            && let Err(place) = head.audience.binary_search(&station)
        {
            head.audience.insert(place, station);
        }
    }
}
