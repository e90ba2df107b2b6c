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
                Some(gateway) if mode == GatewayMode::Client => self.send_to_gateway(gateway, frame),
                _ => {
                    self.counters.gateway_requests_dropped += 1;
                    frame.recycle();
                }
            },
        }
        None
    }

    fn send_to_gateway(&mut self, destination: Mac, mut frame: Buffer) {
        let (ttvn, source) = (self.translation.ttvn_of(destination), self.address());
        Unicast4Addr { ttl: TTL, ttvn, destination, source, subtype: SUBTYPE_DATA }.prepend(&mut frame);
        self.counters.gateway_requests_sent += 1;
        self.send_to(destination, None, frame);
    }
}
