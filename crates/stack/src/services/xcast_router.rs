//! `xcast-router`: routers that sort the lists of Xcast's packets by next hop.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use hopcast_config::decode::flag;
use hopcast_core::Machine;
use hopcast_explicit::xcast::router::{Config, HOOKS, Hop, NextHops, Router};
use hopcast_host::Hook;

use super::{COPIES_PER_SECOND, per_second};
use crate::service::{HostConfig, Service, ServiceNode, ServiceRoutes, ServiceRow};
use crate::table::{Form, Opt, Options, Worlds, on_off, shown};

pub(super) static XCAST_ROUTER: ServiceRow = ServiceRow {
    name: "xcast-router",
    about: "sorts the lists of Xcast's packets by next hop, and makes plain packets of them at the end (RFC 5058); IPv6",
    worlds: Worlds::Virtual,
    on_host: true,
    for_sites: false,
    options: || OPTIONS.docs(&Settings::default()),
    read: |row, node| OPTIONS.service(row, node, Settings::default()),
};

/// Name of the delivery whose senders may send tunnels too.
pub(crate) const SENDER: &str = "xcast";

/// The settings.
#[derive(Clone, Debug)]
struct Settings {
    config: Config,
    tunnel: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { config: Config::default(), tunnel: true }
    }
}

static OPTIONS: Options<Settings> = Options(&[
    Opt {
        key: "tunnel",
        about: "Whether a list goes in a tunnel past routers without the service to the next that has it; off, it becomes plain packets before them.",
        form: Form::Flag,
        set: |settings, node, key| flag(node, key).map(|found| settings.tunnel = found),
        show: |settings| on_off(settings.tunnel),
    },
    Opt {
        key: "copies-per-second",
        about: COPIES_PER_SECOND,
        form: Form::Count,
        set: |settings, node, key| {
            per_second(node, key).map(|found| settings.config.copies_per_second = found)
        },
        show: |settings| shown(&settings.config.copies_per_second),
    },
]);

impl Service for Settings {
    fn hooks(&self) -> Vec<Hook> {
        HOOKS.to_vec()
    }

    fn machine(&self, host: &HostConfig, routes: &Rc<dyn ServiceRoutes>) -> Box<dyn Machine> {
        let next_hops = XcastRoutes::new(routes.clone(), self.tunnel);
        Box::new(Router::new(self.config, &host.addresses, Box::new(next_hops)))
    }
}

/// A node's routes as Xcast needs them: next hops that run `xcast-router`.
pub(crate) struct XcastRoutes {
    routes: Rc<dyn ServiceRoutes>,
    tunnel: bool,
    /// The next hops that have been looked up since routes last changed.
    known: BTreeMap<Ipv6Addr, Option<Hop>>,
    version: u64,
}

/// Maximum number of next hops that are kept. Chosen: more than the receivers of the largest groups; with more, forged
/// lists fill more memory, and with fewer, routes are searched for again.
const MAX_KNOWN: usize = 10_000;

impl XcastRoutes {
    /// These routes, past routers without the service by tunnels or plain packets.
    pub(crate) fn new(routes: Rc<dyn ServiceRoutes>, tunnel: bool) -> Self {
        Self { routes, tunnel, known: BTreeMap::new(), version: 0 }
    }

    fn look_up(&self, destination: Ipv6Addr) -> Option<Hop> {
        self.routes.route(destination.into())?;
        let Some(ServiceNode { address: IpAddr::V6(address), interface, hops }) =
            self.routes.first_that_runs(XCAST_ROUTER.name, destination.into())
        else {
            return Some(Hop::Plain);
        };
        Some(match hops {
            1 => Hop::Neighbour { interface, address },
            _ if self.tunnel => Hop::Tunnel(address),
            _ => Hop::Plain,
        })
    }
}

impl NextHops for XcastRoutes {
    fn next_hop(&mut self, destination: Ipv6Addr) -> Option<Hop> {
        let version = self.routes.version();
        if version != self.version || self.known.len() >= MAX_KNOWN {
            self.known.clear();
            self.version = version;
        }
        if let Some(known) = self.known.get(&destination) {
            return *known;
        }
        let found = self.look_up(destination);
        self.known.insert(destination, found);
        found
    }

    fn is_router(&self, address: Ipv6Addr) -> bool {
        [XCAST_ROUTER.name, SENDER].iter().any(|kind| self.routes.runs(kind, address.into()))
    }

    fn is_attached(&self, address: Ipv6Addr) -> bool {
        self.routes.route(address.into()).is_some_and(|route| route.metric == 1)
    }
}
