//! Ctrl-C: the first asks the runs to end, the second ends the program.

use std::sync::Arc;

use hopcast_twin::Monitor;

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
