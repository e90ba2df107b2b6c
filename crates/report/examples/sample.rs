//! Writes the run directories of made-up studies, to look at: `cargo run -p hopcast-report --example sample -- DIR`.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::path::Path;

use hopcast_report::table::{TableOptions, render};
use hopcast_report::write_run_directory;
use serde_json::json;

fn main() -> std::io::Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "sample-run".into());
    let manifest =
        json!({ "program": "hopcast 0.1.0", "scenario": "scenarios/studies/six-hops.yaml", "seed": 1 });
    for (name, (document, topology)) in [("six-hops", fixture::six_hops()), ("mesh", fixture::mesh())] {
        write_run_directory(&Path::new(&dir).join(name), &document, &topology, manifest.clone())?;
        for width in [None, Some(80)] {
            println!("{}", render(&document, TableOptions { width, color: false }));
        }
    }
    Ok(())
}
