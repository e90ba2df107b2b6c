//! The daemon: a node as its file says, until a signal ends it.
//!
//! | module | what |
//! |---|---|
//! | `site` | the node as one machine, which a [`Runtime`] runs |
//! | `hub` | its one UDP port: hellos, and what goes to and comes from the lanes |
//! | `stack` | what stands on the lanes: BATS with a tunnel or a proxy on top, relays |
//! | `doors` | where TCP connections come in and go out, and how many |
//! | `gate` | which packets of the far site the host is given |
//! | `memory` | what each part may take of the node's memory |
//! | `report` | what is told of it |
//! | `complaints` | what its counters say that a person should know |
//! | `notice` | what is logged of it |
//! | `leftovers` | rules of nodes that were killed |
//! | `names` | peers' names, looked up while they are silent |
//! | `supervisor` | what systemd is told |
//!
//! One thread carries everything. It stops ten times a second for a moment, to log what happened and, twice a second, to put
//! up its status; whoever asks for that is answered by other threads, which share nothing else with it.

pub(crate) mod complaints;
mod doors;
mod gate;
mod hub;
mod leftovers;
mod memory;
mod names;
pub(crate) mod notice;
mod report;
mod site;
mod stack;
mod supervisor;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::thread;

use hopcast_core::plug::Plug;
use hopcast_core::{Duration, Machine, Seed, Shared};
use log::{Level, error, info, log, log_enabled, warn};
use rustix::net::netdevice::name_to_index;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::hub::Hub;
pub use self::leftovers::sweep;
use self::leftovers::sweep_later;
use self::names::Names;
use self::notice::Notice;
use self::report::Report;
use self::site::Site;
use self::stack::{Stack, headers, longest_datagram};
use crate::Clock;
use crate::config::{Config, Place};
use crate::hello::peer::{Follow, Myself};
use crate::runtime::{Runtime, Stop};
use crate::status::answer::Before;
use crate::status::{Board, answer};

/// How often the thread that carries data looks after the rest.
const SLICE: Duration = Duration::from_millis(100);
/// For so long connections may come to their end after a signal.
const GRACE: Duration = Duration::from_secs(2);
/// For so long the devices and sockets of a node that was killed may take to go, where the host is busy.
const AFTERMATH: Duration = Duration::from_secs(5);
/// For so long the last resets may take to leave, and then the last hellos.
const FAREWELL: Duration = Duration::from_millis(20);

/// Runs a node until SIGINT or SIGTERM. An error is one line; whatever was made of the host's network is gone then too.
pub fn run(config: &Config) -> Result<(), String> {
    // Before anything is made, so that a signal at any moment finds somebody who takes it away again.
    let stops = Stops::new()?;
    let mut random = [0; 8];
    let urandom = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    urandom.map_err(|error| format!("/dev/urandom: {error}"))?;
    let (site, plugs, parts) = build(config, u64::from_ne_bytes(random));
    let was_killed = answer::before(&config.status) == Before::Killed;
    if !was_killed {
        free_devices(config)?;
    }

    let board = Board::default();
    let _socket = answer::on_socket(&config.status, board.clone())?;
    if config.carriers.iter().any(|carrier| carrier.tcp.is_some()) {
        sweep().iter().for_each(|line| info!("{line}"));
    }
    let open = |clock| {
        free_devices(config)?;
        let runtime = Runtime::open_within(Box::new(site.clone()), &plugs, clock, memory::readers(config))?;
        config.metrics.map_or(Ok(()), |address| answer::on_http(address, board.clone()))?;
        Ok(runtime)
    };
    // The kernel may still be taking away what the process before had.
    let patience = if was_killed { AFTERMATH } else { Duration::ZERO };
    let (mut runtime, clock) = match open_within(patience, &stops.orderly, open) {
        Ok(opened) => opened,
        // systemd stops the programs that set things up too; what they had made is gone.
        Err(why) if stops.orderly.is_pulled() => {
            info!("stopped at the start: {why}");
            return Ok(());
        }
        Err(why) => return Err(why),
    };
    if was_killed {
        sweep_later()?;
    }
    let mut names = Names::new(&config.peers, config.listen.is_ipv4())?;
    let mut report = Report::new(config, parts, board);
    report.put_up(clock.now(), &site.get(), &runtime);
    greet(config);
    supervisor::tell("READY=1");

    while !stops.orderly.is_pulled() {
        let now = clock.now();
        runtime.run(Some(now + SLICE), &stops.orderly)?;
        let now = clock.now();
        look_after(&mut site.get_mut(), now, &mut names, &mut runtime);
        report.put_up(now, &site.get(), &runtime);
    }

    supervisor::tell("STOPPING=1");
    info!("stopping");
    let end = clock.now() + GRACE;
    while report.connections() > 0 && clock.now() < end && !stops.at_once.is_pulled() {
        runtime.run(Some((clock.now() + SLICE).min(end)), &stops.at_once)?;
    }
    // The far sites hear of those that are cut short, before this one is down to its neighbours.
    report.reset_connections();
    runtime.run(Some(clock.now() + FAREWELL), &stops.at_once)?;
    site.get_mut().hub.say_bye(clock.now());
    runtime.run(Some(clock.now() + FAREWELL), &stops.at_once)
}

/// Opens what may not be free yet, until that succeeds or there is no time left. The clock that it comes with is at
/// zero when the attempt begins: nobody has been silent for as long as nothing could be sent.
fn open_within<T>(
    patience: Duration,
    stop: &Stop,
    mut open: impl FnMut(Clock) -> Result<T, String>,
) -> Result<(T, Clock), String> {
    let begun = Clock::starting_now();
    loop {
        let clock = Clock::starting_now();
        match open(clock) {
            Ok(opened) => return Ok((opened, clock)),
            Err(why) if stop.is_pulled() || begun.now() >= hopcast_core::Instant::ZERO + patience => {
                return Err(why);
            }
            Err(_) => stop.wait(SLICE),
        }
    }
}

/// A node without a host, for tests: `Below(0)` is its UDP port. `random` decides what it draws.
#[doc(hidden)]
pub fn machine(config: &Config, random: u64) -> impl Machine + use<> {
    build(config, random).0
}

/// The node's machine, what it is plugged into, and its parts for the report.
fn build(config: &Config, random: u64) -> (Shared<Site>, Vec<Plug>, Vec<stack::Part>) {
    let mut random = Seed::new(random, 0).stream(&["node"], 0);
    let mut stack = Stack::new(config, &mut random);
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
        let address = match peer.place {
            Place::Address(address) => Some(address),
            Place::Name { .. } | Place::Anywhere => None,
        };
        let follow = match peer.place {
            _ if peer.roams => Follow::Roams,
            Place::Anywhere => Follow::UnlessUp,
            Place::Address(_) | Place::Name { .. } => Follow::File,
        };
        (peer.name.clone(), address, follow)
    });
    let hub = Hub::new(config.listen, myself, peers.collect(), &stack.lanes);
    let (plugs, parts) = (std::mem::take(&mut stack.plugs), std::mem::take(&mut stack.parts));
    (Shared::new(Site::new(hub, stack)), plugs, parts)
}

/// Whether the names of the TUN devices are free: an interface of somebody else is not to be touched.
fn free_devices(config: &Config) -> Result<(), String> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").map_err(|error| format!("no sockets: {error}"))?;
    for packets in config.carriers.iter().filter_map(|carrier| carrier.packets.as_ref()) {
        if name_to_index(&socket, &packets.tun).is_ok() {
            return Err(format!("cannot make TUN `{0}`: there is already an interface `{0}`", packets.tun));
        }
    }
    Ok(())
}

/// Two lines at the start.
fn greet(config: &Config) {
    let sites = config.carriers.iter().map(|carrier| format!("carrying to `{}`", carrier.to));
    let relays = config.relays.iter().map(|relay| {
        let [one, other] = relay.between.map(|peer| &config.peers[peer].name);
        format!("relaying between `{one}` and `{other}`")
    });
    let what: Vec<_> = sites.chain(relays).collect();
    info!("node `{}` at {}: {}", config.name, config.listen, what.join(", "));
    let open =
        format!("nothing is encrypted or authenticated: whoever can send to {} can take part", config.listen);
    if log_enabled!(Level::Warn) {
        warn!("{open}");
    } else {
        // Whatever the log leaves out, this is said.
        eprintln!("{open}");
    }
}

/// Says what happened, and looks up the names of peers that are silent.
fn look_after(site: &mut Site, now: hopcast_core::Instant, names: &mut Names, runtime: &mut Runtime) {
    let hub = &mut site.hub;
    while let Some(notice) = hub.notices().pop() {
        log!(notice.level(), "{notice}");
        if let Notice::Full { .. } = notice {
            runtime.allow_fragments();
            hub.allow_fragments(now);
        }
    }
    match hub.notices().take_lost() {
        0 => {}
        lost => warn!("{lost} more lines than can be written were left out"),
    }
    let patience = hub.patience();
    for (place, peer) in hub.peers.iter().enumerate() {
        if !peer.is_up() {
            names.look_up(now, place, patience);
        }
    }
    while let Some((place, address)) = names.found() {
        hub.resolved(now, place, address);
    }
}

/// What signals do: the first stops the node in good order, the next at once.
struct Stops {
    orderly: Stop,
    at_once: Stop,
}

impl Stops {
    fn new() -> Result<Self, String> {
        let failed = |error| format!("cannot receive signals: {error}");
        let stops = Self { orderly: Stop::new().map_err(failed)?, at_once: Stop::new().map_err(failed)? };
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
        let (orderly, at_once) = (stops.orderly.clone(), stops.at_once.clone());
        let watch = move || {
            for signal in signals.forever() {
                match signal {
                    SIGHUP => error!("SIGHUP is ignored: to read the file again, restart the node"),
                    _ if orderly.is_pulled() => at_once.pull(),
                    _ => orderly.pull(),
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(failed)?;
        Ok(stops)
    }
}
