//! Messages about advertisements: what is newer is taken and flooded, what is older is answered (RFC 2328 section 13).

use core::cmp::Ordering;

use hopcast_core::Instant;

use super::wire::{Advertisement, Header, Key, MAX_AGE, MAX_SEQUENCE, Message};
use super::{LinkState, Refusal, State};

/// The interface, by its place, and the neighbour on it that a message is from.
type Sender = (usize, u32);

impl LinkState {
    /// Takes a message of a neighbour that hears this router.
    pub(super) fn hear(&mut self, now: Instant, from: Sender, message: Message) {
        match message {
            Message::Update(all) => all.into_iter().for_each(|one| self.hear_advertisement(now, from, one)),
            Message::Offer(all) => all.iter().for_each(|header| self.hear_offer(now, from, header)),
            Message::Acknowledgement(all) => {
                for header in &all {
                    if self.compare(now, from, header) == Some(Ordering::Equal) {
                        self.is_acknowledged(from, header.key);
                    }
                }
            }
            Message::Request(keys) => keys.into_iter().for_each(|key| self.tell(now, from, key)),
            Message::Hello(_) => {}
        }
    }

    /// Whether an instance is newer than the one here; `None` if there is none.
    fn compare(&self, now: Instant, from: Sender, header: &Header) -> Option<Ordering> {
        Some(header.compare_instance(&self.known(now, from, header.key)?))
    }

    fn hear_advertisement(&mut self, now: Instant, from: Sender, mut one: Advertisement) {
        let (place, router) = from;
        let header = one.header;
        match self.compare(now, from, &header) {
            Some(Ordering::Equal) => {
                self.shared.counters.repeated += 1;
                // A neighbour that sends what it was to be sent needs no acknowledgement.
                if !self.is_acknowledged(from, header.key) {
                    self.interfaces[place].acknowledge(header);
                }
                return;
            }
            Some(Ordering::Less) => {
                // What is taken back after the last number gives way to what begins anew (section 13 (8)).
                let gives_way = |known: Header| known.is_over() && known.sequence == MAX_SEQUENCE;
                if !self.known(now, from, header.key).is_some_and(gives_way) {
                    self.tell(now, from, header.key);
                }
                return;
            }
            // Nobody here needs to forget it.
            None if header.is_over() => return self.interfaces[place].acknowledge(header),
            Some(Ordering::Greater) | None => {}
        }
        let number = self.interfaces[place].config.area;
        let Some(area) = self.areas.get_mut(&number) else { return };
        let (config, counters) = (&self.shared.config, &mut self.shared.counters);
        let is_own = header.key.originator == self.shared.router;
        if area.database.since_received(now, header.key).is_some_and(|since| since < config.min_arrival) {
            return counters.refuse(Refusal::TooSoon);
        }
        if is_own {
            let is_new = area.origins.contest(now, config, header.key, header.sequence);
            counters.contested += u64::from(is_new);
            if header.sequence < MAX_SEQUENCE {
                return;
            }
            // There is no higher number: all are to forget this one before the router begins anew.
            one.header.age = MAX_AGE;
        } else if area.database.header(now, header.key).is_none()
            && area.database.len() >= config.max_advertisements
        {
            return counters.refuse(Refusal::Room);
        }
        counters.installed += 1;
        area.install(now, one, true, &mut self.interfaces);
        let interface = &mut self.interfaces[place];
        if !is_own {
            interface.neighbours.get_mut(&router).into_iter().for_each(|sender| {
                sender.outstanding.remove(&header.key);
            });
        }
        interface.acknowledge(header);
    }

    fn hear_offer(&mut self, now: Instant, from: Sender, header: &Header) {
        match self.compare(now, from, header) {
            Some(Ordering::Equal) => {
                self.is_acknowledged(from, header.key);
                self.interfaces[from.0].acknowledge(*header);
            }
            Some(Ordering::Less) => self.tell(now, from, header.key),
            None if header.is_over() => self.interfaces[from.0].acknowledge(*header),
            Some(Ordering::Greater) | None => self.interfaces[from.0].request(header.key),
        }
    }

    /// An advertisement as it is here.
    fn known(&self, now: Instant, (place, _): Sender, key: Key) -> Option<Header> {
        self.areas.get(&self.interfaces[place].config.area)?.database.header(now, key)
    }

    /// Sends a neighbour an advertisement that it lacks, unless that is under way.
    fn tell(&mut self, now: Instant, from: Sender, key: Key) {
        if self.known(now, from, key).is_none() {
            return;
        }
        let (place, router) = from;
        let min_arrival = self.shared.config.min_arrival;
        let Some(neighbour) = self.interfaces[place].neighbours.get_mut(&router) else { return };
        let known = neighbour.outstanding.get(&key);
        let is_under_way = known
            .and_then(|one| one.sent.filter(|_| one.whole))
            .is_some_and(|sent| now.since(sent) < min_arrival);
        if !is_under_way {
            neighbour.tell(now, key);
        }
    }

    /// Notes that a neighbour has an advertisement as it is here; false if that was known.
    fn is_acknowledged(&mut self, (place, router): Sender, key: Key) -> bool {
        let neighbour = self.interfaces[place].neighbours.get_mut(&router);
        let is_told = neighbour.filter(|one| one.state > State::Heard);
        is_told.is_some_and(|one| one.outstanding.remove(&key).is_some())
    }
}
