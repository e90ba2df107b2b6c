//! Ctrl-C: the first asks the runs to end, the second ends the program.

use std::sync::Arc;

use hopcast_node::runtime::Stop;
use hopcast_twin::Monitor;

use crate::Failure;

/// Makes Ctrl-C end a live run: what it has set up is removed, and that is waited for.
pub(crate) fn cancels_live(monitor: &Arc<Monitor>) {
    let monitor = Arc::clone(monitor);
    let _ = ctrlc::set_handler(move || {
        monitor.cancel();
        eprintln!("\ninterrupted: removing the network, and writing what is finished");
    });
}

/// Makes Ctrl-C mean nothing.
pub(crate) fn is_ignored() {
    let _ = ctrlc::set_handler(|| ());
}

/// A stop that Ctrl-C pulls.
pub(crate) fn stops() -> Result<Stop, Failure> {
    let stop = Stop::new().map_err(Failure::run)?;
    let pulled = stop.clone();
    ctrlc::set_handler(move || pulled.pull()).map_err(Failure::run)?;
    Ok(stop)
}

/// Makes Ctrl-C cancel `monitor`.
pub(crate) fn cancels(monitor: &Arc<Monitor>) {
    let monitor = Arc::clone(monitor);
    // A second handler cannot be set; that would be a broken invariant of this program, and is harmless.
    let _ = ctrlc::set_handler(move || {
        if monitor.is_cancelled() {
            std::process::exit(130);
        }
        monitor.cancel();
        eprintln!("\ninterrupted: writing what is finished (again to stop at once)");
    });
}
