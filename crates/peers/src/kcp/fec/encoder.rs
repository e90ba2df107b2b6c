//! Adds parity to what is sent.

use hopcast_code::reed_solomon::Code;
use hopcast_core::{Duration, Instant};

use super::{DATA, Fec, PARITY, seal, wrap};

/// A group whose last two datagrams are further apart gets no parity, which would come too late (`sess.go`,
/// `maxFECEncodeLatency`).
const CONTINUOUS: Duration = Duration::from_millis(500);

/// The sending side.
#[derive(Debug)]
pub(in crate::kcp) struct Encoder {
    fec: Fec,
    code: Code,
    next: u32,
    /// The group so far: sizes and payloads. The vectors are used again.
    shards: Vec<Vec<u8>>,
    filled: usize,
    last: Option<Instant>,
}

impl Encoder {
    pub(in crate::kcp) fn new(fec: Fec) -> Option<Self> {
        let code = Code::new(fec.data(), fec.parity()).ok()?;
        Some(Self { fec, code, next: 0, shards: vec![Vec::new(); fec.data()], filled: 0, last: None })
    }

    /// Sends `packet`, and the group's parity after its last.
    pub(in crate::kcp) fn send(&mut self, now: Instant, packet: &[u8], mut send: impl FnMut(Vec<u8>, bool)) {
        let shard = &mut self.shards[self.filled];
        shard.clear();
        // A datagram is no longer than 65,000 bytes.
        shard.extend_from_slice(&((packet.len() + 2) as u16).to_le_bytes());
        shard.extend_from_slice(packet);
        send(seal(self.next, DATA, shard), false);
        self.next = (self.next + 1) % wrap(self.fec);
        self.filled += 1;
        let before = self.last.replace(now);
        if self.filled < self.fec.data() {
            return;
        }
        self.filled = 0;
        if before.is_some_and(|before| now.since(before) < CONTINUOUS) {
            self.parity(send);
        }
        self.next = (self.next + self.fec.parity() as u32) % wrap(self.fec);
    }

    fn parity(&mut self, mut send: impl FnMut(Vec<u8>, bool)) {
        let longest = self.shards.iter().map(Vec::len).max().unwrap_or(0);
        self.shards.iter_mut().for_each(|shard| shard.resize(longest, 0));
        let shards: Vec<&[u8]> = self.shards.iter().map(Vec::as_slice).collect();
        let mut parity = vec![0; longest];
        for index in 0..self.fec.parity() {
            if self.code.parity(index, &shards, &mut parity).is_ok() {
                send(seal(self.next + index as u32, PARITY, &parity), true);
            }
        }
    }
}
