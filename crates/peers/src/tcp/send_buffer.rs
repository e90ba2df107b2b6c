//! The bytes that the application has written and the peer has not acknowledged.

use std::collections::VecDeque;

use hopcast_core::Buffer;

/// Writes shorter than this are joined, so that many small ones cost no more memory than their bytes. Chosen; a larger
/// limit copies more, a smaller one keeps more overhead.
const JOINED: usize = 4096;

/// Bytes by sequence number, and whether a FIN follows them.
#[derive(Clone, Debug)]
pub(super) struct SendBuffer {
    chunks: VecDeque<Chunk>,
    start: u64,
    end: u64,
    finished: bool,
}

#[derive(Clone, Debug)]
struct Chunk {
    start: u64,
    bytes: Buffer,
}

impl SendBuffer {
    /// An empty buffer whose first byte will have the sequence number `start`.
    pub(super) const fn new(start: u64) -> Self {
        Self { chunks: VecDeque::new(), start, end: start, finished: false }
    }

    /// Takes what the application writes.
    pub(super) fn write(&mut self, bytes: Buffer) {
        let start = self.end;
        self.end += bytes.len() as u64;
        match self.chunks.back_mut() {
            Some(last) if last.bytes.len() + bytes.len() <= JOINED => last.bytes.append(&bytes),
            _ if bytes.is_empty() => {}
            _ => self.chunks.push_back(Chunk { start, bytes }),
        }
    }

    /// Notes that no more bytes follow.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    pub(super) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// The sequence number behind the last byte written; a FIN's own.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Forgets the bytes before `una` and returns how many they were.
    pub(super) fn release(&mut self, una: u64) -> u64 {
        let una = una.clamp(self.start, self.end);
        let released = una - self.start;
        self.start = una;
        while let Some(chunk) = self.chunks.front() {
            if chunk.start + chunk.bytes.len() as u64 > una {
                break;
            }
            self.chunks.pop_front();
        }
        released
    }

    /// A packet's payload: `len` bytes from `seq` on, as far as they are there.
    pub(super) fn copy(&self, seq: u64, len: usize) -> Buffer {
        let first = self.chunks.partition_point(|chunk| chunk.start <= seq).saturating_sub(1);
        let mut payload: Option<Buffer> = None;
        let mut missing = len;
        for chunk in self.chunks.iter().skip(first) {
            let skip = usize::try_from(seq.saturating_sub(chunk.start)).unwrap_or(usize::MAX);
            let part = chunk.bytes.get(skip..).unwrap_or_default();
            let part = &part[..part.len().min(missing)];
            match &mut payload {
                Some(payload) => payload.append(part),
                none => *none = Some(Buffer::copy_from(part)),
            }
            missing -= part.len();
            if missing == 0 {
                break;
            }
        }
        payload.unwrap_or_else(|| Buffer::copy_from(&[]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_spans_what_was_written_in_parts() {
        let mut buffer = SendBuffer::new(100);
        buffer.write(Buffer::copy_from(&[1; 5000]));
        buffer.write(Buffer::copy_from(&[2; 5000]));
        buffer.write(Buffer::copy_from(&[3; 10]));
        let payload = buffer.copy(100 + 4999, 5002);
        assert_eq!(payload.len(), 5002);
        assert_eq!((payload[0], payload[1], payload[5000], payload[5001]), (1, 2, 2, 3));
        assert_eq!(buffer.release(100 + 6000), 6000);
        assert_eq!(buffer.copy(100 + 9999, 100)[..], [2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
        assert_eq!(buffer.release(u64::MAX), 4010);
        assert!(buffer.copy(100 + 10_010, 5).is_empty());
    }

    #[test]
    fn writes_are_joined_up_to_4096_bytes() {
        let mut buffer = SendBuffer::new(0);
        for _ in 0..17 {
            buffer.write(Buffer::zeroed(256));
        }
        let lengths: Vec<_> = buffer.chunks.iter().map(|chunk| chunk.bytes.len()).collect();
        assert_eq!(lengths, [4096, 256]);
    }
}
