//! Discovery: what routers say of the paths to receivers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use super::tree::Path;
use crate::Refusal;
use crate::meadcast::wire::Packet;

/// The outcome of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Response {
    /// It says something new.
    New,
    /// It says the same as one before.
    Same,
    /// Another router is there by a response before.
    Contradiction,
}

/// The paths to receivers, as far as routers have named themselves in a discovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths(BTreeMap<Ipv6Addr, Path>);

impl Paths {
    /// Notes a response to the sender with this address, about one of its receivers.
    pub(super) fn note(
        &mut self,
        response: &Packet<'_>,
        receiver: Ipv6Addr,
        own: Ipv6Addr,
        is_receiver: impl Fn(Ipv6Addr) -> bool,
    ) -> Result<Response, Refusal> {
        let router = response.source;
        if router == own || is_receiver(router) {
            return Err(Refusal::Source);
        }
        if response.hops == 0 {
            return Err(Refusal::Hops);
        }
        let path = self.0.entry(receiver).or_default();
        match path.get(&response.hops) {
            Some(known) if *known == router => Ok(Response::Same),
            Some(_) => Ok(Response::Contradiction),
            // A router is once on a path: what comes again at another distance goes round in a circle.
            None if path.values().any(|known| *known == router) => Ok(Response::Contradiction),
            None => {
                path.insert(response.hops, router);
                Ok(Response::New)
            }
        }
    }

    /// The paths to some receivers.
    pub(super) fn of(&self, receivers: &BTreeSet<Ipv6Addr>) -> Self {
        let paths = self.0.iter().filter(|(receiver, _)| receivers.contains(receiver));
        Self(paths.map(|(&receiver, path)| (receiver, path.clone())).collect())
    }

    /// Whether any router has named itself on the path to a receiver.
    pub(super) fn has(&self, receiver: Ipv6Addr) -> bool {
        self.0.contains_key(&receiver)
    }

    pub(super) const fn by_receiver(&self) -> &BTreeMap<Ipv6Addr, Path> {
        &self.0
    }
}
