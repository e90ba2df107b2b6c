//! How nodes get each other's tables: what a message announces, requests for what was missed, and answers.

use hopcast_core::Instant;
use hopcast_wire::ethernet::Mac;

use super::{MAX_ANSWERED, MAX_ANSWERS, PendingTvlv, REQUEST_TIMEOUT, Translation};
use crate::wire::translation::{Change, FULL_TABLE, REQUEST, RESPONSE, TableData, table_data};
use crate::wire::{Header, data, tvlv};

impl Translation {
    /// Takes the container of an originator's message.
    pub(crate) fn receive_announcement(&mut self, now: Instant, originator: Mac, data: TableData<'_>) {
        let node = self.global.node_mut(originator);
        let (initialised, before) = (node.initialised, node.ttvn);
        let mut full = true;
        let in_sync = if !initialised && data.ttvn == 1 || i32::from(data.ttvn) - i32::from(before) == 1 {
            if data.changes().len() == 0 {
                // The changes did not fit, or have been sent often enough.
                full = false;
                false
            } else {
                let changes: Vec<Change> = data.changes().collect();
                self.apply(now, originator, &changes);
                self.global.keep_changes(originator, changes, self.limits);
                let node = self.global.node_mut(originator);
                node.ttvn = data.ttvn;
                node.update_checksums();
                self.global.agrees(originator, data.checksums())
            }
        } else {
            initialised && data.ttvn == before && self.global.agrees(originator, data.checksums())
        };
        if !in_sync {
            self.ask(now, originator, data, full);
        }
    }

    fn ask(&mut self, now: Instant, originator: Mac, data: TableData<'_>, full: bool) {
        if self.requests.get(&originator).is_some_and(|&asked| asked + REQUEST_TIMEOUT > now) {
            return;
        }
        if !self.global.node(originator).is_none_or(|node| node.may_be_asked(now)) {
            self.counters.requests_held_back += 1;
            return;
        }
        self.requests.insert(originator, now);
        self.counters.requests_sent += 1;
        let flags = REQUEST | if full { FULL_TABLE } else { 0 };
        let value = table_data(flags, data.ttvn, data.checksums(), std::iter::empty());
        self.pending.push(PendingTvlv {
            source: None,
            destination: originator,
            kind: tvlv::TRANSLATION,
            value,
        });
    }

    /// Takes a request for the table of this node, or of another (`of`). Returns whether it need not go on: it is
    /// answered, or nobody else has this node's table.
    pub(crate) fn receive_request(
        &mut self,
        now: Instant,
        from: Mac,
        of: Option<Mac>,
        data: TableData<'_>,
        max_len: usize,
    ) -> bool {
        self.counters.requests_received += 1;
        let has_it = of.is_none_or(|of| {
            self.global.node(of).is_some_and(|node| node.initialised && node.ttvn == data.ttvn)
                && self.global.agrees(of, data.checksums())
                && !self.global.is_partial(of)
        });
        if !has_it {
            return false;
        }
        if !self.may_answer(now, from, of) {
            self.counters.requests_too_many += 1;
            return of.is_none();
        }
        let whole = data.flags & FULL_TABLE != 0;
        let value = match of.and_then(|of| Some((of, self.global.node(of)?))) {
            None => match self.local.last_changes() {
                Some(changes) if !whole && data.ttvn == self.local.ttvn() => {
                    self.local.data(RESPONSE, changes)
                }
                _ => self.local.data(RESPONSE | FULL_TABLE, &self.local.table()),
            },
            Some((of, node)) => {
                let whole = whole || node.last_changes().is_empty();
                let flags = RESPONSE | if whole { FULL_TABLE } else { 0 };
                let changes = if whole { self.global.table(of) } else { node.last_changes().to_vec() };
                table_data(flags, node.ttvn, node.checksums(), changes.into_iter())
            }
        };
        if data::UnicastTvlv::LEN + tvlv::HEADER + value.len() > max_len {
            self.counters.responses_too_long += 1;
            return of.is_none();
        }
        self.counters.responses_sent += 1;
        self.pending.push(PendingTvlv { source: of, destination: from, kind: tvlv::TRANSLATION, value });
        true
    }

    /// Counts an answer about a table to a node. Returns whether it may have one.
    fn may_answer(&mut self, now: Instant, from: Mac, of: Option<Mac>) -> bool {
        if self.answered.len() >= MAX_ANSWERED && !self.answered.contains_key(&(from, of)) {
            return false;
        }
        let (since, left) = self.answered.entry((from, of)).or_insert((now, MAX_ANSWERS));
        if *since + REQUEST_TIMEOUT <= now {
            (*since, *left) = (now, MAX_ANSWERS);
        }
        let may = *left > 0;
        *left = left.saturating_sub(1);
        may
    }

    /// Takes the answer to a request.
    pub(crate) fn receive_response(&mut self, now: Instant, originator: Mac, data: TableData<'_>) {
        self.counters.responses_received += 1;
        if self.requests.remove(&originator).is_none() {
            self.counters.responses_not_asked_for += 1;
            return;
        }
        let changes: Vec<Change> = data.changes().collect();
        let full = data.flags & FULL_TABLE != 0;
        if full {
            self.global.clear_node(originator);
        }
        self.apply(now, originator, &changes);
        self.global.keep_changes(originator, if full { Vec::new() } else { changes }, self.limits);
        let node = self.global.node_mut(originator);
        node.ttvn = data.ttvn;
        node.update_checksums();
    }
}
