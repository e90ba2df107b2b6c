//! Removal of the rules of killed nodes, which would still redirect connections or drop packets.
//!
//! The kernel removes devices, and the routes over them, with their process, and ends promiscuous modes; netfilter's
//! tables, routing rules and other routes stay, and so does IPv6 that is off on interfaces that were taken.

use std::io;

use crate::runtime::command::{ip, run};
use crate::runtime::{Claim, give_back};

/// The family of nft tables of frames.
const FRAMES: &str = "netdev";

/// Removes the rules of nodes that are gone, and returns a line for each. Rules that cannot be removed stay.
pub fn sweep() -> Vec<String> {
    let mut done = Vec::new();
    for (family, table) in tables() {
        let Some(claim) = Claim::left_behind(&table) else { continue };
        let mark = claim.mark();
        let listed = match family {
            FRAMES => run("nft", &format!("list table {family} {table}"), "").unwrap_or_default(),
            _ => String::new(),
        };
        let gone = run("nft", &format!("delete table {family} {table}"), "");
        for version in ["-4", "-6"] {
            let _ = ip(&format!("{version} rule del fwmark {mark}"));
            let _ = ip(&format!("{version} route flush table {mark}"));
        }
        if gone.is_ok() {
            give_back(&listed, &run("nft", &format!("list ruleset {FRAMES}"), "").unwrap_or_default());
            done.push(format!("took away rules that a killed node had left behind (nft table `{table}`)"));
        }
    }
    done
}

/// Repeats [`sweep`] on a thread over five seconds: while the kernel removes a killed predecessor, its rules still seem
/// to have an owner.
pub(super) fn sweep_later() -> io::Result<()> {
    /// Pause before each attempt, in milliseconds. Chosen: five seconds in all; less misses a predecessor that the
    /// kernel removes slowly, more keeps a thread for nothing.
    const PAUSES_MS: [u64; 5] = [200, 300, 500, 1000, 3000];
    let work = || {
        for pause in PAUSES_MS {
            #[allow(clippy::disallowed_methods)] // a thread that only cleans up
            std::thread::sleep(std::time::Duration::from_millis(pause));
            sweep().iter().for_each(|line| log::info!("{line}"));
        }
    };
    std::thread::Builder::new().name("leftovers".to_owned()).spawn(work).map(drop)
}

/// The nft tables that may belong to a node, each with its family.
fn tables() -> Vec<(&'static str, String)> {
    let of = |family: &'static str| {
        let listed = run("nft", &format!("list tables {family}"), "").unwrap_or_default();
        let begin = format!("table {family} ");
        let names = listed.lines().filter_map(|line| Some(line.strip_prefix(&begin)?.trim().to_owned()));
        names.map(|name| (family, name)).collect::<Vec<_>>()
    };
    ["inet", FRAMES].into_iter().flat_map(of).collect()
}
