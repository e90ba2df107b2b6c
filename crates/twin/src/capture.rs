//! Captures: one pcapng file a run, one interface block per `node:interface`, nanoseconds, and the reason for each
//! drop as the packet's comment.
//!
//! A frame has at its sender the time at which its last bit has left, and at its receiver that of its arrival. A frame
//! that the network lost is in the file once, at its sender, with a comment that names the place and the reason.

use core::time::Duration;
use std::io::{self, Write};

use hopcast_core::Instant;
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};

/// An interface of a capture, by its number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Link type of an interface, as pcapng calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Ethernet frames.
    Frames,
    /// IP packets without anything before them.
    Packets,
}

/// The writer of a capture in pcapng.
pub struct PcapngWriter {
    writer: PcapNgWriter<Box<dyn Write>>,
    interfaces: u32,
    /// The last frame sent, held back until it is known whether the network lost it.
    pending: Option<Record>,
    /// The first error; nothing more is written after it.
    error: Option<io::Error>,
}

struct Record {
    interface: InterfaceId,
    at: Instant,
    direction: Direction,
    bytes: Vec<u8>,
    comments: Vec<String>,
}

/// The direction in pcapng's flags of a packet.
#[derive(Clone, Copy)]
enum Direction {
    Inbound = 1,
    Outbound = 2,
}

impl Record {
    fn new(interface: InterfaceId, at: Instant, direction: Direction, bytes: &[u8]) -> Self {
        Self { interface, at, direction, bytes: bytes.to_vec(), comments: Vec::new() }
    }
}

impl PcapngWriter {
    /// A capture that writes to `into`.
    ///
    /// # Errors
    /// If `into` cannot be written.
    pub fn new(into: Box<dyn Write>) -> io::Result<Self> {
        let writer = PcapNgWriter::new(into).map_err(into_io)?;
        Ok(Self { writer, interfaces: 0, pending: None, error: None })
    }

    /// Adds an interface; all of them come before the first frame.
    pub fn add_interface(&mut self, name: &str, carries: LinkType) -> InterfaceId {
        let block = InterfaceDescriptionBlock {
            linktype: match carries {
                LinkType::Frames => DataLink::ETHERNET,
                LinkType::Packets => DataLink::RAW,
            },
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(name.to_owned().into()),
                // The resolution of time stamps: 10^-9 seconds.
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        };
        let written = self.writer.write_pcapng_block(block).map(|_| ());
        self.note(written);
        self.interfaces += 1;
        InterfaceId(self.interfaces - 1)
    }

    /// Notes that a frame has left `interface`.
    pub fn sent(&mut self, at: Instant, interface: InterfaceId, bytes: &[u8]) {
        self.flush();
        self.pending = Some(Record::new(interface, at, Direction::Outbound, bytes));
    }

    /// Notes that a frame has arrived at `interface`.
    pub fn received(&mut self, at: Instant, interface: InterfaceId, bytes: &[u8]) {
        self.flush();
        self.write(&Record::new(interface, at, Direction::Inbound, bytes));
    }

    /// Notes that a frame that has just left `interface`, or was to leave it, was dropped.
    pub fn dropped(&mut self, at: Instant, interface: InterfaceId, bytes: &[u8], comment: String) {
        if let Some(pending) = &mut self.pending
            && pending.interface == interface
            && pending.at == at
            && pending.bytes == bytes
        {
            pending.comments.push(comment);
            return;
        }
        self.flush();
        let record = Record::new(interface, at, Direction::Outbound, bytes);
        self.write(&Record { comments: vec![comment], ..record });
    }

    /// Writes the frame that is held back, and ends the file.
    ///
    /// # Errors
    /// The first error of writing any frame.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush();
        let flushed = self.writer.get_mut().flush();
        match self.error {
            Some(error) => Err(error),
            None => flushed,
        }
    }

    fn flush(&mut self) {
        if let Some(record) = self.pending.take() {
            self.write(&record);
        }
    }

    fn write(&mut self, record: &Record) {
        let direction = EnhancedPacketOption::Flags(record.direction as u32);
        let comments = record.comments.iter().map(|text| EnhancedPacketOption::Comment(text.into()));
        let block = EnhancedPacketBlock {
            interface_id: record.interface.0,
            timestamp: Duration::from_nanos(record.at.as_nanos()),
            original_len: record.bytes.len() as u32,
            data: (&record.bytes[..]).into(),
            options: std::iter::once(direction).chain(comments).collect(),
        };
        let written = self.writer.write_pcapng_block(block).map(|_| ());
        self.note(written);
    }

    fn note(&mut self, written: Result<(), pcap_file::PcapError>) {
        if let Err(error) = written {
            self.error.get_or_insert(into_io(error));
        }
    }
}

fn into_io(error: pcap_file::PcapError) -> io::Error {
    match error {
        pcap_file::PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
