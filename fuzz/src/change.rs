//! Bytes that were sent, changed on the way.

use arbitrary::Arbitrary;

/// A change of valid bytes: a byte in one of several places, and the end.
#[derive(Arbitrary, Clone, Debug)]
pub struct Change {
    bytes: Vec<(u16, u8)>,
    end: End,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum End {
    Same,
    Cut(u16),
    Longer(u8),
}

impl Change {
    /// Makes it; of no bytes nothing becomes.
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        // Headers are short and symbols long, so most places are among the first.
        for &(at, flip) in &self.bytes {
            let within = if at < 0xC000 { bytes.len().min(64) } else { bytes.len() };
            bytes[usize::from(at) % within] ^= flip;
        }
        match self.end {
            End::Same => {}
            End::Cut(at) => bytes.truncate(usize::from(at) % bytes.len()),
            End::Longer(by) => bytes.resize(bytes.len() + usize::from(by), 0x5A),
        }
    }
}
