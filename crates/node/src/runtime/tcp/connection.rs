//! One connection, and its bytes that wait.

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
use super::super::device::close_before_devices;
use super::window::{Budget, Window};

/// Waiting pieces are merged up to this length, in bytes, so that their memory is mostly payload. Chosen; longer copies
/// more.
const MERGE_LIMIT: usize = 4096;
/// Maximum number of pieces that one call writes. Chosen; fewer costs system calls, more hardly fits the kernel's
/// buffer.
const SLICES_PER_WRITE: usize = 32;

/// The state of a connection after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It goes on.
    Open,
    /// Both directions have ended.
    Closed,
    /// It failed.
    Failed,
}

/// A connection.
pub(super) struct Connection {
    pub(super) id: StreamId,
    socket: Kernel,
    connecting: bool,
    /// Whether there may be bytes to read, by the last event; below, room to write.
    readable: bool,
    writable: bool,
    /// Whether the peer has ended its direction; bytes before the end may still be unread.
    hung_up: bool,
    /// Whether such bytes are known to be unread.
    held: bool,
    /// Whether the machine has received the end.
    ended: bool,
    /// Number of bytes that the machine may receive.
    credit: u64,
    /// Bytes that wait for room in the kernel, within the machine's grant.
    waiting: VecDeque<Buffer>,
    pub(super) window: Window,
    written: u64,
    /// Whether the machine has finished; below, whether the kernel knows.
    finishing: bool,
    finished: bool,
    /// Whether it is queued for reading; below, for writing.
    reader: bool,
    writer: bool,
}

impl Connection {
    /// A connection that a peer has opened. Its waiting bytes count towards the share of `source`.
    pub(super) fn accepted(id: StreamId, socket: Kernel, budget: &Rc<Budget>, source: IpAddr) -> Self {
        Self {
            id,
            socket: close_before_devices(socket),
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

    /// A connection that is being opened.
    pub(super) fn opened(id: StreamId, socket: Kernel, budget: &Rc<Budget>, source: IpAddr) -> Self {
        Self { connecting: true, ..Self::accepted(id, socket, budget, source) }
    }

    /// Whether it is not yet established.
    pub(super) const fn is_connecting(&self) -> bool {
        self.connecting
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Notes an event.
    pub(super) fn ready(&mut self, flags: EventFlags, up: &mut VecDeque<(StreamId, StreamItem)>) -> Progress {
        if flags.contains(EventFlags::ERR) && !matches!(self.socket.take_error(), Ok(None)) {
            return Progress::Failed;
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
        Progress::Open
    }

    /// Takes bytes of the machine; false if they exceed its grant.
    pub(super) fn write(&mut self, bytes: Buffer) -> bool {
        if self.connecting || self.finishing || !self.window.received(bytes.len()) {
            return false;
        }
        match self.waiting.back_mut() {
            Some(back) if back.len() + bytes.len() <= MERGE_LIMIT => back.append(&bytes),
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

    /// Makes the kernel reset it when this is dropped.
    pub(super) fn reset(&self) {
        // If that fails, it ends as if both directions had finished, which the peer notices too.
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }

    /// Makes the kernel send the rest when this is dropped.
    pub(super) fn release(&self) {
        let _ = self.socket.set_linger(None);
    }

    /// Whether it has to be queued for reading, and is not yet.
    pub(super) fn joins_readers(&mut self) -> bool {
        let wanted = self.credit > 0 || (self.hung_up && !self.held);
        let joins = !self.reader && !self.connecting && self.readable && !self.ended && wanted;
        self.reader |= joins;
        joins
    }

    /// Whether it has to be queued for writing, and is not yet.
    pub(super) fn joins_writers(&mut self) -> bool {
        let has_some = !self.waiting.is_empty() || (self.finishing && !self.finished);
        let joins = !self.writer && !self.connecting && self.writable && has_some;
        self.writer |= joins;
        joins
    }

    /// Delivers received bytes within the credit.
    pub(super) fn read(
        &mut self,
        scratch: &mut [u8],
        up: &mut VecDeque<(StreamId, StreamItem)>,
        counters: &mut Counters,
    ) -> Progress {
        self.reader = false;
        counters.syscalls += 1;
        if self.credit == 0 {
            return self.look_for_end(up);
        }
        let max = usize::try_from(self.credit).unwrap_or(usize::MAX).min(scratch.len());
        match (&self.socket).read(&mut scratch[..max]) {
            Ok(0) => return self.end(up),
            Ok(len) => {
                // A short read has emptied the kernel's buffer, unless the end is still to be read.
                self.readable = len == max || self.hung_up;
                self.held = false;
                self.credit -= len as u64;
                counters.received += 1;
                counters.received_bytes += len as u64;
                up.push_back((self.id, StreamItem::Data(Buffer::copy_from(&scratch[..len]))));
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => self.readable = false,
                io::ErrorKind::Interrupted => {}
                _ => return Progress::Failed,
            },
        }
        Progress::Open
    }

    /// Without credit: delivers the end, which needs none, if no bytes are left before it.
    fn look_for_end(&mut self, up: &mut VecDeque<(StreamId, StreamItem)>) -> Progress {
        match rustix::net::recv(&self.socket, &mut [0_u8; 1][..], RecvFlags::PEEK) {
            Ok((_, 0)) => self.end(up),
            Ok(_) => {
                self.held = true;
                Progress::Open
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Progress::Open,
            Err(_) => Progress::Failed,
        }
    }

    fn end(&mut self, up: &mut VecDeque<(StreamId, StreamItem)>) -> Progress {
        self.ended = true;
        self.readable = false;
        up.push_back((self.id, StreamItem::Finish));
        if self.finished { Progress::Closed } else { Progress::Open }
    }

    /// Writes waiting bytes while the kernel has room.
    pub(super) fn flush(
        &mut self,
        up: &mut VecDeque<(StreamId, StreamItem)>,
        counters: &mut Counters,
    ) -> Progress {
        self.writer = false;
        let before = self.written;
        while self.writable && !self.waiting.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
            let pieces = self.waiting.iter().map(|piece| IoSlice::new(piece));
            let count = slices.iter_mut().zip(pieces).map(|(slot, piece)| *slot = piece).count();
            counters.syscalls += 1;
            match (&self.socket).write_vectored(&slices[..count]) {
                Ok(len) => self.wrote(len),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => self.writable = false,
                    io::ErrorKind::Interrupted => {}
                    _ => return Progress::Failed,
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
                return Progress::Failed;
            }
            self.finished = true;
            if self.ended {
                return Progress::Closed;
            }
        }
        Progress::Open
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
