//! The kinds of items that cross between two layers of a stack.

use std::fmt;

/// The kind of items that cross a port between two layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// IP packets.
    Packet,
    /// UDP datagrams.
    Datagram,
    /// Bytes in order.
    Stream,
    /// Whole units of the application, of any size.
    Message,
    /// Frames of one interface.
    Frame,
}

/// The ports that a transport offers: one kind, or several at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports(pub(crate) &'static [PortKind]);

impl Ports {
    /// IP packets, and nothing else.
    pub const PACKETS: Self = Self(&[PortKind::Packet]);

    /// Whether `port` is among them.
    pub fn has(self, port: PortKind) -> bool {
        self.0.contains(&port)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, port) in self.0.iter().enumerate() {
            write!(f, "{}{port}", if place > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for PortKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packet => "packets",
            Self::Datagram => "datagrams",
            Self::Stream => "a stream",
            Self::Message => "messages",
            Self::Frame => "frames",
        })
    }
}
