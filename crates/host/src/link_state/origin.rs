//! The router's own advertisements in an area: what they are to say, and when they may be made.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant, Stream};

use super::config::Config;
use super::fragments::Fragments;
use super::wire::{Advertisement, Content, Key, Kind, Link, MAX_AGE, MAX_SEQUENCE, Reach};
use crate::prefixes::Prefix;

/// Time after which an advertisement is made again though nothing has changed (*LSRefreshTime*, RFC 2328 appendix B).
const REFRESH: Duration = Duration::from_secs(1800);
/// Maximum number of times that the minimum interval doubles while somebody else makes one's advertisements. Chosen:
/// from 5 s on to 320 s, so that two routers of one identifier leave the network in peace.
const MAX_DOUBLINGS: u32 = 6;
/// Time without such a contest after which the interval is the usual one again. Chosen: twice the longest.
const PEACE: Duration = Duration::from_secs(640);

/// The router's own advertisements in one area.
#[derive(Debug)]
pub(super) struct Origins {
    router: u32,
    own: BTreeMap<Key, Origin>,
    links: Fragments<u32>,
    prefixes: Fragments<Prefix>,
    summaries: Fragments<Prefix>,
}

#[derive(Debug, Default)]
struct Origin {
    /// What it is to say; `None` if it is to be taken back.
    wanted: Option<Content>,
    /// What it said when it was last made.
    said: Option<Content>,
    sequence: u32,
    made: Option<Instant>,
    /// Time at which it is to be made.
    due: Option<Instant>,
    /// Number of contests in a row, and the time of the last.
    contests: u32,
    contested: Option<Instant>,
    /// Whether it has not been made since.
    is_contested: bool,
    /// Whether it is taken back after its last sequence number, to begin anew.
    is_wrapping: bool,
}

/// A step for an own advertisement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Make {
    /// Install this instance, and flood it.
    Instance(Advertisement),
    /// Take back the instance that is there.
    End(Key),
}

impl Origins {
    pub(super) fn new(router: u32) -> Self {
        Self {
            router,
            own: BTreeMap::new(),
            links: Fragments::default(),
            prefixes: Fragments::default(),
            summaries: Fragments::default(),
        }
    }

    /// Says which routers this one is joined to, with the costs.
    pub(super) fn want_links(
        &mut self,
        now: Instant,
        config: &Config,
        is_border: bool,
        links: &BTreeMap<u32, u16>,
    ) {
        let parts = self.links.divide(links);
        let content = |part: Vec<(u32, u16)>| {
            let links = part.into_iter().map(|(to, cost)| Link { to, cost }).collect();
            Content::Links { is_border, links }
        };
        let mut wanted: BTreeMap<u16, Content> =
            parts.into_iter().map(|(number, part)| (number, content(part))).collect();
        // A router without neighbours has nothing to say, but others are to forget what it has said.
        let first = Key { originator: self.router, kind: Kind::Links, fragment: 0 };
        if self.own.contains_key(&first) {
            wanted.entry(0).or_insert(Content::Links { is_border, links: Vec::new() });
        }
        self.want(now, config, Kind::Links, wanted);
    }

    /// Says what is attached to the router, or of the kind [`Kind::Summary`] what it reaches in other areas.
    pub(super) fn want_prefixes(
        &mut self,
        now: Instant,
        config: &Config,
        kind: Kind,
        prefixes: &BTreeMap<Prefix, u32>,
    ) {
        let fragments = if kind == Kind::Summary { &mut self.summaries } else { &mut self.prefixes };
        let content = |part: Vec<(Prefix, u32)>| {
            Content::Prefixes(part.into_iter().map(|(prefix, metric)| Reach { prefix, metric }).collect())
        };
        let parts = fragments.divide(prefixes).into_iter();
        let wanted = parts.map(|(number, part)| (number, content(part))).collect();
        self.want(now, config, kind, wanted);
    }

    fn want(&mut self, now: Instant, config: &Config, kind: Kind, mut wanted: BTreeMap<u16, Content>) {
        for (key, origin) in self.own.iter_mut().filter(|(key, _)| key.kind == kind) {
            origin.want(now, config, wanted.remove(&key.fragment));
        }
        for (fragment, content) in wanted {
            let key = Key { originator: self.router, kind, fragment };
            self.own.entry(key).or_default().want(now, config, Some(content));
        }
    }

    /// Somebody else has made an instance of an own advertisement that is newer; false if that was known.
    pub(super) fn contest(&mut self, now: Instant, config: &Config, key: Key, sequence: u32) -> bool {
        let origin = self.own.entry(key).or_default();
        // Each neighbour may bring it.
        if origin.is_wrapping || (origin.is_contested && sequence <= origin.sequence) {
            return false;
        }
        origin.is_contested = true;
        let is_new = origin.contested.is_none_or(|last| last + PEACE <= now);
        origin.contests = if is_new { 0 } else { origin.contests + 1 };
        origin.contested = Some(now);
        if sequence == MAX_SEQUENCE {
            (origin.is_wrapping, origin.due) = (true, None);
        } else {
            origin.sequence = sequence;
            origin.hurry(now, config);
        }
        true
    }

    /// The next own advertisement that is due; call until `None`.
    pub(super) fn next_due(&mut self, now: Instant, random: &mut Stream) -> Option<Make> {
        let (&key, origin) =
            self.own.iter_mut().find(|(_, origin)| origin.due.is_some_and(|at| at <= now))?;
        if origin.sequence == MAX_SEQUENCE {
            (origin.is_wrapping, origin.due) = (true, None);
            return Some(Make::End(key));
        }
        origin.sequence += 1;
        (origin.made, origin.is_contested) = (Some(now), false);
        // Up to a tenth earlier, so that what was made at once is not all made again at once.
        let early = Duration::from_nanos(random.below(REFRESH.as_nanos() / 10));
        origin.due = origin.wanted.is_some().then(|| now + REFRESH.saturating_sub(early));
        origin.said.clone_from(&origin.wanted);
        let age = if origin.wanted.is_some() { 0 } else { MAX_AGE };
        let content = origin.wanted.clone().unwrap_or_else(|| key.kind.nothing());
        Some(Make::Instance(Advertisement::new(key, origin.sequence, age, content)))
    }

    /// Nobody has an advertisement any more that was taken back.
    pub(super) fn forgotten(&mut self, now: Instant, key: Key) {
        let Some(origin) = self.own.get_mut(&key) else { return };
        if std::mem::take(&mut origin.is_wrapping) {
            origin.sequence = 0;
            origin.due = origin.wanted.is_some().then_some(now);
        }
        if origin.wanted.is_none() && origin.due.is_none() {
            self.own.remove(&key);
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.own.values().filter_map(|origin| origin.due).min()
    }
}

impl Origin {
    fn want(&mut self, now: Instant, config: &Config, wanted: Option<Content>) {
        self.wanted = wanted;
        if self.wanted != self.said && !self.is_wrapping {
            self.hurry(now, config);
        }
    }

    /// Makes it as soon as it may be made.
    fn hurry(&mut self, now: Instant, config: &Config) {
        let gap = config.min_origination * (1 << self.contests.min(MAX_DOUBLINGS));
        let at = self.made.map_or(now, |made| now.max(made + gap));
        self.due = Some(self.due.map_or(at, |before| before.min(at)));
    }
}
