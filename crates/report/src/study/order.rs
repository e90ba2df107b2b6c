//! Collections in the order of first appearance.

use std::collections::BTreeMap;

/// Distinct items in the order of first appearance, with their indices.
#[derive(Clone, Debug)]
pub(crate) struct Order<T> {
    places: BTreeMap<T, usize>,
    all: Vec<T>,
}

impl<T: Clone + Ord> Order<T> {
    pub(crate) fn of(items: impl IntoIterator<Item = T>) -> Self {
        let mut order = Self { places: BTreeMap::new(), all: Vec::new() };
        for item in items {
            order.insert(item);
        }
        order
    }

    /// The index of an item, which is added if it is new.
    pub(crate) fn insert(&mut self, item: T) -> usize {
        if let Some(place) = self.places.get(&item) {
            return *place;
        }
        let place = self.all.len();
        self.places.insert(item.clone(), place);
        self.all.push(item);
        place
    }

    pub(crate) fn place(&self, item: &T) -> Option<usize> {
        self.places.get(item).copied()
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        self.all
    }
}

/// The distinct items, in the order of first appearance.
pub(crate) fn distinct<T: Clone + Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    Order::of(items).into_vec()
}

/// The values of each key, with the keys in the order of first appearance.
pub(crate) fn grouped<K: Clone + Ord, V>(items: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut order = Order::of([]);
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in items {
        let place = order.insert(key.clone());
        match groups.get_mut(place) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}
