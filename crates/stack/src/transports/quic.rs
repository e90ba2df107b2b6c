//! `quic`, `quic-bbr`: QUIC.

use hopcast_config::decode::{size, some_duration};
use hopcast_peers::quic::config::MIN_DATAGRAM;
use hopcast_peers::quic::{Config, Congestion, Quic as QuicMachine};

use crate::error::BuildError;
use crate::platform::LowerPort;
use crate::table::{Form, Opt, OptionDoc, Options, shown};
use crate::transport::{End, PortKind, Ports, Row, Transport};

pub(super) static QUIC: Row = Row {
    name: "quic",
    about: "QUIC with CUBIC and pacing, as quinn sets it (RFC 9000, 9002); needs datagrams of 1,200 B",
    read: |row, options| OPTIONS.layer(row, options, Quic::with(Congestion::Cubic)),
    ..BASE
};

pub(super) static QUIC_BBR: Row = Row {
    name: "quic-bbr",
    about: "the same with the BBR version 1 of `tcp-bbr`",
    read: |row, options| OPTIONS.layer(row, options, Quic::with(Congestion::Bbr)),
    ..BASE
};

const BASE: Row = Row { offers: Ports(&[PortKind::Stream]), options: docs, ..Row::BASE };

fn docs() -> Vec<OptionDoc> {
    OPTIONS.docs(&Quic(Config::default()))
}

/// The settings of QUIC.
#[derive(Clone, Debug)]
struct Quic(Config);

static OPTIONS: Options<Quic> = Options(&[
    Opt {
        key: "receive-window",
        about: "The receive window of the connection, 2 KiB to 1 GiB. It bounds what is outstanding.",
        form: Form::Size,
        set: |quic, node, key| size(node, key, 2048..=1 << 30).map(|found| quic.0.receive_window = found),
        show: |quic| shown(&quic.0.receive_window),
    },
    Opt {
        key: "idle-timeout",
        about: "How long nothing may arrive before the connection is given up. Shorter than an outage ends the flow.",
        form: Form::Duration,
        set: |quic, node, key| some_duration(node, key).map(|found| quic.0.idle_timeout = found),
        show: |quic| shown(&quic.0.idle_timeout),
    },
]);

impl Quic {
    fn with(congestion: Congestion) -> Self {
        Self(Config { congestion, ..Config::default() })
    }
}

impl Transport for Quic {
    fn overhead(&self, _: u64) -> u64 {
        // The short header with eight bytes of connection id and one of packet number, the tag, and a STREAM frame's
        // kind, stream and offset without a length: the minimum that a full packet of a long transfer has.
        1 + 8 + 1 + 16 + 1 + 1 + 4
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let datagram = end.room();
        if datagram < MIN_DATAGRAM {
            return Err(BuildError::DatagramTooShort {
                flow: end.flow().spec.name.to_owned(),
                transport: end.flow().spec.over[end.depth].row().name,
                needed: MIN_DATAGRAM,
                source_section: "RFC 9000 section 14",
                room: datagram,
            });
        }
        let config = Config { datagram, ..self.0.clone() };
        let quic = QuicMachine::new(config, end.ends.local, end.ends.remote, end.random());
        end.attach("quic", Box::new(quic)).map(Some)
    }
}
