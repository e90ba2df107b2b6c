//! Datagrams of a group on its lane.

use std::net::SocketAddr;

use hopcast_core::{Datagram, Item, Outbox};

use super::wire::Kind;

/// Sends a datagram with its kind: one for `group` to each of these members, if copies are needed, any other as it is.
pub(super) fn send(
    out: &mut Outbox,
    kind: Kind,
    mut datagram: Datagram,
    group: Option<SocketAddr>,
    members: impl Iterator<Item = SocketAddr>,
) {
    datagram.payload.prepend(1)[0] = kind.byte();
    if Some(datagram.remote) != group {
        out.down(Item::Datagram(datagram));
        return;
    }
    for address in members {
        out.down(Item::Datagram(Datagram { remote: address, ..datagram.clone() }));
    }
}
