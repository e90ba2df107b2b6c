//! `firewall`: routers that drop what they would forward.

use std::rc::Rc;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{did_you_mean, duration, listed, one_or_list, some_duration, text};
use hopcast_config::yaml::Node;
use hopcast_core::{Instant, Machine};
use hopcast_host::Hook;
use hopcast_host::firewall::{Config, Firewall, HOOKS, Match, Rule};

use crate::service::{HostConfig, LowerInterface, Service, ServiceRoutes, ServiceRow};
use crate::table::{Form, Opt, Options, Worlds, shown};

pub(super) static FIREWALL: ServiceRow = ServiceRow {
    name: "firewall",
    about: "drops packets that the node would forward: those with a routing header, or of a protocol or port",
    worlds: Worlds::Virtual,
    on_host: true,
    for_sites: false,
    options: || OPTIONS.docs(&Config::default()),
    read: |row, node| OPTIONS.service(row, node, Config::default()),
};

static OPTIONS: Options<Config> = Options(&[
    Opt {
        key: "drop",
        about: "The packets that are dropped, one or a list: `routing-header` (IPv6), `udp`, `tcp`, `icmp` of both versions of IP, or `all`; `udp/5000` and `tcp/80` are those to one port. Without any, all pass.",
        form: Form::Names,
        set: |config, node, key| {
            config.drop = one_or_list(node).iter().map(|item| rule(item, key)).collect::<Result<_, _>>()?;
            Ok(())
        },
        show: |config| config.drop.iter().map(|rule| shown_rule(*rule)).collect::<Vec<_>>().join(" "),
    },
    Opt {
        key: "from",
        about: "The time from which on packets are dropped.",
        form: Form::Duration,
        set: |config, node, key| duration(node, key).map(|found| config.from = Instant::ZERO + found),
        show: |config| shown(&config.from.since(Instant::ZERO)),
    },
    Opt {
        key: "until",
        about: "The time from which on all pass again, later than `from`.",
        form: Form::Duration,
        set: |config, node, key| {
            let until = Instant::ZERO + some_duration(node, key)?;
            if until <= config.from {
                let (from, found) = (config.from.since(Instant::ZERO), node.found());
                return Err(node.error(format!("`{key}`: expected more than `from`, {from}, found {found}")));
            }
            config.until = Some(until);
            Ok(())
        },
        show: |config| config.until.map_or_else(String::new, |until| shown(&until.since(Instant::ZERO))),
    },
]);

const NAMES: [(&str, Match); 5] = [
    ("routing-header", Match::RoutingHeader),
    ("udp", Match::Udp),
    ("tcp", Match::Tcp),
    ("icmp", Match::Icmp),
    ("all", Match::All),
];

fn rule(node: &Node, key: &str) -> Result<Rule, Diagnostic> {
    let written = text(node, key)?;
    let (name, port) = match written.split_once('/') {
        Some((name, port)) => (name, Some(port)),
        None => (written, None),
    };
    let Some(&(_, kind)) = NAMES.iter().find(|(known, _)| *known == name) else {
        let names = NAMES.map(|(name, _)| name);
        let (all, hint) = (listed(&names), did_you_mean(name, names));
        return Err(node.error(format!("`{key}`: expected one of {all}, found {}{hint}", node.found())));
    };
    let Some(port) = port else { return Ok(Rule { kind, port: None }) };
    match port.parse::<u16>() {
        Ok(port) if matches!(kind, Match::Udp | Match::Tcp) => Ok(Rule { kind, port: Some(port) }),
        Ok(_) => Err(node.error(format!("`{key}`: `{name}` has no ports: write `{name}`"))),
        Err(_) => {
            Err(node.error(format!("`{key}`: expected a port, 0 to 65,535, behind `/`, found `{port}`")))
        }
    }
}

fn shown_rule(Rule { kind, port }: Rule) -> String {
    let name = NAMES.iter().find(|(_, known)| *known == kind).map_or("", |(name, _)| name);
    port.map_or_else(|| name.to_owned(), |port| format!("{name}/{port}"))
}

impl Service for Config {
    fn hooks(&self) -> Vec<Hook> {
        HOOKS.to_vec()
    }

    fn machine(&self, _: &HostConfig, _: &[LowerInterface], _: &Rc<dyn ServiceRoutes>) -> Box<dyn Machine> {
        Box::new(Firewall::new(self.clone()))
    }
}
