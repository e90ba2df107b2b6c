//! Positions of nodes in a drawing: the same topology always gets the same ones.

use std::collections::VecDeque;

use super::{MAX_DRAWN_NODES, Topology};

type Point = (f64, f64);

/// The place of each node in a drawing.
pub(crate) struct Layout {
    /// The position of each node, in arbitrary units, y downwards.
    pub(crate) places: Vec<Point>,
    /// Whether the file has the positions of all nodes, so that turning the drawing would make a wrong map.
    pub(crate) given: bool,
}

/// Places every node: at its position in the file, in a row if the links make a chain, else by springs, or by layers if
/// there are too many for springs.
pub(crate) fn lay_out(topology: &Topology) -> Layout {
    let pinned: Vec<Option<Point>> = topology.nodes.iter().map(|node| node.position).collect();
    let given: Vec<Point> = pinned.iter().flatten().copied().collect();
    if given.len() == pinned.len() {
        return Layout { places: given, given: true };
    }
    let neighbours = neighbours(topology);
    let places = if !given.is_empty() && pinned.len() <= MAX_DRAWN_NODES {
        springs(&neighbours, &pinned)
    } else if let Some(order) = chain(&neighbours) {
        let mut places = vec![(0.0, 0.0); order.len()];
        for (step, node) in order.into_iter().enumerate() {
            places[node] = (step as f64, 0.0);
        }
        places
    } else if pinned.len() <= MAX_DRAWN_NODES {
        springs(&neighbours, &pinned)
    } else {
        layers(&neighbours)
    };
    Layout { places, given: false }
}

fn neighbours(topology: &Topology) -> Vec<Vec<usize>> {
    let mut neighbours = vec![Vec::new(); topology.nodes.len()];
    for link in &topology.links {
        // A medium of many stations is drawn as spokes; in the layout a ring of neighbours replaces all its pairs.
        for (index, end) in link.ends.iter().enumerate() {
            let next = link.ends[(index + 1) % link.ends.len()];
            if next != *end && !neighbours[*end].contains(&next) {
                neighbours[*end].push(next);
                neighbours[next].push(*end);
            }
        }
    }
    neighbours
}

/// The nodes from one end to the other, if the links make a single chain.
fn chain(neighbours: &[Vec<usize>]) -> Option<Vec<usize>> {
    let start = neighbours.iter().position(|of| of.len() <= 1)?;
    let mut order = vec![start];
    let mut before = start;
    let mut here = start;
    while let Some(next) = neighbours[here].iter().find(|next| **next != before) {
        if neighbours[here].len() > 2 || order.len() > neighbours.len() {
            return None;
        }
        (before, here) = (here, *next);
        order.push(here);
    }
    (order.len() == neighbours.len()).then_some(order)
}

/// A layout in rows by distance from the first node, which is fast for any size.
fn layers(neighbours: &[Vec<usize>]) -> Vec<Point> {
    let mut places = vec![None; neighbours.len()];
    let mut filled: Vec<usize> = Vec::new();
    let tall = (neighbours.len() as f64).sqrt().ceil().max(1.0);
    let mut left = 0.0;
    for start in 0..neighbours.len() {
        if places[start].is_some() {
            continue;
        }
        let mut depths = vec![(start, 0)];
        let mut queue = VecDeque::from([(start, 0)]);
        places[start] = Some((0.0, 0.0));
        while let Some((node, depth)) = queue.pop_front() {
            for next in &neighbours[node] {
                if places[*next].is_none() {
                    places[*next] = Some((0.0, 0.0));
                    depths.push((*next, depth + 1));
                    queue.push_back((*next, depth + 1));
                }
            }
        }
        filled.clear();
        let mut depth_before = 0;
        for (node, depth) in depths {
            if depth != depth_before || filled.len() as f64 >= tall {
                left += 1.0;
                filled.clear();
                depth_before = depth;
            }
            places[node] = Some((left, filled.len() as f64));
            filled.push(node);
        }
        left += 1.0;
    }
    places.into_iter().flatten().collect()
}

/// Fruchterman and Reingold's springs, cooled over a fixed number of steps; pinned nodes stay.
fn springs(neighbours: &[Vec<usize>], pinned: &[Option<Point>]) -> Vec<Point> {
    let count = neighbours.len().max(1) as f64;
    let (centre, spread) = extent(pinned);
    let ideal = spread / count.sqrt();
    let start = rings(neighbours);
    let ring = |node: usize| {
        let (angle, radius) = start[node];
        (centre.0 + spread * radius * angle.cos(), centre.1 + spread * radius * angle.sin())
    };
    let mut places: Vec<Point> =
        pinned.iter().enumerate().map(|(node, place)| place.unwrap_or_else(|| ring(node))).collect();
    let steps = 300;
    for step in 0..steps {
        let heat = spread / 8.0 * (1.0 - f64::from(step) / f64::from(steps));
        let mut forces = vec![(0.0, 0.0); places.len()];
        for one in 0..places.len() {
            for other in 0..one {
                let (dx, dy) = apart(places[one], places[other], one);
                let square = (dx * dx + dy * dy).max(1e-9 * ideal * ideal);
                let push = ideal * ideal / square;
                forces[one] = (forces[one].0 + dx * push, forces[one].1 + dy * push);
                forces[other] = (forces[other].0 - dx * push, forces[other].1 - dy * push);
            }
            // A weak pull to the middle keeps parts that no link joins in the picture.
            let (dx, dy) = (centre.0 - places[one].0, centre.1 - places[one].1);
            forces[one] = (forces[one].0 + dx * 0.05, forces[one].1 + dy * 0.05);
        }
        for (one, others) in neighbours.iter().enumerate() {
            for other in others {
                let (dx, dy) = apart(places[*other], places[one], one);
                let pull = (dx * dx + dy * dy).sqrt() / ideal;
                forces[one] = (forces[one].0 + dx * pull, forces[one].1 + dy * pull);
            }
        }
        for (node, (fx, fy)) in forces.into_iter().enumerate() {
            let strength = (fx * fx + fy * fy).sqrt();
            if pinned[node].is_none() && strength > 0.0 {
                let reach = strength.min(heat) / strength;
                places[node] = (places[node].0 + fx * reach, places[node].1 + fy * reach);
            }
        }
    }
    places
}

/// Angle and radius of the start: rings around the node with most neighbours, subtrees side by side, so that a tree
/// begins, and mostly ends, without crossings.
fn rings(neighbours: &[Vec<usize>]) -> Vec<Point> {
    let mut roots: Vec<usize> = (0..neighbours.len()).collect();
    roots.sort_by_key(|node| (std::cmp::Reverse(neighbours[*node].len()), *node));
    let mut depths = vec![None; neighbours.len()];
    for root in roots {
        let mut queue = VecDeque::new();
        if depths[root].is_none() {
            depths[root] = Some((0, root));
            queue.push_back(root);
        }
        while let Some(node) = queue.pop_front() {
            let depth = depths[node].map_or(0, |(depth, _)| depth);
            for next in &neighbours[node] {
                if depths[*next].is_none() {
                    depths[*next] = Some((depth + 1, node));
                    queue.push_back(*next);
                }
            }
        }
    }
    let parents: Vec<(usize, usize)> = depths.into_iter().flatten().collect();
    let mut children = vec![Vec::new(); neighbours.len()];
    let mut stack = Vec::new();
    for (node, (depth, parent)) in parents.iter().enumerate() {
        if *depth == 0 { stack.push(node) } else { children[*parent].push(node) }
    }
    let deepest = parents.iter().map(|(depth, _)| *depth).max().unwrap_or(0).max(1) as f64;
    let mut places = vec![(0.0, 0.0); neighbours.len()];
    let mut turn = 0.0;
    while let Some(node) = stack.pop() {
        let angle = turn / neighbours.len() as f64 * std::f64::consts::TAU;
        places[node] = (angle, 0.5 * (parents[node].0 as f64 + 0.01) / deepest);
        turn += 1.0;
        stack.extend(children[node].iter().rev());
    }
    places
}

/// The vector from one point to the other; not zero even if they coincide.
fn apart(one: Point, other: Point, salt: usize) -> Point {
    let (dx, dy) = (one.0 - other.0, one.1 - other.1);
    if dx == 0.0 && dy == 0.0 { (1e-6 * (salt + 1) as f64, 1e-6) } else { (dx, dy) }
}

/// Centre and size of the pinned nodes, or of a unit square.
fn extent(pinned: &[Option<Point>]) -> (Point, f64) {
    let points: Vec<Point> = pinned.iter().flatten().copied().collect();
    if points.is_empty() {
        return ((0.5, 0.5), 1.0);
    }
    let low = points.iter().fold((f64::MAX, f64::MAX), |low, p| (low.0.min(p.0), low.1.min(p.1)));
    let high = points.iter().fold((f64::MIN, f64::MIN), |high, p| (high.0.max(p.0), high.1.max(p.1)));
    let size = (high.0 - low.0).max(high.1 - low.1);
    let size = if size > 0.0 { size } else { 1.0 };
    (((low.0 + high.0) / 2.0, (low.1 + high.1) / 2.0), size)
}

#[cfg(test)]
mod tests {
    use super::super::{TopologyLink, TopologyNode};
    use super::*;

    fn topology(nodes: usize, ends: impl IntoIterator<Item = (usize, usize)>) -> Topology {
        let node = |n: usize| TopologyNode { name: format!("n{n}"), position: None };
        let link = |(a, b): (usize, usize)| TopologyLink {
            name: format!("{a}-{b}"),
            ends: vec![a, b],
            rate_mbps: None,
        };
        Topology { nodes: (0..nodes).map(node).collect(), links: ends.into_iter().map(link).collect() }
    }

    #[test]
    fn a_chain_lies_in_a_row() {
        let places = lay_out(&topology(4, [(2, 0), (0, 3), (3, 1)])).places;
        assert_eq!(places, [(1.0, 0.0), (3.0, 0.0), (0.0, 0.0), (2.0, 0.0)].map(|(x, y)| (3.0 - x, y)));
    }

    #[test]
    fn springs_end_at_the_same_finite_places_every_time() {
        let star = topology(30, (1..30).map(|leaf| (0, leaf)));
        let places = lay_out(&star).places;
        assert_eq!(places, lay_out(&star).places);
        assert!(places.iter().all(|(x, y)| x.is_finite() && y.is_finite()));
    }

    #[test]
    fn nodes_with_a_place_keep_it() {
        let mut pair = topology(3, [(0, 1), (1, 2)]);
        pair.nodes[0].position = Some((10.0, 20.0));
        pair.nodes[2].position = Some((30.0, 20.0));
        let places = lay_out(&pair).places;
        assert_eq!((places[0], places[2]), ((10.0, 20.0), (30.0, 20.0)));
        assert!(places[1].0 > 10.0 && places[1].0 < 30.0);
    }

    #[test]
    fn ten_thousand_nodes_are_laid_out_at_once() {
        let grid = topology(10_000, (0..9_999).filter(|n| n % 100 != 99).map(|n| (n, n + 1)));
        assert_eq!(lay_out(&grid).places.len(), 10_000);
    }
}
