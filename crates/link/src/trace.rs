//! A recorded sequence of drops, as text.

use core::fmt;

use crate::config::Loss;

/// The error of a text that is not a trace of drops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// The value expected and the text found.
    pub message: String,
}

impl Loss {
    /// Reads a trace of drops: one character for each packet, `0` delivered and `1` lost; white space is ignored,
    /// and so is everything from a `#` to the end of its line.
    ///
    /// # Errors
    ///
    /// At the first other character, or at the end if there is no packet at all.
    pub fn trace_from_str(text: &str) -> Result<Self, TraceError> {
        let mut lost = Vec::new();
        let (mut line, mut column, mut comment) = (1, 1, false);
        for character in text.chars() {
            match character {
                '\n' => (line, column, comment) = (line + 1, 0, false),
                _ if comment => {}
                '#' => comment = true,
                '0' => lost.push(false),
                '1' => lost.push(true),
                space if space.is_whitespace() => {}
                other => {
                    let message = format!("expected `0` (delivered) or `1` (lost), found `{other}`");
                    return Err(TraceError { line, column, message });
                }
            }
            column += 1;
        }
        if lost.is_empty() {
            let message = "expected `0` (delivered) or `1` (lost) for each packet, found no packet".into();
            return Err(TraceError { line, column, message });
        }
        Ok(Self::Trace(lost.into()))
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for TraceError {}
