//! Errors of a runtime: of opening its plugs, of running, and of the programs that set up devices and rules.

use std::io;
use std::net::{IpAddr, SocketAddr};

use hopcast_core::Hook;
use thiserror::Error;

use super::claim::MAX_CLAIMS;
use super::device::MAX_NAME;

/// A runtime could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The kernel gives no way to wait for events.
    #[error("cannot wait for events: {0}")]
    Poller(#[source] io::Error),
    /// One of the machine's plugs could not be opened.
    #[error("cannot open {plug}: {source}")]
    Plug {
        /// Its number.
        place: usize,
        /// The plug, as a person recognises it: ``UDP 10.0.0.1:7400``, ``TUN `hop0` ``.
        plug: String,
        /// The reason.
        source: PlugError,
    },
}

impl OpenError {
    /// The number of the plug that could not be opened.
    pub const fn plug(&self) -> Option<usize> {
        match self {
            Self::Plug { place, .. } => Some(*place),
            Self::Poller(_) => None,
        }
    }
}

/// A socket or device could not be opened.
#[derive(Debug, Error)]
pub enum PlugError {
    /// The operating system refused: a missing privilege, an address or device in use.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A program that sets up the device or its rules failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A TUN or TAP device cannot have this name.
    #[error("an interface's name has 1 to {MAX_NAME} bytes, without `/` and spaces")]
    InterfaceName,
    /// The host has no interface of this name.
    #[error("there is no interface `{0}`")]
    NoInterface(String),
    /// An interface has no address of Ethernet's.
    #[error("it has no Ethernet address")]
    NotEthernet,
    /// `ip` does not show an interface's MTU.
    #[error("`ip` does not show its MTU: {0}")]
    NoMtu(String),
    /// The host uses an interface that it would give up.
    #[error("the interface `{interface}` has the address {address}: one whose frames are all taken has none")]
    HasAddress {
        /// The interface.
        interface: String,
        /// Its address.
        address: IpAddr,
    },
    /// An interface's tags cannot be read, or a setting of it cannot be changed.
    #[error("`{interface}`: cannot set {setting}: {source}")]
    Setting {
        /// The interface.
        interface: String,
        /// The setting.
        setting: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A hook has no selections or no interfaces.
    #[error("a hook names the packets that it takes and the interfaces on which they arrive")]
    NothingToTake,
    /// No rule of nft can select these packets.
    #[error("no rule of nft selects {0:?}")]
    NoSelection(Hook),
    /// Netfilter's log cannot be read.
    #[error("cannot read the log of netfilter: {0}")]
    Log(#[source] io::Error),
    /// A frame port has EtherType 0.
    #[error("frames of type 0 are none of Ethernet's")]
    EtherType,
    /// A TCP address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// A congestion control that only root may use.
    #[error("only root may use congestion control `{name}` (others may use: {allowed})")]
    CongestionForbidden {
        /// The one that was asked for.
        name: String,
        /// Those that everybody may use, separated by spaces.
        allowed: String,
    },
    /// A congestion control that the kernel does not have.
    #[error("this kernel has no congestion control `{name}` (has: {available})")]
    NoCongestion {
        /// The one that was asked for.
        name: String,
        /// Those that the kernel has, separated by spaces.
        available: String,
    },
    /// Sockets cannot be marked, which distinguishes them from those of other programs.
    #[error("cannot mark sockets: {0}")]
    Mark(#[source] io::Error),
    /// Sockets cannot have addresses of other hosts.
    #[error("cannot use others' addresses: {0}")]
    Transparent(#[source] io::Error),
    /// A number for a table of rules cannot be claimed.
    #[error("cannot number a table of rules: {0}")]
    Claim(#[source] io::Error),
    /// All numbers for tables of rules are claimed.
    #[error("{MAX_CLAIMS} nodes divert connections or packets in this network namespace already")]
    NoClaimLeft,
}

/// A runtime could not go on.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// The descriptor that stops it cannot be watched.
    #[error("cannot be stopped: {0}")]
    Stop(#[source] io::Error),
    /// Waiting for events failed.
    #[error("cannot wait for events: {0}")]
    Wait(#[source] io::Error),
    /// A device was deleted.
    #[error("{0} is gone")]
    Gone(String),
}

/// A program that sets up devices or rules failed.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The program is not installed.
    #[error("`{program}` is not installed: apt-get install {package}")]
    NotInstalled {
        /// The program.
        program: String,
        /// Debian's package of it.
        package: &'static str,
    },
    /// The program could not be started or waited for.
    #[error("`{command}`: {source}")]
    Start {
        /// The program and its arguments.
        command: String,
        /// The reason.
        source: io::Error,
    },
    /// The program reported a failure.
    #[error("`{command}`: {message}")]
    Failed {
        /// The program and its arguments.
        command: String,
        /// The first line of its standard error, or its exit status.
        message: String,
    },
}
