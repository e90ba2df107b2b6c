//! Senders to groups, and a member that joins and leaves.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use hopcast_core::{Attributes, Buffer, Datagram, Duration, Item, Membership};
use hopcast_node::runtime::Runtime;

use crate::common::{Bench, Traffic};
use crate::machines::Carried;

/// The port of the groups' datagrams.
pub(super) const PORT: u16 = 7000;
/// Hop limit with which they are sent.
pub(super) const HOPS: u8 = 7;

/// Time after its last report for which a member counts as present (RFC 3376 section 8.4), with the times that these
/// tests set: twice the query interval, 3 s, and 300 ms to answer.
pub(super) const SILENCE: Duration = ms(6300);
/// Maximum time until a leave is known: longer than two queries for the group of 200 ms each. A member whose leave was
/// lost counts as present for at least 3 s, since it has answered the last general query.
pub(super) const LEAVE_TIME: Duration = ms(2500);

/// Addresses of one IP version.
pub(super) struct Family {
    pub(super) version: u8,
    pub(super) prefix: u8,
    pub(super) router: [&'static str; 2],
    pub(super) senders: [&'static str; 2],
    pub(super) member: &'static str,
    pub(super) group: &'static str,
    /// One of a single source.
    pub(super) one_source: &'static str,
}

pub(super) const FAMILIES: [Family; 2] = [
    Family {
        version: 4,
        prefix: 24,
        router: ["10.8.1.1", "10.8.2.1"],
        senders: ["10.8.1.2", "10.8.1.3"],
        member: "10.8.2.2",
        group: "239.1.2.3",
        one_source: "232.1.2.3",
    },
    Family {
        version: 6,
        prefix: 64,
        router: ["fd08:1::1", "fd08:2::1"],
        senders: ["fd08:1::2", "fd08:1::3"],
        member: "fd08:2::2",
        group: "ff15::1:2:3",
        one_source: "ff35::1:2:3",
    },
];

pub(super) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Two senders, and the member that joins and leaves, with the machine or bridge between them.
pub(super) struct Scene<'f> {
    pub(super) family: &'f Family,
    pub(super) bench: Bench,
    pub(super) senders: Vec<(Runtime, Rc<RefCell<Traffic>>)>,
    /// The member's and the router's machines.
    pub(super) others: Vec<Runtime>,
    pub(super) member: Rc<RefCell<Traffic>>,
    /// Number of the member's interface.
    pub(super) interface: u32,
    /// Hops that datagrams have left where they arrive.
    pub(super) hops_left: u8,
    pub(super) carried: Carried,
}

impl Scene<'_> {
    /// Sends to groups from both senders every 5 ms, for a time or until `done`; whether it was.
    pub(super) fn run(&mut self, span: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.bench.clock.now() + span;
        let mut next = self.bench.clock.now();
        while self.bench.clock.now() < end {
            if done(self) {
                return true;
            }
            if self.bench.clock.now() >= next {
                next += ms(5);
                self.send();
            }
            let Self { bench, senders, others, .. } = self;
            for runtime in senders.iter_mut().map(|(runtime, _)| runtime).chain(others) {
                let until = bench.clock.now() + Duration::from_micros(300);
                runtime.run(Some(until), &bench.stop).unwrap();
            }
        }
        done(self)
    }

    fn send(&self) {
        let attributes = Attributes { interface: Some(0), hop_limit: Some(HOPS), ..Attributes::CHOICE };
        for ((_, traffic), sender) in self.senders.iter().zip(self.family.senders) {
            for group in [self.family.group, self.family.one_source] {
                let remote = SocketAddr::new(ip(group), PORT);
                let local = SocketAddr::new(ip(sender), 0);
                let datagram = Datagram {
                    attributes,
                    ..Datagram::new(local, remote, Buffer::copy_from(group.as_bytes()))
                };
                traffic.borrow_mut().out.down(Item::Datagram(datagram));
            }
        }
    }

    fn set_member(&self, group: &str, source: Option<&str>, joined: bool) {
        let membership =
            Membership { group: ip(group), source: source.map(ip), interface: Some(self.interface), joined };
        self.member.borrow_mut().out.down(Item::Membership(membership));
    }

    /// The senders and groups whose datagrams come to the member's link, in half a second.
    pub(super) fn on_link(&mut self) -> BTreeSet<(IpAddr, IpAddr)> {
        // What is under way still comes.
        self.run(ms(200), |_| false);
        self.received();
        self.carried.borrow_mut().clear();
        self.run(ms(500), |_| false);
        self.carried.borrow().keys().copied().collect()
    }

    /// The senders and groups of the datagrams that the member has received, and forgets.
    fn received(&self) -> BTreeSet<(IpAddr, IpAddr)> {
        let datagrams = self.member.borrow_mut().datagrams();
        for Datagram { attributes, .. } in &datagrams {
            assert_eq!(
                (attributes.interface, attributes.hop_limit),
                (Some(self.interface), Some(self.hops_left))
            );
        }
        let ends = |datagram: &Datagram| (datagram.remote.ip(), datagram.local.ip());
        datagrams.iter().map(ends).collect()
    }

    /// The member joins a group of any source, is in it for longer than a silent one would be, and leaves; then it
    /// joins one of a single source. `is_known` says whether whoever brings the groups there knows of a member.
    pub(super) fn joins_and_leaves(&mut self, is_known: impl Fn(&str) -> bool) {
        let Family { group, one_source, senders: [first, second], .. } = *self.family;
        let of = |sender: &str, group: &str| (ip(sender), ip(group));
        assert_eq!(self.on_link(), BTreeSet::new(), "nobody wants anything");
        assert!(!is_known(group));

        self.set_member(group, None, true);
        let both = BTreeSet::from([of(first, group), of(second, group)]);
        let mut got = BTreeSet::new();
        assert!(self.run(ms(3000), |scene| {
            got.extend(scene.received());
            got == both
        }));
        assert!(is_known(group) && !is_known(one_source));
        // As long as it answers queries.
        self.run(SILENCE + ms(1000), |_| false);
        assert_eq!((self.on_link(), self.received()), (both.clone(), both));

        self.set_member(group, None, false);
        assert!(self.run(LEAVE_TIME, |_| !is_known(group)), "a leave is heard");
        assert_eq!((self.on_link(), self.received()), (BTreeSet::new(), BTreeSet::new()));

        self.set_member(one_source, Some(second), true);
        let one = BTreeSet::from([of(second, one_source)]);
        let mut got = BTreeSet::new();
        assert!(self.run(ms(3000), |scene| {
            got.extend(scene.received());
            got == one
        }));
        assert!(is_known(one_source));
        assert_eq!((self.on_link(), self.received()), (one.clone(), one));
        self.set_member(one_source, Some(second), false);
        assert!(self.run(LEAVE_TIME, |_| !is_known(one_source)), "and that of one source");
        assert_eq!((self.on_link(), self.received()), (BTreeSet::new(), BTreeSet::new()));
    }
}
