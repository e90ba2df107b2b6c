//! What members say of themselves, and what they send on and bring to others.

use hopcast_config::decode::{choice, duration, share, some_duration, words};
use hopcast_core::Duration;
use hopcast_reliable::disservice::{Forwarding, Replication};

use super::super::DisService;
use super::{shown_share, time};
use crate::table::{Form, Opt, shown};

const FORWARDINGS: [&str; 5] = ["none", "flood", "world-state", "stateful", "topology"];
const REPLICATIONS: [&str; 5] = ["none", "pull", "push", "convoy", "targets"];
/// Time that a neighbour is there before a convoy counts it. Chosen: some intervals of summaries.
const CONVOY: Duration = Duration::from_secs(10);

pub(super) const SUMMARY_EVERY: Opt<DisService> = time!(
    "summary-every",
    summaries.0,
    "Time between a member's summaries of what it knows and holds after news; it grows to `summary-at-most` without. Too short costs \
     packets; too long, and members that meet find out late."
);

pub(super) const SUMMARY_AT_MOST: Opt<DisService> =
    time!("summary-at-most", summaries.1, "Maximum time between summaries, where there are no news.");

pub(super) const DEAD_AFTER: Opt<DisService> = time!(
    "dead-after",
    dead_after,
    "Time after which a neighbour that is not heard counts as gone. It is to be some of the longest intervals of summaries."
);

pub(super) const FORWARD: Opt<DisService> = Opt {
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
};

pub(super) const FORWARD_SHARE: Opt<DisService> = Opt {
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
};

pub(super) const FORWARD_DELAY: Opt<DisService> = Opt {
    key: "forward-delay",
    about: "Maximum time that a member waits before it sends a fragment on, drawn at random. Too short, and neighbours do so at one \
            time; too long delays each hop.",
    form: Form::Duration,
    set: |settings, node, key| duration(node, key).map(|found| settings.policy.forward_delay = found),
    show: |settings| shown(&settings.policy.forward_delay),
};

pub(super) const REPLICATE: Opt<DisService> = Opt {
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
};

pub(super) const CONVOY_AFTER: Opt<DisService> = Opt {
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
};

pub(super) const TARGETS: Opt<DisService> = Opt {
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
};
