//! Members of NORM on the network of the tests.

use crate::norm::wire::{Body, Fec, Message, Nack, NodeId, PayloadId, Position, Repair, Timestamp};
use crate::norm::{Config, ReceiverConfig, SenderConfig, Session};
use crate::testing;
pub(super) use crate::testing::{Link, address, contents, group};

pub(super) type Net = testing::Net<Session>;

impl Net {
    /// A sender to receivers, each with a link of its own.
    pub(super) fn star(seed: u64, sender: SenderConfig, receiver: &ReceiverConfig, links: &[Link]) -> Self {
        let mut net = Self::new(seed);
        net.add(Some(sender), None, links[0], 1);
        for &link in &links[1..] {
            net.add(None, Some(receiver.clone()), link, 1);
        }
        net
    }

    pub(super) fn add(
        &mut self,
        sender: Option<SenderConfig>,
        receiver: Option<ReceiverConfig>,
        link: Link,
        instance: u16,
    ) -> usize {
        let member = self.members.len();
        let session = self.session(member, sender, receiver, instance);
        self.join(session, link)
    }

    pub(super) fn session(
        &self,
        member: usize,
        sender: Option<SenderConfig>,
        receiver: Option<ReceiverConfig>,
        instance: u16,
    ) -> Session {
        Session::new(config(member, sender, receiver, instance), self.seed.stream(&["member"], member as u64))
    }

    /// A sender that grants its application what it takes.
    pub(super) fn granting(&self, member: usize, sender: SenderConfig) -> Session {
        let config = Config { unit_credit: true, ..config(member, Some(sender), None, 1) };
        Session::new(config, self.seed.stream(&["member"], member as u64))
    }
}

/// A symbol of an object.
pub(super) fn position(object: u16, block: u32, symbol: u16) -> Position {
    Position { fec: Fec::ReedSolomon8, object, id: PayloadId { block, symbol, block_len: 0 } }
}

/// A NACK to the first member.
pub(super) fn nack(from: u32, response: Timestamp, repairs: Vec<Repair>) -> Vec<u8> {
    let nack = Nack { sender: NodeId(1), instance: 1, grtt_response: response, cc: None, repairs };
    Message { sequence: 0, source: NodeId(from), body: Body::Nack(nack) }.emit().to_vec()
}

fn config(
    member: usize,
    sender: Option<SenderConfig>,
    receiver: Option<ReceiverConfig>,
    instance: u16,
) -> Config {
    Config {
        node: NodeId(member as u32 + 1),
        instance,
        local: address(member),
        group: group(),
        sender,
        receiver,
        unit_credit: false,
    }
}
