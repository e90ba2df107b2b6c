//! A transport header that is addressed to another receiver: its checksum covers the address, and it holds the port.

use hopcast_wire::checksum::Sum;
use hopcast_wire::ip;

/// Places in the header of a transport protocol whose checksum covers the IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    checksum: usize,
    /// The destination port; `None` if it has no ports.
    port: Option<usize>,
    /// Shortest header, in bytes.
    len: usize,
}

const fn fields(protocol: u8) -> Option<Fields> {
    match protocol {
        ip::UDP => Some(Fields { checksum: 6, port: Some(2), len: 8 }),
        ip::TCP => Some(Fields { checksum: 16, port: Some(2), len: 20 }),
        ip::ICMPV6 => Some(Fields { checksum: 2, port: None, len: 4 }),
        _ => None,
    }
}

/// Whether a segment can be addressed to another receiver: UDP, TCP and ICMPv6 with a whole header, and protocols that
/// know nothing of addresses.
pub fn is_whole(protocol: u8, segment: &[u8]) -> bool {
    fields(protocol).is_none_or(|fields| segment.len() >= fields.len)
}

/// Whether the protocol's header has ports.
pub fn has_ports(protocol: u8) -> bool {
    fields(protocol).is_some_and(|fields| fields.port.is_some())
}

/// Fits a whole segment to the change of the packet's destination from `old` to `new`, and to a new destination port
/// if there is one; see `Readdressing`.
#[inline]
pub fn readdress(protocol: u8, segment: &mut [u8], old: &[u8; 16], new: &[u8; 16], port: Option<[u8; 2]>) {
    Readdressing::new(protocol, segment, old).apply(segment, new, port);
}

/// The change of a packet's destination, prepared for all copies of its segment: the checksum is updated incrementally
/// (RFC 1624, equation 3), and what leaves it is the same for each. UDP without a checksum stays so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readdressing(Option<Covered>);

#[derive(Clone, Copy, Debug)]
struct Covered {
    fields: Fields,
    /// Whether zero means that there is no checksum (RFC 768).
    has_zero: bool,
    /// Whether there is none.
    is_unsummed: bool,
    /// The sum over what is covered, without the old destination and port.
    rest: Sum,
    /// The old destination port, inverted.
    without_port: [u8; 2],
}

impl Readdressing {
    /// Of a segment whose packet has the destination `old`.
    #[inline]
    pub(crate) fn new(protocol: u8, segment: &[u8], old: &[u8; 16]) -> Self {
        let Some(fields) = fields(protocol).filter(|fields| segment.len() >= fields.len) else {
            return Self(None);
        };
        let at = |place: usize| [!segment[place], !segment[place + 1]];
        let inverted = at(fields.checksum);
        let has_zero = protocol == ip::UDP;
        Self(Some(Covered {
            fields,
            has_zero,
            is_unsummed: has_zero && inverted == [0xff; 2],
            rest: Sum::default().with(&inverted).with(&(!u128::from_be_bytes(*old)).to_be_bytes()),
            without_port: fields.port.map_or([0; 2], at),
        }))
    }

    /// Addresses a copy of the segment to `new`, and to a port if there is one.
    #[inline]
    pub(crate) fn apply(&self, segment: &mut [u8], new: &[u8; 16], port: Option<[u8; 2]>) {
        let Some(Covered { fields, has_zero, is_unsummed, rest, without_port }) = self.0 else { return };
        let mut sum = rest.with(new);
        if let Some((place, port)) = fields.port.zip(port) {
            sum = sum.with(&without_port).with(&port);
            segment[place..place + 2].copy_from_slice(&port);
        }
        if is_unsummed {
            return;
        }
        let checksum = match sum.checksum() {
            0 if has_zero => 0xffff,
            checksum => checksum,
        };
        segment[fields.checksum..fields.checksum + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use hopcast_wire::checksum;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_checksum_is_the_one_that_the_whole_segment_has(
            (source, old, new) in any::<([u8; 16], [u8; 16], [u8; 16])>(),
            protocol in prop_oneof![Just(ip::UDP), Just(ip::TCP), Just(ip::ICMPV6)],
            segment in proptest::collection::vec(any::<u8>(), 20..90),
            port in any::<Option<[u8; 2]>>(),
        ) {
            let fields = fields(protocol).unwrap();
            let at = |octets: [u8; 16]| IpAddr::from(Ipv6Addr::from(octets));
            let seal = |segment: &mut [u8], destination| {
                segment[fields.checksum..fields.checksum + 2].fill(0);
                let sum = checksum::transport(at(source), at(destination), protocol, segment);
                let sum = if sum == 0 && protocol == ip::UDP { 0xffff } else { sum };
                segment[fields.checksum..fields.checksum + 2].copy_from_slice(&sum.to_be_bytes());
            };
            let mut changed = segment.clone();
            seal(&mut changed, old);
            readdress(protocol, &mut changed, &old, &new, port);
            prop_assert_eq!(checksum::transport(at(source), at(new), protocol, &changed), 0);
            let mut whole = segment;
            if let Some((place, port)) = fields.port.zip(port) {
                whole[place..place + 2].copy_from_slice(&port);
            }
            seal(&mut whole, new);
            prop_assert_eq!(changed, whole);
        }
    }

    #[test]
    fn udp_without_a_checksum_has_none_afterwards_and_other_protocols_stay_as_they_are() {
        let mut segment = [1, 2, 3, 4, 0, 8, 0, 0];
        readdress(ip::UDP, &mut segment, &[1; 16], &[2; 16], Some([9, 9]));
        assert_eq!(segment, [1, 2, 9, 9, 0, 8, 0, 0]);
        for protocol in [113, 132, 59] {
            let mut segment = *b"whatever it may be that is sent";
            readdress(protocol, &mut segment, &[1; 16], &[2; 16], Some([9, 9]));
            assert_eq!(&segment, b"whatever it may be that is sent");
            assert!(is_whole(protocol, b""));
        }
        assert!(
            !is_whole(ip::UDP, &[0; 7]) && !is_whole(ip::TCP, &[0; 19]) && !is_whole(ip::ICMPV6, &[0; 3])
        );
        readdress(ip::TCP, &mut [0; 19], &[1; 16], &[2; 16], None);
        assert!(has_ports(ip::UDP) && !has_ports(ip::ICMPV6) && !has_ports(113));
    }
}
