//! Failures of commands.

/// The end of a command without success: the message for the user, and the exit code.
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) code: u8,
}

impl Failure {
    /// A mistake in the user's input; nothing has been written.
    pub(crate) fn input(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: 2 }
    }

    /// A failure during or after the runs.
    pub(crate) fn run(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: 1 }
    }
}
