//! Generators of topologies. Names of nodes never contain a `-`, so that the name `a-b` of a link is unique.

use std::f64::consts::TAU;

use hopcast_link::Config;

use super::files::Contents;
use super::link;
use super::shared;
use super::topology::{MAX_ELEMENTS, MAX_STATIONS, Topology};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, check_name, name, whole};
use hopcast_config::yaml::{Entry, Kind, Node, Span};

/// Adds the nodes and links of `generator` to `topology`.
pub(crate) fn generate(
    topology: &mut Topology,
    generator: &str,
    node: &Node,
    contents: &mut Contents,
) -> Result<(), Diagnostic> {
    let sizes: &[&str] = match generator {
        "chain" => &["hops"],
        "star" => &["leaves"],
        // Its sizes are one for each level.
        "tree" => &[],
        "grid" => &["rows", "columns"],
        _ => &["nodes"],
    };
    let others: &[&str] = match generator {
        "grid" => &["link"],
        "tree" => &["depth", "fanout", "inner", "leaves", "link", "prefix"],
        _ => &["link", "prefix"],
    };
    let allowed = [sizes, others].concat();
    let what = format!("`{generator}`");
    let fields = Fields::of(node, &what, &allowed)?;
    let mut numbers = [0; 2];
    for (number, key) in numbers.iter_mut().zip(sizes) {
        let min = if *key == "nodes" { 2 } else { 1 };
        *number = whole(fields.need(key, &format!("{key}: 6"))?, key, min..=MAX_ELEMENTS)?;
    }
    let prefix = match fields.get("prefix") {
        Some(node) => name(node, "prefix")?,
        None => "n",
    };
    if prefix.contains('-') {
        return Err(
            node.error("`prefix`: expected a name without `-`, which stands between the ends of a link")
        );
    }
    check_name(&format!("{prefix}{MAX_ELEMENTS}"), "prefix", &node.span)?;
    let mut maker = Maker { topology, prefix, config: Config::default(), span: &node.span };
    if generator == "switch" {
        return maker.switch(numbers[0], fields.get("link"), contents);
    }
    maker.config = link::template(fields.get("link"), contents)?;
    match (generator, numbers) {
        ("chain", [hops, _]) => maker.chain(hops),
        ("star", [leaves, _]) => maker.star(leaves),
        ("tree", _) => maker.tree(&fields),
        ("grid", [rows, columns]) => maker.grid(rows, columns),
        (_, [nodes, _]) => maker.full(nodes),
    }
}

/// The number of children of each node of a tree, level by level: the same at each of `depth` levels, or a list.
fn fanouts(fields: &Fields<'_>) -> Result<Vec<u64>, Diagnostic> {
    let fanout = fields.need("fanout", "fanout: 3")?;
    let read = |node: &Node| whole(node, "fanout", 1..=MAX_ELEMENTS);
    if let Kind::List(levels) = &fanout.kind {
        return match fields.get("depth") {
            Some(node) => Err(node.error("`depth`: a list of `fanout` has a number for each level already")),
            None if levels.is_empty() => Err(fanout.error("`fanout`: expected a number for each level")),
            None => levels.iter().map(read).collect(),
        };
    }
    let depth = whole(fields.need("depth", "depth: 6")?, "depth", 1..=MAX_ELEMENTS)?;
    Ok(vec![read(fanout)?; depth as usize])
}

struct Maker<'a> {
    topology: &'a mut Topology,
    prefix: &'a str,
    config: Config,
    span: &'a Span,
}

impl Maker<'_> {
    /// `n0` to `n6` in a row.
    fn chain(&mut self, hops: u64) -> Result<(), Diagnostic> {
        let mut last = self.node(0, (0.0, 0.0))?;
        for number in 1..=hops {
            let next = self.node(number, (number as f64, 0.0))?;
            self.pair(last, next)?;
            last = next;
        }
        Ok(())
    }

    /// `hub` in the middle of `n0`, `n1` and so on.
    fn star(&mut self, leaves: u64) -> Result<(), Diagnostic> {
        let hub = self.topology.add_node("hub", Some((0.0, 0.0)), self.span)?;
        for number in 0..leaves {
            let leaf = self.node(number, on_circle(number, leaves))?;
            self.pair(hub, leaf)?;
        }
        Ok(())
    }

    /// `n0` on top, then level by level, with the children of each in its order.
    fn tree(&mut self, fields: &Fields<'_>) -> Result<(), Diagnostic> {
        let fanouts = fanouts(fields)?;
        let mut widest = 1_u64;
        let mut total = 1_u64;
        for fanout in &fanouts {
            widest = widest.saturating_mul(*fanout);
            total = total.saturating_add(widest);
            if total > MAX_ELEMENTS {
                return Err(
                    fields.error(format!("a topology has at most {MAX_ELEMENTS} nodes, this tree has more"))
                );
            }
        }
        let root = self.topology.nodes.len();
        self.node(0, (widest as f64 * 0.5, 0.0))?;
        let (mut above, mut number) = (root..root + 1, 1);
        for (row, fanout) in (1..).zip(&fanouts) {
            let level = above.len() as u64 * fanout;
            let first = self.topology.nodes.len();
            for place in 0..level {
                let x = (place as f64 + 0.5) * widest as f64 / level as f64;
                let node = self.node(number, (x, f64::from(row)))?;
                self.pair(above.start + (place / fanout) as usize, node)?;
                number += 1;
            }
            above = first..self.topology.nodes.len();
        }
        for (key, nodes) in [("inner", root..above.start), ("leaves", above)] {
            if let Some(node) = fields.get(key) {
                self.topology.add_to_class(name(node, key)?, nodes);
            }
        }
        Ok(())
    }

    /// `r0c0` and so on, row by column, each linked to its right and lower neighbour.
    fn grid(&mut self, rows: u64, columns: u64) -> Result<(), Diagnostic> {
        if rows.saturating_mul(columns) > MAX_ELEMENTS {
            return Err(self
                .span
                .error(format!("a topology has at most {MAX_ELEMENTS} nodes, this grid has more")));
        }
        let first = self.topology.nodes.len();
        for row in 0..rows {
            for column in 0..columns {
                let name = format!("r{row}c{column}");
                let place = (column as f64, row as f64);
                let node = self.topology.add_node(&name, Some(place), self.span)?;
                debug_assert_eq!(node, first + (row * columns + column) as usize);
            }
        }
        let at = |row: u64, column: u64| first + (row * columns + column) as usize;
        for row in 0..rows {
            for column in 0..columns {
                if column + 1 < columns {
                    self.pair(at(row, column), at(row, column + 1))?;
                }
                if row + 1 < rows {
                    self.pair(at(row, column), at(row + 1, column))?;
                }
            }
        }
        Ok(())
    }

    /// `n0`, `n1` and so on, each linked to each.
    fn full(&mut self, nodes: u64) -> Result<(), Diagnostic> {
        let links = nodes.saturating_mul(nodes.saturating_sub(1)) / 2;
        if links > MAX_ELEMENTS {
            return Err(self
                .span
                .error(format!("a topology has at most {MAX_ELEMENTS} links, this one has {links}")));
        }
        let first = self.topology.nodes.len();
        for number in 0..nodes {
            self.node(number, on_circle(number, nodes))?;
        }
        for one in first..first + nodes as usize {
            for other in one + 1..first + nodes as usize {
                self.pair(one, other)?;
            }
        }
        Ok(())
    }

    /// `n0`, `n1` and so on, all joined to one switch with the keys of `link`.
    fn switch(&mut self, nodes: u64, link: Option<&Node>, contents: &mut Contents) -> Result<(), Diagnostic> {
        if nodes > MAX_STATIONS as u64 {
            return Err(self
                .span
                .error(format!("a switch has at most {MAX_STATIONS} stations, this one {nodes}")));
        }
        let mut names = Vec::new();
        for number in 0..nodes {
            let node = self.node(number, on_circle(number, nodes))?;
            let name = Kind::Scalar(self.topology.nodes[node].name.clone());
            names.push(Node { span: self.span.clone(), kind: name });
        }
        if let Some(link) = link {
            let allowed = [&["name", "prefix"], &link::DIRECTION[..], &shared::SWITCH].concat();
            Fields::of(link, "`link`", &allowed)?;
        }
        let mut link = link.cloned().unwrap_or_else(|| Node::empty_map(self.span));
        if let Kind::Map(entries) = &mut link.kind {
            let value = Node { span: self.span.clone(), kind: Kind::List(names) };
            entries.push(Entry { key: "switch".to_owned(), key_span: self.span.clone(), value });
        }
        self.topology.add_written_link(&link, contents)
    }

    fn node(&mut self, number: u64, position: (f64, f64)) -> Result<usize, Diagnostic> {
        self.topology.add_node(&format!("{}{number}", self.prefix), Some(position), self.span)
    }

    fn pair(&mut self, from: usize, to: usize) -> Result<(), Diagnostic> {
        self.topology.add_pair(from, to, &self.config, self.span)
    }
}

/// The position of a node on a circle whose neighbours are about 1 apart.
fn on_circle(number: u64, of: u64) -> (f64, f64) {
    let radius = (of as f64 / TAU).max(1.0);
    let angle = TAU * number as f64 / of as f64;
    // Six decimals, so that a drawing is the same on every machine.
    let rounded = |x: f64| (x * 1e6).round() / 1e6;
    (rounded(radius * angle.cos()), rounded(radius * angle.sin()))
}
