//! Lines for a person, on standard error.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use env_logger::Target;
use log::{Level, LevelFilter};

/// Begins to log what is at least as grave as `level`, until what is returned is dropped. Under systemd lines have no
/// time, which its journal has, but the priority that it reads.
///
/// # Errors
/// If there is no thread to be had.
pub fn begin(level: LevelFilter) -> io::Result<Log> {
    let journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let say = writer()?;
    let mut builder = env_logger::Builder::new();
    builder.target(Target::Pipe(Box::new(Lines(say.clone()))));
    builder.filter_level(level).format(move |out, record| {
        let message = record.args();
        if journal {
            return writeln!(out, "<{}>{message}", priority(record.level()));
        }
        let time = humantime::format_rfc3339_seconds(now());
        let level = match record.level() {
            Level::Error => "error: ",
            Level::Warn => "warning: ",
            Level::Info | Level::Debug | Level::Trace => "",
        };
        writeln!(out, "{time} {level}{message}")
    });
    // A second logger is not begun; that is harmless.
    let _ = builder.try_init();
    Ok(Log(say))
}

/// The log of a program; once this is dropped, what was logged is written, if whoever reads it reads.
pub struct Log(SyncSender<Line>);

impl Drop for Log {
    fn drop(&mut self) {
        /// For so long a program that ends waits for a reader.
        const PATIENCE: Duration = Duration::from_millis(500);
        let (done, written) = sync_channel(1);
        let say = self.0.clone();
        // There may be no room yet, and no thread to wait for it; then the last lines are lost.
        let _ = std::thread::Builder::new().spawn(move || say.send(Line::Mark(done)));
        let _ = written.recv_timeout(PATIENCE);
    }
}

/// Standard error, written by a thread of its own: a terminal that is held, or a pipe that nobody reads, must not hold
/// what logs.
struct Lines(SyncSender<Line>);

enum Line {
    Text(Vec<u8>),
    /// What was said before is written.
    Mark(SyncSender<()>),
}

fn writer() -> io::Result<SyncSender<Line>> {
    /// Lines that may wait to be written; more are lost.
    const WAITING: usize = 1024;
    let (say, said) = sync_channel(WAITING);
    std::thread::Builder::new().name("log".to_owned()).spawn(move || {
        for line in said {
            match line {
                // There is nowhere to complain.
                Line::Text(text) => drop(io::stderr().write_all(&text)),
                Line::Mark(done) => drop(done.send(())),
            }
        }
    })?;
    Ok(say)
}

impl Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let _ = self.0.try_send(Line::Text(text.to_vec()));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Of syslog, as systemd reads it (sd-daemon(3)).
const fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

#[allow(clippy::disallowed_methods)] // A log is read by the wall clock.
fn now() -> SystemTime {
    SystemTime::now()
}
