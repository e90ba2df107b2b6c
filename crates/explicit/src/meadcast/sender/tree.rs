//! The topology tree: the routers that have named themselves, and the receivers behind them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;

/// The routers on the way to a receiver, by their distances.
pub(super) type Path = BTreeMap<u8, Ipv6Addr>;

/// A tree of routers, with the sender as its root and receivers as leaves (thesis, section 4.3.1).
///
/// A place in it is a router by a certain path: one that receivers have named at several distances or behind different
/// routers, while routes change, is there several times. So whatever is below a place has its router on its path.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The places; the first is the sender's.
    pub(super) places: Vec<Place>,
}

#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The router; the sender's place has the unspecified address.
    pub(super) router: Ipv6Addr,
    /// Its distance in MEADcast hops.
    pub(super) hops: u8,
    pub(super) parent: usize,
    pub(super) children: Vec<usize>,
    /// The receivers that have no further router on their path.
    pub(super) leaves: Vec<Ipv6Addr>,
    /// Rank among all places in depth-first order, each in front of those below it.
    pub(super) order: usize,
}

impl Tree {
    /// Place of the sender.
    pub(super) const ROOT: usize = 0;

    /// The tree of these receivers, in their order, by the paths that are known.
    pub(super) fn new(receivers: &[Ipv6Addr], paths: &BTreeMap<Ipv6Addr, Path>) -> Self {
        let mut tree = Self { places: vec![Place::new(Ipv6Addr::UNSPECIFIED, 0, Self::ROOT)] };
        let complete = complete_paths(paths);
        for &receiver in receivers {
            let mut place = Self::ROOT;
            for (hops, router) in
                paths.get(&receiver).map(|path| completed(path, &complete)).unwrap_or_default()
            {
                place = tree.child(place, hops, router);
            }
            tree.places[place].leaves.push(receiver);
        }
        let mut order = vec![Self::ROOT];
        tree.append_below(Self::ROOT, &mut order, true);
        order.into_iter().enumerate().for_each(|(rank, place)| tree.places[place].order = rank);
        tree
    }

    fn child(&mut self, parent: usize, hops: u8, router: Ipv6Addr) -> usize {
        let children = &self.places[parent].children;
        let is_it = |&&child: &&usize| (self.places[child].hops, self.places[child].router) == (hops, router);
        if let Some(&child) = children.iter().find(is_it) {
            return child;
        }
        let child = self.places.len();
        self.places.push(Place::new(router, hops, parent));
        self.places[parent].children.push(child);
        child
    }

    /// Takes the routers out that have fewer than these leaves and fewer than these routers directly below: both go to
    /// the router above. Those below are looked at first.
    pub(super) fn cut(&mut self, min_leaves: usize, min_routers: usize) {
        let mut order = Vec::new();
        self.append_below(Self::ROOT, &mut order, false);
        for place in order {
            let Place { parent, ref children, ref leaves, .. } = self.places[place];
            if children.len() >= min_routers || leaves.len() >= min_leaves {
                continue;
            }
            let children = std::mem::take(&mut self.places[place].children);
            let leaves = std::mem::take(&mut self.places[place].leaves);
            for &child in &children {
                self.places[child].parent = parent;
            }
            let above = &mut self.places[parent];
            let own = above.children.iter().position(|&child| child == place);
            if let Some(own) = own {
                above.children.splice(own..=own, children);
            }
            above.leaves.extend(leaves);
        }
    }

    /// Appends the places below one, each in front of those that are below it, or behind.
    fn append_below(&self, place: usize, order: &mut Vec<usize>, in_front: bool) {
        // The depth is bounded by the hops of MEADcast.
        for &child in &self.places[place].children {
            if in_front {
                order.push(child);
            }
            self.append_below(child, order, in_front);
            if !in_front {
                order.push(child);
            }
        }
    }

    /// The nearest place that two places are both at or below.
    pub(super) fn common(&self, one: usize, other: usize) -> usize {
        let above = |mut place: usize| {
            let mut all = vec![place];
            while place != Self::ROOT {
                place = self.places[place].parent;
                all.push(place);
            }
            all
        };
        let of_other = above(other);
        above(one).into_iter().find(|place| of_other.contains(place)).unwrap_or(Self::ROOT)
    }

    /// Number of routers in the tree.
    pub fn routers(&self) -> usize {
        self.places.iter().map(|place| place.children.len()).sum()
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, place: usize, depth: usize) -> fmt::Result {
        let Place { router, hops, children, leaves, .. } = &self.places[place];
        match place {
            Self::ROOT => writeln!(f, "sender")?,
            _ => writeln!(f, "{:1$}{router} ({hops})", "", 2 * depth)?,
        }
        for leaf in leaves {
            writeln!(f, "{:1$}- {leaf}", "", 2 * depth + 2)?;
        }
        children.iter().try_for_each(|&child| self.print(f, child, depth + 1))
    }
}

impl Place {
    const fn new(router: Ipv6Addr, hops: u8, parent: usize) -> Self {
        Self { router, hops, parent, children: Vec::new(), leaves: Vec::new(), order: 0 }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.places.is_empty() {
            true => writeln!(f, "sender"),
            false => self.print(f, Self::ROOT, 0),
        }
    }
}

/// For each router at a distance, a path to it on which no router is missing.
fn complete_paths(paths: &BTreeMap<Ipv6Addr, Path>) -> BTreeMap<(u8, Ipv6Addr), Vec<(u8, Ipv6Addr)>> {
    let mut complete = BTreeMap::new();
    if paths.values().all(is_unbroken) {
        return complete;
    }
    for path in paths.values() {
        let unbroken =
            path.iter().enumerate().take_while(|(place, (hops, _))| usize::from(**hops) == place + 1);
        let mut whole_path = Vec::new();
        for (_, (&hops, &router)) in unbroken {
            whole_path.push((hops, router));
            complete.entry((hops, router)).or_insert_with(|| whole_path.clone());
        }
    }
    complete
}

/// Whether a path has a router at each distance up to its last.
fn is_unbroken(path: &Path) -> bool {
    path.last_key_value().is_none_or(|(&last, _)| usize::from(last) == path.len())
}

/// A path without its gaps, if another path that agrees with it has none: responses to some requests were lost.
fn completed(path: &Path, complete: &BTreeMap<(u8, Ipv6Addr), Vec<(u8, Ipv6Addr)>>) -> Vec<(u8, Ipv6Addr)> {
    let own = |from| path.range(from..).map(|(&hops, &router)| (hops, router));
    if is_unbroken(path) {
        return own(0).collect();
    }
    let known = path.iter().rev().find_map(|(&hops, &router)| {
        let whole_path = complete.get(&(hops, router))?;
        path.range(..hops)
            .all(|(&hops, &router)| whole_path.get(usize::from(hops) - 1) == Some(&(hops, router)))
            .then_some((hops, whole_path))
    });
    let Some((last, whole_path)) = known else { return own(0).collect() };
    whole_path.iter().copied().chain(own(last + 1)).collect()
}
