//! An error in a configuration file, and its place.

use std::fmt;

/// One error: prints as the one line `file:line:column: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as the user named it; `--set path=value` for a value from the command line.
    pub file: String,
    /// The line, from 1; 0 if there are no lines (a command-line value, a file that cannot be opened).
    pub line: usize,
    /// The column in characters, from 1; 0 as for the line.
    pub column: usize,
    /// The expected value, the value found, and the nearest right spelling.
    pub message: String,
}

/// Maximum length of a message, beyond which it is cut. Chosen: a scenario may hold a name of a megabyte.
const MAX_MESSAGE: usize = 2_000;

impl Diagnostic {
    /// An error of a whole file.
    pub fn of_file(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self::at(file, 0, 0, message)
    }

    /// An error at a line and a column, both from 1; 0 where there are none.
    pub fn at(file: impl Into<String>, line: usize, column: usize, message: impl Into<String>) -> Self {
        Self { file: one_line(&file.into()), line, column, message: one_line(&message.into()) }
    }
}

fn one_line(text: &str) -> String {
    let mut line: String =
        text.chars().take(MAX_MESSAGE).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MAX_MESSAGE).is_some() {
        line.push('…');
    }
    line
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message } = self;
        if *line == 0 {
            write!(f, "{file}: {message}")
        } else {
            write!(f, "{file}:{line}:{column}: {message}")
        }
    }
}

impl std::error::Error for Diagnostic {}
