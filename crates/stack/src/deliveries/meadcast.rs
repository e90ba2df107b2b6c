//! `meadcast`: lists of receivers in packets, which routers with the service `meadcast-router` copy.

use std::net::{IpAddr, Ipv6Addr};

use hopcast_config::Diagnostic;
use hopcast_config::decode::{duration, flag, some_duration, text, whole};
use hopcast_config::yaml::Node;
use hopcast_core::{Duration, Shared, Stream};
use hopcast_explicit::meadcast::Key;
use hopcast_explicit::meadcast::directory::{self, Cookies, DirectorySender, Member};
use hopcast_explicit::meadcast::router::HOOKS;
use hopcast_explicit::meadcast::sender::{Config, Grouping, Sender};
use hopcast_explicit::meadcast::wire::MAX_LIST;

use super::receivers::TimedSender;
use crate::group::{
    Delivery, DeliveryMachines, DeliveryRow, GroupEnd, GroupReach, SiteDelivery, SiteGroup, SiteSender,
};
use crate::services::per_second;
use crate::table::{Form, Opt, Options, Worlds, on_off, one_of, shown, word_of};

pub(super) static MEADCAST: DeliveryRow = DeliveryRow {
    name: "meadcast",
    about: "MEADcast, IPv6: packets list their receivers, and routers with `meadcast-router` copy them",
    worlds: Worlds::Both,
    options: || OPTIONS.docs(&Meadcast::default()),
    read: |row, options| OPTIONS.delivery(row, options, Meadcast::default()),
};

const GROUPINGS: [(&str, Grouping); 2] =
    [("depth-first", Grouping::DepthFirst), ("least-bytes", Grouping::LeastBytes)];

/// The thesis' options, those of its revision from `hold` on, and at the end those of members that come and go.
static OPTIONS: Options<Meadcast> = Options(&[
    Opt {
        key: "delay",
        about: "Time until the first discovery; until it has ended, all is unicast.",
        form: Form::Duration,
        set: |config, node, key| duration(node, key).map(|found| config.sender.delay = found),
        show: |config| config.sender.delay.to_string(),
    },
    Opt {
        key: "interval",
        about: "Time from the end of a discovery to the next; `0s` is one discovery alone. With less, it costs more; with more, changes are known later.",
        form: Form::Duration,
        set: |config, node, key| duration(node, key).map(|found| config.sender.interval = found),
        show: |config| config.sender.interval.to_string(),
    },
    Opt {
        key: "timeout",
        about: "Time for which responses are collected. Less than a round trip, and routers are missed; more, and changes are known later.",
        form: Form::Duration,
        set: |config, node, key| some_duration(node, key).map(|found| config.sender.timeout = found),
        show: |config| config.sender.timeout.to_string(),
    },
    Opt {
        key: "wait",
        about: "Whether the delay begins with the first data.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.sender.wait = found),
        show: |config| on_off(config.sender.wait),
    },
    Opt {
        key: "max",
        about: "Maximum number of addresses in a packet, routers and receivers, 2 to 32, and to 128 with `short-lists`. With fewer, there are more packets; with more, longer headers.",
        form: Form::Numbers(2, 128),
        set: |config, node, key| whole(node, key, 2..=128).map(|found| config.sender.max = found as usize),
        show: |config| shown(&config.sender.max),
    },
    Opt {
        key: "ok",
        about: "Number of addresses with which a packet ends, 2 to 128; 80 % of `max` unless given.",
        form: Form::Numbers(2, 128),
        set: |config, node, key| {
            whole(node, key, 2..=128).map(|found| config.sender.ok = Some(found as usize))
        },
        show: |config| shown(&config.sender.ok()),
    },
    Opt {
        key: "merge",
        about: "MEADcast hops, 0 to 63, within which receivers of several routers are served by one before them: before the first of them by no more, and each other no more behind the one that serves until then; 0 is never. With more, lists have fewer routers, and plain packets longer paths.",
        form: Form::Numbers(0, 63),
        set: |config, node, key| whole(node, key, 0..=63).map(|found| config.sender.merge = found as u8),
        show: |config| shown(&config.sender.merge),
    },
    Opt {
        key: "min-leaves",
        about: "Receivers below which a router is not listed, 0 to 32: they go to the router before it, or by unicast.",
        form: Form::Numbers(0, 32),
        set: |config, node, key| {
            whole(node, key, 0..=32).map(|found| config.sender.min_leaves = found as usize)
        },
        show: |config| shown(&config.sender.min_leaves),
    },
    Opt {
        key: "min-routers",
        about: "Routers behind a router with which it is listed all the same, 0 to 32.",
        form: Form::Numbers(0, 32),
        set: |config, node, key| {
            whole(node, key, 0..=32).map(|found| config.sender.min_routers = found as usize)
        },
        show: |config| shown(&config.sender.min_routers),
    },
    Opt {
        key: "split",
        about: "Whether receivers of one router may be in several packets, to fill these; as many as `max` and more always are.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.sender.split = found),
        show: |config| on_off(config.sender.split),
    },
    Opt {
        key: "hold",
        about: "Whether packets are not copied before the paths of their receivers part; off, the first router makes a copy for each router of the list.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.sender.hold = found),
        show: |config| on_off(config.sender.hold),
    },
    Opt {
        key: "next-hop",
        about: "Whether packets are addressed to the router that is to handle them. Off, a router that has stopped hands its first receiver the list; on, neither its receivers get the packet nor those of routers behind it in the same list.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.sender.next_hop = found),
        show: |config| on_off(config.sender.next_hop),
    },
    Opt {
        key: "short-lists",
        about: "Whether lists are compressed by prefix, lose what was served and are split where the tree parts; off, they are those of the thesis.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.sender.short_lists = found),
        show: |config| on_off(config.sender.short_lists),
    },
    Opt {
        key: "list-bytes",
        about: "Maximum length of the header with a short list, 48 to 2048 bytes; as long as other lists of `max` addresses unless given. With fewer, there are more packets; with more, less is left to data.",
        form: Form::Numbers(48, 2048),
        set: |config, node, key| {
            whole(node, key, 48..=2048).map(|found| config.sender.list_bytes = Some(found as usize))
        },
        show: |config| config.sender.list_bytes.map_or_else(String::new, |bytes| shown(&bytes)),
    },
    Opt {
        key: "nonce",
        about: "Whether responses of discovery have to repeat a number of the request, which refuses those about a receiver of whoever does not see the request to it.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.sender.nonce = found),
        show: |config| on_off(config.sender.nonce),
    },
    Opt {
        key: "key",
        about: KEY,
        form: Form::Word,
        set: |config, node, key| self::key(node, key).map(|found| config.sender.key = found),
        show: |config| shown_key(config.sender.key),
    },
    Opt {
        key: "grouping",
        about: "How members are put into packets: `depth-first`, the thesis' algorithm; `least-bytes`, by few bytes on the links of the tree, to which `ok`, `merge`, `min-leaves`, `min-routers` and `split` do not apply.",
        form: Form::OneOf(&["depth-first", "least-bytes"]),
        set: |config, node, key| one_of(node, key, &GROUPINGS).map(|found| config.sender.grouping = found),
        show: |config| word_of(config.sender.grouping, &GROUPINGS).to_owned(),
    },
    Opt {
        key: "payload",
        about: "Length of the data that `least-bytes` reckons with, 1 to 65535 bytes. Far more than data has, and lists are longer than they are worth; far less, and there are more packets.",
        form: Form::Numbers(1, 65_535),
        set: |config, node, key| {
            whole(node, key, 1..=65_535).map(|found| config.sender.payload = found as usize)
        },
        show: |config| shown(&config.sender.payload),
    },
    Opt {
        key: "requests-per-second",
        about: "Maximum number of requests of discovery in a second, a tenth of them at once. With more, routers leave some without a response; with fewer, discovery of large groups takes longer.",
        form: Form::Count,
        set: |config, node, key| per_second(node, key).map(|found| config.sender.requests_per_second = found),
        show: |config| shown(&config.sender.requests_per_second),
    },
    Opt {
        key: "ask-joiners",
        about: "Whether a member that joins between discoveries is asked about at once; off, it has plain packets of its own until the next discovery has ended.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.sender.ask_joiners = found),
        show: |config| on_off(config.sender.ask_joiners),
    },
    Opt {
        key: "directory",
        about: "Whether members join and leave by messages to the sender, which takes them about two round trips; off, the sender knows at once who is a member, as of a list.",
        form: Form::Flag,
        set: |config, node, key| flag(node, key).map(|found| config.by_directory = found),
        show: |config| on_off(config.by_directory),
    },
    Opt {
        key: "directory-hold",
        about: "Time for which a member of the directory is one unless it says so again, which it does three times as often, 1 s to 18 h. With less, there are more messages; with more, data goes for longer to hosts that are gone.",
        form: Form::Duration,
        set: |config, node, key| hold(node, key).map(|found| config.directory.hold = found),
        show: |config| config.directory.hold.to_string(),
    },
]);

/// The settings of the delivery.
#[derive(Clone, Copy, Debug, Default)]
struct Meadcast {
    sender: Config,
    /// Whether members join the sender's directory by messages.
    by_directory: bool,
    directory: directory::Config,
}

fn hold(node: &Node, key: &str) -> Result<Duration, Diagnostic> {
    let found = some_duration(node, key)?;
    let second = Duration::from_secs(1);
    let is_whole = found.as_nanos().is_multiple_of(second.as_nanos());
    match is_whole && (second..=second * (18 * 3600)).contains(&found) {
        true => Ok(found),
        false => {
            Err(node
                .error(format!("`{key}`: expected whole seconds from 1 s to 18 h, found {}", node.found())))
        }
    }
}

pub(crate) const KEY: &str = "Key of senders and routers, 32 hexadecimal digits or `none`, under which responses of discovery are authenticated. A sender with one finds only routers with the same.";

/// A key, or `none`.
pub(crate) fn key(node: &Node, key: &str) -> Result<Option<Key>, Diagnostic> {
    match text(node, key)? {
        "none" => Ok(None),
        digits => match digits.parse() {
            Ok(found) => Ok(Some(found)),
            // Not what was found, which may be a secret.
            Err(expected) => Err(node.error(format!("`{key}`: expected {expected} or `none`"))),
        },
    }
}

/// Whether there is a key, which is not shown.
pub(crate) fn shown_key(key: Option<Key>) -> String {
    if key.is_some() { "given" } else { "none" }.to_owned()
}

impl Delivery for Meadcast {
    fn refuses(&self, reach: &GroupReach<'_>) -> Option<String> {
        if !reach.ipv6 {
            return Some("`meadcast` is a protocol of IPv6: add `ip: 6` to the flow".to_owned());
        }
        if self.by_directory && reach.flow.exchange.is_mutual() {
            return Some(
                "members join the `directory` of one sender, and this transport's all send".to_owned(),
            );
        }
        refused_lists(&self.sender).map(ToOwned::to_owned)
    }

    fn is_of_one_flow(&self) -> bool {
        self.by_directory
    }

    fn overhead(&self) -> u64 {
        Sender::overhead(&self.sender) as u64
    }

    fn machines(&self, end: &GroupEnd<'_>) -> DeliveryMachines {
        let none = DeliveryMachines::default();
        let IpAddr::V6(own) = end.plan.address(end.node, true) else { return none };
        if !end.sends() {
            return match self.by_directory {
                true => self.member(end, own).unwrap_or_default(),
                false => none,
            };
        }
        let mut random = end.random.clone();
        let hooks = HOOKS.into_iter();
        if let (true, IpAddr::V6(group)) = (self.by_directory, end.address()) {
            let cookies = Cookies::draw(&mut random);
            let sender = Sender::new(self.sender, own, group.into(), [], random);
            let sender = Shared::new(DirectorySender::new(self.directory, sender, [own, group], cookies));
            let seen = sender.clone();
            return none
                .sending("meadcast", sender)
                .with_hooks(hooks.chain([directory::HOOK]))
                .showing(move || tree_and_lists(seen.get().sender()));
        }
        let sender = TimedSender::at(end, [Sender::join, Sender::leave], |receivers| {
            Sender::new(self.sender, own, end.address(), receivers, random)
        });
        let sender = Shared::new(sender);
        let seen = sender.clone();
        none.sending("meadcast", sender)
            .with_hooks(hooks)
            .showing(move || tree_and_lists(seen.get().sender()))
    }

    fn at_sites(&self) -> Option<&dyn SiteDelivery> {
        Some(self)
    }
}

impl Meadcast {
    /// The machine of a receiver, which joins the sender's directory and leaves it.
    fn member(&self, end: &GroupEnd<'_>, own: Ipv6Addr) -> Option<DeliveryMachines> {
        let (IpAddr::V6(sender), IpAddr::V6(group)) = (end.source, end.address()) else { return None };
        let changes = end.flow.listener(end.node)?.changes(Duration::ZERO);
        let member = Member::new(own, sender, group, changes, end.random.clone());
        Some(DeliveryMachines::default().sending("meadcast", member).with_hooks([directory::HOOK]))
    }
}

impl SiteDelivery for Meadcast {
    fn refuses(&self, group: &SiteGroup<'_>) -> Option<String> {
        if self.by_directory {
            return Some("has a list of members at a site, and no `directory`".to_owned());
        }
        if let Some(reason) = refused_lists(&self.sender) {
            return Some(reason.to_owned());
        }
        let of_ipv4 = [&group.own, &group.to].into_iter().chain(group.members).find(|it| it.is_ipv4());
        if let Some(address) = of_ipv4 {
            return Some(format!("is a protocol of IPv6, which {address} is no address of"));
        }
        let odd = group.members.iter().find(|address| special(address) || **address == group.own);
        odd.map(|address| {
            format!("serves single hosts that routers can reach, and {address} is none of them")
        })
    }

    fn sender(&self, group: &SiteGroup<'_>, random: Stream) -> SiteSender {
        let v6 = |address: &IpAddr| if let IpAddr::V6(address) = address { Some(*address) } else { None };
        let own = v6(&group.own).unwrap_or(Ipv6Addr::UNSPECIFIED);
        let sender = Sender::new(self.sender, own, group.to, group.members.iter().filter_map(v6), random);
        let sender = Shared::new(sender);
        let seen = sender.clone();
        SiteSender {
            machine: Box::new(sender),
            hooks: HOOKS.to_vec(),
            shown: Box::new(move || tree_and_lists(&seen.get())),
        }
    }
}

/// The reason why lists cannot be as the options say.
const fn refused_lists(config: &Config) -> Option<&'static str> {
    if config.short_lists {
        None
    } else if config.max > MAX_LIST {
        Some("`max`: lists of more than 32 addresses need `short-lists: on`")
    } else if config.list_bytes.is_some() {
        Some("`list-bytes` is of short lists: it needs `short-lists: on`")
    } else {
        None
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
