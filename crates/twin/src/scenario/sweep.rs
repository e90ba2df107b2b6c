//! Sweeps: the cartesian product of axes, the first slowest; a zip is one axis that moves several paths.

use std::collections::{BTreeMap, BTreeSet};

use super::set;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{did_you_mean, entries, one_or_list};
use hopcast_config::yaml::{Entry, Kind, Node, Span};

/// Maximum number of cases of a sweep. Chosen: it bounds memory; more is most likely a slip.
const MAX_CASES: usize = 100_000;
/// Keys that cannot be swept, since they belong to the plan and not to a case.
const NOT_SWEPT: [&str; 11] = [
    "sweep",
    "quick",
    "include",
    "repeats",
    "title",
    "published",
    "measured",
    "expected",
    "source",
    "reference",
    "axis",
];

/// Paths whose values move together.
struct Axis<'a> {
    paths: Vec<&'a Entry>,
    length: usize,
}

/// One path of a case, with its value.
pub(crate) struct Setting<'a> {
    pub(crate) path: &'a str,
    pub(crate) at: &'a Span,
    pub(crate) value: &'a Node,
}

impl Setting<'_> {
    /// The value in tables: as written, a stack joined by `/`.
    pub(crate) fn written(&self) -> String {
        written(self.path, self.value)
    }
}

fn written(path: &str, value: &Node) -> String {
    match &value.kind {
        Kind::List(layers) if path.rsplit('.').next() == Some("over") => {
            let layers: Vec<_> = layers.iter().map(Node::written).collect();
            layers.join("/")
        }
        _ => value.written(),
    }
}

/// A whole sweep.
pub(crate) struct Sweep<'a> {
    axes: Vec<Axis<'a>>,
    /// Number of cases; one if nothing is swept.
    pub(crate) cases: usize,
}

impl<'a> Sweep<'a> {
    /// The sweep that `node` describes, of paths into `root`.
    pub(crate) fn of(node: Option<&'a Node>, root: &Node) -> Result<Self, Diagnostic> {
        let Some(node) = node else {
            return Ok(Self { axes: Vec::new(), cases: 1 });
        };
        let mut axes = Vec::new();
        for entry in entries(node, "`sweep`")? {
            if entry.key == "zip" {
                for zip in one_or_list(&entry.value) {
                    axes.push(zipped(entries(zip, "`zip`")?, zip)?);
                }
            } else {
                axes.push(Axis { paths: vec![entry], length: values(entry)?.len() });
            }
        }
        for axis in &axes {
            check_rows(axis)?;
        }
        check_paths(&axes, root)?;
        let cases = axes.iter().try_fold(1_usize, |cases, axis| cases.checked_mul(axis.length));
        match cases {
            Some(cases) if cases <= MAX_CASES => Ok(Self { axes, cases }),
            Some(cases) => {
                Err(node.error(format!("a sweep has at most {MAX_CASES} cases, this one has {cases}")))
            }
            None => Err(node.error(format!("a sweep has at most {MAX_CASES} cases, this one has far more"))),
        }
    }

    /// The settings of one case, in the order of the file.
    pub(crate) fn case(&self, mut number: usize) -> Vec<Setting<'a>> {
        let mut settings = Vec::new();
        // The last axis is the fastest, so it is the remainder; the file's order is restored below.
        for axis in self.axes.iter().rev() {
            let row = number % axis.length;
            number /= axis.length;
            for entry in axis.paths.iter().rev() {
                if let Kind::List(values) = &entry.value.kind {
                    settings.push(Setting { path: &entry.key, at: &entry.key_span, value: &values[row] });
                }
            }
        }
        settings.reverse();
        settings
    }

    /// Each swept path with its values in tables.
    pub(crate) fn paths(&self) -> Vec<(&'a str, Vec<String>)> {
        let entries = self.axes.iter().flat_map(|axis| &axis.paths);
        entries
            .map(|entry| {
                let values = one_or_list(&entry.value).iter().map(|value| written(&entry.key, value));
                (entry.key.as_str(), values.collect())
            })
            .collect()
    }
}

/// Checks that no two rows of an axis are equal: they would be two cases of one name.
fn check_rows(axis: &Axis<'_>) -> Result<(), Diagnostic> {
    let mut seen = BTreeSet::new();
    for number in 0..axis.length {
        let row: Vec<_> =
            axis.paths.iter().map(|entry| (entry, &one_or_list(&entry.value)[number])).collect();
        if seen
            .insert(row.iter().map(|(entry, value)| plain(&written(&entry.key, value))).collect::<Vec<_>>())
        {
            continue;
        }
        let values: Vec<_> =
            row.iter().map(|(entry, value)| format!("`{}`", written(&entry.key, value))).collect();
        return Err(row[0].1.error(match row.as_slice() {
            [(entry, _)] => format!("`{}`: the value {} is swept twice", entry.key, values[0]),
            _ => format!("`zip`: the values {} are swept twice", values.join(", ")),
        }));
    }
    Ok(())
}

/// A value without spaces, for comparisons: `5 %` equals `5%`.
pub(crate) fn plain(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Removes rows of a zip that equal an earlier one; lists of unequal lengths are left for a later error.
pub(crate) fn keep_distinct_rows(zip: &mut Node) {
    let Kind::Map(lists) = &mut zip.kind else { return };
    let length =
        |entry: &Entry| matches!(&entry.value.kind, Kind::List(_)).then(|| one_or_list(&entry.value).len());
    let Some(rows) = lists.first().and_then(length) else { return };
    if lists.iter().any(|list| length(list) != Some(rows)) {
        return;
    }
    let mut seen = BTreeSet::new();
    let row = |row: usize| -> Vec<_> {
        lists.iter().map(|list| plain(&written(&list.key, &one_or_list(&list.value)[row]))).collect()
    };
    let kept: Vec<_> = (0..rows).map(|number| seen.insert(row(number))).collect();
    for list in lists {
        if let Kind::List(values) = &mut list.value.kind {
            let mut kept = kept.iter();
            values.retain(|_| kept.next() == Some(&true));
        }
    }
}

fn values(entry: &Entry) -> Result<&[Node], Diagnostic> {
    match &entry.value.kind {
        Kind::List(values) if !values.is_empty() => Ok(values),
        Kind::List(_) | Kind::Scalar(_) | Kind::Map(_) => Err(entry.value.error(format!(
            "`{}`: expected a list of values to sweep, found {}",
            entry.key,
            if matches!(entry.value.kind, Kind::List(_)) {
                "an empty one".to_owned()
            } else {
                entry.value.found()
            }
        ))),
    }
}

fn zipped<'a>(lists: &'a [Entry], zip: &Node) -> Result<Axis<'a>, Diagnostic> {
    let Some(first) = lists.first() else {
        return Err(zip.error("`zip`: expected a map of paths to lists of values, found nothing"));
    };
    let length = values(first)?.len();
    for list in lists {
        let found = values(list)?.len();
        if found != length {
            return Err(list.value.error(format!(
                "`{}`: expected {length} values, as many as `{}` has in the same zip, found {found}",
                list.key, first.key
            )));
        }
    }
    Ok(Axis { paths: lists.iter().collect(), length })
}

fn check_paths(axes: &[Axis<'_>], root: &Node) -> Result<(), Diagnostic> {
    let mut seen = BTreeMap::new();
    for entry in axes.iter().flat_map(|axis| &axis.paths) {
        let path = set::canonical(root, &entry.key);
        if NOT_SWEPT.contains(&path[0].as_str()) {
            return Err(entry.key_span.error(format!("`{}` cannot be swept", path[0])));
        }
        if !super::TOP.contains(&path[0].as_str()) {
            let hint = did_you_mean(&path[0], super::TOP.iter().copied());
            return Err(entry
                .key_span
                .error(format!("`{}` leads nowhere: unknown key `{}`{hint}", entry.key, path[0])));
        }
        if let Some(other) = seen.insert(path, &entry.key) {
            return Err(entry.key_span.error(format!("`{}` is swept twice, also as `{other}`", entry.key)));
        }
    }
    Ok(())
}
