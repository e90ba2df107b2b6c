//! Groups of receivers: who is a member and when, the group's addresses, and the delivery that brings datagrams to the
//! members.
//!
//! A flow to a group sends datagrams to the group's address; its [`Delivery`], a row of the
//! [table](crate::deliveries), brings them to the members. So transports and deliveries multiply: each transport that
//! serves groups is over each delivery.

mod delivery;
mod exchange;
mod member_machine;
mod members;
mod sender;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::Duration;

use crate::network::NodeId;

pub use delivery::{
    Delivery, DeliveryLayer, DeliveryMachines, DeliveryRow, Shown, SiteDelivery, SiteGroup, SiteSender,
};
pub use exchange::{Exchange, GroupEnd, GroupFlow, GroupReach};
pub(crate) use member_machine::MemberMachine;
pub use members::{Member, Members};
pub(crate) use sender::{EachInterface, FanOut, SegmentBroadcast};

/// Time for which a member's host goes on to receive after a leave, unless the file says otherwise: what is under way
/// to it at that moment still arrives and counts. Chosen: longer than the delay of a path over satellites; with less,
/// it would be lost, and with more, the tree to the member carries the group's packets that much longer for nothing.
pub const LINGER: Duration = Duration::from_secs(1);

/// A group of receivers.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name; empty of the receivers that a flow names one by one.
    pub name: String,
    /// Its place among the scenario's groups: its addresses are numbered by it.
    pub number: usize,
    /// Every node that is a member at some time, in the order in which the file names them.
    pub members: Members,
    /// The delivery that brings datagrams to the members.
    pub delivery: DeliveryLayer,
    /// Time for which a member's host goes on to receive after a leave.
    pub linger: Duration,
}

impl Group {
    /// The address of the group. A group of any source: of the organisation's own, 239.192.0.1 and ff18::1 for the
    /// first (RFC 2365 section 6.2, RFC 7346 section 2); of one source: 232.0.1.1 and ff38::8000:1 (RFC 4607 section
    /// 1); of link scope: 224.0.0.254, which is there for experiments (RFC 4727), for all of them, whose
    /// flows differ by their ports, and ff12::1 (RFC 4291 section 2.7).
    pub fn address(&self, ipv6: bool) -> IpAddr {
        let number = self.number as u32 + 1;
        let delivery = self.delivery.settings();
        if delivery.is_of_link_scope() {
            return match ipv6 {
                true => Ipv6Addr::from_bits((0xff12 << 112) | u128::from(number)).into(),
                false => Ipv4Addr::new(224, 0, 0, 254).into(),
            };
        }
        match (ipv6, delivery.is_of_one_source()) {
            (false, false) => Ipv4Addr::from_bits(0xefc0_0000 | number).into(),
            (false, true) => Ipv4Addr::from_bits(0xe800_0100 + number).into(),
            (true, false) => Ipv6Addr::from_bits((0xff18 << 112) | u128::from(number)).into(),
            (true, true) => Ipv6Addr::from_bits((0xff38 << 112) | 0x8000_0000 | u128::from(number)).into(),
        }
    }

    /// The member that a node is at some time.
    pub fn member(&self, node: NodeId) -> Option<&Member> {
        self.members.get(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::Instant;

    #[test]
    fn a_member_is_one_from_its_join_to_its_leave() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let member = Member { node: 0, spans: vec![(at(1), Some(at(2))), (at(5), None)] };
        for (time, is) in [(0, false), (1, true), (2, false), (4, false), (5, true), (99, true)] {
            assert_eq!(member.is_member(at(time)), is, "{time} s");
        }
    }
}
