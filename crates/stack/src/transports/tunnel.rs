//! `tunnel`: IP packets inside the datagrams of the layer below.

use hopcast_coded::Tunnel as TunnelMachine;

use crate::error::BuildError;
use crate::platform::LowerPort;
use crate::table::Options;
use crate::transport::{End, Feedback, Ports, Row, Transport};

pub(super) static TUNNEL: Row = Row {
    name: "tunnel",
    about: "IP packets inside the datagrams of the layer below, or of the host",
    offers: Ports::PACKETS,
    feedback: Feedback::None,
    holds_back: false,
    read: |row, options| Options(&[]).layer(row, options, Tunnel),
    ..Row::BASE
};

/// No settings.
#[derive(Clone, Debug)]
struct Tunnel;

impl Transport for Tunnel {
    fn overhead(&self, _: u64) -> u64 {
        0
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let mtu = end.flow().tunnel_mtu(end.depth);
        end.attach("tunnel", Box::new(TunnelMachine::new(end.ends.local, end.ends.remote, mtu))).map(Some)
    }
}
