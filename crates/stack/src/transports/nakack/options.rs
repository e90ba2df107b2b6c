//! The settings of NAKACK's members, and the options that they are read from.

use hopcast_config::decode::{choice, duration, rate, size, whole};
use hopcast_core::{Bytes, Duration};
use hopcast_reliable::nakack::{Ordering, Repairs, Stack};

use crate::table::{Form, Opt, Options, shown};

/// The settings of all members.
#[derive(Clone, Debug)]
pub(super) struct Nakack {
    pub(super) stack: Stack,
    /// Bytes of a fragment, if fewer than fit the path.
    pub(super) fragment: Option<u16>,
    /// Whether members begin with a view of all of them.
    pub(super) is_told: bool,
}

impl Default for Nakack {
    fn default() -> Self {
        Self { stack: Stack::default(), fragment: None, is_told: true }
    }
}

const ORDERS: [&str; 2] = ["fifo", "total"];
const REPAIRS: [&str; 2] = ["origin", "anyone"];
const VIEWS: [&str; 2] = ["told", "discovered"];
/// Bytes of credits and buffers. Chosen: less than 64 KiB is a few packets, more than 64 GiB is no memory.
const BUFFERS: std::ops::RangeInclusive<u64> = 64 << 10..=64 << 30;

/// A time of at least 10 ms.
macro_rules! time {
    ($key:literal, $field:ident, $about:literal) => {
        Opt {
            key: $key,
            about: $about,
            form: Form::Duration,
            set: |nakack, node, key| {
                duration(node, key).map(|found| nakack.stack.$field = found.max(Duration::from_millis(10)))
            },
            show: |nakack| shown(&nakack.stack.$field),
        }
    };
}

/// A number of bytes.
macro_rules! bytes {
    ($key:literal, $field:ident, $about:literal) => {
        Opt {
            key: $key,
            about: $about,
            form: Form::Size,
            set: |nakack, node, key| size(node, key, BUFFERS).map(|found| nakack.stack.$field = found.get()),
            show: |nakack| shown(&Bytes::new(nakack.stack.$field)),
        }
    };
}

pub(super) static OPTIONS: Options<Nakack> = Options(&[
    Opt {
        key: "rate",
        about: "The rate at which a member sends, headers of all layers included (RATE_LIMITER). Too high, and the excess is lost in \
                queues and repeated.",
        form: Form::Rate,
        set: |nakack, node, key| rate(node, key).map(|found| nakack.stack.rate = found),
        show: |nakack| shown(&nakack.stack.rate),
    },
    Opt {
        key: "order",
        about: "The order of messages: `fifo`, that of each sender, or `total`, one order at all members, which the coordinator says \
                (SEQUENCER). Members wait for it, so it costs a round trip.",
        form: Form::OneOf(&ORDERS),
        set: |nakack, node, key| {
            let is_total = choice(node, key, &ORDERS)?.0 == "total";
            nakack.stack.order = if is_total { Ordering::Total } else { Ordering::Fifo };
            Ok(())
        },
        show: |nakack| ORDERS[nakack.stack.order as usize].to_owned(),
    },
    Opt {
        key: "repairs",
        about: "Who repeats what was lost: `origin`, the member that sent it, or `anyone`, a member drawn at random for each request, \
                and its sender if that one does not have it. Who else repeats spares the sender, and several may repeat the same.",
        form: Form::OneOf(&REPAIRS),
        set: |nakack, node, key| {
            let is_anyone = choice(node, key, &REPAIRS)?.0 == "anyone";
            nakack.stack.repairs = if is_anyone { Repairs::Anyone } else { Repairs::Origin };
            Ok(())
        },
        show: |nakack| REPAIRS[nakack.stack.repairs as usize].to_owned(),
    },
    Opt {
        key: "fragment",
        about: "Bytes of a message in one packet, 16 to 65000; longer units are cut (FRAG2). Unless it is set, as many as fit the path; \
                never more.",
        form: Form::Count,
        set: |nakack, node, key| {
            whole(node, key, 16..=65_000).map(|found| nakack.fragment = Some(found as u16))
        },
        show: |nakack| nakack.fragment.map_or_else(|| "what fits".to_owned(), |bytes| shown(&bytes)),
    },
    Opt {
        key: "view",
        about: "The first view: `told`, the flow's sender and those that receive from the start on, or `discovered`: each looks for the \
                others by PING and is let in (GMS), for which the first data wait.",
        form: Form::OneOf(&VIEWS),
        set: |nakack, node, key| {
            nakack.is_told = choice(node, key, &VIEWS)?.0 == "told";
            Ok(())
        },
        show: |nakack| VIEWS[usize::from(!nakack.is_told)].to_owned(),
    },
    bytes!(
        "credits",
        credits,
        "Bytes that a member may send ahead of what the slowest of the others has delivered (MFC). Too few slow it down on long paths, \
         too many are memory at each member."
    ),
    bytes!(
        "buffer",
        buffer,
        "Bytes that a member holds of what it sent and not all have acknowledged; it sends nothing new while that is full."
    ),
    bytes!(
        "stable-bytes",
        stable_bytes,
        "Bytes that a member receives before it says again what it has (STABLE). Too few cost packets, too many are memory."
    ),
    time!(
        "stable-every",
        stable_every,
        "Time after which a member says what it has, if that has changed (STABLE)."
    ),
    time!(
        "heartbeat",
        heartbeat,
        "Time after which a member that has sent nothing else says that it is alive (FD_ALL). Too short costs packets; it is to be a \
         fraction of `suspect-after`."
    ),
    time!(
        "suspect-after",
        suspect_after,
        "Time after which a silent member is suspected (FD_ALL). Too short expels members on bad links; too long, and a dead one holds \
         up the others' memory and next view."
    ),
    time!("verify", verify, "Time that a suspected member has to answer that it is alive (VERIFY_SUSPECT)."),
    time!(
        "stalled-after",
        stalled_after,
        "Time after which a member is expelled that is heard, but acknowledges nothing of what it lacks, so that the others' memory \
         does not wait for it for ever."
    ),
    time!(
        "merge-every",
        merge_every,
        "Mean time between announcements of a view's coordinator, by which the parts of a group find each other after a partition \
         (MERGE2)."
    ),
    time!(
        "discovery",
        discovery,
        "Time that a member looks for others before it is a view of its own (PING)."
    ),
]);
