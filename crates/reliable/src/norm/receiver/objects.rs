//! The objects of a sender: those that are being received, and which are over.

use std::collections::BTreeMap;

use super::asked::Asked;
use super::held::Held;
use super::object::Object;
use crate::runs::Runs;

/// The objects of a sender.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Objects before it are of no interest any more.
    first: u64,
    open: BTreeMap<u64, Object>,
    /// Objects from the first on of which nothing more is wanted.
    done: Runs,
    /// Requests for objects of which nothing was heard.
    asked: BTreeMap<u64, Asked>,
    /// Memory of all of them.
    held: Held,
}

impl Objects {
    /// Starts with an object.
    pub(super) fn begin(&mut self, first: u64) {
        self.first = first;
    }

    /// The first object that may be of interest.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Memory of all of them.
    pub(super) fn held(&self) -> Held {
        self.held
    }

    pub(super) fn is_done(&self, number: u64) -> bool {
        number < self.first || self.done.contains(number)
    }

    pub(super) fn get(&self, number: u64) -> Option<&Object> {
        self.open.get(&number)
    }

    /// Objects up to one that are not done, whether anything was heard of them or not.
    pub(super) fn wanted(&self, last: u64) -> impl Iterator<Item = u64> + '_ {
        self.done.gaps(self.first..last + 1)
    }

    /// The first object that is being received.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.open.first_key_value().map(|(&number, _)| number)
    }

    /// Changes an object, which is new if nothing was heard of it. `None` if it is done.
    pub(super) fn open_or_change<R>(
        &mut self,
        number: u64,
        change: impl FnOnce(&mut Object) -> R,
    ) -> Option<R> {
        if self.is_done(number) {
            return None;
        }
        self.open.entry(number).or_insert_with(|| {
            let object = Object::new();
            self.held += object.held();
            object
        });
        self.asked.remove(&number);
        self.change(number, change)
    }

    /// Changes an object that is being received.
    pub(super) fn change<R>(&mut self, number: u64, change: impl FnOnce(&mut Object) -> R) -> Option<R> {
        let object = self.open.get_mut(&number)?;
        self.held -= object.held();
        let result = change(object);
        self.held += object.held();
        if object.is_done {
            self.finish(number);
        }
        Some(result)
    }

    /// Nothing more is wanted of an object.
    pub(super) fn finish(&mut self, number: u64) {
        if let Some(object) = self.open.remove(&number) {
            self.held -= object.held();
        }
        self.asked.remove(&number);
        if number >= self.first {
            self.done.insert(number);
        }
        if number == self.first {
            self.first = self.done.next_gap(number);
            self.done.forget_below(self.first);
        }
    }

    /// Forgets all; the next object of interest is `first`.
    pub(super) fn clear(&mut self, first: u64) {
        *self = Self { first, ..Self::default() };
    }

    /// Requests for an object of which nothing was heard.
    pub(super) fn asked(&mut self, number: u64) -> &mut Asked {
        self.asked.entry(number).or_default()
    }

    /// The same, to be looked at.
    pub(super) fn asked_of(&self, number: u64) -> Asked {
        self.asked.get(&number).copied().unwrap_or_default()
    }
}
