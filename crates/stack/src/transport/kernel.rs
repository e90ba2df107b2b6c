//! The addresses of a flow where the platform is the kernel: what has packets above it ends in a TUN device, and the
//! flow goes between the addresses of the two devices.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Ends, FlowPlan, Ports};

impl FlowPlan<'_> {
    /// The ends of the flow as its application sees them on the kernel.
    pub fn application_ends_on_kernel(&self, ends: Ends) -> Ends {
        let ends = self.ends_on_kernel(0, ends);
        self.spec.over.first().map_or(ends, |top| top.settings().ends_on_kernel(ends))
    }

    /// The address of an application at this end, on the kernel.
    pub fn application_address_on_kernel(&self, ends: Ends) -> SocketAddr {
        self.ends_on_kernel(0, ends).local
    }

    /// The ends of the flow as they are seen right above the layer at `depth`: the devices' addresses above a TUN
    /// device.
    pub(crate) fn ends_on_kernel(&self, depth: usize, ends: Ends) -> Ends {
        let below = self.spec.over.iter().enumerate().skip(depth);
        let mut tunnels = below.filter(|(_, layer)| layer.row().offers == Ports::PACKETS);
        let Some((depth, _)) = tunnels.next() else { return ends };
        let local = usize::from(!is_sender(ends));
        let [own, peer] = [local, 1 - local].map(|end| self.tun_address(depth, end));
        Ends::new([own, peer], ends.local.port(), ends.remote.port())
    }

    /// The address of one end of the TUN device above the layer at `depth`: networks of four addresses for each.
    fn tun_address(&self, depth: usize, end: usize) -> IpAddr {
        // The scenario language bounds the flows and the layers of each.
        let place = ((self.spec.number as u32) << 5 | (depth as u32) << 2) + 1 + end as u32;
        if self.spec.ipv6 {
            IpAddr::V6(Ipv6Addr::from_bits((0xfd01 << 112) | u128::from(place)))
        } else {
            IpAddr::V4(Ipv4Addr::from_bits(0xac10_0000 | place))
        }
    }
}

/// The sender's port is above the receiver's.
fn is_sender(ends: Ends) -> bool {
    ends.local.port() > ends.remote.port()
}
