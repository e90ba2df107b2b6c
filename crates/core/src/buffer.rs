//! A packet's bytes, with room in front for the headers that lower layers add.

use core::cell::RefCell;
use core::fmt;
use core::ops::{Deref, DerefMut};

/// Bytes on their way down or up a stack.
///
/// A payload is written once; each layer [`prepend`](Buffer::prepend)s its header into the headroom on the way
/// down and [`advance`](Buffer::advance)s past it on the way up, so that no layer copies the payload.
///
/// A machine does not get back a buffer that it has handed over. Where a packet ends on a hot path, it is
/// [`recycle`](Buffer::recycle)d, and the buffers that are made next use its memory. Once there are as many pieces of
/// memory as are needed at a time, no buffer allocates.
#[derive(Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: u32,
    /// The mark of these very bytes; 0 if there is none.
    mark: u32,
}

impl Buffer {
    /// Bytes kept free in front of a payload. Chosen: room for Ethernet, IPv6, TCP with options, and a tunnel around
    /// them; with less, headers copy the packet, more is memory.
    pub const HEADROOM: usize = 160;

    /// Bytes of memory that a buffer of `len` bytes takes, with its headroom.
    pub const fn footprint(len: usize) -> usize {
        let needed = Self::HEADROOM + len;
        let [small, large] = CAPACITIES;
        if needed <= small {
            small
        } else if needed <= large {
            large
        } else {
            needed
        }
    }

    /// `len` zero bytes behind the usual headroom.
    pub fn zeroed(len: usize) -> Self {
        let mut bytes = memory(Self::HEADROOM + len);
        bytes.resize(Self::HEADROOM + len, 0);
        Self { bytes, start: Self::HEADROOM as u32, mark: 0 }
    }

    /// A copy of `payload` behind the usual headroom.
    pub fn copy_from(payload: &[u8]) -> Self {
        Self::copy_behind(Self::HEADROOM, payload)
    }

    fn copy_behind(start: usize, payload: &[u8]) -> Self {
        let mut bytes = memory(start + payload.len());
        bytes.resize(start, 0);
        bytes.extend_from_slice(payload);
        Self { bytes, start: start as u32, mark: 0 }
    }

    /// The number that whoever watches has given to these bytes; 0 once they may have changed.
    #[inline]
    pub const fn mark(&self) -> u32 {
        self.mark
    }

    /// Gives the bytes a number, not 0, by which whoever watches knows them again. Copies have it too, until they or
    /// the bytes change.
    #[inline]
    pub const fn set_mark(&mut self, mark: u32) {
        self.mark = mark;
    }

    /// Adds `len` bytes in front and returns them for the caller to fill; what they hold before is unspecified.
    /// Allocates only when the headroom is used up.
    pub fn prepend(&mut self, len: usize) -> &mut [u8] {
        if self.start() < len {
            let mut grown = memory(Self::HEADROOM + len + self.len());
            grown.resize(Self::HEADROOM + len, 0);
            grown.extend_from_slice(self);
            *self = Self { bytes: grown, start: Self::HEADROOM as u32, mark: 0 };
        } else {
            self.start -= len as u32;
        }
        self.mark = 0;
        let start = self.start();
        &mut self.bytes[start..start + len]
    }

    /// Drops `len` bytes from the front; all of them if there are fewer.
    pub fn advance(&mut self, len: usize) {
        self.mark = 0;
        let start = self.start() + len.min(self.len());
        self.start = match u32::try_from(start) {
            Ok(start) => start,
            Err(_) => {
                self.bytes.drain(..start);
                0
            }
        };
    }

    /// Keeps the first `len` bytes; all of them if there are fewer.
    pub fn truncate(&mut self, len: usize) {
        self.mark = 0;
        self.bytes.truncate(self.start() + len);
    }

    /// Appends `bytes` at the end.
    pub fn append(&mut self, bytes: &[u8]) {
        self.mark = 0;
        self.bytes.extend_from_slice(bytes);
    }

    #[inline]
    const fn start(&self) -> usize {
        self.start as usize
    }

    /// Gives its memory to buffers that are made next on this thread.
    pub fn recycle(self) {
        let capacity = self.bytes.capacity();
        let Some(class) = CAPACITIES.iter().position(|&class| class == capacity) else { return };
        KEPT.with_borrow_mut(|kept| {
            if kept[class].len() < MAX_KEPT {
                kept[class].push(self.bytes);
            }
        });
    }
}

/// Capacities of memory that is kept, in bytes: of control packets, and of an Ethernet frame's packet of 1500 bytes
/// with its headroom. Chosen: memory of another capacity is not kept.
const CAPACITIES: [usize; 2] = [512, 1664];

/// Maximum number of pieces of memory of each capacity that are kept on a thread. Chosen: a BATS relay lets go at once
/// of what passed in 50 ms, which is 4096 packets at 1 Gbit/s. With fewer, it would allocate at that rate; a thread
/// keeps 9 MB for nothing at most, 4096 pieces of each capacity.
const MAX_KEPT: usize = 4096;

thread_local! {
    /// The memory of buffers that were recycled.
    static KEPT: RefCell<[Vec<Vec<u8>>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// Memory for `len` bytes, none of which is used.
fn memory(len: usize) -> Vec<u8> {
    let Some(class) = CAPACITIES.iter().position(|&capacity| len <= capacity) else {
        return Vec::with_capacity(len);
    };
    match KEPT.with_borrow_mut(|kept| kept[class].pop()) {
        Some(mut bytes) => {
            bytes.clear();
            bytes
        }
        None => Vec::with_capacity(CAPACITIES[class]),
    }
}

/// A copy with the unused part of the usual headroom: with all of it, the copy of a full frame would be too long for
/// the memory that is kept.
impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self { mark: self.mark, ..Self::copy_behind(self.start().min(Self::HEADROOM), self) }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start()..]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.mark = 0;
        let start = self.start();
        &mut self.bytes[start..]
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Buffer {}

impl From<&[u8]> for Buffer {
    fn from(payload: &[u8]) -> Self {
        Self::copy_from(payload)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes", self.len())?;
        for byte in self.iter().take(16) {
            write!(f, " {byte:02x}")?;
        }
        f.write_str(if self.len() > 16 { " …)" } else { ")" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_go_in_front_and_come_off_again() {
        let mut buffer = Buffer::copy_from(b"payload");
        buffer.prepend(3).copy_from_slice(b"udp");
        buffer.prepend(2).copy_from_slice(b"ip");
        assert_eq!(&buffer[..], b"ipudppayload");
        buffer.advance(5);
        assert_eq!(&buffer[..], b"payload");
    }

    #[test]
    fn used_up_headroom_grows_and_keeps_the_bytes() {
        let mut buffer = Buffer::copy_from(b"x");
        for _ in 0..100 {
            buffer.prepend(7).copy_from_slice(b"header.");
        }
        assert_eq!(buffer.len(), 701);
        assert!(buffer.ends_with(b"header.x"));
    }

    #[test]
    fn a_copy_of_a_full_frame_takes_memory_that_is_kept() {
        let mut frame = Buffer::zeroed(1472);
        frame.prepend(42).fill(1);
        let copy = frame.clone();
        assert_eq!(
            (&copy, copy.start(), copy.bytes.capacity()),
            (&frame, Buffer::HEADROOM - 42, CAPACITIES[1])
        );
        let place = copy.bytes.as_ptr();
        copy.recycle();
        assert_eq!(frame.clone().bytes.as_ptr(), place);
        frame.advance(1500);
        assert_eq!(frame.clone().start(), Buffer::HEADROOM);
    }

    #[test]
    fn memory_of_a_recycled_buffer_is_used_again_and_what_it_held_is_gone() {
        for len in [100, 1500] {
            let mut first = Buffer::zeroed(len);
            first.fill(7);
            first.prepend(10).fill(8);
            let place = first.bytes.as_ptr();
            first.recycle();
            let second = Buffer::zeroed(len - 1);
            assert_eq!(second.bytes.as_ptr(), place, "{len}");
            assert!(second.bytes.iter().all(|&byte| byte == 0) && second.len() == len - 1);
        }
        let large = Buffer::zeroed(5000);
        assert!(large.bytes.capacity() < 6000, "no more than it needs");
    }

    #[test]
    fn a_clone_has_the_bytes_and_headroom_of_its_own() {
        let mut buffer = Buffer::copy_from(b"payload");
        buffer.advance(3);
        let mut clone = buffer.clone();
        clone.prepend(Buffer::HEADROOM).fill(1);
        assert_eq!((&buffer[..], &clone[Buffer::HEADROOM..]), (&b"load"[..], &b"load"[..]));
    }

    #[test]
    fn a_mark_is_of_bytes_as_they_were_and_of_their_copies() {
        let mut marked = Buffer::copy_from(b"payload");
        marked.set_mark(7);
        assert_eq!((marked.mark(), marked.clone().mark()), (7, 7));
        let changes: [fn(&mut Buffer); 5] = [
            |buffer| buffer.prepend(1)[0] = b'x',
            |buffer| buffer.advance(1),
            |buffer| buffer.truncate(3),
            |buffer| buffer.append(b"x"),
            |buffer| buffer[0] = b'x',
        ];
        for change in changes {
            let mut changed = marked.clone();
            change(&mut changed);
            assert_eq!(changed.mark(), 0, "{changed:?}");
        }
        let grown = Buffer::HEADROOM + 1;
        marked.prepend(grown);
        assert_eq!(marked.mark(), 0);
    }

    #[test]
    fn taking_more_than_there_is_leaves_nothing() {
        let mut buffer = Buffer::copy_from(b"abc");
        buffer.truncate(9);
        assert_eq!(&buffer[..], b"abc");
        buffer.advance(9);
        assert!(buffer.is_empty());
    }
}
