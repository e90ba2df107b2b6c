//! What a node that was killed has left behind: its rules, which would bring connections to nobody.
//!
//! Devices go with their process, and so does all that is routed into them; netfilter's tables and routing rules do not.

use crate::runtime::Claim;
use crate::runtime::command::{ip, run};

/// Takes away the rules of nodes that are no more, and says whose in a line each. What cannot be taken away is left.
pub fn sweep() -> Vec<String> {
    let mut done = Vec::new();
    for table in tables() {
        let Some(claim) = Claim::left_behind(&table) else { continue };
        let mark = claim.mark();
        let gone = run("nft", &format!("delete table inet {table}"), "");
        for version in ["-4", "-6"] {
            let _ = ip(&format!("{version} rule del fwmark {mark}"));
            let _ = ip(&format!("{version} route flush table {mark}"));
        }
        if gone.is_ok() {
            done.push(format!("took away rules that a killed node had left behind (nft table `{table}`)"));
        }
    }
    done
}

/// The names of all nft tables that could be ours.
fn tables() -> Vec<String> {
    let listed = run("nft", "list tables inet", "").unwrap_or_default();
    listed.lines().filter_map(|line| Some(line.strip_prefix("table inet ")?.trim().to_owned())).collect()
}
