//! The receiver's view of sequence numbers: which packets have arrived, and how many are missing in a row.

/// The forgetting of the estimate: it rests on about this number of packets.
const WEIGHT: f64 = 1024.0;
/// Packets that count as lost at the beginning, one by one.
const PRIOR: f64 = 0.16;
/// Number of packets back to which a late packet is recognised as one that was taken for lost.
const WINDOW: u64 = 128;

/// The packets that have arrived.
#[derive(Debug)]
pub(super) struct Arrivals {
    next: u64,
    /// Bit i: sequence `next - 1 - i` has arrived, or is from before the first.
    arrived: u128,
    received: u64,
    lost: f64,
    bursts: f64,
}

impl Arrivals {
    pub(super) const fn new() -> Self {
        Self { next: 0, arrived: u128::MAX, received: 0, lost: PRIOR, bursts: PRIOR }
    }

    /// Notes the packet numbered `sequence`; whether some before it have not arrived.
    pub(super) fn on_packet(&mut self, sequence: u64) -> bool {
        let Some(gap) = sequence.checked_sub(self.next) else {
            self.on_late(self.next - 1 - sequence);
            return false;
        };
        self.next = sequence + 1;
        self.received += 1;
        self.arrived = self.arrived.checked_shl(gap as u32 + 1).unwrap_or(0) | 1;
        let keep = (1.0 - 1.0 / WEIGHT).powf(1.0 + gap as f64);
        self.lost = self.lost * keep + gap as f64;
        self.bursts = self.bursts * keep + f64::from(u8::from(gap > 0));
        gap > 0
    }

    /// A packet that was taken for lost may only have been late.
    fn on_late(&mut self, age: u64) {
        if age >= WINDOW || self.arrived & (1 << age) != 0 {
            return;
        }
        self.received += 1;
        let neighbours = [age.checked_sub(1), Some(age + 1).filter(|&age| age < WINDOW)];
        let missing = neighbours.iter().flatten().filter(|&&age| self.arrived & (1 << age) == 0).count();
        self.arrived |= 1 << age;
        self.lost = (self.lost - 1.0).max(0.0);
        // A burst of one is no more, an end of one leaves it, one in the middle makes two of it.
        self.bursts = (self.bursts - 1.0 + missing as f64).max(0.0);
    }

    /// The highest sequence number so far.
    pub(super) const fn highest(&self) -> u64 {
        self.next - 1
    }

    /// Number of packets that have arrived, none of them counted twice.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    /// The mean number of packets lost in a row; 1 where none is known to be lost.
    pub(super) fn mean_burst(&self) -> f64 {
        if self.bursts < 1e-3 { 1.0 } else { (self.lost / self.bursts).max(1.0) }
    }
}
