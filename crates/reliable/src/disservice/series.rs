//! The messages of one publisher to one group: which are known of, which are held, and which are handed up next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Bound, Range};

use hopcast_core::{Duration, Instant};

use super::config::Group;
use super::object::tag;
use super::wire::{self, MemberId, MessageId};
use crate::runs::Runs;
use crate::{Join, Order, Subscription};

/// Name of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeriesId {
    pub(super) group: u32,
    pub(super) publisher: MemberId,
}

impl SeriesId {
    pub(super) const fn message(self, sequence: u32) -> MessageId {
        MessageId { group: self.group, publisher: self.publisher, sequence }
    }
}

impl From<MessageId> for SeriesId {
    fn from(id: MessageId) -> Self {
        Self { group: id.group, publisher: id.publisher }
    }
}

impl From<&wire::Series> for SeriesId {
    fn from(series: &wire::Series) -> Self {
        Self { group: series.group, publisher: series.publisher }
    }
}

/// State of a series.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// Highest number that is known of.
    pub(super) newest: u32,
    last_rise: Instant,
    /// When the highest number rose, and to which within the next [`RISES`]th of the patience: for the time that each
    /// has been known of.
    rises: VecDeque<(u32, Instant)>,
    /// The subscriber's part, if this member subscribes to the group.
    wanted: Option<Wanted>,
    /// Whole messages that are held.
    pub(super) held: Runs,
    /// Messages that were handed up or given up.
    pub(super) done: Runs,
}

/// The part of a series that a subscriber wants.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    subscription: Subscription,
    /// The first message that it wants.
    first: u32,
    /// The message that is handed up next, if they are handed up in order.
    next: u32,
    /// The message whose history it asks for too, until it is whole.
    begins_at: Option<u32>,
}

/// Rises of the highest number that are remembered within the time for which a message is asked for. Chosen: that time
/// is right to some hundredths.
const RISES: u64 = 64;

impl Series {
    fn new(now: Instant, newest: u32, wanted: Option<Wanted>) -> Self {
        let (held, done) = (Runs::new(), Runs::new());
        Self { newest, last_rise: now, rises: VecDeque::from([(newest, now)]), wanted, held, done }
    }

    /// Notes that a message exists. Whether that is news.
    fn exists(&mut self, now: Instant, sequence: u32, patience: Duration) -> bool {
        if sequence <= self.newest {
            return false;
        }
        self.newest = sequence;
        self.last_rise = now;
        match self.rises.back_mut() {
            Some((newest, at)) if now.since(*at) < patience / RISES => *newest = sequence,
            _ => self.rises.push_back((sequence, now)),
        }
        while self.rises.get(1).is_some_and(|&(_, at)| now.since(at) >= patience) {
            self.rises.pop_front();
        }
        true
    }

    /// When the highest number rose last.
    pub(super) const fn last_rise(&self) -> Instant {
        self.last_rise
    }

    /// Whether this member subscribes to it.
    pub(super) const fn is_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// Whether this member asks for what is missing of it.
    pub(super) fn is_asked_for(&self) -> bool {
        self.wanted.is_some_and(|wanted| wanted.subscription.is_reliable)
    }

    /// Numbers of messages that are wanted and not whole, ascending. Of a series that is not wanted, those of all
    /// messages that are not held and were not dropped.
    pub(super) fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        self.missing_in(0..u32::MAX)
    }

    /// Those of them in a range: the work follows the holes in it, however many numbers lie before and between them.
    pub(super) fn missing_in(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let mut at = u64::from(self.wanted.map_or(0, |wanted| wanted.first).max(range.start));
        let end = (u64::from(self.newest) + 1).min(range.end.into());
        std::iter::from_fn(move || {
            while at < end {
                // A run of either set is passed in one step.
                match self.done.next_gap(self.held.next_gap(at)) {
                    found if found == at => {
                        at += 1;
                        return Some(found as u32);
                    }
                    later => at = later,
                }
            }
            None
        })
    }

    /// Whether a message is wanted and neither handed up nor given up.
    pub(super) fn wants(&self, sequence: u32) -> bool {
        self.wanted.is_some_and(|wanted| sequence >= wanted.first) && !self.done.contains(sequence.into())
    }

    /// A message is whole, with the number of messages before it that its publisher recommends.
    pub(super) fn whole(&mut self, sequence: u32, history: u32) {
        self.held.insert(sequence.into());
        if let Some(wanted) = &mut self.wanted
            && wanted.begins_at == Some(sequence)
            && wanted.subscription.is_reliable
        {
            wanted.begins_at = None;
            wanted.first = wanted.first.min(sequence.saturating_sub(history));
            wanted.next = wanted.next.min(wanted.first);
        }
    }

    /// Gives a message up.
    pub(super) fn give_up(&mut self, sequence: u32) {
        self.done.insert(sequence.into());
    }

    /// The numbers of whole messages that are to be handed up now, in that order; `whole` is one that has become so.
    pub(super) fn ready(&mut self, whole: Option<u32>) -> Vec<u32> {
        let Some(wanted) = &mut self.wanted else { return Vec::new() };
        let mut ready = Vec::new();
        match (wanted.subscription.order, wanted.subscription.is_reliable) {
            (Order::AsComplete, _) => ready
                .extend(whole.filter(|&number| number >= wanted.first && !self.done.contains(number.into()))),
            (Order::BySender, true) => {
                while self.done.contains(wanted.next.into()) || self.held.contains(wanted.next.into()) {
                    if !self.done.contains(wanted.next.into()) {
                        ready.push(wanted.next);
                    }
                    wanted.next += 1;
                }
            }
            // Nobody asks for what is missing before it, so it does not wait.
            (Order::BySender, false) => {
                if let Some(number) = whole.filter(|&number| number >= wanted.next) {
                    self.done.insert_run(wanted.next.into()..number.into());
                    wanted.next = number + 1;
                    ready.push(number);
                }
            }
        }
        ready.iter().for_each(|&number| self.done.insert(number.into()));
        ready
    }

    /// The highest number that has been known of for as long as `patience`.
    pub(super) fn overdue(&self, now: Instant, patience: Duration) -> Option<u32> {
        self.rises.iter().rev().find(|&&(_, at)| now.since(at) >= patience).map(|&(number, _)| number)
    }
}

/// All series that a member knows of, and what it subscribes to.
#[derive(Debug)]
pub(super) struct Catalogue {
    /// Time for which a message is asked for of which nobody holds anything.
    patience: Duration,
    all: BTreeMap<SeriesId, Series>,
    /// Series that have changed since they were seen to lack nothing: no others are to be looked at for what is
    /// missing, however many there are.
    open: BTreeSet<SeriesId>,
    subscriptions: BTreeMap<u32, (Group, Subscription)>,
    /// Series that there was no room for.
    pub(super) refused: u64,
}

/// Series that a member knows of at most. Chosen: 200 publishers to 20 groups; each takes some hundred bytes.
const MAX_SERIES: usize = 4096;
/// Messages ahead of those that were heard that another member is believed to know of. Chosen: more than are published
/// while a network is cut for days; what a member lies about beyond that is not asked for.
const MAX_AHEAD: u32 = 1 << 20;

impl Catalogue {
    pub(super) fn new(patience: Duration) -> Self {
        let (all, open) = (BTreeMap::new(), BTreeSet::new());
        Self { patience, all, open, subscriptions: BTreeMap::new(), refused: 0 }
    }

    /// Subscribes to a group, of which nothing is known yet or some series are.
    pub(super) fn subscribe(&mut self, own: MemberId, group: &Group, subscription: Subscription) {
        let tag = tag(group);
        self.subscriptions.insert(tag, (group.clone(), subscription));
        let series = self.all.iter_mut().filter(|(id, _)| id.group == tag && id.publisher.node != own.node);
        for (&id, series) in series.filter(|(_, series)| series.wanted.is_none()) {
            series.wanted = Some(Wanted::from_now(subscription, series.newest));
            self.open.insert(id);
        }
    }

    /// Ends a subscription.
    pub(super) fn unsubscribe(&mut self, group: &Group) {
        let tag = tag(group);
        self.subscriptions.remove(&tag);
        for (&id, series) in self.all.iter_mut().filter(|(id, _)| id.group == tag) {
            series.wanted = None;
            self.open.insert(id);
        }
    }

    /// The group of a tag, if this member subscribes to it.
    pub(super) fn subscribed(&self, tag: u32) -> Option<&Group> {
        self.subscriptions.get(&tag).map(|(group, _)| group)
    }

    pub(super) fn get(&self, id: SeriesId) -> Option<&Series> {
        self.all.get(&id)
    }

    /// A series that is to be changed.
    pub(super) fn get_mut(&mut self, id: SeriesId) -> Option<&mut Series> {
        let found = self.all.get_mut(&id)?;
        self.open.insert(id);
        Some(found)
    }

    /// Looks which series lack something, so that [`incomplete`](Self::incomplete) has no others.
    pub(super) fn find_incomplete(&mut self) {
        let all = &self.all;
        self.open.retain(|id| all.get(id).is_some_and(|series| series.missing().next().is_some()));
    }

    /// The series that may lack something.
    pub(super) fn incomplete(&self) -> impl Iterator<Item = (SeriesId, &Series)> {
        self.open.iter().filter_map(|&id| Some((id, self.all.get(&id)?)))
    }

    /// Whether a series may lack something.
    pub(super) fn may_lack(&self, id: SeriesId) -> bool {
        self.open.contains(&id)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (SeriesId, &Series)> {
        self.all.iter().map(|(&id, series)| (id, series))
    }

    /// The series from one on; all of them if none is named.
    pub(super) fn iter_from(&self, first: Option<SeriesId>) -> impl Iterator<Item = (SeriesId, &Series)> {
        let from = first.map_or(Bound::Unbounded, Bound::Included);
        self.all.range((from, Bound::Unbounded)).map(|(&id, series)| (id, series))
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// A packet of a message was heard. Whether the message is news.
    pub(super) fn heard(&mut self, now: Instant, own: MemberId, id: MessageId) -> bool {
        if let Some(is_news) = self.exists(now, id.into(), id.sequence) {
            return is_news;
        }
        let subscription = self.subscription(own, id.into());
        let wanted = subscription.map(|subscription| Wanted::beginning(subscription, id.sequence));
        self.add(id.into(), Series::new(now, id.sequence, wanted))
    }

    /// Another member says that messages up to `newest` exist. Whether that is news.
    pub(super) fn told(&mut self, now: Instant, own: MemberId, id: SeriesId, newest: u32) -> bool {
        if id.publisher == own {
            // Of what this member publishes it knows itself.
            return false;
        }
        if let Some(series) = self.all.get(&id)
            && newest - newest.min(series.newest) >= MAX_AHEAD
        {
            return false;
        }
        if let Some(is_news) = self.exists(now, id, newest) {
            return is_news;
        }
        let wanted = self.subscription(own, id).map(|subscription| Wanted::beginning(subscription, newest));
        newest < MAX_AHEAD && self.add(id, Series::new(now, newest, wanted))
    }

    /// Notes that a message of a series exists, and says whether that is news; `None` if the series itself is.
    fn exists(&mut self, now: Instant, id: SeriesId, sequence: u32) -> Option<bool> {
        let is_news = self.all.get_mut(&id)?.exists(now, sequence, self.patience);
        if is_news {
            self.open.insert(id);
        }
        Some(is_news)
    }

    fn subscription(&self, own: MemberId, id: SeriesId) -> Option<Subscription> {
        let subscription = self.subscriptions.get(&id.group).map(|&(_, subscription)| subscription);
        // What it published before it began again is not for itself either.
        subscription.filter(|_| id.publisher.node != own.node)
    }

    fn add(&mut self, id: SeriesId, series: Series) -> bool {
        if self.all.len() >= MAX_SERIES {
            let empty = self.all.iter().filter(|(_, series)| series.held.is_empty() && !series.is_wanted());
            let Some(oldest) = empty.min_by_key(|(_, series)| series.last_rise()).map(|(&id, _)| id) else {
                self.refused += 1;
                return false;
            };
            self.all.remove(&oldest);
            self.open.remove(&oldest);
        }
        self.all.insert(id, series);
        self.open.insert(id);
        true
    }

    /// Restores a series from before a restart.
    pub(super) fn restore(&mut self, now: Instant, own: MemberId, id: SeriesId, newest: u32, done: Runs) {
        let wanted = self.subscription(own, id).map(|subscription| {
            let mut wanted = Wanted::beginning(subscription, newest);
            if let (Some(first), Some(last)) = (done.runs().next(), done.runs().next_back()) {
                wanted.begins_at = None;
                if subscription.join != Join::Everything {
                    wanted.first = first.start as u32;
                }
                // Who asks for nothing does not come back to what was missing.
                wanted.next = if subscription.is_reliable { wanted.first } else { last.end as u32 };
            }
            wanted
        });
        let mut series = Series::new(now, newest, wanted);
        series.done = done;
        self.add(id, series);
    }
}

impl Wanted {
    /// The part that is wanted of a series whose first message to be heard, or told of, is this one.
    const fn beginning(subscription: Subscription, sequence: u32) -> Self {
        let (first, begins_at) = match subscription.join {
            Join::Everything => (0, None),
            Join::Now => (sequence, None),
            Join::Object => (sequence, Some(sequence)),
        };
        Self { subscription, first, next: first, begins_at }
    }

    /// The part that is wanted of a series that was known before the subscription.
    const fn from_now(subscription: Subscription, newest: u32) -> Self {
        match subscription.join {
            Join::Now => Self::beginning(subscription, newest + 1),
            Join::Object | Join::Everything => Self::beginning(subscription, newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: MemberId = MemberId { node: 1, run: 1 };
    const OTHER: MemberId = MemberId { node: 2, run: 1 };

    fn catalogue(subscription: Subscription) -> (Catalogue, SeriesId) {
        let mut catalogue = Catalogue::new(Duration::from_secs(500));
        let group: Group = b"recon"[..].into();
        catalogue.subscribe(OWN, &group, subscription);
        (catalogue, SeriesId { group: tag(&group), publisher: OTHER })
    }

    fn missing(catalogue: &Catalogue, id: SeriesId) -> Vec<u32> {
        catalogue.get(id).map_or(Vec::new(), |series| series.missing().collect())
    }

    /// Messages that are handed up as these become whole, in this order; the last one heard of is 9.
    fn handed_up(subscription: Subscription, whole: &[u32]) -> Vec<u32> {
        let (mut catalogue, id) = catalogue(subscription);
        catalogue.heard(Instant::ZERO, OWN, id.message(5));
        catalogue.heard(Instant::ZERO, OWN, id.message(9));
        let mut found = Vec::new();
        for &sequence in whole {
            let series = catalogue.get_mut(id).unwrap();
            series.whole(sequence, 2);
            found.extend(series.ready(Some(sequence)));
        }
        found
    }

    #[test]
    fn what_is_missing_behind_a_million_messages_is_found_at_once() {
        let everything = Subscription { join: Join::Everything, ..Subscription::default() };
        let (mut catalogue, id) = catalogue(everything);
        catalogue.heard(Instant::ZERO, OWN, id.message(1_000_001));
        let series = catalogue.get_mut(id).unwrap();
        // Runs of both sets overlap, and one begins where the other ends.
        series.done.insert_run(0..400_000);
        series.held.insert_run(400_000..700_000);
        series.done.insert_run(600_000..1_000_000);
        series.held.insert(1_000_001);
        assert_eq!(series.missing().collect::<Vec<_>>(), [1_000_000]);
        // Number by number this would take hours.
        assert!((0..100_000).all(|from| series.missing_in(from..u32::MAX).next() == Some(1_000_000)));
        assert_eq!(series.missing_in(0..1_000_000).next(), None);
    }

    #[test]
    fn a_late_member_asks_for_what_it_subscribed_to() {
        let join = |join| Subscription { join, ..Subscription::default() };
        for (join, first) in [(join(Join::Now), 5), (join(Join::Object), 5), (join(Join::Everything), 0)] {
            let (mut catalogue, id) = catalogue(join);
            assert!(catalogue.heard(Instant::ZERO, OWN, id.message(5)));
            assert!(catalogue.told(Instant::ZERO, OWN, id, 8));
            assert_eq!(missing(&catalogue, id), (first..=8).collect::<Vec<_>>(), "{join:?}");
            catalogue.get_mut(id).unwrap().whole(5, 3);
            let history = if join.join == Join::Object { 2 } else { first };
            assert_eq!(missing(&catalogue, id)[0], if join.join == Join::Now { 6 } else { history });
        }
    }

    #[test]
    fn order_and_reliability_combine() {
        let of = |order, is_reliable| Subscription { order, is_reliable, ..Subscription::default() };
        let whole = [6, 5, 9, 3, 4, 7, 8];
        assert_eq!(handed_up(of(Order::AsComplete, true), &whole), [5 + 1, 5, 9, 3, 4, 7, 8]);
        assert_eq!(handed_up(of(Order::BySender, true), &whole), [3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(handed_up(of(Order::BySender, false), &whole), [6, 9]);
        assert_eq!(handed_up(of(Order::AsComplete, false), &[6, 6]), [6], "once");
    }

    #[test]
    fn what_is_given_up_holds_nothing_back() {
        let (mut catalogue, id) =
            catalogue(Subscription { order: Order::BySender, join: Join::Everything, is_reliable: true });
        catalogue.heard(Instant::ZERO, OWN, id.message(2));
        let series = catalogue.get_mut(id).unwrap();
        series.whole(2, 0);
        assert_eq!(series.ready(Some(2)), []);
        series.give_up(0);
        series.give_up(1);
        assert_eq!(series.ready(None), [2]);
        assert_eq!(missing(&catalogue, id), []);
    }

    #[test]
    fn what_others_say_of_numbers_far_ahead_or_of_own_messages_is_not_believed() {
        let (mut catalogue, id) = catalogue(Subscription::default());
        assert!(catalogue.heard(Instant::ZERO, OWN, id.message(5)));
        assert!(!catalogue.told(Instant::ZERO, OWN, id, 5 + MAX_AHEAD));
        assert!(catalogue.told(Instant::ZERO, OWN, id, 4 + MAX_AHEAD));
        assert!(!catalogue.told(Instant::ZERO, OWN, SeriesId { publisher: OWN, ..id }, 3));
    }

    #[test]
    fn series_of_nothing_make_room_and_those_that_are_held_do_not() {
        let (mut catalogue, id) = catalogue(Subscription::default());
        catalogue.heard(Instant::ZERO, OWN, id.message(5));
        for group in 0..2 * MAX_SERIES as u32 {
            let id = SeriesId { group, ..id };
            assert!(catalogue.told(Instant::ZERO + Duration::from_secs(group.into()), OWN, id, 1));
        }
        assert!(catalogue.get(id).is_some() && catalogue.len() == MAX_SERIES);
        catalogue.all.values_mut().for_each(|series| series.held.insert(1));
        assert!(!catalogue.told(Instant::ZERO, OWN, SeriesId { group: u32::MAX, ..id }, 1));
        assert_eq!(catalogue.refused, 1);
    }

    #[test]
    fn only_series_that_lack_something_are_looked_at_for_it() {
        let (mut catalogue, id) =
            catalogue(Subscription { join: Join::Everything, ..Subscription::default() });
        let of = |node| SeriesId { publisher: MemberId { node, run: 1 }, ..id };
        let incomplete = |catalogue: &Catalogue| catalogue.incomplete().map(|(id, _)| id).collect::<Vec<_>>();
        for node in 10..200 {
            catalogue.heard(Instant::ZERO, OWN, of(node).message(0));
            catalogue.get_mut(of(node)).unwrap().whole(0, 0);
        }
        catalogue.find_incomplete();
        assert_eq!(incomplete(&catalogue), []);
        // Each way in which one comes to lack something.
        assert!(!catalogue.heard(Instant::ZERO, OWN, of(20).message(0)) && !catalogue.may_lack(of(20)));
        catalogue.heard(Instant::ZERO, OWN, of(20).message(1));
        catalogue.told(Instant::ZERO, OWN, of(30), 1);
        catalogue.told(Instant::ZERO, OWN, of(5), 1);
        catalogue.get_mut(of(40)).unwrap().held.remove_run(0..1);
        catalogue.get_mut(of(50)).unwrap().whole(0, 0);
        assert!(catalogue.may_lack(of(50)));
        catalogue.find_incomplete();
        assert_eq!(incomplete(&catalogue), [5, 20, 30, 40].map(of));
        let group: Group = b"recon"[..].into();
        catalogue.unsubscribe(&group);
        catalogue.subscribe(OWN, &group, Subscription { join: Join::Everything, ..Subscription::default() });
        assert_eq!(incomplete(&catalogue).len(), 191);
        catalogue.find_incomplete();
        assert_eq!(incomplete(&catalogue), [5, 20, 30, 40].map(of));
    }

    #[test]
    fn a_number_is_overdue_by_the_time_that_it_has_been_known_for() {
        let (mut catalogue, id) = catalogue(Subscription::default());
        let at = |second| Instant::ZERO + Duration::from_secs(second);
        for second in 0..1000 {
            catalogue.heard(at(second), OWN, id.message(second as u32 + 1));
        }
        let overdue = |now| catalogue.get(id).unwrap().overdue(at(now), Duration::from_secs(500));
        assert_eq!(overdue(400), None);
        let found = overdue(1000).unwrap();
        assert!((500..=510).contains(&found), "{found}");
        assert_eq!(overdue(1499), Some(1000));
        assert!(catalogue.get(id).unwrap().rises.len() <= RISES as usize + 2);
    }
}
