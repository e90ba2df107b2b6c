//! Scheduled changes of links, and the mean rates of delivery that result.

use hopcast_core::{Instant, Rate};
use hopcast_link::{Attachment, Change, Loss, Mac, PairLoss};

use super::mean_loss;
use crate::scenario::model::{Action, Link, LinkId, LinkModel, Scenario};

/// Rate of a link that has none, in bit/s. Chosen: finite, so that it can be multiplied by zero.
const UNLIMITED: f64 = 1e33;

/// A window with the changes of each link up to its end.
#[derive(Debug)]
pub(super) struct Timeline<'s> {
    from: Instant,
    to: Instant,
    /// Whether random loss is ignored: each frame arrives unless its loss is certain.
    lossless: bool,
    /// The changes of each link in the order of time: the time, the attachment and the change.
    changes: Vec<Vec<(Instant, Option<Attachment>, &'s Change)>>,
}

impl<'s> Timeline<'s> {
    pub(super) fn new(scenario: &'s Scenario, from: Instant, to: Instant) -> Self {
        let mut changes = vec![Vec::new(); scenario.links.len()];
        // A change at the end of a window does not count; one at its start does.
        for event in scenario.events.iter().take_while(|event| event.at <= from.max(to)) {
            if let Action::Link { link, from, change } = &event.action {
                changes[*link].push((event.at, *from, change));
            }
        }
        Self { from, to, lossless: false, changes }
    }

    /// The timeline without random loss.
    pub(super) fn lossless(self) -> Self {
        Self { lossless: true, ..self }
    }

    /// The mean rate of delivery of `sender`, in bit/s.
    pub(super) fn mean(&self, link: LinkId, sender: Sender) -> f64 {
        let mut mean = 0.0;
        self.phases(link, [sender], |share, [sender]| mean += share * sender.rate() * sender.pass());
        mean
    }

    /// The mean rate of transmission of `sender`, in bit/s.
    pub(super) fn mean_rate(&self, link: LinkId, sender: Sender) -> f64 {
        let mut mean = 0.0;
        self.phases(link, [sender], |share, [sender]| mean += share * sender.rate());
        mean
    }

    /// Calls `phase` for each part of the window in which nothing changes, with its share of the window and the state
    /// of the senders.
    pub(super) fn phases<const N: usize>(
        &self,
        link: LinkId,
        mut senders: [Sender; N],
        mut phase: impl FnMut(f64, &[Sender; N]),
    ) {
        senders.iter_mut().for_each(|sender| sender.lossless = self.lossless);
        let window = self.to.since(self.from).as_secs_f64();
        let mut since = self.from;
        for &(at, from, change) in &self.changes[link] {
            if at > since {
                phase(at.since(since).as_secs_f64() / window, &senders);
                since = at;
            }
            senders.iter_mut().for_each(|sender| sender.change(from, change));
        }
        if self.from >= self.to {
            phase(1.0, &senders);
        } else if self.to > since {
            phase(self.to.since(since).as_secs_f64() / window, &senders);
        }
    }
}

/// The loss of frames between two ends of a link at the start of the run.
pub(super) fn loss_between(link: &Link, from: Attachment, to: Attachment) -> &Loss {
    let pairs: &[PairLoss] = match &link.model {
        LinkModel::PointToPoint(_) => &[],
        LinkModel::Medium(config) => &config.pairs,
        LinkModel::Switch(config) => &config.pairs,
    };
    let pair = pairs.iter().rev().find(|pair| (pair.from, pair.to) == (from, to));
    pair.map_or(&link.direction(from).loss, |pair| &pair.loss)
}

/// The state of a station that sends to another, at some instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    from: Attachment,
    to: Attachment,
    rate: Option<Rate>,
    /// Share of frames that are lost, above the acknowledgements of a medium.
    loss: f64,
    /// Share of attempts that fail below the acknowledgements of a medium.
    channel_loss: f64,
    /// Whether random loss is ignored.
    lossless: bool,
    up: bool,
}

impl Sender {
    /// The state at the start of the run.
    pub(super) fn new(link: &Link, from: Attachment, to: Attachment) -> Self {
        let mut channel_loss = 0.0;
        if let LinkModel::Medium(config) = &link.model
            && let Mac::Csma(csma) = &config.mac
        {
            channel_loss = mean_loss(&csma.channel);
        }
        let (rate, loss) = (link.direction(from).rate, mean_loss(loss_between(link, from, to)));
        Self { from, to, rate, loss, channel_loss, lossless: false, up: true }
    }

    /// Rate of transmission, in bit/s.
    pub(super) fn rate(&self) -> f64 {
        match self.rate {
            _ if !self.up => 0.0,
            Some(rate) => rate.bits_per_sec() as f64,
            None => UNLIMITED,
        }
    }

    /// Share of frames that arrive.
    pub(super) fn pass(&self) -> f64 {
        let pass = (1.0 - self.loss) * (1.0 - self.channel_loss);
        if self.lossless && pass > 0.0 { 1.0 } else { pass }
    }

    fn change(&mut self, from: Option<Attachment>, change: &Change) {
        if from.is_some_and(|from| from != self.from) {
            return;
        }
        match change {
            Change::Rate(rate) => self.rate = *rate,
            Change::Loss(loss) => self.loss = mean_loss(loss),
            Change::LossTo(to, loss) if *to == self.to => self.loss = mean_loss(loss),
            Change::Down => self.up = false,
            Change::Up => self.up = true,
            Change::LossTo(..)
            | Change::Delay(_)
            | Change::Jitter(_)
            | Change::Queue(_)
            | Change::Mtu(_)
            | Change::Reorder(_)
            | Change::Corrupt(_)
            | Change::Duplicate(_) => {}
        }
    }
}
