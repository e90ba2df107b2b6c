//! A frame port: the frames of one EtherType on one interface, or all of an interface that the host gives up.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

use hopcast_core::plug::FramesPlug;
use hopcast_core::{Buffer, Frame, Item};
use hopcast_wire::ethernet::HEADER;
use hopcast_wire::vlan::TAG;
use nix::libc;
use nix::sys::socket::sockopt::SetStruct;
use nix::sys::socket::{
    ControlMessageOwned, LinkAddr, MsgFlags, recvmsg, setsockopt, sockopt as nix_sockopt,
};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RawProtocol, RecvFlags, SendFlags, SocketFlags, SocketType, eth, sockopt,
};

use super::counters::Counters;
use super::error::PlugError;
use super::poller::{Poller, Token};
use super::socket::Socket;
use super::taken::{AUXILIARY, Taken, put_tag_back, report_tags, tag_of};

/// Maximum number of frames read in one turn. Chosen; more delays the other sockets, fewer costs turns.
const MAX_PER_TURN: usize = 64;
/// Maximum length of a frame, in bytes: that of a loopback interface.
const MAX_FRAME: usize = 65_536 + HEADER;
/// Size of the kernel's buffer of received frames, in bytes. Chosen; with less, frames are lost while another process
/// has the processor.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Maximum number of frames that wait for room in the kernel. Chosen: it bounds memory and delay.
const MAX_WAITING: usize = 256;

/// A packet socket.
///
/// Frames that this host sends are not received: a driver that takes a frame does not show that the medium has carried
/// it. But a medium in user space may return a frame to its sender, as a station's `echo` does in virtual time. On a
/// promiscuous plug such a frame is received like others, marked as overheard.
pub(super) struct Frames {
    socket: OwnedFd,
    interface: String,
    /// Whether the interface was deleted.
    gone: bool,
    poller: Rc<Poller>,
    token: Token,
    /// The interface's address.
    address: [u8; 6],
    memory: Vec<u8>,
    /// Buffer for the count of dropped frames, and for what is said beside a frame.
    control: Vec<u8>,
    allowed: usize,
    waiting: VecDeque<Buffer>,
    blocked: bool,
    counters: Counters,
    /// The frames that are received.
    wanted: Wanted,
    /// Keeps the frames from the kernel.
    _taken: Option<Taken>,
}

/// The frames that are received.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Those to this station, and to groups.
    Own,
    /// Those to others too, which are marked as overheard.
    Overheard,
    /// All, with their tags; none is marked.
    All,
}

impl Frames {
    /// The frames of one EtherType.
    pub(super) fn open(poller: &Rc<Poller>, plug: usize, config: &FramesPlug) -> Result<Self, PlugError> {
        let ether_type = RawProtocol::new(config.ether_type.to_be().into());
        let ether_type = ether_type.ok_or(PlugError::EtherType)?;
        let wanted = if config.promiscuous { Wanted::Overheard } else { Wanted::Own };
        Self::bind(poller, plug, &config.interface, (Protocol::from_raw(ether_type), wanted))
    }

    /// All frames of an interface, which the host gives up.
    pub(super) fn take(poller: &Rc<Poller>, plug: usize, interface: &str) -> Result<Self, PlugError> {
        Self::bind(poller, plug, interface, (eth::ALL, Wanted::All))
    }

    fn bind(
        poller: &Rc<Poller>,
        plug: usize,
        name: &str,
        (protocol, wanted): (Protocol, Wanted),
    ) -> Result<Self, PlugError> {
        let interface = link(name)?;
        let taken = (wanted == Wanted::All).then(|| Taken::new(name)).transpose()?;
        let socket = packet_socket(protocol, RECEIVE_BUFFER)?;
        if wanted == Wanted::All {
            report_tags(&socket, name)?;
        }
        // The address names no EtherType, so the socket keeps its own.
        nix::sys::socket::bind(socket.as_raw_fd(), &interface).map_err(io::Error::from)?;
        if wanted != Wanted::Own {
            hear_all(&socket, name, &interface)?;
        }
        // Frames of other interfaces, received before the socket was bound.
        discard_waiting(&socket);
        let token = Token { plug, key: 0 };
        poller.add(&socket, token, EventFlags::IN)?;
        Ok(Self {
            socket,
            interface: name.to_owned(),
            gone: false,
            poller: Rc::clone(poller),
            token,
            address: interface.addr().unwrap_or_default(),
            memory: vec![0; TAG + MAX_FRAME],
            control: nix::cmsg_space!(u32, [u8; AUXILIARY]),
            allowed: 0,
            waiting: VecDeque::new(),
            blocked: false,
            counters: Counters::default(),
            wanted,
            _taken: taken,
        })
    }

    /// Receives a frame; returns its place in the memory.
    fn receive(&mut self) -> Result<Range<usize>, Errno> {
        let mut memory = [IoSliceMut::new(&mut self.memory[TAG..])];
        let socket = self.socket.as_raw_fd();
        let frame = recvmsg::<()>(socket, &mut memory, Some(&mut self.control[..]), MsgFlags::empty())
            .map_err(|error| Errno::from_raw_os_error(error as i32))?;
        let mut tag = None;
        for control in frame.cmsgs().into_iter().flatten() {
            match control {
                ControlMessageOwned::RxqOvfl(dropped) => self.counters.device_dropped = dropped.into(),
                control => tag = tag.or_else(|| tag_of(&control)),
            }
        }
        let end = TAG + frame.bytes;
        match tag {
            Some(tag) if frame.bytes >= HEADER => {
                put_tag_back(&mut self.memory, tag);
                Ok(0..end)
            }
            _ => Ok(TAG..end),
        }
    }

    fn is_ours(&self, frame: &[u8]) -> bool {
        let group = frame[0] & 1 != 0;
        group || frame[..6] == self.address
    }

    fn set_blocked(&mut self, blocked: bool) {
        let flags = if blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        self.counters.syscalls += 1;
        self.blocked = blocked && self.poller.modify(&self.socket, self.token, flags).is_ok();
    }
}

impl Socket for Frames {
    fn ready(&mut self, _key: u64, flags: EventFlags) {
        if flags.intersects(EventFlags::IN | EventFlags::ERR) {
            self.allowed = MAX_PER_TURN;
        }
        if self.blocked && flags.intersects(EventFlags::OUT | EventFlags::ERR) {
            self.set_blocked(false);
        }
    }

    fn next(&mut self) -> Option<Item> {
        loop {
            self.allowed = self.allowed.checked_sub(1)?;
            self.counters.syscalls += 1;
            match self.receive() {
                Ok(place) if place.len() >= HEADER => {
                    let bytes = &self.memory[place];
                    let overheard = self.wanted != Wanted::All && !self.is_ours(bytes);
                    // Interfaces without hardware receive all frames in any mode.
                    if overheard && self.wanted == Wanted::Own {
                        continue;
                    }
                    self.counters.received += 1;
                    self.counters.received_bytes += bytes.len() as u64;
                    return Some(Item::Frame(Frame { overheard, ..Frame::new(Buffer::copy_from(bytes)) }));
                }
                Ok(_) => self.counters.receive_errors += 1,
                Err(error) => {
                    self.allowed = 0;
                    self.counters.receive_errors += u64::from(error != Errno::AGAIN);
                    // An interface that is only down comes up again.
                    self.gone |= error == Errno::NETDOWN && link(&self.interface).is_err();
                }
            }
        }
    }

    fn give(&mut self, item: Item) {
        let bytes = match item {
            Item::Frame(Frame { bytes, .. }) => bytes,
            // A packet socket reports no status of frames.
            Item::ReportFrameStatus => return,
            _ => {
                self.counters.wrong_items += 1;
                return;
            }
        };
        self.waiting.push_back(bytes);
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_front();
            self.counters.send_dropped += 1;
        }
        self.flush();
    }

    fn flush(&mut self) {
        while !self.blocked
            && let Some(frame) = self.waiting.front()
        {
            self.counters.syscalls += 1;
            match rustix::net::send(&self.socket, frame, SendFlags::empty()) {
                Ok(_) => {
                    self.counters.sent += 1;
                    self.counters.sent_bytes += frame.len() as u64;
                }
                // NOBUFS: the interface's queue is full, which gives no event; the next frame tries again.
                Err(Errno::AGAIN) => {
                    self.counters.send_full += 1;
                    return self.set_blocked(true);
                }
                Err(Errno::NOBUFS) => {
                    self.counters.send_full += 1;
                    self.counters.send_dropped += 1;
                }
                Err(_) => self.counters.send_refused += 1,
            }
            self.waiting.pop_front();
        }
    }

    fn gone(&self) -> Option<String> {
        self.gone.then(|| format!("the interface `{}`", self.interface))
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// A packet socket (packet(7)) for frames of the interfaces of this network namespace, with a kernel buffer of `buffer`
/// bytes. Each frame comes with the number of frames dropped so far (`SO_RXQ_OVFL`).
///
/// # Errors
/// The operating system's.
pub fn packet_socket(protocol: Protocol, buffer: usize) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, Some(protocol))?;
    if sockopt::set_socket_recv_buffer_size_force(&socket, buffer).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, buffer)?;
    }
    setsockopt(&socket, nix_sockopt::RxqOvfl, &1)?;
    Ok(socket)
}

/// Discards the frames that wait at a packet socket: those received before it was bound or filtered.
pub fn discard_waiting(socket: &OwnedFd) {
    while rustix::net::recv(socket, &mut [0; 1], RecvFlags::empty()).is_ok() {}
}

/// The packet-level address of an interface.
pub(crate) fn link(name: &str) -> Result<LinkAddr, PlugError> {
    let all = nix::ifaddrs::getifaddrs().map_err(io::Error::from)?;
    let mut links = all.filter(|it| it.interface_name == name);
    let found = links.find_map(|it| it.address?.as_link_addr().copied());
    found.ok_or_else(|| PlugError::NoInterface(name.to_owned()))
}

/// Has an interface receive all frames for as long as the socket is open, also if this process is killed.
fn hear_all(socket: &OwnedFd, name: &str, interface: &LinkAddr) -> Result<(), PlugError> {
    let membership = libc::packet_mreq {
        mr_ifindex: interface.ifindex().try_into().map_err(|_| PlugError::NoInterface(name.to_owned()))?,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    setsockopt(socket, Membership, &membership).map_err(|error| PlugError::Setting {
        interface: name.to_owned(),
        setting: "its promiscuous mode",
        source: error.into(),
    })
}

/// `PACKET_ADD_MEMBERSHIP` of packet(7).
#[derive(Clone, Copy)]
struct Membership;
nix::setsockopt_impl!(
    Membership,
    libc::SOL_PACKET,
    libc::PACKET_ADD_MEMBERSHIP,
    libc::packet_mreq,
    SetStruct<'_, libc::packet_mreq>
);
