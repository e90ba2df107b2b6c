//! When this site says what to which member: offers of its own files, receipts for those of others.

use std::collections::BTreeSet;

use hopcast_core::{Datagram, Duration, Instant};

use super::LocalMember;
use super::wire::{Kind, Standing, Statement, files_of_offer, files_of_receipt, number};

/// Pause after an offer that nobody has answered; it doubles up to the maximum. Chosen; shorter costs datagrams on
/// paths with much delay, longer delays what follows a lost one. Only members that are up are asked, so that silence
/// means loss: at half of all datagrams lost, one offer of four is answered.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(4);
/// Receipts for files that wait to be told. Chosen: what is beyond is asked for by the next offer.
const MAX_RECEIPTS: usize = 4096;

/// The statements that are due, by member.
#[derive(Debug)]
pub(super) struct Statements(Vec<ToMember>);

#[derive(Clone, Debug)]
struct ToMember {
    /// When it may be asked, and the pause after that.
    ask: Instant,
    pause: Duration,
    /// Its files of which something is to be told.
    receipts: BTreeSet<u64>,
    /// The run of it that has told us anything, and when it did last.
    instance: Option<u32>,
    heard: Option<Instant>,
}

impl Statements {
    pub(super) fn new(members: usize) -> Self {
        let member = ToMember {
            ask: Instant::ZERO,
            pause: FIRST_PAUSE,
            receipts: BTreeSet::new(),
            instance: None,
            heard: None,
        };
        Self(vec![member; members])
    }

    /// A member can be reached again.
    pub(super) fn is_back(&mut self, member: usize, now: Instant) {
        let member = &mut self.0[member];
        (member.ask, member.pause) = (now, FIRST_PAUSE);
    }

    /// There is a file that nobody was asked for.
    pub(super) fn has_file(&mut self, now: Instant) {
        for member in &mut self.0 {
            (member.ask, member.pause) = (member.ask.min(now + FIRST_PAUSE), FIRST_PAUSE);
        }
    }

    /// A round of a file is over that some lack: they are asked again.
    pub(super) fn round_ends(&mut self, now: Instant, lack: impl IntoIterator<Item = usize>) {
        lack.into_iter().for_each(|member| self.is_back(member, now));
    }

    /// There is a message that nobody was asked for: first there is time for receipts that come unasked.
    pub(super) fn has_message(&mut self, now: Instant) {
        for member in self.0.iter_mut().filter(|member| member.ask <= now) {
            (member.ask, member.pause) = (now + FIRST_PAUSE, FIRST_PAUSE);
        }
    }

    /// A member has told something new; whether it is to be asked for more at once.
    fn has_answered(&mut self, member: usize, now: Instant, more: bool) {
        let pause = if more { Duration::ZERO } else { FIRST_PAUSE };
        let member = &mut self.0[member];
        (member.ask, member.pause) = (now + pause, FIRST_PAUSE);
    }

    /// A member is to be told what is here of a file.
    pub(super) fn tell(&mut self, member: usize, id: u64) {
        let receipts = &mut self.0[member].receipts;
        if receipts.len() < MAX_RECEIPTS {
            receipts.insert(id);
        }
    }

    /// When a member told us anything last.
    pub(super) fn heard(&self, member: usize) -> Option<Instant> {
        self.0[member].heard
    }
}

impl LocalMember {
    /// Makes the statements that are due to each member that is up.
    pub(super) fn speak(&mut self, now: Instant) {
        for member in self.members_up() {
            self.give_receipts(now, member, false);
            if now >= self.statements.0[member].ask {
                self.ask(now, member);
            }
        }
    }

    /// Asks a member about the files of which its state is unknown.
    fn ask(&mut self, now: Instant, member: usize) {
        let waiting = self.waiting_for();
        let unknown = self.catalogue.iter().filter(|file| {
            file.standings[member].is_none() || waiting == Some(file.id) && file.lacks_any(member)
        });
        let room = usize::from(self.config.datagram) - 1;
        let files: Vec<u64> = unknown.map(|file| file.id).take(files_of_offer(room)).collect();
        if files.is_empty() && !self.talk.is_behind(member) {
            return;
        }
        let (group, session, sent) = (number(&self.config.name), self.talk.session(), self.talk.sent);
        let to = &mut self.statements.0[member];
        to.ask = now + to.pause;
        to.pause = (to.pause * 2).min(MAX_PAUSE);
        self.counts.offers_sent += 1;
        self.state(member, &Statement::Offer { group, session, sent, files });
    }

    /// Reports to a member the state of its files and messages here, if that is due or it `asks`.
    fn give_receipts(&mut self, now: Instant, member: usize, asks: bool) {
        if !asks && self.statements.0[member].receipts.is_empty() && !self.talk.is_due(now, member) {
            return;
        }
        let room = files_of_receipt(usize::from(self.config.datagram) - 1);
        let mut ids = std::mem::take(&mut self.statements.0[member].receipts);
        let mut is_first = true;
        while is_first || !ids.is_empty() {
            is_first = false;
            let some: Vec<u64> = ids.iter().copied().take(room).collect();
            some.iter().for_each(|id| _ = ids.remove(id));
            let files = some.into_iter().filter_map(|id| Some((id, self.standing(member, id)?))).collect();
            let group = number(&self.config.name);
            let (instance, heard) = (self.config.instance, self.talk.heard(member));
            self.counts.receipts_sent += 1;
            self.state(member, &Statement::Receipt { group, instance, heard, files });
        }
    }

    fn state(&mut self, member: usize, statement: &Statement) {
        let to = self.config.members[member].1;
        let datagram = Datagram::new(self.config.local, to, statement.emit());
        self.send(Kind::Statement, datagram);
    }

    /// Takes a statement of a member.
    pub(super) fn on_statement(&mut self, now: Instant, from: usize, bytes: &[u8]) {
        let ours = number(&self.config.name);
        match Statement::parse(bytes) {
            Ok(Statement::Offer { group, files, .. }) if group == ours => {
                self.statements.0[from].heard = Some(now);
                files.into_iter().for_each(|id| self.statements.tell(from, id));
                self.give_receipts(now, from, true);
            }
            Ok(Statement::Receipt { group, instance, heard, files }) if group == ours => {
                let member = &mut self.statements.0[from];
                member.heard = Some(now);
                if member.instance.replace(instance).is_some_and(|before| before != instance) {
                    // It was started anew: what it had incomplete is gone, and its disk may be another.
                    self.catalogue.forget_standings(from, true);
                }
                let mut news = self.talk.told(from, heard);
                for (id, standing) in files {
                    news |= self.on_receipt(now, from, id, standing);
                }
                if news {
                    let more = self.catalogue.iter().any(|file| file.standings[from].is_none());
                    self.statements.has_answered(from, now, more);
                }
            }
            Ok(Statement::Offer { .. } | Statement::Receipt { .. }) => self.counts.other_group += 1,
            Err(_) => self.counts.malformed += 1,
        }
    }

    /// A member reports its pieces of a file. True if that is news.
    fn on_receipt(&mut self, now: Instant, from: usize, id: u64, standing: Standing) -> bool {
        let Some(file) = self.catalogue.get_mut(id) else { return false };
        if file.standings[from].as_ref() == Some(&standing) {
            return false;
        }
        let before = file.held(from);
        file.standings[from] = Some(standing);
        if file.held(from) > before {
            self.progressed(now, from, id);
        }
        true
    }
}
