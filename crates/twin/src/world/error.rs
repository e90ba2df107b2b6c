//! Errors of building a world.

/// A scenario cannot be built as a world, or as the nodes of a live run. One line for a person.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The scenario is for live runs only; the line names the part of it, with its place in the file.
    #[error("{0}")]
    NeedsLive(String),
    /// A flow's machines cannot be put on its nodes.
    #[error(transparent)]
    Flow(#[from] hopcast_stack::BuildError),
    /// A flow is paced at its first link's rate, but the link has none.
    #[error("flow `{flow}` saturates its first link, so that link of `{node}` needs a rate")]
    NoRate {
        /// The flow's name.
        flow: String,
        /// The sending node's name.
        node: String,
    },
    /// A flow's application is a real program, in virtual time.
    #[error("flow `{flow}`: {program} is for live runs")]
    RealProgram {
        /// The flow's name.
        flow: String,
        /// The program's name in `app`.
        program: &'static str,
    },
}
