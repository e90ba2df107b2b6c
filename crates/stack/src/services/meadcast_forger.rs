//! `meadcast-forger`: nodes that forge responses to MEADcast's discovery.

use std::net::Ipv6Addr;
use std::rc::Rc;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{text, whole};
use hopcast_config::yaml::Node;
use hopcast_core::Machine;
use hopcast_explicit::meadcast::forger::{Config, Forger, Knows};
use hopcast_explicit::meadcast::router::HOOKS;
use hopcast_host::Hook;

use super::per_second;
use crate::deliveries::meadcast::{KEY, key as key_of, shown_key};
use crate::service::{HostConfig, LowerInterface, Service, ServiceRoutes, ServiceRow};
use crate::table::{Form, Opt, Options, Worlds, one_of, shown, word_of};

pub(super) static MEADCAST_FORGER: ServiceRow = ServiceRow {
    name: "meadcast-forger",
    about: "forges responses to MEADcast's discovery, and serves nobody; IPv6",
    worlds: Worlds::Virtual,
    on_host: true,
    for_sites: false,
    options: || OPTIONS.docs(&Config::default()),
    read: |row, node| OPTIONS.service(row, node, Config::default()),
};

const KNOWN: [(&str, Knows); 4] = [
    ("nothing", Knows::Nothing),
    ("addresses", Knows::Addresses),
    ("requests", Knows::Requests),
    ("key", Knows::Key),
];

static OPTIONS: Options<Config> = Options(&[
    Opt {
        key: "knows",
        about: "The knowledge that it makes use of: `nothing`, and it forges nothing; the `addresses` of receivers; the nonces of `requests` too, as on the way to them; the `key` too, as a router that has been taken over.",
        form: Form::OneOf(&["nothing", "addresses", "requests", "key"]),
        set: |config, node, key| one_of(node, key, &KNOWN).map(|found| config.knows = found),
        show: |config| word_of(config.knows, &KNOWN).to_owned(),
    },
    Opt {
        key: "router",
        about: "The router that its responses are from: `own`, which is the node, or an address of IPv6. Of an address that nobody has, lists reach nobody.",
        form: Form::Word,
        set: |config, node, key| router(node, key).map(|found| config.router = found),
        show: |config| config.router.map_or_else(|| "own".to_owned(), |router| router.to_string()),
    },
    Opt {
        key: "hops",
        about: "The distance of that router in MEADcast hops, 0 to 63; 0 is the node's own. With more than that of all others on the way, receivers seem to be behind it.",
        form: Form::Numbers(0, 63),
        set: |config, node, key| whole(node, key, 0..=63).map(|found| config.hops = found as u8),
        show: |config| shown(&config.hops),
    },
    Opt {
        key: "key",
        about: KEY,
        form: Form::Word,
        set: |config, node, key| key_of(node, key).map(|found| config.key = found),
        show: |config| shown_key(config.key),
    },
    Opt {
        key: "responses-per-second",
        about: "Maximum number of forged responses in a second, a tenth of them at once.",
        form: Form::Count,
        set: |config, node, key| per_second(node, key).map(|found| config.responses_per_second = found),
        show: |config| shown(&config.responses_per_second),
    },
]);

/// An address of IPv6, or `own`.
fn router(node: &Node, key: &str) -> Result<Option<Ipv6Addr>, Diagnostic> {
    match text(node, key)? {
        "own" => Ok(None),
        address => address.parse().map(Some).map_err(|_| {
            node.error(format!("`{key}`: expected an address of IPv6 or `own`, found {}", node.found()))
        }),
    }
}

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
        Box::new(Forger::new(*self, &host.addresses))
    }
}
