//! An object that is being received.

use std::collections::BTreeMap;

use super::super::config::Framing;
use super::block::{Asked, Block};
use super::stream::{Piece, Stream};
use crate::norm::fec::{Blocks, Codec};
use crate::norm::wire::{Flags, Fti};

/// An object.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    /// Known from the first packet that bears it.
    pub(super) layout: Option<Layout>,
    pub(super) flags: Flags,
    pub(super) info: Option<Vec<u8>>,
    /// Blocks of which something has arrived, and which are not complete.
    pub(super) blocks: BTreeMap<u32, Block>,
    /// Blocks that nothing has arrived of, and that were asked for.
    pub(super) asked: BTreeMap<u32, Asked>,
    /// Of the object itself, where nothing is known of it, and of its info.
    pub(super) asked_whole: Asked,
    pub(super) asked_info: Asked,
    /// Contents of blocks that are complete, but those of a stream that were handed up.
    pub(super) complete: BTreeMap<u32, Vec<Vec<u8>>>,
    /// Blocks before it are complete.
    pub(super) next: u32,
    /// The last block of which was heard.
    pub(super) heard: Option<u32>,
    /// Nothing more is wanted of it: handed up, given up or refused.
    pub(super) is_done: bool,
    /// Bytes held.
    pub(super) held: u64,
}

/// How an object is cut.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) fti: Fti,
    pub(super) contents: Contents,
}

#[derive(Clone, Debug)]
pub(super) enum Contents {
    Whole(Blocks),
    Stream(Stream),
}

impl Object {
    /// Number of source symbols of a block, if it is known.
    pub(super) fn source(&self, block: u32) -> Option<u16> {
        let layout = self.layout.as_ref()?;
        match &layout.contents {
            Contents::Whole(blocks) => Some(blocks.source(block)),
            Contents::Stream(_) => Some(layout.fti.source),
        }
    }

    /// Parity symbols that a block can have.
    pub(super) fn parity(&self) -> u16 {
        self.layout.as_ref().map_or(0, |layout| layout.fti.parity)
    }

    /// Number of blocks, if it is known.
    pub(super) fn count(&self) -> Option<u32> {
        match &self.layout.as_ref()?.contents {
            Contents::Whole(blocks) => Some(blocks.count()),
            Contents::Stream(_) => None,
        }
    }

    pub(super) fn stream(&mut self) -> Option<&mut Stream> {
        match &mut self.layout.as_mut()?.contents {
            Contents::Stream(stream) => Some(stream),
            Contents::Whole(_) => None,
        }
    }

    /// Whether the info is missing.
    pub(super) fn lacks_info(&self) -> bool {
        self.flags.contains(Flags::INFO) && self.info.is_none() && !self.is_done
    }

    /// Whether a block needs nothing more.
    pub(super) fn has(&self, block: u32) -> bool {
        self.is_done || block < self.next || self.complete.contains_key(&block)
    }

    /// Sets the layout. False if it is one that we cannot take.
    pub(super) fn set_layout(&mut self, fti: Fti, max_object: u64, framing: Framing, first: u32) -> bool {
        if self.layout.is_some() {
            return true;
        }
        let contents = if self.flags.contains(Flags::STREAM) {
            self.next = first;
            self.blocks.retain(|&block, _| block >= first);
            Contents::Stream(Stream::new(framing, first))
        } else {
            match Blocks::of(&fti) {
                Ok(blocks) if fti.object_size <= max_object => Contents::Whole(blocks),
                Ok(_) | Err(_) => return false,
            }
        };
        self.layout = Some(Layout { fti, contents });
        true
    }

    /// Decodes a block if enough of it has arrived. True if it is complete now.
    pub(super) fn decode(&mut self, block: u32, codec: &Codec) -> bool {
        let Some(source) = self.source(block) else { return false };
        if source == 0 || !self.blocks.get(&block).is_some_and(|found| found.is_complete(source)) {
            return false;
        }
        let Some(found) = self.blocks.remove(&block) else { return false };
        self.held -= found.held();
        let Some(symbols) = found.decode(source, codec) else { return false };
        self.asked.remove(&block);
        self.held += symbols.iter().map(|symbol| symbol.len() as u64).sum::<u64>();
        self.complete.insert(block, symbols);
        let is_stream = self.count().is_none();
        // Those of a stream go on when they are handed up.
        while !is_stream && self.complete.contains_key(&self.next) {
            self.next += 1;
        }
        true
    }

    /// The contents, if all blocks have arrived and the info.
    pub(super) fn take_whole(&mut self) -> Option<Vec<u8>> {
        let Contents::Whole(blocks) = &self.layout.as_ref()?.contents else { return None };
        if self.next < blocks.count() || self.lacks_info() || self.is_done {
            return None;
        }
        let mut bytes = Vec::with_capacity(blocks.size() as usize);
        for (block, symbols) in std::mem::take(&mut self.complete) {
            for (place, symbol) in symbols.iter().enumerate() {
                // Decoded symbols are as long as the longest of their block.
                bytes.extend_from_slice(&symbol[..symbol.len().min(blocks.segment_len(block, place as u16))]);
            }
        }
        self.finish();
        Some(bytes)
    }

    /// Hands up what is next of a stream.
    pub(super) fn advance_stream(&mut self, up: &mut dyn FnMut(Piece)) {
        let Some(layout) = &mut self.layout else { return };
        let per_block = layout.fti.source;
        let Contents::Stream(stream) = &mut layout.contents else { return };
        loop {
            let (block, place) = (stream.block, stream.symbol);
            let complete = self.complete.get(&block).and_then(|symbols| symbols.get(usize::from(place)));
            let symbol = match complete {
                Some(symbol) => symbol,
                None => match self.blocks.get(&block).and_then(|block| block.symbols.get(&place)) {
                    Some(symbol) => symbol,
                    None => break,
                },
            };
            // What is not what comes next is somebody else's, or an error of the sender: it is left out.
            let _ = stream.take(symbol, per_block, up);
            if stream.block != block {
                let symbols = self.complete.remove(&block).unwrap_or_default();
                self.held -= symbols.iter().map(|symbol| symbol.len() as u64).sum::<u64>();
                if let Some(found) = self.blocks.remove(&block) {
                    self.held -= found.held();
                }
                self.asked.remove(&block);
            }
            self.next = stream.block;
        }
        if stream.ended {
            self.finish();
        }
    }

    /// A stream goes on at `block`. True if that leaves something out.
    pub(super) fn skip_to(&mut self, block: u32) -> bool {
        let Some(stream) = self.stream() else { return false };
        if !stream.skip_to(block) {
            return false;
        }
        self.next = block;
        self.blocks.retain(|&at, _| at >= block);
        self.complete.retain(|&at, _| at >= block);
        self.asked.retain(|&at, _| at >= block);
        let blocks: u64 = self.blocks.values().map(Block::held).sum();
        let complete: u64 = self.complete.values().flatten().map(|symbol| symbol.len() as u64).sum();
        self.held = blocks + complete;
        true
    }

    /// Nothing more is wanted.
    pub(super) fn finish(&mut self) {
        self.is_done = true;
        self.blocks.clear();
        self.asked.clear();
        self.complete.clear();
        self.held = 0;
    }
}
