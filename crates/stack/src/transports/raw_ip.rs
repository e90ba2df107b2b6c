//! `raw-ip`: datagrams as a protocol of IP, without UDP.

use hopcast_config::decode::whole;
use hopcast_host::RawIp;
use hopcast_wire::{ip, router_alert};

use crate::error::BuildError;
use crate::network::HOP_LIMIT;
use crate::platform::LowerPort;
use crate::table::{Form, Opt, Options, shown};
use crate::transport::{End, Feedback, PortKind, Ports, Row, Transport};

pub(super) static RAW_IP: Row = Row {
    name: "raw-ip",
    about: "datagrams in packets of an IP protocol of their own, without UDP: below `pgm`, as RFC 3208 has it",
    offers: Ports(&[PortKind::Datagram]),
    needs: PortKind::Packet,
    groups: true,
    feedback: Feedback::None,
    holds_back: false,
    many_streams: false,
    options: || OPTIONS.docs(&RawIpProtocol::default()),
    read: |row, options| OPTIONS.layer(row, options, RawIpProtocol::default()),
    ..Row::BASE
};

/// The number of the protocol.
#[derive(Clone, Copy, Debug)]
struct RawIpProtocol(u8);

/// PGM's number among IP's protocols (RFC 3208, section 8).
const PGM: u8 = 113;

impl Default for RawIpProtocol {
    fn default() -> Self {
        Self(PGM)
    }
}

static OPTIONS: Options<RawIpProtocol> = Options(&[Opt {
    key: "protocol",
    about: "The number of the protocol, 61 to 254; of one that a host has already, its packets never come. A node has one flow of each.",
    form: Form::Count,
    set: |raw, node, key| whole(node, key, 61..=254).map(|found| raw.0 = found as u8),
    show: |raw| shown(&raw.0),
}]);

impl Transport for RawIpProtocol {
    fn overhead(&self, ip: u64) -> u64 {
        // Room for a Router Alert, which repairs of PGM bear, and its data does not.
        let alert = match ip == ip::V4_HEADER as u64 {
            true => router_alert::V4_HEADER - ip::V4_HEADER,
            false => router_alert::V6_HEADER - ip::V6_HEADER,
        };
        ip + alert as u64
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let local = end.ends.local.ip();
        let lower = end.nodes.ip_protocol(end.node, self.0, local)?;
        if end.is_on_kernel() {
            return Ok(Some(lower));
        }
        Ok(Some(end.attach_to("raw-ip", Box::new(RawIp::new(local, self.0, HOP_LIMIT)), lower)))
    }
}
