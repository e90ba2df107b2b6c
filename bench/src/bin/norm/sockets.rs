//! The members on UDP sockets of a network namespace, each on a thread; and what is common to them and libnorm's.

#![allow(clippy::disallowed_methods)] // it measures processes by the wall clock

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration as Span, Instant as Moment};

use hopcast_core::plug::Plug;
use hopcast_core::{Duration, Instant, Item, Machine, Port, Rate};
use hopcast_node::Clock;
use hopcast_node::runtime::{Runtime, Stop};

use crate::member::{Member, PORT, Run};
use crate::{Failure, RECEIVERS, Seen};

/// First word of the arguments of the process that runs the members.
pub(crate) const WORD: &str = "sockets";
/// Time after which a transfer should long be over.
pub(crate) const LIMIT: Span = Span::from_secs(60);
/// Sets up the loopback interface, and starts what follows on one processor.
const SETUP: &str =
    "ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo && exec taskset -c 0 \"$@\"";

/// Runs a program in a namespace and on a processor of its own, and measures it.
pub(crate) fn measure(program: &std::ffi::OsStr, arguments: &[String]) -> Result<(Seen, String), Failure> {
    let (before, began) = (children()?, Moment::now());
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", SETUP, "sh"]).arg(program).args(arguments);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), children()? - before);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("{}: {}", program.display(), output.status).into());
    }
    Ok((Seen { bytes: 0, cpu, seconds }, text))
}

/// Seconds of processor time of the processes that this one has waited for (proc(5): cutime and cstime, of 10 ms).
fn children() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let after = text.rsplit_once(')').ok_or("/proc/self/stat: no name")?.1;
    let ticks = after.split_whitespace().skip(13).take(2).map(str::parse::<u64>);
    Ok(ticks.sum::<Result<u64, _>>()? as f64 / 100.0)
}

/// Starts a process for the members, and measures it.
pub(crate) fn start(rate: Rate) -> Result<Seen, Failure> {
    let own = std::env::current_exe()?;
    let (seen, text) = measure(own.as_os_str(), &[WORD.to_owned(), rate.bits_per_sec().to_string()])?;
    Ok(Seen { bytes: text.trim().parse()?, ..seen })
}

/// Runs the members, in a process that [`start`] has started; prints the bytes that were delivered.
pub(crate) fn run(rate: &str) -> Result<(), Failure> {
    let address = |member: usize| SocketAddr::from(([127, 0, 0, member as u8 + 2], PORT));
    let run = Run::new(1, Rate::from_bits_per_sec(rate.parse()?), Duration::from_millis(1), address);
    let (stop, clock) = (Stop::new()?, Clock::starting_now());
    thread::scope(|scope| {
        let mut threads = Vec::new();
        // Receivers first, so that all of them hear the beginning.
        for member in (0..=RECEIVERS).rev() {
            let (run, stop) = (run.clone(), stop.clone());
            threads.push(scope.spawn(move || {
                let plug = Plug::Udp(run.address(member));
                let machine = Lossy(Member::new(&run, member));
                let mut runtime = Runtime::open(Box::new(machine), &[plug], clock)?;
                if member == 0 {
                    thread::sleep(Span::from_millis(200));
                }
                runtime.run(None, &stop)?;
                if std::env::var_os("NORM_FIGURES").is_some() {
                    runtime.machine().counters(&mut |name, figure| eprintln!("{member} {name} {figure}"));
                    runtime.counters(&mut |name, figure| eprintln!("{member} {name} {figure}"));
                }
                Ok::<_, Failure>(())
            }));
        }
        let end = Moment::now() + LIMIT;
        while !run.is_over() && Moment::now() < end {
            thread::sleep(Span::from_millis(5));
        }
        stop.request();
        for thread in threads {
            thread.join().map_err(|_| "a member broke down")??;
        }
        println!("{}", run.delivered());
        if run.is_over() { Ok(()) } else { Err(format!("only {} bytes arrived", run.delivered()).into()) }
    })
}

/// A member that loses packets that come.
struct Lossy(Member);

impl Machine for Lossy {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        if !self.0.loses() {
            self.0.handle(now, port, item);
        }
    }

    fn wake(&mut self, now: Instant) {
        self.0.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.0.poll(now)
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.deadline()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.0.counters(report);
    }
}
