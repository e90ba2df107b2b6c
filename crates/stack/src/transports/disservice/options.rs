//! The options of DisService's members.

use hopcast_config::Diagnostic;
use hopcast_config::decode::{choice, duration, flag, rate, share, size, some_duration, whole, words};
use hopcast_config::yaml::Node;
use hopcast_core::{Bytes, Duration, Fraction};
use hopcast_reliable::Subscription;
use hopcast_reliable::disservice::{Forwarding, Policy, PublisherRepairs, Replication, Servers};

use super::DisService;
use crate::table::{Form, Opt, Options, on_off, shown};
use crate::transport::{Layer, Row};
use crate::transports::subscription::{self, Subscribes};

impl Subscribes for DisService {
    fn subscription(&self) -> Subscription {
        self.subscription
    }

    fn subscription_mut(&mut self) -> &mut Subscription {
        &mut self.subscription
    }
}

const SERVERS: [&str; 2] = ["one", "anyone"];
const PUBLISHERS: [&str; 3] = ["always", "when-idle", "never"];
const FORWARDINGS: [&str; 5] = ["none", "flood", "world-state", "stateful", "topology"];
const REPLICATIONS: [&str; 5] = ["none", "pull", "push", "convoy", "targets"];
/// Bytes of a cache. Chosen: less than 64 KiB is a few packets, more than 64 GiB is no memory.
const CACHES: std::ops::RangeInclusive<u64> = 64 << 10..=64 << 30;
/// Time that a neighbour is there before a convoy counts it. Chosen: some intervals of summaries.
const CONVOY: Duration = Duration::from_secs(10);

/// Reads the options into a layer.
pub(super) fn read(row: &'static Row, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    // What follows from `shipped` goes without saying.
    let usual = |settings: &DisService| match settings.is_shipped {
        true => DisService { policy: Policy::shipped(), ..DisService::default() },
        false => DisService::default(),
    };
    OPTIONS.layer_as(row, options, DisService::default(), usual, Ok)
}

/// A setting of the policy that is a time, not zero.
macro_rules! time {
    ($key:literal, $($field:tt).+, $about:literal) => {
        Opt {
            key: $key,
            about: $about,
            form: Form::Duration,
            set: |settings, node, key| {
                some_duration(node, key).map(|found| settings.policy.$($field).+ = found)
            },
            show: |settings| shown(&settings.policy.$($field).+),
        }
    };
}

fn shown_share(share: f64) -> String {
    Fraction::new(share).map_or_else(String::new, |share| shown(&share))
}

pub(super) static OPTIONS: Options<DisService> = Options(&[
    Opt {
        key: "shipped",
        about: "Whether the other options begin with the settings that DisService is shipped with: requests every 3 s for half of what \
                is missing, to anyone, and all answer. They waste where ours do not.",
        form: Form::Flag,
        set: |settings, node, key| {
            settings.is_shipped = flag(node, key)?;
            settings.policy = if settings.is_shipped { Policy::shipped() } else { Policy::default() };
            Ok(())
        },
        show: |settings| on_off(settings.is_shipped),
    },
    Opt {
        key: "rate",
        about: "The rate at which each member sends, headers of all layers included. Too high, and the excess is lost in queues and \
                repaired.",
        form: Form::Rate,
        set: |settings, node, key| rate(node, key).map(|found| settings.policy.rate = found),
        show: |settings| shown(&settings.policy.rate),
    },
    Opt {
        key: "fragment",
        about: "Bytes of a message in one packet, 16 to 65000; longer messages are cut. Unless it is set, as many as fit the path; never \
                more.",
        form: Form::Count,
        set: |settings, node, key| {
            whole(node, key, 16..=65_000).map(|found| settings.fragment = Some(found as u16))
        },
        show: |settings| settings.fragment.map_or_else(|| "what fits".to_owned(), |bytes| shown(&bytes)),
    },
    Opt {
        key: "chunk",
        about: "Fragments of a chunk, 1 to 255: those that are combined with each other where repairs are `coded`. More make repairs serve \
                more members, and cost a byte each in every repair.",
        form: Form::Count,
        set: |settings, node, key| whole(node, key, 1..=255).map(|found| settings.policy.chunk = found as u8),
        show: |settings| shown(&settings.policy.chunk),
    },
    Opt {
        key: "coded",
        about: "Whether repairs are combinations of what their sender holds of a chunk (RLNC), so that any serves whatever others lack. \
                Messages of one fragment gain nothing by it.",
        form: Form::Flag,
        set: |settings, node, key| flag(node, key).map(|found| settings.policy.is_coded = found),
        show: |settings| on_off(settings.policy.is_coded),
    },
    Opt {
        key: "cache",
        about: "Bytes of messages that a member holds, its own and others'. Too few, and it drops what others may still ask for, which \
                `cache_dropped` counts.",
        form: Form::Size,
        set: |settings, node, key| size(node, key, CACHES).map(|found| settings.policy.cache = found.get()),
        show: |settings| shown(&Bytes::new(settings.policy.cache)),
    },
    Opt {
        key: "listen",
        about: "Whether a member holds what it overhears of groups that it does not subscribe to (opportunistic listening). `off`, the nodes \
                of the role `peer` hold nothing.",
        form: Form::Flag,
        set: |settings, node, key| flag(node, key).map(|found| settings.policy.listens = found),
        show: |settings| on_off(settings.policy.listens),
    },
    Opt {
        key: "lifetime",
        about: "Time after which a message is of no use to anybody. Too short, and it is dropped before it arrives; unless it is set, the \
                cache alone bounds what is held.",
        form: Form::Duration,
        set: |settings, node, key| {
            some_duration(node, key).map(|found| settings.policy.lifetime = Some(found))
        },
        show: |settings| settings.policy.lifetime.map_or_else(|| "no end".to_owned(), |time| shown(&time)),
    },
    Opt {
        key: "history",
        about: "Number of messages before it that a publisher recommends to whoever hears first of this one, 0 to 1000000; for subscribers \
                that do not ask for everything.",
        form: Form::Count,
        set: |settings, node, key| {
            whole(node, key, 0..=1_000_000).map(|found| settings.policy.history = found as u32)
        },
        show: |settings| shown(&settings.policy.history),
    },
    Opt {
        key: "ask-every",
        about: "Time between a member's requests, give or take a fifth. Too short, and requests are made for what is under way; too long \
                delays repairs. Unless it is set, eight packets' time at the rate, from 20 ms to 5 s.",
        form: Form::Duration,
        set: |settings, node, key| {
            some_duration(node, key).map(|found| settings.policy.requests.every = Some(found))
        },
        show: |settings| {
            settings.policy.requests.every.map_or_else(|| "8 packets".to_owned(), |time| shown(&time))
        },
    },
    Opt {
        key: "ask-share",
        about: "Share of what is missing that a request names, drawn at random. Less than all spreads requests of several members over \
                different fragments, where nobody hears them all, and takes more of them.",
        form: Form::Share,
        set: |settings, node, key| share(node, key).map(|found| settings.policy.requests.share = found.get()),
        show: |settings| shown_share(settings.policy.requests.share),
    },
    Opt {
        key: "tail-after",
        about: "Number of intervals without new fragments of a message, 0 to 1000, after which its end is asked for. Too few ask for what \
                is under way, too many delay the end.",
        form: Form::Count,
        set: |settings, node, key| {
            whole(node, key, 0..=1000).map(|found| settings.policy.requests.tail_after = found as u32)
        },
        show: |settings| shown(&settings.policy.requests.tail_after),
    },
    Opt {
        key: "back-off",
        about: "Maximum factor by which the time between requests grows while nothing comes, 1 to 65536; 1 for none. Too small costs \
                packets where nobody can answer; news end it in any case.",
        form: Form::Count,
        set: |settings, node, key| {
            whole(node, key, 1..=1 << 16).map(|found| settings.policy.requests.back_off = found as u32)
        },
        show: |settings| shown(&settings.policy.requests.back_off),
    },
    Opt {
        key: "servers",
        about: "Who is to answer a request: `one`, a member that it names, which passes on what it lacks; or `anyone` that has it, where \
                several may answer the same.",
        form: Form::OneOf(&SERVERS),
        set: |settings, node, key| {
            let is_one = choice(node, key, &SERVERS)?.0 == "one";
            settings.policy.requests.servers = if is_one { Servers::One } else { Servers::Anyone(None) };
            Ok(())
        },
        show: |settings| SERVERS[usize::from(settings.policy.requests.servers != Servers::One)].to_owned(),
    },
    Opt {
        key: "answer-share",
        about: "Probability with which a member answers a request to `anyone`; unless it is set, one over the number of neighbours that the \
                request says. Too high repeats answers, too low waits for the next request.",
        form: Form::Share,
        set: |settings, node, key| {
            let found = share(node, key)?;
            match &mut settings.policy.requests.servers {
                Servers::Anyone(share) => *share = Some(found.get()),
                Servers::One => {
                    return Err(node.error(format!("`{key}`: it is for `servers: anyone`")));
                }
            }
            Ok(())
        },
        show: |settings| match settings.policy.requests.servers {
            Servers::Anyone(Some(share)) => shown_share(share),
            Servers::Anyone(None) | Servers::One => "1 over neighbours".to_owned(),
        },
    },
    Opt {
        key: "publisher-repairs",
        about: "When a publisher answers requests for its own messages: `always`, before new ones, `when-idle`, or `never`, which leaves it \
                to others and its link to new messages.",
        form: Form::OneOf(&PUBLISHERS),
        set: |settings, node, key| {
            settings.policy.repairs.publisher = match choice(node, key, &PUBLISHERS)?.0 {
                "when-idle" => PublisherRepairs::WhenIdle,
                "never" => PublisherRepairs::Never,
                _ => PublisherRepairs::Always,
            };
            Ok(())
        },
        show: |settings| PUBLISHERS[settings.policy.repairs.publisher as usize].to_owned(),
    },
    Opt {
        key: "memory",
        about: "Time for which nobody answers a request to `anyone` by a fragment that was heard (network traffic memory). Too short \
                repeats it, too long delays it where it was lost.",
        form: Form::Duration,
        set: |settings, node, key| duration(node, key).map(|found| settings.policy.repairs.memory = found),
        show: |settings| shown(&settings.policy.repairs.memory),
    },
    Opt {
        key: "repair-delay",
        about: "Maximum time that a member waits before it answers a request to `anyone`, drawn at random. Too short, and many answer at a \
                time; too long delays repairs.",
        form: Form::Duration,
        set: |settings, node, key| duration(node, key).map(|found| settings.policy.repairs.delay = found),
        show: |settings| shown(&settings.policy.repairs.delay),
    },
    time!(
        "summary-every",
        summaries.0,
        "Time between a member's summaries of what it knows and holds after news; it grows to `summary-at-most` without. Too short costs \
         packets; too long, and members that meet find out late."
    ),
    time!("summary-at-most", summaries.1, "Maximum time between summaries, where there are no news."),
    time!(
        "dead-after",
        dead_after,
        "Time after which a neighbour that is not heard counts as gone. It is to be some of the longest intervals of summaries."
    ),
    Opt {
        key: "forward",
        about: "Which fragments a member sends on when it hears them: `none`; `flood`, all; `world-state`, those that a neighbour wants and \
                does not hold by its summary; `stateful`, all that not every neighbour has been heard to send; `topology`, those of members \
                that a neighbour does not hear.",
        form: Form::OneOf(&FORWARDINGS),
        set: |settings, node, key| {
            settings.policy.forwarding = match choice(node, key, &FORWARDINGS)?.0 {
                "flood" => Forwarding::Probabilistic(1.0),
                "world-state" => Forwarding::WorldState,
                "stateful" => Forwarding::Stateful,
                "topology" => Forwarding::Topology,
                _ => Forwarding::None,
            };
            Ok(())
        },
        show: |settings| {
            let place = match settings.policy.forwarding {
                Forwarding::None => 0,
                Forwarding::Probabilistic(_) => 1,
                Forwarding::WorldState => 2,
                Forwarding::Stateful => 3,
                Forwarding::Topology => 4,
            };
            FORWARDINGS[place].to_owned()
        },
    },
    Opt {
        key: "forward-share",
        about: "Probability with which a member sends on a fragment with `forward: flood`. Too low, and it does not get far; too high \
                repeats what others have sent.",
        form: Form::Share,
        set: |settings, node, key| {
            let found = share(node, key)?;
            match &mut settings.policy.forwarding {
                Forwarding::Probabilistic(share) => *share = found.get(),
                _ => return Err(node.error(format!("`{key}`: it is for `forward: flood`"))),
            }
            Ok(())
        },
        show: |settings| match settings.policy.forwarding {
            Forwarding::Probabilistic(share) => shown_share(share),
            _ => shown_share(1.0),
        },
    },
    Opt {
        key: "forward-delay",
        about: "Maximum time that a member waits before it sends a fragment on, drawn at random. Too short, and neighbours do so at one \
                time; too long delays each hop.",
        form: Form::Duration,
        set: |settings, node, key| duration(node, key).map(|found| settings.policy.forward_delay = found),
        show: |settings| shown(&settings.policy.forward_delay),
    },
    Opt {
        key: "replicate",
        about: "Which messages a member brings to others, or gets for others' sake: `none`; `pull`, it asks for all that it hears of; `push`, \
                it sends neighbours what they lack by their summaries; `convoy`, those neighbours that have been there for some time; \
                `targets`, those nodes.",
        form: Form::OneOf(&REPLICATIONS),
        set: |settings, node, key| {
            settings.policy.replication = match choice(node, key, &REPLICATIONS)?.0 {
                "pull" => Replication::Pull,
                "push" => Replication::Push,
                "convoy" => Replication::Convoy(CONVOY),
                "targets" => Replication::Targets(Vec::new()),
                _ => Replication::None,
            };
            Ok(())
        },
        show: |settings| {
            let place = match settings.policy.replication {
                Replication::None => 0,
                Replication::Pull => 1,
                Replication::Push => 2,
                Replication::Convoy(_) => 3,
                Replication::Targets(_) => 4,
            };
            REPLICATIONS[place].to_owned()
        },
    },
    Opt {
        key: "convoy-after",
        about: "Time that a neighbour has to be there before `replicate: convoy` brings it messages. Too short counts whoever passes by, too \
                long leaves out those of the convoy.",
        form: Form::Duration,
        set: |settings, node, key| {
            let found = duration(node, key)?;
            match &mut settings.policy.replication {
                Replication::Convoy(after) => *after = found,
                _ => return Err(node.error(format!("`{key}`: it is for `replicate: convoy`"))),
            }
            Ok(())
        },
        show: |settings| match settings.policy.replication {
            Replication::Convoy(after) => shown(&after),
            _ => shown(&CONVOY),
        },
    },
    Opt {
        key: "targets",
        about: "The nodes that `replicate: targets` brings messages to, by their names.",
        form: Form::Words,
        set: |settings, node, key| {
            let found = words(node, key)?;
            if !matches!(settings.policy.replication, Replication::Targets(_)) {
                return Err(node.error(format!("`{key}`: it is for `replicate: targets`")));
            }
            settings.targets = found;
            Ok(())
        },
        show: |settings| settings.targets.join(" "),
    },
    time!(
        "patience",
        patience,
        "Time for which a message of which nobody holds anything is asked for. Too short gives up what a member that comes back may have; \
         too long holds up what comes after it in its sender's order."
    ),
    subscription::order(),
    subscription::join(),
    subscription::reliable(),
]);
