//! Members of PGM on the network of the tests.

use hopcast_core::{Datagram, Item};

use crate::pgm::wire::Tsi;
use crate::pgm::{Config, ReceiverConfig, Session, SourceConfig};
use crate::testing;
pub(super) use crate::testing::{Link, address, contents, group};

pub(super) type Net = testing::Net<Session>;

impl Net {
    /// A source to receivers, each with a link of its own.
    pub(super) fn star(seed: u64, source: SourceConfig, receiver: &ReceiverConfig, links: &[Link]) -> Self {
        let mut net = Self::new(seed);
        net.add(Some(source), None, links[0], 1);
        for &link in &links[1..] {
            net.add(None, Some(receiver.clone()), link, 1);
        }
        net
    }

    pub(super) fn add(
        &mut self,
        source: Option<SourceConfig>,
        receiver: Option<ReceiverConfig>,
        link: Link,
        run: u16,
    ) -> usize {
        let session = self.session(self.members.len(), source, receiver, run);
        self.join(session, link)
    }

    pub(super) fn session(
        &self,
        member: usize,
        source: Option<SourceConfig>,
        receiver: Option<ReceiverConfig>,
        run: u16,
    ) -> Session {
        let session = tsi(member, run);
        let config = Config {
            session,
            port: 7500,
            local: address(member),
            group: group(),
            number: None,
            source,
            receiver,
            unit_credit: false,
        };
        Session::new(config, self.seed.stream(&["member"], member as u64))
    }

    /// Gives a member a datagram to send.
    pub(super) fn datagram(&mut self, member: usize, bytes: &[u8]) {
        let datagram = Datagram::new(address(member), group(), hopcast_core::Buffer::copy_from(bytes));
        self.give(member, Item::Datagram(datagram));
    }
}

/// The session of a member's run.
pub(super) fn tsi(member: usize, run: u16) -> Tsi {
    Tsi { gsi: [0, 0, 0, 0, 0, member as u8 + 1], port: run }
}
