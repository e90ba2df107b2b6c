//! Lines for a person, on standard error.

use std::io::Write;
use std::time::SystemTime;

use log::{Level, LevelFilter};

/// Begins to log what is at least as grave as `level`. Under systemd lines have no time, which its journal has, but the
/// priority that it reads.
pub fn begin(level: LevelFilter) {
    let journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let mut builder = env_logger::Builder::new();
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
