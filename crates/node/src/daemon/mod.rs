//! The daemon: runs the node of a configuration until a signal ends it.
//!
//! | module | what |
//! |---|---|
//! | `site` | the node as one machine, which a [`Runtime`] runs |
//! | `switchboard` | its one UDP port: hellos, and the datagrams of lanes |
//! | `stack` | the machines on the lanes: BATS with a tunnel or a proxy on top, relays |
//! | `groups` | the groups: their machines, disks and log |
//! | `host` | services for what the host forwards, and senders to groups of hosts |
//! | `interfaces` | facts about the host's interfaces |
//! | `tcp_access` | access of TCP connections to the node, and their limits |
//! | `gate` | a filter of the far site's packets by their source |
//! | `memory` | shares of the node's memory |
//! | `report` | its status |
//! | `complaints` | warnings about its counters |
//! | `notice` | events that are logged |
//! | `leftovers` | rules of killed nodes |
//! | `names` | peers' names, resolved while the peers are silent |
//! | `systemd` | notifications to systemd |
//!
//! One thread carries all data. It pauses ten times a second to log events and, twice a second, to publish its status;
//! other threads answer requests for the status, and share nothing else with it.

pub(crate) mod complaints;
mod error;
mod gate;
mod groups;
mod host;
mod interfaces;
mod leftovers;
mod memory;
mod names;
pub(crate) mod notice;
mod report;
mod site;
mod stack;
mod switchboard;
mod systemd;
mod tcp_access;
#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::thread;

use hopcast_core::plug::Plug;
use hopcast_core::{Duration, Machine, Seed, Shared};
use log::{Level, error, info, log, log_enabled, warn};
use rustix::net::netdevice::name_to_index;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub use self::error::Error;
use self::groups::GroupPart;
use self::host::HostPart;
use self::interfaces::Interfaces;
pub use self::leftovers::sweep;
use self::leftovers::sweep_later;
use self::names::Names;
use self::notice::Notice;
use self::report::Report;
use self::site::Site;
use self::stack::{Stack, headers, longest_datagram};
use self::switchboard::Switchboard;
use crate::Clock;
use crate::config::{Config, PeerAddress};
use crate::hello::peer::{Follow, Myself};
use crate::runtime::{Runtime, Stop};
use crate::status::answer::Predecessor;
use crate::status::{Board, answer};

/// Time between two pauses of the thread that carries data. Chosen; shorter costs processor time, longer delays logged
/// events.
const LOG_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum time that connections have to end after a signal. Chosen; shorter cuts them off, longer makes a restart
/// slow.
const DRAIN_TIME: Duration = Duration::from_secs(2);
/// Maximum time that the devices and sockets of a killed predecessor take to disappear on a busy host. Chosen; shorter
/// fails there, longer delays the error where another node stays.
const PREDECESSOR_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in which the last resets, and then the last hellos, are sent. Chosen; shorter loses some of them, longer delays
/// the end.
const FAREWELL_TIME: Duration = Duration::from_millis(20);

/// Runs a node until SIGINT or SIGTERM.
///
/// # Errors
/// A failure that the node cannot go on with; its devices, rules and routes are removed.
pub fn run(config: &Config) -> Result<(), Error> {
    // First of all, so that a signal at any moment is handled, and everything that the node makes is removed again.
    let stops = Stops::new().map_err(Error::Signals)?;
    let mut random = [0; 8];
    let urandom = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    urandom.map_err(Error::Random)?;
    let interfaces = interfaces::of_host(config)?;
    let built = build(config, &interfaces, u64::from_ne_bytes(random));
    let Built { site, plugs, parts, groups, host } = built;
    let was_killed = answer::predecessor(&config.status) == Predecessor::Killed;
    if !was_killed {
        free_devices(config)?;
    }

    let board = Board::default();
    let _socket = answer::on_socket(&config.status, board.clone())?;
    if has_rules(config) {
        sweep().iter().for_each(|line| info!("{line}"));
    }
    let open = |clock| -> Result<Runtime, Error> {
        free_devices(config)?;
        let runtime = Runtime::open_within(Box::new(site.clone()), &plugs, clock, memory::readers(config))?;
        config.metrics.map_or(Ok(()), |address| answer::on_http(address, board.clone()))?;
        Ok(runtime)
    };
    // The kernel may still be removing the predecessor's devices.
    let patience = if was_killed { PREDECESSOR_TIMEOUT } else { Duration::ZERO };
    let (mut runtime, clock) = match open_within(patience, &stops.orderly, open) {
        Ok(opened) => opened,
        // systemd also stops `ip` and `nft`; what they had made is removed.
        Err(error) if stops.orderly.is_requested() => {
            info!("stopped at the start: {error}");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if was_killed {
        sweep_later().map_err(Error::Thread)?;
    }
    groups.iter().try_for_each(|group| group.start(clock.now())).map_err(Error::Thread)?;
    let mut names = Names::new(&config.peers, config.listen.is_ipv4()).map_err(Error::Thread)?;
    let mut report = Report::new(config, parts, (groups, host), board);
    report.publish(clock.now(), &site.get(), &runtime);
    greet(config);
    systemd::notify("READY=1");

    while !stops.orderly.is_requested() {
        let now = clock.now();
        runtime.run(Some(now + LOG_INTERVAL), &stops.orderly)?;
        let now = clock.now();
        look_after(&mut site.get_mut(), now, &mut names, &mut runtime);
        report.groups().iter().for_each(|group| group.look_after(now, &site.get()));
        report.publish(now, &site.get(), &runtime);
    }

    systemd::notify("STOPPING=1");
    info!("stopping");
    let end = clock.now() + DRAIN_TIME;
    while report.connections() > 0 && clock.now() < end && !stops.at_once.is_requested() {
        runtime.run(Some((clock.now() + LOG_INTERVAL).min(end)), &stops.at_once)?;
    }
    // The far sites learn of the resets before their neighbours see this node as down.
    report.reset_connections();
    runtime.run(Some(clock.now() + FAREWELL_TIME), &stops.at_once)?;
    site.get_mut().switchboard.say_bye(clock.now());
    runtime.run(Some(clock.now() + FAREWELL_TIME), &stops.at_once)?;
    Ok(())
}

/// Opens sockets and devices that may not be free yet: repeats the attempt until it succeeds or the time is over. The
/// clock passed to `open` is at zero when the attempt begins: no peer counts as silent while nothing could be sent.
fn open_within<T>(
    patience: Duration,
    stop: &Stop,
    mut open: impl FnMut(Clock) -> Result<T, Error>,
) -> Result<(T, Clock), Error> {
    let begun = Clock::starting_now();
    loop {
        let clock = Clock::starting_now();
        match open(clock) {
            Ok(opened) => return Ok((opened, clock)),
            Err(error) if stop.is_requested() || begun.now() >= hopcast_core::Instant::ZERO + patience => {
                return Err(error);
            }
            Err(_) => stop.wait(LOG_INTERVAL),
        }
    }
}

/// A node without a host, for tests: `Below(0)` is its UDP port, and `random` seeds its draws.
#[doc(hidden)]
pub fn machine(config: &Config, random: u64) -> impl Machine + use<> {
    build(config, &Interfaces::new(), random).site
}

/// A node's machine, its plugs, and its parts for the report.
struct Built {
    site: Shared<Site>,
    plugs: Vec<Plug>,
    parts: Vec<stack::Part>,
    groups: Vec<GroupPart>,
    host: Vec<HostPart>,
}

/// Whether a node makes rules in the kernel, which stay where it is killed.
fn has_rules(config: &Config) -> bool {
    let takes_tcp = config.carriers.iter().any(|carrier| carrier.tcp.is_some());
    let takes_packets = config.services.iter().any(|service| service.service.ether_type().is_none());
    takes_tcp || takes_packets || !config.senders.is_empty()
}

/// The node of `config` at a host with these interfaces; of others only the names are known.
fn build(config: &Config, interfaces: &Interfaces, random: u64) -> Built {
    let mut random = Seed::new(random, 0).stream(&["node"], 0);
    let mut stack = Stack::new(config, interfaces, &mut random);
    let myself = Myself {
        name: config.name.clone(),
        instance: random.bits(),
        sequence: 0,
        datagram: longest_datagram(config),
        headers: headers(config),
        fragments: false,
        timing: config.timing,
        random,
        hellos: Vec::new(),
        notices: notice::Notices::default(),
    };
    let peers = config.peers.iter().map(|peer| {
        let address = match peer.address {
            PeerAddress::Address(address) => Some(address),
            PeerAddress::Name { .. } | PeerAddress::Anywhere => None,
        };
        let follow = match peer.address {
            _ if peer.roams => Follow::Roams,
            PeerAddress::Anywhere => Follow::UnlessUp,
            PeerAddress::Address(_) | PeerAddress::Name { .. } => Follow::File,
        };
        (peer.name.clone(), address, follow)
    });
    let switchboard = Switchboard::new(config.listen, myself, peers.collect(), &stack.lanes);
    let (plugs, parts) = (std::mem::take(&mut stack.plugs), std::mem::take(&mut stack.parts));
    let groups = std::mem::take(&mut stack.groups);
    let host = std::mem::take(&mut stack.host_parts);
    let site = Shared::new(Site::new(switchboard, stack, groups::memberships(config)));
    Built { site, plugs, parts, groups, host }
}

/// Checks that the names of the TUN devices are free: existing interfaces are not touched.
fn free_devices(config: &Config) -> Result<(), Error> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").map_err(Error::Sockets)?;
    for (tun, _) in config.devices() {
        if name_to_index(&socket, tun).is_ok() {
            return Err(Error::DeviceInUse(tun.clone()));
        }
    }
    Ok(())
}

/// Logs two lines at the start.
fn greet(config: &Config) {
    let sites = config.carriers.iter().map(|carrier| format!("carrying to `{}`", carrier.to));
    let relays = config.relays.iter().map(|relay| {
        let [one, other] = relay.between.map(|peer| &config.peers[peer].name);
        format!("relaying between `{one}` and `{other}`")
    });
    let groups = config.groups.iter().map(|group| match group.takes_part() {
        true => format!("in the group `{}`", group.name),
        false => format!("holding for the group `{}`", group.name),
    });
    let services = config.services.iter().map(|service| format!("running `{}`", service.service.name()));
    let senders = config.senders.iter().map(|sender| format!("sending to the group {}", sender.to));
    let what: Vec<_> = sites.chain(groups).chain(relays).chain(services).chain(senders).collect();
    info!("node `{}` at {}: {}", config.name, config.listen, what.join(", "));
    let open =
        format!("nothing is encrypted or authenticated: whoever can send to {} can take part", config.listen);
    if log_enabled!(Level::Warn) {
        warn!("{open}");
    } else {
        // Printed at any log level.
        eprintln!("{open}");
    }
}

/// Logs events, and resolves the names of silent peers.
fn look_after(site: &mut Site, now: hopcast_core::Instant, names: &mut Names, runtime: &mut Runtime) {
    let switchboard = &mut site.switchboard;
    while let Some(notice) = switchboard.notices().pop() {
        log!(notice.level(), "{notice}");
        if let Notice::Full { .. } = notice {
            runtime.allow_fragments();
            switchboard.allow_fragments(now);
        }
    }
    match switchboard.notices().take_lost() {
        0 => {}
        lost => warn!("{lost} more lines than can be written were left out"),
    }
    let patience = switchboard.patience();
    for (place, peer) in switchboard.peers.iter().enumerate() {
        if !peer.is_up() {
            names.look_up(now, place, patience);
        }
    }
    while let Some((place, address)) = names.found() {
        switchboard.resolved(now, place, address);
    }
}

/// The effects of signals: the first stops the node gracefully, the next one at once.
struct Stops {
    orderly: Stop,
    at_once: Stop,
}

impl Stops {
    fn new() -> io::Result<Self> {
        let stops = Self { orderly: Stop::new()?, at_once: Stop::new()? };
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let (orderly, at_once) = (stops.orderly.clone(), stops.at_once.clone());
        let watch = move || {
            for signal in signals.forever() {
                match signal {
                    SIGHUP => error!("SIGHUP is ignored: to read the file again, restart the node"),
                    _ if orderly.is_requested() => at_once.request(),
                    _ => orderly.request(),
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(watch)?;
        Ok(stops)
    }
}
