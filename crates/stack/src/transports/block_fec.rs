//! `block-fec`: datagrams with parity after each block of them, at a fixed rate.

use hopcast_coded::{BlockFec, BlockFecConfig};
use hopcast_config::decode::{some_duration, whole};

use crate::error::{BuildError, Cause};
use crate::platform::LowerPort;
use crate::table::{Form, Opt, Options, shown};
use crate::transport::{End, Feedback, PortKind, Ports, Row, Transport};

pub(super) static BLOCK_FEC: Row = Row {
    name: "block-fec",
    about: "datagrams with parity after each block of them, from end to end at a fixed rate, as UDPspeeder sends it",
    offers: Ports(&[PortKind::Datagram]),
    groups: true,
    feedback: Feedback::None,
    coded: true,
    holds_back: false,
    options: || OPTIONS.docs(&BlockFecConfig::default()),
    read: |row, options| OPTIONS.layer(row, options, BlockFecConfig::default()),
    ..Row::BASE
};

static OPTIONS: Options<BlockFecConfig> = Options(&[
    Opt {
        key: "data",
        about: "Datagrams of a block, 1 to 128. Longer blocks need a smaller share of parity, and what they repair \
                comes later.",
        form: Form::Count,
        set: |config, node, key| whole(node, key, 1..=128).map(|found| config.data = found as u8),
        show: |config| shown(&config.data),
    },
    Opt {
        key: "parity",
        about: "Packets of parity for a full block, 0 to 127; one that ends sooner has its share of them, rounded up. \
                Blocks that lose more are not repaired; each costs rate, whether something is lost or not.",
        form: Form::Count,
        set: |config, node, key| whole(node, key, 0..=127).map(|found| config.parity = found as u8),
        show: |config| shown(&config.parity),
    },
    Opt {
        key: "wait",
        about: "The time after its first datagram at which a block ends, full or not. Short, and many blocks are small, \
                with much parity; long, and repairs come late.",
        form: Form::Duration,
        set: |config, node, key| some_duration(node, key).map(|found| config.wait = found),
        show: |config| shown(&config.wait),
    },
]);

impl Transport for BlockFecConfig {
    fn overhead(&self, _: u64) -> u64 {
        BlockFec::OVERHEAD as u64
    }

    fn repair_overhead(&self) -> u64 {
        BlockFec::PARITY_OVERHEAD as u64
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let machine = BlockFec::new(*self, end.random().bits() as u32);
        let machine = machine.map_err(|error| end.nodes.error(end.node, Cause::Settings(error.into())))?;
        end.attach("block-fec", Box::new(machine)).map(Some)
    }
}
