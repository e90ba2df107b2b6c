//! The routers on a link, as their Hello messages announce them (RFC 7761 section 4.3).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_core::{Duration, Instant};

use super::Config;
use super::wire::{Hello, LanDelay};

/// The other routers of a link, by the addresses that they send from.
#[derive(Debug, Default)]
pub(super) struct Neighbours(BTreeMap<IpAddr, Neighbour>);

#[derive(Debug)]
struct Neighbour {
    hello: Hello,
    /// Time at which it counts as gone; `None` for never.
    until: Option<Instant>,
}

/// The consequence of a Hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// There is a new neighbour.
    New,
    /// The neighbour has started anew: it has forgotten everything.
    Restarted,
    /// It says goodbye.
    Gone,
    /// It is still there; true if its priority or its addresses have changed.
    Known(bool),
    /// There is no room for another.
    Full,
}

impl Neighbours {
    pub(super) fn hear(&mut self, now: Instant, from: IpAddr, mut hello: Hello, max: usize) -> Heard {
        if hello.holdtime == 0 {
            return if self.0.remove(&from).is_some() { Heard::Gone } else { Heard::Known(false) };
        }
        // Section 4.3.4: an address is that of the router that has named it last, and never that of another's messages.
        hello.addresses.retain(|address| !self.0.contains_key(address));
        let heard = match self.0.get(&from) {
            None if self.0.len() >= max => return Heard::Full,
            None => Heard::New,
            Some(known) if known.hello.generation != hello.generation => Heard::Restarted,
            Some(known) => {
                let Hello { priority, addresses, .. } = &known.hello;
                Heard::Known(*priority != hello.priority || *addresses != hello.addresses)
            }
        };
        for other in self.0.values_mut() {
            other.hello.addresses.retain(|address| *address != from && !hello.addresses.contains(address));
        }
        let until = (hello.holdtime != u16::MAX).then(|| now + Duration::from_secs(hello.holdtime.into()));
        self.0.insert(from, Neighbour { hello, until });
        heard
    }

    /// Removes those that have not been heard for their holdtime, and returns their addresses.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<IpAddr> {
        let gone = |(_, known): &(&IpAddr, &Neighbour)| known.until.is_some_and(|until| until <= now);
        let gone: Vec<IpAddr> = self.0.iter().filter(gone).map(|(&address, _)| address).collect();
        gone.iter().for_each(|address| _ = self.0.remove(address));
        gone
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|known| known.until).min()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The address from which the router with an address on the link sends, if it is a neighbour.
    pub(super) fn primary(&self, address: IpAddr) -> Option<IpAddr> {
        if self.0.contains_key(&address) {
            return Some(address);
        }
        let has = |(_, known): &(&IpAddr, &Neighbour)| known.hello.addresses.contains(&address);
        self.0.iter().find(has).map(|(&from, _)| from)
    }

    /// Whether the router itself, with its address and priority, is the designated one (section 4.3.2).
    pub(super) fn elects(&self, own: IpAddr, priority: u32) -> bool {
        let by_priority = self.0.values().all(|known| known.hello.priority.is_some());
        let rank = |address: IpAddr, priority: Option<u32>| (priority.filter(|_| by_priority), address);
        let best = self.0.iter().map(|(&address, known)| rank(address, known.hello.priority)).max();
        best.is_none_or(|best| rank(own, Some(priority)) > best)
    }

    /// The delay of messages on the link, and the time to override a prune, as all take them to be (section 4.3.3).
    pub(super) fn delays(&self, config: &Config) -> (Duration, Duration) {
        let own = (config.propagation_delay, config.override_interval);
        self.0
            .values()
            .map(|known| known.hello.lan_delay)
            .try_fold(own, |(propagation, override_interval), one| {
                let LanDelay { propagation: p, override_interval: o, .. } = one?;
                let [p, o] = [p, o].map(|millis| Duration::from_millis(millis.into()));
                Some((propagation.max(p), override_interval.max(o)))
            })
            .unwrap_or_else(|| {
                let default = Config::default();
                (default.propagation_delay, default.override_interval)
            })
    }
}

/// Distance of a router on a link from a sender, by which Asserts are decided (section 4.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Distance {
    /// Preference and metric of its route.
    pub(super) metric: (u32, u32),
    /// Its address on the link.
    pub(super) address: IpAddr,
}

impl Distance {
    /// Whether this router forwards to the link, and not the other.
    pub(super) fn beats(&self, other: &Self) -> bool {
        (self.metric, Reverse(self.address)) < (other.metric, Reverse(other.address))
    }
}
