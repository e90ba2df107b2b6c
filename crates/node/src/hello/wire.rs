//! The hello's format.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     'h'       |     'o'       |     'p'       |    version    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | name's length | name, UTF-8 …
//! +=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+  all the rest: of version 2
//! |0 0 0 0 0 0|B|A|     lanes     |  longest datagram of a lane   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                      instance (64 bits)                       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                           sequence                            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                         stamp: nonce                          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |               stamp: sender's clock, us, lowest bits          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |        echo: the last stamp's nonce, 0 if there is none       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                  echo: the last stamp's clock                 |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |               echo: for how long it was held, us              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |       sent: datagrams to the receiver, this one included      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |           heard: the receiver's `sent` when last heard        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |        heard: how many datagrams of it had come by then       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     round     |  heard round  |    length of this datagram    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | longest of the heard round    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | for each lane: its tag        | …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! Integers are in network byte order. A: the sender requests a hello now. B: it is about to end. A length other than 0
//! makes the hello a probe of its round: zeros extend it to that length. The heard round is the receiver's last one of
//! which a probe has arrived here, with the length of its longest probe.
//!
//! # Data
//!
//! A datagram that is no hello has a byte before the lane's payload, its tag. No tag begins with the two bits of `h`,
//! so the first byte tells them apart.
//!
//! ```text
//! +-+-+-+-+-+-+-+-+
//! | K |  channel  |   K = 2: packets, 3: TCP connections, 0: a group
//! +-+-+-+-+-+-+-+-+
//! ```

use std::str;

use hopcast_core::bytes::{Malformed, Reader, Writer};

/// First bytes of a hello, which distinguish it from other datagrams.
const MAGIC: &[u8; 3] = b"hop";
/// The version of this node.
pub(crate) const VERSION: u8 = 2;
// Flags, as drawn above.

const ASK: u8 = 1;
const BYE: u8 = 2;
/// Length of the fields between the name and the lanes, in bytes.
const FIXED_LENGTH: usize = 1 + 1 + 2 + 8 + 9 * 4 + 1 + 1 + 2 + 2;
/// Maximum length of a name, in bytes, as in the configuration.
const MAX_NAME: usize = 64;

/// The tag of a lane: its payload and its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tag(u8);

impl Tag {
    // The highest two bits, as drawn above.
    const KIND: u8 = 0xC0;
    const PACKETS: u8 = 0x80;
    const TCP: u8 = 0xC0;
    const HELLO: u8 = 0x40;

    pub(crate) const fn packets(channel: u8) -> Self {
        Self(Self::PACKETS | channel & 0x3F)
    }

    pub(crate) const fn tcp(channel: u8) -> Self {
        Self(Self::TCP | channel & 0x3F)
    }

    pub(crate) const fn group(channel: u8) -> Self {
        Self(channel & 0x3F)
    }

    /// The tag in a datagram's first byte; `None` for a hello.
    pub(crate) const fn of(byte: u8) -> Option<Self> {
        if byte & Self::KIND == Self::HELLO { None } else { Some(Self(byte)) }
    }

    pub(crate) const fn byte(self) -> u8 {
        self.0
    }

    pub(crate) const fn channel(self) -> u8 {
        self.0 & 0x3F
    }

    /// The name of the payload: `packets`, `tcp` or `a group`.
    pub(crate) const fn payload(self) -> &'static str {
        match self.0 & Self::KIND {
            Self::PACKETS => "packets",
            Self::TCP => "tcp",
            _ => "a group",
        }
    }
}

/// The time at which a hello was sent, by its sender's clock, and a nonce that only its receiver knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) nonce: u32,
    pub(crate) micros: u32,
}

/// Datagrams sent when a hello was sent, and received when it was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: u32,
    pub(crate) received: u32,
}

/// The received probes of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Longest {
    pub(crate) round: u8,
    /// Length of the longest one; 0 if none has ever arrived.
    pub(crate) bytes: u16,
}

/// A hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) name: String,
    pub(crate) ask: bool,
    pub(crate) bye: bool,
    pub(crate) instance: u64,
    pub(crate) sequence: u32,
    pub(crate) stamp: Stamp,
    pub(crate) echo: Stamp,
    pub(crate) held: u32,
    pub(crate) sent: u32,
    pub(crate) heard: Counts,
    pub(crate) datagram: u16,
    /// The round of a probe; below, its length, which is 0 for a hello that is no probe.
    pub(crate) round: u8,
    pub(crate) padded: u16,
    pub(crate) longest: Longest,
    pub(crate) lanes: Vec<Tag>,
}

/// A parsed hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Of this version.
    Hello(Hello),
    /// Of another version.
    Other {
        /// Name of the sender.
        name: String,
        /// The version.
        version: u8,
    },
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Heard, Malformed> {
    let mut reader = Reader::new(bytes);
    Malformed::unless(reader.take(MAGIC.len(), "magic")? == MAGIC, "magic")?;
    let version = reader.u8("version")?;
    let length = usize::from(reader.u8("name's length")?);
    Malformed::unless((1..=MAX_NAME).contains(&length), "name's length")?;
    let name = str::from_utf8(reader.take(length, "name")?).map_err(|_| Malformed { field: "name" })?;
    // The name is logged as it is, so it must not have control characters.
    Malformed::unless(!name.chars().any(char::is_control), "name")?;
    let name = name.to_owned();
    if version != VERSION {
        return Ok(Heard::Other { name, version });
    }
    let flags = reader.u8("flags")?;
    Malformed::unless(flags & !(ASK | BYE) == 0, "flags")?;
    let lanes = usize::from(reader.u8("lanes")?);
    let datagram = reader.u16("longest datagram")?;
    let instance = reader.u64("instance")?;
    let sequence = reader.u32("sequence")?;
    let stamp = Stamp { nonce: reader.u32("stamp")?, micros: reader.u32("stamp")? };
    let echo = Stamp { nonce: reader.u32("echo")?, micros: reader.u32("echo")? };
    let held = reader.u32("echo")?;
    let sent = reader.u32("sent")?;
    let heard = Counts { sent: reader.u32("heard")?, received: reader.u32("heard")? };
    let (round, heard_round) = (reader.u8("round")?, reader.u8("heard round")?);
    let padded = reader.u16("length")?;
    let longest = Longest { round: heard_round, bytes: reader.u16("longest")? };
    let lanes =
        reader.take(lanes, "lanes")?.iter().map(|&byte| Tag::of(byte).ok_or(Malformed { field: "lanes" }));
    let lanes = lanes.collect::<Result<_, _>>()?;
    let is = |flag: u8| flags & flag != 0;
    let (ask, bye) = (is(ASK), is(BYE));
    let rest = reader.rest();
    let padding = usize::from(padded).saturating_sub(bytes.len() - rest.len());
    Malformed::unless(rest.len() == padding && rest.iter().all(|&byte| byte == 0), "length")?;
    Ok(Heard::Hello(Hello {
        name,
        ask,
        bye,
        instance,
        sequence,
        stamp,
        echo,
        held,
        sent,
        heard,
        datagram,
        round,
        padded,
        longest,
        lanes,
    }))
}

impl Hello {
    pub(crate) fn emit(&self) -> Vec<u8> {
        let len = 5 + self.name.len() + FIXED_LENGTH + self.lanes.len();
        let mut bytes = vec![0; len.max(self.padded.into())];
        let mut out = Writer::new(&mut bytes);
        out.put(MAGIC);
        out.u8(VERSION);
        out.u8(self.name.len() as u8);
        out.put(self.name.as_bytes());
        let flag = |is: bool, flag: u8| u8::from(is) * flag;
        out.u8(flag(self.ask, ASK) | flag(self.bye, BYE));
        out.u8(self.lanes.len() as u8);
        out.u16(self.datagram);
        out.u64(self.instance);
        let words = [
            self.sequence,
            self.stamp.nonce,
            self.stamp.micros,
            self.echo.nonce,
            self.echo.micros,
            self.held,
            self.sent,
            self.heard.sent,
            self.heard.received,
        ];
        words.into_iter().for_each(|word| out.u32(word));
        out.u8(self.round);
        out.u8(self.longest.round);
        out.u16(self.padded);
        out.u16(self.longest.bytes);
        self.lanes.iter().for_each(|lane| out.u8(lane.byte()));
        bytes
    }
}
