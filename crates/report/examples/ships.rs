//! Writes run directories with made-up maps of ships, to look at:
//! `cargo run -p hopcast-report --example ships -- DIR`.

#[path = "../tests/fixture/fleet.rs"]
mod fleet;

use std::path::Path;

use hopcast_report::{Topology, write_run_directory};
use serde_json::json;

fn main() -> std::io::Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "sample-ships".into());
    let maps = [
        ("ten", fleet::map(10, 5, false)),
        ("two-hundred", fleet::map(200, 7, false)),
        ("date-line", fleet::map(30, 5, true)),
    ];
    for (name, map) in maps {
        let document = fleet::document(map);
        write_run_directory(&Path::new(&dir).join(name), &document, &Topology::default(), json!({}))?;
    }
    Ok(())
}
