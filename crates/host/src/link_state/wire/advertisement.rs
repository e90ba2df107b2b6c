//! Advertisements: what a router says of its links and of what can be reached by it (RFC 2328 section 12).
//!
//! ```text
//!  header    0: age in s    2: kind    3: 0    4: fragment    6: checksum    8: originator    12: sequence number
//!
//!  1 links      0: 1 for a border router     1: links, each the other router (4 bytes) and the cost (2 bytes)
//!  2 prefixes   0: prefixes, each 4 or 6, the length, the address (4 or 16 bytes) and the metric (4 bytes)
//!  3 summary    the same of other areas
//! ```
//!
//! The checksum is Fletcher's, of all but the age (section 12.1.7).

use core::cmp::Ordering;
use std::net::IpAddr;

use hopcast_core::bytes::Reader;

use crate::link_state::refusal::Refusal;
use crate::prefixes::Prefix;

/// Age at which an advertisement is over, in seconds (RFC 2328 appendix B: *MaxAge*).
pub const MAX_AGE: u16 = 3600;
/// Difference of ages from which on the younger of two instances is the newer (*MaxAgeDiff*), in seconds.
const MAX_AGE_DIFF: u16 = 900;
/// The last sequence number, after which an advertisement is taken back before it begins anew.
pub const MAX_SEQUENCE: u32 = u32::MAX;
/// Metric of what cannot be reached (*LSInfinity*).
pub const MAX_METRIC: u32 = 0xff_ffff;
/// Maximum number of entries in an advertisement. Chosen: as many IPv6 prefixes fit a packet on a link of the smallest
/// MTU, 576 bytes, as nobody fragments.
pub const MAX_ENTRIES: usize = 20;
/// Maximum number of advertisements of one kind by one router. Chosen: 20,480 prefixes; with more, a forged originator
/// fills more memory.
pub const MAX_FRAGMENTS: u16 = 1024;

/// Length of a header and of a [`Key`], in bytes.
const HEADER: usize = 16;
const KEY: usize = 8;

/// The kind of an advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The routers that the originator is joined to.
    Links,
    /// Prefixes that are attached to the originator.
    Prefixes,
    /// Prefixes that a border router reaches in other areas.
    Summary,
}

/// The key of an advertisement, by which it is told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Identifier of the router that makes it.
    pub originator: u32,
    /// Its kind.
    pub kind: Kind,
    /// Its number among those of this kind, below [`MAX_FRAGMENTS`].
    pub fragment: u16,
}

/// An instance of an advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The advertisement.
    pub key: Key,
    /// Sequence number; the higher is the newer.
    pub sequence: u32,
    /// Checksum of all but the age.
    pub checksum: u16,
    /// Age in seconds, up to [`MAX_AGE`], at which it is over.
    pub age: u16,
}

/// An advertisement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// Which one.
    pub header: Header,
    /// What it says.
    pub content: Content,
}

/// What an advertisement says, at most [`MAX_ENTRIES`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Of [`Kind::Links`].
    Links {
        /// Whether the originator joins areas.
        is_border: bool,
        /// Its links.
        links: Vec<Link>,
    },
    /// Of the other kinds.
    Prefixes(Vec<Reach>),
}

/// A link to another router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Identifier of the other router.
    pub to: u32,
    /// Cost of sending there, at least 1.
    pub cost: u16,
}

/// A prefix that can be reached by the originator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The prefix.
    pub prefix: Prefix,
    /// Its distance from the originator.
    pub metric: u32,
}

impl Kind {
    fn parse(number: u8) -> Result<Self, Refusal> {
        match number {
            1 => Ok(Self::Links),
            2 => Ok(Self::Prefixes),
            3 => Ok(Self::Summary),
            _ => Err(Refusal::Advertisement),
        }
    }

    const fn number(self) -> u8 {
        match self {
            Self::Links => 1,
            Self::Prefixes => 2,
            Self::Summary => 3,
        }
    }

    /// The content that says nothing.
    pub const fn nothing(self) -> Content {
        match self {
            Self::Links => Content::Links { is_border: false, links: Vec::new() },
            Self::Prefixes | Self::Summary => Content::Prefixes(Vec::new()),
        }
    }
}

impl Key {
    /// Length in bytes.
    pub(in crate::link_state) const LENGTH: usize = KEY;

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        let kind = Kind::parse(reader.u8("kind")?)?;
        if reader.u8("reserved")? != 0 {
            return Err(Refusal::Advertisement);
        }
        let fragment = reader.u16("fragment")?;
        let originator = reader.u32("originator")?;
        Self { originator, kind, fragment }.checked()
    }

    fn checked(self) -> Result<Self, Refusal> {
        if self.fragment < MAX_FRAGMENTS { Ok(self) } else { Err(Refusal::Advertisement) }
    }

    pub(super) fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend([self.kind.number(), 0]);
        bytes.extend(self.fragment.to_be_bytes());
        bytes.extend(self.originator.to_be_bytes());
    }
}

impl Header {
    /// Length in bytes.
    pub(in crate::link_state) const LENGTH: usize = HEADER;

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        let age = reader.u16("age")?;
        let kind = Kind::parse(reader.u8("kind")?)?;
        let reserved = reader.u8("reserved")?;
        let fragment = reader.u16("fragment")?;
        let checksum = reader.u16("checksum")?;
        let originator = reader.u32("originator")?;
        let sequence = reader.u32("sequence number")?;
        if age > MAX_AGE || reserved != 0 {
            return Err(Refusal::Advertisement);
        }
        let key = Key { originator, kind, fragment }.checked()?;
        Ok(Self { key, sequence, checksum, age })
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.age.to_be_bytes());
        bytes.extend([self.key.kind.number(), 0]);
        bytes.extend(self.key.fragment.to_be_bytes());
        bytes.extend(self.checksum.to_be_bytes());
        bytes.extend(self.key.originator.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
    }

    /// Whether it is over.
    pub const fn is_over(&self) -> bool {
        self.age >= MAX_AGE
    }

    /// Which of two instances of an advertisement is the newer (section 13.1).
    pub fn compare_instance(&self, other: &Self) -> Ordering {
        let by_age = || {
            if self.age.abs_diff(other.age) > MAX_AGE_DIFF {
                other.age.cmp(&self.age)
            } else {
                Ordering::Equal
            }
        };
        let by_number = (self.sequence, self.checksum).cmp(&(other.sequence, other.checksum));
        by_number.then(self.is_over().cmp(&other.is_over())).then_with(by_age)
    }
}

impl Content {
    fn parse(kind: Kind, bytes: &[u8]) -> Result<Self, Refusal> {
        let mut reader = Reader::new(bytes);
        match kind {
            Kind::Links => {
                let is_border = match reader.u8("border")? {
                    0 => false,
                    1 => true,
                    _ => return Err(Refusal::Advertisement),
                };
                let link = |reader: &mut Reader<'_>| {
                    let link = Link { to: reader.u32("router")?, cost: reader.u16("cost")? };
                    if link.cost > 0 { Ok(link) } else { Err(Refusal::Advertisement) }
                };
                Ok(Self::Links { is_border, links: entries(&mut reader, link)? })
            }
            Kind::Prefixes | Kind::Summary => Ok(Self::Prefixes(entries(&mut reader, Reach::parse)?)),
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Links { is_border, links } => {
                bytes.push((*is_border).into());
                for link in links {
                    bytes.extend(link.to.to_be_bytes());
                    bytes.extend(link.cost.to_be_bytes());
                }
            }
            Self::Prefixes(all) => all.iter().for_each(|reach| reach.write(bytes)),
        }
    }
}

impl Reach {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        let version = reader.u8("version of IP")?;
        let length = reader.u8("prefix length")?;
        let first: IpAddr = match version {
            4 => reader.array::<4>("prefix")?.into(),
            6 => reader.array::<16>("prefix")?.into(),
            _ => return Err(Refusal::Advertisement),
        };
        let metric = reader.u32("metric")?;
        let prefix = Prefix::new(first, length).filter(|_| metric <= MAX_METRIC);
        prefix.map(|prefix| Self { prefix, metric }).ok_or(Refusal::Advertisement)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let length = self.prefix.length();
        match self.prefix.first() {
            IpAddr::V4(first) => {
                bytes.extend([4, length]);
                bytes.extend(first.octets());
            }
            IpAddr::V6(first) => {
                bytes.extend([6, length]);
                bytes.extend(first.octets());
            }
        }
        bytes.extend(self.metric.to_be_bytes());
    }
}

impl Advertisement {
    /// An instance of age `age`.
    pub fn new(key: Key, sequence: u32, age: u16, content: Content) -> Self {
        let mut bytes = Vec::new();
        content.write(&mut bytes);
        let checksum = fletcher(key, sequence, &bytes);
        Self { header: Header { key, sequence, checksum, age }, content }
    }

    /// Length in an Update, in bytes.
    pub fn length(&self) -> usize {
        let mut bytes = Vec::new();
        self.content.write(&mut bytes);
        HEADER + 2 + bytes.len()
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        self.header.write(bytes);
        let mut content = Vec::new();
        self.content.write(&mut content);
        bytes.extend((content.len() as u16).to_be_bytes());
        bytes.extend(content);
    }
}

/// Reads all advertisements; those that are unsound are left out, and counted.
///
/// # Errors
/// Their lengths do not fit the message.
pub(super) fn parse_all(reader: &mut Reader<'_>, unsound: &mut u64) -> Result<Vec<Advertisement>, Refusal> {
    let mut all = Vec::new();
    while !reader.is_empty() {
        let header = reader.take(HEADER, "header")?;
        let length = reader.u16("length")?;
        let bytes = reader.take(length.into(), "content")?;
        let parsed = Header::parse(&mut Reader::new(header)).and_then(|header| {
            let content = Content::parse(header.key.kind, bytes)?;
            let is_sound = header.checksum == fletcher(header.key, header.sequence, bytes);
            if is_sound { Ok(Advertisement { header, content }) } else { Err(Refusal::Advertisement) }
        });
        match parsed {
            Ok(one) => all.push(one),
            Err(_) => *unsound += 1,
        }
    }
    Ok(all)
}

/// Reads entries until there are no more.
pub(super) fn parse_list<T>(
    reader: &mut Reader<'_>,
    parse: impl Fn(&mut Reader<'_>) -> Result<T, Refusal>,
) -> Result<Vec<T>, Refusal> {
    let mut all = Vec::new();
    while !reader.is_empty() {
        all.push(parse(reader)?);
    }
    Ok(all)
}

/// As [`parse_list`], for at most [`MAX_ENTRIES`].
fn entries<T>(
    reader: &mut Reader<'_>,
    parse: impl Fn(&mut Reader<'_>) -> Result<T, Refusal>,
) -> Result<Vec<T>, Refusal> {
    let all = parse_list(reader, parse)?;
    if all.len() <= MAX_ENTRIES { Ok(all) } else { Err(Refusal::Advertisement) }
}

/// Fletcher's checksum (RFC 1008 annex B) of an advertisement without its age.
fn fletcher(key: Key, sequence: u32, content: &[u8]) -> u16 {
    let mut head = Vec::with_capacity(KEY + 4);
    key.write(&mut head);
    head.extend(sequence.to_be_bytes());
    let (mut low, mut high) = (0u32, 0u32);
    for &byte in head.iter().chain(content) {
        low = (low + u32::from(byte)) % 255;
        high = (high + low) % 255;
    }
    (high << 8 | low) as u16
}
