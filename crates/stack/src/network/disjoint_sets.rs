//! Sets of numbers, of which any two can be made one.

/// The sets. Each begins with one number.
#[derive(Debug, Default)]
pub(super) struct DisjointSets {
    parent: Vec<usize>,
}

impl DisjointSets {
    /// Adds a set of the next number, counted from 0; returns the number.
    pub(super) fn add(&mut self) -> usize {
        self.parent.push(self.parent.len());
        self.parent.len() - 1
    }

    /// The number that stands for the set of another: the smallest in it.
    pub(super) fn root(&mut self, mut number: usize) -> usize {
        while self.parent[number] != number {
            self.parent[number] = self.parent[self.parent[number]];
            number = self.parent[number];
        }
        number
    }

    /// Makes the sets of two numbers one.
    pub(super) fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.parent[one.max(other)] = one.min(other);
    }
}
