//! What a node that was killed has left behind: its rules, which would bring connections to nobody.
//!
//! Devices go with their process, and so does all that is routed into them; netfilter's tables and routing rules do not.
//! A table's name says whose it is ([`Runtime`](crate::runtime::Runtime) calls them `hopcast_PROCESS_NUMBER`), and its rules
//! the mark that routing rules go by.

use std::path::Path;
use std::process::{Command, Stdio};

use log::info;

/// Takes away the rules of nodes that are no more. What cannot be taken away is left.
pub(super) fn sweep() {
    for table in tables().unwrap_or_default() {
        let Some(process) = owner(&table) else { continue };
        if Path::new("/proc").join(process.to_string()).exists() {
            continue;
        }
        let mark = run("nft", &["list", "table", "inet", &table]).as_deref().and_then(mark_of);
        let gone = run("nft", &["delete", "table", "inet", &table]).is_some();
        for version in ["-4", "-6"] {
            if let Some(mark) = &mark {
                run("ip", &[version, "rule", "del", "fwmark", mark]);
                run("ip", &[version, "route", "flush", "table", mark]);
            }
        }
        if gone {
            info!("took away rules that a killed node had left behind (process {process})");
        }
    }
}

/// The names of the tables that are ours or some other node's.
fn tables() -> Option<Vec<String>> {
    let listed = run("nft", &["list", "tables", "inet"])?;
    Some(
        listed.lines().filter_map(|line| Some(line.strip_prefix("table inet ")?.trim().to_owned())).collect(),
    )
}

/// The process that made a table.
fn owner(table: &str) -> Option<u32> {
    let (process, number) = table.strip_prefix("hopcast_")?.split_once('_')?;
    number.parse::<u32>().ok()?;
    process.parse().ok()
}

/// The mark that a table's rules set, as a decimal number.
fn mark_of(rules: &str) -> Option<String> {
    let (_, rest) = rules.split_once("meta mark set 0x")?;
    let digits = rest.split(|c: char| !c.is_ascii_hexdigit()).next()?;
    u32::from_str_radix(digits, 16).ok().map(|mark| mark.to_string())
}

/// What a program writes, if it succeeds.
fn run(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_as_ours_has_an_owner() {
        assert_eq!(owner("hopcast_4711_0"), Some(4711));
        for other in ["hopcast", "hopcast_1", "hopcast_x_0", "hopcast_1_x", "filter", "nothopcast_1_0"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn the_mark_is_found_among_the_rules() {
        let rules = "table inet t {\n chain c {\n meta l4proto tcp socket transparent 1 meta mark set 0x40589201 accept\n}}";
        assert_eq!(mark_of(rules).as_deref(), Some("1079546369"));
        assert_eq!(mark_of("table inet t { }"), None);
    }
}
