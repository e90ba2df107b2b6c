//! `kcp`, `kcp-fec`: KCP with kcptun's settings.

use hopcast_config::decode::{duration, whole};
use hopcast_core::Duration;
use hopcast_peers::kcp::{Config, Kcp as KcpMachine};

use crate::error::BuildError;
use crate::platform::LowerPort;
use crate::table::{Form, Opt, Options, shown};
use crate::transport::{End, PortKind, Ports, Row, Transport};

pub(super) static KCP: Row = Row {
    name: "kcp",
    about: "KCP with kcptun's `fast3` settings: quick repeats, no congestion control",
    options: || OPTIONS.docs(&Kcp(Config::FAST3)),
    read: |row, options| OPTIONS.layer(row, options, Kcp(Config::FAST3)),
    ..BASE
};

pub(super) static KCP_FEC: Row = Row {
    name: "kcp-fec",
    about: "the same with kcptun's parity, 3 packets for 10",
    options: || OPTIONS.docs(&Kcp(Config::FAST3_FEC)),
    read: |row, options| OPTIONS.layer(row, options, Kcp(Config::FAST3_FEC)),
    ..BASE
};

const BASE: Row = Row { offers: Ports(&[PortKind::Stream]), ..Row::BASE };

/// The settings of KCP.
#[derive(Clone, Debug)]
struct Kcp(Config);

static OPTIONS: Options<Kcp> = Options(&[
    Opt {
        key: "send-window",
        about: "Packets outstanding, 1 to 32,768. It is the only bound on the rate: too small does not fill the path, too \
                large fills its queues.",
        form: Form::Count,
        set: |kcp, node, key| whole(node, key, 1..=32_768).map(|found| kcp.0.send_window = found as u16),
        show: |kcp| shown(&kcp.0.send_window),
    },
    Opt {
        key: "receive-window",
        about: "Packets held back for order, 128 to 32,768. Fewer than the send window, and the sender waits.",
        form: Form::Count,
        set: |kcp, node, key| whole(node, key, 128..=32_768).map(|found| kcp.0.receive_window = found as u16),
        show: |kcp| shown(&kcp.0.receive_window),
    },
    Opt {
        key: "interval",
        about: "How often it sends what is due, 10 ms to 5 s. Longer adds delay, shorter costs the processor.",
        form: Form::Duration,
        set: |kcp, node, key| {
            let interval = duration(node, key)?;
            if !(Duration::from_millis(10)..=Duration::from_secs(5)).contains(&interval) {
                return Err(node.error(format!("`{key}`: expected 10 ms to 5 s, found {}", node.found())));
            }
            kcp.0.interval = interval;
            Ok(())
        },
        show: |kcp| shown(&kcp.0.interval),
    },
    Opt {
        key: "resend",
        about: "Acknowledgements that overtake a packet before it is sent again, 0 to 100; 0 waits for the timeout.",
        form: Form::Count,
        set: |kcp, node, key| whole(node, key, 0..=100).map(|found| kcp.0.resend = found as u32),
        show: |kcp| shown(&kcp.0.resend),
    },
]);

impl Transport for Kcp {
    fn overhead(&self, _: u64) -> u64 {
        // KCP's header, and that of parity.
        if self.0.fec.is_some() { 24 + 8 } else { 24 }
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let config = Config { mtu: self.0.mtu.min(end.room()), ..self.0.clone() };
        let kcp = KcpMachine::new(config, end.ends.local, end.ends.remote, end.random());
        end.attach("kcp", Box::new(kcp)).map(Some)
    }
}
