//! Names of files that are taken from others, and given to them.

use super::wire::MAX_NAME;

/// The fault of a file that is not sent, or of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FileFault {
    /// The name is no text.
    #[error("names are UTF-8")]
    NotText,
    /// The name's length.
    #[error("names have 1 to {MAX_NAME} bytes")]
    Length,
    /// The name begins with a dot.
    #[error("hidden files and `..` are left out")]
    Hidden,
    /// The name has a directory in it.
    #[error("names have no `/`")]
    Directory,
    /// The name would change a terminal, or be shown as another.
    #[error("names have no control characters")]
    Control,
    /// The file has more pieces than can be numbered.
    #[error("it is too large")]
    TooLarge,
    /// The directory has more files than are sent.
    #[error("there are too many files")]
    TooMany,
}

/// Whether a file of this name may be made: in one directory, visible, and harmless on a terminal.
///
/// # Errors
/// The fault of the name. Such a name is refused and not changed, so that no two names become one.
pub(crate) fn check(name: &str) -> Result<(), FileFault> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(FileFault::Length);
    }
    if name.starts_with('.') {
        return Err(FileFault::Hidden);
    }
    if name.contains('/') {
        return Err(FileFault::Directory);
    }
    if name.chars().any(|c| c.is_control() || turns_text(c)) {
        return Err(FileFault::Control);
    }
    Ok(())
}

/// Characters that are not seen and change the order in which others are (Unicode Standard Annex 9).
const fn turns_text(c: char) -> bool {
    matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_file_in_one_directory() {
        for name in ["chart-17.bin", "Seekarte Ä.pdf", "a", "~", "-rf", &"x".repeat(200)] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            ".ssh",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a/b",
            "a\0b",
            "a\nb",
            "\u{1b}[2J",
            "gpj\u{202E}exe",
            &"x".repeat(201),
        ] {
            assert!(check(name).is_err(), "{name:?}");
        }
    }
}
