//! Puts the studies into the program: a table of the files in `scenarios/studies`, by name, and of the networks in
//! `scenarios/networks` that they include, by their paths from there.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut text = "static FILES: &[(&str, &[u8])] = &[\n".to_owned();
    for (folder, prefix) in [("studies", ""), ("networks", "../networks/")] {
        let dir = scenarios.join(folder);
        println!("cargo:rerun-if-changed={}", dir.display());
        for name in names(&dir) {
            let path = dir.join(&name);
            println!("cargo:rerun-if-changed={}", path.display());
            let (name, path) = (format!("{prefix}{name}"), path.display().to_string());
            // Writing into a string cannot fail.
            let _ = writeln!(text, "    ({name:?}, include_bytes!({path:?})),");
        }
    }
    text.push_str("];\n");
    let out = env::var_os("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&out).join("studies.rs"), text).expect("the build directory can be written");
}

/// The names of the files of a folder, in order; none outside of the repository.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
