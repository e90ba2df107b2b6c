//! The packets that a member receives.

use std::collections::BTreeSet;

use hopcast_core::{Datagram, Duration, Instant};

use super::super::cache::Value;
use super::super::config::{PublisherRepairs, Servers};
use super::super::message::{Arrival, Message};
use super::super::series::SeriesId;
use super::super::serving::{Heard, Part};
use super::super::wire::{Data, MemberId, Packet, Request, Series, Summary, Symbol, Want};
use super::send::Control;
use super::{Peer, next_of};

impl Peer {
    pub(super) fn on_below(&mut self, now: Instant, datagram: &Datagram) {
        let Ok(packet) = Packet::parse(&datagram.payload) else {
            self.counted.malformed += 1;
            return;
        };
        let from = packet.from();
        if from.member == self.config.member {
            // Its own, by way of the network, or somebody who says so: nothing that it does not know.
            return;
        }
        let is_new = self.neighbours.heard(now, from, datagram.attributes.interface);
        if is_new {
            self.trickle.set_group_size(self.neighbours.known());
            if !self.neighbours.is_crowd() {
                self.trickle.reset(now);
            }
            self.asking.has_news(now);
        }
        let knows_as_much = match packet {
            Packet::Data(data) => {
                self.on_data(now, &data, datagram);
                false
            }
            Packet::Request(request) => {
                self.on_request(now, request);
                false
            }
            Packet::Summary(summary) => self.on_summary(now, &summary, datagram.attributes.interface),
        };
        // In a large segment most members are silent for long, since others speak for them.
        if is_new && !knows_as_much && self.neighbours.is_crowd() {
            self.trickle.reset(now);
        }
    }

    fn on_data(&mut self, now: Instant, data: &Data<'_>, datagram: &Datagram) {
        let (id, from) = (data.id, data.from.member);
        let part = match data.symbol {
            Symbol::Fragment { index, .. } => Part::Fragment(index),
            Symbol::Combination { chunk, .. } => Part::Chunk(chunk),
        };
        self.serving.overheard(now, from, id, part);
        if data.is_last {
            self.pushes.sent(now, id);
        }
        if data.is_repair {
            self.neighbours.answered(from);
            let heard = (datagram.attributes.interface, from);
            self.pushes.heard_repair(now, heard, &self.neighbours, &mut self.random);
            self.asking.repair(now, from, (id, part), data.is_last);
        }
        if id.publisher == self.config.member {
            // What it publishes it knows itself; only another's message with its name can be news.
            let is_known = self.cache.get(id).is_none_or(|message| message.shape == data.shape);
            self.counted.conflicts += u64::from(!is_known);
            return;
        }
        let is_news = self.catalogue.heard(now, self.config.member, id);
        if is_news {
            self.asking.something_is_missing(now);
            if from == id.publisher {
                let (asking, view) = self.asking();
                asking.note_published(now, id, &view);
            }
        }
        let Some(series) = self.catalogue.get(id.into()) else { return };
        let is_wanted = series.wants(id.sequence);
        let is_over = series.done.contains(id.sequence.into()) && self.cache.get(id).is_none();
        if is_over || !(is_wanted || self.config.policy.listens || self.asking.asks_for(series)) {
            return;
        }
        match self.cache.get(id) {
            Some(message) if message.shape != data.shape => {
                self.counted.conflicts += 1;
                return;
            }
            Some(_) => {}
            None if self.cache.has_room_for(data.shape) => {
                let lifetime = data.lifetime.map(|left| now + Duration::from_millis(left.into()));
                let value = if is_wanted { Value::Wanted } else { Value::Others };
                self.cache.insert(id, Message::new(now, data.shape, lifetime), value);
                self.asking.set_fragments_each(data.shape.fragments());
            }
            None => {
                self.counted.refused += 1;
                return;
            }
        }
        let arrival = self.cache.receive(now, id, data.symbol);
        if let Symbol::Fragment { index, .. } = data.symbol
            && !data.is_local
        {
            self.forwards.heard(now, id, index, from, arrival != Arrival::Known);
        }
        match arrival {
            Arrival::Known => self.counted.redundant += u64::from(is_wanted && data.is_repair),
            Arrival::New => {
                self.asking.progress(now, id, data.is_repair);
                if let Symbol::Combination { coefficients, .. } = data.symbol {
                    self.asking.note_combination(id, from, coefficients);
                }
            }
            Arrival::Damaged => {
                self.counted.damaged += 1;
                self.asking.forget(id);
                self.asking.something_is_missing(now);
            }
            Arrival::Whole => {
                self.asking.progress(now, id, data.is_repair);
                self.is_whole(now, id, datagram.remote);
            }
        }
        self.shrink(id);
    }

    fn on_request(&mut self, now: Instant, request: Request) {
        let own = self.config.member;
        let server = request.servers.first().copied();
        self.counted.requests.heard += 1;
        let (asking, view) = self.asking();
        let passed_on_by = (request.servers.len() > 1).then_some(request.from.member);
        let suppressed = asking.heard(now, own, server, passed_on_by, &request.wants, &view);
        self.counted.requests.suppressed += u64::from(suppressed > 0);
        match server {
            Some(server) if server != own => return,
            Some(_) => {}
            None if !self.answers_anyone(request.neighbours) => return,
            None => {}
        }
        self.counted.requests.received += 1;
        let not_before = match server {
            Some(_) => now,
            None => now + self.config.policy.repairs.delay.mul_f64(self.random.uniform()),
        };
        let heard = match server {
            None => Heard::Nothing,
            // Nothing is under way of what was asked for in vain, but, of many, what another has asked for just now.
            Some(_) if request.is_again => {
                let just = if self.neighbours.is_crowd() {
                    self.config.policy.ask_interval() / 2
                } else {
                    Duration::ZERO
                };
                Heard::AllBefore(now - just)
            }
            Some(_) => Heard::Until(request.heard),
        };
        let serves_own = self.serves_own(now, &request);
        let unsent = &self.unsent;
        let is_sent = |id: super::MessageId| {
            next_of(id.into(), unsent).is_none_or(|(next, _)| id.sequence < next.sequence)
        };
        let serves = |id: super::MessageId| id.publisher != own || serves_own && is_sent(id);
        let before = request.servers.get(1..).unwrap_or_default();
        let rest = self.serving.take(
            not_before,
            (&request.wants, before),
            (heard, self.transmissions),
            &self.cache,
            serves,
        );
        // A small rest costs less when it is asked for again with what is missing then. So does one of combinations,
        // since what is heard until then counts.
        let parts = |wants: &[Want]| wants.iter().map(Want::parts).sum::<u64>();
        let is_asked_again = self.config.policy.is_coded && !self.neighbours.is_crowd();
        if server.is_some() && !is_asked_again && parts(&rest) * 2 > parts(&request.wants) {
            self.pass_on(now, request, rest);
        }
    }

    /// Whether this member answers a request for what it has published itself.
    fn serves_own(&self, now: Instant, request: &Request) -> bool {
        let is_idle = self.unsent.is_empty();
        match self.config.policy.repairs.publisher {
            PublisherRepairs::Always => true,
            PublisherRepairs::Never => false,
            PublisherRepairs::WhenIdle => is_idle,
            PublisherRepairs::Spared => {
                // Who passes a request on has not got it either.
                let is_first = request.servers.len() <= 1;
                let mut others = self.neighbours.present(now).map(|(member, _)| member);
                is_idle || !is_first || others.all(|member| member == request.from.member)
            }
        }
    }

    /// Whether this member is one of those that answer a request to anyone.
    fn answers_anyone(&mut self, neighbours: u16) -> bool {
        let share = match self.config.policy.requests.servers {
            Servers::Anyone(Some(share)) => share,
            _ => 1.0 / f64::from(neighbours.max(1)),
        };
        self.random.chance(share)
    }

    /// Passes what it lacks of a request on to a member that has not been asked yet.
    fn pass_on(&mut self, now: Instant, request: Request, rest: Vec<Want>) {
        let mut servers = request.servers;
        if servers.len() >= super::super::wire::MAX_SERVERS || self.control.len() >= MAX_CONTROL {
            return;
        }
        let mut except = servers.clone();
        except.push(request.from.member);
        let ids: Vec<_> = rest.iter().map(|want| want.id).collect();
        // Of many, most lack what one does who was asked for all to hear.
        let holds = |next: MemberId| ids.iter().any(|&id| self.neighbours.holds(next, id));
        let next = self.neighbours.server(now, &ids, (&except, None), &mut self.random);
        if let Some(next) = next.filter(|&next| !self.neighbours.is_crowd() || holds(next)) {
            servers.insert(0, next);
            self.counted.passed_on += 1;
            self.control.push_back(Control::Request { is_again: request.is_again, servers, wants: rest });
        }
    }

    /// Takes a summary that was heard on an interface, and says whether its sender knows the same.
    fn on_summary(&mut self, now: Instant, summary: &Summary, interface: Option<u32>) -> bool {
        let own = self.config.member;
        self.neighbours.summary(now, summary);
        let mut is_same = true;
        for theirs in &summary.series {
            let id = SeriesId::from(theirs);
            if self.catalogue.told(now, own, id, theirs.newest) {
                is_same = false;
                self.trickle.reset(now);
            }
            is_same &= self.agrees(now, id, theirs);
            if theirs.is_wanted && self.config.links > 1 && self.is_only_holder(now, id, theirs, interface) {
                self.trickle.has_to_speak();
            }
            if self.pushes.is_on() && self.is_to_be_pushed(id, theirs) {
                self.trickle.has_to_speak();
            }
        }
        if self.knows_more(now, summary) {
            self.trickle.reset(now);
            is_same = false;
        } else if is_same
            && !self.config.policy.forwarding.needs_summaries()
            && !self.hears_many_more(now, summary)
        {
            self.trickle.heard_the_same(interface);
        }
        self.pushes.told(now, summary.from.member, &self.neighbours, &mut self.random);
        is_same
    }

    /// Whether of many that are heard on an interface this member alone is known to hold something that a neighbour
    /// lacks of a series: nobody asks for it there until this member has said so.
    fn is_only_holder(&self, now: Instant, id: SeriesId, theirs: &Series, interface: Option<u32>) -> bool {
        let Some(series) = self.catalogue.get(id).filter(|_| self.neighbours.is_crowd()) else {
            return false;
        };
        let mut held = series.held.clone();
        theirs.held.iter().for_each(|run| held.remove_run(run.start.into()..run.end.into()));
        self.neighbours.lack(now, id, interface, held)
    }

    /// Whether this member hears many more on its one link than a neighbour does: what the neighbour says reaches few
    /// of them, and does not spare this member saying the same. Of several links each counts for itself.
    fn hears_many_more(&self, now: Instant, summary: &Summary) -> bool {
        self.config.links <= 1
            && self.neighbours.is_crowd()
            && usize::from(summary.neighbours) * 3 < self.neighbours.count(now) * 2
    }

    /// Whether this member lacks something that a neighbour holds of a series, and does not ask for it: it is pushed
    /// that only if it says what it holds.
    fn is_to_be_pushed(&self, id: SeriesId, theirs: &Series) -> bool {
        let Some(series) = self.catalogue.get(id).filter(|series| !self.asking.asks_for(series)) else {
            return false;
        };
        theirs.held.iter().any(|run| series.missing_in(run.clone()).next().is_some())
    }

    /// Whether a neighbour that says all that it knows of should have heard of more.
    fn knows_more(&self, now: Instant, summary: &Summary) -> bool {
        if !summary.is_all || self.catalogue.len() <= summary.series.len() {
            return false;
        }
        let said: BTreeSet<SeriesId> = summary.series.iter().map(SeriesId::from).collect();
        let mut others = self.catalogue.iter().filter(|(id, _)| !said.contains(id));
        others.any(|(_, series)| self.is_settled(now, series.last_rise()))
    }

    /// Compares what a neighbour says of a series with what is known here, and whether that is the same.
    fn agrees(&mut self, now: Instant, id: SeriesId, theirs: &Series) -> bool {
        let Some(series) = self.catalogue.get(id) else { return true };
        let asks = self.catalogue.may_lack(id) && self.asking.asks_for(series);
        if asks && self.config.policy.is_coded {
            let missing = series.missing().take(MAX_COMPARED);
            let theirs = missing.filter(|sequence| theirs.held.iter().any(|run| run.contains(sequence)));
            for sequence in theirs.collect::<Vec<_>>() {
                self.asking.can_be_had(now, id.message(sequence));
            }
        }
        let Some(series) = self.catalogue.get(id) else { return true };
        if asks
            && series.missing().take(MAX_COMPARED).any(|sequence| {
                theirs.publisher == id.publisher && theirs.held.iter().any(|run| run.contains(&sequence))
            })
        {
            self.asking.has_news(now);
        }
        if asks && theirs.newest == series.newest && series.missing().next().is_some() {
            self.asking.something_is_missing(now);
        }
        let is_behind = theirs.newest < series.newest && self.is_settled(now, series.last_rise());
        if is_behind {
            self.trickle.reset(now);
        }
        theirs.newest == series.newest
    }

    /// Whether what was learnt at a time should have reached everybody, so that who does not know it lacks it.
    fn is_settled(&self, now: Instant, at: Instant) -> bool {
        now.since(at) >= self.config.policy.summaries.0 * 2
    }

    /// A message has become whole.
    fn is_whole(&mut self, now: Instant, id: super::MessageId, from: std::net::SocketAddr) {
        self.asking.forget(id);
        let Some(message) = self.cache.get(id) else { return };
        let history = message.metadata().map_or(0, |(metadata, _)| metadata.history);
        self.store_message(now, id);
        if now.since(self.last_rise(id)) >= self.config.policy.summaries.0 * 4 && self.is_awaited(now, id) {
            self.trickle.reset(now);
        }
        let Some(series) = self.catalogue.get_mut(id.into()) else { return };
        series.whole(id.sequence, history);
        let ready = series.ready(Some(id.sequence));
        self.hand_up(id.into(), &ready, from);
        if history > 0 {
            self.asking.something_is_missing(now);
        }
    }

    /// Whether a neighbour may have waited for somebody to hold a message.
    fn is_awaited(&self, now: Instant, id: super::MessageId) -> bool {
        self.neighbours.present(now).any(|(_, neighbour)| {
            neighbour
                .told(id.into())
                .is_some_and(|told| told.is_wanted && told.newest >= id.sequence && !told.holds(id.sequence))
        })
    }

    fn last_rise(&self, id: super::MessageId) -> Instant {
        self.catalogue.get(id.into()).map_or(Instant::ZERO, |series| series.last_rise())
    }
}
/// Requests and summaries that wait to be sent, beyond which no request is passed on. Chosen: seconds of them at the
/// slowest rates, after which whoever asked has asked again.
const MAX_CONTROL: usize = 64;
/// Missing messages that are compared with what a neighbour holds. Chosen: those of a request.
const MAX_COMPARED: usize = 128;
