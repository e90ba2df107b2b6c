//! `xcast`: lists of receivers in packets, which routers with the service `xcast-router` sort by next hop.

use std::net::IpAddr;

use hopcast_config::decode::{flag, whole};
use hopcast_explicit::xcast::router::HOOKS;
use hopcast_explicit::xcast::sender::{self, Sender};
use hopcast_explicit::xcast::wire::MAX_LIST;

use super::receivers::TimedSender;
use crate::group::{Delivery, DeliveryMachines, DeliveryRow, GroupEnd, GroupReach};
use crate::services::xcast_router::{SENDER, XcastRoutes};
use crate::table::{Form, Opt, Options, Worlds, on_off, shown};

pub(super) static XCAST: DeliveryRow = DeliveryRow {
    name: SENDER,
    about: "Xcast (RFC 5058), IPv6: packets list their receivers, and routers with `xcast-router` sort them by next hop",
    worlds: Worlds::Both,
    options: || OPTIONS.docs(&Xcast::default()),
    read: |row, options| OPTIONS.delivery(row, options, Xcast::default()),
};

/// The settings.
#[derive(Clone, Debug)]
struct Xcast {
    config: sender::Config,
    tunnel: bool,
}

impl Default for Xcast {
    fn default() -> Self {
        Self { config: sender::Config::default(), tunnel: true }
    }
}

static OPTIONS: Options<Xcast> = Options(&[
    Opt {
        key: "max",
        about: "Maximum number of receivers in a packet, 1 to 125; fewer where a longer list does not fit beside the datagram. With fewer, there are more packets; with more, longer headers.",
        form: Form::Numbers(1, MAX_LIST as u64),
        set: |xcast, node, key| {
            whole(node, key, 1..=MAX_LIST as u64).map(|found| xcast.config.max = found as usize)
        },
        show: |xcast| shown(&xcast.config.max),
    },
    Opt {
        key: "tunnel",
        about: "Whether the sender's lists go in a tunnel past routers without `xcast-router` to the first that has it; off, they become plain packets.",
        form: Form::Flag,
        set: |xcast, node, key| flag(node, key).map(|found| xcast.tunnel = found),
        show: |xcast| on_off(xcast.tunnel),
    },
]);

impl Delivery for Xcast {
    fn refuses(&self, reach: &GroupReach<'_>) -> Option<String> {
        (!reach.ipv6).then(|| "`xcast` is a protocol of IPv6: add `ip: 6` to the flow".to_owned())
    }

    fn overhead(&self) -> u64 {
        self.config.overhead() as u64
    }

    fn min_overhead(&self) -> u64 {
        // Beside a long datagram lists are shorter, and a packet to one receiver has none.
        0
    }

    fn machines(&self, end: &GroupEnd<'_>) -> DeliveryMachines {
        let none = DeliveryMachines::default();
        let IpAddr::V6(own) = end.plan.address(end.node, true) else { return none };
        if !end.sends() {
            return none;
        }
        let config = sender::Config { mtu: end.mtu as usize, ..self.config };
        let next_hops = Box::new(XcastRoutes::new(end.routes.clone(), self.tunnel));
        let sender = TimedSender::at(end, [Sender::join, Sender::leave], |receivers| {
            Sender::new(config, own, end.address(), receivers, next_hops)
        });
        none.sending("xcast", sender).with_hooks(HOOKS)
    }
}
