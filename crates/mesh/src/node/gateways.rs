//! Messages of DHCP that go to one node alone.

use hopcast_core::Buffer;
use hopcast_wire::ethernet::Mac;

use super::Mesh;
use crate::gateway::{Dhcp, GatewayMode, GatewayStatus, message};
use crate::translation::Key;
use crate::wire::data::{SUBTYPE_DATA, Unicast4Addr};
use crate::wire::{Header, TTL};

impl Mesh {
    /// The gateways among the nodes, as `batctl gwl` shows them.
    pub fn gateways(&self) -> Vec<GatewayStatus> {
        self.gateways.status(|node| self.routing.metric(node))
    }

    /// Sends a client's message of DHCP to a group to the one node that it is for: the gateway that is chosen, or that
    /// of the client. Gives back a frame that is no such message.
    pub(super) fn send_by_gateway(&mut self, vlan: u16, frame: Buffer) -> Option<Buffer> {
        let mode = self.gateways.mode();
        let found = if mode == GatewayMode::Off { None } else { message(&frame) };
        match found {
            None => return Some(frame),
            Some(Dhcp::ToClient(address)) => {
                self.counters.gateway_answers_sent += 1;
                self.send_unicast(Key { vlan, address }, frame);
            }
            Some(Dhcp::ToServer) => match self.gateways.selected() {
                Some(gateway) if mode == GatewayMode::Client => {
                    self.counters.gateway_requests_sent += 1;
                    self.send_with_source(gateway, SUBTYPE_DATA, frame);
                }
                _ => {
                    self.counters.gateway_requests_dropped += 1;
                    frame.recycle();
                }
            },
        }
        None
    }

    /// Sends a client's frame to a node, with this node's address and what it is for.
    pub(super) fn send_with_source(&mut self, destination: Mac, subtype: u8, mut frame: Buffer) {
        let (ttvn, source) = (self.translation.ttvn_of(destination), self.address());
        Unicast4Addr { ttl: TTL, ttvn, destination, source, subtype }.prepend(&mut frame);
        self.send_to(destination, None, frame);
    }
}
