//! Checks of this machine's ability to do live runs, with remedies for what is missing.

mod probes;

use std::fmt::Write;

use crate::{leftovers, privileges, programs};

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its subject.
    pub what: String,
    /// Result of the check.
    pub health: Health,
    /// Details, in a line.
    pub detail: String,
    /// The remedy, if one is needed.
    pub remedy: Option<String>,
}

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The subject is fully there.
    Yes,
    /// Some runs are impossible or worse.
    Partly,
    /// No live run is possible.
    No,
}

/// The program that reads captures, and its Debian package.
const CAPTURE_READER: (&str, &str) = ("tshark", "tshark");

/// The programs that set up labs, and their Debian packages.
const TOOLS: &[(&str, &str)] =
    &[("ip", "iproute2"), ("setpriv", "util-linux"), ("unshare", "util-linux"), ("nft", "nftables")];

/// Makes all checks, which takes about a second.
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![rights(), tun()];
    findings.extend(TOOLS.iter().map(|&(program, package)| installed(program, package, Health::No)));
    findings.extend(probes::netfilter());
    findings.push(probes::congestion_controls());
    findings.extend(probes::timing());
    let programs = programs::known().chain([&CAPTURE_READER]);
    findings.extend(programs.map(|&(program, package)| installed(program, package, Health::Partly)));
    findings.extend(programs::built_programs().map(library));
    findings.push(remains());
    findings
}

/// The findings as an aligned table, with the remedy below each that needs one.
pub fn table(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.what.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { what, health, detail, remedy } in findings {
        let ok = match health {
            Health::Yes => "yes",
            Health::Partly => "partly",
            Health::No => "NO",
        };
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{ok:<6}  {what:<width$}  {detail}");
        if let Some(remedy) = remedy {
            let _ = writeln!(text, "{:<6}  {:<width$}  -> {remedy}", "", "");
        }
    }
    text
}

impl Finding {
    fn new(what: &str, health: Health, detail: impl Into<String>) -> Self {
        Self { what: what.to_owned(), health, detail: detail.into(), remedy: None }
    }

    fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

fn rights() -> Finding {
    let what = "rights";
    if privileges::administers_network() {
        return Finding::new(what, Health::Yes, "may set up networks");
    }
    match privileges::try_user_namespace() {
        Ok(()) => Finding::new(what, Health::Yes, "may set up networks in a user namespace of its own"),
        Err(error) => Finding::new(what, Health::No, error.reason()).with_remedy(error.remedy()),
    }
}

fn tun() -> Finding {
    let what = "/dev/net/tun";
    match privileges::open_tun() {
        Ok(()) => Finding::new(what, Health::Yes, "opens"),
        Err(error) => Finding::new(what, Health::No, error.reason()).with_remedy(error.remedy()),
    }
}

fn installed(program: &str, package: &str, without: Health) -> Finding {
    match programs::find(program) {
        Some(path) => Finding::new(program, Health::Yes, path.display().to_string()),
        None => Finding::new(program, without, "not installed").with_remedy(format!("apt install {package}")),
    }
}

/// The library that a program of ours is built with.
fn library(program: &programs::BuiltProgram) -> Finding {
    let what = format!("{}, for `{}`", program.library, program.app);
    match (program.installed_at)().filter(|path| path.is_file()) {
        Some(path) => Finding::new(&what, Health::Yes, path.display().to_string()),
        None => Finding::new(&what, Health::Partly, "not installed").with_remedy(program.remedy),
    }
}

fn remains() -> Finding {
    let what = "leftovers";
    match leftovers::find() {
        Ok(left) if left.is_empty() => Finding::new(what, Health::Yes, "none of earlier runs"),
        Ok(left) => {
            let namespaces = left.iter().flat_map(leftovers::Leftover::namespaces).count();
            let detail =
                format!("{namespaces} network namespaces of {} runs whose process is gone", left.len());
            Finding::new(what, Health::Partly, detail).with_remedy("hopcast doctor --clean")
        }
        Err(error) => Finding::new(what, Health::Partly, error.to_string()).with_remedy("run as root"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_and_says_what_to_do() {
        let findings = [
            Finding::new("ip", Health::Yes, "/usr/sbin/ip"),
            Finding::new("iperf3", Health::Partly, "not installed").with_remedy("apt install iperf3"),
        ];
        let expected = "yes     ip      /usr/sbin/ip\n\
                        partly  iperf3  not installed\n                -> apt install iperf3\n";
        assert_eq!(table(&findings), expected);
    }
}
