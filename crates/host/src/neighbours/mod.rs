//! Neighbours: the Ethernet addresses of the stations on an interface's link, resolved when they are needed: with ARP
//! (RFC 826) for IPv4 and with neighbour discovery (RFC 4861) for IPv6.
//!
//! A neighbour that a packet is to be sent to gets an entry, whose states are those of RFC 4861 section 7.3.2 for both
//! versions (for ARP, unicast polls are one of the methods of RFC 1122 section 2.3.2.1 to find out-of-date entries):
//!
//! ```text
//!            packet                 answer                   time
//!   nothing ────────► incomplete ──────────► reachable ────────────► stale
//!      ▲                  │ no answer             ▲                    │ packet
//!      ├──────────────────┘                       │ answer             ▼
//!      └────────────────────────────────────── probe ◄──────────── delay
//!                       no answer                        time
//! ```
//!
//! While an entry is incomplete its packets wait; if nobody answers, their senders receive ICMP's *address
//! unreachable*. In all other states they are sent at once. Only entries that are incomplete, in delay or in probe have
//! timers, and these states end: a host that sends nothing is never woken.
//!
//! | module | what |
//! |---|---|
//! | [`config`] | times and limits |
//! | `table` | the entries of one interface, and their eviction |
//! | `entry` | an entry: its state, and its changes by received packets |
//! | `incomplete`, `reachable`, `probe` | the states with data of their own |
//! | `asking` | the host: packets to neighbours, requests, timeouts |
//! | `arp`, `nd` | the host: packets of either protocol |
//!
//! # Attackers on the link
//!
//! An entry is made only for an address that a packet is sent to, or for one that requested this host's; an unsolicited
//! answer makes none. The table has a maximum; where it is full, an entry that was never used to send is evicted first,
//! and one that no packet is sent to never replaces one that is in use. Neither protocol is authenticated: any station
//! on the link can claim an address, as on any Ethernet; claims are counted (`neighbours_changed`,
//! `address_conflicts`).
//!
//! # Scope and departures
//!
//! - Requests are sent from the interface's address of the version, or else the host's first, and IPv6's interfaces
//!   have no link-local addresses. Requests for any address of the host are answered on every interface.
//! - No router discovery, no prefixes, no redirects, no autoconfiguration, no duplicate address detection: addresses
//!   and routes come with the configuration. A conflict is counted; the address is neither given up nor defended (RFC
//!   5227 section 2.4).
//! - A host sends no unsolicited announcements: its Ethernet addresses never change.
//! - No hints of reachability from the layers above (RFC 4861 section 7.3.1): an entry in use is probed once for each
//!   reachable time.
//! - A solicitation without an Ethernet address is answered to the station that sent the frame.
//! - All nodes and the solicited-node groups are listened to, and not reported by MLD.

mod arp;
mod asking;
pub mod config;
mod counters;
mod entry;
mod incomplete;
mod nd;
mod probe;
mod reachable;
mod table;

use std::collections::VecDeque;
use std::net::IpAddr;

use hopcast_core::{Agenda, Buffer, Instant, Stream};
use hopcast_wire::ethernet::Mac;

use config::NeighbourConfig;
use counters::Counters;
pub(crate) use entry::Heard;
use entry::{Entry, State};
use probe::Probe;
use table::Table;

/// The neighbours of a host.
#[derive(Debug)]
pub(crate) struct Neighbours {
    config: NeighbourConfig,
    random: Stream,
    /// The entries of each interface.
    tables: Vec<Table>,
    agenda: Agenda<Key>,
    pub(crate) counters: Counters,
}

/// The key of an entry: the interface, and the neighbour's address.
type Key = (u32, IpAddr);

/// The treatment of a packet to a neighbour.
pub(crate) enum Sending {
    /// Send it there.
    Now(Mac, Buffer),
    /// It waits in the entry. `ask`: the first request is to be sent.
    Waits { ask: bool },
    /// Drop it: there is no room for another neighbour.
    Refused(Buffer),
}

/// An action that is due.
pub(crate) enum Due {
    /// Send another request: to all stations, or to the neighbour's last known one.
    Ask(Key, Option<Mac>),
    /// Send an ICMP error to the senders of these packets: there is no such neighbour.
    Failed(VecDeque<Buffer>),
}

impl Neighbours {
    pub(crate) fn new(config: NeighbourConfig, random: Stream) -> Self {
        let (tables, agenda) = (Vec::new(), Agenda::new());
        Self { config: config.sane(), random, tables, agenda, counters: Counters::default() }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.agenda.next()
    }

    /// Takes a packet to a neighbour.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, key: Key, packet: Buffer) -> Sending {
        let Some(entry) = table_of(&mut self.tables, key.0).get_mut(key.1) else {
            return self.begin(now, key, packet);
        };
        entry.last_used = Some(now);
        match &mut entry.state {
            State::Incomplete(incomplete) => {
                if let Some(dropped) = incomplete.wait(packet, self.config.queue) {
                    self.counters.neighbour_queue_dropped += 1;
                    dropped.recycle();
                }
                Sending::Waits { ask: false }
            }
            state => {
                if state.is_stale(now) {
                    *state = State::Delay;
                    self.agenda.set(key, Some(now + self.config.delay));
                }
                Sending::Now(entry.mac, packet)
            }
        }
    }

    /// Takes the first packet to a neighbour without an entry.
    #[cold]
    fn begin(&mut self, now: Instant, key: Key, packet: Buffer) -> Sending {
        let table = table_of(&mut self.tables, key.0);
        if !table.make_room(self.config.entries, true, &mut self.counters) {
            return Sending::Refused(packet);
        }
        table.insert(key.1, Entry::incomplete(now, packet));
        self.agenda.set(key, Some(now + self.config.interval));
        Sending::Waits { ask: true }
    }

    /// Updates a neighbour's entry with the Ethernet address of a received packet. Returns the packets that waited for
    /// it.
    pub(crate) fn heard(&mut self, now: Instant, key: Key, mac: Mac, heard: Heard) -> VecDeque<Buffer> {
        let table = table_of(&mut self.tables, key.0);
        let reachable_time = table.reachable_time.at(now, self.config.reachable, &mut self.random);
        let Some(entry) = table.get_mut(key.1) else {
            match heard {
                Heard::Asked if table.make_room(self.config.entries, false, &mut self.counters) => {
                    table.insert(key.1, Entry::stale(now, mac));
                }
                Heard::Asked => {}
                Heard::Mentioned | Heard::Answered { .. } => self.counters.neighbours_unasked += 1,
            }
            return VecDeque::new();
        };
        if mac != entry.mac && !matches!(entry.state, State::Incomplete(_)) {
            self.counters.neighbours_changed += 1;
        }
        let Some(next) = entry.next_state(now, mac, heard, reachable_time) else { return VecDeque::new() };
        let waiting = entry.go_to(next);
        if !waiting.is_empty() {
            self.counters.neighbours_resolved += 1;
            if entry.state.is_stale(now) {
                // The packets that waited are its first use.
                entry.state = State::Delay;
            }
        }
        let deadline = matches!(entry.state, State::Delay).then(|| now + self.config.delay);
        self.agenda.set(key, deadline);
        waiting
    }

    /// Whether a request to a neighbour is outstanding.
    pub(crate) fn is_asked(&self, key: Key) -> bool {
        let entry = self.tables.get(key.0 as usize).and_then(|table| table.get(key.1));
        entry.is_some_and(|entry| matches!(entry.state, State::Incomplete(_) | State::Probe(_)))
    }

    /// The Ethernet address of a neighbour, if it is known.
    pub(crate) fn mac(&self, key: Key) -> Option<Mac> {
        let entry = self.tables.get(key.0 as usize).and_then(|table| table.get(key.1))?;
        (!matches!(entry.state, State::Incomplete(_))).then_some(entry.mac)
    }

    /// The next action that is due; call until `None`.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<Due> {
        let key = self.agenda.expired(now)?;
        let table = table_of(&mut self.tables, key.0);
        let Some(entry) = table.get_mut(key.1) else { return Some(Due::Failed(VecDeque::new())) };
        let mac = entry.mac;
        let (asked, to) = match &mut entry.state {
            State::Incomplete(incomplete) => (&mut incomplete.asked, None),
            State::Probe(probe) => (&mut probe.asked, Some(mac)),
            state @ (State::Delay | State::Stale | State::Reachable(_)) => {
                *state = State::Probe(Probe { asked: 1 });
                self.agenda.set(key, Some(now + self.config.interval));
                return Some(Due::Ask(key, Some(mac)));
            }
        };
        if *asked < self.config.requests {
            *asked += 1;
            self.agenda.set(key, Some(now + self.config.interval));
            return Some(Due::Ask(key, to));
        }
        match to {
            None => self.counters.neighbours_failed += 1,
            Some(_) => self.counters.neighbours_lost += 1,
        }
        let waiting = entry.take_waiting();
        table.remove(key.1);
        Some(Due::Failed(waiting))
    }
}

fn table_of(tables: &mut Vec<Table>, interface: u32) -> &mut Table {
    let place = interface as usize;
    if tables.len() <= place {
        tables.resize_with(place + 1, Table::default);
    }
    &mut tables[place]
}
