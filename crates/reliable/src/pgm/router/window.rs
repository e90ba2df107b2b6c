//! The sequence numbers that a source can repair, as its packets say.

/// A transmit window (RFC 3208, section 3.3): numbers wrap, and each is compared by its distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The oldest packet that the source has.
    trail: u32,
    /// The newest packet that was sent.
    lead: u32,
}

impl Window {
    pub(super) const fn new(trail: u32, lead: u32) -> Self {
        Self { trail, lead }
    }

    /// The newest packet that was sent.
    pub(super) const fn lead(&self) -> u32 {
        self.lead
    }

    /// Notes the number of a data packet, and the trailing edge in it.
    pub(super) fn note(&mut self, sequence: u32, trail: u32) {
        if distance(sequence, self.lead) > 0 {
            self.lead = sequence;
        }
        if distance(trail, self.trail) > 0 && distance(trail, self.lead) <= 1 {
            self.trail = trail;
        }
    }

    /// Whether one of the `len` packets from `first` on can be asked for.
    pub(super) const fn has(&self, first: u32, len: u32) -> bool {
        distance(first.wrapping_add(len.saturating_sub(1)), self.trail) >= 0
            && distance(first, self.lead) <= 0
    }
}

/// `a - b`; exactly halfway counts as behind.
pub(super) const fn distance(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_wraps() {
        let mut window = Window::new(u32::MAX - 1, u32::MAX - 2);
        assert!(!window.has(u32::MAX - 1, 1), "it is empty");
        window.note(1, u32::MAX);
        assert!(window.has(u32::MAX, 1) && window.has(0, 1) && window.has(1, 1));
        assert!(!window.has(u32::MAX - 1, 1) && !window.has(2, 1));
        assert!(window.has(u32::MAX - 7, 8), "the last packet of a group is there");
        assert!(!window.has(u32::MAX - 8, 8));
    }

    #[test]
    fn an_old_packet_does_not_move_it() {
        let mut window = Window::new(10, 20);
        window.note(15, 5);
        assert_eq!(window, Window::new(10, 20));
        window.note(21, 100);
        assert_eq!(window, Window::new(10, 21), "a trailing edge beyond the packet is nonsense");
    }
}
