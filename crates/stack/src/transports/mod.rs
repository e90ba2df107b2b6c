//! The table of transports: one file for each protocol, and the [stacks](Stack) of them that a file writes.
//!
//! A new transport is a file here and a line in [`TRANSPORTS`].

mod bats;
#[cfg(feature = "peers")]
mod bats_proxy;
mod block_fec;
mod disservice;
mod fec;
mod franc;
#[cfg(feature = "peers")]
mod hop_arq;
#[cfg(feature = "peers")]
mod kcp;
mod kcptun;
mod nakack;
mod norm;
mod pgm;
#[cfg(feature = "quic")]
mod quic;
mod raw_ip;
mod repair_options;
#[cfg(feature = "peers")]
mod split;
mod stack;
mod subscription;
#[cfg(feature = "peers")]
mod tcp;
mod tunnel;
mod udp;

use crate::transport::{Layer, Row};

pub use hopcast_coded::Tunnel;
pub use hopcast_coded::proxy::Splice;
pub use stack::{MAX_LAYERS, Stack, Variants, layer};

/// The table of transports, in the order in which it is shown.
pub static TRANSPORTS: &[&Row] = &[
    &udp::UDP,
    &raw_ip::RAW_IP,
    #[cfg(feature = "peers")]
    &tcp::CUBIC,
    #[cfg(feature = "peers")]
    &tcp::BBR,
    #[cfg(feature = "peers")]
    &tcp::RENO,
    #[cfg(feature = "peers")]
    &tcp::VEGAS,
    #[cfg(feature = "peers")]
    &split::BBR,
    #[cfg(feature = "peers")]
    &kcp::KCP,
    #[cfg(feature = "peers")]
    &kcp::KCP_FEC,
    &kcptun::KCPTUN,
    #[cfg(feature = "quic")]
    &quic::QUIC,
    #[cfg(feature = "quic")]
    &quic::QUIC_BBR,
    #[cfg(feature = "peers")]
    &hop_arq::HOP_ARQ,
    &bats::BTP,
    &bats::BRTP,
    #[cfg(feature = "peers")]
    &bats_proxy::BATS_PROXY,
    &norm::NORM,
    &nakack::NAKACK,
    &pgm::PGM,
    &disservice::DISSERVICE,
    &franc::FRANC,
    &fec::FEC,
    &block_fec::BLOCK_FEC,
    &tunnel::TUNNEL,
];

/// The row of the host's own datagrams, at the bottom of every stack of datagrams.
pub(crate) static HOSTS_DATAGRAMS: &Row = &udp::UDP;

/// The host's datagrams without any option, on which a stack stands that names none.
pub fn hosts_datagrams() -> Layer {
    HOSTS_DATAGRAMS.layer()
}

/// The row with this name.
pub fn find(name: &str) -> Option<&'static Row> {
    TRANSPORTS.iter().copied().find(|row| row.name == name)
}
