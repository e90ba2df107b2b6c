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

use super::netlink::{Request, attributes, messages};

/// Size of the kernel's buffer of logged packets, in bytes. Chosen, as that of frames; with less, packets are lost
/// while another process has the processor.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Maximum length of a report: the longest packet, and what is said of it.
const MAX_REPORT: usize = (64 << 10) + 1024;

/// `linux/netfilter/nfnetlink_log.h`: the kinds of messages, of configuration attributes and of a report's.
const REPORT: u16 = 4 << 8;
const CONFIG: u16 = REPORT | 1;
const CONFIG_COMMAND: u16 = 1;
const CONFIG_MODE: u16 = 2;
const CONFIG_MESSAGE_BYTES: u16 = 3;
const CONFIG_THRESHOLD: u16 = 5;
const CONFIG_FLAGS: u16 = 6;
const INDEX_OF_DEVICE: u16 = 4;
const PACKET: u16 = 9;
const SEQUENCE: u16 = 12;
/// Length of `struct nfgenmsg`, with which the body of each begins.
const GENERAL: usize = 4;

/// The receiving end of a log group of netfilter (NFLOG).
pub(super) struct Intake {
    socket: OwnedFd,
    memory: Vec<u8>,
    waiting: VecDeque<Taken>,
    /// The number of the report that is expected next.
    expected: Option<u32>,
    dropped: u64,
}

/// A packet that was taken.
pub(super) struct Taken {
    pub(super) packet: Buffer,
    /// The kernel's index of the device on which it arrived; 0 for none.
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
        // Each at once, numbered, and in a message no longer than it needs.
        let each =
            request().with(CONFIG_THRESHOLD, &1u32.to_be_bytes()).with(CONFIG_FLAGS, &1u16.to_be_bytes());
        each.with(CONFIG_MESSAGE_BYTES, &256u32.to_be_bytes()).ask(&socket)?;
        Ok(Self { socket, memory: vec![0; MAX_REPORT], waiting: VecDeque::new(), expected: None, dropped: 0 })
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
                if let Some(sequence) = report.sequence {
                    let missed = self.expected.map_or(0, |expected| sequence.wrapping_sub(expected));
                    self.dropped += u64::from(missed);
                    self.expected = Some(sequence.wrapping_add(1));
                }
                let packet = report.packet.map(Buffer::copy_from);
                self.waiting.extend(packet.map(|packet| Taken { packet, device: report.device }));
            }
        }
        Ok(self.waiting.pop_front())
    }

    /// Packets that were lost since they were not read in time.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl AsFd for Intake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What the kernel says of a packet.
#[derive(Default)]
struct Report<'a> {
    packet: Option<&'a [u8]>,
    device: u32,
    sequence: Option<u32>,
}

impl<'a> Report<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let mut report = Self::default();
        let number = |value: &[u8]| value.first_chunk().map(|&bytes| u32::from_be_bytes(bytes));
        for (kind, value) in attributes(bytes) {
            match kind {
                PACKET => report.packet = Some(value),
                INDEX_OF_DEVICE => report.device = number(value).unwrap_or(0),
                SEQUENCE => report.sequence = number(value),
                _ => {}
            }
        }
        report
    }
}

/// `NETLINK_NO_ENOBUFS`.
#[derive(Clone, Copy)]
struct KeepReceiving;
nix::setsockopt_impl!(
    KeepReceiving,
    libc::SOL_NETLINK,
    libc::NETLINK_NO_ENOBUFS,
    libc::c_int,
    SetStruct<'_, libc::c_int>
);
