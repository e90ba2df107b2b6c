//! A map whose keys are addresses: [`AddressMap`].

use hopcast_wire::ethernet::Mac;

/// Values by address, in the order of the addresses.
///
/// Each message of a mesh looks up several. For most, a hash of the address says the slot at once. Where two addresses
/// have one hash, one of them is searched for among all, which stand beside each other as numbers, so that no choice of
/// addresses makes a search longer than that.
#[derive(Debug)]
pub(crate) struct AddressMap<T> {
    /// The addresses as numbers, in their order.
    numbers: Vec<u64>,
    /// The slot of each.
    slots: Vec<Slot>,
    /// In each slot the number of its address, and the value.
    values: Vec<Option<(u64, T)>>,
    free: Vec<Slot>,
    /// For each hash the slot of the address that was added last with it, which may be another's since.
    guesses: Vec<Slot>,
}

/// Place of a value, which stays the same until that value is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl<T> Default for AddressMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> AddressMap<T> {
    pub(crate) const fn new() -> Self {
        Self {
            numbers: Vec::new(),
            slots: Vec::new(),
            values: Vec::new(),
            free: Vec::new(),
            guesses: Vec::new(),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Where the value of an address is.
    #[inline]
    pub(crate) fn find(&self, address: Mac) -> Option<Slot> {
        let number = number(address);
        if let Some(&guess) = self.guesses.get(hash(number, self.guesses.len()))
            && let Some(Some((of, _))) = self.values.get(guess.0 as usize)
            && *of == number
        {
            return Some(guess);
        }
        let place = self.numbers.binary_search(&number).ok()?;
        Some(self.slots[place])
    }

    /// The value in a slot; `None` if it was removed.
    #[inline]
    pub(crate) fn at(&self, Slot(slot): Slot) -> Option<&T> {
        self.values.get(slot as usize)?.as_ref().map(|(_, value)| value)
    }

    /// The value in a slot, to be changed.
    #[inline]
    pub(crate) fn at_mut(&mut self, Slot(slot): Slot) -> Option<&mut T> {
        self.values.get_mut(slot as usize)?.as_mut().map(|(_, value)| value)
    }

    #[inline]
    pub(crate) fn get(&self, address: Mac) -> Option<&T> {
        self.at(self.find(address)?)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, address: Mac) -> Option<&mut T> {
        self.at_mut(self.find(address)?)
    }

    /// Sets the value of an address.
    pub(crate) fn insert(&mut self, address: Mac, value: T) -> Slot {
        let number = number(address);
        let slot = match self.numbers.binary_search(&number) {
            Ok(place) => self.slots[place],
            Err(place) => {
                let slot = self.free.pop().unwrap_or(Slot(self.values.len() as u32));
                if slot.0 as usize == self.values.len() {
                    self.values.push(None);
                }
                self.numbers.insert(place, number);
                self.slots.insert(place, slot);
                slot
            }
        };
        self.values[slot.0 as usize] = Some((number, value));
        if self.guesses.len() < 2 * self.values.len() {
            self.guesses = vec![slot; (2 * self.values.len()).next_power_of_two()];
            self.numbers
                .iter()
                .zip(&self.slots)
                .for_each(|(&number, &slot)| guess(&mut self.guesses, number, slot));
        } else {
            guess(&mut self.guesses, number, slot);
        }
        slot
    }

    /// The value of an address, to be changed; one by default is added if there is none.
    pub(crate) fn or_default(&mut self, address: Mac) -> &mut T
    where
        T: Default,
    {
        let slot = self.find(address).unwrap_or_else(|| self.insert(address, T::default()));
        &mut self.values[slot.0 as usize].get_or_insert_with(|| (number(address), T::default())).1
    }

    pub(crate) fn remove(&mut self, address: Mac) -> Option<T> {
        let place = self.numbers.binary_search(&number(address)).ok()?;
        self.numbers.remove(place);
        let slot = self.slots.remove(place);
        self.free.push(slot);
        self.values[slot.0 as usize].take().map(|(_, value)| value)
    }

    /// Removes the values of which `keeps` says `false`.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(Mac, &mut T) -> bool) {
        let Self { numbers, slots, values, free, .. } = self;
        let mut kept = 0;
        for place in 0..numbers.len() {
            let (number, slot) = (numbers[place], slots[place]);
            let value = &mut values[slot.0 as usize];
            if value.as_mut().is_some_and(|(_, value)| keeps(address(number), value)) {
                (numbers[kept], slots[kept]) = (number, slot);
                kept += 1;
            } else {
                *value = None;
                free.push(slot);
            }
        }
        numbers.truncate(kept);
        slots.truncate(kept);
    }

    /// The addresses with their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Mac, &T)> {
        let places = self.numbers.iter().zip(&self.slots);
        places.filter_map(|(&number, &slot)| Some((address(number), self.at(slot)?)))
    }
}

#[inline]
const fn number([a, b, c, d, e, f]: Mac) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// Place of a number among this many guesses, a power of two: bits of its product with the golden ratio.
#[inline]
const fn hash(number: u64, guesses: usize) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & guesses.wrapping_sub(1)
}

fn guess(guesses: &mut [Slot], number: u64, slot: Slot) {
    let place = hash(number, guesses.len());
    guesses[place] = slot;
}

const fn address(number: u64) -> Mac {
    let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
    [a, b, c, d, e, f]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Operation {
        Insert(Mac, u32),
        Add(Mac, u32),
        Remove(Mac),
        Retain(u32),
    }

    /// Few addresses that differ in their first and last bytes, so that operations meet.
    fn an_address() -> impl Strategy<Value = Mac> {
        (0..4_u8, 0..8_u8).prop_map(|(first, last)| [0xff * (first & 1), 0, 0, first >> 1, 0, last])
    }

    fn an_operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            6 => (an_address(), any::<u32>()).prop_map(|(address, value)| Operation::Insert(address, value)),
            2 => (an_address(), any::<u32>()).prop_map(|(address, more)| Operation::Add(address, more)),
            3 => an_address().prop_map(Operation::Remove),
            1 => (2..5_u32).prop_map(Operation::Retain),
        ]
    }

    proptest! {
        #[test]
        fn it_holds_what_a_tree_would_and_slots_stay(operations in prop::collection::vec(an_operation(), 0..200)) {
            let (mut map, mut tree) = (AddressMap::new(), BTreeMap::new());
            let mut slots = BTreeMap::new();
            for operation in operations {
                match operation {
                    Operation::Insert(address, value) => {
                        let slot = map.insert(address, value);
                        tree.insert(address, value);
                        prop_assert_eq!(*slots.entry(address).or_insert(slot), slot);
                    }
                    Operation::Add(address, more) => {
                        let (value, expected) = (map.or_default(address), tree.entry(address).or_default());
                        (*value, *expected) = (value.wrapping_add(more), expected.wrapping_add(more));
                        if let Some(slot) = map.find(address) {
                            prop_assert_eq!(*slots.entry(address).or_insert(slot), slot);
                        }
                    }
                    Operation::Remove(address) => {
                        prop_assert_eq!(map.remove(address), tree.remove(&address));
                        slots.remove(&address);
                    }
                    Operation::Retain(divisor) => {
                        let mut asked = Vec::new();
                        map.retain(|address, value| {
                            asked.push(address);
                            *value /= 2;
                            !value.is_multiple_of(divisor)
                        });
                        prop_assert_eq!(asked, tree.keys().copied().collect::<Vec<_>>());
                        tree.retain(|_, value| {
                            *value /= 2;
                            !value.is_multiple_of(divisor)
                        });
                        slots.retain(|address, _| tree.contains_key(address));
                    }
                }
                prop_assert_eq!(map.len(), tree.len());
                prop_assert!(map.iter().map(|(address, &value)| (address, value)).eq(tree.clone()));
                for (&address, &slot) in &slots {
                    prop_assert_eq!(map.find(address), Some(slot));
                    prop_assert_eq!(map.at(slot), tree.get(&address));
                    prop_assert_eq!(map.get_mut(address), tree.get_mut(&address));
                }
                // Memory that is free is used again: there are no more slots than addresses.
                prop_assert!(map.values.len() <= 32);
            }
        }
    }
}
