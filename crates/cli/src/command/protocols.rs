//! `hopcast protocols`: what a scenario's `over` can name.

use hopcast_twin::scenario;

use crate::Failure;

pub(crate) fn list() -> Result<(), Failure> {
    for (name, ports, description) in scenario::protocols() {
        println!("{name:<12} {ports:<32} {description}");
    }
    Ok(())
}
