//! Checks that set up rules or measure time.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use hopcast_core::Duration;
use hopcast_node::Clock;
use rustix::thread::{Timespec, nanosleep};

use super::{Finding, Health};
use crate::wakeups::{KeepAwake, request_timely_wakeups};
use crate::{emulator, privileges};

/// Rules that redirect connections of local programs and forwarded connections to a proxy. One statement for each line:
/// some versions of nft, 1.0.6 for one, refuse a `}` that follows another on its line.
const RULES: [(&str, &str); 2] = [
    (
        "nft redirect",
        "table inet hopcast {
            chain out {
                type nat hook output priority -100;
                tcp dport 80 redirect to :8080
            }
        }",
    ),
    (
        "nft tproxy",
        "table inet hopcast {
            chain in {
                type filter hook prerouting priority mangle;
                meta l4proto tcp tproxy ip to :8080 meta mark set 1 accept
            }
        }",
    ),
];

/// Checks the parts of netfilter that proxies need, in a network namespace of its own.
pub(super) fn netfilter() -> Vec<Finding> {
    let each = |(what, rules): (&str, &str)| match refusal(rules) {
        None => Finding::new(what, Health::Yes, "works"),
        Some(why) => Finding::new(what, Health::Partly, why)
            .with_remedy("`modprobe nft_redir nft_tproxy` as root, for flows over a proxy"),
    };
    RULES.into_iter().map(each).collect()
}

/// The reason why the kernel does not take `rules`; `None` if it does.
fn refusal(rules: &str) -> Option<String> {
    let mut command = if privileges::administers_network() {
        let mut command = Command::new("unshare");
        command.arg("--net");
        command
    } else {
        privileges::user_namespace()
    };
    command.args(["nft", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Some(format!("unshare: {error}")),
    };
    if let Some(mut stdin) = child.stdin.take() {
        // Its error is read below.
        let _ = stdin.write_all(rules.as_bytes());
    }
    match child.wait_with_output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            Some(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("it failed").to_owned())
        }
        Err(error) => Some(error.to_string()),
    }
}

pub(super) fn congestion_controls() -> Finding {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = fs::read_to_string(path).unwrap_or_default();
    let available = available.trim();
    let missing: Vec<_> = ["cubic", "bbr"]
        .into_iter()
        .filter(|name| !available.split(' ').any(|other| other == *name))
        .collect();
    let what = "congestion control";
    if missing.is_empty() {
        return Finding::new(what, Health::Yes, available);
    }
    let modules: Vec<_> = missing.iter().map(|name| format!("tcp_{name}")).collect();
    Finding::new(what, Health::Partly, format!("{available}, without {}", missing.join(" and ")))
        .with_remedy(format!("`modprobe {}` as root", modules.join(" ")))
}

/// Checks the number of processors, and the lateness with which a thread of the emulator is woken.
pub(super) fn timing() -> [Finding; 2] {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let processors = if processors > 1 {
        Finding::new("processors", Health::Yes, processors.to_string())
    } else {
        Finding::new("processors", Health::Partly, "one, for the links and for the programs")
            .with_remedy("keep rates below 100 Mbit/s, or use a machine with more")
    };
    // On a thread of its own, since the priority of that thread changes.
    let awake = KeepAwake::keep();
    let measured = thread::spawn(|| (request_timely_wakeups(), lateness())).join();
    let Ok((real_time, late)) = measured else {
        return [processors, Finding::new("timers", Health::Partly, "could not be measured")];
    };
    let priority = if real_time { "real-time priority" } else { "no real-time priority" };
    let processors_are = if awake.is_granted() { "kept awake" } else { "free to sleep" };
    let rounded = Duration::from_micros(late.as_micros());
    let detail = format!(
        "99 % of sleeps end less than {rounded} late, with {priority} and processors {processors_are}"
    );
    let timers = if late > emulator::MAX_LATENESS {
        Finding::new("timers", Health::Partly, detail)
            .with_remedy("end what else the machine is doing; runs that come out too late are marked invalid")
    } else if real_time && awake.is_granted() {
        Finding::new("timers", Health::Yes, detail)
    } else {
        Finding::new("timers", Health::Yes, detail)
            .with_remedy("as root links also stay exact on a busy machine")
    };
    [processors, timers]
}

/// The 99th percentile of the lateness of sleeps of 100 µs.
fn lateness() -> Duration {
    /// Number of sleeps. Chosen: five of them are later than the 99th percentile, and all take 50 ms; fewer are noisy,
    /// more delay the answer.
    const SLEEPS: usize = 500;
    /// Length of a sleep: about the time between full frames at 100 Mbit/s.
    const SPAN: Duration = Duration::from_micros(100);
    let request = Timespec { tv_sec: 0, tv_nsec: SPAN.as_nanos() as i64 };
    let clock = Clock::starting_now();
    let mut late: Vec<Duration> = (0..SLEEPS)
        .map(|_| {
            let before = clock.now();
            let _ = nanosleep(&request);
            clock.now().since(before).saturating_sub(SPAN)
        })
        .collect();
    late.sort_unstable();
    late[SLEEPS * 99 / 100]
}
