//! The settings of PGM's members, and the options that they are read from.

use hopcast_config::decode::{duration, flag, rate, size, whole};
use hopcast_core::{Bytes, Rate};
use hopcast_reliable::Proactive;
use hopcast_reliable::Subscription;
use hopcast_reliable::pgm::{ReceiverConfig, SourceConfig};

use crate::table::{Form, Opt, Options, on_off, shown};
use crate::transports::repair_options::{self, ADAPTIVE, PROACTIVE};
use crate::transports::subscription::{self, Subscribes};

/// The settings of all members.
#[derive(Clone, Debug, Default)]
pub(super) struct Pgm {
    pub(super) source: SourceConfig,
    pub(super) receiver: ReceiverConfig,
    /// The rate, if it is fixed.
    pub(super) rate: Option<Rate>,
    /// Whether units have no header of ours.
    pub(super) is_plain: bool,
    pub(super) subscription: Subscription,
}

impl Subscribes for Pgm {
    fn subscription(&self) -> Subscription {
        self.subscription
    }

    fn subscription_mut(&mut self) -> &mut Subscription {
        &mut self.subscription
    }
}

/// Bytes of a window. Chosen: less than 256 KiB is less than two groups, more than 64 GiB is no memory.
const WINDOWS: std::ops::RangeInclusive<u64> = 256 << 10..=64 << 30;

pub(super) static OPTIONS: Options<Pgm> = Options(&[
    Opt {
        key: "rate",
        about: "The rate at which it sends, headers of all layers included; unless it is set, what a TCP to the receiver with the \
                worst path would have (PGMCC). Too high, and the excess is lost in queues and repaired.",
        form: Form::Rate,
        set: |pgm, node, key| rate(node, key).map(|found| pgm.rate = Some(found)),
        show: |pgm| repair_options::shown_rate(pgm.rate),
    },
    Opt {
        key: "block",
        about: "Packets of a transmission group, 2 to 128, rounded up to a power of two. Large groups need fewer repairs, small ones \
                less arithmetic and less delay.",
        form: Form::Count,
        set: |pgm, node, key| whole(node, key, 2..=128).map(|found| pgm.source.group = found as u16),
        show: |pgm| shown(&pgm.source.group),
    },
    Opt {
        key: "parity",
        about: "Parity packets that a transmission group can have, with its packets at most 255. None: lost packets are repeated.",
        form: Form::Count,
        set: |pgm, node, key| whole(node, key, 0..=253).map(|found| pgm.source.parity = found as u16),
        show: |pgm| shown(&pgm.source.parity),
    },
    Opt {
        key: "proactive",
        about: "Parity that is sent before anybody asks: `adaptive`, as much as the group asks for in any case; `none`, so that every \
                repair waits for a request; or a number of packets after each group, at most its parity. Too few cost receivers \
                that do not ask their groups, too many cost their rate.",
        form: Form::CountOr(253, &PROACTIVE),
        set: |pgm, node, key| {
            let packets = repair_options::proactive(node, key, 253)?;
            pgm.source.proactive = packets.map_or(Proactive::Adaptive, Proactive::Fixed);
            Ok(())
        },
        show: |pgm| {
            repair_options::shown_proactive(match pgm.source.proactive {
                Proactive::Adaptive => None,
                Proactive::Fixed(packets) => Some(packets),
            })
        },
    },
    Opt {
        key: "window",
        about: "Maximum bytes that the source holds for repairs. Too small, and receivers that ask late stop it for a while, or lose data.",
        form: Form::Size,
        set: |pgm, node, key| size(node, key, WINDOWS).map(|found| pgm.source.window = found.get()),
        show: |pgm| shown(&Bytes::new(pgm.source.window)),
    },
    Opt {
        key: "patience",
        about: "Time for which a receiver that asks for the oldest data keeps the source's window from moving on. Too short loses data \
                of receivers that hear little, too long lets one of them stop the others.",
        form: Form::Duration,
        set: |pgm, node, key| duration(node, key).map(|found| pgm.source.patience = found),
        show: |pgm| shown(&pgm.source.patience),
    },
    Opt {
        key: "receive-window",
        about: "Maximum bytes that a receiver holds of what is incomplete, for each source. Too small, and what arrives out of order \
                is dropped and asked for again.",
        form: Form::Size,
        set: |pgm, node, key| size(node, key, WINDOWS).map(|found| pgm.receiver.window = found.get()),
        show: |pgm| shown(&Bytes::new(pgm.receiver.window)),
    },
    Opt {
        key: "backoff",
        about: "Maximum back-off of requests, in round trips, 0 to 15. `adaptive` follows the number of receivers. Too small, and many \
                ask for the same; too large delays repairs.",
        form: Form::CountOr(15, &ADAPTIVE),
        set: |pgm, node, key| repair_options::backoff(node, key).map(|found| pgm.receiver.backoff = found),
        show: |pgm| repair_options::shown_backoff(pgm.receiver.backoff),
    },
    Opt {
        key: "gather",
        about: "Time within which lost packets are gathered into one request while more come, where they are repeated; unless it is \
                set, that of eight packets, up to 100 ms. Too short costs a request for each, too long delays repairs.",
        form: Form::Duration,
        set: |pgm, node, key| duration(node, key).map(|found| pgm.receiver.gather = Some(found)),
        show: |pgm| pgm.receiver.gather.map_or_else(|| "eight packets' time".to_owned(), |time| shown(&time)),
    },
    Opt {
        key: "retries",
        about: "Requests in vain after which a receiver gives something up, 1 to 10000: unconfirmed, and confirmed but not answered. Too \
                few lose data on bad links, too many hold on to what is gone.",
        form: Form::Count,
        set: |pgm, node, key| whole(node, key, 1..=10_000).map(|found| pgm.receiver.retries = found as u16),
        show: |pgm| shown(&pgm.receiver.retries),
    },
    Opt {
        key: "ambient",
        about: "Maximum time between two SPMs, by which network elements and late receivers know the source. Too long, and they wait; \
                each costs a packet.",
        form: Form::Duration,
        set: |pgm, node, key| {
            duration(node, key).map(|found| {
                pgm.source.ambient = found.max(hopcast_core::Duration::from_millis(10));
            })
        },
        show: |pgm| shown(&pgm.source.ambient),
    },
    Opt {
        key: "plain",
        about: "Whether units are sent as they are, as others have it: names are left out, and streams become datagrams.",
        form: Form::Flag,
        set: |pgm, node, key| flag(node, key).map(|found| pgm.is_plain = found),
        show: |pgm| on_off(pgm.is_plain),
    },
    subscription::order(),
    subscription::join(),
    subscription::reliable(),
]);
