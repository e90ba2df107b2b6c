//! VLAN interfaces (IEEE 802.1Q): a frame that leaves by one is tagged with its VLAN, and one that arrives with that
//! tag belongs to it.
//!
//! A [`Vlan`] is attached to one interface, its port `Below(0)`, and makes an interface of each of its VLANs,
//! `Above(0)` for the first. Tagged frames may be tagged again: customers' VLANs in a provider's (IEEE 802.1ad) are one
//! machine on another.
//!
//! # Scope and departures
//!
//! - Priority is 0 in what is sent, and ignored in what arrives.
//! - Frames without a tag, and those of VLANs that have no interface, are dropped and counted: the interface below is
//!   the VLANs' alone. A priority tag (VLAN 0) is no exception.
//! - A link counts the tag as 4 bytes of its MTU, so that an interface's is 4 bytes less than that of the one below.
//!   Linux leaves it as it is, since Ethernet's longest frame has room for one tag (IEEE 802.3 section 3.2.7); write
//!   `mtu: 1504` for such a link.

use hopcast_core::{Frame, FrameStatus, Instant, Item, Outbox, Port, Reactive};
use hopcast_wire::vlan::{self, Tag};

/// The VLAN interfaces on one interface.
pub struct Vlan {
    tags: Vec<Tag>,
    tagged: u64,
    untagged: u64,
    without_tag: u64,
    other_vlans: u64,
    wrong_items: u64,
    out: Outbox,
}

impl Vlan {
    /// An interface for each tag, in their order.
    pub const fn new(tags: Vec<Tag>) -> Self {
        Self {
            tags,
            tagged: 0,
            untagged: 0,
            without_tag: 0,
            other_vlans: 0,
            wrong_items: 0,
            out: Outbox::new(),
        }
    }

    fn receive(&mut self, mut frame: Frame) {
        let Some(found) = vlan::tag(&frame.bytes) else {
            self.without_tag += 1;
            return frame.bytes.recycle();
        };
        match self.tags.iter().position(|&tag| tag == found) {
            Some(place) => {
                vlan::pop(&mut frame.bytes);
                self.untagged += 1;
                self.out.push(Port::Above(place as u32), Item::Frame(frame));
            }
            None => {
                self.other_vlans += 1;
                frame.bytes.recycle();
            }
        }
    }

    /// Hands the status of a frame up to the interface that sent it.
    fn report(&mut self, mut status: FrameStatus) {
        let of = vlan::tag(&status.bytes).and_then(|found| self.tags.iter().position(|&tag| tag == found));
        if let Some(place) = of {
            vlan::pop(&mut status.bytes);
            self.out.push(Port::Above(place as u32), Item::FrameStatus(status));
        }
    }
}

impl Reactive for Vlan {
    fn react(&mut self, _now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(0), Item::Frame(frame)) => self.receive(frame),
            (Port::Below(0), Item::FrameStatus(status)) => self.report(status),
            (Port::Below(0), Item::Mtu(mtu)) => {
                let mtu = mtu.saturating_sub(vlan::TAG as u32);
                (0..self.tags.len() as u32)
                    .for_each(|place| self.out.push(Port::Above(place), Item::Mtu(mtu)));
            }
            (Port::Above(place), Item::Frame(mut frame)) => match self.tags.get(place as usize) {
                Some(&tag) => {
                    vlan::push(&mut frame.bytes, tag);
                    self.tagged += 1;
                    self.out.down(Item::Frame(frame));
                }
                None => self.wrong_items += 1,
            },
            (Port::Above(_), Item::ReportFrameStatus) => self.out.down(Item::ReportFrameStatus),
            _ => self.wrong_items += 1,
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("frames_tagged", self.tagged);
        report("frames_untagged", self.untagged);
        report("frames_without_tag", self.without_tag);
        report("frames_of_other_vlans", self.other_vlans);
        report("wrong_items", self.wrong_items);
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::{Buffer, Machine};
    use hopcast_wire::vlan::{CUSTOMER, PROVIDER};

    use super::*;

    const BARE: &[u8] = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0packet";
    const NOW: Instant = Instant::ZERO;

    fn frame(bytes: &[u8]) -> Item {
        Item::Frame(Frame::new(Buffer::copy_from(bytes)))
    }

    fn out(vlan: &mut Vlan) -> Vec<(Port, Vec<u8>)> {
        let items = std::iter::from_fn(|| vlan.poll(NOW));
        let bytes = |(port, item)| match item {
            Item::Frame(frame) => (port, frame.bytes.to_vec()),
            other => panic!("{other:?}"),
        };
        items.map(bytes).collect()
    }

    fn counter(vlan: &Vlan, name: &str) -> u64 {
        let mut found = None;
        Machine::counters(vlan, &mut |counter, value| {
            if counter == name {
                found = Some(value);
            }
        });
        found.expect("the counter")
    }

    #[test]
    fn each_interface_sends_with_its_tag_and_gets_what_bears_it() {
        let tags = vec![Tag { kind: CUSTOMER, id: 7 }, Tag { kind: PROVIDER, id: 7 }];
        let mut vlan = Vlan::new(tags);
        for place in 0..2 {
            vlan.handle(NOW, Port::Above(place), frame(BARE));
            let sent = out(&mut vlan);
            let [(Port::Below(0), bytes)] = &sent[..] else { panic!("{sent:?}") };
            assert_eq!(bytes.len(), BARE.len() + 4);
            vlan.handle(NOW, Port::Below(0), frame(bytes));
            assert_eq!(out(&mut vlan), [(Port::Above(place), BARE.to_vec())]);
        }
    }

    #[test]
    fn what_bears_no_tag_or_another_is_dropped_and_counted() {
        let mut vlan = Vlan::new(vec![Tag { kind: CUSTOMER, id: 7 }]);
        vlan.handle(NOW, Port::Below(0), frame(BARE));
        vlan.handle(NOW, Port::Below(0), frame(b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x81\0\0\x08\x08\0packet"));
        vlan.handle(NOW, Port::Below(0), frame(b"short"));
        assert_eq!(out(&mut vlan), []);
        assert_eq!((counter(&vlan, "frames_without_tag"), counter(&vlan, "frames_of_other_vlans")), (2, 1));
    }

    #[test]
    fn tags_five_deep_come_off_one_at_a_time() {
        let mut vlan = Vlan::new(vec![Tag { kind: CUSTOMER, id: 7 }]);
        let mut deep = Buffer::copy_from(BARE);
        (0..5).for_each(|_| vlan::push(&mut deep, Tag { kind: CUSTOMER, id: 7 }));
        vlan.handle(NOW, Port::Below(0), frame(&deep));
        let [(Port::Above(0), bytes)] = &out(&mut vlan)[..] else { panic!() };
        assert_eq!(bytes.len(), BARE.len() + 16);
    }
}
