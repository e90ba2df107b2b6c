//! A flow's packets where the platform is the kernel: what has packets above it ends in a TUN device.

use hopcast_core::plug::DevicePlug;

use super::FlowBuilder;
use crate::error::BuildError;
use crate::network::NodeId;
use crate::platform::LowerPort;
use crate::transport::Ends;

impl FlowBuilder<'_> {
    /// Joins the packets of the layer at `depth` to a TUN device.
    pub(super) fn put_tun(
        &mut self,
        node: NodeId,
        depth: usize,
        ends: Ends,
        packets: LowerPort,
    ) -> Result<(), BuildError> {
        let flow = self.nodes.flow;
        let layer = flow.spec.over[depth].settings();
        let tun = DevicePlug {
            name: format!("hop{}-{depth}", flow.spec.number),
            addresses: vec![(ends.local.ip(), if flow.spec.ipv6 { 126 } else { 30 })],
            routes: Vec::new(),
            mtu: layer.packet_mtu().unwrap_or_else(|| flow.tunnel_mtu(depth)),
            reports_memberships: false,
        };
        let device = self.nodes.tun(node, tun)?;
        if let LowerPort::Machine(slot, port) = packets {
            self.nodes.wire(node, (slot, port), device);
        }
        Ok(())
    }
}
