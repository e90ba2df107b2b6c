//! Whether published figures still apply to a scenario that the command line has changed.

use super::published::ORIGINS;
use super::set::canonical;
use super::sweep::plain;
use hopcast_config::decode::{entries, one_or_list};
use hopcast_config::yaml::{Entry, Kind, Node};

/// Keys that the command line may set without changing the meaning of a figure.
const HARMLESS: [&str; 13] = [
    "seed",
    "repeats",
    "title",
    "description",
    "capture",
    "notes",
    "published",
    "measured",
    "expected",
    "source",
    "reference",
    "axis",
    "world",
];

/// The settings that have changed a file.
pub(crate) struct Changes {
    /// The file as it was.
    original: Node,
    /// Paths that the command line set, as they were written.
    set: Vec<String>,
    /// Paths that `quick:` set.
    quick: Vec<String>,
}

impl Changes {
    /// No changes yet of the file `root`.
    pub(crate) fn of(root: &Node) -> Self {
        Self { original: root.clone(), set: Vec::new(), quick: Vec::new() }
    }

    /// Notes that `--set` has set a path.
    pub(crate) fn set(&mut self, path: &str) {
        self.set.push(path.to_owned());
    }

    /// Notes that the file's `quick:` has set a path.
    pub(crate) fn quick(&mut self, path: &str) {
        self.quick.push(path.to_owned());
    }

    /// Whether published figures apply, and remarks about them. They do not if the command line set anything except
    /// which of the swept values are run; the file's own `quick:` is its author's choice, and permitted.
    pub(crate) fn remarks(&self, root: &Node) -> (bool, Vec<String>) {
        let Some((whose, _)) = tables(&self.original) else { return (true, Vec::new()) };
        let mut changed: Vec<String> =
            self.set.iter().filter(|path| self.changes(root, path)).map(|path| format!("`{path}`")).collect();
        changed.dedup();
        if !changed.is_empty() {
            let remark = format!("{whose} figures are left out: the command line set {}", changed.join(", "));
            return (false, vec![remark]);
        }
        let values = self.quick.iter().filter(|path| !self.set.contains(path) && !path.starts_with("sweep."));
        let values: Vec<String> = values
            .map(|path| {
                format!("{path} {}", at(root, &canonical(root, path)).map(Node::written).unwrap_or_default())
            })
            .collect();
        if values.is_empty() {
            return (true, Vec::new());
        }
        let remark = format!("{whose} figures stand beside shorter runs: --quick has {}", values.join(", "));
        (true, vec![remark])
    }

    /// Whether the value at `path` differs from the file's in a way that changes figures.
    fn changes(&self, root: &Node, path: &str) -> bool {
        let path = path.strip_prefix("sweep.").unwrap_or(path);
        let wanted = canonical(&self.original, path);
        if HARMLESS.contains(&wanted[0].as_str()) || wanted == ["measure", "interval"] {
            return false;
        }
        let written = |node: &Node| plain(&node.written());
        if let Some(now) = swept(root, &wanted) {
            // A row that is matched by this path is only used for the published value.
            let known = |value| {
                let before = swept(&self.original, &wanted).map(one_or_list).unwrap_or_default();
                before.iter().any(|before| written(before) == written(value))
            };
            return !self.is_matched(&wanted) && !one_or_list(now).iter().all(known);
        }
        at(root, &wanted).map(written) != at(&self.original, &wanted).map(written)
    }

    /// Whether published figures are matched by the value of a path.
    fn is_matched(&self, wanted: &[String]) -> bool {
        let tables = tables(&self.original).map(|(_, node)| one_or_list(node)).unwrap_or_default();
        let mut paths = tables.iter().filter_map(|table| table.get("match")).flat_map(map_of);
        paths.any(|entry| canonical(&self.original, &entry.value.written()) == wanted)
    }
}

/// The tables of figures beside ours, and the key that they have.
fn tables(root: &Node) -> Option<(&'static str, &Node)> {
    ORIGINS.into_iter().find_map(|key| Some((key, root.get(key)?)))
}

/// The values that the sweep gives to a path.
fn swept<'n>(root: &'n Node, wanted: &[String]) -> Option<&'n Node> {
    let axes = map_of(root.get("sweep")?);
    let mut paths = axes.iter().flat_map(|axis| match axis.key.as_str() {
        "zip" => one_or_list(&axis.value).iter().flat_map(map_of).collect(),
        _ => vec![axis],
    });
    paths.find(|path| canonical(root, &path.key) == wanted).map(|path| &path.value)
}

fn map_of(node: &Node) -> &[Entry] {
    entries(node, "").unwrap_or_default()
}

/// The target of a path in its canonical spelling.
fn at<'n>(root: &'n Node, path: &[String]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, element| match &node.kind {
        Kind::List(items) => items.get(element.parse::<usize>().ok()?),
        Kind::Map(_) | Kind::Scalar(_) => node.get(element),
    })
}
