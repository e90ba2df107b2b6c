//! `pim`: routers that make the trees of groups themselves.

use std::net::IpAddr;
use std::rc::Rc;

use hopcast_config::decode::{duration, some_duration, whole};
use hopcast_config::{Diagnostic, yaml::Node};
use hopcast_core::{Duration, Machine};
use hopcast_host::pim::{Config, HOOKS, Pim};
use hopcast_host::{Hook, NextHop, RouteEntry, Routes};

use crate::service::{HostConfig, LowerInterface, MulticastRole, Service, ServiceRoutes, ServiceRow};
use crate::table::{Form, Opt, Options, Worlds};

pub(super) static PIM: ServiceRow = ServiceRow {
    name: "pim",
    about: "joins and prunes the trees of sources by reverse path, for the queriers' members (PIM-SM, RFC 7761)",
    worlds: Worlds::Both,
    on_host: true,
    for_sites: false,
    options: || OPTIONS.docs(&Config::default()),
    read: |row, node| OPTIONS.service(row, node, Config::default()),
};

/// Maximum interval of messages, whose holdtime of 3.5 of them fits its field.
const MAX_INTERVAL: Duration = Duration::from_secs(18_724);
/// Maximum of the delays that a Hello has, each in its field of milliseconds.
const MAX_PROPAGATION: Duration = Duration::from_millis(0x7fff);
const MAX_OVERRIDE: Duration = Duration::from_millis(0xffff);

static OPTIONS: Options<Config> = Options(&[
    Opt {
        key: "hello-interval",
        about: "The time between a router's Hello messages; it is missed after 3.5 of them. Shorter costs packets; longer, and a router that dies without a change of routes is replaced later.",
        form: Form::Duration,
        set: |config, node, key| interval(node, key).map(|found| config.hello_interval = found),
        show: |config| config.hello_interval.to_string(),
    },
    Opt {
        key: "hello-delay",
        about: "Most time until a router greets its links, and new routers on them. Shorter, and all answer at once; longer, and the first trees are made later.",
        form: Form::Duration,
        set: |config, node, key| some_duration(node, key).map(|found| config.triggered_hello_delay = found),
        show: |config| config.triggered_hello_delay.to_string(),
    },
    Opt {
        key: "join-interval",
        about: "The time between joins; a branch ends after 3.5 of them. Shorter costs packets; longer, and branches of routers that died are sent to for longer.",
        form: Form::Duration,
        set: |config, node, key| interval(node, key).map(|found| config.join_interval = found),
        show: |config| config.join_interval.to_string(),
    },
    Opt {
        key: "override-interval",
        about: "The time that other routers of a segment have to override a prune, up to 65.535 s. Too short, and they lose packets; longer, and a segment that nobody wants is sent to for longer.",
        form: Form::Duration,
        set: |config, node, key| {
            at_most(node, key, MAX_OVERRIDE).map(|found| config.override_interval = found)
        },
        show: |config| config.override_interval.to_string(),
    },
    Opt {
        key: "propagation-delay",
        about: "The delay that routers allow for messages on a segment, up to 32.767 s, beside the `override-interval`. Shorter than it is, and they lose packets.",
        form: Form::Duration,
        set: |config, node, key| {
            at_most(node, key, MAX_PROPAGATION).map(|found| config.propagation_delay = found)
        },
        show: |config| config.propagation_delay.to_string(),
    },
    Opt {
        key: "priority",
        about: "Priority in the election of a segment's designated router, which serves its members: the highest wins, of equals the highest address.",
        form: Form::Count,
        set: |config, node, key| {
            whole(node, key, 0..=u32::MAX.into()).map(|found| config.dr_priority = found as u32)
        },
        show: |config| config.dr_priority.to_string(),
    },
    Opt {
        key: "route-check",
        about: "The time between looks at the routes. Shorter costs work; longer, and a tree follows a change of them later.",
        form: Form::Duration,
        set: |config, node, key| some_duration(node, key).map(|found| config.route_check = found),
        show: |config| config.route_check.to_string(),
    },
]);

fn interval(node: &Node, key: &str) -> Result<Duration, Diagnostic> {
    let found = some_duration(node, key)?;
    limited(node, key, found, MAX_INTERVAL)
}

fn at_most(node: &Node, key: &str, limit: Duration) -> Result<Duration, Diagnostic> {
    let found = duration(node, key)?;
    limited(node, key, found, limit)
}

fn limited(node: &Node, key: &str, found: Duration, limit: Duration) -> Result<Duration, Diagnostic> {
    match found <= limit {
        true => Ok(found),
        false => Err(node.error(format!("`{key}`: expected at most {limit}, found {}", node.found()))),
    }
}

impl Service for Config {
    fn hooks(&self) -> Vec<Hook> {
        HOOKS.to_vec()
    }

    fn multicast(&self) -> Option<MulticastRole> {
        Some(MulticastRole::Routes)
    }

    fn machine(
        &self,
        host: &HostConfig,
        _: &[LowerInterface],
        routes: &Rc<dyn ServiceRoutes>,
    ) -> Box<dyn Machine> {
        let unicast = Box::new(Unicast(routes.clone()));
        Box::new(Pim::new(*self, host, unicast, routes.group_table(), routes.random()))
    }
}

/// The node's routes, as PIM looks them up.
struct Unicast(Rc<dyn ServiceRoutes>);

impl Routes for Unicast {
    fn next_hop(&mut self, _: IpAddr) -> Option<NextHop> {
        None
    }

    fn version(&self) -> u64 {
        self.0.version()
    }

    fn route(&mut self, destination: IpAddr) -> Option<RouteEntry> {
        self.0.route(destination)
    }
}
