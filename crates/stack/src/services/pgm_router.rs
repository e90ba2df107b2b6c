//! `pgm-router`: routers that take part in PGM.

use std::ops::RangeInclusive;
use std::rc::Rc;

use hopcast_config::decode::{flag, size, some_duration, whole};
use hopcast_core::{Bytes, Machine};
use hopcast_host::Hook;
use hopcast_reliable::pgm::router::{Config, HOOKS, Router};

use crate::service::{HostConfig, LowerInterface, Service, ServiceRoutes, ServiceRow};
use crate::table::{Form, Opt, Options, Worlds, on_off, shown};

pub(super) static PGM_ROUTER: ServiceRow = ServiceRow {
    name: "pgm-router",
    about: "forwards PGM's requests once and its repairs to the branches that asked (network element of RFC 3208)",
    worlds: Worlds::Both,
    on_host: true,
    for_sites: false,
    options: || OPTIONS.docs(&Config::default()),
    read: |row, node| OPTIONS.service(row, node, Config::default()),
};

/// Bytes of a store. Chosen: 64 GiB is no memory.
const STORES: RangeInclusive<u64> = 0..=64 << 30;

static OPTIONS: Options<Config> = Options(&[
    Opt {
        key: "retry",
        about: "The time after which a request that the next router does not confirm is sent again; it doubles each time. Shorter than a hop's round trip, and all are sent twice; longer, and a lost one costs that time.",
        form: Form::Duration,
        set: |config, node, key| some_duration(node, key).map(|found| config.retry = found),
        show: |config| config.retry.to_string(),
    },
    Opt {
        key: "attempts",
        about: "How often a request is sent, 1 to 20, before it is given up until a receiver repeats it. Fewer give up where much is lost; more ask a router that is gone for longer.",
        form: Form::Numbers(1, 20),
        set: |config, node, key| whole(node, key, 1..=20).map(|found| config.attempts = found as u32),
        show: |config| config.attempts.to_string(),
    },
    Opt {
        key: "elimination",
        about: "The time after a confirmation in which the same request is not forwarded again, until repairs have shown how long they take; then it is that, and 20 ms. Shorter than repairs take, and the source hears a loss several times; longer, and a repair that was lost comes later.",
        form: Form::Duration,
        set: |config, node, key| some_duration(node, key).map(|found| config.elimination = found),
        show: |config| config.elimination.to_string(),
    },
    Opt {
        key: "repair-timeout",
        about: "How long a repair is waited for once it is confirmed. Shorter than the source takes, and repairs are dropped here; longer, and the state of lost ones stays.",
        form: Form::Duration,
        set: |config, node, key| some_duration(node, key).map(|found| config.repair_timeout = found),
        show: |config| config.repair_timeout.to_string(),
    },
    Opt {
        key: "repairs",
        about: "Most repairs that are waited for in a session, 1 to 1000000. Requests for more are dropped, and come again.",
        form: Form::Count,
        set: |config, node, key| whole(node, key, 1..=1_000_000).map(|found| config.repairs = found as usize),
        show: |config| config.repairs.to_string(),
    },
    Opt {
        key: "store",
        about: "Bytes of data to keep, from which requests are answered here (designated local repairer); 0 keeps none. With more than passes by while receivers ask, the source is asked only for what was lost before this router.",
        form: Form::Size,
        set: |config, node, key| size(node, key, STORES).map(|found| config.store = found.get() as usize),
        show: |config| shown(&Bytes::new(config.store as u64)),
    },
    Opt {
        key: "redirect",
        about: "Whether a request goes first to a router below with a `store`, which has what another branch has lost (off-tree repairer, OPT_REDIRECT). It costs a poll in ten seconds of losses, and a round trip to a repairer that lacks the same.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.redirect = found),
        show: |config| on_off(config.redirect),
    },
]);

impl Service for Config {
    fn hooks(&self) -> Vec<Hook> {
        HOOKS.to_vec()
    }

    fn machine(
        &self,
        host: &HostConfig,
        _: &[LowerInterface],
        _: &Rc<dyn ServiceRoutes>,
    ) -> Box<dyn Machine> {
        let config = Self { hop_limit: host.hop_limit, ..*self };
        Box::new(Router::new(config, host.addresses.clone()))
    }
}
