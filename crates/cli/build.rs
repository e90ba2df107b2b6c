//! A hash of the sources that results depend on, so that a directory's finished runs are not used after a change of the
//! code. Only contents count, in the order of their names: the same sources give the same program wherever they are
//! built.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The crates that make runs. The report and the command line change no figure.
const CRATES: [&str; 11] =
    ["core", "code", "wire", "link", "host", "peers", "coded", "config", "stack", "twin", "runner"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The manifests have the features of the build.
    let mut files: Vec<PathBuf> =
        ["Cargo.lock", "Cargo.toml", "rust-toolchain.toml"].map(|name| root.join(name)).into();
    for name in CRATES {
        let dir = root.join("crates").join(name);
        files.push(dir.join("Cargo.toml"));
        collect(&dir.join("src"), &mut files);
    }
    let mut hash = Sha256::new();
    for file in files {
        // Outside of the repository there is nothing to read: then only the version counts.
        let Ok(contents) = fs::read(&file) else { continue };
        let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update((contents.len() as u64).to_le_bytes());
        hash.update(contents);
        println!("cargo:rerun-if-changed={}", file.display());
    }
    let digits: String = hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo:rustc-env=HOPCAST_SOURCES={digits}");
}

/// All files below `dir`, in order.
fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", dir.display());
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
