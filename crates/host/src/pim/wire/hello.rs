//! Hello messages: options, each with its type and length (RFC 7761 section 4.9.2).
//!
//! ```text
//!   1 holdtime           0: seconds
//!   2 LAN prune delay    0: T | propagation delay in ms      2: override interval in ms
//!  19 DR priority        0: priority
//!  20 generation ID      0: number
//!  24 address list       0: encoded unicast addresses ...
//! ```

use std::net::IpAddr;

use hopcast_core::bytes::Reader;
use hopcast_wire::ip::Version;

use super::address;
use crate::icmp::is_one_host;
use crate::pim::refusal::Refusal;

const HOLDTIME: u16 = 1;
const LAN_PRUNE_DELAY: u16 = 2;
const DR_PRIORITY: u16 = 19;
const GENERATION_ID: u16 = 20;
const ADDRESS_LIST: u16 = 24;

/// Holdtime of a neighbour whose Hello has none, in seconds (section 4.11).
const DEFAULT_HOLDTIME: u16 = 105;

/// A Hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Time after which the router counts as gone, in seconds; 0xffff for never, 0 for at once.
    pub holdtime: u16,
    /// Delays on the link, as the router takes them to be.
    pub lan_delay: Option<LanDelay>,
    /// Priority in the election of the designated router; higher wins.
    pub priority: Option<u32>,
    /// A number that changes when the router has lost its state.
    pub generation: Option<u32>,
    /// The router's other addresses on the link, at most [`Hello::MAX_ADDRESSES`].
    pub addresses: Vec<IpAddr>,
}

/// The LAN Prune Delay option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanDelay {
    /// Whether the router can do without suppressing joins (the T bit).
    pub tracking: bool,
    /// Delay of a message on the link, in milliseconds, 15 bits.
    pub propagation: u16,
    /// Time within which a prune is overridden, in milliseconds.
    pub override_interval: u16,
}

impl Hello {
    /// Maximum number of addresses in a list. Chosen: a host has some per prefix of its link; with more, a forged list
    /// fills memory.
    pub const MAX_ADDRESSES: usize = 16;

    pub(super) fn parse(reader: &mut Reader<'_>, version: Version) -> Result<Self, Refusal> {
        let mut hello = Self {
            holdtime: DEFAULT_HOLDTIME,
            lan_delay: None,
            priority: None,
            generation: None,
            addresses: Vec::new(),
        };
        while !reader.is_empty() {
            let kind = reader.u16("option type")?;
            let len = reader.u16("option length")?;
            let mut value = Reader::new(reader.take(len.into(), "option value")?);
            match kind {
                HOLDTIME => hello.holdtime = value.u16("holdtime")?,
                LAN_PRUNE_DELAY => {
                    let word = value.u16("propagation delay")?;
                    hello.lan_delay = Some(LanDelay {
                        tracking: word >> 15 == 1,
                        propagation: word & 0x7fff,
                        override_interval: value.u16("override interval")?,
                    });
                }
                DR_PRIORITY => hello.priority = Some(value.u32("priority")?),
                GENERATION_ID => hello.generation = Some(value.u32("generation ID")?),
                ADDRESS_LIST => {
                    hello.addresses.clear();
                    while !value.is_empty() {
                        let address = address::unicast(&mut value, version)?;
                        if !is_one_host(address) || hello.addresses.len() == Self::MAX_ADDRESSES {
                            return Err(Refusal::Listed);
                        }
                        hello.addresses.push(address);
                    }
                }
                // Section 4.9.2: unknown options are skipped.
                _ => _ = value.take_rest(),
            }
            if !value.is_empty() {
                return Err(Refusal::Trailing);
            }
        }
        Ok(hello)
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let mut option = |kind: u16, value: &[u8]| {
            bytes.extend(kind.to_be_bytes());
            bytes.extend((value.len() as u16).to_be_bytes());
            bytes.extend(value);
        };
        option(HOLDTIME, &self.holdtime.to_be_bytes());
        if let Some(LanDelay { tracking, propagation, override_interval }) = self.lan_delay {
            let word = propagation & 0x7fff | u16::from(tracking) << 15;
            option(LAN_PRUNE_DELAY, &[word.to_be_bytes(), override_interval.to_be_bytes()].concat());
        }
        if let Some(priority) = self.priority {
            option(DR_PRIORITY, &priority.to_be_bytes());
        }
        if let Some(generation) = self.generation {
            option(GENERATION_ID, &generation.to_be_bytes());
        }
        if !self.addresses.is_empty() {
            let mut list = Vec::new();
            self.addresses.iter().for_each(|&address| address::put_unicast(&mut list, address));
            option(ADDRESS_LIST, &list);
        }
    }
}
