//! Reading typed values out of the tree, with errors that say what to write.

use std::ops::RangeInclusive;
use std::str::FromStr;

use hopcast_core::{Bytes, Duration, Fraction, QuantityError, Rate};

use super::diagnostic::Diagnostic;
use super::yaml::{Entry, Kind, Node, Span};

/// Maximum duration that a file may have. Chosen: long past any experiment, and far before the end of [`Duration`].
pub const MAX_DURATION: Duration = Duration::from_secs(1000 * 3600);
/// Maximum length of the name of a node, link, flow or variant, in bytes. Chosen: tables and file names have room for
/// it.
const MAX_NAME: usize = 64;
/// Maximum number of words of a command line. Chosen: more are a slip.
const MAX_WORDS: usize = 100;
/// Maximum number of names that a hint offers. Chosen: a line.
const MAX_OFFERED: usize = 6;

/// The keys of a map, all of which are known.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    node: &'a Node,
    what: &'a str,
    entries: &'a [Entry],
}

impl<'a> Fields<'a> {
    /// The map `node`, which is `what`, with none but the `allowed` keys.
    pub fn of(node: &'a Node, what: &'a str, allowed: &[&str]) -> Result<Self, Diagnostic> {
        let entries = entries(node, what)?;
        for entry in entries {
            if !allowed.contains(&entry.key.as_str()) {
                return Err(unknown_key(entry, what, allowed));
            }
        }
        Ok(Self { node, what, entries })
    }

    /// No keys at all: what stands for itself.
    pub fn empty(node: &'a Node, what: &'a str) -> Self {
        Self { node, what, entries: &[] }
    }

    /// The value of `key`, if it is there.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The value of `key`, which must be there; `example` is how it might be written.
    pub fn need(&self, key: &str, example: &str) -> Result<&'a Node, Diagnostic> {
        self.get(key)
            .ok_or_else(|| self.node.error(format!("{} needs `{key}`, for example `{example}`", self.what)))
    }

    /// The value of `key` read by `read`, if it is there.
    pub fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'a Node, &str) -> Result<T, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        self.get(key).map(|node| read(node, key)).transpose()
    }

    /// The keys that are there.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.entries.iter().map(|entry| entry.key.as_str())
    }

    /// Place of the map.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        self.node.error(message)
    }
}

/// The entries of a map, whatever its keys.
pub fn entries<'a>(node: &'a Node, what: &str) -> Result<&'a [Entry], Diagnostic> {
    match &node.kind {
        Kind::Map(entries) => Ok(entries),
        Kind::Scalar(text) if text.is_empty() => Ok(&[]),
        Kind::Scalar(_) | Kind::List(_) => {
            Err(node.error(format!("{what}: expected a map of keys, found {}", node.found())))
        }
    }
}

/// The elements of a list.
pub fn list<'a>(node: &'a Node, key: &str) -> Result<&'a [Node], Diagnostic> {
    match &node.kind {
        Kind::List(items) => Ok(items),
        Kind::Scalar(_) | Kind::Map(_) => {
            Err(node.error(format!("`{key}`: expected a list, found {}", node.found())))
        }
    }
}

/// The elements of a list, or the one value that stands in its place.
pub fn one_or_list(node: &Node) -> &[Node] {
    match &node.kind {
        Kind::List(items) => items,
        Kind::Scalar(_) | Kind::Map(_) => std::slice::from_ref(node),
    }
}

/// A list of words, as on a command line.
pub fn words(node: &Node, key: &str) -> Result<Vec<String>, Diagnostic> {
    let items = list(node, key)?;
    if items.len() > MAX_WORDS {
        return Err(node.error(format!("`{key}`: expected at most {MAX_WORDS} words, found {}", items.len())));
    }
    items.iter().map(|item| text(item, key).map(str::to_owned)).collect()
}

/// The text of a scalar.
pub fn text<'a>(node: &'a Node, key: &str) -> Result<&'a str, Diagnostic> {
    match &node.kind {
        Kind::Scalar(text) if !text.is_empty() => Ok(text),
        Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => {
            Err(node.error(format!("`{key}`: expected one value, found {}", node.found())))
        }
    }
}

/// A name that other parts of the file, paths and outputs can use.
pub fn name<'a>(node: &'a Node, key: &str) -> Result<&'a str, Diagnostic> {
    let text = text(node, key)?;
    check_name(text, key, &node.span)?;
    Ok(text)
}

/// Whether `text` is such a name.
pub fn check_name(text: &str, key: &str, span: &Span) -> Result<(), Diagnostic> {
    let fits = text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    if text.is_empty() || !fits || text.len() > MAX_NAME {
        return Err(span.error(format!(
            "`{key}`: expected a name of letters, digits, `-` and `_`, at most {MAX_NAME} bytes, found `{text}`"
        )));
    }
    Ok(())
}

/// A quantity in core's words, after the key that was being read.
pub fn quantity<T>(node: &Node, key: &str) -> Result<T, Diagnostic>
where
    T: FromStr<Err = QuantityError>,
{
    // A text that is not there is left to the quantity too: it says what to write.
    let text = match &node.kind {
        Kind::Scalar(text) => text,
        Kind::List(_) | Kind::Map(_) => text(node, key)?,
    };
    text.parse().map_err(|error: QuantityError| {
        let mut message = format!("`{key}`: {error}");
        if text.is_empty() {
            message = message.replace("found ``", "found nothing");
        }
        node.error(message)
    })
}

/// A duration, zero too.
pub fn duration(node: &Node, key: &str) -> Result<Duration, Diagnostic> {
    let span: Duration = quantity(node, key)?;
    if span > MAX_DURATION {
        return Err(node.error(format!("`{key}`: expected at most 1000 h, found {}", node.found())));
    }
    Ok(span)
}

/// A duration that is not zero.
pub fn some_duration(node: &Node, key: &str) -> Result<Duration, Diagnostic> {
    let span = duration(node, key)?;
    if span.is_zero() {
        return Err(node.error(format!("`{key}`: expected more than zero, found {}", node.found())));
    }
    Ok(span)
}

/// A rate that is not zero.
pub fn rate(node: &Node, key: &str) -> Result<Rate, Diagnostic> {
    let rate: Rate = quantity(node, key)?;
    if rate == Rate::default() {
        return Err(node.error(format!("`{key}`: expected more than zero, found {}", node.found())));
    }
    Ok(rate)
}

/// A share.
pub fn share(node: &Node, key: &str) -> Result<Fraction, Diagnostic> {
    quantity(node, key)
}

/// A share in percent, which may be more than all of it: at most `max`.
pub fn percent(node: &Node, key: &str, max: u64) -> Result<f64, Diagnostic> {
    let number = match &node.kind {
        Kind::Scalar(text) => text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok()),
        Kind::List(_) | Kind::Map(_) => None,
    };
    number.filter(|number| (0.0..=max as f64).contains(number)).ok_or_else(|| {
        node.error(format!("`{key}`: expected 0 % to {max} %, as in `50 %`, found {}", node.found()))
    })
}

/// A size within bounds, both allowed.
pub fn size(node: &Node, key: &str, range: RangeInclusive<u64>) -> Result<Bytes, Diagnostic> {
    let size: Bytes = quantity(node, key)?;
    if !range.contains(&size.get()) {
        let (min, max) = (range.start(), range.end());
        return Err(node.error(format!("`{key}`: expected {min} B to {max} B, found {}", node.found())));
    }
    Ok(size)
}

/// A whole number without unit, within bounds, both allowed.
pub fn whole(node: &Node, key: &str, range: RangeInclusive<u64>) -> Result<u64, Diagnostic> {
    let (min, max) = (*range.start(), *range.end());
    let number = match &node.kind {
        Kind::Scalar(text) => ungrouped(text).and_then(|digits| digits.parse().ok()),
        Kind::List(_) | Kind::Map(_) => None,
    };
    match number {
        Some(number) if range.contains(&number) => Ok(number),
        _ if max == u64::MAX => {
            Err(node.error(format!("`{key}`: expected a whole number, found {}", node.found())))
        }
        _ => Err(node
            .error(format!("`{key}`: expected a whole number from {min} to {max}, found {}", node.found()))),
    }
}

/// A whole number, or a word in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberOrWord<'a> {
    /// The number.
    Number(u64),
    /// The word.
    Word(&'a str),
}

/// A whole number within bounds, or one of `words`.
pub fn whole_or<'a>(
    node: &Node,
    key: &str,
    range: RangeInclusive<u64>,
    words: &[&'a str],
) -> Result<NumberOrWord<'a>, Diagnostic> {
    let Kind::Scalar(text) = &node.kind else {
        return whole(node, key, range).map(NumberOrWord::Number);
    };
    if let Some(word) = words.iter().find(|word| *word == text) {
        return Ok(NumberOrWord::Word(word));
    }
    let (min, max) = (*range.start(), *range.end());
    whole(node, key, range).map(NumberOrWord::Number).map_err(|_| {
        let hint = did_you_mean(text, words.iter().copied());
        let words = listed(words);
        node.error(format!(
            "`{key}`: expected a whole number from {min} to {max}, or {words}, found {}{hint}",
            node.found()
        ))
    })
}

/// A plain decimal number, as of a coordinate.
pub fn number(node: &Node, key: &str) -> Result<f64, Diagnostic> {
    match ungrouped(text(node, key)?).and_then(|digits| digits.parse::<f64>().ok()) {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) | None => Err(node.error(format!("`{key}`: expected a number, found {}", node.found()))),
    }
}

/// A number without the `_` that may group its digits; `None` if it begins with one.
fn ungrouped(text: &str) -> Option<String> {
    (!text.starts_with('_')).then(|| text.replace('_', ""))
}

/// Yes or no.
pub fn flag(node: &Node, key: &str) -> Result<bool, Diagnostic> {
    match &node.kind {
        Kind::Scalar(text) if matches!(text.as_str(), "true" | "yes" | "on") => Ok(true),
        Kind::Scalar(text) if matches!(text.as_str(), "false" | "no" | "off") => Ok(false),
        Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => {
            Err(node.error(format!("`{key}`: expected `true` or `false`, found {}", node.found())))
        }
    }
}

/// `word`, or `{ word: options }`: which of the `allowed` words, and its options if there are any.
pub fn choice<'a>(
    node: &'a Node,
    key: &str,
    allowed: &[&str],
) -> Result<(&'a str, &'a Span, Option<&'a Node>), Diagnostic> {
    let (word, span, options) = match &node.kind {
        Kind::Scalar(word) if !word.is_empty() => (word, &node.span, None),
        Kind::Map(entries) if entries.len() == 1 => {
            (&entries[0].key, &entries[0].key_span, Some(&entries[0].value))
        }
        Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => {
            let found = match &node.kind {
                Kind::Map(entries) if entries.len() > 1 => "several".to_owned(),
                _ => node.found(),
            };
            return Err(node.error(format!("`{key}`: expected one of {}, found {found}", listed(allowed))));
        }
    };
    if !allowed.contains(&word.as_str()) {
        let hint = did_you_mean(word, allowed.iter().copied());
        return Err(span.error(format!("`{key}`: expected one of {}, found `{word}`{hint}", listed(allowed))));
    }
    Ok((word, span, options))
}

fn unknown_key(entry: &Entry, what: &str, allowed: &[&str]) -> Diagnostic {
    let hint = match entry.key.as_str() {
        "<<" => ": YAML's merge key is not part of YAML 1.2; use an alias or `include`".to_owned(),
        key => did_you_mean(key, allowed.iter().copied()),
    };
    entry.key_span.error(format!(
        "unknown key `{}` in {what}{hint} (allowed here: {})",
        entry.key,
        allowed.join(", ")
    ))
}

/// `a`, `b`, `c`.
pub fn listed(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// `: did you mean …?`, or nothing if nothing is near.
pub fn did_you_mean<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(found, candidates) {
        Some(nearest) => format!(": did you mean `{nearest}`?"),
        None => String::new(),
    }
}

/// The same among names of several words parted by `-`: of those that begin or end with the words found all are
/// offered, since `tcp` is as near to one TCP as to any other.
pub fn did_you_mean_one_of<'a>(found: &str, candidates: &[&'a str]) -> String {
    let with_words = |fits: &dyn Fn(&str) -> bool| -> Vec<&'a str> {
        candidates.iter().copied().filter(|candidate| !found.is_empty() && fits(candidate)).collect()
    };
    let found_in_lower_case = found.to_lowercase();
    let begins = with_words(&|name| name.starts_with(&format!("{found_in_lower_case}-")));
    let ends = with_words(&|name| name.ends_with(&format!("-{found_in_lower_case}")));
    let mut offered = if begins.is_empty() { ends } else { begins };
    offered.truncate(MAX_OFFERED);
    match offered.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().as_slice() {
        [] => did_you_mean(found, candidates.iter().copied()),
        [name] => format!(": did you mean {name}?"),
        [names @ .., last] => format!(": did you mean {} or {last}?", names.join(", ")),
    }
}

/// The two names that `found` may be made of, if it is the name of a link: wherever a `-` can part them.
pub fn ends_of_link(found: &str) -> impl Iterator<Item = (&str, &str)> {
    found.match_indices('-').map(|(at, _)| (&found[..at], &found[at + 1..]))
}

/// The candidate that a slip of spelling most likely meant; the first of equals, or none if nothing is near.
pub fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if found.len() > MAX_NAME {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    let found = plain(found);
    let mut best = None;
    for candidate in candidates {
        let likeness = strsim::normalized_damerau_levenshtein(&found, &plain(candidate));
        if likeness >= 0.5 && best.is_none_or(|(max, _)| likeness > max) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}
