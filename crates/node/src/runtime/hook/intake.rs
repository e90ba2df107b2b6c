//! Packets that netfilter logs to this process: copies, of which the rule that logs them drops the original.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hopcast_core::Buffer;
use nix::libc;
use nix::sys::socket::sockopt::SetStruct;
use nix::sys::socket::{SockProtocol, setsockopt};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};

use super::super::drops::Drops;
use super::netlink::{Request, attributes, messages};

/// Size of the kernel's buffer of logged packets, in bytes. Chosen, as that of frames; with less, packets are lost
/// while another process has the processor.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Maximum length of a packet in a report, whose attributes have lengths of 16 bits, header included
/// (`NFULNL_COPY_RANGE_MAX`): of a longer packet this much is logged.
pub(super) const MAX_PACKET: usize = 0xffff - 4;
/// Maximum length of a report: the longest packet, and its other attributes.
const MAX_REPORT: usize = (64 << 10) + 1024;

/// `linux/netfilter/nfnetlink_log.h`: the kinds of messages, of configuration attributes and of a report's.
const REPORT: u16 = 4 << 8;
const CONFIG: u16 = REPORT | 1;
const CONFIG_COMMAND: u16 = 1;
const CONFIG_MODE: u16 = 2;
const CONFIG_MESSAGE_BYTES: u16 = 3;
const CONFIG_THRESHOLD: u16 = 5;
const INDEX_OF_DEVICE: u16 = 4;
const PACKET: u16 = 9;
/// Length of `struct nfgenmsg`, with which the body of each begins.
const GENERAL: usize = 4;

/// The receiving end of a log group of netfilter (NFLOG).
pub(super) struct Intake {
    socket: OwnedFd,
    memory: Vec<u8>,
    waiting: VecDeque<Taken>,
    drops: Drops,
}

/// A packet that was taken.
pub(super) struct Taken {
    pub(super) packet: Buffer,
    /// The kernel's index of the device on which it arrived; 0 if there is none.
    pub(super) device: u32,
}

impl Intake {
    /// Receives what is logged to `group` in the calling thread's network namespace.
    pub(super) fn open(group: u16) -> io::Result<Self> {
        let socket = super::netlink::open(SockProtocol::NetlinkNetFilter)?;
        if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)?;
        }
        // Otherwise a full buffer takes no more until it is empty.
        setsockopt(&socket, KeepReceiving, &1)?;
        let [high, low] = group.to_be_bytes();
        let request = || Request::new(CONFIG, 0, &[libc::AF_UNSPEC as u8, 0, high, low]);
        request().with(CONFIG_COMMAND, &[1]).ask(&socket)?;
        // Whole packets.
        request().with(CONFIG_MODE, &[0, 0, 0xff, 0xff, 2, 0]).ask(&socket)?;
        // Each at once, and in a message no longer than it needs.
        let each = request().with(CONFIG_THRESHOLD, &1u32.to_be_bytes());
        each.with(CONFIG_MESSAGE_BYTES, &256u32.to_be_bytes()).ask(&socket)?;
        let drops = Drops::of_netlink(rustix::fs::fstat(&socket)?.st_ino);
        Ok(Self { socket, memory: vec![0; MAX_REPORT], waiting: VecDeque::new(), drops })
    }

    /// The next packet; `None` if none waits.
    pub(super) fn next(&mut self) -> Result<Option<Taken>, Errno> {
        while self.waiting.is_empty() {
            let len = match recv(&self.socket, &mut self.memory[..], RecvFlags::empty()) {
                Ok((len, _)) => len,
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error),
            };
            for (_, body) in messages(&self.memory[..len]).filter(|&(kind, _)| kind == REPORT) {
                let report = Report::of(body.get(GENERAL..).unwrap_or_default());
                let packet = report.packet.map(Buffer::copy_from);
                self.waiting.extend(packet.map(|packet| Taken { packet, device: report.device }));
            }
        }
        Ok(self.waiting.pop_front())
    }

    /// Number of packets that were lost because they were not read in time, by the kernel's own count: it includes
    /// losses after the last report.
    pub(super) fn dropped(&self) -> u64 {
        self.drops.count()
    }
}

impl AsFd for Intake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The kernel's report of a packet.
#[derive(Default)]
struct Report<'a> {
    packet: Option<&'a [u8]>,
    device: u32,
}

impl<'a> Report<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let mut report = Self::default();
        for (kind, value) in attributes(bytes) {
            match kind {
                PACKET => report.packet = Some(value),
                INDEX_OF_DEVICE => {
                    report.device = value.first_chunk().map_or(0, |&bytes| u32::from_be_bytes(bytes));
                }
                _ => {}
            }
        }
        report
    }
}

/// The socket option `NETLINK_NO_ENOBUFS` (netlink(7)): an overrun is no error of a read.
#[derive(Clone, Copy)]
struct KeepReceiving;
nix::setsockopt_impl!(
    KeepReceiving,
    libc::SOL_NETLINK,
    libc::NETLINK_NO_ENOBUFS,
    libc::c_int,
    SetStruct<'_, libc::c_int>
);
