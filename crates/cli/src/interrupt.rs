//! Ctrl-C: the first one cancels the runs, the second one ends the program.

use std::sync::Arc;

use hopcast_node::runtime::Stop;
use hopcast_twin::Monitor;

use crate::failure::Failure;

/// Makes Ctrl-C cancel a live run, and waits until its network is removed.
pub(crate) fn cancel_live_on_ctrl_c(monitor: &Arc<Monitor>) {
    let monitor = Arc::clone(monitor);
    let _ = ctrlc::set_handler(move || {
        monitor.cancel();
        eprintln!("\ninterrupted: removing the network, and writing what is finished");
    });
}

/// Makes the program ignore Ctrl-C.
pub(crate) fn ignore_ctrl_c() {
    let _ = ctrlc::set_handler(|| ());
}

/// A stop that Ctrl-C requests.
pub(crate) fn stop_on_ctrl_c() -> Result<Stop, Failure> {
    let stop = Stop::new().map_err(Failure::run)?;
    let requested = stop.clone();
    ctrlc::set_handler(move || requested.request()).map_err(Failure::run)?;
    Ok(stop)
}

/// Makes Ctrl-C cancel `monitor`.
pub(crate) fn cancel_on_ctrl_c(monitor: &Arc<Monitor>) {
    let monitor = Arc::clone(monitor);
    // Setting a second handler fails, which is a bug of this program, and harmless.
    let _ = ctrlc::set_handler(move || {
        if monitor.is_cancelled() {
            std::process::exit(130);
        }
        monitor.cancel();
        eprintln!("\ninterrupted: writing what is finished (again to stop at once)");
    });
}
