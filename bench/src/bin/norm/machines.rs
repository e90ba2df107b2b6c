//! The members alone: each datagram is handed to all others, in virtual time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use hopcast_core::{Datagram, Duration, Instant, Item, Machine, Port, Rate};
use rustix::time::{ClockId, clock_gettime};

use crate::member::{Member, PORT, Run};
use crate::{Failure, RECEIVERS, Seen};

/// Rate of the sender, in virtual time.
const RATE: Rate = Rate::from_mbit(1000);
/// One-way delay: that of a local network.
const DELAY: Duration = Duration::from_micros(200);
/// Virtual time after which it should long be over.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a transfer.
pub(crate) fn run(seed: u64) -> Result<Seen, Failure> {
    let address = |member: usize| SocketAddr::from(([10, 0, 0, member as u8 + 1], PORT));
    let run = Run::new(seed, RATE, Duration::ZERO, address);
    let mut network = Network {
        now: Instant::ZERO,
        members: (0..=RECEIVERS).map(|member| Member::new(&run, member)).collect(),
        deadlines: vec![Some(Instant::ZERO); RECEIVERS + 1],
        flying: BTreeMap::new(),
        sent: 0,
    };
    let before = [ClockId::ThreadCPUTime, ClockId::Monotonic].map(seconds);
    while !run.is_over() {
        if !network.step() || network.now > Instant::ZERO + LIMIT {
            return Err(format!("only {} bytes arrived", run.delivered()).into());
        }
    }
    let after = [ClockId::ThreadCPUTime, ClockId::Monotonic].map(seconds);
    Ok(Seen { bytes: run.delivered(), cpu: after[0] - before[0], seconds: after[1] - before[1] })
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

struct Network {
    now: Instant,
    members: Vec<Member>,
    deadlines: Vec<Option<Instant>>,
    /// Datagrams under way to all but their sender, by the time and the order in which they arrive.
    flying: BTreeMap<(Instant, u64), (usize, Datagram)>,
    sent: u64,
}

impl Network {
    /// Goes on to what happens next. False if nothing does.
    fn step(&mut self) -> bool {
        let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
        let due =
            self.deadlines.iter().enumerate().filter_map(|(member, &at)| Some(Reverse((at?, member)))).max();
        match (arrival, due) {
            (Some(at), due) if due.is_none_or(|Reverse((due, _))| at <= due) => {
                self.now = self.now.max(at);
                self.arrive();
                true
            }
            (_, Some(Reverse((at, member)))) => {
                self.now = self.now.max(at);
                self.members[member].wake(self.now);
                self.drain(member);
                true
            }
            (_, None) => false,
        }
    }

    fn arrive(&mut self) {
        let Some((_, (from, datagram))) = self.flying.pop_first() else { return };
        for to in (0..self.members.len()).filter(|&to| to != from) {
            if self.members[to].loses() {
                continue;
            }
            self.members[to].handle(self.now, Port::Below(0), Item::Datagram(datagram.clone()));
            self.drain(to);
        }
        datagram.payload.recycle();
    }

    fn drain(&mut self, member: usize) {
        while let Some((_, item)) = self.members[member].poll(self.now) {
            let Item::Datagram(mut datagram) = item else { continue };
            datagram.remote = datagram.local;
            self.sent += 1;
            self.flying.insert((self.now + DELAY, self.sent), (member, datagram));
        }
        self.deadlines[member] = self.members[member].deadline();
    }
}
