//! `hopcast protocols`: what a scenario's `over` can name.

use hopcast_twin::scenario;

use crate::{Failure, output};

pub(crate) fn list() -> Result<(), Failure> {
    let mut text = format!("{:<10}  {:<10}  {:<10}  about\n", "name", "offers", "needs");
    for scenario::Protocol { name, offers, needs, about } in scenario::protocols() {
        let (offers, needs) = (offers.to_string(), needs.to_string());
        text.push_str(&format!("{name:<10}  {offers:<10}  {needs:<10}  {about}\n"));
    }
    text.push_str("\nA stack is written from the top down: over: [tcp-cubic, tunnel, udp]\n");
    output::write(text)
}
