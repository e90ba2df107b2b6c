//! `hopcast doctor`: the abilities of this machine.

use hopcast_live::{doctor as physician, leftovers};

use crate::failure::Failure;
use crate::output;

pub(crate) fn doctor(clean: bool) -> Result<(), Failure> {
    if clean {
        let mut removed = leftovers::clean().map_err(Failure::run)?;
        removed.extend(hopcast_node::daemon::sweep());
        let text: String = removed.iter().map(|line| format!("{line}\n")).collect();
        return output::write(if text.is_empty() { "nothing was left behind\n".to_owned() } else { text });
    }
    output::write(physician::table(&physician::examine()))
}
