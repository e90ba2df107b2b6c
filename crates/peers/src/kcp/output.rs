//! Output of KCP: where its segments are put, and what is known of them from there.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use super::counters::Counters;
use super::wire::{ACK, PUSH};
use super::wire::{Packet, Segment};

/// The datagrams that KCP has written and nobody has taken yet. KCP owns one handle, its conversation the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Output(Rc<RefCell<VecDeque<Vec<u8>>>>);

impl Output {
    pub(super) fn pop(&self) -> Option<Vec<u8>> {
        self.0.borrow_mut().pop_front()
    }
}

impl io::Write for Output {
    /// One call is one datagram.
    fn write(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().push_back(datagram.to_vec());
        Ok(datagram.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes that have been sent and those that are acknowledged, from the segments on the wire: KCP itself does not
/// say.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The lengths of the segments from the first unacknowledged one on.
    lengths: VecDeque<u32>,
    /// The number of the next segment.
    next: u32,
    /// Bytes that have been sent, and that are acknowledged without a gap.
    pub transmitted: u64,
    pub acknowledged: u64,
}

impl Sent {
    /// Notes the contents of a datagram on its way down.
    pub(super) fn note(&mut self, datagram: &[u8], counters: &mut Counters) {
        let Ok(packet) = Packet::parse(datagram) else { return };
        for Segment { command, sn, len, .. } in packet.segments() {
            match command {
                PUSH => {
                    counters.segments_sent += 1;
                    // First transmissions are in order.
                    if sn == self.next {
                        self.next += 1;
                        self.lengths.push_back(len as u32);
                        self.transmitted += len as u64;
                    } else {
                        counters.retransmits += 1;
                    }
                }
                ACK => counters.acks_sent += 1,
                _ => {}
            }
        }
    }

    /// Notes that all before `una`, which is not beyond [`next`](Self::next), has arrived.
    pub(super) fn acknowledge(&mut self, una: u32) {
        while self.first() < una
            && let Some(len) = self.lengths.pop_front()
        {
            self.acknowledged += u64::from(len);
        }
    }

    /// The number of the next segment.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Whether anything sent is not acknowledged yet.
    pub(super) fn is_under_way(&self) -> bool {
        !self.lengths.is_empty()
    }

    fn first(&self) -> u32 {
        self.next - self.lengths.len() as u32
    }
}
