//! `link-state`: routers that find their routes themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use hopcast_config::decode::{duration, entries, flag, rate, some_duration, whole};
use hopcast_core::{Machine, Rate};
use hopcast_host::Hook;
use hopcast_host::link_state::{
    Attached, Attachments, Config, HOOKS, InterfaceConfig, LinkState, MAX_NEIGHBOURS,
};

use crate::service::{HostConfig, LowerInterface, Service, ServiceRoutes, ServiceRow};
use crate::table::{Form, Opt, Options, Worlds, on_off, shown};

pub(super) static LINK_STATE: ServiceRow = ServiceRow {
    name: "link-state",
    about: "finds a router's routes by flooded link states, in areas, with OSPF's structure and times (RFC 2328, 5340)",
    worlds: Worlds::Virtual,
    on_host: true,
    for_sites: false,
    options: || OPTIONS.docs(&Settings::default()),
    read: |row, node| OPTIONS.service(row, node, Settings::default()),
};

/// Number of `hello` intervals in the time after which a router is missed, unless the file says otherwise (RFC 2328
/// appendix C.3).
const DEAD_HELLOS: u64 = 4;
const MAX_AREA: u64 = u32::MAX as u64;
const MAX_COST: u64 = u16::MAX as u64;

/// The settings.
#[derive(Clone, Debug, Default)]
struct Settings {
    config: Config,
    /// Those of interfaces that the file does not name.
    interface: InterfaceConfig,
    /// Areas and costs by the name of an interface or link.
    areas: BTreeMap<String, u32>,
    costs: BTreeMap<String, u16>,
    /// Rate at which the cost is 1, where costs follow rates.
    reference: Option<Rate>,
}

static OPTIONS: Options<Settings> = Options(&[
    Opt {
        key: "hello",
        about: "The time between a router's Hello messages, the same at all routers of a link. Shorter costs packets; longer, and routers find each other later.",
        form: Form::Duration,
        set: |settings, node, key| {
            let hello = some_duration(node, key)?;
            settings.config.hello_interval = hello;
            settings.config.dead_interval = hello * DEAD_HELLOS;
            Ok(())
        },
        show: |settings| shown(&settings.config.hello_interval),
    },
    Opt {
        key: "dead",
        about: "The time without a Hello after which a router is missed, more than `hello` and the same at all routers of a link; four times `hello` unless given. Shorter, and a few lost Hellos move routes; longer, and packets take a dead route for longer.",
        form: Form::Duration,
        set: |settings, node, key| {
            let (dead, hello) = (some_duration(node, key)?, settings.config.hello_interval);
            if dead <= hello {
                let found = node.found();
                return Err(
                    node.error(format!("`{key}`: expected more than `hello`, {hello}, found {found}"))
                );
            }
            settings.config.dead_interval = dead;
            Ok(())
        },
        show: |settings| shown(&settings.config.dead_interval),
    },
    Opt {
        key: "area",
        about: "The area of the node's links, but for those that `areas` names, and for those without other routers, which are in the area of the rest if that is one; 0 is the backbone. A router in the backbone and another area says in each what it reaches in the others.",
        form: Form::Count,
        set: |settings, node, key| {
            whole(node, key, 0..=MAX_AREA).map(|found| settings.interface.area = found as u32)
        },
        show: |settings| shown(&settings.interface.area),
    },
    Opt {
        key: "areas",
        about: "The areas of links, by the name of a link or interface: `{ a-b: 1 }`. Both ends of a link need the same, or they do not hear each other.",
        form: Form::PerInterface(0, MAX_AREA),
        set: |settings, node, key| {
            for entry in entries(node, key)? {
                let area = whole(&entry.value, key, 0..=MAX_AREA)? as u32;
                settings.areas.insert(entry.key.clone(), area);
            }
            Ok(())
        },
        show: |settings| shown_map(&settings.areas),
    },
    Opt {
        key: "cost",
        about: "The cost of sending on a link, 1 to 65,535, but for those that `costs` names. With one for all links, routes are those over the fewest hops.",
        form: Form::Numbers(1, MAX_COST),
        set: |settings, node, key| {
            whole(node, key, 1..=MAX_COST).map(|found| settings.interface.cost = found as u16)
        },
        show: |settings| shown(&settings.interface.cost),
    },
    Opt {
        key: "costs",
        about: "The costs of links, by the name of a link or interface: `{ a-b: 100 }`.",
        form: Form::PerInterface(1, MAX_COST),
        set: |settings, node, key| {
            for entry in entries(node, key)? {
                let cost = whole(&entry.value, key, 1..=MAX_COST)? as u16;
                settings.costs.insert(entry.key.clone(), cost);
            }
            Ok(())
        },
        show: |settings| shown_map(&settings.costs),
    },
    Opt {
        key: "reference-rate",
        about: "The rate at which a link costs 1: slower ones cost more in proportion, as with OSPF's 100 Mbit/s, and faster ones, or those without a rate, cost 1 too. Links that `costs` names keep theirs; without it all others cost `cost`. The rate is that at the start.",
        form: Form::Rate,
        set: |settings, node, key| rate(node, key).map(|found| settings.reference = Some(found)),
        show: |settings| settings.reference.map_or_else(String::new, |rate| shown(&rate)),
    },
    Opt {
        key: "carrier",
        about: "Whether a router notices at once that its own link is down or up. Off, as where a switch or a radio stands between, its neighbours are missed after `dead`.",
        form: Form::Flag,
        set: |settings, node, key| flag(node, key).map(|found| settings.config.carrier = found),
        show: |settings| on_off(settings.config.carrier),
    },
    Opt {
        key: "retransmit",
        about: "The time until an advertisement that a neighbour has not acknowledged is sent to it again. Shorter than a round trip, and all is sent twice; longer, and a loss delays news.",
        form: Form::Duration,
        set: |settings, node, key| {
            some_duration(node, key).map(|found| settings.config.retransmit_interval = found)
        },
        show: |settings| shown(&settings.config.retransmit_interval),
    },
    Opt {
        key: "min-origination",
        about: "Minimum time between two instances of an advertisement that its router makes. Shorter, and a link that flaps costs more; longer, and the second change in a row is known later.",
        form: Form::Duration,
        set: |settings, node, key| {
            let found = duration(node, key)?;
            settings.config.min_origination = found;
            // An instance that comes sooner is taken when it is sent again alone.
            settings.config.min_arrival = settings.config.min_arrival.min(found / 5);
            Ok(())
        },
        show: |settings| shown(&settings.config.min_origination),
    },
    Opt {
        key: "min-arrival",
        about: "Minimum time between two instances of an advertisement that are taken, less than `min-origination`, and a fifth of it or less unless given; another is taken when it is sent again. Shorter, and a forger costs more.",
        form: Form::Duration,
        set: |settings, node, key| {
            let (found, most) = (duration(node, key)?, settings.config.min_origination);
            if found >= most && !found.is_zero() {
                return Err(node
                    .error(format!("`{key}`: expected less than `min-origination`, {most}, found {found}")));
            }
            settings.config.min_arrival = found;
            Ok(())
        },
        show: |settings| shown(&settings.config.min_arrival),
    },
    Opt {
        key: "spf-delay",
        about: "The time from a change until routes are computed. Shorter, and changes that belong together are computed apart; longer, and packets take a dead route for longer.",
        form: Form::Duration,
        set: |settings, node, key| duration(node, key).map(|found| settings.config.spf_delay = found),
        show: |settings| shown(&settings.config.spf_delay),
    },
    Opt {
        key: "spf-hold",
        about: "Minimum time between two computations, which doubles with each change within it, up to 10 s or to itself if that is longer. Shorter costs work in unrest; longer, and the second change in a row is followed later.",
        form: Form::Duration,
        set: |settings, node, key| {
            let hold = some_duration(node, key)?;
            let max = Config::default().spf_max_hold.max(hold);
            (settings.config.spf_hold, settings.config.spf_max_hold) = (hold, max);
            Ok(())
        },
        show: |settings| shown(&settings.config.spf_hold),
    },
    Opt {
        key: "router-id",
        about: "An identifier in place of the number of the node's first IPv4 address, 1 to 4,294,967,295: for the mistake of two routers that have the same.",
        form: Form::Count,
        set: |settings, node, key| {
            whole(node, key, 1..=u32::MAX.into()).map(|found| settings.config.router_id = Some(found as u32))
        },
        show: |settings| settings.config.router_id.map_or_else(String::new, |id| shown(&id)),
    },
    Opt {
        key: "max-neighbours",
        about: "Maximum number of routers that are heard on a link, 1 to 100. With fewer, those beyond are not heard; with more, forged ones take more memory.",
        form: Form::Numbers(1, MAX_NEIGHBOURS as u64),
        set: |settings, node, key| {
            let found = whole(node, key, 1..=MAX_NEIGHBOURS as u64)?;
            settings.config.max_neighbours = found as usize;
            Ok(())
        },
        show: |settings| shown(&settings.config.max_neighbours),
    },
    Opt {
        key: "max-advertisements",
        about: "Maximum number of advertisements of an area that a router holds. With fewer, routers beyond are not reached; with more, forged ones take more memory.",
        form: Form::Count,
        set: |settings, node, key| {
            let found = whole(node, key, 1..=10_000_000)?;
            settings.config.max_advertisements = found as usize;
            Ok(())
        },
        show: |settings| shown(&settings.config.max_advertisements),
    },
]);

fn shown_map(map: &BTreeMap<String, impl std::fmt::Display>) -> String {
    map.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

/// The cost of a link of a rate, where one of the reference rate costs 1.
fn cost_of(rate: Option<Rate>, reference: Rate) -> u16 {
    let times = |rate: Rate| reference.bits_per_sec() / rate.bits_per_sec().max(1);
    rate.map_or(1, times).clamp(1, MAX_COST) as u16
}

impl Settings {
    /// Those of an interface; `of_hosts` is the area of one without other routers that the file does not name.
    fn of(&self, interface: &LowerInterface, of_hosts: Option<u32>) -> InterfaceConfig {
        let InterfaceConfig { area, cost } = self.interface;
        InterfaceConfig {
            area: named(&self.areas, interface).or(of_hosts).unwrap_or(area),
            cost: named(&self.costs, interface)
                .or_else(|| self.reference.map(|reference| cost_of(interface.rate, reference)))
                .unwrap_or(cost),
        }
    }
}

/// The value of an interface by its name, or by that of its link.
fn named<T: Copy>(values: &BTreeMap<String, T>, interface: &LowerInterface) -> Option<T> {
    let by_link = || interface.link.as_ref().and_then(|link| values.get(link));
    values.get(&interface.name).or_else(by_link).copied()
}

impl Service for Settings {
    fn hooks(&self) -> Vec<Hook> {
        HOOKS.to_vec()
    }

    fn routes_unicast(&self) -> bool {
        true
    }

    fn names_interfaces(&self) -> Vec<(&'static str, &str)> {
        let areas = self.areas.keys().map(|name| ("areas", &**name));
        areas.chain(self.costs.keys().map(|name| ("costs", &**name))).collect()
    }

    fn machine(
        &self,
        host: &HostConfig,
        lower: &[LowerInterface],
        routes: &Rc<dyn ServiceRoutes>,
    ) -> Box<dyn Machine> {
        // Hosts beside a router that has all its routers in one area are in it too: in another they would be behind a
        // border that leads nowhere.
        let has_router: Vec<bool> = (0..).zip(lower).map(|(number, _)| routes.has_router(number)).collect();
        let with_routers = lower.iter().zip(&has_router).filter(|(_, has_router)| **has_router);
        let areas: BTreeSet<u32> = with_routers.map(|(interface, _)| self.of(interface, None).area).collect();
        let only = areas.first().copied().filter(|_| areas.len() == 1);
        let interfaces: Vec<InterfaceConfig> = lower
            .iter()
            .zip(has_router)
            .map(|(interface, has_router)| self.of(interface, only.filter(|_| !has_router)))
            .collect();
        let (links, table) = (Box::new(Links(routes.clone())), routes.route_table());
        Box::new(LinkState::new(self.config.clone(), host, &interfaces, links, table, routes.random()))
    }
}

/// The node's links, as link-state routing looks at them.
struct Links(Rc<dyn ServiceRoutes>);

impl Attachments for Links {
    fn version(&self) -> u64 {
        self.0.links_version()
    }

    fn is_up(&self, interface: u32) -> bool {
        self.0.is_up(interface)
    }

    fn attached(&self) -> Vec<Attached> {
        self.0.attached()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_costs_what_its_rate_is_to_the_reference() {
        let reference = Rate::from_mbit(100);
        let cost = |bits: u64| cost_of(Some(Rate::from_bits_per_sec(bits)), reference);
        assert_eq!([10_000_000, 100_000_000, 1_000_000_000].map(cost), [10, 1, 1]);
        assert_eq!((cost(64_000), cost(1), cost_of(None, reference)), (1562, u16::MAX, 1));
    }
}
