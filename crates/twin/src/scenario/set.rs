//! Paths such as `flows.bulk.over`, and the setting of values at them: by `--set`, `quick:` and each case of a sweep.

use std::borrow::Cow;

use super::sweep::keep_distinct_rows;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{did_you_mean, ends_of_link, one_or_list};
use hopcast_config::yaml::{Entry, Kind, Node, Span};

/// Maximum number of elements of a list that an error names. Chosen: a line or two.
const MAX_NAMED: usize = 12;
/// Keys whose value is one word, or a map of one word to its options: a second word in the map would be a mistake.
const CHOICES: [&str; 5] = ["app", "over", "loss", "jitter", "queue"];

/// Sets the value at `path` from `root`; `at` is the place of the path in its file.
///
/// An element of a list is named by its `name`, by the name that a link has from its ends, or by its index. A missing
/// key is added, so that a key left at its default can be set; a misspelt one is then reported as unknown, at the place
/// of the path.
pub(crate) fn assign(root: &mut Node, path: &str, at: &Span, value: Node) -> Result<(), Diagnostic> {
    let mut node = root;
    let mut before = String::new();
    // The keys of maps along the path, without the elements of lists.
    let mut keys = Vec::new();
    for element in path.split('.') {
        if element.is_empty() {
            return Err(at.error(format!("expected a path such as `flows.bulk.over`, found `{path}`")));
        }
        if let Kind::Map(entries) = &node.kind
            && let [entry] = entries.as_slice()
            && entry.key != element
            && is_choice(&keys)
        {
            return Err(at.error(format!("`{before}` is `{}`: there is no `{element}` in it", entry.key)));
        }
        if !matches!(node.kind, Kind::List(_)) {
            keys.push(element);
        }
        node = step(node, element, &before, at)?;
        if !before.is_empty() {
            before.push('.');
        }
        before.push_str(element);
    }
    *node = value;
    Ok(())
}

/// Whether the value at `keys` is one word, or a map of one word to its options.
fn is_choice(keys: &[&str]) -> bool {
    matches!(keys, ["variants", _]) || keys.last().is_some_and(|key| CHOICES.contains(key))
}

/// One step down from `node`, which is at the path `before`.
fn step<'a>(node: &'a mut Node, element: &str, before: &str, at: &Span) -> Result<&'a mut Node, Diagnostic> {
    if let Kind::Scalar(text) = &node.kind {
        // `app: bulk` is short for `app: { bulk: }`, and an empty value for an empty map.
        let entries = match text.as_str() {
            "" => Vec::new(),
            word if word == element => vec![empty_entry(word, &node.span)],
            word => {
                return Err(
                    at.error(format!("`{before}` is the value `{word}`: there is no `{element}` in it"))
                );
            }
        };
        node.kind = Kind::Map(entries);
    }
    match &mut node.kind {
        Kind::Map(entries) => {
            let place = match entries.iter().position(|entry| entry.key == element) {
                Some(place) => place,
                None => {
                    entries.push(empty_entry(element, at));
                    entries.len() - 1
                }
            };
            Ok(&mut entries[place].value)
        }
        Kind::List(items) => match place(items, element) {
            Some(place) => Ok(&mut items[place]),
            None => {
                let names: Vec<_> = items.iter().filter_map(name_of).collect();
                let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
                let turned = ends_of_link(element).map(|(one, other)| format!("{other}-{one}"));
                let hint = match turned.into_iter().find(|name| names.contains(&name.as_str())) {
                    Some(name) => format!(": did you mean `{name}`?"),
                    None => did_you_mean(element, names.iter().copied()),
                };
                let known = match items.len() {
                    0 => "it is empty".to_owned(),
                    count if names.is_empty() => format!("its elements: 0 to {}", count - 1),
                    _ => format!("its elements: {}", names[..names.len().min(MAX_NAMED)].join(", ")),
                };
                Err(at.error(format!("`{before}` has no element `{element}`{hint} ({known})")))
            }
        },
        Kind::Scalar(_) => Err(at.error(format!("there is no `{element}` in `{before}`"))),
    }
}

fn empty_entry(key: &str, span: &Span) -> Entry {
    let value = Node { span: span.clone(), kind: Kind::Scalar(String::new()) };
    Entry { key: key.to_owned(), key_span: span.clone(), value }
}

fn place(items: &[Node], element: &str) -> Option<usize> {
    let named = items.iter().position(|item| name_of(item).is_some_and(|name| name == element));
    named.or_else(|| element.parse().ok().filter(|index| *index < items.len()))
}

/// An element's `name`; for a link without one, the names of its ends joined by `-`, which is its default name.
fn name_of(item: &Node) -> Option<Cow<'_, str>> {
    match item.get("name") {
        Some(Node { kind: Kind::Scalar(name), .. }) => Some(Cow::Borrowed(name)),
        Some(_) => None,
        None => {
            let Kind::List(ends) = &item.get("between").or_else(|| item.get("medium"))?.kind else {
                return None;
            };
            let end = |end: &Node| matches!(end.kind, Kind::Scalar(_)).then(|| end.written());
            Some(Cow::Owned(ends.iter().map(end).collect::<Option<Vec<_>>>()?.join("-")))
        }
    }
}

/// The canonical spelling of `path`: with indices in place of names, as far as it exists.
pub(crate) fn canonical(root: &Node, path: &str) -> Vec<String> {
    let mut node = Some(root);
    path.split('.')
        .map(|element| match node.map(|node| &node.kind) {
            Some(Kind::List(items)) => {
                let place = place(items, element);
                node = place.map(|place| &items[place]);
                place.map_or_else(|| element.to_owned(), |place| place.to_string())
            }
            Some(Kind::Map(_) | Kind::Scalar(_)) | None => {
                node = node.and_then(|node| node.get(element));
                element.to_owned()
            }
        })
        .collect()
}

/// Overrides a value of the file, like [`assign`]; a value for a swept path reduces the sweep to it.
///
/// `sweep.PATH` gives the sweep of PATH another list of values.
pub(crate) fn override_value(root: &mut Node, path: &str, at: &Span, value: Node) -> Result<(), Diagnostic> {
    match path.split('.').next() {
        Some("include") => {
            return Err(at.error("`include` cannot be set: files are included before anything is set"));
        }
        Some("quick") => {
            return Err(at.error("`quick` cannot be set: set what it would change, which wins over `quick`"));
        }
        Some(_) | None => {}
    }
    if let Some(swept) = path.strip_prefix("sweep.") {
        let wanted = canonical(root, swept);
        if let Some(list) = swept_values(root, &wanted) {
            *list = value;
            return Ok(());
        }
        let sweep = step(root, "sweep", "", at)?;
        // The whole path is one key of the sweep.
        *step(sweep, swept, "sweep", at)? = value;
        return Ok(());
    }
    let wanted = canonical(root, path);
    if let Some(place) = swept_place(root, &wanted) {
        pin(root, place, value);
        return Ok(());
    }
    for length in 1..wanted.len() {
        if swept_place(root, &wanted[..length]).is_some() {
            let swept: Vec<_> = path.split('.').take(length).collect();
            let swept = swept.join(".");
            return Err(at.error(format!(
                "`{swept}` is swept, so nothing in it can be set: set `{swept}`, or its values with `sweep.{swept}`"
            )));
        }
    }
    assign(root, path, at, value)
}

/// The place of a path in a sweep: the axis, and for a zip its index and that of the list in it.
struct Place {
    axis: usize,
    zip: Option<(usize, usize)>,
}

/// The place in the sweep of the path whose canonical spelling is `wanted`.
fn swept_place(root: &Node, wanted: &[String]) -> Option<Place> {
    let Kind::Map(axes) = &root.get("sweep")?.kind else { return None };
    axes.iter().enumerate().find_map(|(axis, entry)| {
        if entry.key != "zip" {
            return (canonical(root, &entry.key) == wanted).then_some(Place { axis, zip: None });
        }
        one_or_list(&entry.value).iter().enumerate().find_map(|(zip, node)| {
            let Kind::Map(lists) = &node.kind else { return None };
            let list = lists.iter().position(|list| canonical(root, &list.key) == wanted)?;
            Some(Place { axis, zip: Some((zip, list)) })
        })
    })
}

/// The list of values that the sweep gives to the path whose canonical spelling is `wanted`.
fn swept_values<'a>(root: &'a mut Node, wanted: &[String]) -> Option<&'a mut Node> {
    let Place { axis, zip } = swept_place(root, wanted)?;
    match zip {
        None => child(root.get_mut("sweep")?, axis),
        Some((zip, list)) => child(zip_at(root, axis, zip)?, list),
    }
}

/// Reduces the list at `place` to one value.
fn pin(root: &mut Node, place: Place, value: Node) -> Option<()> {
    let Some((zip, list)) = place.zip else {
        let list = child(root.get_mut("sweep")?, place.axis)?;
        *list = Node { span: value.span.clone(), kind: Kind::List(vec![value]) };
        return Some(());
    };
    let zip = zip_at(root, place.axis, zip)?;
    let pinned = child(zip, list)?;
    // Within a zip the list keeps its length, which the others share; rows that become equal are then one case.
    let length = one_or_list(pinned).len().max(1);
    *pinned = Node { span: value.span.clone(), kind: Kind::List(vec![value; length]) };
    keep_distinct_rows(zip);
    Some(())
}

/// One of the zips of the sweep's key `zip`.
fn zip_at(root: &mut Node, axis: usize, zip: usize) -> Option<&mut Node> {
    let axis = child(root.get_mut("sweep")?, axis)?;
    if matches!(axis.kind, Kind::List(_)) { child(axis, zip) } else { Some(axis) }
}

/// The value at `place` of a list or map.
fn child(node: &mut Node, place: usize) -> Option<&mut Node> {
    match &mut node.kind {
        Kind::List(items) => items.get_mut(place),
        Kind::Map(entries) => entries.get_mut(place).map(|entry| &mut entry.value),
        Kind::Scalar(_) => None,
    }
}
