//! What a node that was killed has left behind: its rules, which would bring connections to nobody.
//!
//! Devices go with their process, and so does all that is routed into them; netfilter's tables and routing rules do not.

use std::process::{Command, Stdio};

use log::info;

use crate::runtime::Claim;

/// Takes away the rules of nodes that are no more. What cannot be taken away is left.
pub(super) fn sweep() {
    for table in tables().unwrap_or_default() {
        let Some(claim) = Claim::left_behind(&table) else { continue };
        let mark = claim.mark().to_string();
        let gone = run("nft", &["delete", "table", "inet", &table]).is_some();
        for version in ["-4", "-6"] {
            run("ip", &[version, "rule", "del", "fwmark", &mark]);
            run("ip", &[version, "route", "flush", "table", &mark]);
        }
        if gone {
            info!("took away rules that a killed node had left behind (nft table `{table}`)");
        }
    }
}

/// The names of all nft tables that could be ours.
fn tables() -> Option<Vec<String>> {
    let listed = run("nft", &["list", "tables", "inet"])?;
    Some(
        listed.lines().filter_map(|line| Some(line.strip_prefix("table inet ")?.trim().to_owned())).collect(),
    )
}

/// What a program writes, if it succeeds.
fn run(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
