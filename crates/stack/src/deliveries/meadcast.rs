//! `meadcast`: lists of receivers in packets, which routers with the service `meadcast-router` copy.

use std::net::{IpAddr, Ipv6Addr};

use hopcast_config::decode::{duration, flag, some_duration, whole};
use hopcast_core::Shared;
use hopcast_explicit::meadcast::router::HOOKS;
use hopcast_explicit::meadcast::sender::{Config, Sender};

use super::receivers::TimedSender;
use crate::group::{
    Delivery, DeliveryMachines, DeliveryRow, GroupEnd, GroupReach, SiteDelivery, SiteGroup, SiteSender,
};
use crate::table::{Form, Opt, Options, Worlds, on_off, shown};

pub(super) static MEADCAST: DeliveryRow = DeliveryRow {
    name: "meadcast",
    about: "MEADcast, IPv6: packets list their receivers, and routers with `meadcast-router` copy them",
    worlds: Worlds::Both,
    options: || OPTIONS.docs(&Config::default()),
    read: |row, options| OPTIONS.delivery(row, options, Config::default()),
};

static OPTIONS: Options<Config> = Options(&[
    Opt {
        key: "delay",
        about: "Time until the first discovery; until it has ended, all is unicast.",
        form: Form::Duration,
        set: |config, node, key| duration(node, key).map(|found| config.delay = found),
        show: |config| config.delay.to_string(),
    },
    Opt {
        key: "interval",
        about: "Time from the end of a discovery to the next; `0s` is one discovery alone. With less, it costs more; with more, changes are known later.",
        form: Form::Duration,
        set: |config, node, key| duration(node, key).map(|found| config.interval = found),
        show: |config| config.interval.to_string(),
    },
    Opt {
        key: "timeout",
        about: "Time for which responses are collected. Less than a round trip, and routers are missed; more, and changes are known later.",
        form: Form::Duration,
        set: |config, node, key| some_duration(node, key).map(|found| config.timeout = found),
        show: |config| config.timeout.to_string(),
    },
    Opt {
        key: "wait",
        about: "Whether the delay begins with the first data.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.wait = found),
        show: |config| on_off(config.wait),
    },
    Opt {
        key: "max",
        about: "Maximum number of addresses in a packet, routers and receivers, 2 to 32. With fewer, there are more packets; with more, longer headers.",
        form: Form::Numbers(2, 32),
        set: |config, node, key| whole(node, key, 2..=32).map(|found| config.max = found as usize),
        show: |config| shown(&config.max),
    },
    Opt {
        key: "ok",
        about: "Number of addresses with which a packet ends, 2 to 32; 80 % of `max` unless given.",
        form: Form::Numbers(2, 32),
        set: |config, node, key| whole(node, key, 2..=32).map(|found| config.ok = Some(found as usize)),
        show: |config| shown(&config.ok()),
    },
    Opt {
        key: "merge",
        about: "MEADcast hops, 0 to 63, within which receivers of several routers are served by one before them: before the first of them by no more, and each other no more behind the one that serves until then; 0 is never. With more, lists have fewer routers, and plain packets longer paths.",
        form: Form::Numbers(0, 63),
        set: |config, node, key| whole(node, key, 0..=63).map(|found| config.merge = found as u8),
        show: |config| shown(&config.merge),
    },
    Opt {
        key: "min-leaves",
        about: "Receivers below which a router is not listed, 0 to 32: they go to the router before it, or by unicast.",
        form: Form::Numbers(0, 32),
        set: |config, node, key| whole(node, key, 0..=32).map(|found| config.min_leaves = found as usize),
        show: |config| shown(&config.min_leaves),
    },
    Opt {
        key: "min-routers",
        about: "Routers behind a router with which it is listed all the same, 0 to 32.",
        form: Form::Numbers(0, 32),
        set: |config, node, key| whole(node, key, 0..=32).map(|found| config.min_routers = found as usize),
        show: |config| shown(&config.min_routers),
    },
    Opt {
        key: "split",
        about: "Whether receivers of one router may be in several packets, to fill these; as many as `max` and more always are.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.split = found),
        show: |config| on_off(config.split),
    },
]);

impl Delivery for Config {
    fn refuses(&self, reach: &GroupReach<'_>) -> Option<String> {
        (!reach.ipv6).then(|| "`meadcast` is a protocol of IPv6: add `ip: 6` to the flow".to_owned())
    }

    fn overhead(&self) -> u64 {
        Sender::overhead(self) as u64
    }

    fn machines(&self, end: &GroupEnd<'_>) -> DeliveryMachines {
        let none = DeliveryMachines::default();
        let IpAddr::V6(own) = end.plan.address(end.node, true) else { return none };
        if !end.sends() {
            return none;
        }
        let sender = TimedSender::at(end, [Sender::join, Sender::leave], |receivers| {
            Sender::new(*self, own, end.address(), receivers)
        });
        let sender = Shared::new(sender);
        let seen = sender.clone();
        none.sending("meadcast", sender)
            .with_hooks(HOOKS)
            .showing(move || tree_and_lists(seen.get().sender()))
    }

    fn at_sites(&self) -> Option<&dyn SiteDelivery> {
        Some(self)
    }
}

impl SiteDelivery for Config {
    fn refuses(&self, group: &SiteGroup<'_>) -> Option<String> {
        let of_ipv4 = [&group.own, &group.to].into_iter().chain(group.members).find(|it| it.is_ipv4());
        if let Some(address) = of_ipv4 {
            return Some(format!("is a protocol of IPv6, which {address} is no address of"));
        }
        let odd = group.members.iter().find(|address| special(address) || **address == group.own);
        odd.map(|address| {
            format!("serves single hosts that routers can reach, and {address} is none of them")
        })
    }

    fn sender(&self, group: &SiteGroup<'_>) -> SiteSender {
        let v6 = |address: &IpAddr| if let IpAddr::V6(address) = address { Some(*address) } else { None };
        let own = v6(&group.own).unwrap_or(Ipv6Addr::UNSPECIFIED);
        let sender = Sender::new(*self, own, group.to, group.members.iter().filter_map(v6));
        let sender = Shared::new(sender);
        let seen = sender.clone();
        SiteSender {
            machine: Box::new(sender),
            hooks: HOOKS.to_vec(),
            shown: Box::new(move || tree_and_lists(&seen.get())),
        }
    }
}

/// The tree that a sender has found, and its lists.
fn tree_and_lists(sender: &Sender) -> String {
    format!("{}{}", sender.tree(), sender.groups())
}

/// Whether an address is of this host or of one link, or of several hosts or none.
const fn special(address: &IpAddr) -> bool {
    match address {
        IpAddr::V6(address) => {
            address.is_unspecified()
                || address.is_loopback()
                || address.is_multicast()
                || address.is_unicast_link_local()
        }
        IpAddr::V4(_) => true,
    }
}
