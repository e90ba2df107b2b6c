//! A host's figures.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A host's figures, cumulative since it began.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Counters {
            $($(#[$doc])* pub(crate) $name: u64,)*
        }

        impl Counters {
            pub(crate) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
                $(report(stringify!($name), self.$name);)*
            }

            /// All of them together.
            pub(crate) const fn sum(&self) -> u64 {
                let mut sum = 0u64;
                $(sum = sum.wrapping_add(self.$name);)*
                sum
            }
        }
    };
}

pub(crate) use counters;

counters! {
    /// Packets in transit that were forwarded.
    forwarded,
    /// Packets of the host's own, sent or looped back.
    originated,
    /// Copies of packets to groups, each on one interface.
    group_copies,
    /// Packets handed to bindings above.
    delivered,
    /// Packets handed to a hook.
    hooked,
    /// Packets of hooks dropped because they were more than a hook may answer with.
    hook_excess,
    /// Frames handed to machines that are bound to their type.
    frames_delivered,
    /// Frames sent for such machines.
    frames_sent,
    /// Packets without a route.
    no_route,
    /// Packets in transit whose hop limit was used up.
    hop_limit_exceeded,
    /// Packets larger than the next link's MTU that must not be fragmented.
    too_big,
    /// Packets larger than the next link's MTU that may be fragmented, which the host does not do.
    unfragmented,
    /// Fragments that arrived at their destination.
    fragments,
    /// Frames and packets that do not parse.
    malformed,
    /// Packets with a wrong checksum.
    checksum_errors,
    /// Packets to a port or protocol without a binding.
    closed_port,
    /// Frames to other stations that were overheard.
    overheard,
    /// Frames addressed to another station, and packets for one host that were sent to all stations.
    not_for_us,
    /// Frames that carry neither IPv4 nor IPv6, and whose type has no binding.
    not_ip,
    /// Packets for other hosts, where the host is no router.
    not_forwarding,
    /// Multicast and broadcast packets that the host neither takes nor forwards.
    multicast_dropped,
    /// Packets to a group that arrived on an interface other than the one towards their sender.
    wrong_interface,
    /// Items that the port does not carry, or of a port that does not exist.
    wrong_items,
    /// Datagrams from above that cannot be sent (a foreign address or port, mixed versions, too much payload), and
    /// packets whose hop limit is 0.
    unsendable,
    /// Echo requests answered.
    echoes_answered,
    /// ICMP errors sent.
    errors_sent,
    /// ICMP errors not sent because of the limit on their rate.
    errors_suppressed,
    /// ICMP errors received about the host's packets.
    errors_received,
    /// ICMP errors received about UDP datagrams, which are not handed up.
    udp_errors_received,
    /// ICMP messages received that neither the host nor a binding uses.
    icmp_ignored,
}
