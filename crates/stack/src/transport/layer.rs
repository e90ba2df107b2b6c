//! A transport with its settings, as one layer of a stack; what the layers of a stack add up to.

use std::any::Any;
use std::sync::Arc;

use hopcast_config::Diagnostic;
use hopcast_config::yaml::Node;
use hopcast_core::Duration;

use super::{Above, Feedback, PortKind, Row, Socket, Transport};
use crate::table::{Configured, Options, Worlds};

/// The Ethernet header, without FCS, in bytes.
pub const ETHERNET_HEADER: u64 = 14;

/// One layer of a stack: a transport with its settings.
pub type Layer = Configured<Row, dyn Transport>;

impl Layer {
    /// Its settings, if they are of this type.
    pub fn settings_as<T: Transport>(&self) -> Option<&T> {
        let settings: &dyn Any = self.settings();
        settings.downcast_ref()
    }

    /// Whether the host itself is this layer where it is the lowest.
    pub fn is_hosts_own(&self) -> bool {
        self.row().socket == Some(Socket::Udp)
    }

    /// Whether it is a real program.
    pub fn is_program(&self) -> bool {
        matches!(self.row().worlds, Worlds::Live { .. })
    }
}

impl Row {
    /// The transport with its defaults.
    ///
    /// # Panics
    /// Never: without options there is nothing to be wrong, which a test holds for the whole table.
    pub fn layer(&'static self) -> Layer {
        (self.read)(self, None).expect("the defaults are right")
    }
}

impl<S> Options<S> {
    /// The transport `row` as a file has it, for [`Row::read`]: `defaults`, changed by the options that are there.
    ///
    /// # Errors
    /// A key that is none of the options, or a value that is not allowed.
    pub fn layer(&self, row: &'static Row, options: Option<&Node>, defaults: S) -> Result<Layer, Diagnostic>
    where
        S: Transport + Clone,
    {
        let usual = defaults.clone();
        self.layer_as(row, options, defaults, |_| usual, Ok)
    }

    /// The same where another type `into` is the transport, or where the defaults of options depend on other options:
    /// an option is shown if its value differs from that in `usual`.
    ///
    /// # Errors
    /// As [`layer`](Self::layer), and those of `into`.
    pub fn layer_as<T: Transport>(
        &self,
        row: &'static Row,
        options: Option<&Node>,
        defaults: S,
        usual: impl FnOnce(&S) -> S,
        into: impl FnOnce(S) -> Result<T, Diagnostic>,
    ) -> Result<Layer, Diagnostic> {
        let settings = self.read(row.name, options, defaults)?;
        let changed = self.changed(&settings, &usual(&settings));
        Ok(Layer::new(row, Arc::new(into(settings)?), changed))
    }
}

/// The headers of a stack's layers from number `from` on down, and Ethernet's, in bytes a full frame.
pub fn overhead(over: &[Layer], from: usize, ipv6: bool) -> u64 {
    // The headers of what a proxy ends go no further.
    let ended = over.iter().position(|layer| layer.settings().ends_connections());
    let from = ended.map_or(from, |at| from.max(at));
    let ip = if ipv6 { 40 } else { 20 };
    ETHERNET_HEADER + over[from..].iter().map(|layer| layer.settings().overhead(ip)).sum::<u64>()
}

/// Each layer of a stack takes the defaults that fit what is above it: an application that has no use for a datagram
/// after `deadline`, or a layer that repairs its losses.
pub fn fit(over: &mut [Layer], deadline: Option<Duration>) {
    let mut above = deadline.map(Above::Deadline);
    for layer in over {
        if let Some(settings) = above.and_then(|above| layer.settings().fitted(above)) {
            layer.set(settings);
        }
        if layer.row().feedback != Feedback::None {
            above = Some(Above::Tunnel);
        }
    }
}

/// Whether nodes between the ends can relay for the layer at `depth`: all layers below it reach them, at least one.
pub fn can_relay(over: &[Layer], depth: usize) -> bool {
    let below = over.get(depth + 1..).unwrap_or_default();
    let needs_datagrams = over.get(depth).is_some_and(|layer| layer.row().needs == PortKind::Datagram);
    needs_datagrams && !below.is_empty() && below.iter().all(|layer| layer.settings().reaches_relays())
}
