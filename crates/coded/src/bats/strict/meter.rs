//! The load of a hop.

use hopcast_core::{Duration, Instant};

/// Time that is measured at once. Chosen: shorter, and few packets make a rate; longer, and a hop that falls idle is
/// noticed late.
const SPAN: Duration = Duration::from_millis(20);

/// The packets of one hop, counted and made rates of.
#[derive(Debug, Default)]
pub(super) struct Meter {
    since: Instant,
    bytes: u64,
    packets: u64,
    last: Option<Measured>,
}

/// The rates of the last span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// Bits per second.
    pub(super) bits: f64,
    /// Bytes of a packet.
    pub(super) size: f64,
}

impl Meter {
    /// A packet of `bytes` bytes is sent.
    pub(super) fn packet(&mut self, now: Instant, bytes: u64) {
        self.fold(now);
        self.bytes += bytes;
        self.packets += 1;
    }

    /// The rates, once they are known.
    pub(super) const fn measured(&self) -> Option<Measured> {
        self.last
    }

    fn fold(&mut self, now: Instant) {
        let elapsed = now.since(self.since);
        if elapsed < SPAN {
            return;
        }
        let seconds = elapsed.as_secs_f64();
        self.last = Some(Measured {
            bits: self.bytes as f64 * 8.0 / seconds,
            size: self.bytes as f64 / self.packets.max(1) as f64,
        });
        *self = Self { since: now, last: self.last, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_spans_of_20_ms() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut meter = Meter::default();
        for millis in 0..20 {
            meter.packet(at(millis), 500);
            assert!(meter.measured().is_none());
        }
        meter.packet(at(20), 1500);
        let Measured { bits, size } = meter.measured().unwrap();
        // 10,000 bytes in 20 ms.
        assert!((bits - 4e6).abs() < 1e-3 && size == 500.0, "{bits}, {size}");
        meter.packet(at(39), 1500);
        assert_eq!(meter.measured().unwrap().size, 500.0);
        meter.packet(at(50), 1500);
        let Measured { bits, size } = meter.measured().unwrap();
        assert!((bits - 8e5).abs() < 1e-3 && size == 1500.0, "{bits}, {size}");
    }
}
