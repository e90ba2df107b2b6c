//! Entries divided among advertisements, so that a change of one entry changes one advertisement.

use std::collections::BTreeMap;

use super::wire::{MAX_ENTRIES, MAX_FRAGMENTS};

/// The advertisement that each entry is in. An entry stays where it is for as long as it is there.
#[derive(Debug)]
pub(super) struct Fragments<K>(BTreeMap<K, u16>);

impl<K> Default for Fragments<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Copy> Fragments<K> {
    /// Divides entries among numbered advertisements. Those that find no room in the last are left out.
    pub(super) fn divide<V: Copy>(&mut self, entries: &BTreeMap<K, V>) -> BTreeMap<u16, Vec<(K, V)>> {
        self.0.retain(|key, _| entries.contains_key(key));
        let mut used: BTreeMap<u16, usize> = BTreeMap::new();
        self.0.values().for_each(|&number| *used.entry(number).or_default() += 1);
        let mut free = 0;
        for &key in entries.keys() {
            if self.0.contains_key(&key) {
                continue;
            }
            while used.get(&free).is_some_and(|&count| count >= MAX_ENTRIES) {
                free += 1;
            }
            if free >= MAX_FRAGMENTS {
                break;
            }
            *used.entry(free).or_default() += 1;
            self.0.insert(key, free);
        }
        let mut divided: BTreeMap<u16, Vec<(K, V)>> = BTreeMap::new();
        for (&key, &value) in entries {
            if let Some(&number) = self.0.get(&key) {
                divided.entry(number).or_default().push((key, value));
            }
        }
        divided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_comes_or_goes_moves_no_other() {
        let mut fragments = Fragments::default();
        let mut entries: BTreeMap<u32, ()> = (0..100).map(|key| (2 * key, ())).collect();
        let before = fragments.divide(&entries);
        assert_eq!(before.len(), 5);
        entries.remove(&10);
        entries.insert(151, ());
        let after = fragments.divide(&entries);
        let changed: Vec<u16> = (0..5).filter(|number| before[number] != after[number]).collect();
        assert_eq!(changed, [0], "the new entry is where the old one was");
        assert!(after.values().all(|part| part.len() <= MAX_ENTRIES));
        entries.insert(1001, ());
        assert_eq!(fragments.divide(&entries)[&5], [(1001, ())]);
    }

    #[test]
    fn what_no_advertisement_has_room_for_is_left_out() {
        let entries: BTreeMap<u32, ()> = (0..30_000).map(|key| (key, ())).collect();
        let divided = Fragments::default().divide(&entries);
        assert_eq!(divided.len(), usize::from(MAX_FRAGMENTS));
        assert_eq!(divided.values().map(Vec::len).sum::<usize>(), 20_480);
    }
}
