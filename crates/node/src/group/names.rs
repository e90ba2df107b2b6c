//! Names of files that are taken from others, and given to them.

use super::wire::MAX_NAME;

/// Whether a file of this name may be made: in one directory, visible, and harmless on a terminal.
///
/// # Errors
/// The fault of the name. Such a name is refused and not changed, so that no two names become one.
pub(crate) fn check(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err("names have 1 to 200 bytes");
    }
    if name.starts_with('.') {
        return Err("hidden files and `..` are left out");
    }
    if name.contains('/') {
        return Err("names have no `/`");
    }
    if name.chars().any(|c| c.is_control() || turns_text(c)) {
        return Err("names have no control characters");
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
