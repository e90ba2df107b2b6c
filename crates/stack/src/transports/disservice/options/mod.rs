//! The options of DisService's members.

mod controllers;
mod requests;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{flag, rate, size, some_duration, whole};
use hopcast_config::yaml::Node;
use hopcast_core::{Bytes, Fraction};
use hopcast_reliable::Subscription;
use hopcast_reliable::disservice::Policy;

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

/// Bytes of a cache. Chosen: less than 64 KiB is a few packets, more than 64 GiB is no memory.
const CACHES: std::ops::RangeInclusive<u64> = 64 << 10..=64 << 30;

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

use time;

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
    requests::ASK_EVERY,
    requests::ASK_SHARE,
    requests::TAIL_AFTER,
    requests::BACK_OFF,
    requests::SERVERS,
    requests::ANSWER_SHARE,
    requests::PUBLISHER_REPAIRS,
    requests::MEMORY,
    requests::REPAIR_DELAY,
    controllers::SUMMARY_EVERY,
    controllers::SUMMARY_AT_MOST,
    controllers::DEAD_AFTER,
    controllers::FORWARD,
    controllers::FORWARD_SHARE,
    controllers::FORWARD_DELAY,
    controllers::REPLICATE,
    controllers::CONVOY_AFTER,
    controllers::TARGETS,
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
