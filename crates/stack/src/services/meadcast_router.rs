//! `meadcast-router`: routers that take part in MEADcast.

use std::rc::Rc;

use hopcast_config::decode::{flag, whole};
use hopcast_core::Machine;
use hopcast_explicit::meadcast::router::{Config, HOOKS, Router};
use hopcast_host::Hook;

use super::{COPIES_PER_SECOND, per_second};
use crate::deliveries::meadcast::{KEY, key as key_of, shown_key};
use crate::service::{HostConfig, LowerInterface, Service, ServiceRoutes, ServiceRow};
use crate::table::{Form, Opt, Options, Worlds, on_off, shown};

pub(super) static MEADCAST_ROUTER: ServiceRow = ServiceRow {
    name: "meadcast-router",
    about: "names itself to MEADcast's senders, and copies their data where the paths of receivers part; IPv6",
    worlds: Worlds::Both,
    on_host: true,
    for_sites: true,
    options: || OPTIONS.docs(&Config::default()),
    read: |row, node| OPTIONS.service(row, node, Config::default()),
};

static OPTIONS: Options<Config> = Options(&[
    Opt {
        key: "enable",
        about: "Whether it takes part; off, it forwards as any other router, and receivers behind it get nothing until the sender's next discovery.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.enable = found),
        show: |config| on_off(config.enable),
    },
    Opt {
        key: "min-dsts",
        about: "Receivers below which data for another router becomes plain packets here, 0 to 32. With more, packets on the way to that router are shorter, and there are more of them.",
        form: Form::Numbers(0, 32),
        set: |config, node, key| whole(node, key, 0..=32).map(|found| config.min_dsts = found as u8),
        show: |config| shown(&config.min_dsts),
    },
    Opt {
        key: "copies-per-second",
        about: COPIES_PER_SECOND,
        form: Form::Count,
        set: |config, node, key| per_second(node, key).map(|found| config.copies_per_second = found),
        show: |config| shown(&config.copies_per_second),
    },
    Opt {
        key: "responses-per-second",
        about: "Maximum number of responses to discovery in a second, a tenth of them at once. With fewer, senders do not learn of the router; with more, forged requests cost more.",
        form: Form::Count,
        set: |config, node, key| per_second(node, key).map(|found| config.responses_per_second = found),
        show: |config| shown(&config.responses_per_second),
    },
    Opt {
        key: "key",
        about: KEY,
        form: Form::Word,
        set: |config, node, key| key_of(node, key).map(|found| config.key = found),
        show: |config| shown_key(config.key),
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
        Box::new(Router::new(*self, &host.addresses))
    }
}
