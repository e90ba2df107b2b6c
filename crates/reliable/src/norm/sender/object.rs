//! An object that is being sent, or held for repairs.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopcast_core::{Buffer, Instant};

use super::block::Block;
use super::stream::Stream;
use crate::norm::fec::{Blocks, Codec};
use crate::norm::wire::{Fec, Flags, Fti};

/// Contents of an object.
#[derive(Clone, Debug)]
pub(super) enum Contents {
    /// All of it is known.
    Whole { bytes: Arc<[u8]>, blocks: Blocks },
    /// It comes bit by bit.
    Stream(Stream),
}

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) contents: Contents,
    /// Information about it, sent beside its contents.
    pub(super) info: Option<Arc<[u8]>>,
    /// Whether the info is to be sent again.
    pub(super) info_wanted: bool,
    /// FILE, STREAM and INFO.
    pub(super) flags: Flags,
    pub(super) fti: Fti,
    /// Blocks of which something was sent.
    pub(super) blocks: BTreeMap<u32, Block>,
    /// When something of it was sent last.
    pub(super) sent: Option<Instant>,
}

impl Object {
    pub(super) fn new(contents: Contents, info: Option<Arc<[u8]>>, flags: Flags, fti: Fti) -> Self {
        let flags = if info.is_some() { flags.with(Flags::INFO) } else { flags };
        Self { contents, info, info_wanted: false, flags, fti, blocks: BTreeMap::new(), sent: None }
    }

    /// Bytes of its contents, if all of it is known; those of a stream come and go.
    pub(super) fn bytes(&self) -> u64 {
        match &self.contents {
            Contents::Whole { bytes, .. } => bytes.len() as u64,
            Contents::Stream(_) => 0,
        }
    }

    /// Number of source symbols of a block so far.
    pub(super) fn source(&self, block: u32) -> u16 {
        match &self.contents {
            Contents::Whole { blocks, .. } => blocks.source(block),
            Contents::Stream(stream) => stream.symbols(block).len() as u16,
        }
    }

    /// Whether a block has all of its source symbols, and so parity.
    pub(super) fn is_whole(&self, block: u32) -> bool {
        match &self.contents {
            Contents::Whole { blocks, .. } => block < blocks.count(),
            Contents::Stream(stream) => self.source(block) == stream.per_block(),
        }
    }

    /// The first block that can be repaired.
    pub(super) fn first_block(&self) -> u32 {
        match &self.contents {
            Contents::Whole { .. } => 0,
            Contents::Stream(stream) => stream.first(),
        }
    }

    /// A symbol, copied with headroom; `None` if there is no such symbol.
    pub(super) fn symbol(&self, block: u32, symbol: u16, codec: &Codec) -> Option<Buffer> {
        let source = self.source(block);
        if symbol < source {
            return Some(Buffer::copy_from(self.source_symbol(block, symbol)));
        }
        let index = usize::from(symbol - source);
        if !self.is_whole(block) || index >= codec.parity_symbols() {
            return None;
        }
        let sources: Vec<&[u8]> = (0..source).map(|place| self.source_symbol(block, place)).collect();
        let len = sources.iter().map(|symbol| symbol.len()).max().unwrap_or(0);
        let mut parity = Buffer::zeroed(len);
        codec.parity(index, &sources, &mut parity);
        Some(parity)
    }

    fn source_symbol(&self, block: u32, symbol: u16) -> &[u8] {
        match &self.contents {
            Contents::Whole { bytes, blocks } => {
                let start = blocks.offset(block, symbol) as usize;
                &bytes[start..start + blocks.segment_len(block, symbol)]
            }
            Contents::Stream(stream) => &stream.symbols(block)[usize::from(symbol)],
        }
    }

    /// The stream, if it is one.
    pub(super) fn stream(&self) -> Option<&Stream> {
        match &self.contents {
            Contents::Stream(stream) => Some(stream),
            Contents::Whole { .. } => None,
        }
    }

    /// The stream, if it is one.
    pub(super) fn stream_mut(&mut self) -> Option<&mut Stream> {
        match &mut self.contents {
            Contents::Stream(stream) => Some(stream),
            Contents::Whole { .. } => None,
        }
    }

    /// The code of everything that we send.
    pub(super) const FEC: Fec = Fec::ReedSolomon8;
}
