//! Options of packets (RFC 3208, section 9, and where each is defined).
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |0|  OPT_LENGTH |  length = 4   |    length of all options      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |E| option type |    length     |reserved |F|OPX|U|  specific   | an option
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | its value                                                     …
//! ```
//!
//! E marks the last one. F says that the value is parity of those of a transmission group, U that a packet of it has no
//! such option. OPX says what whoever does not know the type does: ignore it, invalidate it, or discard the packet.
//!
//! Two types are our own, for members of ours among themselves: others ignore them, as OPX says.

use std::net::{IpAddr, Ipv4Addr};

use super::{Malformed, ODATA, Reader, Writer, address};

const LENGTH: u8 = 0x00;
const FRAGMENT: u8 = 0x01;
const NAK_LIST: u8 = 0x02;
const JOIN: u8 = 0x03;
const BACK_OFF_INTERVAL: u8 = 0x04;
const BACK_OFF_RANGE: u8 = 0x05;
const REDIRECT: u8 = 0x07;
const PARITY_PRM: u8 = 0x08;
const PARITY_GRP: u8 = 0x09;
const CURR_TGSIZE: u8 = 0x0A;
const NBR_UNREACH: u8 = 0x0B;
const PATH_NLA: u8 = 0x0C;
const SYN: u8 = 0x0D;
const FIN: u8 = 0x0E;
const RST: u8 = 0x0F;
const PGMCC_DATA: u8 = 0x12;
const PGMCC_FEEDBACK: u8 = 0x13;
/// Our own: of no type that is assigned.
const MEMBER: u8 = 0x5C;
const AS_OF: u8 = 0x5D;

const END: u8 = 0x80;
/// F, of the third byte, and where OpenPGM has it; OPX, its lowest bits; U, of the fourth.
const ENCODED: u8 = 0x04;
const ENCODED_BY_OPENPGM: u8 = 0x08;
const OPX: u8 = 0x03;
const OPX_DISCARD: u8 = 0x02;
const ABSENT: u8 = 0x80;
/// Of the fourth byte of OPT_PARITY_PRM (section 11.8.1).
const PROACTIVE: u8 = 0x01;
const ON_DEMAND: u8 = 0x02;

/// Options of a packet (section 9).
const MAX_OPTIONS: usize = 16;
/// Sequence numbers of OPT_NAK_LIST (section 9.3.5).
pub(crate) const MAX_NAK_LIST: usize = 62;
/// Header of an option.
const HEADER_LEN: usize = 4;

/// Options that a packet has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// OPT_FRAGMENT: the packet is part of a larger unit.
    pub fragment: Option<Fragment>,
    /// OPT_NAK_LIST: sequence numbers after the one in the header, at most 62.
    pub nak_list: Vec<u32>,
    /// OPT_JOIN: first sequence number that who comes late may ask for.
    pub join: Option<u32>,
    /// OPT_NAK_BO_IVL: how long to back off at present.
    pub backoff_interval: Option<BackOffInterval>,
    /// OPT_NAK_BO_RNG: how long it may become.
    pub backoff_range: Option<BackOffRange>,
    /// OPT_REDIRECT: address of a repairer.
    pub redirect: Option<IpAddr>,
    /// OPT_PARITY_PRM: the parity that the source has.
    pub parity: Option<Parity>,
    /// OPT_PARITY_GRP: how many times a transmission group's size of parity packets came before.
    pub parity_group: Option<u32>,
    /// OPT_CURR_TGSIZE: number of packets of a transmission group that was ended early.
    pub group_size: Option<u32>,
    /// OPT_NBR_UNREACH: the next element could not be reached.
    pub unreachable: bool,
    /// OPT_PATH_NLA: address of the network element.
    pub path: Option<IpAddr>,
    /// OPT_SYN: the session begins.
    pub syn: bool,
    /// OPT_FIN: the session ends.
    pub fin: bool,
    /// OPT_RST: the session has broken off, with its seven bits of reason.
    pub rst: Option<u8>,
    /// OPT_PGMCC_DATA, of data.
    pub congestion_data: Option<CongestionData>,
    /// OPT_PGMCC_FEEDBACK, of ACK and NAK.
    pub congestion_feedback: Option<CongestionFeedback>,
    /// The source is one of ours.
    pub member: Option<Member>,
    /// What a receiver of ours had heard.
    pub as_of: Option<AsOf>,
}

/// OPT_FRAGMENT (section 9.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    /// Sequence number of the unit's first packet.
    pub first: u32,
    /// Place of this packet's payload in the unit.
    pub offset: u32,
    /// Length of the unit.
    pub length: u32,
    /// Of a parity packet: whether its fields are parity of the group's.
    pub is_encoded: bool,
    /// The fourth byte: [`ABSENT`](Self::ABSENT) or 0, and in parity that of these bytes.
    pub specific: u8,
}

impl Fragment {
    /// Bit U: a packet of a transmission group has no such option.
    pub const ABSENT: u8 = ABSENT;
    /// Length of the option with that of the list, in bytes.
    pub const LEN: usize = HEADER_LEN + HEADER_LEN + 12;
}

/// OPT_PARITY_PRM (section 11.8.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parity {
    /// Whether parity is sent unasked.
    pub proactive: bool,
    /// Whether parity can be asked for.
    pub on_demand: bool,
    /// Packets of a transmission group: a power of two.
    pub group: u32,
}

/// OPT_NAK_BO_IVL (section 15.4.1), in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackOffInterval {
    /// The interval.
    pub interval: u32,
    /// Its number.
    pub sequence: u32,
}

/// OPT_NAK_BO_RNG (section 15.4.2), in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackOffRange {
    /// The longest interval.
    pub max: u32,
    /// The shortest interval.
    pub min: u32,
}

/// OPT_PGMCC_DATA, as OpenPGM has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionData {
    /// The source's clock in milliseconds.
    pub timestamp: u32,
    /// Address of the acker; unspecified while one is to be elected.
    pub acker: IpAddr,
}

/// OPT_PGMCC_FEEDBACK, as OpenPGM has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionFeedback {
    /// The source's clock as received last, plus the time since then, in milliseconds.
    pub timestamp: u32,
    /// Share of packets lost, of 65536.
    pub loss: u16,
    /// Address of the receiver.
    pub receiver: IpAddr,
}

/// Our own option of SPMs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Whether units have a header that says what they are.
    pub is_framed: bool,
    /// Whether all repairs that were asked for are sent before new data and SPMs.
    pub repairs_first: bool,
}

/// Our own option of NAKs: what the receiver had heard of the source, so that repairs on the way are not sent twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsOf {
    /// Highest sequence number of ODATA.
    pub lead: u32,
    /// Highest number of an SPM.
    pub spm: u32,
}

impl Options {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of all, in bytes; 0 if there are none.
    pub fn len(&self) -> usize {
        let mut len = 0;
        self.each(|_, _, _, value_len, _| len += HEADER_LEN + value_len);
        if len == 0 { 0 } else { HEADER_LEN + len }
    }

    /// Number of options.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        let mut count = 0;
        self.each(|_, _, _, _, _| count += 1);
        count
    }

    /// Whether network elements must read them.
    pub(super) fn is_for_network(&self, kind: u8) -> bool {
        !self.nak_list.is_empty()
            || self.parity.is_some()
            || self.redirect.is_some()
            || self.path.is_some()
            || self.unreachable
            || self.backoff_interval.is_some()
            || self.backoff_range.is_some()
            || (self.group_size.is_some() && kind != ODATA)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Malformed::unless(reader.u8("options length")? == LENGTH, "options length")?;
        Malformed::unless(reader.u8("options length")? == 4, "options length")?;
        let total = usize::from(reader.u16("options length")?);
        let rest = total.checked_sub(HEADER_LEN).ok_or(Malformed { field: "options length" })?;
        let mut reader = Reader::new(reader.take(rest, "options length")?);
        let mut options = Self::default();
        for _ in 0..MAX_OPTIONS {
            let kind = reader.u8("option type")?;
            let len = usize::from(reader.u8("option length")?);
            let flags = [reader.u8("option flags")?, reader.u8("option flags")?];
            let len = len.checked_sub(HEADER_LEN).ok_or(Malformed { field: "option length" })?;
            let mut value = Reader::new(reader.take(len, "option length")?);
            options.read_one(kind & !END, flags, &mut value)?;
            if kind & END != 0 {
                Malformed::unless(reader.is_empty(), "options length")?;
                return Ok(options);
            }
        }
        Err(Malformed { field: "number of options" })
    }

    fn read_one(&mut self, kind: u8, flags: [u8; 2], value: &mut Reader<'_>) -> Result<(), Malformed> {
        let [first, specific] = flags;
        match kind {
            FRAGMENT => {
                self.fragment = Some(Fragment {
                    first: value.u32("fragment sequence number")?,
                    offset: value.u32("fragment offset")?,
                    length: value.u32("fragment length")?,
                    is_encoded: first & (ENCODED | ENCODED_BY_OPENPGM) != 0,
                    specific,
                });
            }
            NAK_LIST => {
                let (numbers, rest) = value.take_rest().as_chunks();
                let fits = (1..=MAX_NAK_LIST).contains(&numbers.len());
                Malformed::unless(rest.is_empty() && fits, "NAK list")?;
                self.nak_list = numbers.iter().map(|&number| u32::from_be_bytes(number)).collect();
            }
            JOIN => self.join = Some(value.u32("join sequence number")?),
            BACK_OFF_INTERVAL => {
                self.backoff_interval = Some(BackOffInterval {
                    interval: value.u32("back-off interval")?,
                    sequence: value.u32("back-off interval")?,
                });
            }
            BACK_OFF_RANGE => {
                self.backoff_range = Some(BackOffRange {
                    max: value.u32("back-off range")?,
                    min: value.u32("back-off range")?,
                });
            }
            REDIRECT => self.redirect = Some(address::read(value, "redirect")?),
            PARITY_PRM => {
                let group = value.u32("transmission group size")?;
                Malformed::unless(group.is_power_of_two(), "transmission group size")?;
                self.parity = Some(Parity {
                    proactive: specific & PROACTIVE != 0,
                    on_demand: specific & ON_DEMAND != 0,
                    group,
                });
            }
            PARITY_GRP => self.parity_group = Some(value.u32("parity group")?),
            CURR_TGSIZE => {
                let size = value.u32("current transmission group size")?;
                Malformed::unless(size > 0, "current transmission group size")?;
                self.group_size = Some(size);
            }
            NBR_UNREACH => self.unreachable = true,
            PATH_NLA => self.path = Some(bare_by_length(value, "path")?),
            SYN => self.syn = true,
            FIN => self.fin = true,
            RST => self.rst = Some(specific & !ABSENT),
            PGMCC_DATA => {
                self.congestion_data = Some(CongestionData {
                    timestamp: value.u32("congestion timestamp")?,
                    acker: read_acker(value)?,
                });
            }
            PGMCC_FEEDBACK => {
                let timestamp = value.u32("congestion timestamp")?;
                let family = value.u16("congestion receiver")?;
                let loss = value.u16("congestion loss rate")?;
                let receiver = address::bare(value, family, "congestion receiver")?;
                self.congestion_feedback = Some(CongestionFeedback { timestamp, loss, receiver });
            }
            MEMBER => {
                self.member = Some(Member { is_framed: specific & 1 != 0, repairs_first: specific & 2 != 0 });
            }
            AS_OF => self.as_of = Some(AsOf { lead: value.u32("as of")?, spm: value.u32("as of")? }),
            _ => Malformed::unless(first & OPX != OPX_DISCARD, "option type")?,
        }
        Ok(())
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        let total = self.len();
        if total == 0 {
            return;
        }
        let mut last = 0;
        self.each(|kind, _, _, _, _| last = kind);
        out.u8(LENGTH);
        out.u8(HEADER_LEN as u8);
        out.u16(total as u16);
        self.each(|kind, first, specific, len, value| {
            out.u8(if kind == last { kind | END } else { kind });
            out.u8((HEADER_LEN + len) as u8);
            out.u8(first);
            out.u8(specific);
            value(out);
        });
    }

    /// Each option that there is: type, third and fourth byte, length of the value, and how it is written.
    fn each(&self, mut option: impl FnMut(u8, u8, u8, usize, &dyn Fn(&mut Writer<'_>))) {
        if let Some(fragment) = self.fragment {
            let first = if fragment.is_encoded { ENCODED } else { 0 };
            option(FRAGMENT, first, fragment.specific, 12, &|out| {
                out.u32(fragment.first);
                out.u32(fragment.offset);
                out.u32(fragment.length);
            });
        }
        if !self.nak_list.is_empty() {
            let list = &self.nak_list[..self.nak_list.len().min(MAX_NAK_LIST)];
            option(NAK_LIST, 0, 0, 4 * list.len(), &|out| list.iter().for_each(|&number| out.u32(number)));
        }
        if let Some(join) = self.join {
            option(JOIN, 0, 0, 4, &|out| out.u32(join));
        }
        if let Some(backoff) = self.backoff_interval {
            option(BACK_OFF_INTERVAL, 0, 0, 8, &|out| {
                out.u32(backoff.interval);
                out.u32(backoff.sequence);
            });
        }
        if let Some(range) = self.backoff_range {
            option(BACK_OFF_RANGE, 0, 0, 8, &|out| {
                out.u32(range.max);
                out.u32(range.min);
            });
        }
        if let Some(redirect) = self.redirect {
            option(REDIRECT, 0, 0, address::len(redirect), &|out| address::write(redirect, out));
        }
        if let Some(parity) = self.parity {
            let specific =
                if parity.proactive { PROACTIVE } else { 0 } | if parity.on_demand { ON_DEMAND } else { 0 };
            option(PARITY_PRM, 0, specific, 4, &|out| out.u32(parity.group));
        }
        if let Some(group) = self.parity_group {
            option(PARITY_GRP, 0, 0, 4, &|out| out.u32(group));
        }
        if let Some(size) = self.group_size {
            option(CURR_TGSIZE, 0, 0, 4, &|out| out.u32(size));
        }
        if self.unreachable {
            option(NBR_UNREACH, 0, 0, 0, &|_| {});
        }
        if let Some(path) = self.path {
            option(PATH_NLA, 0, 0, address::bare_len(path), &|out| address::write_bare(path, out));
        }
        if self.syn {
            option(SYN, 0, 0, 0, &|_| {});
        }
        if self.fin {
            option(FIN, 0, 0, 0, &|_| {});
        }
        if let Some(reason) = self.rst {
            option(RST, 0, reason & !ABSENT, 0, &|_| {});
        }
        if let Some(data) = self.congestion_data {
            option(PGMCC_DATA, 0, 0, 4 + address::len(data.acker), &|out| {
                out.u32(data.timestamp);
                address::write(data.acker, out);
            });
        }
        if let Some(feedback) = self.congestion_feedback {
            option(PGMCC_FEEDBACK, 0, 0, 4 + address::len(feedback.receiver), &|out| {
                out.u32(feedback.timestamp);
                out.u16(address::family(feedback.receiver));
                out.u16(feedback.loss);
                address::write_bare(feedback.receiver, out);
            });
        }
        if let Some(member) = self.member {
            let specific = u8::from(member.is_framed) | u8::from(member.repairs_first) << 1;
            option(MEMBER, 0, specific, 0, &|_| {});
        }
        if let Some(as_of) = self.as_of {
            option(AS_OF, 0, 0, 8, &|out| {
                out.u32(as_of.lead);
                out.u32(as_of.spm);
            });
        }
    }
}

/// An address without its family, of which the length tells it.
fn bare_by_length(value: &mut Reader<'_>, field: &'static str) -> Result<IpAddr, Malformed> {
    let family = if value.rest().len() >= 16 { 2 } else { 1 };
    address::bare(value, family, field)
}

/// The acker; OpenPGM has family 0 while there is none.
fn read_acker(value: &mut Reader<'_>) -> Result<IpAddr, Malformed> {
    if value.rest().starts_with(&[0, 0]) {
        value.take_rest();
        return Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    }
    address::read(value, "congestion acker")
}
