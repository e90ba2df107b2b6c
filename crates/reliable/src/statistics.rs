//! The figures that every protocol of reliable groups reports, by the same names.

/// Kind of a packet, by its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data for the first time, and its description.
    Data,
    /// Data again, and parity.
    Repair,
    /// Control of the sender beside it: probes, ends, advertisements.
    Control,
    /// Feedback of receivers: requests and acknowledgements.
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
        for (kind, names) in NAMES[..8].chunks(2).enumerate() {
            report(names[0], self.packets[kind]);
            report(names[1], self.bytes[kind]);
        }
    }
}

/// Requests for missing data (NACKs), of a member as a receiver and as a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Sent by this member.
    pub sent: u64,
    /// Not sent, because those of others had asked for the same.
    pub suppressed: u64,
    /// Of other receivers, heard by this one.
    pub heard: u64,
    /// Received by the sender that they are for.
    pub received: u64,
}

impl Requests {
    /// Reports all of them.
    pub fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let values = [self.sent, self.suppressed, self.heard, self.received];
        NAMES[8..12].iter().zip(values).for_each(|(name, value)| report(name, value));
    }
}

/// Objects and messages that a member as a receiver has handed up, or has given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// Objects, and streams to their end, that were handed up.
    pub objects: u64,
    /// Messages that were handed up.
    pub messages: u64,
    /// Objects, and parts of streams, of which something stayed missing.
    pub given_up: u64,
}

impl Deliveries {
    /// Reports all of them.
    pub fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let values = [self.objects, self.messages, self.given_up];
        NAMES[12..].iter().zip(values).for_each(|(name, value)| report(name, value));
    }
}

/// The counters that every protocol of this crate reports, with these names: those of [`Traffic`], [`Requests`] and
/// [`Deliveries`].
pub const NAMES: [&str; 15] = [
    "data_packets_sent",
    "data_bytes_sent",
    "repair_packets_sent",
    "repair_bytes_sent",
    "control_packets_sent",
    "control_bytes_sent",
    "feedback_packets_sent",
    "feedback_bytes_sent",
    "nacks_sent",
    "nacks_suppressed",
    "nacks_heard",
    "nacks_received",
    "objects_completed",
    "messages_delivered",
    "objects_given_up",
];

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

    #[test]
    fn each_figure_has_the_name_that_is_listed_for_it() {
        let mut traffic = Traffic::default();
        for (kind, bytes) in [(Kind::Data, 10), (Kind::Repair, 20), (Kind::Control, 30), (Kind::Feedback, 40)]
        {
            traffic.add(kind, bytes);
        }
        let mut found = Vec::new();
        let mut report = |name, value| found.push((name, value));
        traffic.counters(&mut report);
        Requests { sent: 1, suppressed: 2, heard: 3, received: 4 }.counters(&mut report);
        Deliveries { objects: 5, messages: 6, given_up: 7 }.counters(&mut report);
        assert_eq!(found.iter().map(|&(name, _)| name).collect::<Vec<_>>(), NAMES);
        let values: Vec<u64> = found.iter().map(|&(_, value)| value).collect();
        assert_eq!(values, [1, 10, 1, 20, 1, 30, 1, 40, 1, 2, 3, 4, 5, 6, 7]);
    }
}
