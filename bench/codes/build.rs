//! Looks for ISA-L, and says loudly when it is not there.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(isal)");
    match pkg_config::Config::new().probe("libisal") {
        Ok(library) => {
            println!("cargo::rustc-cfg=isal");
            println!("cargo::rustc-env=ISAL_VERSION={}", library.version);
        }
        Err(_) => println!(
            "cargo::warning=ISA-L is not installed: its columns will be missing. apt-get install libisal-dev pkg-config"
        ),
    }
}
