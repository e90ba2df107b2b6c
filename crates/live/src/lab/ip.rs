//! `ip`, with many commands in one process.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::Error;

/// Runs one command for each line in the network namespace of the calling thread, up to the first that fails.
///
/// # Errors
/// The message of `ip` about the command that failed, and that command's number, from 0, if `ip` printed it.
pub(super) fn batch(commands: &str) -> Result<(), (Error, Option<usize>)> {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // A Ctrl-C at the terminal must not end a command that removes a lab.
        .process_group(0)
        .spawn()
        .map_err(|error| (Error::NoIp(error), None))?;
    if let Some(mut stdin) = child.stdin.take() {
        // After its first error `ip` reads no more, and that error is returned below.
        let _ = stdin.write_all(commands.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| (Error::NoIp(error), None))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // The first line is the message, the last one `Command failed -:3`.
    let failed = said.lines().find_map(|line| line.strip_prefix("Command failed -:"));
    let number = failed.and_then(|number| number.trim().parse::<usize>().ok()?.checked_sub(1));
    let command = number.and_then(|number| commands.lines().nth(number)).unwrap_or("-batch");
    let message = said.lines().next().unwrap_or("failed").to_owned();
    Err((Error::Ip { command: command.to_owned(), message }, number))
}
