//! The sending of frames by ports, in the form that each is given them.

use hopcast_core::{Buffer, Frame, Item, Outbox, Port};

use super::counters::Counters;
use super::filter::{Class, Filter};

/// The parts of a bridge that send frames.
pub(super) struct Sender<'a> {
    pub(super) below: usize,
    pub(super) has_host: bool,
    pub(super) filter: Option<&'a Filter>,
    pub(super) counters: &'a mut Counters,
    pub(super) out: &'a mut Outbox,
}

impl Sender<'_> {
    /// Sends a frame by a port, which is one of those of its VLAN.
    #[inline]
    pub(super) fn send(&mut self, port: usize, class: Class, mut bytes: Buffer) {
        if let Some(filter) = self.filter {
            filter.fit(port, class, &mut bytes);
        }
        self.counters.frames_out += 1;
        let port = if port < self.below { Port::Below(port as u32) } else { Port::Above(0) };
        self.out.push(port, Item::Frame(Frame::new(bytes)));
    }

    /// Sends a frame by all ports of its VLAN but `from` that want it; the number of them.
    pub(super) fn send_to_all(
        &mut self,
        from: usize,
        class: Class,
        bytes: Buffer,
        wants: impl Fn(usize) -> bool,
    ) -> usize {
        let of_vlan = match self.filter {
            None => None,
            Some(filter) => match filter.ports(class.vlan) {
                None => {
                    bytes.recycle();
                    return 0;
                }
                some => some,
            },
        };
        let ports = self.below + usize::from(self.has_host);
        let is_meant = |&port: &usize| {
            port != from && of_vlan.is_none_or(|ports| ports.members.contains(port)) && wants(port)
        };
        let mut meant = (0..ports).filter(is_meant);
        let (mut next, mut sent) = (meant.next(), 0);
        // The last one is given the frame itself, and those before it copies.
        while let Some(port) = next {
            sent += 1;
            next = meant.next();
            if next.is_none() {
                self.send(port, class, bytes);
                return sent;
            }
            self.send(port, class, bytes.clone());
        }
        bytes.recycle();
        sent
    }
}
