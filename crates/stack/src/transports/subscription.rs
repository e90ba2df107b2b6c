//! The options of a reliable group's members, the same for each of its transports.

use hopcast_config::decode::{choice, flag};
use hopcast_reliable::{Join, Order, Subscription};

use crate::table::{Form, Opt, on_off};

/// Settings that have a subscription.
pub(super) trait Subscribes {
    /// The subscription that all members have.
    fn subscription(&self) -> Subscription;

    /// The same, to be changed.
    fn subscription_mut(&mut self) -> &mut Subscription;
}

const ORDERS: [&str; 2] = ["complete", "sender"];
const JOINS: [&str; 3] = ["object", "now", "everything"];

/// In which order files and whole messages are handed up.
pub(super) const fn order<S: Subscribes>() -> Opt<S> {
    Opt {
        key: "order",
        about: "The order of files and whole messages: `complete`, each as soon as it is, or `sender`, as they were sent, so that \
                one waits for those before it. Streams and datagrams keep their sender's in any case.",
        form: Form::OneOf(&ORDERS),
        set: |settings, node, key| {
            let order = match choice(node, key, &ORDERS)?.0 {
                "sender" => Order::BySender,
                _ => Order::AsComplete,
            };
            settings.subscription_mut().order = order;
            Ok(())
        },
        show: |settings| ORDERS[settings.subscription().order as usize].to_owned(),
    }
}

/// The part of what was sent before a member came that it asks for.
pub(super) const fn join<S: Subscribes>() -> Opt<S> {
    Opt {
        key: "join",
        about: "What a member that comes late asks for: `object`, all of what is being sent when it comes, as far as the sender \
                still has it; `now`, of a stream or datagrams only what comes from then on; `everything` that the sender still has.",
        form: Form::OneOf(&JOINS),
        set: |settings, node, key| {
            let join = match choice(node, key, &JOINS)?.0 {
                "now" => Join::Now,
                "everything" => Join::Everything,
                _ => Join::Object,
            };
            settings.subscription_mut().join = join;
            Ok(())
        },
        show: |settings| JOINS[settings.subscription().join as usize].to_owned(),
    }
}

/// Whether members ask for what is lost.
pub(super) const fn reliable<S: Subscribes>() -> Opt<S> {
    Opt {
        key: "reliable",
        about: "Whether members ask for what is lost. `off`, they send nothing: they live on what arrives and on parity that \
                nobody asked for, and give up the rest; the sender needs a fixed rate.",
        form: Form::Flag,
        set: |settings, node, key| {
            flag(node, key).map(|found| settings.subscription_mut().is_reliable = found)
        },
        show: |settings| on_off(settings.subscription().is_reliable),
    }
}
