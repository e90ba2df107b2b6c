//! hopcast-code beside what one would pick instead: one run, one thread, one machine; every decode held against its
//! source. See `bench/README.md`.

mod anchors;
mod block;
#[cfg(isal)]
mod isal;
mod limit;
mod peers;
mod race;
mod studies;
mod table;

use std::time::Duration;

use clap::{Parser, ValueEnum};
use hopcast_code::field::Kernel;
use serde_json::json;

use race::Pace;
use studies::{bats, decode, encode, kernels, recode};
use table::{BLOCKED_THERE, Study, print_verdicts};

/// Measures hopcast-code beside memcpy, XOR, ISA-L and the crates rlnc, rlnc-simdx, raptorq and reed-solomon-simd.
#[derive(Parser)]
struct Arguments {
    /// Fewer and shorter rounds: noisier, in a fraction of the time.
    #[arg(long)]
    quick: bool,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// The kernel that hopcast uses, by its name: "AVX-512", "AVX2", .. By default the best that the machine has. Its
    /// rivals choose for themselves; see bench/README.md for how rlnc-simdx is kept from GFNI.
    #[arg(long, value_parser = kernel)]
    kernel: Option<Kernel>,
    /// Only the operations whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

#[derive(Copy, Clone, PartialEq, ValueEnum)]
enum Format {
    Table,
    Json,
}

/// Function that measures one operation.
type Measure = fn(Pace) -> Study;

/// Studies, in the order in which it is printed. A new operation is a function of `studies` and a line here.
const STUDIES: &[(&str, Measure)] = &[
    ("y += a x", kernels::axpy),
    ("blocked product", kernels::blocked),
    ("encode", encode::batched),
    ("dense decode", decode::dense),
    ("systematic decode", decode::systematic),
    ("recode", recode::recode),
    ("bats decode", bats::decode),
    ("in order", decode::in_order),
];

fn main() {
    let arguments = Arguments::parse();
    arguments.kernel.inspect(|kernel| kernel.prefer());
    let pace = if arguments.quick {
        Pace { rounds: 11, turn: Duration::from_micros(500) }
    } else {
        Pace { rounds: 41, turn: Duration::from_millis(2) }
    };
    let like_there = Kernel::best().name() == "GFNI + AVX-512";
    let machine = machine();
    if arguments.format == Format::Table {
        for (what, text) in &machine {
            println!("{what}: {text}");
        }
        println!(
            "medians of {} interleaved rounds; ratios are hopcast to the peer, round by round",
            pace.rounds
        );
    }

    let (mut results, mut verdicts) = (Vec::new(), Vec::new());
    for (_, study) in STUDIES.iter().filter(|(name, _)| name.contains(&arguments.only)) {
        let study = study(pace);
        if arguments.format == Format::Table {
            study.print(like_there);
        }
        verdicts.extend(study.verdicts(like_there));
        results.push(study);
    }

    if arguments.format == Format::Json {
        let machine: serde_json::Map<_, _> =
            machine.into_iter().map(|(what, text)| (what.into(), text.into())).collect();
        let document = json!({ "machine": machine, "studies": results, "verdicts": verdicts });
        println!("{document:#}");
        return;
    }
    println!("\nEvery requirement, where it fared worst over all sizes and lengths:\n");
    print_verdicts(&verdicts);
    if !like_there {
        println!(
            "\nThe requirements are for Zen 4 with GFNI and AVX-512, where the blocked kernel does {BLOCKED_THERE:.0} GB/s. This machine has\n\
             no such kernel: what is asked of it is asked of the best there is, and GB/s are scaled. \"Worst\" is hopcast's\n\
             rate x {BLOCKED_THERE:.0} / the blocked kernel's rate here; \"measured\" is the rate itself."
        );
    }
}

/// The kernel of that name.
fn kernel(name: &str) -> Result<Kernel, String> {
    Kernel::all().find(|kernel| kernel.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
        let names: Vec<&str> = Kernel::all().map(Kernel::name).collect();
        format!("this machine has {}", names.join(", "))
    })
}

/// The machine and the versions that were measured.
fn machine() -> Vec<(&'static str, String)> {
    let kernels: Vec<&str> = Kernel::all().map(Kernel::name).collect();
    vec![
        ("CPU", cpu().unwrap_or_else(|| "unknown".into())),
        ("hopcast's kernel", format!("{} (of {})", Kernel::best().name(), kernels.join(", "))),
        ("rlnc-simdx's kernel", rlnc_simdx::active_kernel().into()),
        ("ISA-L", isal_version()),
    ]
}

fn cpu() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    Some(format!("{} (family {}, model {})", field("model name")?, field("cpu family")?, field("model\t")?))
}

#[cfg(isal)]
fn isal_version() -> String {
    format!("{} (Debian's 2.30 has no GFNI path; 2.31 and later do)", isal::VERSION)
}

#[cfg(not(isal))]
fn isal_version() -> String {
    "not installed: its columns are missing (apt-get install libisal-dev pkg-config)".into()
}
