//! A packet port with the forward hook: packets are taken out of the kernel, and the machine's answers are put back.
//!
//! ```text
//!                      prerouting                          routes
//!   interface ──► rule: log and drop ─┐      ┌──────────────────────────────► interface, or this host
//!                                     │      │ ingress: a TUN device
//!                                  intake    ├──────────────────────────────► neighbour, group on interfaces
//!                                     │      │ egress: raw sockets
//!                                     └─► machine
//! ```
//!
//! | module | what |
//! |---|---|
//! | `selection` | the rules that take packets |
//! | `intake` | reads them |
//! | `ingress` | packets for the routes: the kernel decrements the hop limit, and delivers or sends an ICMP error |
//! | `egress` | packets whose egress is named, and the host's own |
//! | `netlink` | the messages of both |

mod egress;
mod ingress;
mod intake;
mod netlink;
mod selection;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;

use hopcast_core::hook::MAX_ANSWERS;
use hopcast_core::plug::HookPlug;
use hopcast_core::{Buffer, Egress, Item, Transit};
use hopcast_wire::ip;
use nix::net::if_::if_nametoindex;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use self::egress::EgressSockets;
use self::ingress::IngressDevice;
use self::intake::{Intake, MAX_PACKET, Taken};
use super::counters::Counters;
use super::error::PlugError;
use super::poller::{Poller, Token};
use super::rules::Rules;
use super::socket::Socket;

/// Maximum number of packets read in one turn. Chosen; more delays the other sockets, fewer costs turns.
const MAX_PER_TURN: usize = 64;
/// The kernel's index of its loopback device in every network namespace.
const LOOPBACK: u32 = 1;

/// A hook into the kernel's forwarding.
pub(super) struct Hooked {
    /// The rules; they are removed before the sockets that they refer to.
    _rules: Rules,
    intake: Intake,
    ingress: IngressDevice,
    /// The sockets for IPv4 and IPv6, of the versions whose packets it takes.
    egress: [Option<EgressSockets>; 2],
    /// The interfaces, with the kernel's indices.
    interfaces: Vec<(String, u32)>,
    allowed: usize,
    /// Number of transits that the machine may still hand over, for the last packet that it received or its last wake.
    answers: u32,
    device: String,
    gone: bool,
    counters: Counters,
}

impl Hooked {
    pub(super) fn open(poller: &Rc<Poller>, plug: usize, config: &HookPlug) -> Result<Self, PlugError> {
        if config.hooks.is_empty() || config.interfaces.is_empty() {
            return Err(PlugError::NothingToTake);
        }
        let interfaces = config.interfaces.iter().map(|name| match if_nametoindex(name.as_str()) {
            Ok(index) => Ok((name.clone(), index)),
            Err(_) => Err(PlugError::NoInterface(name.clone())),
        });
        let interfaces = interfaces.collect::<Result<Vec<_>, _>>()?;
        let mut rules = Rules::claim()?;
        // The table comes first, since the remains of a killed process are found by it.
        rules.filter(&format!("table inet {} {{}}", rules.named().table()))?;
        let intake = Intake::open(rules.named().log_group()).map_err(PlugError::Log)?;
        let device = rules.named().device();
        let ingress = IngressDevice::open(&device)?;
        let mut egress = [None, None];
        for (v6, wanted) in [false, true].into_iter().zip(selection::versions(&config.hooks)) {
            if wanted {
                egress[usize::from(v6)] = Some(EgressSockets::open(v6, &mut rules)?);
            }
        }
        poller.add(&intake, Token { plug, key: 0 }, EventFlags::IN)?;
        let table = selection::table(rules.named(), config, forwards())?;
        rules.fill(&table)?;
        Ok(Self {
            _rules: rules,
            intake,
            ingress,
            egress,
            interfaces,
            allowed: 0,
            answers: 0,
            device,
            gone: false,
            counters: Counters::default(),
        })
    }

    /// The number of the interface with this index. An interface that was made again has another index.
    fn number(&mut self, index: u32) -> Option<u32> {
        let find = |interfaces: &[(String, u32)]| interfaces.iter().position(|&(_, known)| known == index);
        let found = find(&self.interfaces).or_else(|| {
            for (name, known) in &mut self.interfaces {
                *known = if_nametoindex(name.as_str()).unwrap_or(*known);
            }
            find(&self.interfaces)
        });
        found.map(|place| place as u32)
    }

    /// Hands a transit of the machine to the kernel.
    fn put_back(&mut self, transit: Transit) {
        let Transit { mut packet, ingress, egress } = transit;
        let exists = |number: &u32| (*number as usize) < self.interfaces.len();
        let Ok(header) = ip::parse(&packet) else { return self.counters.wrong_items += 1 };
        if !ingress.iter().all(exists) {
            return self.counters.wrong_items += 1;
        }
        let copies = if let Egress::Group(interfaces) = &egress { interfaces.len() as u32 } else { 1 };
        if self.answers < copies {
            return self.counters.hook_excess += 1;
        }
        self.answers -= copies;
        packet.truncate(header.total_len);
        match (egress, ingress) {
            // The kernel would look up a route from the interface on which it arrived.
            (Egress::Routes, Some(_)) if is_group(header.destination) => self.counters.send_refused += 1,
            (Egress::Routes, Some(_)) => {
                let given = self.ingress.give(&packet);
                self.count(given, packet.len());
            }
            (Egress::Routes, None) => self.originate(&packet),
            (Egress::Neighbour { .. } | Egress::Group(_), Some(_))
                if !ip::decrement_hop_limit(&mut packet) =>
            {
                self.counters.hop_limit_exceeded += 1;
            }
            (Egress::Neighbour { interface, address }, _) => {
                let index = self.interfaces.get(interface as usize).map(|&(_, index)| index);
                self.leave(&packet, header.destination, index, |sockets, index| {
                    sockets.send_to_neighbour(&packet, index, address)
                });
            }
            (Egress::Group(interfaces), _) => {
                for &number in &*interfaces {
                    let index = self.interfaces.get(number as usize).map(|&(_, index)| index);
                    self.leave(&packet, header.destination, index, |sockets, index| {
                        sockets.send_to_group(&packet, index, (header.source, header.destination))
                    });
                }
            }
        }
    }

    /// Sends a packet as the host's own.
    fn originate(&mut self, packet: &Buffer) {
        match ip::parse(packet) {
            Ok(header) if header.hop_limit > 0 => {
                let packet = &packet[..header.total_len];
                self.leave(packet, header.destination, Some(0), |sockets, _| {
                    sockets.originate(packet, header.destination)
                });
            }
            _ => self.counters.wrong_items += 1,
        }
    }

    /// Sends a packet by the socket of its IP version, if there is one and the interface is known.
    fn leave(
        &mut self,
        packet: &[u8],
        destination: IpAddr,
        index: Option<u32>,
        send: impl FnOnce(&mut EgressSockets, u32) -> io::Result<()>,
    ) {
        let sockets = self.egress[usize::from(destination.is_ipv6())].as_mut();
        match sockets.zip(index) {
            Some((sockets, index)) => {
                let sent = send(sockets, index);
                self.count(sent, packet.len());
            }
            None => self.counters.send_refused += 1,
        }
    }

    fn count(&mut self, sent: io::Result<()>, len: usize) {
        self.counters.syscalls += 1;
        match sent {
            Ok(()) => {
                self.counters.sent += 1;
                self.counters.sent_bytes += len as u64;
            }
            Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::AGAIN | Errno::NOBUFS) => {
                    self.counters.send_full += 1;
                    self.counters.send_dropped += 1;
                }
                // The answer of a TUN device that is no more.
                Some(Errno::BADFD) => self.gone = true,
                _ => self.counters.send_refused += 1,
            },
        }
    }
}

impl Socket for Hooked {
    fn ready(&mut self, _key: u64, _flags: EventFlags) {
        self.allowed = MAX_PER_TURN;
    }

    fn next(&mut self) -> Option<Item> {
        loop {
            self.allowed = self.allowed.checked_sub(1)?;
            self.counters.syscalls += 1;
            let Taken { packet, device } = match self.intake.next() {
                Ok(Some(taken)) => taken,
                Ok(None) => {
                    self.allowed = 0;
                    return None;
                }
                Err(_) => {
                    self.counters.receive_errors += 1;
                    continue;
                }
            };
            if is_cut(&packet) {
                self.counters.receive_errors += 1;
                continue;
            }
            let ingress = match device {
                LOOPBACK => None,
                device => match self.number(device) {
                    Some(number) => Some(number),
                    None => {
                        self.counters.receive_errors += 1;
                        continue;
                    }
                },
            };
            self.counters.received += 1;
            self.counters.received_bytes += packet.len() as u64;
            self.answers = MAX_ANSWERS;
            return Some(Item::Transit(Transit { packet, ingress, egress: Egress::Routes }));
        }
    }

    fn give(&mut self, item: Item) {
        match item {
            Item::Transit(transit) => self.put_back(transit),
            Item::Packet(packet) => self.originate(&packet),
            _ => self.counters.wrong_items += 1,
        }
    }

    fn answers_others(&mut self) {
        self.answers = MAX_ANSWERS + self.interfaces.len() as u32;
    }

    fn gone(&self) -> Option<String> {
        self.gone.then(|| format!("the device `{}`", self.device))
    }

    fn counters(&self) -> Counters {
        Counters { device_dropped: self.intake.dropped(), ..self.counters }
    }
}

/// Whether the log cut a packet short.
fn is_cut(packet: &[u8]) -> bool {
    packet.len() >= MAX_PACKET && !ip::parse(packet).is_ok_and(|header| header.total_len == packet.len())
}

fn is_group(destination: IpAddr) -> bool {
    destination.is_multicast() || matches!(destination, IpAddr::V4(address) if address.is_broadcast())
}

/// Whether this host forwards IPv4, and IPv6.
fn forwards() -> [bool; 2] {
    ["ipv4/ip_forward", "ipv6/conf/all/forwarding"].map(|key| {
        let setting = fs::read_to_string(format!("/proc/sys/net/{key}"));
        setting.is_ok_and(|setting| setting.trim() != "0")
    })
}
