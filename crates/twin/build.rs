//! Puts the studies into the program: a table of the files in `scenarios/studies`, by name.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/studies");
    println!("cargo:rerun-if-changed={}", dir.display());
    // Outside of the repository there are none.
    let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    let mut text = "static FILES: &[(&str, &[u8])] = &[\n".to_owned();
    for name in names {
        let path = dir.join(&name);
        println!("cargo:rerun-if-changed={}", path.display());
        // Writing into a string cannot fail.
        let _ = writeln!(text, "    ({name:?}, include_bytes!({:?})),", path.display().to_string());
    }
    text.push_str("];\n");
    let out = env::var_os("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&out).join("studies.rs"), text).expect("the build directory can be written");
}
