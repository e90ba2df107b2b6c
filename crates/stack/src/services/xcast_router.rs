//! `xcast-router`: routers that sort the lists of Xcast's packets by next hop, and designated routers of Xcast+.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::rc::Rc;

use hopcast_config::decode::{flag, some_duration};
use hopcast_core::{Duration, Machine};
use hopcast_explicit::xcast::router::{Config, HOOKS, Hop, NextHops, PLUS_HOOKS, PlusConfig, Router};
use hopcast_host::Hook;

use super::{COPIES_PER_SECOND, per_second};
use crate::service::{
    HostConfig, LowerInterface, MulticastRole, Service, ServiceNode, ServiceRoutes, ServiceRow,
};
use crate::table::{Form, Opt, Options, Worlds, on_off, shown};

/// Name of the service.
pub(crate) const NAME: &str = "xcast-router";

pub(super) static XCAST_ROUTER: ServiceRow = ServiceRow {
    name: NAME,
    about: "sorts the lists of Xcast's packets by next hop, and makes plain packets of them at the end (RFC 5058); IPv6",
    worlds: Worlds::Both,
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
    designated: bool,
    plus: PlusConfig,
}

impl Default for Settings {
    fn default() -> Self {
        let (config, plus) = (Config::default(), PlusConfig::default());
        Self { config, tunnel: true, designated: false, plus }
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
    Opt {
        key: "designated",
        about: "Whether it is a designated router of Xcast+, for the whole run: on each link whose `mld-querier` its node is, it registers the members' groups with the router of their source, which it is for hosts beside it.",
        form: Form::Flag,
        set: |settings, node, key| flag(node, key).map(|found| settings.designated = found),
        show: |settings| on_off(settings.designated),
    },
    Opt {
        key: "refresh",
        about: "The time between registrations of a designated router, once a few have been sent. Shorter costs packets; longer leaves a router that has lost its state without members for longer.",
        form: Form::Duration,
        set: |settings, node, key| some_duration(node, key).map(|found| settings.plus.refresh = found),
        show: |settings| settings.plus.refresh.to_string(),
    },
    Opt {
        key: "hold",
        about: "The time for which a registration holds, 1 s to 18 h, on both sides. Shorter than a few refreshes, and lost ones leave gaps; longer, and packets go on for longer to routers that are gone.",
        form: Form::Duration,
        set: |settings, node, key| {
            let found = some_duration(node, key)?;
            match HOLD.contains(&found) {
                true => settings.plus.hold = found,
                false => {
                    return Err(node.error(format!("`{key}`: expected 1 s to 18 h, found {}", node.found())));
                }
            }
            Ok(())
        },
        show: |settings| settings.plus.hold.to_string(),
    },
]);

/// The times that a registration can hold: whole seconds, in a field of 16 bits.
const HOLD: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(18 * 3600);

impl Service for Settings {
    fn hooks(&self) -> Vec<Hook> {
        let plus = if self.designated { &PLUS_HOOKS[..] } else { &[] };
        [&HOOKS, plus].concat()
    }

    fn multicast(&self) -> Option<MulticastRole> {
        self.designated.then_some(MulticastRole::Designated)
    }

    fn machine(
        &self,
        host: &HostConfig,
        _: &[LowerInterface],
        routes: &Rc<dyn ServiceRoutes>,
    ) -> Box<dyn Machine> {
        let next_hops = XcastRoutes::new(routes.clone(), self.tunnel);
        let router = Router::new(self.config, &host.addresses, Box::new(next_hops));
        Box::new(if self.designated { router.designated(self.plus) } else { router })
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
            self.routes.first_that_runs(NAME, destination.into())
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
        [NAME, SENDER].iter().any(|kind| self.routes.runs(kind, address.into()))
    }

    fn attached(&self, address: Ipv6Addr) -> Option<u32> {
        let address = address.into();
        let route = self.routes.route(address).filter(|route| route.metric == 1)?;
        (!self.routes.runs(NAME, address)).then_some(route.interface)
    }

    fn serves_group(&self, group: Ipv6Addr) -> bool {
        self.routes.is_left_to_services(group.into())
    }
}
