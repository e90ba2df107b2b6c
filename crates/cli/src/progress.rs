//! Progress on a terminal: runs done, and time left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hopcast_twin::Monitor;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Number of steps of the progress bar. Chosen: more than a terminal's columns; with fewer the bar jumps.
const STEPS: u64 = 1000;

/// Ends the ticker when it is dropped.
struct End<'a> {
    over: &'a AtomicBool,
    ticker: std::thread::Thread,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.ticker.unpark();
    }
}

/// Shows the progress of `monitor` while `work` runs, if standard error is a terminal.
pub(crate) fn shown_while<T>(monitor: &Arc<Monitor>, work: impl FnOnce() -> T) -> T {
    let target = ProgressDrawTarget::stderr();
    if target.is_hidden() {
        return work();
    }
    let bar = ProgressBar::with_draw_target(Some(STEPS), target);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %  {elapsed} gone, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let over = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let ticker = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let (done, total) = monitor.runs();
                bar.set_message(format!("{done} of {total} runs"));
                bar.set_position((monitor.share() * STEPS as f64) as u64);
                std::thread::park_timeout(Duration::from_millis(100));
            }
        });
        // Also if the work panics: nobody must wait for the ticker then.
        let _end = End { over: &over, ticker: ticker.thread().clone() };
        work()
    });
    bar.finish_and_clear();
    result
}
