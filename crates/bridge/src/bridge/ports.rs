//! Sets of ports.

/// A set of a bridge's ports, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortSet(Box<[u64]>);

impl PortSet {
    /// An empty set that has room for this many ports.
    pub(super) fn new(ports: usize) -> Self {
        Self(vec![0; ports.div_ceil(64)].into())
    }

    /// Adds a port, which is one of those that there is room for.
    pub(super) fn insert(&mut self, port: usize) {
        self.0[port / 64] |= 1 << (port % 64);
    }

    /// Whether a port is in it.
    #[inline]
    pub(super) fn contains(&self, port: usize) -> bool {
        self.0.get(port / 64).is_some_and(|word| word >> (port % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_the_ports_that_were_added() {
        let mut set = PortSet::new(130);
        [0, 63, 64, 129].into_iter().for_each(|port| set.insert(port));
        let held: Vec<usize> = (0..200).filter(|&port| set.contains(port)).collect();
        assert_eq!(held, [0, 63, 64, 129]);
    }
}
