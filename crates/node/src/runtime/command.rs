//! `ip` and `nft`, which set up devices and rules.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::error::CommandError;

/// Runs `ip` with the words of `line` as arguments.
pub(crate) fn ip(line: &str) -> Result<String, CommandError> {
    run("ip", line, "")
}

/// Runs a program with the words of `line` as arguments and `input` as standard input, and returns its standard output.
pub(crate) fn run(program: &str, line: &str, input: &str) -> Result<String, CommandError> {
    let command = || format!("{program} {line}");
    let failed = |source| CommandError::Start { command: command(), source };
    let mut child = Command::new(program)
        .args(line.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A Ctrl-C at the terminal must not end a command that removes rules or devices.
        .process_group(0)
        .spawn()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let package = if program == "ip" { "iproute2" } else { "nftables" };
                CommandError::NotInstalled { program: program.to_owned(), package }
            }
            _ => failed(error),
        })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read all of it reports an error below.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let first = errors.lines().find(|line| !line.trim().is_empty());
    let message = first.map_or_else(|| output.status.to_string(), |line| line.trim().to_owned());
    Err(CommandError::Failed { command: command(), message })
}
