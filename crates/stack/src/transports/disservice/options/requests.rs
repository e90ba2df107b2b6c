//! How members ask for what they lack, and answer.

use hopcast_config::decode::{choice, duration, share, some_duration, whole};
use hopcast_reliable::disservice::{PublisherRepairs, Servers};

use super::super::DisService;
use super::shown_share;
use crate::table::{Form, Opt, shown};

const WHO: [&str; 2] = ["one", "anyone"];
const PUBLISHERS: [&str; 4] = ["spared", "always", "when-idle", "never"];

pub(super) const ASK_EVERY: Opt<DisService> = Opt {
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
};

pub(super) const ASK_SHARE: Opt<DisService> = Opt {
    key: "ask-share",
    about: "Share of what is missing that a request names, drawn at random. Less than all spreads requests of several members over \
            different fragments, where nobody hears them all, and takes more of them.",
    form: Form::Share,
    set: |settings, node, key| share(node, key).map(|found| settings.policy.requests.share = found.get()),
    show: |settings| shown_share(settings.policy.requests.share),
};

pub(super) const TAIL_AFTER: Opt<DisService> = Opt {
    key: "tail-after",
    about: "Number of intervals without new fragments of a message, 0 to 1000, after which its end is asked for. Too few ask for what \
            is under way, too many delay the end.",
    form: Form::Count,
    set: |settings, node, key| {
        whole(node, key, 0..=1000).map(|found| settings.policy.requests.tail_after = found as u32)
    },
    show: |settings| shown(&settings.policy.requests.tail_after),
};

pub(super) const BACK_OFF: Opt<DisService> = Opt {
    key: "back-off",
    about: "Maximum factor by which the time between requests grows while nothing comes, 1 to 65536; 1 for none. Too small costs \
            packets where nobody can answer; news end it in any case.",
    form: Form::Count,
    set: |settings, node, key| {
        whole(node, key, 1..=1 << 16).map(|found| settings.policy.requests.back_off = found as u32)
    },
    show: |settings| shown(&settings.policy.requests.back_off),
};

pub(super) const SERVERS: Opt<DisService> = Opt {
    key: "servers",
    about: "Who is to answer a request: `one`, a member that it names, which passes on what it lacks; or `anyone` that has it, where \
            several may answer the same.",
    form: Form::OneOf(&WHO),
    set: |settings, node, key| {
        let is_one = choice(node, key, &WHO)?.0 == "one";
        settings.policy.requests.servers = if is_one { Servers::One } else { Servers::Anyone(None) };
        Ok(())
    },
    show: |settings| WHO[usize::from(settings.policy.requests.servers != Servers::One)].to_owned(),
};

pub(super) const ANSWER_SHARE: Opt<DisService> = Opt {
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
};

pub(super) const PUBLISHER_REPAIRS: Opt<DisService> = Opt {
    key: "publisher-repairs",
    about: "When a publisher answers requests for its own messages: `always`, before new ones; `when-idle`; `never`, which leaves it \
            to others and its link to new messages; or `spared`, when it is idle, or nobody else has it.",
    form: Form::OneOf(&PUBLISHERS),
    set: |settings, node, key| {
        settings.policy.repairs.publisher = match choice(node, key, &PUBLISHERS)?.0 {
            "when-idle" => PublisherRepairs::WhenIdle,
            "never" => PublisherRepairs::Never,
            "always" => PublisherRepairs::Always,
            _ => PublisherRepairs::Spared,
        };
        Ok(())
    },
    show: |settings| PUBLISHERS[settings.policy.repairs.publisher as usize].to_owned(),
};

pub(super) const MEMORY: Opt<DisService> = Opt {
    key: "memory",
    about: "Time for which nobody answers a request to `anyone` by a fragment that was heard (network traffic memory). Too short \
            repeats it, too long delays it where it was lost.",
    form: Form::Duration,
    set: |settings, node, key| duration(node, key).map(|found| settings.policy.repairs.memory = found),
    show: |settings| shown(&settings.policy.repairs.memory),
};

pub(super) const REPAIR_DELAY: Opt<DisService> = Opt {
    key: "repair-delay",
    about: "Maximum time that a member waits before it answers a request to `anyone`, drawn at random. Too short, and many answer at a \
            time; too long delays repairs.",
    form: Form::Duration,
    set: |settings, node, key| duration(node, key).map(|found| settings.policy.repairs.delay = found),
    show: |settings| shown(&settings.policy.repairs.delay),
};
