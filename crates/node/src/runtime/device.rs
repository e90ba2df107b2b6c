//! A packet port on a TUN device, a frame port on a TAP device.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, Ordering};

use hopcast_core::plug::DevicePlug;
use hopcast_core::{Buffer, Frame, Instant, Item};
use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use super::command::ip;
use super::counters::Counters;
use super::drops::Drops;
use super::error::PlugError;
use super::host_groups::HostGroups;
use super::poller::{Poller, Token};
use super::socket::Socket;
use crate::Clock;

/// Maximum number of packets read in one turn. Chosen; more delays the other sockets, fewer costs turns.
const MAX_PER_TURN: usize = 64;
/// Maximum length of a frame: the longest IP packet and Ethernet's header, in bytes.
const MAX_FRAME: usize = 65_535 + 14;
/// Maximum length of an interface's name, in bytes: Linux' `IFNAMSIZ` without the zero at its end.
pub(super) const MAX_NAME: usize = 15;

/// The highest descriptor of a device of this process.
static HIGHEST_DEVICE: AtomicI32 = AtomicI32::new(-1);

/// Moves a connection to a descriptor above those of all devices. If this process is killed, the kernel closes the
/// highest descriptor first, so that the connection is reset before a device disappears with its address and routes;
/// without these no reset would reach a program whose connection uses them.
pub(super) fn close_before_devices<F: AsFd + From<OwnedFd>>(connection: F) -> F {
    let devices = HIGHEST_DEVICE.load(Ordering::Relaxed);
    if connection.as_fd().as_raw_fd() > devices {
        return connection;
    }
    // Without a spare descriptor it keeps its own.
    fcntl_dupfd_cloexec(&connection, devices + 1).map_or(connection, F::from)
}

/// A TUN or TAP device. Dropping it removes the device, its addresses and its routes, unless it was there before.
pub(super) struct Device {
    device: SyncDevice,
    kind: Kind,
    memory: Vec<u8>,
    /// Number of packets that this turn may still read.
    allowed: usize,
    name: String,
    /// Whether the device was deleted.
    gone: bool,
    /// Length of the longest packet that it takes, as it was set last.
    mtu: u32,
    /// The groups that the host wants on it, of which the machine is told.
    groups: Option<HostGroups>,
    drops: Drops,
    /// The drops of one that was there before, until it was opened.
    dropped_before: u64,
    counters: Counters,
}

/// The kind of a device.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// IP packets.
    Tun,
    /// Ethernet frames; the host's end has this address.
    Tap([u8; 6]),
}

impl Device {
    pub(super) fn open(
        (poller, plug, clock): (&Rc<Poller>, usize, Clock),
        kind: Kind,
        config: &DevicePlug,
    ) -> Result<Self, PlugError> {
        let DevicePlug { name, addresses, routes, mtu, reports_memberships } = config;
        if name.is_empty() || name.len() > MAX_NAME || name.contains(|c: char| c == '/' || c.is_whitespace())
        {
            return Err(PlugError::InterfaceName);
        }
        // Without offload: packets from the host are complete, as on a wire.
        let builder = DeviceBuilder::new().name(name).inherit_enable_state();
        let builder = match kind {
            Kind::Tun => builder,
            // One that is there already keeps its routes and neighbours, which go where an address is set anew.
            Kind::Tap(address) if mac(name)? == Some(address) => builder.layer(Layer::L2),
            Kind::Tap(address) => builder.layer(Layer::L2).mac_addr(address),
        };
        let device = builder.build_sync()?;
        device.set_nonblocking(true)?;
        HIGHEST_DEVICE.fetch_max(device.as_raw_fd(), Ordering::Relaxed);
        ip(&format!("link set dev {name} mtu {mtu} up"))?;
        for (address, prefix) in addresses {
            let at_once = if address.is_ipv6() { "nodad" } else { "" };
            ip(&format!("address replace {address}/{prefix} dev {name} {at_once}"))?;
        }
        for (network, prefix) in routes {
            let version = if network.is_ipv6() { "-6" } else { "-4" };
            // The kernel has a route of all IPv6 groups for each device in its local table, which it looks into first.
            let table = if network.is_ipv6() && network.is_multicast() { " table local" } else { "" };
            // `add` never replaces a route of the host, which would be lost with the device.
            ip(&format!("{version} route add {network}/{prefix} dev {name}{table}"))?;
        }
        poller.add(&device, Token { plug, key: 0 }, EventFlags::IN)?;
        let drops = Drops::of_interface(name);
        let dropped_before = drops.count();
        Ok(Self {
            device,
            kind,
            memory: vec![0; MAX_FRAME],
            allowed: 0,
            name: name.clone(),
            gone: false,
            mtu: *mtu,
            groups: reports_memberships.then(|| HostGroups::of(name, clock)).transpose()?,
            drops,
            dropped_before,
            counters: Counters::default(),
        })
    }
}

impl Device {
    /// Sets the MTU, if the machine's has changed. What somebody else has set meanwhile stays until then.
    fn set_mtu(&mut self, mtu: u32) {
        if mtu == self.mtu {
            return;
        }
        self.mtu = mtu;
        let is_set = u16::try_from(mtu).is_ok_and(|mtu| self.device.set_mtu(mtu).is_ok());
        self.counters.mtu_refused += u64::from(!is_set);
    }
}

/// The Ethernet address of an interface; `None` if there is none of this name.
fn mac(interface: &str) -> io::Result<Option<[u8; 6]>> {
    let mut all = nix::ifaddrs::getifaddrs()?.filter(|found| found.interface_name == interface);
    Ok(all.find_map(|found| found.address?.as_link_addr()?.addr()))
}

impl Socket for Device {
    fn ready(&mut self, _key: u64, _flags: EventFlags) {
        self.allowed = MAX_PER_TURN;
    }

    fn next(&mut self) -> Option<Item> {
        if let Some(change) = self.groups.as_mut().and_then(HostGroups::next) {
            return Some(Item::Membership(change));
        }
        self.allowed = self.allowed.checked_sub(1)?;
        self.counters.syscalls += 1;
        match self.device.recv(&mut self.memory) {
            Ok(len) => {
                self.counters.received += 1;
                self.counters.received_bytes += len as u64;
                let bytes = Buffer::copy_from(&self.memory[..len]);
                Some(match self.kind {
                    Kind::Tun => Item::Packet(bytes),
                    Kind::Tap(_) => Item::Frame(Frame::new(bytes)),
                })
            }
            Err(error) => {
                self.allowed = 0;
                self.counters.receive_errors += u64::from(error.kind() != io::ErrorKind::WouldBlock);
                // The driver's answer once the device is deleted.
                self.gone = error.raw_os_error() == Some(Errno::BADFD.raw_os_error());
                None
            }
        }
    }

    fn give(&mut self, item: Item) {
        let bytes = match (self.kind, item) {
            (Kind::Tun, Item::Packet(packet)) => packet,
            (Kind::Tap(_), Item::Frame(frame)) => frame.bytes,
            // A TAP reports no status of frames.
            (Kind::Tap(_), Item::ReportFrameStatus) => return,
            (Kind::Tap(_), Item::Mtu(mtu)) => return self.set_mtu(mtu),
            _ => {
                self.counters.wrong_items += 1;
                return;
            }
        };
        self.counters.syscalls += 1;
        // The device takes a packet at once, or drops and counts it.
        match self.device.send(&bytes) {
            Ok(_) => {
                self.counters.sent += 1;
                self.counters.sent_bytes += bytes.len() as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.counters.send_full += 1;
                self.counters.send_dropped += 1;
            }
            Err(_) => self.counters.send_refused += 1,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.groups.as_ref().map(HostGroups::deadline)
    }

    fn gone(&self) -> Option<String> {
        self.gone.then(|| format!("the device `{}`", self.name))
    }

    fn counters(&self) -> Counters {
        let device_dropped = self.drops.count().saturating_sub(self.dropped_before);
        Counters { device_dropped, ..self.counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_of_a_connection_is_higher_than_those_of_devices() {
        let devices = HIGHEST_DEVICE.fetch_max(200, Ordering::Relaxed).max(200);
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let moved = close_before_devices(socket);
        assert!(moved.as_raw_fd() > devices);
        assert_eq!(moved.local_addr().unwrap(), address);
        let number = moved.as_raw_fd();
        assert_eq!(close_before_devices(moved).as_raw_fd(), number);
    }
}
