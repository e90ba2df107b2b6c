//! Probes of links (ELP): every node sends one by each interface twice a second, from which its neighbours know that it
//! is there. On a radio it also sends two to each neighbour alone, so that the radio finds the rate at which it
//! reaches that one.

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::BROADCAST;

use super::BatmanV;
use super::throughput::{self, of_radio, units};
use crate::routing::{Due, Event, Link, PRIMARY, Via, jittered};
use crate::window::WINDOW;
use crate::wire::Header;
use crate::wire::batman_v::Elp;

/// Length of a probe, with the four zeros that the kernel sends behind it.
const LENGTH: usize = Elp::LEN + 4;
/// Length of a probe to one neighbour (`BATADV_ELP_MIN_PROBE_SIZE`).
const LENGTH_TO_ONE: usize = 200;
/// Number of probes to one neighbour in an interval (`BATADV_ELP_PROBES_PER_NODE`).
const PROBES_TO_ONE: usize = 2;
/// A neighbour to whom something was sent within this time needs no probe (`BATADV_ELP_PROBE_MAX_TX_DIFF`).
const MAX_IDLE: Duration = Duration::from_millis(100);

/// The probes of an interface.
pub(super) struct Prober {
    seqno: u32,
    /// When to send the next.
    pub(super) at: Option<Instant>,
}

impl Prober {
    pub(super) const fn new(seqno: u32) -> Self {
        Self { seqno, at: None }
    }
}

impl BatmanV {
    /// Sends the probes of an interface, and takes the throughput of each link there anew: also of one whose neighbour
    /// is silent.
    pub(super) fn probe(&mut self, now: Instant, interface: usize) {
        let prober = &mut self.probers[interface];
        let Link { wireless, mtu, throughput, .. } = self.common.links[interface];
        let originator = self.common.links[PRIMARY].mac;
        let interval = u32::try_from(self.config.elp_interval.as_millis()).unwrap_or(u32::MAX);
        let bytes = probe(Elp { originator, seqno: prober.seqno, interval }, LENGTH);
        self.ready.push_back(Due::Packet { interface, destination: BROADCAST, bytes });
        self.common.counters.elps_sent += 1;
        for (via, neighbour) in self.common.originators.neighbours_on_mut(interface) {
            let state = &mut neighbour.state;
            let is_idle = state.last_unicast.is_none_or(|last| last + MAX_IDLE < now);
            if wireless && is_idle && mtu >= LENGTH_TO_ONE {
                for _ in 0..PROBES_TO_ONE {
                    // Nobody reads its number and its interval, which are 0 in the kernel's.
                    let bytes = probe(Elp { originator, seqno: 0, interval: 0 }, LENGTH_TO_ONE);
                    self.ready.push_back(Due::Packet { interface, destination: via.address, bytes });
                    self.common.counters.elp_probes_sent += 1;
                }
            }
            let measured = state.rate.filter(|_| wireless).map(of_radio);
            state.throughput.push(throughput.map(units).or(measured).unwrap_or(throughput::DEFAULT));
        }
        prober.seqno = prober.seqno.wrapping_add(1);
        prober.at = Some(jittered(now, self.config.elp_interval, &mut self.common.random));
    }

    /// Takes a neighbour's probe. Returns whether it is well formed.
    pub(super) fn receive_elp(
        &mut self,
        now: Instant,
        from: Via,
        packet: &[u8],
        events: &mut Vec<Event<'_>>,
    ) -> bool {
        let Ok((elp, _)) = Elp::parse(packet) else { return false };
        let common = &mut self.common;
        common.counters.elps_received += 1;
        if common.is_own(elp.originator) {
            common.counters.elps_of_own += 1;
            return true;
        }
        let is_new = common.originators.neighbour(from).is_none();
        let known = common.originators.neighbours_on(from.interface()).count();
        if is_new && known >= self.config.max_neighbours {
            common.counters.neighbours_refused += 1;
            return true;
        }
        if common.ensure(now, elp.originator, events).is_none() {
            return true;
        }
        if common.originators.path(now, elp.originator, from).is_none() {
            common.counters.neighbours_refused += 1;
            return true;
        }
        let Some(neighbour) = common.originators.neighbour_mut(from) else { return true };
        let ahead = neighbour.state.last_probe.map(|last| elp.seqno.wrapping_sub(last).cast_signed());
        if ahead.is_some_and(|ahead| (1 - WINDOW..=0).contains(&ahead)) {
            common.counters.elps_outdated += 1;
            return true;
        }
        neighbour.state.last_probe = Some(elp.seqno);
        if let Some(candidate) = common.originators.path(now, elp.originator, from) {
            candidate.seen(now);
        }
        true
    }
}

fn probe(elp: Elp, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    elp.emit(&mut bytes);
    bytes
}
