//! A packet's bytes, with room in front for the headers that lower layers add.

use core::fmt;
use core::ops::{Deref, DerefMut};

/// Bytes on their way down or up a stack.
///
/// A payload is written once; each layer [`prepend`](Buffer::prepend)s its header into the headroom on the way
/// down and [`advance`](Buffer::advance)s past it on the way up, so that no layer copies the payload.
#[derive(Clone, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// Room for Ethernet, IPv6, TCP with options, and a tunnel around them.
    pub const HEADROOM: usize = 160;

    /// `len` zero bytes behind the usual headroom.
    pub fn zeroed(len: usize) -> Self {
        Self { bytes: vec![0; Self::HEADROOM + len], start: Self::HEADROOM }
    }

    /// A copy of `payload` behind the usual headroom.
    pub fn copy_from(payload: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(Self::HEADROOM + payload.len());
        bytes.resize(Self::HEADROOM, 0);
        bytes.extend_from_slice(payload);
        Self { bytes, start: Self::HEADROOM }
    }

    /// Adds `len` bytes in front and returns them for the caller to fill; what they hold before is unspecified.
    /// Allocates only when the headroom is used up.
    pub fn prepend(&mut self, len: usize) -> &mut [u8] {
        if self.start < len {
            let mut grown = Vec::with_capacity(Self::HEADROOM + len + self.len());
            grown.resize(Self::HEADROOM + len, 0);
            grown.extend_from_slice(self);
            *self = Self { bytes: grown, start: Self::HEADROOM + len };
        }
        self.start -= len;
        &mut self.bytes[self.start..self.start + len]
    }

    /// Drops `len` bytes from the front; all of them if there are fewer.
    pub fn advance(&mut self, len: usize) {
        self.start += len.min(self.len());
    }

    /// Keeps the first `len` bytes; all of them if there are fewer.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(self.start + len);
    }

    /// Appends `bytes` at the end.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
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
    fn taking_more_than_there_is_leaves_nothing() {
        let mut buffer = Buffer::copy_from(b"abc");
        buffer.truncate(9);
        assert_eq!(&buffer[..], b"abc");
        buffer.advance(9);
        assert!(buffer.is_empty());
    }
}
