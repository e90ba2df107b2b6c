//! The log on standard error.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use env_logger::Target;
use log::{Level, LevelFilter};

/// Begins to log messages of `level` and above, until the result is dropped. Under systemd lines have a priority and no
/// time, which the journal adds.
///
/// # Errors
/// If no thread can be started.
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
    // A logger that exists already is kept.
    let _ = builder.try_init();
    Ok(Log(say))
}

/// The log of a program. Dropping it waits until all messages are written, for a bounded time.
pub struct Log(SyncSender<Line>);

impl Drop for Log {
    fn drop(&mut self) {
        /// Maximum time for which the end of a program waits for the reader of its log. Chosen; shorter loses the last
        /// lines, longer delays the end if nobody reads.
        const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);
        let (done, written) = sync_channel(1);
        let say = self.0.clone();
        // If the queue is full and no thread can wait for it, the last lines are lost.
        let _ = std::thread::Builder::new().spawn(move || say.send(Line::Mark(done)));
        let _ = written.recv_timeout(FLUSH_TIMEOUT);
    }
}

/// Standard error, written by a thread of its own: a suspended terminal or an unread pipe must not block the callers.
struct Lines(SyncSender<Line>);

enum Line {
    Text(Vec<u8>),
    /// Answered once all earlier lines are written.
    Mark(SyncSender<()>),
}

fn writer() -> io::Result<SyncSender<Line>> {
    /// Maximum number of lines that wait to be written; more are lost. Chosen: it bounds memory.
    const MAX_LINES: usize = 1024;
    let (say, said) = sync_channel(MAX_LINES);
    std::thread::Builder::new().name("log".to_owned()).spawn(move || {
        for line in said {
            match line {
                // An error has nowhere to be reported.
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

/// The priority of syslog, as systemd reads it (sd-daemon(3)).
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
