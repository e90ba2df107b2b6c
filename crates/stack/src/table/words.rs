//! Values that a file chooses by a word.

use hopcast_config::Diagnostic;
use hopcast_config::decode::choice;
use hopcast_config::yaml::Node;

/// The value that the word at `node` stands for, of at least one.
///
/// # Errors
/// If it is none of the words.
pub(crate) fn one_of<T: Copy, const N: usize>(
    node: &Node,
    key: &str,
    words: &[(&str, T); N],
) -> Result<T, Diagnostic> {
    let (found, ..) = choice(node, key, &words.map(|(word, _)| word))?;
    Ok(words.iter().find(|(word, _)| *word == found).map_or(words[0].1, |&(_, value)| value))
}

/// The word that stands for a value.
pub(crate) fn word_of<T: PartialEq>(value: T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, other)| *other == value).map_or("", |&(word, _)| word)
}
