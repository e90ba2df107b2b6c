//! The settings of NORM's members, and the options that they are read from.

use hopcast_config::decode::{choice, duration, flag, rate, size, whole};
use hopcast_core::{Bytes, Duration, Rate};
use hopcast_reliable::Proactive;
use hopcast_reliable::Subscription;
use hopcast_reliable::norm::{ReceiverConfig, SenderConfig};

use crate::table::{Form, Opt, Options, on_off, shown};
use crate::transports::repair_options::{self, ADAPTIVE, PROACTIVE};
use crate::transports::subscription::{self, Subscribes};

/// The settings of all members.
#[derive(Clone, Debug, Default)]
pub(super) struct Norm {
    pub(super) sender: SenderConfig,
    /// The rate, if it is fixed.
    pub(super) rate: Option<Rate>,
    /// Whether the sender estimates the number of receivers, which it is told otherwise.
    pub(super) estimates_group: bool,
    /// Whether all receivers are asked to acknowledge.
    pub(super) acknowledged: bool,
    /// Bytes that a receiver holds of what is incomplete, if not the default.
    pub(super) receive_buffer: Option<u64>,
    pub(super) subscription: Subscription,
}

impl Subscribes for Norm {
    fn subscription(&self) -> Subscription {
        self.subscription
    }

    fn subscription_mut(&mut self) -> &mut Subscription {
        &mut self.subscription
    }
}

/// Bytes of a buffer. Chosen: less than 64 KiB is less than two blocks, more than 64 GiB is no memory.
const BUFFERS: std::ops::RangeInclusive<u64> = 64 << 10..=64 << 30;

pub(super) static OPTIONS: Options<Norm> = Options(&[
    Opt {
        key: "rate",
        about: "The rate at which it sends, headers of all layers included; unless it is set, what a TCP to the receiver with the \
                worst path would have (RFC 5740 section 5.5.2). Too high, and the excess is lost in queues and repaired.",
        form: Form::Rate,
        set: |norm, node, key| rate(node, key).map(|found| norm.rate = Some(found)),
        show: |norm| repair_options::shown_rate(norm.rate),
    },
    Opt {
        key: "block",
        about: "Source symbols of a block, 1 to 254. Large blocks need fewer repairs, small ones less arithmetic and less delay.",
        form: Form::Count,
        set: |norm, node, key| whole(node, key, 1..=254).map(|found| norm.sender.source = found as u16),
        show: |norm| shown(&norm.sender.source),
    },
    Opt {
        key: "parity",
        about: "Parity symbols that a block can have, with its source symbols at most 255. None: lost symbols are repeated.",
        form: Form::Count,
        set: |norm, node, key| whole(node, key, 0..=254).map(|found| norm.sender.parity = found as u16),
        show: |norm| shown(&norm.sender.parity),
    },
    Opt {
        key: "proactive",
        about: "Parity that is sent before anybody asks: `adaptive`, as much as the group asks for in any case; `none`, so that every \
                repair waits for a request; or a number of symbols after each block, at most its parity. Too few cost receivers \
                that do not ask their blocks, too many cost their rate.",
        form: Form::CountOr(254, &PROACTIVE),
        set: |norm, node, key| {
            let symbols = repair_options::proactive(node, key, 254)?;
            norm.sender.proactive = symbols.map_or(Proactive::Adaptive, Proactive::Fixed);
            Ok(())
        },
        show: |norm| {
            repair_options::shown_proactive(match norm.sender.proactive {
                Proactive::Adaptive => None,
                Proactive::Fixed(symbols) => Some(symbols),
            })
        },
    },
    Opt {
        key: "group-size",
        about: "The number of receivers that their back-off is made for: `told`, that of the flow, or `estimated` from their requests. \
                Too small a number, and their requests come at once; too large, and they wait without cause.",
        form: Form::OneOf(&["told", "estimated"]),
        set: |norm, node, key| {
            norm.estimates_group = choice(node, key, &["told", "estimated"])?.0 == "estimated";
            Ok(())
        },
        show: |norm| if norm.estimates_group { "estimated" } else { "told" }.to_owned(),
    },
    Opt {
        key: "grtt",
        about: "Round-trip time of the group until a receiver has answered. Too short costs a few requests, too long delays the \
                first repairs.",
        form: Form::Duration,
        set: |norm, node, key| {
            duration(node, key).map(|found| norm.sender.grtt = found.max(Duration::from_millis(1)))
        },
        show: |norm| shown(&norm.sender.grtt),
    },
    Opt {
        key: "backoff",
        about: "Back-off factor of requests, K of RFC 5401, in round-trip times of the group, 0 to 15: receivers draw their wait from \
                it. `adaptive` follows the size of the group. Too small, and many ask for the same; too large delays repairs.",
        form: Form::CountOr(15, &ADAPTIVE),
        set: |norm, node, key| repair_options::backoff(node, key).map(|found| norm.sender.backoff = found),
        show: |norm| repair_options::shown_backoff(norm.sender.backoff),
    },
    Opt {
        key: "robust",
        about: "Robust factor of RFC 5740, 1 to 1000: how often the sender says that it is at its end, and the rounds of requests in \
                vain after which a receiver gives a block up, more where much is lost. Too small loses blocks on bad links, too large holds on to hopeless ones.",
        form: Form::Count,
        set: |norm, node, key| whole(node, key, 1..=1000).map(|found| norm.sender.robust = found as u16),
        show: |norm| shown(&norm.sender.robust),
    },
    Opt {
        key: "send-buffer",
        about: "Maximum bytes of a stream, or of objects, that the sender holds for repairs. Too small slows it down on long paths: \
                1 Gbit/s at a round trip of half a second takes 512 MiB.",
        form: Form::Size,
        set: |norm, node, key| size(node, key, BUFFERS).map(|found| norm.sender.buffer = found.get()),
        show: |norm| shown(&Bytes::new(norm.sender.buffer)),
    },
    Opt {
        key: "receive-buffer",
        about: "Maximum bytes that a receiver holds of what is incomplete, for each sender. Too small, and what arrives out of order \
                is dropped and asked for again.",
        form: Form::Size,
        set: |norm, node, key| size(node, key, BUFFERS).map(|found| norm.receive_buffer = Some(found.get())),
        show: |norm| {
            shown(&Bytes::new(norm.receive_buffer.unwrap_or_else(|| ReceiverConfig::default().buffer)))
        },
    },
    Opt {
        key: "ack",
        about: "Whether the sender asks the receivers, the first 300 of them, to acknowledge what it has sent (RFC 5740 section \
                5.5.3); the counter `receivers_acknowledged` says how many have. It costs each an answer, and what is not \
                acknowledged is asked for again.",
        form: Form::Flag,
        set: |norm, node, key| flag(node, key).map(|found| norm.acknowledged = found),
        show: |norm| on_off(norm.acknowledged),
    },
    subscription::order(),
    subscription::join(),
    subscription::reliable(),
]);
