//! Echo requests and their answers on the packets of a flow, in virtual time.

use hopcast_host::{EchoResponder, Ping, PingConfig};

use super::FlowBuilder;
use crate::error::BuildError;
use crate::network::{HOP_LIMIT, NodeId};
use crate::platform::LowerPort;
use crate::transport::Ends;

impl FlowBuilder<'_> {
    /// Puts a [`Ping`] on the flow's sender; says which port takes its messages. `packets` is the port above the flow's
    /// stack, or `None` where that is the host itself.
    ///
    /// # Errors
    /// ICMP is the kernel's.
    pub fn put_ping(
        &mut self,
        node: NodeId,
        ends: Ends,
        packets: Option<LowerPort>,
    ) -> Result<LowerPort, BuildError> {
        let Ends { local, remote } = ends;
        let config = PingConfig {
            hop_limit: HOP_LIMIT,
            // No other flow of the node has the port.
            identifier: local.port(),
            ..PingConfig::new(local.ip(), remote.ip())
        };
        let packets = match packets {
            Some(packets) => packets,
            None => self.nodes.echo_replies(node, local)?,
        };
        Ok(self.nodes.attach("", node, Box::new(Ping::new(config)), packets))
    }

    /// Puts what answers echo requests on the flow's receiver, above its stack. A host answers those that it receives
    /// by itself.
    pub fn put_echo_responder(&mut self, node: NodeId, ends: Ends, packets: LowerPort) {
        let responder = EchoResponder::new(ends.local.ip(), HOP_LIMIT);
        self.nodes.attach("", node, Box::new(responder), packets);
    }
}
