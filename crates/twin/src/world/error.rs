//! Errors of building a world.

/// A scenario cannot be built as a world. One line for a person.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The scenario is for live runs only; the line says what of it, and where it stands in the file.
    #[error("{0}")]
    NeedsLive(String),
    /// A flow's machines cannot be put on its nodes.
    #[error("{0}")]
    Flow(String),
}

impl From<String> for BuildError {
    fn from(why: String) -> Self {
        Self::Flow(why)
    }
}
