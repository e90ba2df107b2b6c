//! kcptun as a layer: real ones at both ends of a flow.

use std::fmt;

use super::decode::arguments;
use crate::scenario::model::Layer;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, choice, flag, whole};
use hopcast_config::yaml::Node;

const OPTIONS: [&str; 9] = [
    "mode",
    "data-shards",
    "parity-shards",
    "send-window",
    "receive-window",
    "compression",
    "crypt",
    "mtu",
    "arguments",
];
const MODES: [&str; 4] = ["normal", "fast", "fast2", "fast3"];
const CRYPTS: [&str; 3] = ["none", "aes", "salsa20"];

/// How both kcptuns are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kcptun {
    /// How soon it repeats.
    pub mode: Mode,
    /// Packets that parity is made of; 0 for none.
    pub data_shards: u8,
    /// Packets of parity for them.
    pub parity_shards: u8,
    /// Packets under way at most.
    pub send_window: u16,
    /// Packets held back for order at most.
    pub receive_window: u16,
    /// Whether it compresses.
    pub compression: bool,
    /// How it encrypts.
    pub crypt: Crypt,
    /// The longest UDP payload, in bytes.
    pub mtu: u16,
    /// What else both are told, as on their command lines.
    pub arguments: Vec<String>,
}

impl Default for Kcptun {
    /// kcptun's defaults but for `fast3`, as large windows at the client as at the server, and neither compression nor
    /// encryption, which would measure the processor.
    fn default() -> Self {
        Self {
            mode: Mode::Fast3,
            data_shards: 10,
            parity_shards: 3,
            send_window: 1024,
            receive_window: 1024,
            compression: false,
            crypt: Crypt::None,
            mtu: 1350,
            arguments: Vec::new(),
        }
    }
}

impl Kcptun {
    /// What it puts before the payload of a full packet, in bytes: 20 for its encryption (even by `none`), 8 where there is
    /// parity, KCP's 24 and smux's 8.
    pub(crate) const fn overhead(&self) -> u64 {
        20 + (if self.parity_shards > 0 { 8 } else { 0 }) + 24 + 8
    }
}

/// How soon kcptun repeats, by its own names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names are kcptun's
pub enum Mode {
    Normal,
    Fast,
    Fast2,
    #[default]
    Fast3,
}

/// How kcptun encrypts, by its own names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names are kcptun's
pub enum Crypt {
    #[default]
    None,
    Aes,
    Salsa20,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MODES[*self as usize])
    }
}

impl fmt::Display for Crypt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CRYPTS[*self as usize])
    }
}

pub(crate) fn layer(name: &'static str, options: Option<&Node>) -> Result<Layer, Diagnostic> {
    let mut config = Kcptun::default();
    let Some(options) = options else { return Ok(Layer::Kcptun(config)) };
    let what = format!("`{name}`");
    let fields = Fields::of(options, &what, &OPTIONS)?;
    let mode = fields.read("mode", |node, key| Ok(choice(node, key, &MODES)?.0))?;
    config.mode = match mode {
        Some("normal") => Mode::Normal,
        Some("fast") => Mode::Fast,
        Some("fast2") => Mode::Fast2,
        _ => Mode::Fast3,
    };
    let crypt = fields.read("crypt", |node, key| Ok(choice(node, key, &CRYPTS)?.0))?;
    config.crypt = match crypt {
        Some("aes") => Crypt::Aes,
        Some("salsa20") => Crypt::Salsa20,
        _ => Crypt::None,
    };
    let shards = |node: &Node, key: &str| whole(node, key, 0..=100).map(|shards| shards as u8);
    config.data_shards = fields.read("data-shards", shards)?.unwrap_or(config.data_shards);
    config.parity_shards = fields.read("parity-shards", shards)?.unwrap_or(config.parity_shards);
    // kcp-go makes parity only where both are there.
    if config.data_shards == 0 || config.parity_shards == 0 {
        (config.data_shards, config.parity_shards) = (0, 0);
    }
    let window = |node: &Node, key: &str| whole(node, key, 1..=32_768).map(|packets| packets as u16);
    config.send_window = fields.read("send-window", window)?.unwrap_or(config.send_window);
    config.receive_window = fields.read("receive-window", window)?.unwrap_or(config.receive_window);
    config.compression = fields.read("compression", flag)?.unwrap_or(config.compression);
    let mtu = |node: &Node, key: &str| whole(node, key, 576..=1500).map(|mtu| mtu as u16);
    config.mtu = fields.read("mtu", mtu)?.unwrap_or(config.mtu);
    config.arguments = fields.read("arguments", arguments)?.unwrap_or_default();
    Ok(Layer::Kcptun(config))
}
