//! One connection, and what of it waits here.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::time::Duration;

use hopcast_core::{Buffer, StreamId, StreamItem};
use rustix::event::epoll::EventFlags;
use rustix::net::RecvFlags;
use socket2::Socket as Kernel;

use super::super::counters::Counters;
use super::super::device::ends_before_devices;
use super::window::{Budget, Window};

/// Small pieces that wait are merged up to so many bytes, so that what they take is what they hold.
const MERGED: usize = 4096;
/// How many pieces one call writes.
const SLICES: usize = 32;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Going {
    /// It goes on.
    On,
    /// Both directions have come to their ends.
    Over,
    /// It broke.
    Failed,
}

/// A connection.
pub(super) struct Connection {
    pub(super) id: StreamId,
    socket: Kernel,
    connecting: bool,
    /// Whether there may be something to read or room to write, by the last event.
    readable: bool,
    writable: bool,
    /// Whether the peer will send no more than what has arrived.
    hung_up: bool,
    /// Whether bytes are known to be before that.
    held: bool,
    /// Whether the end has gone up.
    ended: bool,
    /// How many bytes may go up.
    credit: u64,
    /// What waits for room in the kernel, within the machine's grant.
    waiting: VecDeque<Buffer>,
    pub(super) window: Window,
    written: u64,
    /// Whether the machine has finished, and the kernel has been told.
    finishing: bool,
    finished: bool,
    /// Whether it stands in line to be read from, and written to.
    reader: bool,
    writer: bool,
}

impl Connection {
    /// One that a peer has opened. The memory for what waits is of the share of its source.
    pub(super) fn accepted(id: StreamId, socket: Kernel, budget: &Rc<Budget>, source: IpAddr) -> Self {
        Self {
            id,
            socket: ends_before_devices(socket),
            connecting: false,
            readable: false,
            writable: false,
            hung_up: false,
            held: false,
            ended: false,
            credit: 0,
            waiting: VecDeque::new(),
            window: Window::new(budget, source),
            written: 0,
            finishing: false,
            finished: false,
            reader: false,
            writer: false,
        }
    }

    /// One on its way to a peer.
    pub(super) fn opened(id: StreamId, socket: Kernel, budget: &Rc<Budget>, source: IpAddr) -> Self {
        Self { connecting: true, ..Self::accepted(id, socket, budget, source) }
    }

    /// Whether it does not stand yet.
    pub(super) const fn is_connecting(&self) -> bool {
        self.connecting
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes note of an event.
    pub(super) fn ready(&mut self, flags: EventFlags, up: &mut VecDeque<(StreamId, StreamItem)>) -> Going {
        if flags.contains(EventFlags::ERR) && !matches!(self.socket.take_error(), Ok(None)) {
            return Going::Failed;
        }
        self.readable |= flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP);
        self.hung_up |= flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
        if flags.contains(EventFlags::OUT) {
            self.writable = true;
            if std::mem::take(&mut self.connecting) {
                up.push_back((self.id, StreamItem::Opened));
                up.push_back((self.id, self.window.first_grant()));
            }
        }
        Going::On
    }

    /// Takes bytes of the machine; false if they are more than it was granted.
    pub(super) fn write(&mut self, bytes: Buffer) -> bool {
        if self.connecting || self.finishing || !self.window.received(bytes.len()) {
            return false;
        }
        match self.waiting.back_mut() {
            Some(back) if back.len() + bytes.len() <= MERGED => back.append(&bytes),
            _ if bytes.is_empty() => {}
            _ => self.waiting.push_back(bytes),
        }
        true
    }

    pub(super) fn grant(&mut self, credit: u64) {
        self.credit = self.credit.saturating_add(credit);
    }

    pub(super) fn finish(&mut self) {
        self.finishing = true;
    }

    /// Lets the kernel end it with a reset once this is dropped.
    pub(super) fn reset(&self) {
        // Otherwise it ends as if both ends were done, which the peer finds out too.
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }

    /// Lets the kernel send what it has still to send once this is dropped.
    pub(super) fn release(&self) {
        let _ = self.socket.set_linger(None);
    }

    /// Whether it is to stand in line to be read from, and did not yet.
    pub(super) fn joins_readers(&mut self) -> bool {
        let wanted = self.credit > 0 || (self.hung_up && !self.held);
        let joins = !self.reader && !self.connecting && self.readable && !self.ended && wanted;
        self.reader |= joins;
        joins
    }

    /// Whether it is to stand in line to be written to, and did not yet.
    pub(super) fn joins_writers(&mut self) -> bool {
        let has_some = !self.waiting.is_empty() || (self.finishing && !self.finished);
        let joins = !self.writer && !self.connecting && self.writable && has_some;
        self.writer |= joins;
        joins
    }

    /// Hands up what has arrived, as far as that was granted.
    pub(super) fn read(
        &mut self,
        scratch: &mut [u8],
        up: &mut VecDeque<(StreamId, StreamItem)>,
        counters: &mut Counters,
    ) -> Going {
        self.reader = false;
        counters.syscalls += 1;
        if self.credit == 0 {
            return self.look_for_end(up);
        }
        let most = usize::try_from(self.credit).unwrap_or(usize::MAX).min(scratch.len());
        match (&self.socket).read(&mut scratch[..most]) {
            Ok(0) => return self.end(up),
            Ok(len) => {
                // What is short has emptied the kernel's buffer, unless the end is still to be read.
                self.readable = len == most || self.hung_up;
                self.held = false;
                self.credit -= len as u64;
                counters.received += 1;
                counters.received_bytes += len as u64;
                up.push_back((self.id, StreamItem::Data(Buffer::copy_from(&scratch[..len]))));
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => self.readable = false,
                io::ErrorKind::Interrupted => {}
                _ => return Going::Failed,
            },
        }
        Going::On
    }

    /// Without credit, whether nothing is left but the end, which needs none.
    fn look_for_end(&mut self, up: &mut VecDeque<(StreamId, StreamItem)>) -> Going {
        match rustix::net::recv(&self.socket, &mut [0_u8; 1][..], RecvFlags::PEEK) {
            Ok((_, 0)) => self.end(up),
            Ok(_) => {
                self.held = true;
                Going::On
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Going::On,
            Err(_) => Going::Failed,
        }
    }

    fn end(&mut self, up: &mut VecDeque<(StreamId, StreamItem)>) -> Going {
        self.ended = true;
        self.readable = false;
        up.push_back((self.id, StreamItem::Finish));
        if self.finished { Going::Over } else { Going::On }
    }

    /// Hands the kernel what waits, as far as it has room.
    pub(super) fn flush(
        &mut self,
        up: &mut VecDeque<(StreamId, StreamItem)>,
        counters: &mut Counters,
    ) -> Going {
        self.writer = false;
        let before = self.written;
        while self.writable && !self.waiting.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let pieces = self.waiting.iter().map(|piece| IoSlice::new(piece));
            let count = slices.iter_mut().zip(pieces).map(|(slot, piece)| *slot = piece).count();
            counters.syscalls += 1;
            match (&self.socket).write_vectored(&slices[..count]) {
                Ok(len) => self.wrote(len),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => self.writable = false,
                    io::ErrorKind::Interrupted => {}
                    _ => return Going::Failed,
                },
            }
        }
        let written = self.written - before;
        if written > 0 {
            counters.sent += 1;
            counters.sent_bytes += written;
            up.push_back((self.id, StreamItem::Transmitted(self.written)));
            let credit = self.window.consumed(written as usize).filter(|_| !self.finishing);
            up.extend(credit.map(|credit| (self.id, credit)));
        }
        if self.finishing && !self.finished && self.waiting.is_empty() {
            counters.syscalls += 1;
            if self.socket.shutdown(Shutdown::Write).is_err() {
                return Going::Failed;
            }
            self.finished = true;
            if self.ended {
                return Going::Over;
            }
        }
        Going::On
    }

    fn wrote(&mut self, mut len: usize) {
        self.written += len as u64;
        while let Some(piece) = self.waiting.front_mut() {
            if len < piece.len() {
                piece.advance(len);
                return;
            }
            len -= piece.len();
            self.waiting.pop_front();
        }
    }
}
