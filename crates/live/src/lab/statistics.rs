//! Drops of a node's kernel, which no link model knows of.

use std::fs;

use super::Error;

/// Frames and datagrams that a node's kernel has dropped for lack of room since the node was set up.
///
/// Frames that the emulator does not read in time, and datagrams that programs do not, are signs of a busy machine and
/// not of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelDrops {
    /// For each interface, frames that found the queue of its device full on their way to the link.
    pub to_link: Vec<u64>,
    /// UDP datagrams, of IPv4 and IPv6, that found their socket's buffer full, and TCP segments that found it full
    /// while their program was about to read.
    pub socket_full: u64,
}

impl KernelDrops {
    /// The drops in the calling thread's network namespace, which has `interfaces` interfaces.
    pub(super) fn read(interfaces: usize) -> Result<Self, Error> {
        let read = |file: &str| {
            let path = format!("/proc/thread-self/net/{file}");
            fs::read_to_string(&path).map_err(|source| Error::File { path: path.into(), source })
        };
        let devices = read("dev")?;
        // Column of dropped transmissions in `/proc/net/dev`: the fourth of the second eight.
        const SENT_DROPPED: usize = 11;
        let dropped = |number: usize| device_figure(&devices, number, SENT_DROPPED).unwrap_or(0);
        let v4 = snmp(&read("snmp")?, "Udp:", "RcvbufErrors");
        let v6 = read("snmp6").ok().and_then(|text| snmp6(&text, "Udp6RcvbufErrors"));
        let tcp = read("netstat").ok().map_or(0, |text| {
            let dropped = ["TCPBacklogDrop", "TCPRcvQDrop"].map(|name| snmp(&text, "TcpExt:", name));
            dropped.into_iter().flatten().sum()
        });
        Ok(Self {
            to_link: (0..interfaces).map(dropped).collect(),
            socket_full: v4.unwrap_or(0) + v6.unwrap_or(0) + tcp,
        })
    }
}

fn device_figure(devices: &str, number: usize, column: usize) -> Option<u64> {
    let name = format!("eth{number}:");
    let figures = devices.lines().find_map(|line| line.trim_start().strip_prefix(&name))?;
    figures.split_whitespace().nth(column)?.parse().ok()
}

/// A value of `/proc/net/snmp` or `/proc/net/netstat`, where a line of names stands above a line of values.
fn snmp(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
    let (names, figures) = (lines.next()?, lines.next()?);
    let column = names.split_whitespace().position(|other| other == name)?;
    figures.split_whitespace().nth(column)?.parse().ok()
}

fn snmp6(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| if words.next() == Some(name) { words.next()?.parse().ok() } else { None })
}
