//! Writes run directories, to look at: `cargo run -p hopcast-report --example sample -- DIR` those of made-up studies,
//! `… -- DIR RUN` those and that of a real run, read from RUN.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::path::Path;

use hopcast_report::table::{TableOptions, render};
use hopcast_report::{read_run_directory, write_run_directory};
use serde_json::json;

fn main() -> std::io::Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "sample-run".into());
    if let Some(run) = std::env::args().nth(2) {
        let run = read_run_directory(Path::new(&run)).map_err(std::io::Error::other)?;
        write_run_directory(&Path::new(&dir).join("run"), &run.document, &run.topology, run.manifest)?;
        for width in [None, Some(160), Some(120), Some(80)] {
            println!("{}", render(&run.document, TableOptions { width, color: false }));
        }
    }
    let manifest = json!({
        "hopcast": "0.1.0", "command": "hopcast run six-hops.yaml", "scenario_file": "six-hops.yaml", "seed": 1,
    });
    for (name, (document, topology)) in [("six-hops", fixture::six_hops()), ("mesh", fixture::mesh())] {
        write_run_directory(&Path::new(&dir).join(name), &document, &topology, manifest.clone())?;
        for width in [None, Some(80)] {
            println!("{}", render(&document, TableOptions { width, color: false }));
        }
    }
    Ok(())
}
