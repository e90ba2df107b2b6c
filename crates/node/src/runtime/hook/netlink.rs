//! Netlink messages (RFC 3549, netlink(7)): requests, and the parts of requests and of the kernel's reports.
//!
//! ```text
//!  length32 | kind16 | flags16 | sequence32 | sender32 | body | attributes
//!  attribute: length16 | kind16 | value | padding to 4 bytes        all in the machine's byte order
//! ```

use std::io;
use std::os::fd::OwnedFd;

use nix::sys::socket::{AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, socket};
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// Length of a message's header, and of an attribute's, in bytes.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
/// Kind of the kernel's answer to a request: an error's number, 0 for none.
const ERROR: u16 = 2;
/// Flags of a request that is to be answered; below, those of a request that makes or replaces something.
const ASK: u16 = 1 | 4;
pub(super) const REPLACE: u16 = 0x100 | 0x400;

/// A socket to one of the kernel's subsystems.
pub(super) fn open(protocol: SockProtocol) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
    bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &NetlinkAddr::new(0, 0))?;
    Ok(socket)
}

/// A request to the kernel.
pub(super) struct Request(Vec<u8>);

impl Request {
    pub(super) fn new(kind: u16, flags: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(ASK | flags).to_ne_bytes());
        bytes.extend_from_slice(body);
        Self(bytes)
    }

    /// Adds an attribute, of at most 60 KiB.
    pub(super) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend_from_slice(&((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Sends it and reads the answer, which the kernel has queued by the time the send returns.
    pub(super) fn ask(mut self, socket: &OwnedFd) -> io::Result<()> {
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        send(socket, &self.0, SendFlags::empty())?;
        let mut answer = [0; 4096];
        loop {
            let (len, _) = recv(socket, &mut answer[..], RecvFlags::empty())?;
            let error = messages(&answer[..len]).find(|&(kind, _)| kind == ERROR);
            match error.and_then(|(_, body)| body.first_chunk()) {
                Some([0, 0, 0, 0]) => return Ok(()),
                Some(&number) => {
                    return Err(io::Error::from_raw_os_error(i32::from_ne_bytes(number).saturating_neg()));
                }
                // What the kernel reports in between.
                None => {}
            }
        }
    }
}

/// The messages of a datagram: kind and body of each.
pub(super) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        let message = bytes.get(..len).filter(|_| len >= HEADER)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([message[4], message[5]]), &message[HEADER..]))
    })
}

/// The attributes of a message: kind and value of each.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// The upper two bits of a kind are flags.
    const KIND: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let &[l0, l1, k0, k1] = bytes.first_chunk()?;
        let len = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = bytes.get(ATTRIBUTE..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([k0, k1]) & KIND, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_as_it_was_written() {
        let mut request =
            Request::new(7, REPLACE, &[1, 2, 3, 4]).with(1, b"abcde").with(2, &[]).with(3, b"xy");
        let len = request.0.len() as u32;
        request.0[..4].copy_from_slice(&len.to_ne_bytes());
        let [(7, body)] = messages(&request.0).collect::<Vec<_>>()[..] else { panic!("one message") };
        assert_eq!(body[..4], [1, 2, 3, 4]);
        let found: Vec<_> = attributes(&body[4..]).collect();
        assert_eq!(found, [(1, &b"abcde"[..]), (2, b""), (3, b"xy")]);
    }

    #[test]
    fn lengths_that_are_wrong_end_the_reading() {
        for len in [0u32, 3, 15, 17, u32::MAX] {
            let mut bytes = vec![0; 16];
            bytes[..4].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(messages(&bytes).count(), 0, "{len}");
        }
        for len in [0u16, 3, 9, u16::MAX] {
            let mut bytes = vec![0; 8];
            bytes[..2].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(attributes(&bytes).count(), 0, "{len}");
        }
        assert_eq!((messages(&[1, 2]).count(), attributes(&[8]).count()), (0, 0));
    }
}
