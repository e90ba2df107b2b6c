//! Transmit quality (TQ): how likely a packet arrives, from 0 to 255.

use crate::window;
use crate::wire::MAX_TQ;

/// Number of messages of which an average is taken (`BATADV_TQ_GLOBAL_WINDOW_SIZE`).
const AVERAGED: usize = 5;
/// Number of messages of which those that arrived are counted.
const WINDOW: u32 = window::WINDOW.cast_unsigned();

/// Quality of a path, from the quality that a message bears and the link it came by.
///
/// `echoed` of the own messages were heard again from the neighbour, and `received` of the neighbour's own arrived, of
/// 64 each. Own messages that come back went both ways, so that the share of those that arrive at the neighbour is
/// `echoed / received`. A link on which few arrive is made worse, since acknowledgements would be lost there.
/// `interface` is a factor of 255ths.
#[inline]
pub(super) fn path_quality(tq: u8, echoed: u32, received: u32, interface: u8) -> u8 {
    let received = received.min(WINDOW);
    let max = u64::from(MAX_TQ);
    let forward = (max * u64::from(echoed.min(received))).checked_div(u64::from(received)).unwrap_or(0);
    let missing = u64::from(WINDOW - received);
    let symmetry = max - max * missing.pow(3) / u64::from(WINDOW).pow(3);
    (u64::from(tq) * forward * symmetry * u64::from(interface) / max.pow(3)) as u8
}

/// Quality behind one hop more.
#[inline]
pub(super) fn with_penalty(tq: u8, penalty: u8) -> u8 {
    (u16::from(tq) * u16::from(MAX_TQ - penalty) / u16::from(MAX_TQ)) as u8
}

/// Qualities of a path by the last five messages, 0 where none came by it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Average {
    ring: [u8; AVERAGED],
    next: u8,
    average: u8,
}

impl Average {
    #[inline]
    pub(super) fn push(&mut self, tq: u8) {
        self.ring[usize::from(self.next)] = tq;
        self.next = (self.next + 1) % AVERAGED as u8;
        let sum: u16 = self.ring.iter().map(|&tq| u16::from(tq)).sum();
        let count = self.ring.iter().filter(|&&tq| tq != 0).count() as u16;
        self.average = sum.checked_div(count).unwrap_or(0) as u8;
    }

    /// Mean of those that are not 0.
    #[inline]
    pub(super) const fn get(&self) -> u8 {
        self.average
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualities_are_those_that_the_formulas_give() {
        // Without loss.
        assert_eq!(path_quality(255, 64, 64, 255), 255);
        // Half of the own messages are heard again, of 64: 255 * 32 / 64 = 127.
        assert_eq!(path_quality(255, 32, 64, 255), 127);
        // 32 of 64 arrive, and all that went came back: 255 - 255 * 32^3 / 64^3 = 255 - 31 = 224.
        assert_eq!(path_quality(255, 32, 32, 255), 224);
        // One of 64: 63^3 / 64^3 of 255 is 243.2, cut off to 243; 12 is left.
        assert_eq!(path_quality(255, 1, 1, 255), 12);
        // 225 * 127 * 255 * 225 / 255^3 = 98.87.
        assert_eq!(path_quality(225, 32, 64, 225), 98);
        assert_eq!([path_quality(255, 9, 0, 255), path_quality(255, 0, 9, 255)], [0, 0]);
        assert_eq!([with_penalty(255, 30), with_penalty(225, 30), with_penalty(3, 255)], [225, 198, 0]);
    }

    #[test]
    fn an_average_leaves_out_what_did_not_arrive() {
        let mut average = Average::default();
        assert_eq!(average.get(), 0);
        for (tq, expected) in
            [(200, 200), (0, 200), (101, 150), (0, 150), (0, 150), (0, 101), (0, 101), (0, 0)]
        {
            average.push(tq);
            assert_eq!(average.get(), expected);
        }
    }
}
