//! `hopcast protocols`: what a scenario's `over` can name.

use hopcast_twin::scenario;

use crate::Failure;

pub(crate) fn list() -> Result<(), Failure> {
    println!("{:<10}  {:<10}  {:<10}  about", "name", "offers", "needs");
    for protocol in scenario::protocols() {
        let scenario::Protocol { name, offers, needs, about } = protocol;
        println!("{name:<10}  {:<10}  {:<10}  {about}", offers.to_string(), needs.to_string());
    }
    println!("\nA stack is written from the top down: over: [tcp-cubic, tunnel, udp]");
    Ok(())
}
