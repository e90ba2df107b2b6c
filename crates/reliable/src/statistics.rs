//! The figures that every protocol of reliable groups reports, by the same names.

/// Kind of a packet, by what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data for the first time, and what describes it.
    Data,
    /// Data again, and parity.
    Repair,
    /// What the sender says beside it: probes, ends, advertisements.
    Control,
    /// What receivers say: requests and acknowledgements.
    Feedback,
}

/// Packets and their bytes, without the headers of lower layers, by [`Kind`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    packets: [u64; 4],
    bytes: [u64; 4],
}

impl Traffic {
    /// Counts a packet of `bytes`.
    pub fn add(&mut self, kind: Kind, bytes: usize) {
        self.packets[kind as usize] += 1;
        self.bytes[kind as usize] += bytes as u64;
    }

    /// Packets of a kind.
    pub const fn packets(&self, kind: Kind) -> u64 {
        self.packets[kind as usize]
    }

    /// Bytes of a kind.
    pub const fn bytes(&self, kind: Kind) -> u64 {
        self.bytes[kind as usize]
    }

    /// Reports all kinds.
    pub fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        const NAMES: [(&str, &str); 4] = [
            ("data_packets_sent", "data_bytes_sent"),
            ("repair_packets_sent", "repair_bytes_sent"),
            ("control_packets_sent", "control_bytes_sent"),
            ("feedback_packets_sent", "feedback_bytes_sent"),
        ];
        for (kind, (packets, bytes)) in NAMES.into_iter().enumerate() {
            report(packets, self.packets[kind]);
            report(bytes, self.bytes[kind]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_counted_for_itself() {
        let mut traffic = Traffic::default();
        traffic.add(Kind::Repair, 100);
        traffic.add(Kind::Repair, 20);
        let mut found = Vec::new();
        traffic.counters(&mut |name, value| found.push((name, value)));
        assert_eq!(found[2..4], [("repair_packets_sent", 2), ("repair_bytes_sent", 120)]);
        assert!(found.len() == 8 && found.iter().map(|(_, value)| value).sum::<u64>() == 122);
        assert_eq!((traffic.packets(Kind::Repair), traffic.bytes(Kind::Data)), (2, 0));
    }
}
